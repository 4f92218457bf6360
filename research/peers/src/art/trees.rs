//! The trees that are compared: ours in both forms, and those that a user might take instead.
//!
//! | tree | for | where its entries lie | its call for one key |
//! |---|---|---|---|
//! | ours, shared | many threads | leaves in pages of the tree's own | `get` of a reader pinned once |
//! | ours, owned | one owner | as above | `get` |
//! | congee | many threads | values in the nodes; no value but a word | `get` with a guard pinned once |
//! | blart | one owner | one allocation an entry | `get` |
//! | `BTreeMap` | one owner | eleven to a node | `get` |
//!
//! All map 64-bit numbers to 64-bit numbers: a key is the mixed number of its record, and its value is the record.
//! Those that take bytes are given big-endian ones, made within what is timed, as their users would have to. Any of
//! them may be read by several threads as long as nobody changes it.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use art::{Config, OwnedTree, PageKind, encode};
use congee::Congee;
use congee::epoch::pin;
use lab::art::ordered::{ABSENT, BATCH, Call, Ordered, RANGE, sum};
use lab::subject::mixed as number;
use serde::Deserialize;

/// Insertions after which a shared tree's epoch is left and entered again.
const PINNED: u64 = 64;

/// A tree, asked by keys.
pub(super) trait Tree: Ordered<Vec<u64>> {
    /// Puts the entries of these records in, and says how many were new.
    fn insert_each(&mut self, records: Range<u64>) -> u64;
}

/// A tree by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// Ours, for many threads.
    Shared,
    /// Ours, for one owner.
    Owned,
    /// For many threads, by optimistic lock coupling.
    Congee,
    /// For one owner.
    Blart,
    /// The standard library's.
    BtreeMap,
}

impl Kind {
    /// All of them.
    #[cfg(test)]
    pub(super) const ALL: [Kind; 5] = [Kind::Shared, Kind::Owned, Kind::Congee, Kind::Blart, Kind::BtreeMap];

    /// Its name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Shared => "ours, shared",
            Kind::Owned => "ours, owned",
            Kind::Congee => "congee",
            Kind::Blart => "blart",
            Kind::BtreeMap => "BTreeMap",
        }
    }

    /// Whether it is one of ours.
    pub(super) fn is_ours(self) -> bool {
        matches!(self, Kind::Shared | Kind::Owned)
    }

    /// Bytes that a key needs, about, at the number of keys at which it needs most: for asking whether there is room.
    pub(super) fn bytes(self) -> u64 {
        match self {
            Kind::Shared | Kind::Owned => 50,
            Kind::Congee => 130,
            Kind::Blart => 90,
            Kind::BtreeMap => 35,
        }
    }

    /// An empty one, in regular pages.
    ///
    /// # Errors
    /// In words, why there is none.
    pub(super) fn make(self) -> Result<Box<dyn Tree>, String> {
        let config = Config::new().with_pages(PageKind::Base);
        Ok(match self {
            Kind::Shared => {
                Box::new(Shared(art::Tree::with_config(&config).map_err(|error| error.to_string())?))
            }
            Kind::Owned => {
                Box::new(Owned(OwnedTree::with_config(&config).map_err(|error| error.to_string())?))
            }
            Kind::Congee => Box::new(Foreign(Congee::<usize, usize>::default())),
            Kind::Blart => Box::new(Foreign(blart::TreeMap::<[u8; 8], u64>::new())),
            Kind::BtreeMap => Box::new(Foreign(BTreeMap::<u64, u64>::new())),
        })
    }
}

struct Shared(art::Tree<[u8; 8], u64>);

impl Tree for Shared {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        let mut reader = self.0.pin();
        let mut new = 0;
        for record in records {
            let old = reader.insert(&encode::u64(number(record)), record).expect("there is room");
            new += u64::from(old.is_none());
            if record % PINNED == 0 {
                reader.refresh();
            }
        }
        new
    }
}

struct Owned(OwnedTree<[u8; 8], u64>);

impl Tree for Owned {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        let mut insert = |record| self.0.insert(&encode::u64(number(record)), record).expect("there is room");
        records.map(|record| u64::from(insert(record).is_none())).sum()
    }
}

/// Both of ours have the same calls, a reader's or the owner's.
macro_rules! ask {
    ($tree:expr, $call:expr, $keys:expr) => {
        Some(match $call {
            Call::Single => sum($keys.iter().map(|&key| $tree.get(&encode::u64(key)))),
            Call::Batch => in_batches($keys, |keys, values| $tree.get_many(keys, values)),
            Call::Range => {
                let scan = |&key| {
                    let from = encode::u64(key);
                    let range = $tree.range_of_bytes(Bound::Included(&from), Bound::Unbounded);
                    range.take(RANGE).map(|(_, value)| *value).sum::<u64>()
                };
                $keys.iter().map(scan).sum()
            }
        })
    };
}

