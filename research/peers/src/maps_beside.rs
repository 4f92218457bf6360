//! Kind `peers-maps`: our concurrent map beside those that a program could take instead, each through its safe face.
//!
//! | map | design | one lookup after the other | a batch |
//! |---|---|---|---|
//! | ours | cuckoo index, entries in slabs | under a pin that is kept | `get_many` |
//! | papaya | one table of pointers, entries on the heap | under a guard that is kept | the same |
//! | dashmap | shards of hashbrown, each under a lock | `get` | the same |
//! | scc | buckets under locks | `read_sync` | the same |
//! | sharded hashbrown | 64 tables under locks, what one writes in an afternoon | under the lock | the same |
//!
//! All hold keys and values themselves, and hash with foldhash. For each kind of key and each number of them, all maps
//! are made with room for it, filled by one thread, and asked in turn, run by run, for fresh keys behind a warm-up.
//! Before that, each is filled from empty, in the same turn, and the longest of all inserts is noted: that is what
//! growth costs who waits for it. Beside it stands a control: how long the machine takes, at the longest, to give a
//! page of as much fresh memory at its first touch. What the thread waits for a core is in neither. A map that grows
//! takes such pages, whatever it does itself, and on some machines one huge page takes milliseconds.

use std::hash::{BuildHasher, Hash};
use std::time::{Duration, Instant};

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use lab::experiment::{ExperimentError, Session};
use lab::index::{BATCH, Index, Insertion, Key};
use lab::lookaside::indexes::ConcurrentMap;
use lab::measure::{Resident, release_freed_memory, waited_for_core};
use lab::subject::{Call, Tally};
use parking_lot::RwLock;
use serde::Deserialize;

use crate::comparison::{fill, take_turns};
use crate::lookaside::hashed::{Dashmap, Papaya};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Numbers of keys.
    keys: Vec<usize>,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Lookups of one thread in one timed part.
    operations: usize,
    /// The keys: each with a value of 8 bytes.
    shapes: Vec<Shape>,
}

/// A kind of key.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    /// One of eight bytes.
    Word,
    /// One of sixteen.
    TwoWords,
}

/// A key of a shape, made from the laboratory's.
trait Shaped: Copy + Hash + Eq + Send + Sync + 'static {
    const NAME: &'static str;
    fn of(key: &Key) -> Self;
}

impl Shaped for u64 {
    const NAME: &'static str = "8 B";

    #[inline(always)]
    fn of(key: &Key) -> u64 {
        // A bijection of the record's number.
        key.to_words()[0]
    }
}

impl Shaped for [u64; 2] {
    const NAME: &'static str = "16 B";

    #[inline(always)]
    fn of(key: &Key) -> [u64; 2] {
        key.to_words()
    }
}

/// A map and its best call for many keys.
trait Batched<K>: ConcurrentMap<K, u64> {
    #[inline(always)]
    fn look_at_all(&self, keys: &[K], guard: &Self::Guard<'_>, tally: &mut Tally) {
        keys.iter().for_each(|key| tally.count(self.look(key, guard, |value| *value)));
    }
}

/// Ours.
struct Ours<K>(cuckoo::HashMap<K, u64, FixedState>);

impl<K: Shaped> ConcurrentMap<K, u64> for Ours<K> {
    type Guard<'m> = cuckoo::HashMapRef<'m, K, u64, FixedState>;

    fn with_capacity(records: usize) -> Self {
        let builder = cuckoo::HashMap::builder().capacity(records).hasher(FixedState::default());
        Ours(builder.hashes(cuckoo::Hashes::Avalanching).build())
    }

    #[inline(always)]
    fn guard(&self) -> Self::Guard<'_> {
        self.0.pin()
    }

    fn refresh<'m>(&'m self, guard: &mut Self::Guard<'m>) {
        guard.refresh();
    }

    #[inline(always)]
    fn look<R>(&self, key: &K, guard: &Self::Guard<'_>, see: impl FnOnce(&u64) -> R) -> Option<R> {
        guard.get(key).map(see)
    }

    #[inline(always)]
    fn put(&self, key: K, new: u64, guard: &Self::Guard<'_>) {
        guard.insert(key, new);
    }

    fn exchange(&self, key: K, new: u64) -> Option<u64> {
        self.0.pin().insert(key, new).copied()
    }

    fn keys(&self) -> usize {
        self.0.len()
    }
}

impl<K: Shaped> Batched<K> for Ours<K> {
    #[inline(always)]
    fn look_at_all(&self, keys: &[K], guard: &Self::Guard<'_>, tally: &mut Tally) {
        let Some(some) = keys.first() else { return };
        let (mut asked, mut values) = ([some; BATCH], [None; BATCH]);
        asked.iter_mut().zip(keys).for_each(|(asked, key)| *asked = key);
        let values = &mut values[..keys.len()];
        guard.get_many(&asked[..keys.len()], values);
        values.iter().for_each(|value| tally.count(value.copied()));
    }
}

