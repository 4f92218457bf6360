//! The programs whose instructions are counted: the library's hit path, the two indexes, the cache, and the parser.
//!
//! `lookaside-counts NAME` prepares the work of that name, and then does it in [`counted_section`], once. Callgrind is
//! told to count the instructions of that function, and of all that it calls:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect=*counted_section* lookaside-counts NAME
//! ```
//!
//! Without a name it lists the names, each with the operations that its section has. The test beside this program runs
//! it so, and compares. What operations write is watched by other programs: [`lines`].
//!
//! The sets of keys are small, for caches do not matter here: an instruction is an instruction, wherever its data lie.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program for a test and for people")]

mod lines;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::process::ExitCode;

use art::{OwnedTree, Tree, encode};
use cache::engine::{Cache, Config as CacheConfig, Entry, Session, Verb};
use cuckoo::{Config as CuckooConfig, Hashes, Location, Table};
use lookaside::{Config, Map, OwnedMap, RwLock};
use protocol::{Line, Request, parse, parse_plain, parse_plain_get, reply, split_line};

/// Keys of the indexes.
const KEYS: u64 = 1024;
/// Operations of a section.
const OPERATIONS: u64 = 16_384;
/// Keys of a batch.
const BATCH: usize = 64;
/// Operations beforehand, which warm tables up: as many as it takes until nothing in them changes any more.
const WARM_UP: u64 = 131_072;

/// Prepares the work of this name and does it in the section.
type Run = fn() -> u64;

const PROGRAMS: &[(&str, Run)] = &[
    ("map-hit", map_hit),
    ("map-hit-batched", map_hit_batched),
    ("owned-map-hit", owned_map_hit),
    ("owned-map-hit-batched", owned_map_hit_batched),
    ("cuckoo-found", || cuckoo(0)),
    ("cuckoo-absent", || cuckoo(KEYS)),
    ("cuckoo-found-batched", || cuckoo_batched(0)),
    ("cuckoo-absent-batched", || cuckoo_batched(KEYS)),
    ("art-found", art_found),
    ("art-found-batched", art_found_batched),
    ("art-replace", art_replace),
    ("art-owned-found", art_owned_found),
    ("cache-get", cache_get),
    ("cache-get-batched", cache_get_batched),
    ("cache-set", cache_set),
    ("parse-get", || parse_lines(b"get key:0123456789ab\r\n")),
    ("parse-set", || parse_lines(b"set key:0123456789ab 0 0 32\r\n")),
    ("parse-delete", || parse_lines(b"delete key:0123456789ab\r\n")),
    ("parse-incr", || parse_lines(b"incr key:0123456789ab 17\r\n")),
    ("parse-get-of-64-keys", parse_get_of_many),
    ("reply-value-header", value_header),
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        PROGRAMS.iter().for_each(|(name, _)| println!("{name} {OPERATIONS}"));
        return ExitCode::SUCCESS;
    };
    if name == "lines" {
        let Some(name) = arguments.next() else {
            lines::names().for_each(|name| println!("{name}"));
            return ExitCode::SUCCESS;
        };
        return if lines::run(&name) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let Some((_, run)) = PROGRAMS.iter().find(|(other, _)| *other == name) else {
        println!("there is no program {name}");
        return ExitCode::FAILURE;
    };
    // What was found is printed: so the compiler may not leave the work out.
    println!("{}", run());
    ExitCode::SUCCESS
}

/// The function whose instructions are counted.
#[inline(never)]
fn counted_section(work: &mut dyn FnMut() -> u64) -> u64 {
    black_box(work())
}

/// The `n`-th request's key: all keys, in no order.
fn drawn(n: u64) -> u64 {
    (n.wrapping_mul(0x5851_F42D_4C95_7F2D) >> 32) % KEYS
}

/// Does `operation` for each request, uncounted until the tables are warm, then counted.
fn singly(mut operation: impl FnMut(u64) -> u64) -> u64 {
    for n in 0..WARM_UP {
        black_box(operation(drawn(n)));
    }
    counted_section(&mut || (0..OPERATIONS).map(|n| operation(drawn(n))).fold(0, u64::wrapping_add))
}

