//! One test with threads for all indexes that threads share: behind a [`lookaside::Map`], what a lookup returns must
//! have been in the map at some moment during the lookup.
//!
//! Each key is written by one thread, which numbers its changes: it announces a change before it makes it and records
//! it when it is made. A reader notes what was made before its lookup and what was announced when it returned; the
//! version it saw must lie between, where version 0 is none. Values say of which key and version they are, in each of
//! their words, and still do after others have written.
//!
//! The table has two lines for the keys of all, so that the index answers as often as the table does. What is the map's
//! own affair, tables that are resized and shared and switched off, is tested in `lookaside`.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lookaside::{Config, Map, Random};

use super::contestant::SharedIndex;
use super::record::{Key, Value};
use super::visit::BATCH;

const KEYS: u32 = 64;
const WRITERS: u32 = 2;
const READERS: u32 = 2;

/// Changes that each writer makes. Fewer under the sanitizers, which set this.
fn changes() -> u32 {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(20_000, |changes| changes.parse().expect("a number"))
}

/// Checks an index behind a map while several threads write and read.
///
/// # Panics
/// Where a lookup found what was not there, or missed what was.
pub fn check<I: SharedIndex<24>>() {
    let index = I::make(KEYS as usize).unwrap_or_else(|reason| panic!("{reason}"));
    let world = World {
        map: Map::with_index(index, &Config::with_size(128)).expect("two lines are a table"),
        histories: (0..KEYS).map(|_| History::default()).collect(),
        start: Barrier::new((WRITERS + READERS) as usize),
        reading: AtomicBool::new(true),
    };
    world.map.buffer().monitor(false);
    std::thread::scope(|scope| {
        let world = &world;
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || world.write(writer))).collect();
        let readers: Vec<_> = (0..READERS).map(|reader| scope.spawn(move || world.read(reader))).collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // Where the writers had all cores for themselves, the readers have yet to come.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !world.saw_all() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        world.reading.store(false, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("no reader saw anything wrong"));
        written.into_iter().for_each(|written| written.expect("no writer saw anything wrong"));
    });
    assert!(world.saw_all(), "{:?}", world.map.buffer().counts());
    let present = world.histories.iter().filter(|history| history.made.load(Ordering::SeqCst) > 0);
    assert_eq!(world.map.len(), present.count());
}

/// The versions of a key.
#[derive(Default)]
struct History {
    announced: AtomicU64,
    made: AtomicU64,
}

/// The value of a key in a version; none in the first.
fn value(number: u32, version: u64) -> Option<Value> {
    (version > 0).then(|| Value::of(version << 8 | u64::from(number)))
}

struct World<I> {
    map: Map<Key<24>, Value, I>,
    histories: Vec<History>,
    start: Barrier,
    reading: AtomicBool,
}

impl<I: SharedIndex<24>> World<I> {
    fn history(&self, number: u32) -> &History {
        &self.histories[number as usize]
    }

    fn write(&self, writer: u32) {
        let random = Random::new(1 + u64::from(writer));
        let mut reader = self.map.pin();
        self.start.wait();
        for change in 0..changes() {
            let number = random.below(KEYS / WRITERS) * WRITERS + writer;
            let (history, key) = (self.history(number), Key::of(u64::from(number)));
            let version = history.made.load(Ordering::Relaxed);
            let next = version + 1;
            history.announced.store(next, Ordering::SeqCst);
            let new = value(number, next).expect("all but the first version have one");
            let replaces = version > 0 && random.below(2) == 0;
            let old = if replaces { reader.replace(key, new).ok() } else { reader.insert(key, new) };
            history.made.store(next, Ordering::SeqCst);
            assert_eq!(old.as_deref(), value(number, version).as_ref(), "key {number}, what was there");
            // What one has written oneself is there at once.
            assert_eq!(reader.get(&key), value(number, next).as_ref(), "key {number}, what was written");
            if change % 32 == 0 {
                reader.refresh();
            }
        }
    }

    fn read(&self, reader: u32) {
        let random = Random::new(100 + u64::from(reader));
        let mut reader = self.map.pin();
        self.start.wait();
        while self.reading.load(Ordering::Relaxed) {
            let numbers: Vec<_> =
                (0..1 + random.below(2 * BATCH as u32)).map(|_| random.below(KEYS)).collect();
            let keys: Vec<_> = numbers.iter().map(|&number| Key::of(u64::from(number))).collect();
            let made = numbers.iter().map(|&number| self.history(number).made.load(Ordering::SeqCst));
            let made: Vec<_> = made.collect();
            let mut found = vec![None; keys.len()];
            if random.below(2) == 0 {
                reader.get_many(&keys.iter().collect::<Vec<_>>(), &mut found);
            } else {
                keys.iter().zip(&mut found).for_each(|(key, found)| *found = reader.get(key));
            }
            for ((&number, &found), made) in numbers.iter().zip(&found).zip(made) {
                let announced = self.history(number).announced.load(Ordering::SeqCst);
                judge(number, found, made, announced);
            }
            // As they were, although they may have been replaced since.
            for (&number, found) in numbers.iter().zip(found) {
                assert_eq!(found, found.and_then(|found| value(number, found.words()[7] >> 8)).as_ref());
            }
            reader.refresh();
        }
    }

    /// Whether everything that can happen to the table has happened.
    fn saw_all(&self) -> bool {
        let counts = self.map.buffer().counts();
        counts.hits > 0 && counts.misses > 0 && counts.cleared > 0 && counts.evictions > 0
    }
}

/// Checks what a lookup that began after `made` and ended before `announced` found.
fn judge(number: u32, found: Option<&Value>, made: u64, announced: u64) {
    let Some(found) = found else {
        assert!(made == 0, "key {number} missed at version {made}");
        return;
    };
    let version = found.words()[0] >> 8;
    assert_eq!(Some(found), value(number, version).as_ref(), "of another key, or torn");
    assert!((made..=announced).contains(&version), "key {number}: {version} not in {made}..={announced}");
}