impl<K: Shaped> Batched<K> for Papaya<K, u64, FixedState> {}
impl<K: Shaped> Batched<K> for Dashmap<K, u64, FixedState> {}

/// scc's map.
struct Scc<K>(scc::HashMap<K, u64, FixedState>);

impl<K: Shaped> ConcurrentMap<K, u64> for Scc<K> {
    type Guard<'m> = ();

    fn with_capacity(records: usize) -> Self {
        Scc(scc::HashMap::with_capacity_and_hasher(records, FixedState::default()))
    }

    fn guard(&self) -> Self::Guard<'_> {}

    fn refresh<'m>(&'m self, _guard: &mut Self::Guard<'m>) {}

    #[inline(always)]
    fn look<R>(&self, key: &K, _guard: &Self::Guard<'_>, see: impl FnOnce(&u64) -> R) -> Option<R> {
        self.0.read_sync(key, |_, value| see(value))
    }

    #[inline(always)]
    fn put(&self, key: K, new: u64, _guard: &Self::Guard<'_>) {
        self.0.upsert_sync(key, new);
    }

    fn exchange(&self, key: K, new: u64) -> Option<u64> {
        self.0.upsert_sync(key, new)
    }

    fn keys(&self) -> usize {
        self.0.len()
    }
}

impl<K: Shaped> Batched<K> for Scc<K> {}

/// Tables of hashbrown's under locks.
struct Sharded<K> {
    shards: Box<[Shard<K>]>,
    hasher: FixedState,
}

/// On lines of its own.
#[repr(align(128))]
struct Shard<K>(RwLock<HashTable<(K, u64)>>);

/// Shards: many more than threads.
const SHARDS: usize = 64;

impl<K> Sharded<K> {
    #[inline(always)]
    fn shard(&self, hash: u64) -> &RwLock<HashTable<(K, u64)>> {
        // Of bits that a table does not use.
        &self.shards[(hash >> 40) as usize % SHARDS].0
    }
}

impl<K: Shaped> ConcurrentMap<K, u64> for Sharded<K> {
    type Guard<'m> = ();

    fn with_capacity(records: usize) -> Self {
        let shard = |_| Shard(RwLock::new(HashTable::with_capacity(records / SHARDS)));
        Sharded { shards: (0..SHARDS).map(shard).collect(), hasher: FixedState::default() }
    }

    fn guard(&self) -> Self::Guard<'_> {}

    fn refresh<'m>(&'m self, _guard: &mut Self::Guard<'m>) {}

    #[inline(always)]
    fn look<R>(&self, key: &K, _guard: &Self::Guard<'_>, see: impl FnOnce(&u64) -> R) -> Option<R> {
        let hash = self.hasher.hash_one(key);
        self.shard(hash).read().find(hash, |entry| entry.0 == *key).map(|entry| see(&entry.1))
    }

    #[inline(always)]
    fn put(&self, key: K, new: u64, _guard: &Self::Guard<'_>) {
        self.exchange(key, new);
    }

    #[inline(always)]
    fn exchange(&self, key: K, new: u64) -> Option<u64> {
        let hash = self.hasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        match shard.entry(hash, |entry| entry.0 == key, |entry| self.hasher.hash_one(entry.0)) {
            Entry::Occupied(mut entry) => Some(std::mem::replace(&mut entry.get_mut().1, new)),
            Entry::Vacant(entry) => {
                entry.insert((key, new));
                None
            }
        }
    }

    fn keys(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.read().len()).sum()
    }
}

impl<K: Shaped> Batched<K> for Sharded<K> {}

/// A map as an index, whose guard is kept.
struct Kept<K, M>(M, std::marker::PhantomData<fn() -> K>);

impl<K: Shaped, M: Batched<K>> Index for Kept<K, M> {
    fn get(&self, key: &Key) -> Option<u64> {
        self.0.look(&K::of(key), &self.0.guard(), |value| *value)
    }

    fn insert(&self, record: u64) -> Insertion {
        self.0.put(K::of(&Key::of(record)), record, &self.0.guard());
        Insertion::Done { displaced: 0 }
    }

    fn get_each(&self, keys: &[Key]) -> Tally {
        let (mut tally, guard) = (Tally::default(), self.0.guard());
        keys.iter().for_each(|key| tally.count(self.0.look(&K::of(key), &guard, |value| *value)));
        tally
    }

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let (mut tally, guard) = (Tally::default(), self.0.guard());
        for keys in keys.chunks(BATCH) {
            let mut shaped = [K::of(&keys[0]); BATCH];
            shaped.iter_mut().zip(keys).for_each(|(shaped, key)| *shaped = K::of(key));
            self.0.look_at_all(&shaped[..keys.len()], &guard, &mut tally);
        }
        tally
    }
}

/// A map that takes part.
struct Contestant {
    name: &'static str,
    make: fn(usize) -> Box<dyn Index>,
}

fn make<K: Shaped, M: Batched<K> + 'static>(capacity: usize) -> Box<dyn Index> {
    Box::new(Kept(M::with_capacity(capacity), std::marker::PhantomData))
}

