//! A full cache: what goes and what stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lookaside_cache::engine::{
    Cache, Clock, Config, CountingClock, CreateError, Entry, Eviction, Expiry, Policy, Session, StoreError,
    Stored, Todo, Verb,
};
use pages::{MapError, PageKind, fault};

const MIB: usize = 1 << 20;

fn config(limit: usize) -> Config {
    // Base pages, so that resident memory is told to the page.
    Config { pages: PageKind::Base, ..Config::with_limit(limit) }
}

fn set<P: Policy>(session: &mut Session<P>, key: u64, len: usize) -> Result<Stored, StoreError> {
    let value = vec![key as u8; len];
    session.store(Verb::Set, Entry::new(format!("key-{key:012}").as_bytes()), &value)
}

fn has<P: Policy>(session: &mut Session<P>, key: u64, len: usize) -> bool {
    let pinned = session.pin();
    let hit = pinned.get(format!("key-{key:012}").as_bytes());
    if let Some(hit) = hit {
        assert_eq!(hit.value_len(), len);
        assert!(hit.pieces().flatten().all(|&byte| byte == key as u8), "the value of another item");
    }
    hit.is_some()
}

#[test]
fn a_full_cache_holds_as_many_small_items_as_memory_allows() {
    let cache: Cache = Cache::new(config(32 * MIB)).unwrap();
    let mut session = cache.session();
    for key in 0..1_500_000 {
        assert!(matches!(set(&mut session, key, 32), Ok(Stored::Stored(_))), "set {key}");
    }
    // 16-byte keys and 32-byte values: 56 bytes a chunk and about ten in the index.
    let per_item = (32 * MIB) as f64 / cache.len() as f64;
    assert!(per_item < 70.0, "{per_item} bytes an item");
    let found = (0..1_500_000).filter(|&key| has(&mut session, key, 32)).count();
    assert_eq!(found, cache.len());
    let evicted: u64 = cache.classes().iter().map(|(_, class)| class.departures.evicted).sum();
    assert_eq!(evicted as usize, 1_500_000 - found);
}

/// A megabyte has pages for fourteen sizes of chunks, and these are of more than fifty.
#[test]
fn a_small_cache_holds_items_of_more_sizes_than_it_has_pages_for() {
    let cache: Cache = Cache::new(config(MIB)).unwrap();
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    let len = |key: u64| (key * 2_654_435_761 % 600) as usize;
    for key in 0..50_000 {
        assert!(matches!(set(&mut session, key, len(key)), Ok(Stored::Stored(_))), "set {key}");
        housekeeper.step();
    }
    let found: usize = (0..50_000).filter(|&key| has(&mut session, key, len(key))).map(len).sum();
    assert!(found > MIB / 4, "{found} bytes of values, {} items", cache.len());
}

#[test]
fn what_is_used_stays_and_what_is_not_goes() {
    fn check<P: Policy>() {
        let cache = Cache::<P>::new(config(8 * MIB)).unwrap();
        let mut session = cache.session();
        let hot = 20_000;
        for key in 0..hot {
            set(&mut session, key, 32).unwrap();
        }
        // A scan ten times the cache's size; the hot keys are asked for again and again meanwhile.
        for key in hot..1_000_000 {
            set(&mut session, key, 32).unwrap();
            has(&mut session, key % hot, 32);
        }
        let kept = (0..hot).filter(|&key| has(&mut session, key, 32)).count();
        assert!(kept as u64 > hot * 99 / 100, "{}: {kept} of {hot} hot keys kept", P::NAME);
    }
    check::<Clock>();
    check::<CountingClock>();
}

#[test]
fn values_up_to_the_largest_item_are_stored_and_larger_ones_are_not() {
    let cache: Cache = Cache::new(config(64 * MIB)).unwrap();
    let mut session = cache.session();
    for len in [0, 1, 8_000, 8_176, 8_192, 65_535, 65_536, MIB - 100] {
        assert!(matches!(set(&mut session, 1, len), Ok(Stored::Stored(_))), "{len}");
        assert!(has(&mut session, 1, len));
    }
    assert_eq!(set(&mut session, 1, MIB), Err(StoreError::TooLarge));
    assert!(!has(&mut session, 1, MIB), "a set that fails leaves nothing stale");
    // A condition that fails to be met for lack of room leaves what is there.
    set(&mut session, 2, 10).unwrap();
    let too_large = vec![0; MIB];
    for verb in [Verb::Add, Verb::Replace, Verb::Append, Verb::CompareAndSwap(1)] {
        let refused = session.store(verb, Entry::new(b"key-000000000002"), &too_large);
        assert_eq!(refused, Err(StoreError::TooLarge), "{verb:?}");
    }
    assert!(has(&mut session, 2, 10));
}

