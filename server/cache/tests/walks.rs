//! Walks over all items: each that stays is seen once, whatever goes on meanwhile.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_cache::engine::{Cache, Config, Entry, Expiry, Session, Todo, Verb};

fn key(number: u32) -> Vec<u8> {
    format!("{number:0width$}", width = 6 + number as usize % 50).into_bytes()
}

fn len(number: u32) -> usize {
    match number % 50 {
        0 => 9_000 + number as usize % 30_000,
        _ => number as usize * 37 % 700,
    }
}

fn fill(session: &mut Session, numbers: std::ops::Range<u32>) {
    for number in numbers {
        session.store(Verb::Set, Entry::new(&key(number)), &vec![number as u8; len(number)]).expect("room");
    }
}

/// How often each key is seen in a walk that makes steps of so many pages.
fn seen(cache: &Cache, session: &mut Session, class: Option<u8>, pages: usize) -> HashMap<Vec<u8>, usize> {
    let mut seen = HashMap::new();
    let mut walk = cache.walk(class);
    while walk.step(session, pages, |hit| {
        assert!(class.is_none_or(|class| class == hit.class()));
        assert_eq!(hit.to_vec().len(), hit.value_len());
        *seen.entry(hit.key().to_vec()).or_default() += 1;
    }) {}
    assert!(!walk.step(session, pages, |_| panic!("the walk was over")));
    seen
}

#[test]
fn what_is_there_and_alive_is_seen_once_and_counts_as_no_use() {
    // One that holds all, and one with fewer pages than sizes, where items lie in larger chunks than they need.
    for (limit, count) in [(64 << 20, 4000), (1 << 20, 3000)] {
        let cache: Cache = Cache::new(Config::with_limit(limit)).expect("a cache");
        cache.set_time(1000);
        let mut session = cache.session();
        fill(&mut session, 0..count);
        for number in 0..count {
            match number % 7 {
                0 => assert!(limit < 64 << 20 || session.delete(&key(number))),
                1 | 2 => {
                    let expiry = Expiry::At(if number % 7 == 1 { 1001 } else { 2000 });
                    let found = session.touch(&key(number), expiry).expect("room");
                    assert!(limit < 64 << 20 || found);
                }
                _ => {}
            }
        }
        cache.set_time(1001);
        let expected: HashMap<Vec<u8>, usize> =
            (0..count).map(key).filter(|key| session.pin().peek(key).is_some()).map(|key| (key, 1)).collect();
        assert!(expected.len() > 100);
        let hits = cache.counts().hits;
        for pages in [1, 7, 1000] {
            assert_eq!(seen(&cache, &mut session, None, pages), expected);
        }
        // Every item is counted in one class.
        let mut of_classes = HashMap::new();
        for class in (0..).take_while(|&class| cache.class(class.into()).is_some()) {
            of_classes.extend(seen(&cache, &mut session, Some(class), 3));
        }
        assert_eq!(of_classes, expected);
        assert_eq!(cache.counts().hits, hits);
        assert!(expected.keys().all(|key| !session.pin().peek(key).expect("it is there").was_fetched()));
    }
}

#[test]
fn an_empty_cache_is_walked_over_at_once() {
    let cache: Cache = Cache::new(Config::with_limit(1 << 20)).expect("a cache");
    assert!(seen(&cache, &mut cache.session(), None, 1).is_empty());
    assert!(seen(&cache, &mut cache.session(), Some(200), 1).is_empty());
}

#[test]
fn what_is_flushed_during_a_walk_is_seen_no_more() {
    let cache: Cache = Cache::new(Config::with_limit(16 << 20)).expect("a cache");
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    fill(&mut session, 0..3000);
    let mut walk = cache.walk(None);
    let mut before = 0;
    assert!(walk.step(&mut session, 5, |_| before += 1));
    assert!(before > 0);
    cache.flush();
    fill(&mut session, 3000..3100);
    while housekeeper.step() == Todo::More {}
    while walk.step(&mut session, 5, |hit| {
        let number: u32 = std::str::from_utf8(hit.key()).expect("digits").parse().expect("a number");
        assert!((3000..3100).contains(&number), "{number} was flushed");
    }) {}
    assert_eq!(seen(&cache, &mut session, None, 5).len(), 100);
}

/// Others store, replace, delete, make the index grow and let pages change hands; what they leave alone is seen.
#[test]
fn what_stays_is_seen_once_while_all_else_comes_and_goes() {
    let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
    let staying = 0..2000u32;
    fill(&mut cache.session(), staying.clone());
    let staying: HashSet<Vec<u8>> = staying.map(key).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for thread in 0..2u32 {
            let (cache, done) = (&cache, &done);
            others.push(scope.spawn(move || {
                let mut session = cache.session();
                let mut round = 0;
                while !done.load(Ordering::Relaxed) {
                    round += 1;
                    let from = 10_000 * (1 + thread) + round % 5 * 600;
                    fill(&mut session, from..from + 600);
                    for number in from..from + 600 {
                        session.delete(&key(number));
                    }
                }
            }));
        }
        let mut session = cache.session();
        for pages in [1, 2, 5, 30, 1000] {
            let seen = seen(&cache, &mut session, None, pages);
            for key in &staying {
                assert_eq!(seen.get(key), Some(&1), "{}", String::from_utf8_lossy(key));
            }
        }
        done.store(true, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().expect("no panic"));
    });
}

/// The age of a class's oldest item, beside that of a look at all of them.
#[test]
fn a_class_tells_the_age_of_its_oldest_item() {
    let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
    let mut session = cache.session();
    let class = usize::from(cache.class_of(&Entry::new(&[b'k'; 16]), 32));
    cache.set_time(100);
    assert_eq!(cache.oldest_age(class), 0);
    let name = |number: u32| format!("{number:016}").into_bytes();
    for number in 0..10_000 {
        cache.set_time(100 + number / 10);
        session.store(Verb::Set, Entry::new(&name(number)), &[7; 32]).expect("room");
    }
    let now = 100 + 10_000 / 10;
    cache.set_time(now);
    let ages = |session: &mut Session, from: u32| {
        let of = |number: u32| session.pin().peek(&name(number)).map(|hit| now - hit.last_access());
        (from..10_000).filter_map(of).max().expect("some are there")
    };
    // An age is told from the first of the four seconds in which the item may have been used, an access as the last.
    let is_told = |age: u32, expected: u32| (expected..=expected + 3).contains(&age);
    assert!(is_told(cache.oldest_age(class), ages(&mut session, 0)));
    // The oldest are used, or go: pages know of it when they are asked, a few each time.
    for number in 0..5_000 {
        match number % 2 {
            0 => assert!(session.pin().get(&name(number)).is_some()),
            _ => assert!(session.delete(&name(number))),
        }
    }
    let expected = ages(&mut session, 0);
    let told: Vec<u32> = (0..5).map(|_| cache.oldest_age(class)).collect();
    assert!(told.last().is_some_and(|&age| is_told(age, expected)), "{told:?} and not {expected}");
}