/// All of them, ours first.
fn contestants<K: Shaped>() -> [Contestant; 5] {
    [
        Contestant { name: "ours", make: make::<K, Ours<K>> },
        Contestant { name: "papaya", make: make::<K, Papaya<K, u64, FixedState>> },
        Contestant { name: "dashmap", make: make::<K, Dashmap<K, u64, FixedState>> },
        Contestant { name: "scc", make: make::<K, Scc<K>> },
        Contestant { name: "sharded hashbrown", make: make::<K, Sharded<K>> },
    ]
}

/// The rows of our batches.
const OUR_BATCHES: &str = "ours, get_many";

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the machine has too few cores or too little memory, or a map answered wrongly.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let parts = 5 + 2 * session.runs() * parameters.threads.len();
    session.announce(parameters.shapes.len() * parameters.keys.len() * parts);
    for &shape in &parameters.shapes {
        for &keys in &parameters.keys {
            match shape {
                Shape::Word => compare::<u64>(parameters, session, keys)?,
                Shape::TwoWords => compare::<[u64; 2]>(parameters, session, keys)?,
            }
        }
    }
    Ok(())
}

fn compare<K: Shaped>(
    parameters: &Parameters,
    session: &mut Session,
    keys: usize,
) -> Result<(), ExperimentError> {
    let set = format!("{} M keys of {}", keys as f64 / 1e6, K::NAME);
    let mut maps = Vec::new();
    for Contestant { name, make } in contestants::<K>() {
        session.begin(format!("filling {name} with {set}"));
        let insert = longest_insert(&*make(0), keys).as_secs_f64() * 1e3;
        release_freed_memory();
        let touch = longest_first_touch(keys * BYTES_AN_ENTRY).as_secs_f64() * 1e3;
        session.record(name, &set, "longest insert", "ms", insert);
        session.record(name, &set, "longest first touch of memory", "ms", touch);
        session.record(name, &set, "longest insert above that", "ms", (insert - touch).max(0.0));
        release_freed_memory();
        let before = Resident::now();
        let map = make(keys);
        let names = [name, if name == "ours" { OUR_BATCHES } else { name }];
        fill(session, &names, &*map, keys, &set, before)?;
        maps.push((name, map));
        session.end();
    }
    let mut calls: Vec<(&str, &dyn Index, Call)> =
        maps.iter().map(|(name, map)| (*name, &**map, Call::Single)).collect();
    calls.push((OUR_BATCHES, &*maps[0].1, Call::Batch));
    let asked = (&*parameters.threads, parameters.operations);
    take_turns(session, &calls, (keys, &set), asked, |session, rates, point, sign| {
        let best = rates[1..maps.len()].iter().fold(0.0, |best: f64, rate| best.max(*rate));
        let ratio = format!("to the best other, {sign}");
        session.record("ours", point, ratio.clone(), "", rates[0] / best);
        session.record(OUR_BATCHES, point, ratio, "", rates[maps.len()] / best);
    })
}

/// Fills a map that has no room yet.
fn longest_insert(map: &dyn Index, keys: usize) -> Duration {
    longest(keys, |record| _ = map.insert(record as u64))
}

/// Bytes of fresh memory that are touched for each key: about what a map takes.
const BYTES_AN_ENTRY: usize = 32;

/// Takes so many bytes from the heap, and touches one of each page: the longest that one took.
fn longest_first_touch(bytes: usize) -> Duration {
    let mut memory = vec![0_u8; bytes];
    longest(bytes / PAGE, |page| *std::hint::black_box(&mut memory[page * PAGE]) = 1)
}

/// The longest of so many operations, less what this thread waited for a core meanwhile.
fn longest(operations: usize, mut operate: impl FnMut(usize)) -> Duration {
    /// To ask the kernel takes as long as some of them; what is waited for in one group is taken from its longest.
    const GROUP: usize = 256;
    let mut time = |operation| {
        let began = Instant::now();
        operate(operation);
        began.elapsed()
    };
    let mut longest_of = |group: usize| {
        let waited = waited_for_core();
        let longest = (group..operations.min(group + GROUP)).map(&mut time).max().unwrap_or_default();
        longest.saturating_sub(waited_for_core().saturating_sub(waited))
    };
    (0..operations).step_by(GROUP).map(&mut longest_of).max().unwrap_or_default()
}

/// Bytes of a page; a huge one is touched at one of its first bytes as well.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_map_has_what_was_put_in() {
        fn check<K: Shaped>() {
            for Contestant { name, make } in contestants::<K>() {
                let map = make(100);
                map.insert_each(0..10_000);
                let keys: Vec<_> = (5_000..15_000).map(Key::of).collect();
                let mut expected = Tally::default();
                (5_000..15_000).for_each(|record| expected.count((record < 10_000).then_some(record)));
                assert_eq!(map.get_each(&keys), expected, "{name}");
                assert_eq!(map.get_batched(&keys), expected, "{name}");
                assert_eq!(map.get(&Key::of(7)), Some(7), "{name}");
            }
        }
        check::<u64>();
        check::<[u64; 2]>();
    }
}
