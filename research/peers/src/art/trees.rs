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
//! All map 64-bit numbers to 64-bit numbers: a key is [`number`] of its record, and its value is the record. Those that
//! take bytes are given big-endian ones, made within what is timed, as their users would have to. Any of them may be
//! read by several threads as long as nobody changes it.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use art::{Config, OwnedTree, PageKind, encode};
use congee::Congee;
use congee::epoch::pin;
use serde::Deserialize;

/// Keys in a batch.
pub(super) const BATCH: usize = 32;
/// Entries that a range scan shows.
pub(super) const SCANNED: usize = 100;
/// Insertions after which a shared tree's epoch is left and entered again.
const PINNED: u64 = 64;

/// The key of a record: numbers without order over all of 64 bits, no two alike (splitmix64, Steele, Lea and Flood,
/// "Fast splittable pseudorandom number generators", OOPSLA 2014).
pub(super) fn number(record: u64) -> u64 {
    let z = (record + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// What a tree must be able to do. Answers are sums of values; a key that is not found adds what spoils the sum.
pub(super) trait Ordered: Send + Sync {
    /// Puts the entries of these records in, and says how many were new.
    fn insert_each(&mut self, records: Range<u64>) -> u64;

    /// Looks these keys up, one by one.
    fn get_each(&self, keys: &[u64]) -> u64;

    /// Looks these keys up in batches; `None` if there is no such call.
    fn get_in_batches(&self, _keys: &[u64]) -> Option<u64> {
        None
    }

    /// Shows the [`SCANNED`] entries that begin at each of these keys.
    fn scan_each(&self, keys: &[u64]) -> u64;
}

/// What a lookup that finds nothing adds to the sum of values.
const MISSING: u64 = 1 << 60;

fn sum<'v>(values: impl Iterator<Item = Option<&'v u64>>) -> u64 {
    values.fold(0, |sum, value| sum.wrapping_add(*value.unwrap_or(&MISSING)))
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
    pub(super) fn make(self) -> Result<Box<dyn Ordered>, String> {
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

impl Ordered for Shared {
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

    fn get_each(&self, keys: &[u64]) -> u64 {
        let reader = self.0.pin();
        sum(keys.iter().map(|&key| reader.get(&encode::u64(key))))
    }

    fn get_in_batches(&self, keys: &[u64]) -> Option<u64> {
        let reader = self.0.pin();
        Some(in_batches(keys, |keys, values| reader.get_many(keys, values)))
    }

    fn scan_each(&self, keys: &[u64]) -> u64 {
        let reader = self.0.pin();
        let scan = |&key| {
            let from = encode::u64(key);
            let range = reader.range_of_bytes(Bound::Included(&from), Bound::Unbounded);
            range.take(SCANNED).fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value))
        };
        keys.iter().map(scan).fold(0, u64::wrapping_add)
    }
}

struct Owned(OwnedTree<[u8; 8], u64>);

impl Ordered for Owned {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        let mut insert = |record| self.0.insert(&encode::u64(number(record)), record).expect("there is room");
        records.map(|record| u64::from(insert(record).is_none())).sum()
    }

    fn get_each(&self, keys: &[u64]) -> u64 {
        sum(keys.iter().map(|&key| self.0.get(&encode::u64(key))))
    }

    fn get_in_batches(&self, keys: &[u64]) -> Option<u64> {
        Some(in_batches(keys, |keys, values| self.0.get_many(keys, values)))
    }

    fn scan_each(&self, keys: &[u64]) -> u64 {
        let scan = |&key| {
            let from = encode::u64(key);
            let range = self.0.range_of_bytes(Bound::Included(&from), Bound::Unbounded);
            range.take(SCANNED).fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value))
        };
        keys.iter().map(scan).fold(0, u64::wrapping_add)
    }
}

