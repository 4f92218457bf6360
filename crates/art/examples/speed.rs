//! How fast one thread is, on sparse 64-bit keys:
//! `cargo run --release --example speed -- [keys] [pages] [lookups] [a part of a name: only those, and insertions]`.
//!
//! For a first impression while changing the tree; the laboratory measures.

use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use lookaside_art::{Config, OwnedTree, PageKind, Reader, Tree, encode};

/// Numbers without order (splitmix64): the `n`-th.
fn number(n: u64) -> u64 {
    let z = (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn timed(what: &str, operations: u64, work: impl FnOnce() -> u64) {
    if std::env::args().nth(4).is_some_and(|only| !what.starts_with(&only) && !what.contains("insert")) {
        return;
    }
    let begin = Instant::now();
    let sum = black_box(work());
    let seconds = begin.elapsed().as_secs_f64();
    println!("{what:24} {:8.2} M/s  ({sum:x})", operations as f64 / seconds / 1e6);
}

/// Entries that ranges show.
const LENGTHS: [usize; 2] = [10, 100];

fn scan(reader: &Reader<'_, [u8; 8], u64>, what: &str, keys: u64, lookups: u64) {
    for entries in LENGTHS {
        let scans = lookups / entries as u64;
        timed(&format!("{what} of {entries}"), scans, || {
            let range = |n| {
                let from = encode::u64(number(number(n ^ 0xABCD_EF00) % keys));
                let range = reader.range_of_bytes(Bound::Included(&from), Bound::Unbounded);
                range.take(entries).fold(0u64, |sum, (_, value)| sum.wrapping_add(*value))
            };
            (0..scans).map(range).fold(0, u64::wrapping_add)
        });
    }
}

fn main() {
    round();
}

fn round() {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments.next().map_or(16 << 20, |n| n.parse().expect("a number of keys"));
    let pages: PageKind =
        arguments.next().map_or(PageKind::Base, |kind| kind.parse().expect("a kind of page"));
    let lookups: u64 = arguments.next().map_or(4 << 20, |n| n.parse().expect("a number of lookups"));
    let config = Config::new().with_pages(pages);
    let key = |n: u64| encode::u64(number(n));
    let drawn = |n: u64| key(number(n ^ 0xABCD_EF00) % keys);

    let tree = Tree::<[u8; 8], u64>::with_config(&config).expect("memory for a tree");
    timed("insert", keys, || {
        let reader = tree.pin();
        (0..keys).filter(|&n| reader.insert(&key(n), n).expect("room").is_some()).count() as u64
    });
    let memory = tree.memory();
    let nodes: Vec<String> =
        memory.nodes.iter().map(|node| format!("{:?} {}", node.kind, node.count)).collect();
    timed(&format!("nodes {} MiB, {}", memory.node_bytes() >> 20, nodes.join(", ")), 0, || 0);
    let reader = tree.pin();
    timed("get", lookups, || {
        (0..lookups).map(|n| *reader.get(&drawn(n)).expect("present")).fold(0, u64::wrapping_add)
    });
    timed("get, absent", lookups, || {
        (0..lookups).filter(|&n| reader.get(&key(keys + n)).is_some()).count() as u64
    });
    let session = tree.session();
    tree.access_log().sample_every(lookaside_art::DEFAULT_INTERVAL);
    {
        let reader = session.pin();
        timed("get, sampled", lookups, || {
            (0..lookups).map(|n| *reader.get(&drawn(n)).expect("present")).fold(0, u64::wrapping_add)
        });
    }
    timed("get_many of 32", lookups, || {
        let mut sum = 0u64;
        for batch in 0..lookups / 32 {
            let keys: [[u8; 8]; 32] = std::array::from_fn(|i| drawn(batch * 32 + i as u64));
            let mut values = [None; 32];
            reader.get_many(&keys.each_ref(), &mut values);
            sum = values.iter().fold(sum, |sum, value| sum.wrapping_add(*value.expect("present")));
        }
        sum
    });
    scan(&reader, "range", keys, lookups);
    timed("replace", lookups / 4, || {
        (0..lookups / 4).filter(|&n| reader.insert(&drawn(n), n).expect("room").is_some()).count() as u64
    });
    timed("remove", lookups / 4, || {
        (0..lookups / 4).filter(|&n| reader.remove(&key(n)).is_some()).count() as u64
    });
    drop(reader);
    drop(session);

    // A hot set of one key in 256, spread over the whole tree, before and after it is moved together.
    let hot = |n: u64| key((number(n ^ 0x55AA) % (keys / 256)) * 256 + 255);
    let look = |what: &str| {
        let reader = tree.pin();
        for _ in 0..2 {
            timed(what, lookups, || {
                (0..lookups)
                    .filter_map(|n| reader.get(&hot(n)))
                    .fold(0, |sum: u64, value| sum.wrapping_add(*value))
            });
        }
    };
    look("hot get, scattered");
    let wanted: Vec<_> = (0..keys / 256).map(|n| key(n * 256 + 255)).collect();
    let assessment = tree.assess(&wanted);
    let mut reorganization = tree.reorganization(wanted.clone());
    timed("reorganise (keys)", keys / 256, || {
        while reorganization.step(1024).is_continue() {}
        reorganization.done().keys as u64
    });
    let done = reorganization.done();
    timed(&format!("{assessment:?} {:?} {done:?}", tree.assess(&wanted)), 0, || 0);
    look("hot get, together");
    drop(reorganization);
    if std::env::args().nth(4).is_some_and(|only| only.starts_with("range")) {
        // All of it in the order of the keys: what the best of layouts gives.
        let mut ascending = tree.reorganization(tree.pin().iter().map(|(key, _)| *key).collect());
        while ascending.step(1024).is_continue() {}
        scan(&tree.pin(), "range, laid in order", keys, lookups);
    }
    drop(tree);

    if std::env::args().nth(4).is_some_and(|only| only.starts_with("range")) {
        let mut tree = std::collections::BTreeMap::new();
        (0..keys).for_each(|n| assert_eq!(tree.insert(number(n), n), None));
        for entries in LENGTHS {
            let scans = lookups / entries as u64;
            timed(&format!("range of {entries}, BTreeMap"), scans, || {
                let range = |n| {
                    let from = number(number(n ^ 0xABCD_EF00) % keys);
                    tree.range(from..).take(entries).fold(0u64, |sum, (_, value)| sum.wrapping_add(*value))
                };
                (0..scans).map(range).fold(0, u64::wrapping_add)
            });
        }
    }

    let mut tree = OwnedTree::<[u8; 8], u64>::with_config(&config).expect("memory for a tree");
    timed("owned insert", keys, || {
        (0..keys).filter(|&n| tree.insert(&key(n), n).expect("room").is_some()).count() as u64
    });
    timed("owned get", lookups, || {
        (0..lookups).map(|n| *tree.get(&drawn(n)).expect("present")).fold(0, u64::wrapping_add)
    });
}
