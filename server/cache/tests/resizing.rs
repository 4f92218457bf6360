//! Another limit for a cache in use: what it holds then, and what it says where that cannot be.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lookaside_cache::engine::{
    Cache, Config, Entry, Eviction, Housekeeper, ResizeError, Session, StoreError, Stored, Todo, Verb,
};
use pages::PageKind;

const MIB: usize = 1 << 20;
/// Longer than any machine is busy with others.
const LONG: Duration = Duration::from_secs(60);

fn cache_of(limit: usize) -> Cache {
    Cache::new(Config { pages: PageKind::Base, ..Config::with_limit(limit) }).expect("a cache")
}

fn name(number: u64) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn fill(session: &mut Session, numbers: std::ops::Range<u64>, len: usize) {
    for number in numbers {
        let stored = session.store(Verb::Set, Entry::new(&name(number)), &vec![number as u8; len]);
        assert!(matches!(stored, Ok(Stored::Stored(_))), "{number}: {stored:?}");
    }
}

/// The keys that are there, each with its value.
fn there(session: &mut Session, numbers: std::ops::Range<u64>, len: usize) -> Vec<u64> {
    let is_there = |number: &u64| {
        let pinned = session.pin();
        let hit = pinned.peek(&name(*number));
        assert!(hit.is_none_or(|hit| hit.to_vec() == vec![*number as u8; len]), "the value of another");
        hit.is_some()
    };
    numbers.filter(is_there).collect()
}

/// Steps until the limit holds, at most so many.
fn settle(cache: &Cache, housekeeper: &mut Housekeeper, most: usize) -> bool {
    (0..most).any(|_| {
        housekeeper.step();
        cache.memory().taken <= cache.memory().limit
    })
}

#[test]
fn a_limit_that_cannot_be_is_refused_and_changes_nothing() {
    let cache = cache_of(64 * MIB);
    let most = cache.memory().most;
    assert!(most >= 8 * 64 * MIB);
    let too_small = Err(ResizeError::TooSmall { limit: 2 * MIB - 1, least: 2 * MIB });
    assert_eq!(cache.resize(2 * MIB - 1), too_small, "half of the limit holds the largest item");
    assert_eq!(cache.resize(most + 1), Err(ResizeError::TooLarge { limit: most + 1, most }));
    assert_eq!(cache.resize(0), Err(ResizeError::TooSmall { limit: 0, least: 2 * MIB }));
    assert_eq!(cache.memory().limit, 64 * MIB);
    for limit in [64 * MIB, 64 * MIB, 2 * MIB, most, 64 * MIB] {
        assert_eq!(cache.resize(limit), Ok(()));
        assert_eq!(cache.memory().limit, limit);
    }
    for error in [cache.resize(0), cache.resize(most + 1)] {
        assert!(error.expect_err("refused").to_string().contains("ask for"));
    }
}

#[test]
fn a_megabyte_grows_to_sixty_four_and_back() {
    let cache = cache_of(MIB);
    let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
    fill(&mut session, 0..100_000, 32);
    let small = cache.len();
    cache.resize(64 * MIB).expect("it has room to grow");
    fill(&mut session, 100_000..1_100_000, 32);
    let large = cache.len();
    let per_item = (64 * MIB) as f64 / large as f64;
    assert!(per_item < 70.0 || large == 1_000_000 + small, "{per_item} bytes an item");
    assert!(large > 40 * small, "{small} and then {large}");

    cache.resize(MIB).expect("it was as small before");
    assert!(settle(&cache, &mut housekeeper, 10_000), "{:?}", cache.memory());
    while housekeeper.step() == Todo::More {}
    assert!((small / 2..small * 2).contains(&cache.len()), "{small} before, {} after", cache.len());
    // What was stored last is what is left.
    let left = there(&mut session, 0..1_100_000, 32);
    assert_eq!(left.len(), cache.len());
    let young = left.iter().filter(|&&number| number > 1_000_000).count();
    assert!(young * 10 > left.len() * 9, "{young} of {} are young", left.len());
    // And it goes on.
    fill(&mut session, 2_000_000..2_050_000, 32);
    assert!(cache.memory().taken <= MIB);
    cache.resize(64 * MIB).expect("it has room to grow");
    fill(&mut session, 3_000_000..3_500_000, 32);
    assert_eq!(there(&mut session, 3_000_000..3_500_000, 32).len(), 500_000);
}

