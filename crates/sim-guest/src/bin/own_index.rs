//! This project's own indexes as guests of the simulator: lookaside-own-index REQUESTS index=I variant=V records=N
//! [rows=N] [ways=N] [slb=BYTES] load=N functional=N detailed=N window=N windows=N
//!
//! | index | |
//! |---|---|
//! | `cuckoo` | the optimistic cuckoo table |
//! | `art` | the adaptive radix tree |
//! | `art-reorganised` | the same, its hottest paths moved together after the load |
//! | `cache` | the cache, with room for everything: its values are in it, and read there |
//!
//! Variants are `alone`, `stlt` and `stlt-va`; of the cache, whose items may move, `alone` and `slb`, the lookaside buffer
//! before its own index. Requests and phases are those of `crates/sim-qemu/guests/driver.hpp`; so are keys, of 24 bytes, and
//! values, of 64. It ends with 0 if every GET found its record.

use std::process::ExitCode;

use art::{Reader, Tree};
use cache::{Cache, Config as CacheConfig, Entry, Eviction, Session, Verb};
use cuckoo::{Config, DefaultLayout, Entries, Location, Table};
use sim_guest::{Hints, Phase, Variant, enter};
use twox_hash::XxHash3_64;

const KEY: usize = 24;
/// A request that inserts.
const SET: u32 = 1 << 31;

struct Record {
    key: [u8; KEY],
    value: [u64; 8],
}

/// "user0000" and sixteen digits that look random.
fn key(number: u64) -> [u8; KEY] {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let mut key = *b"user00000000000000000000";
    key[8..16].copy_from_slice(&digits(mixed as u32));
    key[16..].copy_from_slice(&digits((mixed >> 32) as u32));
    key
}

/// Eight hexadecimal digits, all at once: each nibble in a byte of its own, then the letters moved up.
fn digits(word: u32) -> [u8; 8] {
    let mut word = u64::from(word);
    word = (word | word << 16) & 0x0000_ffff_0000_ffff;
    word = (word | word << 8) & 0x00ff_00ff_00ff_00ff;
    word = (word | word << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = (word + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (word + 0x3030_3030_3030_3030 + letters * 39).to_le_bytes()
}

fn hash(key: &[u8; KEY]) -> u64 {
    XxHash3_64::oneshot(key)
}

/// Keys to the numbers of records.
trait Index {
    fn insert(&mut self, number: u32) -> Result<(), String>;
    fn find(&mut self, key: &[u8; KEY], hash: u64) -> Option<u32>;
    /// A key's value, added up: where it lies in the index itself, not in a record.
    fn sum(&mut self, _key: &[u8; KEY]) -> Option<u64> {
        None
    }
    /// After the load.
    fn settle(&mut self) {}
}

struct Records<'r>(&'r [Record]);

impl Entries for Records<'_> {
    type Key = [u8; KEY];

    fn holds(&self, location: Location, key: &[u8; KEY]) -> bool {
        self.0[location.get() as usize].key == *key
    }

    fn hash(&self, location: Location) -> u64 {
        hash(&self.0[location.get() as usize].key)
    }
}

struct Cuckoo<'r> {
    records: Records<'r>,
    table: Table<DefaultLayout>,
}

impl Index for Cuckoo<'_> {
    fn insert(&mut self, number: u32) -> Result<(), String> {
        let key = &self.records.0[number as usize].key;
        let location = Location::new(number.into()).ok_or("a record's number has 48 bits")?;
        self.table.insert(&self.records, key, hash(key), location).map_err(|full| full.to_string())?;
        Ok(())
    }

    fn find(&mut self, key: &[u8; KEY], hash: u64) -> Option<u32> {
        let found = self.table.get(hash, |location| self.records.holds(location, key));
        found.map(|location| location.get() as u32)
    }
}

struct Radix<'t> {
    records: &'t [Record],
    tree: &'t Tree<[u8; KEY], u32>,
    reader: Reader<'t, [u8; KEY], u32>,
    /// Lookups since the reader last let go of what others have removed.
    since: u32,
    reorganised: bool,
}

