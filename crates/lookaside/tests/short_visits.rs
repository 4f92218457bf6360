//! The monitor sees lookups whichever way they are made, also by readers that live for a few lookups each.

use std::collections::BTreeSet;

use lookaside::{Config, Map, PageKind, RwLock};

#[test]
fn readers_that_live_for_a_few_lookups_are_watched_too() {
    let config = Config { pages: PageKind::Base, ..Config::with_size(64 << 10) };
    let map = Map::new(RwLock::new(BTreeSet::new()), &config).unwrap();
    (0..100u64).for_each(|key| assert!(map.insert(key, key).is_none()));
    // A trial is due after some twenty thousand lookups.
    for _ in 0..5_000 {
        let reader = map.pin();
        (0..100).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
    }
    let verdict = map.buffer().verdict();
    assert!(verdict.watching && verdict.trials > 0, "{verdict:?} after 500000 lookups");
}
