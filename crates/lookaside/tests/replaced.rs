//! A table that another has taken the place of gives its memory back, whoever replaced it, and although all that a
//! program does is look up.

#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::sync::Barrier;

use lookaside::{Config, Handle, Map, MapRef, OwnedMap, PageKind, RwLock};

const WHOLE: usize = 64 << 20;
const KEYS: u64 = 1_000;

type Index = RwLock<BTreeSet<Handle<u64, u64>>>;

/// Bytes of addresses that this process has mapped. Nothing else is tested in it, and one thing after the other.
fn mapped() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    size.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

fn config() -> Config {
    Config::with_size(WHOLE).pages(PageKind::Base)
}

fn map() -> Map<u64, u64, Index> {
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &config()).unwrap();
    map.buffer().monitor(false);
    (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
    map
}

fn replace(map: &Map<u64, u64, Index>) {
    map.buffer().resize(1 << 20).unwrap();
}

fn look_up_all(reader: &MapRef<'_, u64, u64, Index>) {
    (0..KEYS).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
}

/// Until most of the table is gone.
fn is_given_back(whole: usize, what: &str, mut look_up: impl FnMut()) {
    let gone = (0..2_000).any(|_| {
        look_up();
        mapped() + WHOLE / 2 < whole
    });
    assert!(gone, "{what}: {} bytes mapped of {whole}", mapped());
}

/// By one who is pinned, so that it has to wait.
fn replaced_under_who_pins_anew() {
    let map = map();
    let whole = mapped();
    let reader = map.pin();
    look_up_all(&reader);
    replace(&map);
    drop(reader);
    is_given_back(whole, "by who pins anew", || look_up_all(&map.pin()));
}

fn replaced_under_who_refreshes() {
    let map = map();
    let whole = mapped();
    let mut reader = map.pin();
    look_up_all(&reader);
    replace(&map);
    is_given_back(whole, "by who refreshes", || {
        look_up_all(&reader);
        reader.refresh();
    });
}

#[test]
#[cfg_attr(miri, ignore = "many lookups, and the system's account of memory")]
fn a_table_that_was_replaced_is_unmapped() {
    replaced_under_who_pins_anew();
    replaced_under_who_refreshes();
    while_another_stays();
    resized_by_who_never_looks_up();
    resized_by_its_owner();
}

/// It cannot go while the other stays, and must go when he has refreshed, however long that was.
fn while_another_stays() {
    let map = map();
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = map.pin();
            look_up_all(&reader);
            // Pinned.
            barrier.wait();
            // The table has been replaced, and looked for often.
            barrier.wait();
            for _ in 0..3 {
                reader.refresh();
                // The other has looked, seldom by now.
                barrier.wait();
                barrier.wait();
            }
        });
        barrier.wait();
        // With what a thread maps for itself.
        let whole = mapped();
        replace(&map);
        (0..5_000).for_each(|_| drop(map.pin()));
        assert!(mapped() + WHOLE / 2 > whole, "given back under who may be looking at it");
        barrier.wait();
        for _ in 0..3 {
            barrier.wait();
            (0..5_000).for_each(|_| drop(map.pin()));
            barrier.wait();
        }
        is_given_back(whole, "while another stayed", || look_up_all(&map.pin()));
    });
}

fn resized_by_who_never_looks_up() {
    let map = map();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Once without a look at it: it allocates, and a thread maps for itself what it allocates from.
            let _ = mapped();
            let whole = mapped();
            replace(&map);
            assert!(mapped() + WHOLE / 2 < whole, "{} bytes mapped of {whole}", mapped());
        });
    });
}

fn resized_by_its_owner() {
    let mut map: OwnedMap<u64, u64, BTreeSet<Handle<u64, u64>>> =
        OwnedMap::with_index(BTreeSet::new(), &config()).unwrap();
    map.insert(1, 1);
    let whole = mapped();
    map.resize(1 << 20).unwrap();
    assert!(mapped() + WHOLE / 2 < whole, "{} bytes mapped of {whole}", mapped());
}