/// As [`singly`], for [`BATCH`] requests at once.
fn batched(mut operation: impl FnMut(&[u64; BATCH]) -> u64) -> u64 {
    let batches = |operations: u64| {
        (0..operations / BATCH as u64)
            .map(|batch| std::array::from_fn(|i| drawn(batch * BATCH as u64 + i as u64)))
            .collect::<Vec<[u64; BATCH]>>()
    };
    batches(WARM_UP).iter().for_each(|keys| {
        black_box(operation(keys));
    });
    let counted = batches(OPERATIONS);
    counted_section(&mut || counted.iter().map(&mut operation).fold(0, u64::wrapping_add))
}

type Index<K, V> = BTreeSet<lookaside::Handle<K, V>>;

/// A map whose table has room for all keys. Its monitor is off: it goes by the clock.
fn map() -> Map<u64, u64, RwLock<Index<u64, u64>>> {
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(64 << 10)).expect("a table");
    map.buffer().monitor(false);
    (0..KEYS).for_each(|key| drop(map.insert(key, key)));
    map
}

fn map_hit() -> u64 {
    let map = map();
    let reader = map.pin();
    singly(|key| *reader.get(&key).expect("there"))
}

fn map_hit_batched() -> u64 {
    let map = map();
    let reader = map.pin();
    batched(|keys| {
        let mut found = [None; BATCH];
        reader.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| *value.expect("there")).fold(0, u64::wrapping_add)
    })
}

/// A cache with room for all keys, of 16 bytes, with values of 32.
fn cache() -> (Cache, Vec<[u8; 16]>) {
    let cache: Cache = Cache::new(CacheConfig::with_limit(4 << 20)).expect("a cache");
    cache.set_time(1);
    let keys: Vec<[u8; 16]> = (0..KEYS).map(|key| (u128::from(key) << 64 | 7).to_le_bytes()).collect();
    let mut session = cache.session();
    for key in &keys {
        session.store(Verb::Set, Entry::new(key), &[1; 32]).expect("room");
    }
    (cache, keys)
}

fn cache_get() -> u64 {
    let (cache, keys) = cache();
    let mut session: Session = cache.session();
    let pinned = session.pin();
    singly(|key| {
        let hit = pinned.get(&keys[key as usize]).expect("there");
        u64::from(hit.flags()) + u64::from(hit.contiguous().expect("small")[0])
    })
}

fn cache_get_batched() -> u64 {
    let (cache, keys) = cache();
    let mut session: Session = cache.session();
    let pinned = session.pin();
    batched(|numbers| {
        let sought = numbers.map(|number| &keys[number as usize][..]);
        let mut sum = 0;
        pinned.get_many(&sought, |_, hit| {
            let hit = hit.expect("there");
            sum += u64::from(hit.flags()) + u64::from(hit.contiguous().expect("small")[0]);
            std::ops::ControlFlow::Continue(())
        });
        sum
    })
}

fn cache_set() -> u64 {
    let (cache, keys) = cache();
    let mut session: Session = cache.session();
    singly(|key| {
        let stored = session.store(Verb::Set, Entry::new(&keys[key as usize]), &[2; 32]);
        u64::from(stored.is_ok())
    })
}

fn owned_map() -> OwnedMap<u64, u64, Index<u64, u64>> {
    let mut map = OwnedMap::with_index(BTreeSet::new(), &Config::with_size(64 << 10)).expect("a table");
    map.monitor(false);
    (0..KEYS).for_each(|key| drop(map.insert(key, key)));
    map
}

fn owned_map_hit() -> u64 {
    let map = owned_map();
    singly(|key| *map.get(&key).expect("there"))
}

fn owned_map_hit_batched() -> u64 {
    let map = owned_map();
    batched(|keys| {
        let mut found = [None; BATCH];
        map.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| *value.expect("there")).fold(0, u64::wrapping_add)
    })
}

