//! What is changed as a whole, and who is told what of an item: one thread's view beside that of many.

use std::collections::HashMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lookaside_cache::engine::{
    Cache, Change, Commit, Config, Entry, Expiry, Hit, Put, Session, StoreError, Stored, Value, Verb,
};

const THREADS: u64 = 4;

fn cache() -> Cache {
    Cache::new(Config::with_limit(16 << 20)).expect("it is large enough")
}

/// Fewer under the sanitizers: see the stress tests.
fn changes() -> u64 {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(40_000, |changes| changes.parse().expect("a number"))
}

/// Runs this in several threads at once.
fn in_threads(work: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}

/// What a change saw: the value that it replaced or removed, and what it left. None is no item.
type Step = (Option<u64>, Option<u64>);

fn value_of(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// One change by one of the ways there are; `None` if it was refused.
fn step(session: &mut Session, way: u64, id: u64) -> Result<Option<Step>, StoreError> {
    let mut bytes = vec![id as u8; 40];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    let entry = Entry::new(b"key");
    let mut seen = None;
    let mut saw = |now: Option<&Hit<'_>>| seen = now.map(|hit| value_of(&hit.to_vec()));
    let (stored, left) = match way % 5 {
        // With an expiry or without, so that touches copy now and then.
        0 => {
            let expiry = if id.is_multiple_of(2) { Expiry::Never } else { Expiry::At(u32::MAX) };
            session.change(b"key", |now, _| {
                saw(now);
                Change::Put(Put::new(Value::Given(&bytes)).with_expiry(expiry), ())
            })?;
            (true, Some(id))
        }
        1 => {
            let removed = session.change(b"key", |now, _| {
                saw(now);
                if now.is_some() { Change::Remove(true) } else { Change::Leave(false) }
            })?;
            (removed.result, None)
        }
        2 => {
            let mut reservation = session.reserve(Verb::Set, entry, bytes.len())?;
            session.fill(&mut reservation, &bytes)?;
            let put = session.commit_if(reservation, |now| {
                saw(now);
                Commit::Put { stale: false, won: false, result: () }
            })?;
            (put.cas.is_some(), Some(id))
        }
        3 => {
            let hit = session.pin().peek(b"key").map(|hit| (value_of(&hit.to_vec()), hit.cas()));
            let Some((value, number)) = hit else { return Ok(None) };
            let stored = session.store(Verb::CompareAndSwap(number), entry, &bytes)?;
            seen = Some(value);
            (matches!(stored, Stored::Stored(_)), Some(id))
        }
        _ => {
            session.touch(b"key", if id.is_multiple_of(3) { Expiry::Never } else { Expiry::At(u32::MAX) })?;
            return Ok(None);
        }
    };
    Ok(stored.then_some((seen, left)))
}

/// All changes of one key, by several threads, are steps of one chain: each takes up what exactly one other has left.
#[test]
fn changes_of_one_key_form_one_chain() {
    for lookaside in [0, 64] {
        let cache: Cache = Cache::new(Config { lookaside, ..Config::with_limit(16 << 20) }).expect("a cache");
        cache.set_time(1);
        let steps: Vec<_> = (0..THREADS).map(|_| parking_lot::Mutex::new(Vec::new())).collect();
        in_threads(|thread| {
            let mut session = cache.session();
            let mut mine = Vec::new();
            for n in 0..changes() / 4 {
                let id = n * THREADS + thread + 1;
                let way = id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
                mine.extend(step(&mut session, way, id).expect("there is room"));
            }
            *steps[thread as usize].lock() = mine;
        });
        let mut successor: HashMap<u64, Option<u64>> = HashMap::new();
        let (mut from_none, mut to_none) = (0u64, 0u64);
        let mut left = Vec::new();
        for (seen, new) in steps.iter().flat_map(|steps| steps.lock().clone()) {
            match seen {
                Some(seen) => assert!(successor.insert(seen, new).is_none(), "{seen} was replaced twice"),
                None => from_none += 1,
            }
            match new {
                Some(new) => left.push(new),
                None => to_none += 1,
            }
        }
        let last = cache.session().pin().peek(b"key").map(|hit| value_of(&hit.to_vec()));
        let ends: Vec<u64> = left.iter().copied().filter(|id| !successor.contains_key(id)).collect();
        assert_eq!(ends, Vec::from_iter(last), "what nobody has replaced is what is there");
        assert_eq!(from_none, to_none + u64::from(last.is_some()), "what was removed is what was put anew");
        assert_eq!(successor.len(), left.len() - ends.len(), "what was replaced had been put");
    }
}

/// Whoever is told a number and then another one of the same key is told a higher one.
#[test]
fn numbers_of_a_key_rise_for_all_who_watch() {
    let cache = cache();
    let written = AtomicU64::new(0);
    in_threads(|thread| {
        let mut session = cache.session();
        if thread % 2 == 0 {
            let mut last = 0;
            for _ in 0..changes() {
                match session.store(Verb::Set, Entry::new(b"key"), b"value").expect("room") {
                    Stored::Stored(number) => assert!(std::mem::replace(&mut last, number) < number),
                    other => panic!("{other:?}"),
                }
                if last.is_multiple_of(64) {
                    session.delete(b"key");
                }
            }
            written.fetch_add(1, Ordering::Relaxed);
        } else {
            let mut last = 0;
            while written.load(Ordering::Relaxed) < THREADS / 2 {
                let number = session.pin().get(b"key").map(|hit| hit.cas());
                // Of an item that is just leaving a number is told that none has.
                if let Some(number) = number.filter(|&number| number > 4096) {
                    assert!(last <= number, "{last} and then {number}");
                    last = number;
                }
            }
        }
    });
}

/// Of all who ask at the same time one is told to fetch an item anew.
#[test]
fn exactly_one_wins() {
    let cache = cache();
    let mut session = cache.session();
    for round in 0..(changes() / 100).max(10) {
        session
            .change(b"key", |_, _| Change::Put(Put::new(Value::Given(b"old")).with_stale(true), ()))
            .expect("room");
        let (winners, start) = (AtomicUsize::new(0), Barrier::new(THREADS as usize));
        in_threads(|_| {
            let mut session = cache.session();
            start.wait();
            // Others move the last access in the same word.
            cache.set_time(round as u32 * 1000);
            let pinned = session.pin();
            let hit = pinned.get(b"key").expect("it is there");
            assert!(hit.is_stale());
            winners.fetch_add(usize::from(hit.win()), Ordering::Relaxed);
            assert!(pinned.peek(b"key").expect("it is there").is_won());
        });
        assert_eq!(winners.into_inner(), 1, "round {round}");
        // Who fetches it anew ends it, whoever has won.
        session.store(Verb::Append, Entry::new(b"key"), b"er").expect("room");
        let pinned = session.pin();
        let hit = pinned.peek(b"key").expect("it is there");
        assert!(!hit.is_stale() && !hit.is_won());
    }
}

/// A number of the client's own takes eight bytes of the item, wherever it ends, and is what all are told.
#[test]
fn a_clients_own_number_is_kept_with_every_size_of_value() {
    let cache = cache();
    let mut session = cache.session();
    for len in
        (0..40).chain([200, 8100, 8160, 8161, 8162, 8170, 8176, 8177, 8183, 8184, 8192, 8200, 20_000, 70_001])
    {
        for (flags, expiry) in [(0, Expiry::Never), (5, Expiry::At(9)), (5, Expiry::Never)] {
            let value: Vec<u8> = (0..len).map(|i| (i * 7 + len) as u8).collect();
            let entry =
                Entry::new(b"k1").with_flags(flags).with_expiry(expiry).with_cas(Some(u64::MAX - len as u64));
            let stored = session.store(Verb::Set, entry, &value).expect("room");
            assert_eq!(stored, Stored::Stored(u64::MAX - len as u64));
            let wrong = session.store(Verb::CompareAndSwap(7), entry, b"x").expect("room");
            assert_eq!(wrong, Stored::Exists);
            assert_eq!(session.touch(b"k1", Expiry::At(10)), Ok(true));
            let pinned = session.pin();
            let hit = pinned.get(b"k1").expect("it is there");
            assert_eq!(
                (hit.to_vec(), hit.flags(), hit.cas()),
                (value, flags, u64::MAX - len as u64),
                "{len}"
            );
            assert_eq!(hit.value_len(), len);
            assert_eq!(hit.expiry(), Expiry::At(10));
        }
    }
    let (without, with) =
        (Entry::new(b"0123456789abcdef"), Entry::new(b"0123456789abcdef").with_cas(Some(1)));
    let chunk =
        |entry: &Entry<'_>, len| cache.class(cache.class_of(entry, len).into()).expect("a class").chunk_size;
    assert_eq!((chunk(&without, 32), chunk(&with, 32)), (56, 64));
}

/// The last access is written at a grain of a minute, told to four seconds, as the last of them that is not to come,
/// and survives any clock.
#[test]
fn the_last_access_is_told_whatever_the_clock() {
    for start in [0, 1000, 65_500, 1_700_000_000, u32::MAX - 200] {
        let cache = cache();
        let mut session = cache.session();
        cache.set_time(start);
        session.store(Verb::Set, Entry::new(b"key"), b"value").expect("room");
        let told = |session: &mut Session, now: u32| {
            cache.set_time(now);
            let pinned = session.pin();
            let hit = pinned.get(b"key").expect("it is there");
            (hit.last_access(), hit.was_fetched())
        };
        let as_told = |second: u32, now: u32| (second | 3).min(now);
        assert_eq!(told(&mut session, start), (start, false));
        assert_eq!(told(&mut session, start + 56), (as_told(start, start + 56), true), "not written yet");
        assert_eq!(
            told(&mut session, start + 100),
            (as_told(start, start + 100), true),
            "before this lookup"
        );
        assert_eq!(told(&mut session, start + 120), (as_told(start + 100, start + 120), true));
        let peeked = session.pin().peek(b"key").expect("it is there").last_access();
        assert_eq!(peeked, as_told(start + 100, start + 120));
        // An append makes a new item.
        session.store(Verb::Append, Entry::new(b"key"), b"s").expect("room");
        assert_eq!(told(&mut session, start + 121), (as_told(start + 120, start + 121), false));
        // A touch that copies does not, and counts as a use.
        cache.set_time(start + 190);
        assert_eq!(session.touch(b"key", Expiry::At(u32::MAX)), Ok(true));
        assert_eq!(told(&mut session, start + 191), (as_told(start + 190, start + 191), true));
    }
}

/// An update that is asked again is shown what is there now, and the buffer it is given is empty.
#[test]
fn whoever_was_slower_is_asked_again() {
    let cache = cache();
    let (mut session, mut other) = (cache.session(), cache.session());
    let mut shown = Vec::new();
    let changed = session
        .change(b"key", |now, new| {
            assert!(new.is_empty());
            shown.push(now.map(|hit| hit.to_vec()));
            new.extend_from_slice(b"mine");
            if shown.len() < 3 {
                other.store(Verb::Append, Entry::new(b"key"), b"+").expect("room");
                other.store(Verb::Add, Entry::new(b"key"), b"other").expect("room");
            }
            Change::Put(Put::new(Value::Scratch), shown.len())
        })
        .expect("room");
    assert_eq!(changed.result, 3);
    assert_eq!(shown, [None, Some(b"other".to_vec()), Some(b"other+".to_vec())]);
    assert_eq!(
        session.pin().get(b"key").map(|hit| (hit.to_vec(), Some(hit.cas()))),
        Some((b"mine".to_vec(), changed.cas))
    );
}

/// What is being evicted while its number is compared has none: who decides about it is asked again, of what is there
/// then. Once, it was said that somebody had changed it.
#[test]
fn whoever_compares_the_number_of_what_leaves_is_asked_again() {
    let cache = cache();
    let mut session = cache.session();
    let comparison = || {
        let mut other = cache.session();
        let number = match other.store(Verb::Set, Entry::new(b"key"), b"value") {
            Ok(Stored::Stored(number)) => number,
            outcome => panic!("{outcome:?}"),
        };
        let mut leaves = true;
        move |now: Option<&Hit<'_>>| {
            if std::mem::take(&mut leaves) {
                assert!(other.delete(b"key"));
            }
            now.map(|hit| hit.cas() == number)
        }
    };
    let mut compare = comparison();
    let changed = session.change(b"key", |now, _| Change::Leave(compare(now))).expect("it takes no memory");
    assert_eq!(changed.result, None);
    let mut compare = comparison();
    let mut reservation = session.reserve(Verb::Set, Entry::new(b"key"), 3).expect("room");
    session.fill(&mut reservation, b"new").expect("room");
    let changed = session.commit_if(reservation, |now| Commit::Leave(compare(now))).expect("room");
    assert_eq!(changed.result, None);
}