impl Ordered<Vec<u64>> for Shared {
    fn ask(&self, call: Call, keys: &Vec<u64>) -> Option<u64> {
        let reader = self.0.pin();
        ask!(reader, call, keys)
    }
}

impl Ordered<Vec<u64>> for Owned {
    fn ask(&self, call: Call, keys: &Vec<u64>) -> Option<u64> {
        ask!(self.0, call, keys)
    }
}

/// Looks keys up by a call for many.
fn in_batches<'t>(keys: &[u64], get_many: impl Fn(&[&[u8; 8]], &mut [Option<&'t u64>])) -> u64 {
    let mut total = 0;
    let mut encoded = [[0; 8]; BATCH];
    for keys in keys.chunks(BATCH) {
        encoded.iter_mut().zip(keys).for_each(|(encoded, &key)| *encoded = encode::u64(key));
        let mut values = [None; BATCH];
        get_many(&encoded.each_ref()[..keys.len()], &mut values[..keys.len()]);
        total += sum(values[..keys.len()].iter().copied());
    }
    total
}

/// A tree that is not ours.
struct Foreign<T>(T);

impl Tree for Foreign<Congee<usize, usize>> {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        let mut guard = pin();
        let mut new = 0;
        for record in records {
            let old = self.0.insert(number(record) as usize, record as usize, &guard);
            new += u64::from(old.expect("there is room").is_none());
            if record % PINNED == 0 {
                // What it has retired is freed, as ours is.
                guard.repin();
                guard.flush();
            }
        }
        new
    }
}

impl Ordered<Vec<u64>> for Foreign<Congee<usize, usize>> {
    fn ask(&self, call: Call, keys: &Vec<u64>) -> Option<u64> {
        let guard = pin();
        match call {
            Call::Single => {
                let get =
                    |&key: &u64| self.0.get(&(key as usize), &guard).map_or(ABSENT, |value| value as u64);
                Some(keys.iter().map(get).sum())
            }
            Call::Batch => None,
            Call::Range => {
                let mut entries = [(0, 0); RANGE];
                let scan = |&key: &u64| {
                    let found = self.0.range(&(key as usize), &usize::MAX, &mut entries, &guard);
                    entries[..found].iter().map(|&(_, value)| value as u64).sum::<u64>()
                };
                Some(keys.iter().map(scan).sum())
            }
        }
    }
}

/// A map of one owner, whose calls are the standard library's.
macro_rules! as_the_standard {
    ($map:ty, $key:expr) => {
        impl Tree for Foreign<$map> {
            fn insert_each(&mut self, records: Range<u64>) -> u64 {
                let mut insert = |record| self.0.insert($key(number(record)), record);
                records.map(|record| u64::from(insert(record).is_none())).sum()
            }
        }

        impl Ordered<Vec<u64>> for Foreign<$map> {
            fn ask(&self, call: Call, keys: &Vec<u64>) -> Option<u64> {
                match call {
                    Call::Single => Some(sum(keys.iter().map(|&key| self.0.get(&$key(key))))),
                    Call::Batch => None,
                    Call::Range => {
                        let range = |&key| self.0.range($key(key)..).take(RANGE);
                        let scan = |key| range(key).map(|(_, value)| *value).sum::<u64>();
                        Some(keys.iter().map(scan).sum())
                    }
                }
            }
        }
    };
}

as_the_standard!(blart::TreeMap<[u8; 8], u64>, encode::u64);
as_the_standard!(BTreeMap<u64, u64>, std::convert::identity::<u64>);

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: u64 = 20_000;

    #[test]
    fn every_tree_answers_as_the_model_does() {
        let model: BTreeMap<u64, u64> = (0..RECORDS).map(|record| (number(record), record)).collect();
        assert_eq!(model.len() as u64, RECORDS, "two records have one key");
        let keys: Vec<u64> = (0..RECORDS).step_by(7).map(number).collect();
        let got = keys.iter().map(|key| model[key]).sum();
        let scanned =
            keys.iter().flat_map(|&key| model.range(key..).take(RANGE)).map(|(_, value)| *value).sum();
        for kind in Kind::ALL {
            let mut tree = kind.make().unwrap();
            assert_eq!(tree.insert_each(0..RECORDS), RECORDS, "{kind:?}");
            assert_eq!(tree.insert_each(0..10), 0, "{kind:?}");
            let answers = Call::ALL.map(|call| tree.ask(call, &keys));
            assert_eq!(answers, [Some(got), kind.is_ours().then_some(got), Some(scanned)], "{kind:?}");
            let absent = vec![number(RECORDS), keys[0]];
            assert_eq!(tree.ask(Call::Single, &absent), Some(ABSENT + model[&keys[0]]), "{kind:?}");
        }
    }
}
