//! Keys that are looked up by what they cannot be borrowed as.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ledger::{Ledger, Record, once_in, one_line, steps};
use lookaside::{Comparable, Config, Equivalent, Handle, Map, OwnedMap, RwLock, index};
use outside::Random;

type Pair = (String, u32);

/// A pair in parts.
#[derive(Hash)]
struct Parts<'s>(&'s str, u32);

impl Equivalent<Pair> for Parts<'_> {
    fn equivalent(&self, key: &Pair) -> bool {
        (self.0, self.1) == (key.0.as_str(), key.1)
    }
}

impl Comparable<Pair> for Parts<'_> {
    fn compare(&self, key: &Pair) -> Ordering {
        (self.0, self.1).cmp(&(key.0.as_str(), key.1))
    }
}

/// What the keys are: each name has the even numbers.
fn entries() -> BTreeMap<Pair, u32> {
    let names = ["", "a", "aa", "rome", "romeo"];
    let keys = names.iter().flat_map(|name| (0..40).map(|number| (name.to_string(), number * 2)));
    keys.zip(0..).collect()
}

/// Each kind of lookup by parts gives what it gives by the key.
macro_rules! agrees {
    ($pinned:expr, $entries:expr) => {
        let pinned = &$pinned;
        for (key, _) in &$entries {
            for number in [key.1, key.1 + 1] {
                let (parts, whole) = (Parts(&key.0, number), (key.0.clone(), number));
                let expected = $entries.get(&whole);
                // From the index, and then from the table.
                assert_eq!([pinned.get(&parts), pinned.get(&parts)], [expected; 2], "{whole:?}");
                assert_eq!(pinned.get(&whole), expected);
                assert_eq!(pinned.contains_key(&parts), expected.is_some());
                assert_eq!(pinned.get_key_value(&parts), $entries.get_key_value(&whole));
                let mut found = [None; 3];
                pinned.get_many(&[&parts, &Parts("nobody", 0), &parts], &mut found);
                assert_eq!(found, [expected, None, expected]);
            }
        }
    };
}

fn owned<I>(index: I)
where
    I: index::Store<Pair, u32> + index::Exclusive<Pair, u32> + index::Find<Pair, Pair, u32> + 'static,
    for<'s> I: index::Find<Parts<'s>, Pair, u32> + index::Discard<Parts<'s>, Pair, u32>,
{
    let mut entries = entries();
    let mut map = OwnedMap::with_index(index, &Config::with_size(1 << 14)).unwrap();
    map.extend(entries.clone());
    agrees!(map, entries);
    assert!(map.counts().hits > 0);
    *map.get_mut(&Parts("rome", 4)).unwrap() = 7;
    *entries.get_mut(&("rome".to_string(), 4)).unwrap() = 7;
    assert!(map.remove_if(&Parts("rome", 4), |_, &value| value != 7).is_none());
    for (name, number) in [("rome", 4), ("", 0), ("romeo", 78), ("a", 1)] {
        let removed = entries.remove(&(name.to_string(), number));
        assert_eq!(map.remove(&Parts(name, number)).as_deref().copied(), removed);
    }
    agrees!(map, entries);
    assert_eq!(map.len(), entries.len());
}

fn shared<I>(index: I)
where
    I: index::SharedStore<Pair, u32> + index::Find<Pair, Pair, u32> + 'static,
    for<'s> I: index::Find<Parts<'s>, Pair, u32> + index::SharedDiscard<Parts<'s>, Pair, u32>,
{
    let mut entries = entries();
    let map = Map::with_index(index, &Config::with_size(1 << 14)).unwrap();
    entries.iter().for_each(|(key, &value)| drop(map.insert(key.clone(), value)));
    agrees!(map.pin(), entries);
    assert!(map.buffer().counts().hits > 0);
    assert_eq!(map.get_with(&Parts("aa", 2), |&value| value), entries.get(&("aa".to_string(), 2)).copied());
    assert!(map.contains_key(&Parts("aa", 2)) && !map.contains_key(&Parts("aa", 3)));
    assert!(map.remove_if(&Parts("rome", 4), |_, _| false).is_none());
    for (name, number) in [("rome", 4), ("", 0), ("romeo", 78), ("a", 1)] {
        let removed = entries.remove(&(name.to_string(), number));
        assert_eq!(map.remove_if(&Parts(name, number), |_, _| true).as_deref().copied(), removed);
        assert!(map.remove(&Parts(name, number)).is_none());
    }
    agrees!(map.pin(), entries);
    assert_eq!(map.len(), entries.len());
}

#[test]
fn parts_of_a_key_find_it_in_a_tree() {
    owned(BTreeSet::new());
    shared(RwLock::new(BTreeSet::new()));
}

#[test]
fn parts_of_a_key_find_it_in_a_hash_table() {
    owned(HashSet::<Handle<Pair, u32>>::new());
    shared(RwLock::new(HashSet::<Handle<Pair, u32>>::new()));
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Session {
    user: Vec<u8>,
    device: Option<String>,
}

/// A session that owns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct BorrowedSession<'s> {
    user: &'s [u8],
    device: Option<&'s str>,
}

impl Session {
    fn borrowed(&self) -> BorrowedSession<'_> {
        BorrowedSession { user: &self.user, device: self.device.as_deref() }
    }
}

