//! Memory goes to whatever size is stored: over all pairs of sizes, all ways in which memory comes free, with evictions
//! and without. No housekeeper runs here: what is asked of the cache it does while it stores.
//!
//! The same at other sizes of cache is an experiment, `memory-sizes`.

use std::thread;

use lookaside_cache::engine::{Cache, Config, Entry, Eviction, Expiry, Session, StoreError, Stored, Verb};

const LIMIT: usize = 8 << 20;
const SIZES: [usize; 6] = [60, 300, 1_000, 4_000, 60_000, 700_000];

/// How the memory of the old items comes free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freed {
    Deleted,
    Flushed,
    Expired,
    Overwritten,
}

/// Bytes of the chunks that an item with a value of `len` bytes lies in.
fn footprint(len: usize) -> usize {
    let cache: Cache = Cache::new(Config::with_limit(LIMIT)).unwrap();
    set(&mut cache.session(), 0, len, Expiry::Never).unwrap();
    cache.classes().iter().map(|(_, class)| class.used_chunks * class.chunk_size).sum()
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

fn set(session: &mut Session, number: usize, len: usize, expiry: Expiry) -> Result<Stored, StoreError> {
    let value = vec![number as u8; len];
    session.store(Verb::Set, Entry::new(&key(number)).with_expiry(expiry), &value)
}

fn has(session: &mut Session, number: usize, len: usize) -> bool {
    // Whole pieces: one byte after the other is what this test would spend most of its time on.
    let is_right = |piece: &[u8]| piece == vec![number as u8; piece.len()];
    session.pin().get(&key(number)).is_some_and(|hit| hit.value_len() == len && hit.pieces().all(is_right))
}

/// Fills a cache, frees what is there, and stores a new live set of 70 % of its memory: `Err` says what was missing of
/// it.
fn refill(limit: usize, from: usize, to: usize, freed: Freed, eviction: Eviction) -> Result<(), String> {
    let cache: Cache = Cache::new(Config { eviction, ..Config::with_limit(limit) }).unwrap();
    cache.set_time(100);
    let mut session = cache.session();
    let (old_bytes, new_bytes) = (footprint(from), footprint(to));
    let new = limit * 7 / 10 / new_bytes;
    // What is overwritten without evictions lives on where there are fewer new items: both must fit.
    let fits = (limit * 7 / 10 / old_bytes).min(new + limit / 5 / old_bytes);
    let wanted = match (freed, eviction) {
        (Freed::Overwritten, Eviction::Never) => fits,
        _ => limit * 5 / 4 / old_bytes,
    };
    let mut old = 0;
    while old < wanted {
        match set(&mut session, old, from, Expiry::At(200)) {
            Ok(_) => old += 1,
            Err(StoreError::OutOfMemory) if eviction == Eviction::Never && freed != Freed::Overwritten => {
                break;
            }
            Err(error) => return Err(format!("item {old} of {wanted} old ones: {error}")),
        }
    }
    match freed {
        Freed::Deleted => (0..old).for_each(|number| {
            session.delete(&key(number));
        }),
        Freed::Flushed => cache.flush(),
        Freed::Expired => cache.set_time(200),
        Freed::Overwritten => {}
    }
    // The newest of the old items are overwritten first; and then there are others.
    let name = |item: usize| {
        if freed == Freed::Overwritten && item < old { old - 1 - item } else { old + item }
    };
    for item in 0..new {
        set(&mut session, name(item), to, Expiry::Never)
            .map_err(|error| format!("item {item} of {new} new ones: {error}"))?;
    }
    let found = (0..new).filter(|&item| has(&mut session, name(item), to)).count();
    if found == new {
        Ok(())
    } else {
        Err(format!("{found} of {new} new items are there, after {old} old ones"))
    }
}

/// Of as many items as have `limit` bytes of keys and values, how many a cache holds that was full of another size
/// before.
fn held(limit: usize, from: Option<usize>, to: usize) -> usize {
    let cache: Cache = Cache::new(Config::with_limit(limit)).unwrap();
    let mut session = cache.session();
    let old = from.map_or(0, |from| limit * 3 / 2 / from);
    for number in 0..old {
        set(&mut session, number, from.unwrap_or(0), Expiry::Never).unwrap();
    }
    let new = limit / (to + key(0).len());
    for item in 0..new {
        set(&mut session, old + item, to, Expiry::Never).unwrap();
    }
    (0..new).filter(|&item| has(&mut session, old + item, to)).count()
}

/// Runs the cases on a few threads, and fails with all that failed.
fn check_all<C: Copy + Send + Sync + std::fmt::Debug>(
    cases: &[C],
    check: impl Fn(C) -> Result<(), String> + Sync,
) {
    assert!(cases.len() >= 30);
    let failures: Vec<String> = thread::scope(|scope| {
        let check = &check;
        let threads: Vec<_> = (0..2)
            .map(|thread| {
                scope.spawn(move || {
                    let mine = cases.iter().skip(thread).step_by(2);
                    mine.filter_map(|&case| check(case).err().map(|why| format!("{case:?}: {why}")))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    SIZES
        .into_iter()
        .flat_map(|from| SIZES.into_iter().map(move |to| (from, to)))
        .filter(|(from, to)| from != to)
}

#[test]
fn memory_that_holds_nothing_alive_serves_any_other_size_at_once() {
    let ways = [Freed::Deleted, Freed::Flushed, Freed::Expired, Freed::Overwritten];
    let cases: Vec<_> = pairs()
        .flat_map(|pair| ways.map(|way| (pair, way)))
        .flat_map(|(pair, way)| [Eviction::ByPolicy, Eviction::Never].map(|eviction| (pair, way, eviction)))
        .collect();
    check_all(&cases, |((from, to), freed, eviction)| {
        // A quarter of the memory has room for many small items, too; not for two live sets beside each other.
        let both_live = (freed, eviction) == (Freed::Overwritten, Eviction::Never);
        let limit = if from.max(to) <= 4_000 && !both_live { LIMIT / 4 } else { LIMIT };
        refill(limit, from, to, freed, eviction)
    });
}

#[test]
fn when_the_sizes_of_the_load_change_memory_follows_within_one_cache_full() {
    let cases: Vec<_> = pairs().collect();
    let fresh = SIZES.map(|size| held(LIMIT, None, size));
    check_all(&cases, |(from, to)| {
        let fresh = fresh[SIZES.iter().position(|&size| size == to).unwrap()];
        let held = held(LIMIT, Some(from), to);
        if held * 100 >= fresh * 95 {
            Ok(())
        } else {
            Err(format!("{held} of {fresh} that a fresh one holds"))
        }
    });
}

/// The hand passed large items that had come since it was there, and where their chunks lie anywhere, most had: in
/// caches of 512 MB it found none in all the ring, and evicted whatever came next. The matrix above is of 8 MB, and
/// among its sizes are two large ones.
#[test]
fn large_items_go_in_the_order_of_their_age() {
    for limit in [8 << 20, 64 << 20] {
        let (fresh, held) = (held(limit, None, 60_000), held(limit, Some(10_000), 60_000));
        assert!(held * 100 >= fresh * 95, "-m {}: {held} of {fresh}", limit >> 20);
    }
}

/// Who looks for what was flushed looks at so many pages at once. Pages that had been filled since counted as well, so
/// that what was stored since was evicted beside what nobody can read.
#[test]
fn what_was_flushed_goes_before_what_has_come_since() {
    refill(64 << 20, 700_000, 60_000, Freed::Flushed, Eviction::ByPolicy).unwrap();
}
