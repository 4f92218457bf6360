//! Many threads on one cache that is far too small for them, with every value checked: a read never returns a torn,
//! partly overwritten or wrong-key value, and only one that could have been current.
//!
//! Values describe themselves: key, version, length, and a checksum over all of it. Each key is written by one thread,
//! which announces a version before it makes it and records it when it is made. A reader notes what was made before its
//! lookup and what was announced after it; a hit must lie between. A miss is always possible: the cache evicts.
//!
//! All of it without a lookaside buffer, with one of a single line, which everybody fights for, and with one that has
//! room for every key.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lookaside_cache::engine::{
    Cache, Change, Commit, Config, Entry, Expiry, Hit, Put, Session, StoreError, Stored, Updated, Value, Verb,
};
use outside::Random;

const KEYS: usize = 4096;
const WRITERS: usize = 2;
const READERS: usize = 2;
const LOOKASIDES: [usize; 3] = [0, 64, 1 << 16];

/// Fewer under the sanitizers, which set this: they look at every access, not at many of them.
fn changes() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(100_000, |changes| changes.parse().expect("a number"))
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// key, version, length, filler, checksum.
fn describe(key: usize, version: u64, len: usize, value: &mut Vec<u8>) {
    value.clear();
    value.extend_from_slice(&(key as u64).to_le_bytes());
    value.extend_from_slice(&version.to_le_bytes());
    value.extend_from_slice(&(len as u64).to_le_bytes());
    value.extend((0..len).map(|i| (key as u64 + version * 31 + i as u64) as u8));
    let sum = checksum(value);
    value.extend_from_slice(&sum.to_le_bytes());
}

/// The version that a value says it is, after checking all the rest of it.
fn version_of(key: usize, value: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(value[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), key as u64, "the value of another key");
    assert_eq!(word(16) as usize, value.len() - 32, "a value of another length");
    assert_eq!(checksum(&value[..value.len() - 8]), word(value.len() - 8), "a torn value");
    word(8)
}

fn key_bytes(key: usize) -> Vec<u8> {
    format!("{key:0width$}", width = 4 + key % 40).into_bytes()
}

#[derive(Default)]
struct History {
    /// Even versions are ones in which the key was deleted.
    announced: AtomicU64,
    made: AtomicU64,
}

/// As many hits of each reader, and of the lookaside buffer, as prove something.
const ENOUGH: u64 = 100;

struct Stress<'a> {
    cache: &'a Cache,
    histories: &'a [History],
    /// By each writer.
    changes: usize,
    lengths: fn(&mut Random) -> usize,
    /// Limits that the cache goes through meanwhile, if any.
    limits: &'a [usize],
    hits: [AtomicU64; READERS],
}