impl Index for Radix<'_> {
    fn insert(&mut self, number: u32) -> Result<(), String> {
        let stored = self.reader.insert(&self.records[number as usize].key, number).map(drop);
        stored.map_err(|full| format!("{:?}", full.reason))
    }

    fn find(&mut self, key: &[u8; KEY], _: u64) -> Option<u32> {
        self.since += 1;
        if self.since == 1024 {
            self.since = 0;
            self.reader.refresh();
        }
        self.reader.get(key).copied()
    }

    fn settle(&mut self) {
        if self.reorganised {
            self.tree.reorganize();
            // What is measured then is the tree that was reorganised, not the noting of what is asked for.
            self.tree.access_log().sample_every(0);
        }
    }
}

struct Items<'r> {
    records: &'r [Record],
    session: Session,
}

impl Index for Items<'_> {
    fn insert(&mut self, number: u32) -> Result<(), String> {
        let record = &self.records[number as usize];
        let value: Vec<u8> = record.value.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stored = self.session.store(Verb::Set, Entry::new(&record.key), &value);
        stored.map(drop).map_err(|error| format!("{error:?}"))
    }

    fn find(&mut self, _: &[u8; KEY], _: u64) -> Option<u32> {
        None
    }

    fn sum(&mut self, key: &[u8; KEY]) -> Option<u64> {
        let pinned = self.session.pin();
        let hit = pinned.get(key)?;
        let words = hit.pieces().flat_map(|piece| piece.chunks_exact(8));
        Some(words.fold(0, |sum: u64, word| {
            sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default()))
        }))
    }
}

/// All that can be said; what only concerns programs with other tables in front is not looked at.
const NAMES: [&str; 14] = [
    "index",
    "variant",
    "records",
    "value",
    "rows",
    "ways",
    "slb",
    "slb-options",
    "hash",
    "load",
    "functional",
    "detailed",
    "window",
    "windows",
];

struct Options {
    requests: Vec<u32>,
    names: Vec<(String, String)>,
}

impl Options {
    fn read() -> Result<Options, String> {
        let mut arguments = std::env::args().skip(1);
        let path = arguments.next().ok_or("the first argument is a file of requests")?;
        let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let word = |word: &[u8]| u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let requests = bytes.chunks_exact(4).map(word).collect();
        let names = arguments
            .map(|argument| {
                let pair = argument.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
                pair.ok_or_else(|| format!("{argument} is not name=value"))
            })
            .collect::<Result<Vec<_>, String>>()?;
        for (name, value) in &names {
            if !NAMES.contains(&name.as_str()) {
                return Err(format!("{name}={value}: there is no such option, but {}", NAMES.join(", ")));
            }
        }
        Ok(Options { requests, names })
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, otherwise: u64) -> Result<u64, String> {
        let text = self.text(name);
        text.map_or(Ok(otherwise), |text| text.parse().map_err(|_| format!("{name}={text} is not a number")))
    }
}

struct Run<'r, I> {
    index: I,
    /// The index has the values, and there is no table in front but its own.
    holds_values: bool,
    hints: Option<Hints<'r, Record>>,
    records: &'r [Record],
    inserted: u32,
    requests: std::slice::Iter<'r, u32>,
    hits: u64,
    misses: u64,
    lost: u64,
    sum: u64,
}

impl<'r, I: Index> Run<'r, I> {
    #[inline(never)]
    fn perform(&mut self, count: u64) -> Result<(), String> {
        for _ in 0..count {
            let Some(&request) = self.requests.next() else { return Ok(()) };
            if request == SET {
                self.index.insert(self.inserted)?;
                self.inserted += 1;
            } else {
                self.get(&key(request.into()));
            }
        }
        Ok(())
    }

    fn get(&mut self, key: &[u8; KEY]) {
        if self.holds_values {
            match self.index.sum(key) {
                Some(sum) => self.sum = self.sum.wrapping_add(sum),
                None => self.lost += 1,
            }
            return;
        }
        let hash = hash(key);
        let hint = self.hints.as_ref().and_then(|hints| hints.get(hash));
        let record = match hint {
            Some(record) if record.key == *key => {
                self.hits += 1;
                record
            }
            _ => {
                let Some(number) = self.index.find(key, hash) else {
                    self.lost += 1;
                    return;
                };
                let record = &self.records[number as usize];
                if let Some(hints) = &mut self.hints {
                    self.misses += 1;
                    hints.insert(hash, record);
                }
                record
            }
        };
        self.sum = record.value.iter().fold(self.sum, |sum, word| sum.wrapping_add(*word));
    }