#[test]
fn without_eviction_a_full_cache_refuses_and_keeps() {
    let cache: Cache = Cache::new(Config { eviction: Eviction::Never, ..config(2 * MIB) }).unwrap();
    let mut session = cache.session();
    let stored = (0..).take_while(|&key| set(&mut session, key, 100).is_ok()).count() as u64;
    assert!(stored > 10_000, "{stored}");
    assert!((0..stored).all(|key| has(&mut session, key, 100)));
    // Room made is room had.
    assert!(session.delete(b"key-000000000007"));
    assert!(set(&mut session, stored, 100).is_ok());
    assert_eq!(cache.classes().iter().map(|(_, class)| class.departures.evicted).sum::<u64>(), 0);
}

#[test]
fn expired_items_leave_without_being_asked_for() {
    let cache: Cache = Cache::new(config(16 * MIB)).unwrap();
    cache.set_time(100);
    let mut session = cache.session();
    for key in 0..20_000u64 {
        let expiry = if key % 2 == 0 { Expiry::At(110) } else { Expiry::At(200) };
        session.store(Verb::Set, Entry::new(&key.to_be_bytes()).with_expiry(expiry), b"value").unwrap();
    }
    // Some are given longer, in place.
    for key in (0..20_000u64).step_by(8) {
        assert_eq!(session.touch(&key.to_be_bytes(), Expiry::At(200)), Ok(true));
    }
    let mut housekeeper = cache.housekeeper();
    for second in [105, 110, 199, 200] {
        cache.set_time(second);
        (0..200).for_each(|_| {
            housekeeper.step();
        });
        let expected = match second {
            105 => 20_000,
            110 | 199 => 12_500,
            _ => 0,
        };
        assert_eq!(cache.len(), expected, "at {second}");
    }
    let reclaimed: u64 = cache.classes().iter().map(|(_, class)| class.departures.reclaimed).sum();
    let unfetched: u64 = cache.classes().iter().map(|(_, class)| class.departures.expired_unfetched).sum();
    assert_eq!((reclaimed, unfetched), (20_000, 20_000));
}

#[test]
fn flushed_memory_is_swept_and_flushes_may_follow_each_other() {
    let cache: Cache = Cache::new(config(16 * MIB)).unwrap();
    let mut session = cache.session();
    for round in 0..12 {
        for key in 0..5_000 {
            set(&mut session, key, 100).unwrap();
        }
        cache.flush();
        assert!((0..5_000).all(|key| !has(&mut session, key, 100)), "round {round}");
    }
    let mut housekeeper = cache.housekeeper();
    while housekeeper.step() == Todo::More {}
    assert_eq!(cache.len(), 0);
    assert_eq!(cache.counts().stored, 60_000);
    assert_eq!(cache.counts().removed, 60_000);
    assert_eq!(cache.counts().bytes_stored, cache.counts().bytes_removed);
}

#[test]
fn a_flushed_item_that_is_asked_for_goes_at_once_and_is_counted() {
    let cache: Cache = Cache::new(config(16 * MIB)).unwrap();
    let mut session = cache.session();
    for key in 0..1_000 {
        set(&mut session, key, 100).unwrap();
    }
    cache.flush();
    assert_eq!(cache.len(), 1_000, "nobody has swept");
    for _ in 0..2 {
        assert!((0..600).all(|key| !has(&mut session, key, 100)));
    }
    assert_eq!((cache.len(), cache.counts().flushed, cache.counts().misses), (400, 600, 1_200));
    // What is stored now is of the new generation, whether the old item of its key has gone or not; keys that never
    // were do not count.
    for key in 0..700 {
        set(&mut session, key, 100).unwrap();
    }
    assert!((0..700).all(|key| has(&mut session, key, 100)));
    assert!((2_000..2_100).all(|key| !has(&mut session, key, 100)));
    assert_eq!((cache.len(), cache.counts().flushed, cache.counts().expired), (400 + 700, 600, 0));
    let mut housekeeper = cache.housekeeper();
    while housekeeper.step() == Todo::More {}
    assert!((700..1_000).all(|key| !has(&mut session, key, 100)));
    assert_eq!((cache.len(), cache.counts().flushed), (700, 600), "what was swept is not counted");
}

