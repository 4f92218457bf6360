//! Lookups are watched and counted whichever way they are made, also by readers that live for a few lookups each.

use std::collections::BTreeSet;

use lookaside::{Buffer, Config, Map, PageKind, Pointer, RwLock};

#[test]
fn readers_that_live_for_a_few_lookups_are_watched_too() {
    let config = Config::with_size(64 << 10).pages(PageKind::Base);
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &config).unwrap();
    (0..100u64).for_each(|key| assert!(map.insert(key, key).is_none()));
    // A trial is due after some twenty thousand lookups.
    for _ in 0..5_000 {
        let reader = map.pin();
        (0..100).for_each(|key| assert_eq!(reader.get(&key), Some(&key)));
    }
    let verdict = map.buffer().verdict();
    assert!(verdict.watching && verdict.trials > 0, "{verdict:?} after 500000 lookups");
}

#[test]
fn what_visits_of_one_lookup_each_hit_grows_warm() {
    let config = Config::with_size(64).pages(PageKind::Base);
    let (hash, pointer) = (7 << Pointer::BITS, Pointer::new(0x10_0000).unwrap());
    // A buffer's hits are numbered from anywhere.
    for buffer in 0..32 {
        let table = Buffer::new(&config).unwrap();
        let id = table.index_id().unwrap();
        let visit = table.pinned();
        visit.admit(&visit.ticket(hash), hash, pointer);
        drop(visit);
        for _ in 0..1_000 {
            assert_eq!(table.pinned().find(hash, |_| true), Some(pointer));
        }
        let warm = table.hottest(1, id);
        assert!(matches!(warm[..], [(hot, 2..)] if hot == pointer), "{warm:?} in buffer {buffer}");
    }
}
