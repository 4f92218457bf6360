//! Sequences of operations against a plain map with a clock, on a cache that never has to evict, with and without a
//! lookaside buffer.

use std::collections::HashMap;
use std::ops::ControlFlow;

use lookaside_cache::engine::{
    Cache, Change, Commit, Config, Entry, Expiry, GROUP, Hit, Housekeeper, Put, Session, Stored, Todo,
    Updated, Value, Verb,
};
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq)]
struct ModelItem {
    value: Vec<u8>,
    flags: u32,
    expiry: Expiry,
    cas: u64,
    stale: bool,
    won: bool,
    fetched: bool,
}

impl ModelItem {
    /// One that comes, and has not been asked for.
    fn new(value: Vec<u8>, flags: u32, expiry: Expiry, cas: u64) -> Self {
        ModelItem { value, flags, expiry, cas, stale: false, won: false, fetched: false }
    }

    fn of(hit: &Hit<'_>) -> Self {
        ModelItem {
            stale: hit.is_stale(),
            won: hit.is_won(),
            fetched: hit.was_fetched(),
            ..ModelItem::new(hit.to_vec(), hit.flags(), hit.expiry(), hit.cas())
        }
    }
}

/// What a cache is, said as simply as possible.
#[derive(Default)]
struct Model {
    items: HashMap<Vec<u8>, ModelItem>,
    /// When each key was stored, touched or found last.
    used: HashMap<Vec<u8>, u32>,
    /// The highest number that the engine has given to each key.
    highest: HashMap<Vec<u8>, u64>,
    now: u32,
    flush_due: Option<u32>,
    /// The second of which all that is stored is flushed when it comes.
    hidden: Option<u32>,
}

impl Model {
    fn get(&self, key: &[u8]) -> Option<&ModelItem> {
        self.items.get(key).filter(|item| !item.expiry.has_passed(self.now))
    }

    fn put(&mut self, key: &[u8], item: ModelItem) {
        self.used.insert(key.to_vec(), self.now);
        if self.hidden == Some(self.now) {
            self.items.remove(key);
        } else {
            self.items.insert(key.to_vec(), item);
        }
    }

    /// A number that the engine has given: higher than all before it.
    fn number(&mut self, key: &[u8], cas: u64) -> Result<(), TestCaseError> {
        let before = self.highest.insert(key.to_vec(), cas);
        prop_assert!(before.unwrap_or(0) < cas, "{:?} and then {}", before, cas);
        Ok(())
    }

