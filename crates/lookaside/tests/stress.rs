//! Many threads on maps, with the history of every key checked: what a lookup returned must have been in the map at
//! some moment during the lookup, and must not have been freed. And every entry is dropped, once.
//!
//! Each key is written by one thread, which numbers its changes: it announces a change before it makes it and records
//! it when it is made. A reader notes what was made before its lookup and what was announced when it returned; the
//! version it saw must lie between. Two maps with equal keys share one table, so that nobody may see the other's; the
//! table is resized, and its monitor switched on and off, all the while.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lookaside::index::{Find, SharedDiscard, SharedStore};
use lookaside::{Config, Front, Handle, Map, PageKind, RandomState, RwLock, SharedBuffer};
use outside::Random;

const KEYS: usize = 1 << 10;
const WRITERS: usize = 2;
const KEYS_OF_WRITER: usize = KEYS / WRITERS;
const READERS: usize = 2;

/// How often each record was dropped, by its number.
struct Ledger {
    made: AtomicUsize,
    drops: Vec<AtomicU8>,
}

impl Ledger {
    fn dropped(&self) -> usize {
        self.drops.iter().filter(|drops| drops.load(Ordering::SeqCst) > 0).count()
    }
}

/// A value that says what it is, in a block of its own, and that it still is.
struct Record {
    key: usize,
    version: u64,
    number: usize,
    sum: AtomicU64,
    ledger: Arc<Ledger>,
}

impl Record {
    fn new(key: usize, version: u64, ledger: &Arc<Ledger>) -> Box<Record> {
        let number = ledger.made.fetch_add(1, Ordering::Relaxed);
        let mut record =
            Box::new(Record { key, version, number, sum: AtomicU64::new(0), ledger: ledger.clone() });
        *record.sum.get_mut() = record.right_sum();
        record
    }

    fn right_sum(&self) -> u64 {
        (self.key as u64 ^ self.version << 20 ^ (self.number as u64) << 40)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            | 1
    }