impl Stress<'_> {
    fn write(&self, writer: usize) {
        let mut session = self.cache.session();
        let mut random = Random(0x1234_5678_9ABC + writer as u64);
        let mut value = Vec::new();
        let mut changed = 0;
        // A machine with few cores may run the readers while nothing is stored, and the writers while nobody reads:
        // then they go on, up to a number of changes at which nothing found is the failure.
        while changed < self.changes || (!self.saw_enough() && changed < 1000 * self.changes) {
            changed += 1;
            // Half of the changes go to a few keys.
            let range = if random.below(2) == 0 { 64 } else { KEYS / WRITERS };
            let key = random.below(range) * WRITERS + writer;
            let (history, name) = (&self.histories[key], key_bytes(key));
            let version = history.made.load(Ordering::Relaxed);
            match random.below(32) {
                0..4 => session.begin_batch(&[&name], 1),
                4 => session.end_batch(),
                _ => {}
            }
            if random.below(8) == 0 {
                let next = version + 2 - version % 2;
                history.announced.store(next, Ordering::SeqCst);
                if random.below(2) == 0 {
                    session.delete(&name);
                } else {
                    session.change(&name, |_, _| Change::Remove(())).expect("it takes no memory");
                }
                history.made.store(next, Ordering::SeqCst);
                continue;
            }
            let next = version + 1 + version % 2;
            history.announced.store(next, Ordering::SeqCst);
            describe(key, next, (self.lengths)(&mut random), &mut value);
            let expiry = if random.below(4) == 0 { Expiry::At(u32::MAX) } else { Expiry::Never };
            let entry =
                Entry::new(&name).with_flags((next % 2) as u32 * random.below(3) as u32).with_expiry(expiry);
            match self.put(&mut session, &mut random, entry, &value) {
                Ok(()) => history.made.store(next, Ordering::SeqCst),
                // A set that fails leaves nothing: as if deleted.
                Err(StoreError::OutOfMemory) => history.made.store(next + 1, Ordering::SeqCst),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Stores by one of the ways there are.
    fn put(
        &self,
        session: &mut Session,
        random: &mut Random,
        entry: Entry<'_>,
        value: &[u8],
    ) -> Result<(), StoreError> {
        match random.below(6) {
            4 => {
                let put = Put::new(Value::Given(value)).with_flags(entry.flags).with_expiry(entry.expiry);
                if session.change(entry.key, |_, _| Change::Put(put, ())).is_err() {
                    session.store(Verb::Set, entry, value)?;
                }
            }
            5 => {
                let mut reservation = session.reserve(Verb::Set, entry, value.len())?;
                for piece in value.chunks(1 + random.below(5000)) {
                    session.fill(&mut reservation, piece)?;
                }
                let put = Commit::Put { stale: false, won: false, result: () };
                if session.commit_if(reservation, |_| put).is_err() {
                    session.store(Verb::Set, entry, value)?;
                }
            }
            0 => {
                let mut reservation = session.reserve(Verb::Set, entry, value.len())?;
                for piece in value.chunks(1 + random.below(5000)) {
                    session.fill(&mut reservation, piece)?;
                }
                session.commit(reservation)?;
            }
            1 => {
                let number = session.pin().get(entry.key).map(|hit| hit.cas());
                let verb = number.map_or(Verb::Add, Verb::CompareAndSwap);
                match session.store(verb, entry, value) {
                    Ok(Stored::Stored(_)) => {}
                    // Evicted meanwhile, or no memory: then plainly.
                    Ok(Stored::NotFound) | Err(StoreError::OutOfMemory) => {
                        session.store(Verb::Set, entry, value)?;
                    }
                    other => panic!("this thread alone writes the key: {other:?}"),
                }
            }
            _ => {
                session.store(Verb::Set, entry, value)?;
            }
        }
        Ok(())
    }

    fn saw_enough(&self) -> bool {
        let known = self.cache.config().lookaside == 0 || self.cache.counts().lookaside_hits > ENOUGH;
        known && self.hits.iter().all(|hits| hits.load(Ordering::Relaxed) > ENOUGH)
    }

    fn read(&self, reader: usize, done: &AtomicBool) {
        let mut session = self.cache.session();
        let mut random = Random(0xFEDC_BA98_7654 + reader as u64);
        let mut kept = Vec::new();
        while !done.load(Ordering::Relaxed) {
            let range = if random.below(2) == 0 { 64 * WRITERS } else { KEYS };
            let keys: Vec<usize> = (0..1 + random.below(40)).map(|_| random.below(range)).collect();
            let names: Vec<Vec<u8>> = keys.iter().map(|&key| key_bytes(key)).collect();
            let made: Vec<u64> =
                keys.iter().map(|&key| self.histories[key].made.load(Ordering::SeqCst)).collect();
            let pinned = session.pin();
            let mut found = Vec::new();
            pinned.get_many(&names.iter().map(Vec::as_slice).collect::<Vec<_>>(), |_, hit| {
                found.push(hit);
                std::ops::ControlFlow::Continue(())
            });
            let announced: Vec<u64> =
                keys.iter().map(|&key| self.histories[key].announced.load(Ordering::SeqCst)).collect();
            for (i, hit) in found.iter().enumerate() {
                let Some(hit) = hit else {
                    continue;
                };
                self.hits[reader].fetch_add(1, Ordering::Relaxed);
                let version = version_of(keys[i], &hit.to_vec());
                assert_eq!(hit.key(), names[i]);
                assert!(version % 2 == 1, "a version that was never stored");
                let possible = made[i]..=announced[i];
                assert!(possible.contains(&version), "key {}: {version} not in {possible:?}", keys[i]);
                if let Some(value) = hit.keep().filter(|_| kept.len() < 8) {
                    kept.push((keys[i], version, value));
                }
            }
            drop(found);
            drop(pinned);
            // What was kept is what it was, long after.
            if kept.len() == 8 {
                for (key, version, value) in kept.drain(..) {
                    assert_eq!(version_of(key, &value.pieces().collect::<Vec<_>>().concat()), version);
                }
            }
        }
    }

    fn run(&self) {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|reader| {
                    let done = &done;
                    scope.spawn(move || self.read(reader, done))
                })
                .collect();
            let keeper = scope.spawn(|| {
                let mut housekeeper = self.cache.housekeeper();
                for step in 0.. {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    if !self.limits.is_empty() && step % 50 == 0 {
                        let limit = self.limits[step / 50 % self.limits.len()];
                        self.cache.resize(limit).expect("a limit that it can have");
                    }
                    housekeeper.step();
                    std::thread::yield_now();
                }
            });
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || self.write(writer))).collect();
            let written = writers.into_iter().map(|writer| writer.join()).collect::<Vec<_>>();
            done.store(true, Ordering::Relaxed);
            keeper.join().unwrap();
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            written.into_iter().for_each(|writer| writer.unwrap());
        });
        assert!(
            self.hits.iter().all(|hits| hits.load(Ordering::Relaxed) > ENOUGH),
            "{:?}: too few hits",
            self.hits
        );
        let counts = self.cache.counts();
        assert_eq!(counts.stored - counts.removed, self.cache.len() as u64);
        let known = counts.lookaside_hits;
        assert_eq!(known > ENOUGH, self.cache.config().lookaside > 0, "{known} hits in the lookaside buffer");
    }
}