    fn run(&mut self, options: &Options) -> Result<(), String> {
        for _ in 0..options.number("records", 0)? {
            self.index.insert(self.inserted)?;
            self.inserted += 1;
        }
        self.perform(options.number("load", 0)?)?;
        self.index.settle();
        enter(Phase::Functional, 0, 0, 0);
        self.perform(options.number("functional", 0)?)?;
        let (detailed, window) = (options.number("detailed", 0)?, options.number("window", 0)?);
        for _ in 0..options.number("windows", 1)? {
            enter(Phase::Detailed, 0, 0, 0);
            self.perform(detailed)?;
            (self.hits, self.misses) = (0, 0);
            enter(Phase::Measured, 0, 0, 0);
            self.perform(window)?;
            enter(Phase::Detailed, window, self.hits, self.misses);
        }
        enter(Phase::Load, 0, 0, 0);
        std::hint::black_box(self.sum);
        if self.lost == 0 { Ok(()) } else { Err(format!("{} records were not found", self.lost)) }
    }
}

fn guest() -> Result<(), String> {
    let options = Options::read()?;
    let sets = options.requests.iter().filter(|&&request| request == SET).count() as u64;
    let loaded = options.number("records", 0)?;
    let records: Vec<Record> =
        (0..loaded + sets).map(|number| Record { key: key(number), value: [number; 8] }).collect();
    let is_cache = options.text("index") == Some("cache");
    let variant = match options.text("variant") {
        Some("alone") | None => None,
        Some("slb") if is_cache && options.text("slb-options") == Some("paper") => {
            return Err("slb-options=paper: a cache has this project's table, not the paper's".into());
        }
        Some("slb") if is_cache => None,
        Some(other) if is_cache => return Err(format!("variant={other}: a cache has alone and slb")),
        Some("stlt") => Some(Variant::Full),
        Some("stlt-va") => Some(Variant::VirtualOnly),
        Some(other) => return Err(format!("variant={other}: there are alone, stlt and stlt-va")),
    };
    let (rows, ways) = (options.number("rows", 1 << 20)?, options.number("ways", 4)? as u32);
    let hints = variant.map(|variant| Hints::new(rows, ways, variant)).transpose();
    let hints = hints.map_err(|refused| refused.to_string())?;
    let run = |hints| (hints, records.as_slice(), options.requests.iter());
    match options.text("index") {
        Some("cuckoo") => {
            let table = Table::with_capacity(records.len(), &Config::default());
            let table = table.map_err(|error| error.to_string())?;
            go(Cuckoo { records: Records(&records), table }, run(hints), &options)
        }
        Some(name @ ("art" | "art-reorganised")) => {
            let tree = Tree::new().map_err(|error| error.to_string())?;
            let reorganised = name == "art-reorganised";
            if reorganised {
                tree.access_log().sample_every(SAMPLE_EVERY);
            }
            let session = tree.session();
            let reader = session.pin();
            let index = Radix { records: &records, tree: &tree, reader, since: 0, reorganised };
            go(index, run(hints), &options)
        }
        Some("cache") => {
            let slb = options.text("variant") == Some("slb");
            let config = CacheConfig {
                eviction: Eviction::Never,
                lookaside: if slb { options.number("slb", 1 << 24)? as usize } else { 0 },
                ..CacheConfig::with_limit(records.len() * ITEM + ROOM)
            };
            let cache: Cache = Cache::new(config).map_err(|error| error.to_string())?;
            let session = cache.session();
            go(Items { records: &records, session }, run(hints), &options)
        }
        _ => Err("index= is cuckoo, art, art-reorganised or cache".into()),
    }
}

/// Bytes of an item and its place in the cache's index, at most.
const ITEM: usize = 192;
/// Bytes of pages that are not full.
const ROOM: usize = 16 << 20;
/// Lookups between two that the tree's access log notes.
const SAMPLE_EVERY: u32 = 8;

fn go<'r>(
    index: impl Index,
    (hints, records, requests): (Option<Hints<'r, Record>>, &'r [Record], std::slice::Iter<'r, u32>),
    options: &Options,
) -> Result<(), String> {
    let holds_values = options.text("index") == Some("cache");
    Run { index, holds_values, hints, records, inserted: 0, requests, hits: 0, misses: 0, lost: 0, sum: 0 }
        .run(options)
}

#[allow(clippy::print_stderr, reason = "a program tells whoever started it")]
fn main() -> ExitCode {
    match guest() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("lookaside-own-index: {reason}");
            ExitCode::FAILURE
        }
    }
}