/// A housekeeper that is looking through a page when it is flushed finds in it what is stored after that.
#[test]
fn what_is_stored_after_a_flush_stays_whatever_the_sweep_is_at() {
    // Lost within some thousands, when it was. More would be slow on one core: each third flush waits for the
    // housekeeper.
    let flushes = if std::env::var_os("LOOKASIDE_STRESS_CHANGES").is_some() { 5_000 } else { 30_000 };
    let cache: Cache = Cache::new(config(16 * MIB)).unwrap();
    let done = AtomicBool::new(false);
    let lost = thread::scope(|scope| {
        scope.spawn(|| {
            let mut housekeeper = cache.housekeeper();
            while !done.load(Ordering::Relaxed) {
                housekeeper.step();
            }
        });
        let mut session = cache.session();
        let lost = (0..flushes).find(|_| {
            cache.flush();
            set(&mut session, 0, 10).unwrap();
            !(0..20).all(|_| has(&mut session, 0, 10))
        });
        done.store(true, Ordering::Relaxed);
        lost
    });
    assert_eq!(lost, None, "the flush in which it was lost");
}

#[test]
fn a_kept_value_outlives_its_item_and_holds_only_its_own_memory() {
    let cache: Cache = Cache::new(config(16 * MIB)).unwrap();
    let mut session = cache.session();
    set(&mut session, 1, 500_000).unwrap();
    let kept = session.pin().get(b"key-000000000001").unwrap().keep().unwrap();
    // Overwritten, deleted, and many times the cache's size stored over it.
    set(&mut session, 1, 100).unwrap();
    for key in 2..400 {
        set(&mut session, key, 500_000).unwrap();
        assert!(kept.pieces().flatten().all(|&byte| byte == 1));
    }
    assert_eq!(kept.value_len(), 500_000);
    drop(kept);
    // A small one is to be copied.
    set(&mut session, 1, 100).unwrap();
    assert!(session.pin().get(b"key-000000000001").unwrap().keep().is_none());
}

/// Clients that announce values and never finish them hold memory that nothing can evict. They get a share of it, in
/// which smaller values still find room.
#[test]
fn values_that_are_never_finished_do_not_empty_the_cache() {
    let cache: Cache = Cache::new(config(64 * MIB)).unwrap();
    let mut session = cache.session();
    for key in 0..20_000 {
        set(&mut session, key, 10).unwrap();
    }
    let piece = vec![0; 900_000];
    let mut unfinished = Vec::new();
    for key in 0..200 {
        let name = format!("half-{key}");
        if let Ok(mut reservation) = session.reserve(Verb::Set, Entry::new(name.as_bytes()), 1_000_000) {
            session.fill(&mut reservation, &piece).unwrap();
            unfinished.push(reservation);
        }
    }
    assert!((10..64).contains(&unfinished.len()), "{} values were begun", unfinished.len());
    assert_eq!((0..20_000).filter(|&key| has(&mut session, key, 10)).count(), 20_000);
    let mut smaller = session.reserve(Verb::Set, Entry::new(b"smaller"), 200_000).unwrap();
    session.fill(&mut smaller, &piece[..200_000]).unwrap();
    assert!(matches!(session.commit(smaller), Ok(Stored::Stored(_))));
    // What is given up is room for others again.
    unfinished.clear();
    assert!(session.reserve(Verb::Set, Entry::new(b"large"), 1_000_000).is_ok());
}

