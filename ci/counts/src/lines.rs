//! The programs whose writes are watched: what an operation of the cache writes, line by line.
//!
//! `lookaside-counts lines NAME` does the operations of that name again and again, until lists and tables have the
//! length that they keep, and then once more between two marks: stores to two words that nothing else writes. Lackey
//! writes down every access meanwhile:
//!
//! ```text
//! valgrind --tool=lackey --trace-mem=yes lookaside-counts lines NAME
//! ```
//!
//! The program prints where the marks are and which memory is what. The test beside it runs it so, and counts.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use cache::engine::{Cache, Config, Entry, GROUP, Session, Updated, Verb};

/// Keys, each asked for once in a round.
const KEYS: u64 = 256;
/// Rounds before the one that is watched.
const WARM_UP: usize = 3;
/// Bytes of the stack, either way from where the marks are printed.
const STACK: usize = 1 << 20;

/// In lines of their own.
#[repr(align(128))]
struct Mark(AtomicU64);

/// A group of operations begins.
static BEGIN: Mark = Mark(AtomicU64::new(0));
/// A group of operations has ended.
static END: Mark = Mark(AtomicU64::new(0));

/// Operations on keys, in turn or in a batch.
type Work = fn(&mut Session, &[&[u8]]);

/// A name, keys in a group, and what is done with it: what is watched, and what is done afterwards, unwatched, so that
/// the next round finds what this one found.
type Program = (&'static str, usize, Work, Work);

const PROGRAMS: &[Program] = &[
    ("get", 1, get, nothing),
    ("get-first", 1, get, set),
    ("get-batched", GROUP, get_batched, nothing),
    ("set", 1, set, nothing),
    ("set-batched", GROUP, set_batched, nothing),
    ("add", 1, set, delete),
    ("add-batched", GROUP, set_batched, delete),
    ("delete", 1, delete, set),
    ("delete-batched", GROUP, delete_batched, set),
    ("incr", 1, incr, nothing),
    ("incr-batched", GROUP, incr_batched, nothing),
];

/// The names of all programs.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|&(name, ..)| name)
}

/// Prints where things are, and does the work of this name; false if there is none.
pub(crate) fn run(name: &str) -> bool {
    let Some(&(_, group, work, afterwards)) = PROGRAMS.iter().find(|program| program.0 == name) else {
        return false;
    };
    let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
    cache.set_time(1);
    let keys: Vec<[u8; 16]> = (0..KEYS).map(|key| (u128::from(key) << 64 | 7).to_le_bytes()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut session = cache.session();
    set(&mut session, &keys);
    if name.starts_with("add") {
        delete(&mut session, &keys);
    }
    for round in 0..=WARM_UP {
        if round == WARM_UP {
            describe(&cache, &session, KEYS as usize / group);
        }
        for keys in keys.chunks(group) {
            // Relaxed: one thread, whose stores are written down in the order in which it makes them.
            BEGIN.0.store(1, Ordering::Relaxed);
            work(&mut session, keys);
            END.0.store(1, Ordering::Relaxed);
            afterwards(&mut session, keys);
        }
    }
    true
}

/// Marks are set in every round: those of the last groups count.
fn describe(cache: &Cache, session: &Session, groups: usize) {
    let here = 0u8;
    let here = (&raw const here).addr();
    println!("groups {groups}");
    println!("operations {KEYS}");
    println!("marks {} {}", (&raw const BEGIN).addr(), (&raw const END).addr());
    println!("region stack {} {}", here - STACK, here + STACK);
    for (name, addresses) in session.regions().into_iter().chain(cache.regions()) {
        println!("region {} {} {}", name.replace(' ', "-"), addresses.start, addresses.end);
    }
}

fn nothing(_session: &mut Session, _keys: &[&[u8]]) {}

fn get(session: &mut Session, keys: &[&[u8]]) {
    for key in keys {
        let pinned = session.pin();
        black_box(pinned.get(key).expect("there").contiguous());
    }
}

fn get_batched(session: &mut Session, keys: &[&[u8]]) {
    session.pin().get_many(keys, |_, hit| {
        black_box(hit.expect("there").contiguous());
        ControlFlow::Continue(())
    });
}

/// A number of 32 digits is no number to a client, but the value is as long as in other measurements.
const VALUE: &[u8; 32] = b"00000000000000000000000000000001";

fn set(session: &mut Session, keys: &[&[u8]]) {
    for key in keys {
        session.store(Verb::Set, Entry::new(key), VALUE).expect("room");
    }
}

fn set_batched(session: &mut Session, keys: &[&[u8]]) {
    session.begin_batch(keys, keys.len());
    set(session, keys);
    session.end_batch();
}

fn delete(session: &mut Session, keys: &[&[u8]]) {
    for key in keys {
        assert!(session.delete(key));
    }
}

fn delete_batched(session: &mut Session, keys: &[&[u8]]) {
    session.begin_batch(keys, keys.len());
    delete(session, keys);
    session.end_batch();
}

/// What a counter is made of the one before: the cache does not look at it.
fn next(value: &mut [u8]) {
    value[31] = value[31] % 9 + 1;
}

fn incr(session: &mut Session, keys: &[&[u8]]) {
    for key in keys {
        let updated = session.update(key, |hit, new| {
            new.extend_from_slice(hit.contiguous().ok_or(())?);
            next(new);
            Ok::<(), ()>(())
        });
        assert!(matches!(updated, Ok(Updated::Updated(_))), "{updated:?}");
    }
}

fn incr_batched(session: &mut Session, keys: &[&[u8]]) {
    session.begin_batch(keys, keys.len());
    for key in keys {
        let made = session.rewrite(key, |_, value| {
            next(value);
            Some(())
        });
        if made.is_none() {
            incr(session, &[key]);
        }
    }
    session.end_batch();
}