/// An even hash (splitmix64).
#[inline]
fn hash(key: u64) -> u64 {
    let z = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Entries are their own locations.
fn hash_of(at: Location) -> u64 {
    hash(at.get())
}

fn cuckoo_table() -> Table {
    let config = CuckooConfig::new().with_hashes(Hashes::Avalanching);
    let table: Table = Table::with_capacity(KEYS as usize, &config).expect("memory");
    for key in 0..KEYS {
        table.insert_unique(hash(key), Location::new(key).expect("48 bits"), hash_of).expect("room");
    }
    table
}

/// Keys from `first` on are asked for.
fn cuckoo(first: u64) -> u64 {
    let table = cuckoo_table();
    singly(|key| u64::from(table.find(hash(first + key), |at| at.get() == first + key).is_some()))
}

fn cuckoo_batched(first: u64) -> u64 {
    let table = cuckoo_table();
    batched(|keys| {
        let keys = keys.map(|key| first + key);
        let (hashes, mut found) = (keys.map(hash), [None; BATCH]);
        table.find_many(hash_of, &hashes, |i, at| at.get() == keys[i], &mut found);
        found.iter().flatten().count() as u64
    })
}

/// Keys all over the range of 64 bits.
fn tree_key(key: u64) -> [u8; 8] {
    encode::u64(hash(key))
}

fn tree() -> Tree<[u8; 8], u64> {
    let tree = Tree::new().expect("memory");
    let reader = tree.pin();
    for key in 0..KEYS {
        reader.insert(&tree_key(key), key).expect("room");
    }
    drop(reader);
    tree
}

fn art_found() -> u64 {
    let tree = tree();
    let reader = tree.pin();
    singly(|key| *reader.get(&tree_key(key)).expect("there"))
}

fn art_found_batched() -> u64 {
    let tree = tree();
    let reader = tree.pin();
    batched(|keys| {
        let (keys, mut found) = (keys.map(tree_key), [None; BATCH]);
        reader.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| *value.expect("there")).fold(0, u64::wrapping_add)
    })
}

fn art_replace() -> u64 {
    let tree = tree();
    let mut reader = tree.pin();
    let mut since = 0;
    singly(|key| {
        since += 1;
        // As a long-lived reader does, or nothing would be freed.
        if since % 256 == 0 {
            reader.refresh();
        }
        *reader.insert(&tree_key(key), key).expect("room").expect("there")
    })
}

fn art_owned_found() -> u64 {
    let mut tree = OwnedTree::<[u8; 8], u64>::new().expect("memory");
    for key in 0..KEYS {
        tree.insert(&tree_key(key), key).expect("room");
    }
    singly(|key| *tree.get(&tree_key(key)).expect("there"))
}

/// Reads a request as the server does: as clients write it, or else finds its line, and parses that, and walks over
/// the keys of a get.
fn parsed(received: &[u8]) -> u64 {
    if let Some((key, _, length)) = parse_plain_get(received) {
        return (key.as_bytes().len() + length) as u64;
    }
    if let Some((_, length)) = parse_plain(received) {
        return length as u64;
    }
    let Line::Complete(line) = split_line(received) else { panic!("a whole line") };
    match parse(line) {
        Ok(Request::Get(get)) => get.keys.map(|key| key.as_bytes().len() as u64).sum(),
        Ok(_) => 1,
        Err(refusal) => panic!("{refusal:?}"),
    }
}

fn parse_lines(line: &[u8]) -> u64 {
    singly(|_| parsed(black_box(line)))
}

/// Counted by key.
fn parse_get_of_many() -> u64 {
    let line = [b"get".to_vec(), b" key:0123456789ab".repeat(BATCH), b"\r\n".to_vec()].concat();
    batched(|_| parsed(black_box(&line)))
}

fn value_header() -> u64 {
    let mut out = Vec::with_capacity(256);
    singly(|_| {
        out.clear();
        reply::value_header(&mut out, black_box(b"key:0123456789ab"), 0, black_box(32), None);
        out.len() as u64
    })
}