    fn tick(&mut self, seconds: u32) {
        self.now += seconds;
        if let Some(due) = self.flush_due.take_if(|due| *due <= self.now) {
            self.hidden = Some(due);
            self.items.clear();
        }
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Store {
        verb: Wanted,
        key: u8,
        len: usize,
        flags: u32,
        expiry: u32,
        cas: Option<u64>,
        pieces: bool,
    },
    Change {
        what: Wish,
        key: u8,
        len: usize,
        flags: u32,
        expiry: u32,
        cas: Option<u64>,
        stale: bool,
        won: bool,
    },
    Win(u8),
    Peek(u8),
    Get(u8),
    GetMany(Vec<u8>),
    Delete(u8),
    Touch {
        key: u8,
        expiry: u32,
    },
    Increment(u8),
    /// The last byte of a value one higher, in a copy, if that can be.
    Rewrite(u8),
    Tick(u32),
    Flush,
    FlushIn(u32),
    Housekeeping(u8),
    /// Requests come together from here on, for these keys, so many of them writes; or not any more.
    Batch {
        keys: Vec<u8>,
        writes: usize,
    },
    /// The keys of the last batch, from one on, whether it is open still or not.
    GetAnnounced(usize),
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    CasRight,
    CasWrong,
}

/// What is to become of a key.
#[derive(Debug, Clone, Copy)]
enum Wish {
    Leave,
    Remove,
    Touch,
    PutGiven,
    PutLonger,
    PutSame,
    CommitIfThere,
    CommitIfAbsent,
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0u8..12;
    let verb = prop_oneof![
        4 => Just(Wanted::Set),
        1 => Just(Wanted::Add),
        1 => Just(Wanted::Replace),
        1 => Just(Wanted::Append),
        1 => Just(Wanted::Prepend),
        1 => Just(Wanted::CasRight),
        1 => Just(Wanted::CasWrong),
    ];
    // Around every kind of boundary: empty, a chunk's end, one chunk's worth, several further chunks.
    let len = prop_oneof![
        4 => 0usize..64,
        2 => 100usize..2000,
        2 => 8_140usize..8_200,
        1 => 30_000usize..80_000,
    ];
    let flags = prop_oneof![Just(0), any::<u32>()];
    let expiry = prop_oneof![3 => Just(0u32), 2 => 1u32..8];
    let cas = prop_oneof![3 => Just(None), 1 => any::<u64>().prop_map(Some)];
    let wish = prop_oneof![
        Just(Wish::Leave),
        Just(Wish::Remove),
        Just(Wish::Touch),
        Just(Wish::PutGiven),
        Just(Wish::PutLonger),
        Just(Wish::PutSame),
        Just(Wish::CommitIfThere),
        Just(Wish::CommitIfAbsent),
    ];
    let item = (key.clone(), len, flags, expiry.clone(), cas);
    prop_oneof![
        8 => (verb, item.clone(), any::<bool>()).prop_map(|(verb, (key, len, flags, expiry, cas), pieces)| {
            Operation::Store { verb, key, len, flags, expiry, cas, pieces }
        }),
        6 => (wish, item, any::<(bool, bool)>()).prop_map(|(what, (key, len, flags, expiry, cas), (stale, won))| {
            Operation::Change { what, key, len, flags, expiry, cas, stale, won }
        }),
        1 => key.clone().prop_map(Operation::Win),
        1 => key.clone().prop_map(Operation::Peek),
        4 => key.clone().prop_map(Operation::Get),
        2 => prop::collection::vec(0u8..12, 0..80).prop_map(Operation::GetMany),
        2 => key.clone().prop_map(Operation::Delete),
        2 => (key.clone(), expiry).prop_map(|(key, expiry)| Operation::Touch { key, expiry }),
        1 => key.clone().prop_map(Operation::Increment),
        3 => key.prop_map(Operation::Rewrite),
        2 => (0u32..4).prop_map(Operation::Tick),
        1 => (50u32..200).prop_map(Operation::Tick),
        1 => Just(Operation::Flush),
        1 => (0u32..5).prop_map(Operation::FlushIn),
        2 => (1u8..4).prop_map(Operation::Housekeeping),
        4 => (prop::collection::vec(0u8..12, 0..20), 0usize..20)
            .prop_map(|(keys, writes)| Operation::Batch { keys, writes }),
        4 => (0usize..20).prop_map(Operation::GetAnnounced),
    ]
}

/// Keys of every length from 1 to 250, so that the fields behind them are seldom aligned.
fn key_of(number: u8) -> Vec<u8> {
    let len = [1, 2, 3, 7, 8, 15, 16, 31, 100, 249, 250, 64][number as usize];
    let mut key = vec![b'k'; len];
    key[0] = b'a' + number;
    key
}

fn value_of(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (seed * 31 + i * 7 + (i >> 8)) as u8).collect()
}

struct World {
    cache: Cache,
    session: Session,
    housekeeper: Housekeeper,
    model: Model,
    stores: usize,
    /// The keys of the last batch.
    announced: Vec<u8>,
}

impl World {
    fn new(lookaside: usize) -> Self {
        let cache: Cache = Cache::new(Config { lookaside, ..Config::with_limit(64 << 20) }).unwrap();
        cache.set_time(1000);
        let model = Model { now: 1000, ..Model::default() };
        let (session, housekeeper) = (cache.session(), cache.housekeeper());
        World { cache, session, housekeeper, model, stores: 0, announced: Vec::new() }
    }

    fn expiry(&self, seconds: u32) -> Expiry {
        if seconds == 0 { Expiry::Never } else { Expiry::At(self.model.now + seconds) }
    }

    fn check(&mut self, key: u8) -> Result<(), TestCaseError> {
        let key = key_of(key);
        let pinned = self.session.pin();
        let hit = pinned.get(&key);
        let seen = hit.as_ref().map(ModelItem::of);
        prop_assert_eq!(seen.as_ref(), self.model.get(&key));
        if let Some(hit) = hit {
            let used = self.model.used[&key];
            prop_assert!(
                (used.saturating_sub(60)..=used + 3).contains(&hit.last_access()),
                "{}",
                hit.last_access()
            );
            self.model.used.insert(key.clone(), self.model.now);
            self.model.items.get_mut(&key).expect("seen").fetched = true;
            prop_assert_eq!(hit.key(), &key[..]);
            prop_assert_eq!(hit.value_len(), hit.to_vec().len());
            prop_assert!(hit.contiguous().is_none_or(|value| value == hit.to_vec()));
        }
        Ok(())
    }