    fn check(&self) {
        assert_eq!(self.sum.load(Ordering::Relaxed), self.right_sum(), "written over");
        assert_eq!(self.ledger.drops[self.number].load(Ordering::SeqCst), 0, "dropped");
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.sum.store(0, Ordering::Relaxed);
        self.ledger.drops[self.number].fetch_add(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct History {
    announced: AtomicU64,
    made: AtomicU64,
}

type Value = Box<Record>;

trait Index:
    Find<u32, u32, Value> + SharedStore<u32, Value> + SharedDiscard<u32, u32, Value> + Send + Sync
{
    /// Handles that it may hold back until it is dropped, because it frees what its own readers may look at.
    const HELD_BACK: usize = 0;

    fn empty() -> Self;
}

impl Index for RwLock<BTreeSet<Handle<u32, Value>>> {
    fn empty() -> Self {
        RwLock::default()
    }
}

impl Index for RwLock<HashSet<Handle<u32, Value>>> {
    fn empty() -> Self {
        RwLock::default()
    }
}

/// The radix tree, whose readers take no lock.
impl Index for art::Tree<[u8; 4], Handle<u32, Value>> {
    /// 64 of each writer, in each of two trees.
    const HELD_BACK: usize = 2 * 64 * WRITERS;

    fn empty() -> Self {
        let config = art::Config::new().with_node_bytes(1 << 26).with_leaf_bytes(1 << 26);
        art::Tree::with_config(&config).unwrap()
    }
}

/// Even keys are in the first map, odd ones in the second, where they are called the same.
struct World<I> {
    maps: [Map<u32, Value, I>; 2],
    histories: Vec<History>,
    ledger: Arc<Ledger>,
    running: AtomicBool,
}

impl<I: Index> World<I> {
    fn name(key: usize) -> (usize, u32) {
        (key % 2, (key / 2) as u32)
    }

    fn write(&self, writer: usize, changes: usize) {
        let mut random = Random(0x1234_5678 + writer as u64);
        // Of both maps, and let go of together: while a thread has another, what one is refreshed for stays.
        let mut readers = None;
        for change in 0..changes {
            if change % 64 == 0 {
                readers = None;
            }
            let readers = readers.get_or_insert_with(|| [self.maps[0].pin(), self.maps[1].pin()]);
            // All of its keys once, so that most are there, and then some of those that are asked for.
            let of_writer = match change {
                ..KEYS_OF_WRITER => change,
                _ => random.key(KEYS / WRITERS),
            };
            let key = of_writer * WRITERS + writer;
            let (history, (map, name)) = (&self.histories[key], Self::name(key));
            let version = history.made.load(Ordering::Relaxed);
            // Versions go up by two where presence stays, by one where it changes. An odd one is present.
            let present = version % 2 == 1;
            let kind = random.below(4);
            let next = if present && kind > 1 { version + 2 } else { version + 1 };
            history.announced.store(next, Ordering::SeqCst);
            let old = match (present, kind) {
                (true, 0 | 1) => readers[map].remove(&name),
                (true, 2) => {
                    readers[map].replace(name, Record::new(key, next, &self.ledger)).map_err(|_| "there").ok()
                }
                _ => readers[map].insert(name, Record::new(key, next, &self.ledger)),
            };
            history.made.store(next, Ordering::SeqCst);
            assert_eq!(old.is_some(), present);
            if let Some(old) = old {
                assert_eq!((old.key, old.version), (key, version));
                old.check();
            }
            // What one has written oneself is there at once.
            let seen = readers[map].get(&name).map(|record| record.version);
            assert_eq!(seen, (next % 2 == 1).then_some(next));
        }
    }

    /// Checks what a lookup that began after `made` and ended before `announced` found.
    fn judge(key: usize, found: Option<&Record>, made: u64, announced: u64) {
        match found {
            Some(record) => {
                record.check();
                assert_eq!(record.key, key, "the entry of another key");
                let version = record.version;
                assert!((made..=announced).contains(&version), "{version} not in {made}..={announced}");
            }
            // Absent before the first change of the interval, after its last, or in between.
            None => assert!(made.is_multiple_of(2) || announced > made, "key {key} missed at version {made}"),
        }
    }

    fn read(&self, reader: usize) {
        let mut random = Random(0x9876_5432 + reader as u64);
        let map = reader % 2;
        let mut reader = self.maps[map].pin();
        while self.running.load(Ordering::Relaxed) {
            // Kept over many lookups, while what was found may be removed and its memory asked for.
            let mut kept: Vec<&Record> = Vec::new();
            for _ in 0..1 + random.below(20) {
                let keys: Vec<usize> =
                    (0..1 + random.below(20)).map(|_| random.key(KEYS) / 2 * 2 + map).collect();
                let made: Vec<u64> =
                    keys.iter().map(|&key| self.histories[key].made.load(Ordering::SeqCst)).collect();
                let names: Vec<u32> = keys.iter().map(|&key| Self::name(key).1).collect();
                let mut found = vec![None; keys.len()];
                if random.below(2) == 0 {
                    reader.get_many(&names.iter().collect::<Vec<_>>(), &mut found);
                } else {
                    for (found, name) in found.iter_mut().zip(&names) {
                        *found = reader.get(name);
                    }
                }
                for ((&key, found), made) in keys.iter().zip(&found).zip(made) {
                    let announced = self.histories[key].announced.load(Ordering::SeqCst);
                    Self::judge(key, found.map(|record| &**record), made, announced);
                }
                kept.extend(found.into_iter().flatten().map(|record| &**record));
            }
            kept.into_iter().for_each(Record::check);
            reader.refresh();
        }
    }

    /// Whether everything that can happen to the buffer has happened.
    fn saw_all(&self) -> bool {
        let counts = self.maps[0].buffer().counts();
        let by_table = counts.hits > 0 && counts.misses > 0 && counts.cleared > 0;
        by_table && counts.evictions > 0 && counts.bypassed > 0
    }

    fn resize(&self, sizes: [usize; 2]) {
        let (mut random, buffer) = (Random(99), self.maps[0].buffer());
        while self.running.load(Ordering::Relaxed) {
            buffer.resize(sizes[random.below(2)]).unwrap();
            buffer.monitor(random.below(2) == 0);
            (0..random.below(200)).for_each(|_| std::thread::yield_now());
        }
    }
}

/// Behind a table that is replaced by empty ones of these sizes.
fn stress<I: Index>(config: &Config, sizes: [usize; 2], changes: usize) {
    let buffer = SharedBuffer::for_indexes(config, 2).unwrap();
    let map = || Map::sharing(I::empty(), &buffer, RandomState::default()).unwrap();
    let ledger = Arc::new(Ledger {
        made: AtomicUsize::new(0),
        drops: (0..WRITERS * changes).map(|_| AtomicU8::new(0)).collect(),
    });
    let world = World {
        maps: [map(), map()],
        histories: (0..KEYS).map(|_| History::default()).collect(),
        ledger: ledger.clone(),
        running: AtomicBool::new(true),
    };
    std::thread::scope(|scope| {
        let world = &world;
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || world.write(writer, changes))).collect();
        let mut others: Vec<_> = (0..READERS).map(|reader| scope.spawn(move || world.read(reader))).collect();
        others.push(scope.spawn(move || world.resize(sizes)));
        // By hand, because the thread sanitizer sees a join and does not see the end of a scope.
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        // A machine with few cores may have run the writers while nobody read: the readers stay until all of it was
        // seen.
        let deadline = Instant::now() + Duration::from_secs(60);
        while !world.saw_all() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        world.running.store(false, Ordering::Relaxed);
        others.into_iter().for_each(|other| other.join().unwrap());
        written.into_iter().for_each(|written| written.unwrap());
    });
    let present = |map: usize| {
        let histories = world.histories.iter().skip(map).step_by(2);
        histories.filter(|history| history.made.load(Ordering::SeqCst) % 2 == 1).count()
    };
    assert_eq!(world.maps.each_ref().map(Map::len), [present(0), present(1)]);
    assert!(world.saw_all(), "{:?}", world.maps[0].buffer().counts());
    let (made, left) = (ledger.made.load(Ordering::SeqCst), present(0) + present(1));
    world.maps[0].buffer().collect();
    let held_back = (made - left).checked_sub(ledger.dropped());
    assert!(held_back.is_some_and(|held_back| held_back <= I::HELD_BACK), "{held_back:?} of {made}");
    drop(world);
    assert_eq!(ledger.dropped(), made);
    assert!(ledger.drops[..made].iter().all(|drops| drops.load(Ordering::SeqCst) == 1), "dropped twice");
}

/// Fewer under the sanitizers, which set this: they look at every access, not at many of them.
fn changes() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(40_000, |changes| changes.parse().expect("a number"))
}