/// Looks keys up by a call for many.
fn in_batches<'t>(keys: &[u64], get_many: impl Fn(&[&[u8; 8]], &mut [Option<&'t u64>])) -> u64 {
    let mut total: u64 = 0;
    let mut encoded = [[0; 8]; BATCH];
    for keys in keys.chunks(BATCH) {
        encoded.iter_mut().zip(keys).for_each(|(encoded, &key)| *encoded = encode::u64(key));
        let mut values = [None; BATCH];
        get_many(&encoded.each_ref()[..keys.len()], &mut values[..keys.len()]);
        total = total.wrapping_add(sum(values[..keys.len()].iter().copied()));
    }
    total
}

/// A tree that is not ours.
struct Foreign<T>(T);

impl Ordered for Foreign<Congee<usize, usize>> {
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

    fn get_each(&self, keys: &[u64]) -> u64 {
        let guard = pin();
        let get = |&key: &u64| self.0.get(&(key as usize), &guard).map_or(MISSING, |value| value as u64);
        keys.iter().map(get).fold(0, u64::wrapping_add)
    }

    fn scan_each(&self, keys: &[u64]) -> u64 {
        let guard = pin();
        let mut entries = [(0, 0); SCANNED];
        let mut scan = |&key: &u64| {
            let found = self.0.range(&(key as usize), &usize::MAX, &mut entries, &guard);
            entries[..found].iter().fold(0, |sum: u64, &(_, value)| sum.wrapping_add(value as u64))
        };
        keys.iter().map(&mut scan).fold(0, u64::wrapping_add)
    }
}

impl Ordered for Foreign<blart::TreeMap<[u8; 8], u64>> {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        let mut insert = |record| self.0.insert(encode::u64(number(record)), record);
        records.map(|record| u64::from(insert(record).is_none())).sum()
    }

    fn get_each(&self, keys: &[u64]) -> u64 {
        sum(keys.iter().map(|&key| self.0.get(&encode::u64(key))))
    }

    fn scan_each(&self, keys: &[u64]) -> u64 {
        let scan = |&key| {
            let range = self.0.range(encode::u64(key)..);
            range.take(SCANNED).fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value))
        };
        keys.iter().map(scan).fold(0, u64::wrapping_add)
    }
}

impl Ordered for Foreign<BTreeMap<u64, u64>> {
    fn insert_each(&mut self, records: Range<u64>) -> u64 {
        records.map(|record| u64::from(self.0.insert(number(record), record).is_none())).sum()
    }

    fn get_each(&self, keys: &[u64]) -> u64 {
        sum(keys.iter().map(|key| self.0.get(key)))
    }

    fn scan_each(&self, keys: &[u64]) -> u64 {
        let scan = |&key| {
            let range = self.0.range(key..);
            range.take(SCANNED).fold(0, |sum: u64, (_, value)| sum.wrapping_add(*value))
        };
        keys.iter().map(scan).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: u64 = 20_000;

    #[test]
    fn every_tree_answers_as_the_model_does() {
        let model: BTreeMap<u64, u64> = (0..RECORDS).map(|record| (number(record), record)).collect();
        assert_eq!(model.len() as u64, RECORDS, "two records have one key");
        let keys: Vec<u64> = (0..RECORDS).step_by(7).map(number).collect();
        let got = keys.iter().map(|key| model[key]).fold(0, u64::wrapping_add);
        let scanned = keys.iter().flat_map(|&key| model.range(key..).take(SCANNED));
        let scanned = scanned.fold(0, |sum: u64, (_, &value)| sum.wrapping_add(value));
        for kind in Kind::ALL {
            let mut tree = kind.make().unwrap();
            assert_eq!(tree.insert_each(0..RECORDS), RECORDS, "{kind:?}");
            assert_eq!(tree.insert_each(0..10), 0, "{kind:?}");
            assert_eq!(tree.get_each(&keys), got, "{kind:?}");
            assert_eq!(tree.get_in_batches(&keys), kind.is_ours().then_some(got), "{kind:?}");
            assert_eq!(tree.scan_each(&keys), scanned, "{kind:?}");
            let absent = number(RECORDS);
            assert_eq!(tree.get_each(&[absent, keys[0]]), MISSING + model[&keys[0]], "{kind:?}");
        }
    }
}
