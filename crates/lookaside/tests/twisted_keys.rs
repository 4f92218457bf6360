//! Keys whose hash, order and equality lie, or panic: answers may be wrong then; nothing is freed twice or never, and
//! the map can be used afterwards.
//!
//! Worth most under the address sanitizer.

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::ledger::{Ledger, Record, burn, fuse, once_in, one_line, steps};
use lookaside::index::{Discard, Find, Store};
use lookaside::{Config, Handle, Map, OwnedMap, RwLock};
use outside::Random;

/// A key whose hash, order and equality are not to be relied on, and panic when a fuse burns down.
#[derive(Debug)]
struct Twisted {
    key: u64,
    lies: bool,
    /// Dropped with the entry.
    _record: Option<Record>,
}

impl Twisted {
    fn sought(key: u64, lies: bool) -> Twisted {
        Twisted { key, lies, _record: None }
    }

    fn lies(&self) -> bool {
        fuse();
        self.lies && once_in(8)
    }
}

impl Hash for Twisted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let lie = u64::from(self.lies());
        (self.key ^ lie).hash(state);
    }
}

impl PartialEq for Twisted {
    fn eq(&self, other: &Self) -> bool {
        (self.key == other.key) != self.lies()
    }
}

impl Eq for Twisted {}

impl PartialOrd for Twisted {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Twisted {
    fn cmp(&self, other: &Self) -> Order {
        let order = self.key.cmp(&other.key);
        if self.lies() { order.reverse() } else { order }
    }
}

/// Borrowed as a number that is sometimes another.
impl Borrow<u64> for Twisted {
    fn borrow(&self) -> &u64 {
        if self.lies() { &7 } else { &self.key }
    }
}

type Tree = BTreeSet<Handle<Twisted, Record>>;
type HashTable = HashSet<Handle<Twisted, Record>>;

trait TwistedIndex:
    Default
    + Store<Twisted, Record>
    + Find<Twisted, Twisted, Record>
    + Find<u64, Twisted, Record>
    + Discard<Twisted, Twisted, Record>
    + Discard<u64, Twisted, Record>
{
}

impl TwistedIndex for Tree {}
impl TwistedIndex for HashTable {}

fn twisted(ledger: &Arc<Ledger>, key: u64, lies: bool) -> Twisted {
    Twisted { key, lies, _record: Some(ledger.record(key)) }
}

fn with_lying_keys<I: TwistedIndex>(config: &Config) {
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(RwLock::new(I::default()), config).unwrap();
    let mut owned = OwnedMap::with_index(I::default(), config).unwrap();
    let (mut random, mut reader) = (Random(5), map.pin());
    for step in 0..steps() {
        let key = random.below(40) as u64;
        let sought = Twisted::sought(key, true);
        match random.below(6) {
            0 => drop((
                reader.insert(twisted(&ledger, key, true), ledger.record(key)),
                owned.insert(twisted(&ledger, key, true), ledger.record(key)),
            )),
            1 => drop((reader.remove(&sought), owned.remove(&sought))),
            2 => drop((reader.remove(&key), owned.remove(&key))),
            3 => {
                for value in [reader.get(&key), owned.get(&key)].into_iter().flatten() {
                    assert!(value.number() < 40);
                }
            }
            4 => drop(reader.replace(twisted(&ledger, key, true), ledger.record(key))),
            _ => {
                let (keys, mut values) = ([&sought; 20], [None; 20]);
                reader.get_many(&keys, &mut values);
                values.into_iter().flatten().for_each(|value| assert!(value.number() < 40));
                let mut values = [None; 20];
                owned.get_many(&keys, &mut values);
                values.into_iter().flatten().for_each(|value| assert!(value.number() < 40));
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
fn keys_whose_hash_order_equality_and_borrowing_lie() {
    with_lying_keys::<Tree>(&one_line());
    with_lying_keys::<HashTable>(&one_line());
}

/// Every call, with a panic in every call of user code that it makes; and after each, the map as it should be.
fn with_panicking_keys<I: TwistedIndex>(config: &Config) {
    let ledger = Arc::new(Ledger::default());
    let map = Map::with_index(RwLock::new(I::default()), config).unwrap();
    let mut owned = OwnedMap::with_index(I::default(), config).unwrap();
    let key = |key| twisted(&ledger, key, false);
    let sought = |key| Twisted::sought(key, false);
    for number in 0..10 {
        map.insert(key(number), ledger.record(number));
        owned.insert(key(number), ledger.record(number));
    }
    let (some, others): (Vec<_>, Vec<_>) = ((0..20).map(sought).collect(), (0..10).map(sought).collect());
    let (some, others): (Vec<_>, Vec<_>) = (some.iter().collect(), others.iter().collect());
    let mut panics = [0; 11];
    for round in 0..3 {
        panics[0] += burn(|| assert_eq!(map.pin().get(&sought(3)).unwrap().number(), 3));
        panics[1] += burn(|| assert_eq!(owned.get(&sought(3)).unwrap().number(), 3));
        panics[2] += burn(|| {
            let (reader, mut values) = (map.pin(), [None; 20]);
            reader.get_many(&some, &mut values);
            assert_eq!(values.into_iter().flatten().count(), 10);
        });
        panics[3] += burn(|| {
            let mut values = [None; 20];
            owned.get_many(&some, &mut values);
            assert_eq!(values.into_iter().flatten().count(), 10);
        });
        panics[4] += burn(|| drop(map.insert(key(4), ledger.record(4))));
        panics[5] += burn(|| drop(owned.insert(key(4), ledger.record(4))));
        panics[6] += burn(|| drop(map.pin().replace(key(5), ledger.record(5)).unwrap()));
        panics[7] += burn(|| drop(map.remove(&sought(6))));
        panics[8] += burn(|| drop(owned.remove(&sought(6))));
        panics[9] += burn(|| assert_eq!(map.pin().get(&3).unwrap().number(), 3));
        panics[10] += burn(|| assert_eq!(owned.get(&3).unwrap().number(), 3));
        // No stripe is held, no lock poisoned, no key lost but the one removed.
        assert_eq!((map.len(), owned.len()), (9, 9), "round {round}");
        assert!(
            map.insert(key(6), ledger.record(6)).is_none()
                && owned.insert(key(6), ledger.record(6)).is_none()
        );
        let reader = map.pin();
        for key in &others {
            assert_eq!(reader.get(*key).unwrap().number(), key.key);
            assert_eq!(owned.get(*key).unwrap().number(), key.key);
        }
    }
    assert!(panics.iter().all(|&panics| panics > 0), "{panics:?}");
    drop((map, owned));
    ledger.settle();
}

#[test]
fn panics_in_hash_order_equality_and_borrowing_leave_everything_usable() {
    with_panicking_keys::<Tree>(&one_line());
    with_panicking_keys::<HashTable>(&one_line());
}

/// Values without a destructor: a write asks the table for its key, and does without the index.
#[test]
fn panics_in_the_equality_of_what_a_write_finds_in_the_table_leave_everything_usable() {
    let ledger = Arc::new(Ledger::default());
    let index = BTreeSet::<Handle<Twisted, u64>>::new;
    let map = Map::with_index(RwLock::new(index()), &one_line()).unwrap();
    let mut owned = OwnedMap::with_index(index(), &one_line()).unwrap();
    let (key, sought) = (|key| twisted(&ledger, key, false), |key| Twisted::sought(key, false));
    for number in 0..3 {
        map.insert(key(number), 0);
        owned.insert(key(number), 0);
    }
    let mut panics = [0; 3];
    for round in (1..10).step_by(2) {
        assert_eq!(
            (map.pin().get(&sought(1)), owned.get(&sought(1))),
            (Some(&(round - 1)), Some(&(round - 1)))
        );
        panics[0] += burn(|| drop(map.insert(key(1), round)));
        panics[1] += burn(|| drop(map.pin().replace(key(1), round + 1).unwrap()));
        panics[2] += burn(|| drop(owned.insert(key(1), round + 1)));
    }
    assert!(panics.iter().all(|&panics| panics > 0), "{panics:?}");
    assert!(map.buffer().counts().successions > 0 && owned.counts().successions > 0);
    assert_eq!((map.len(), owned.len()), (3, 3));
    drop((map, owned));
    ledger.settle();
}