impl Equivalent<Session> for BorrowedSession<'_> {
    fn equivalent(&self, key: &Session) -> bool {
        *self == key.borrowed()
    }
}

impl Comparable<Session> for BorrowedSession<'_> {
    fn compare(&self, key: &Session) -> Ordering {
        self.cmp(&key.borrowed())
    }
}

#[test]
fn a_struct_is_found_by_one_that_borrows() {
    let map = Map::<Session, usize>::new();
    let devices = [None, Some("phone"), Some("")];
    for (number, device) in devices.iter().enumerate() {
        map.insert(Session { user: vec![7], device: device.map(str::to_string) }, number);
    }
    let (user, reader) = ([7u8, 8], map.pin());
    for (number, &device) in devices.iter().enumerate() {
        assert_eq!(reader.get(&BorrowedSession { user: &user[..1], device }), Some(&number));
        assert_eq!(reader.get(&BorrowedSession { user: &user, device }), None);
    }
    let phone = BorrowedSession { user: &user[..1], device: devices[1] };
    assert_eq!(map.remove(&phone).unwrap().key().borrowed(), phone);
    assert_eq!((reader.get(&phone), map.len()), (None, 2));
}

/// What says that it means a key, and does not hash as that does; or says so of several, and orders them anyhow.
struct Liar {
    key: u64,
    hash: u64,
    lies: bool,
}

impl Hash for Liar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Equivalent<u64> for Liar {
    fn equivalent(&self, key: &u64) -> bool {
        (self.key == *key) != (self.lies && once_in(4))
    }
}

impl Comparable<u64> for Liar {
    fn compare(&self, key: &u64) -> Ordering {
        let order = self.key.cmp(key);
        if self.lies && once_in(4) { order.reverse() } else { order }
    }
}

trait Index:
    Default
    + index::Store<u64, Record>
    + index::Find<u64, u64, Record>
    + index::Find<Liar, u64, Record>
    + index::Discard<u64, u64, Record>
    + index::Discard<Liar, u64, Record>
{
}

impl Index for BTreeSet<Handle<u64, Record>> {}
impl Index for HashSet<Handle<u64, Record>> {}

/// What a map has of a key.
#[derive(Clone, Copy)]
enum Has {
    Nothing,
    Number(u64),
    /// A liar took it out. The table may have it still, for it was told to forget another hash.
    AnyOrNothing,
}

impl Has {
    fn allows(self, found: Option<&Record>) -> bool {
        match (self, found.map(Record::number)) {
            (Has::Nothing, found) => found.is_none(),
            (Has::Number(number), found) => found == Some(number),
            (Has::AnyOrNothing, found) => found.is_none_or(|number| number < 1000),
        }
    }
}

/// Both maps answer liars anyhow, with what is alive; and they answer for keys that no liar took out.
fn with_liars<I: Index>() {
    const KEYS: usize = 24;
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(RwLock::new(I::default()), &one_line()).unwrap();
    let mut owned = OwnedMap::with_index(I::default(), &one_line()).unwrap();
    let (mut random, mut reader) = (Random(11), map.pin());
    let (mut in_map, mut in_owned) = ([Has::Nothing; KEYS], [Has::Nothing; KEYS]);
    for step in 0..steps() {
        let key = random.below(KEYS);
        let sought = Liar { key: key as u64, hash: random.below(KEYS) as u64, lies: random.below(2) == 0 };
        let number = step as u64 % 1000;
        match random.below(8) {
            0 | 1 => {
                drop((
                    reader.insert(key as u64, ledger.record(number)),
                    owned.insert(key as u64, ledger.record(number)),
                ));
                (in_map[key], in_owned[key]) = (Has::Number(number), Has::Number(number));
            }
            2 => {
                let removed = reader.remove(&sought).or_else(|| reader.remove_if(&sought, |_, _| true));
                removed.iter().for_each(|removed| in_map[*removed.key() as usize] = Has::AnyOrNothing);
                let removed = owned.remove(&sought).or_else(|| owned.remove_if(&sought, |_, _| true));
                removed.iter().for_each(|removed| in_owned[*removed.key() as usize] = Has::AnyOrNothing);
            }
            3 => {
                let found = [reader.get(&sought), owned.get(&sought)];
                found.into_iter().for_each(|value| assert!(Has::AnyOrNothing.allows(value)));
            }
            4 => {
                let (keys, mut found) = ([&sought; 20], [[None; 20]; 2]);
                reader.get_many(&keys, &mut found[0]);
                owned.get_many(&keys, &mut found[1]);
                found.as_flattened().iter().for_each(|&value| assert!(Has::AnyOrNothing.allows(value)));
            }
            _ => {
                assert!(in_map[key].allows(reader.get(&(key as u64))));
                assert!(in_owned[key].allows(owned.get(&(key as u64))));
            }
        }
        if step % 32 == 0 {
            reader.refresh();
        }
    }
    drop(reader);
    drop((map, owned));
    ledger.settle();
}

#[test]
fn what_is_not_as_equivalent_as_it_says_spoils_its_own_answers_only() {
    with_liars::<BTreeSet<_>>();
    with_liars::<HashSet<_>>();
}
