//! The monitor on maps: hashing is made so dear that a table cannot pay, for only a lookup that asks the table hashes.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};
use std::time::{Duration, Instant};

use lookaside::{Config, Counts, Map, OwnedMap, PageKind, RwLock, SharedBuffer, Verdict};

const KEYS: u64 = 100;

/// A hash that takes some microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Dear(u64);

impl BuildHasher for Dear {
    type Hasher = Dear;

    fn build_hasher(&self) -> Dear {
        *self
    }
}

impl Hasher for Dear {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    fn finish(&self) -> u64 {
        (0..2000)
            .fold(self.0, |hash, turn| std::hint::black_box(hash ^ turn))
            .wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }
}

fn config() -> Config {
    Config::with_size(64 << 10).pages(PageKind::Base)
}

/// Looks keys up until the table has been switched off for one at a time.
fn until_off(look_up_all: impl FnMut(), verdict: impl Fn() -> Verdict) {
    until(|verdict| !verdict.on, look_up_all, &verdict);
    assert!(verdict().switches % 2 == 1);
}

/// Looks keys up until the monitor has found so.
fn until(found: impl Fn(Verdict) -> bool, mut look_up_all: impl FnMut(), verdict: &impl Fn() -> Verdict) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !found(verdict()) {
        assert!(Instant::now() < deadline, "{:?}", verdict());
        look_up_all();
    }
    assert!(verdict().watching && verdict().trials >= 4);
}

fn asked(counts: Counts) -> u64 {
    counts.hits + counts.misses
}

#[test]
fn a_map_whose_table_does_not_pay_goes_on_without_it_and_misses_no_write() {
    let buffer = SharedBuffer::for_indexes(&config(), 1).unwrap();
    let map = Map::sharing(RwLock::new(BTreeSet::new()), &buffer, Dear::default()).unwrap();
    (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
    let mut reader = map.pin();
    until_off(|| (0..KEYS).for_each(|key| assert_eq!(reader.get(&key), Some(&key))), || buffer.verdict());
    // The table is full of entries that change now.
    (0..KEYS).for_each(|key| assert!(reader.insert(key, key + 1000).is_some()));
    (0..KEYS).for_each(|key| assert_eq!(reader.get(&key), Some(&(key + 1000))));
    reader.refresh();
    let off = buffer.counts();
    assert!(off.bypassed > 0 && off.cleared > 0, "{off:?}");
    buffer.monitor(false);
    assert!(buffer.verdict().on && !buffer.verdict().watching);
    reader.refresh();
    (0..KEYS).for_each(|key| assert_eq!(reader.get(&key), Some(&(key + 1000))));
    let (keys, mut values) = ((0..KEYS).collect::<Vec<_>>(), [None; KEYS as usize]);
    reader.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
    assert!(values.iter().zip(&keys).all(|(value, key)| *value == Some(&(key + 1000))));
    reader.refresh();
    let on = buffer.counts();
    assert_eq!((asked(on) - asked(off), on.bypassed), (2 * KEYS, off.bypassed), "always used from now on");
}

#[test]
fn lookups_in_batches_are_judged_by_themselves() {
    let buffer = SharedBuffer::for_indexes(&config(), 1).unwrap();
    let map = Map::sharing(RwLock::new(BTreeSet::new()), &buffer, Dear::default()).unwrap();
    (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
    let (keys, reader) = ((0..KEYS).collect::<Vec<_>>(), map.pin());
    let keys: Vec<&u64> = keys.iter().collect();
    let verdict = || buffer.verdict();
    let in_batches = || {
        let mut values = [None; KEYS as usize];
        reader.get_many(&keys, &mut values);
        assert!(values.iter().zip(&keys).all(|(value, key)| *value == Some(*key)));
    };
    until(|verdict| !verdict.on_in_batches, in_batches, &verdict);
    assert!(verdict().on && verdict().gain.is_none(), "{:?}", verdict());
    let one_at_a_time = || keys.iter().for_each(|key| assert_eq!(reader.get(*key), Some(*key)));
    until(|verdict| !verdict.on, one_at_a_time, &verdict);
    assert!(!verdict().on_in_batches, "{:?}", verdict());
}

#[test]
fn so_does_an_owned_map() {
    let mut map = OwnedMap::with_index_and_hasher(BTreeSet::new(), &config(), Dear::default()).unwrap();
    (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
    until_off(|| (0..KEYS).for_each(|key| assert_eq!(map.get(&key), Some(&key))), || map.verdict());
    (0..KEYS).for_each(|key| assert!(map.insert(key, key + 1000).is_some()));
    (0..KEYS).for_each(|key| assert_eq!(map.get(&key), Some(&(key + 1000))));
    let off = map.counts();
    assert!(off.bypassed > 0 && off.cleared > 0, "{off:?}");
    map.monitor(false);
    (0..KEYS).for_each(|key| assert_eq!(map.get(&key), Some(&(key + 1000))));
    let on = map.counts();
    assert_eq!((asked(on) - asked(off), on.bypassed), (KEYS, off.bypassed), "always used from now on");
}