fn stress(limit: usize, changes: usize, lengths: fn(&mut Random) -> usize) {
    stress_with(limit, &[], changes, lengths);
}

fn stress_with(limit: usize, limits: &[usize], changes: usize, lengths: fn(&mut Random) -> usize) {
    for lookaside in LOOKASIDES {
        let config = Config { largest_item: limit / 4, lookaside, ..Config::with_limit(limit) };
        let cache: Cache = Cache::new(config).unwrap();
        cache.set_time(1);
        let histories: Vec<History> = (0..KEYS).map(|_| History::default()).collect();
        Stress { cache: &cache, histories: &histories, changes, lengths, limits, hits: Default::default() }
            .run();
    }
}

/// A small cache with each of the lookaside buffers, or none.
fn caches() -> impl Iterator<Item = Cache> {
    LOOKASIDES.into_iter().map(|lookaside| {
        Cache::new(Config { lookaside, ..Config::with_limit(4 << 20) }).expect("it is large enough")
    })
}

#[test]
fn small_values_in_a_cache_that_always_evicts() {
    stress(1 << 20, changes(), |random| [20, 200, 600][random.below(3)] + random.below(2));
}

/// There are fewer pages than sizes of chunks: each goes from one to the next all the time, with everything on it.
#[test]
fn small_values_of_more_sizes_than_there_are_pages() {
    stress(1 << 20, changes() / 10, |random| random.below(600));
}

#[test]
fn values_of_one_size_in_a_cache_that_holds_them_all() {
    stress(8 << 20, changes(), |_| 32);
}

#[test]
fn chained_values_among_small_ones() {
    stress(8 << 20, changes(), |random| {
        if random.below(20) == 0 { 8_000 + random.below(120_000) } else { random.below(300) }
    });
}

#[test]
fn values_of_all_sizes_in_a_cache_that_grows_and_shrinks() {
    const MIB: usize = 1 << 20;
    stress_with(4 * MIB, &[4 * MIB, 12 * MIB, 2 * MIB, 3 * MIB, 2 * MIB], changes() / 4, |random| {
        if random.below(20) == 0 { 8_000 + random.below(60_000) } else { random.below(300) }
    });
}

