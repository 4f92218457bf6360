//! A table that another has taken the place of gives its memory back, although all that a program does is look up.

#![cfg(target_os = "linux")]
#![cfg_attr(miri, allow(unused))]

use std::collections::BTreeSet;

use lookaside::{Config, Map, PageKind, RwLock};

const WHOLE: usize = 64 << 20;
const KEYS: u64 = 1_000;

/// Bytes of addresses that this process has mapped. Nothing else is tested in it.
fn mapped() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[cfg_attr(miri, ignore = "many lookups, and the system's account of memory")]
fn the_table_that_was_folded_is_unmapped_by_who_only_looks_up() {
    for refreshes in [true, false] {
        let config = Config { pages: PageKind::Base, ..Config::with_size(WHOLE) };
        let map = Map::new(RwLock::new(BTreeSet::new()), &config).unwrap();
        map.buffer().monitor(false);
        (0..KEYS).for_each(|key| assert!(map.insert(key, key).is_none()));
        let whole = mapped();
        let mut keys = (0..KEYS).cycle();
        let mut look_up = |times: u64| {
            let mut reader = map.pin();
            for (n, key) in keys.by_ref().take(times as usize).enumerate() {
                assert_eq!(reader.get(&key), Some(&key));
                if refreshes && n % 100 == 0 {
                    reader.refresh();
                }
            }
        };
        let folded = (0..30_000).find(|_| {
            look_up(1_000);
            map.buffer().bytes() < WHOLE
        });
        assert!(folded.is_some(), "never folded");
        (0..200).for_each(|_| look_up(1_000));
        let now = mapped();
        assert!(now + WHOLE / 2 < whole, "{now} bytes mapped of {whole}, refreshes: {refreshes}");
    }
}