/// A thread that loses its core in the middle of a lookup holds up memory for some milliseconds, in which other threads
/// may store more than all reserves: they wait for it.
#[test]
fn a_reader_who_takes_its_time_costs_no_store() {
    let cache: Cache = Cache::new(config(2 * MIB)).unwrap();
    let mut writer = cache.session();
    for key in 0..10_000 {
        set(&mut writer, key, 1000).unwrap();
    }
    let (mut stored, mut waited) = (0, false);
    std::thread::scope(|scope| {
        let (pinned, is_pinned) = std::sync::mpsc::channel();
        let mut reader = cache.session();
        let slow = scope.spawn(move || {
            for _ in 0..10 {
                let guard = reader.pin();
                pinned.send(()).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(10));
                drop(guard);
            }
        });
        while is_pinned.recv().is_ok() {
            let began = std::time::Instant::now();
            for _ in 0..2000 {
                assert!(set(&mut writer, stored, 1000).is_ok(), "store {stored} was refused");
                stored += 1;
            }
            waited |= began.elapsed() >= std::time::Duration::from_millis(5);
        }
        slow.join().unwrap();
    });
    assert!(stored >= 2000 && waited, "the reserves were never used up: {stored} stores");
}

#[test]
fn a_pinned_reader_keeps_what_it_found_through_everything() {
    let cache: Cache = Cache::new(config(4 * MIB)).unwrap();
    let mut reader = cache.session();
    let mut writer = cache.session();
    for key in 0..100 {
        set(&mut writer, key, 1000).unwrap();
    }
    let pinned = reader.pin();
    let keys: Vec<String> = (0..100).map(|key| format!("key-{key:012}")).collect();
    let mut found = Vec::new();
    pinned.get_many(&keys.iter().map(String::as_bytes).collect::<Vec<_>>(), |_, hit| {
        found.push(hit);
        std::ops::ControlFlow::Continue(())
    });
    let mut refused = 0;
    for key in 0..20_000 {
        match set(&mut writer, key, 1000) {
            Ok(_) => {}
            // Nothing can be reused while somebody reads, and he has been waited for.
            Err(StoreError::OutOfMemory) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        if refused == 10 {
            break;
        }
    }
    assert_eq!(refused, 10, "more was stored than there is memory, and none of it could be reused");
    assert!(cache.len() > 1000, "evicting more than the reserve would free nothing");
    for (key, hit) in found.iter().enumerate() {
        assert!(hit.unwrap().contiguous().unwrap().iter().all(|&byte| byte == key as u8));
    }
    drop(found);
    drop(pinned);
    assert!(set(&mut writer, 1, 1000).is_ok(), "and once it has gone, all is well");
}

#[test]
fn a_reservation_that_is_dropped_leaves_no_trace() {
    let cache: Cache = Cache::new(config(4 * MIB)).unwrap();
    let mut session = cache.session();
    set(&mut session, 1, 10).unwrap();
    // More often than would fit.
    for _ in 0..100 {
        let entry = Entry::new(b"key-000000000001");
        let mut reservation = session.reserve(Verb::Set, entry, 200_000).unwrap();
        session.fill(&mut reservation, &[7; 150_000]).unwrap();
    }
    assert!(has(&mut session, 1, 10));
    assert_eq!((cache.len(), cache.counts().stored), (1, 1));
}

#[test]
fn senseless_terms_are_errors_and_every_allocation_may_fail() {
    let refused = |config| Cache::<Clock>::new(config).map(drop).unwrap_err();
    assert_eq!(refused(config(1000)), CreateError::LimitTooSmall { limit: 1000 });
    let half = Config { largest_item: 3 * MIB, ..config(4 * MIB) };
    assert_eq!(refused(half), CreateError::BadLargestItem { bytes: 3 * MIB });
    assert!(matches!(refused(config(1 << 60)), CreateError::Memory(MapError::TooLarge { .. })));
    let refused_table = refused(Config { lookaside: 63, ..config(4 * MIB) });
    assert!(matches!(refused_table, CreateError::Lookaside(_)), "{refused_table}");
    let with_lookaside = Config { lookaside: MIB, ..config(2 * MIB) };
    for nth in 0.. {
        let (made, reached) = fault::fail_nth(nth, || Cache::<Clock>::new(with_lookaside.clone()));
        match made {
            Ok(cache) => assert!(set(&mut cache.session(), 1, 10).is_ok()),
            Err(CreateError::Memory(_) | CreateError::Index(_) | CreateError::Lookaside(_)) => {}
            Err(error) => panic!("{error}"),
        }
        if !reached {
            assert!(nth >= 3);
            break;
        }
    }
}