#[test]
fn nobody_who_stores_while_a_cache_shrinks_is_refused_and_steps_are_short() {
    let cache = cache_of(48 * MIB);
    let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
    let len = |number: u64| [20, 300, 3000, 20_000][number as usize % 4];
    for number in 0..20_000 {
        fill(&mut session, number..number + 1, len(number));
    }
    cache.resize(4 * MIB).expect("it is enough");
    let mut steps = 0;
    for number in 20_000..40_000 {
        fill(&mut session, number..number + 1, len(number));
        assert!(session.pin().get(&name(number)).is_some(), "just stored");
        let before = cache.memory().taken;
        if number % 4 == 0 && before > 4 * MIB {
            housekeeper.step();
            steps += 1;
            let given = before.saturating_sub(cache.memory().taken);
            assert!(given <= 12 * MIB, "{given} bytes given up in one step");
        }
    }
    assert!(steps > 10, "{steps} steps");
    assert!(cache.memory().taken <= 4 * MIB, "{:?}", cache.memory());
}

#[test]
fn what_is_being_read_or_kept_or_written_follows_later() {
    let cache = cache_of(32 * MIB);
    let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
    fill(&mut session, 0..50, 500_000);
    let kept: Vec<_> =
        (0..50).filter_map(|number| session.pin().get(&name(number)).and_then(|hit| hit.keep())).collect();
    assert!(kept.len() > 40);
    let mut writing = session.reserve(Verb::Set, Entry::new(b"written"), 900_000).expect("room");
    session.fill(&mut writing, &[3; 500_000]).expect("room");
    let mut reader = cache.session();
    let pinned = reader.pin();
    cache.resize(4 * MIB).expect("it is enough");
    assert!(!settle(&cache, &mut housekeeper, 200), "somebody is pinned");
    drop(pinned);
    assert!(!settle(&cache, &mut housekeeper, 200), "what is kept is still there");
    for (number, value) in kept.iter().enumerate() {
        assert_eq!(value.value_len(), 500_000, "{number}");
        assert!(value.pieces().flatten().all(|byte| *byte == value.pieces().next().expect("one")[0]));
    }
    drop(kept);
    assert!(settle(&cache, &mut housekeeper, 2000), "{:?}", cache.memory());
    session.fill(&mut writing, &[3; 400_000]).expect("room");
    assert!(matches!(session.commit(writing), Ok(Stored::Stored(_))));
    assert_eq!(session.pin().get(b"written").expect("it was stored").to_vec(), vec![3; 900_000]);
}

#[test]
fn a_cache_that_does_not_evict_gives_back_what_holds_nothing_alive() {
    let config = Config { eviction: Eviction::Never, pages: PageKind::Base, ..Config::with_limit(16 * MIB) };
    let cache: Cache = Cache::new(config).expect("a cache");
    let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
    fill(&mut session, 0..3000, 3000);
    cache.resize(4 * MIB).expect("it is enough");
    assert!(!settle(&cache, &mut housekeeper, 100));
    assert_eq!(there(&mut session, 0..3000, 3000).len(), 3000, "nothing goes that is alive");
    let more = session.store(Verb::Set, Entry::new(b"more"), &[1; 100]);
    assert_eq!(more, Err(StoreError::OutOfMemory), "no page for another size");
    (0..2600).for_each(|number| assert!(session.delete(&name(number))));
    assert!(settle(&cache, &mut housekeeper, 100), "{:?}", cache.memory());
    assert_eq!(there(&mut session, 0..3000, 3000).len(), 400);
    assert!(session.store(Verb::Set, Entry::new(b"more"), &[1; 100]).is_ok());
}

/// The limit goes up and down while threads store and read.
#[test]
fn resizing_disturbs_nobody() {
    let cache = cache_of(8 * MIB);
    let done = AtomicBool::new(false);
    let found = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for thread in 0..3u64 {
            let (cache, done, found) = (&cache, &done, &found);
            others.push(scope.spawn(move || {
                let mut session = cache.session();
                let mut number = thread << 32;
                while !done.load(Ordering::Relaxed) {
                    number += 1;
                    let len = [10, 200, 1500, 30_000][number as usize % 4];
                    fill(&mut session, number..number + 1, len);
                    let old = number.saturating_sub(number.wrapping_mul(0x9E37_79B9) % 200 / 4 * 4);
                    if old > thread << 32 {
                        let there = there(&mut session, old..old + 1, len).len();
                        found.fetch_add(there, Ordering::Relaxed);
                    }
                }
            }));
        }
        let mut housekeeper = cache.housekeeper();
        for round in 0..40 {
            let limit = [2, 32, 8, 3, 64, 2][round % 6] * MIB;
            cache.resize(limit).expect("it can be");
            // Whoever is pinned may have lost his core.
            let began = Instant::now();
            while !settle(&cache, &mut housekeeper, 10) {
                assert!(began.elapsed() < LONG, "round {round}: {:?}", cache.memory());
                std::thread::yield_now();
            }
            while found.load(Ordering::Relaxed) < 20 * round {
                std::thread::yield_now();
            }
        }
        done.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
        assert!(settle(&cache, &mut housekeeper, 10_000), "{:?}", cache.memory());
    });
}