fn base(config: Config) -> Config {
    config.pages(PageKind::Base)
}

macro_rules! stress_tests {
    ($($name:ident: $index:ty),*) => { $(
        mod $name {
            use super::*;

            #[test]
            fn behind_a_table_of_a_line() {
                stress::<$index>(&base(Config::with_size(64)), [64, 128], changes());
            }

            #[test]
            fn behind_the_papers_table() {
                stress::<$index>(&base(Config::paper(1 << 10)), [1 << 10, 1 << 12], changes());
            }
        }
    )* };
}

stress_tests!(
    tree: RwLock<BTreeSet<Handle<u32, Value>>>,
    hash_table: RwLock<HashSet<Handle<u32, Value>>>,
    radix_tree: art::Tree<[u8; 4], Handle<u32, Value>>
);

/// Threads at one front, of a few buckets, with closures that take what comes first: what is found for a key may be
/// another's, but its parts are of one pair, and it is what was lent.
#[test]
fn a_front_never_mixes_two_pairs() {
    // A key is as long as its value is old, and both say which they are.
    let mapped: Vec<u8> = (0..=255u8).flat_map(|number| [number; 64]).collect();
    let pair = |number: usize| {
        let memory = &mapped[number * 64..][..64];
        (&memory[..1 + number % 31], &memory[32..][..1 + number % 30])
    };
    let front = Front::new(&Config::with_size(512).pages(PageKind::Base)).unwrap();
    std::thread::scope(|threads| {
        let reader = |seed| {
            let front = &front;
            threads.spawn(move || {
                let mut random = Random(seed);
                let mut others = 0;
                for _ in 0..changes() {
                    let number = random.below(256);
                    let mut asked = false;
                    // Few hashes: many keys in each bucket have one tag.
                    let (key, value) = front
                        .get(
                            &(number % 16),
                            |_, _| true,
                            |_| {
                                asked = true;
                                Some(pair(number))
                            },
                        )
                        .unwrap();
                    let found = usize::from(key[0]);
                    assert_eq!((key, value), pair(found));
                    others += usize::from(!asked && found != number);
                    // Throws others out.
                    front.get(&(16 + random.below(64)), |_, _| false, |key| Some(pair(*key)));
                }
                assert!(others > 0, "nothing was ever found");
            })
        };
        // By hand, as above.
        let readers: Vec<_> = (1..=4).map(reader).collect();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