/// Increments by several threads: none is lost.
#[test]
fn no_update_is_lost() {
    for cache in caches() {
        cache.session().store(Verb::Set, Entry::new(b"n"), b"0").unwrap();
        let each = changes() as u64 / 4;
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..4 {
                threads.push(scope.spawn(|| {
                    let mut session = cache.session();
                    for _ in 0..each {
                        let outcome = session.update(b"n", |hit, new| {
                            let n: u64 =
                                std::str::from_utf8(hit.contiguous().unwrap()).unwrap().parse().unwrap();
                            new.extend_from_slice((n + 1).to_string().as_bytes());
                            Ok::<(), ()>(())
                        });
                        assert!(matches!(outcome, Ok(Updated::Updated(_))), "{outcome:?}");
                    }
                }));
            }
            // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        let mut session = cache.session();
        assert_eq!(session.pin().get(b"n").unwrap().to_vec(), (each * 4).to_string().as_bytes());
    }
}

/// Of several who add a key at the same time one succeeds, and of several who delete it one.
#[test]
fn one_of_those_who_compete_wins() {
    for cache in caches() {
        let (added, deleted) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for thread in 0..4u64 {
                let (cache, added, deleted) = (&cache, &added, &deleted);
                threads.push(scope.spawn(move || {
                    let mut session = cache.session();
                    let mut random = Random(99 + thread);
                    for _ in 0..changes() / 4 {
                        let name = key_bytes(random.below(3));
                        if random.below(2) == 0 {
                            let outcome = session.store(Verb::Add, Entry::new(&name), b"value").unwrap();
                            added.fetch_add(u64::from(outcome != Stored::NotStored), Ordering::Relaxed);
                        } else {
                            deleted.fetch_add(u64::from(session.delete(&name)), Ordering::Relaxed);
                        }
                    }
                }));
            }
            // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(added.into_inner() - deleted.into_inner(), cache.len() as u64);
    }
}

/// A touch is not undone by a change of the same item that goes on at the same time, which carries over the expiry.
#[test]
fn no_touch_is_lost() {
    for cache in caches() {
        let (past, future) = (1_000, 2_000);
        cache.set_time(1_500);
        let mut session = cache.session();
        for round in 0..changes() / 8 {
            let entry = Entry { expiry: Expiry::At(future), ..Entry::new(b"n") };
            session.store(Verb::Set, entry, b"0").unwrap();
            let start = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                let changer = scope.spawn(|| {
                    let mut session = cache.session();
                    start.wait();
                    for _ in 0..20 {
                        let extend = |hit: &Hit<'_>, new: &mut Vec<u8>| {
                            new.extend_from_slice(hit.contiguous().unwrap());
                            Ok::<(), ()>(())
                        };
                        session.update(b"n", extend).unwrap();
                    }
                });
                start.wait();
                assert_eq!(session.touch(b"n", Expiry::At(past)), Ok(true));
                changer.join().unwrap();
            });
            assert!(session.pin().get(b"n").is_none(), "round {round}: it lives on");
        }
    }
}

/// What is deleted is gone for whoever deleted it, although others have just found it and tell the lookaside buffer.
#[test]
fn no_delete_is_undone() {
    for cache in caches() {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut readers = Vec::new();
            for _ in 0..READERS {
                readers.push(scope.spawn(|| {
                    let mut session = cache.session();
                    while !done.load(Ordering::Relaxed) {
                        let pinned = session.pin();
                        (0..16)
                            .for_each(|_| assert!(pinned.get(b"n").is_none_or(|hit| hit.to_vec() == b"0")));
                    }
                }));
            }
            let mut session = cache.session();
            let undone = (0..changes())
                .filter(|_| {
                    session.store(Verb::Set, Entry::new(b"n"), b"0").unwrap();
                    assert!(session.delete(b"n"));
                    session.pin().get(b"n").is_some()
                })
                .count();
            done.store(true, Ordering::Relaxed);
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            assert_eq!(undone, 0);
        });
    }
}