    fn store(&mut self, verb: Wanted, key: &[u8], entry: Entry<'_>, value: &[u8], pieces: bool) -> Stored {
        let current = self.model.get(key).map(|item| item.cas);
        let verb = match verb {
            Wanted::Set => Verb::Set,
            Wanted::Add => Verb::Add,
            Wanted::Replace => Verb::Replace,
            Wanted::Append => Verb::Append,
            Wanted::Prepend => Verb::Prepend,
            Wanted::CasRight => Verb::CompareAndSwap(current.unwrap_or(77)),
            Wanted::CasWrong => Verb::CompareAndSwap(current.unwrap_or(77) ^ 1 << 40),
        };
        if !pieces {
            return self.session.store(verb, entry, value).unwrap();
        }
        let mut reservation = self.session.reserve(verb, entry, value.len()).unwrap();
        for piece in value.chunks(4099) {
            assert_eq!(reservation.missing() % 4099, value.len() % 4099);
            self.session.fill(&mut reservation, piece).unwrap();
        }
        self.session.commit(reservation).unwrap()
    }

    fn apply(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        // What may flush may have to wait for those who are pinned.
        if let Operation::Tick(_) | Operation::Flush | Operation::FlushIn(_) | Operation::Housekeeping(_) =
            operation
        {
            self.session.end_batch();
        }
        match *operation {
            Operation::Store { verb, key: number, len, flags, expiry, cas, pieces } => {
                self.stores += 1;
                let (key, value) = (key_of(number), value_of(self.stores, len));
                let expiry = self.expiry(expiry);
                let old = self.model.get(&key).cloned();
                let entry = Entry::new(&key).with_flags(flags).with_expiry(expiry).with_cas(cas);
                let outcome = self.store(verb, &key, entry, &value, pieces);
                let new = |cas| ModelItem::new(value.clone(), flags, expiry, cas);
                let expected = match (verb, old) {
                    (Wanted::Set, _)
                    | (Wanted::Add, None)
                    | (Wanted::Replace | Wanted::CasRight, Some(_)) => Ok(new(0)),
                    (Wanted::Append, Some(old)) => {
                        Ok(ModelItem::new([old.value, value.clone()].concat(), old.flags, old.expiry, 0))
                    }
                    (Wanted::Prepend, Some(old)) => {
                        Ok(ModelItem::new([value.clone(), old.value].concat(), old.flags, old.expiry, 0))
                    }
                    (Wanted::CasWrong, Some(_)) => Err(Stored::Exists),
                    (Wanted::CasRight | Wanted::CasWrong, None) => Err(Stored::NotFound),
                    _ => Err(Stored::NotStored),
                };
                match (expected, outcome) {
                    (Ok(item), Stored::Stored(number)) => {
                        match cas {
                            Some(cas) => prop_assert_eq!(cas, number),
                            None => self.model.number(&key, number)?,
                        }
                        self.model.put(&key, ModelItem { cas: number, ..item });
                    }
                    (Err(refusal), outcome) => prop_assert_eq!(refusal, outcome),
                    (Ok(_), outcome) => prop_assert!(false, "not stored: {:?}", outcome),
                }
                self.check(number)?;
            }
            Operation::Get(key) => self.check(key)?,
            Operation::GetMany(ref numbers) => {
                let keys: Vec<Vec<u8>> = numbers.iter().map(|&number| key_of(number)).collect();
                let pinned = self.session.pin();
                let mut found = Vec::new();
                pinned.get_many(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), |i, hit| {
                    assert_eq!(i, found.len());
                    found.push(hit);
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(found.len(), keys.len());
                for (key, hit) in keys.iter().zip(&found) {
                    let seen = hit.as_ref().map(|hit| (hit.to_vec(), hit.cas()));
                    let expected = self.model.get(key).map(|item| (item.value.clone(), item.cas));
                    prop_assert_eq!(&seen, &expected);
                    if let (Some(_), Some(item)) = (seen, self.model.items.get_mut(key)) {
                        item.fetched = true;
                        self.model.used.insert(key.clone(), self.model.now);
                    }
                }
            }
            Operation::Delete(number) => {
                let key = key_of(number);
                let expected = self.model.get(&key).is_some();
                self.model.items.remove(&key);
                prop_assert_eq!(self.session.delete(&key), expected);
                self.check(number)?;
            }
            Operation::Touch { key: number, expiry } => {
                let (key, expiry) = (key_of(number), self.expiry(expiry));
                let expected = self.model.get(&key).is_some();
                if expected {
                    self.model.items.get_mut(&key).unwrap().expiry = expiry;
                    self.model.used.insert(key.clone(), self.model.now);
                }
                prop_assert_eq!(self.session.touch(&key, expiry).unwrap(), expected);
                self.check(number)?;
            }
            Operation::Increment(number) => {
                let key = key_of(number);
                let outcome = self.session.update(&key, |hit, new| {
                    let value = hit.to_vec();
                    let last = *value.last().ok_or("empty")?;
                    new.extend_from_slice(&value);
                    new.push(last.wrapping_add(1));
                    Ok(())
                });
                match (outcome.unwrap(), self.model.get(&key).cloned()) {
                    (Updated::NotFound, None) => {}
                    (Updated::Declined("empty"), Some(item)) => prop_assert!(item.value.is_empty()),
                    (Updated::Updated(cas), Some(mut item)) => {
                        self.model.number(&key, cas)?;
                        item.value.push(item.value.last().unwrap().wrapping_add(1));
                        self.model.put(&key, ModelItem::new(item.value, item.flags, item.expiry, cas));
                    }
                    (outcome, item) => prop_assert!(false, "{:?} of {:?}", outcome, item),
                }
                self.check(number)?;
            }
            Operation::Rewrite(number) => {
                let key = key_of(number);
                let rewritten = self.session.rewrite(&key, |_, value| {
                    let last = value.last_mut()?;
                    *last = last.wrapping_add(1);
                    Some(*last)
                });
                if let Some((last, cas)) = rewritten {
                    let mut item = self.model.get(&key).cloned().expect("it is there");
                    self.model.number(&key, cas)?;
                    let before = item.value.pop().expect("a byte");
                    prop_assert_eq!(last, before.wrapping_add(1));
                    item.value.push(last);
                    prop_assert_eq!(item.expiry, Expiry::Never);
                    self.model.put(&key, ModelItem { cas, ..item });
                }
                self.check(number)?;
            }
            Operation::Change { what, key: number, len, flags, expiry, cas, stale, won } => {
                self.stores += 1;
                let (key, value) = (key_of(number), value_of(self.stores, len));
                let expiry = self.expiry(expiry);
                let put = |value| {
                    Put::new(value)
                        .with_flags(flags)
                        .with_expiry(expiry)
                        .with_cas(cas)
                        .with_stale(stale)
                        .with_won(won)
                };
                let old = self.model.get(&key).cloned();
                let mut shown = None;
                let outcome = match what {
                    Wish::CommitIfThere | Wish::CommitIfAbsent => {
                        let entry = Entry::new(&key).with_flags(flags).with_expiry(expiry).with_cas(cas);
                        let mut reservation = self.session.reserve(Verb::Set, entry, value.len()).unwrap();
                        for piece in value.chunks(4099) {
                            self.session.fill(&mut reservation, piece).unwrap();
                        }
                        prop_assert_eq!(&reservation.to_vec(), &value);
                        self.session.commit_if(reservation, |now| {
                            shown = now.map(ModelItem::of);
                            match now.is_some() == matches!(what, Wish::CommitIfThere) {
                                true => Commit::Put { stale, won, result: 7 },
                                false => Commit::Leave(8),
                            }
                        })
                    }
                    _ => self.session.change(&key, |now, new| {
                        shown = now.map(ModelItem::of);
                        assert!(new.is_empty());
                        match what {
                            Wish::Leave => Change::Leave(7),
                            Wish::Remove => Change::Remove(7),
                            Wish::Touch => Change::Touch(expiry, 7),
                            Wish::PutGiven => Change::Put(put(Value::Given(&value)), 7),
                            Wish::PutSame => Change::Put(put(Value::Same), 7),
                            _ => {
                                now.into_iter()
                                    .flat_map(Hit::pieces)
                                    .for_each(|old| new.extend_from_slice(old));
                                new.extend_from_slice(&value);
                                Change::Put(put(Value::Scratch), 7)
                            }
                        }
                    }),
                };
                let outcome = outcome.unwrap();
                prop_assert_eq!(&shown, &old);
                let old_value = old.as_ref().map_or_else(Vec::new, |old| old.value.clone());
                let new = match what {
                    Wish::Leave => None,
                    Wish::Remove => {
                        self.model.items.remove(&key);
                        None
                    }
                    Wish::Touch => {
                        if old.is_some() {
                            self.model.items.get_mut(&key).expect("it is there").expiry = expiry;
                            self.model.used.insert(key.clone(), self.model.now);
                        }
                        None
                    }
                    Wish::PutGiven => Some(value),
                    Wish::PutLonger => Some([old_value, value].concat()),
                    Wish::PutSame => Some(old_value),
                    Wish::CommitIfThere => old.is_some().then_some(value),
                    Wish::CommitIfAbsent => old.is_none().then_some(value),
                };
                let left = matches!(what, Wish::CommitIfThere | Wish::CommitIfAbsent) && new.is_none();
                prop_assert_eq!(outcome.result, if left { 8 } else { 7 });
                prop_assert_eq!(outcome.cas.is_some(), new.is_some());
                if let (Some(value), Some(number)) = (new, outcome.cas) {
                    match cas {
                        Some(cas) => prop_assert_eq!(cas, number),
                        None => self.model.number(&key, number)?,
                    }
                    self.model
                        .put(&key, ModelItem { stale, won, ..ModelItem::new(value, flags, expiry, number) });
                }
                self.check(number)?;
            }
            Operation::Win(number) => {
                let key = key_of(number);
                let won = self.session.pin().peek(&key).map(|hit| hit.win());
                prop_assert_eq!(won, self.model.get(&key).map(|item| !item.won));
                if won.is_some() {
                    self.model.items.get_mut(&key).expect("it is there").won = true;
                }
                self.check(number)?;
            }
            Operation::Peek(number) => {
                let key = key_of(number);
                let before = self.cache.counts().hits;
                let seen = self.session.pin().peek(&key).as_ref().map(ModelItem::of);
                prop_assert_eq!(seen.as_ref(), self.model.get(&key));
                prop_assert_eq!(self.cache.counts().hits, before);
            }
            Operation::Tick(seconds) => {
                self.model.tick(seconds);
                self.cache.set_time(self.model.now);
                self.housekeeper.step();
            }
            Operation::Flush => {
                self.model.items.clear();
                self.model.flush_due = None;
                self.model.hidden = None;
                self.cache.flush();
            }
            Operation::FlushIn(seconds) => {
                self.model.flush_due = Some(self.model.now + seconds);
                self.model.hidden = None;
                self.model.tick(0);
                self.cache.flush_at(Some(self.model.now + seconds));
                self.housekeeper.step();
            }
            Operation::Batch { ref keys, .. } if keys.is_empty() => {
                self.announced.clear();
                self.session.end_batch();
            }
            Operation::Batch { ref keys, writes } => {
                self.announced = keys.iter().take(GROUP).copied().collect();
                let keys: Vec<Vec<u8>> = keys.iter().copied().map(key_of).collect();
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                self.session.begin_batch(&keys, writes.min(keys.len()));
            }
            Operation::GetAnnounced(first) => {
                let first = first.min(self.announced.len());
                let keys: Vec<Vec<u8>> = self.announced[first..].iter().copied().map(key_of).collect();
                let slices: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                let mut found = Vec::new();
                let answered = self.session.pin().get_announced(first, &slices, |number, hit| {
                    assert_eq!(number, found.len());
                    found.push(hit.map(|hit| hit.to_vec()));
                    ControlFlow::Continue(())
                });
                prop_assert_eq!(answered, keys.len());
                for (key, found) in keys.iter().zip(found) {
                    prop_assert_eq!(found.as_ref(), self.model.get(key).map(|item| &item.value));
                    if found.is_some() {
                        self.model.items.get_mut(key).expect("seen").fetched = true;
                        self.model.used.insert(key.clone(), self.model.now);
                    }
                }
            }
            Operation::Housekeeping(steps) => {
                for _ in 0..steps {
                    self.housekeeper.step();
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_is_a_map_with_a_clock(
        operations in prop::collection::vec(operation(), 1..200),
        // None, one that all keys fight for, and one that has room for all.
        lookaside in prop::sample::select(vec![0, 64, 1 << 16]),
    ) {
        let mut world = World::new(lookaside);
        for operation in &operations {
            world.apply(operation)?;
        }
        for key in 0..12 {
            world.check(key)?;
        }
        world.session.end_batch();
        // What was stored in a second that a flush hides is swept when that is over.
        world.apply(&Operation::Tick(1))?;
        // What is dead goes without being asked for; what is left is exactly what the model has.
        while world.housekeeper.step() == Todo::More {}
        world.housekeeper.step();
        let alive = (0..12).filter(|&key| world.model.get(&key_of(key)).is_some()).count();
        prop_assert_eq!(world.cache.len(), alive);
        let counts = world.cache.counts();
        prop_assert_eq!(counts.stored - counts.removed, alive as u64);
    }
}
