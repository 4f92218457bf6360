//! What mixing costs a lookup: the same table with hashes that are mixed and with hashes that are trusted, in turn.
//!
//!     cargo run --release -p lookaside-cuckoo --example hash_cost             # the best of short turns A B A B
//!     hash_cost any 10000 1000000                        # one of them, for valgrind --tool=callgrind

#![allow(clippy::print_stdout, reason = "a measurement says what it found")]

use std::hint::black_box;
use std::time::Instant;

use lookaside_cuckoo::{Config, Growth, Hashes, Location, Table};

/// As good a hash as there is.
#[inline(always)]
fn hash(key: u64) -> u64 {
    let mixed = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

fn hasher(location: Location) -> u64 {
    hash(location.get())
}

const BATCH: usize = 16;

fn filled(keys: u64, hashes: Hashes) -> Table {
    let config = Config::new().with_growth(Growth::Fixed).with_hashes(hashes);
    let table: Table = Table::with_capacity(keys as usize, &config).expect("memory");
    for key in 0..keys {
        let at = Location::new(key).expect("small");
        table.insert_or_get(hash(key), at, |at| at.get() == key, hasher).expect("room");
    }
    table
}

fn lookups(table: &Table, keys: &[u64]) -> u64 {
    keys.iter().map(|&key| u64::from(table.find(hash(key), |at| at.get() == key).is_some())).sum()
}

fn batches(table: &Table, keys: &[u64]) -> u64 {
    let mut found = [None; BATCH];
    keys.as_chunks::<BATCH>()
        .0
        .iter()
        .map(|keys| {
            let hashes = keys.map(hash);
            table.find_many(hasher, &hashes, |i, at| at.get() == keys[i], &mut found);
            found.iter().flatten().count() as u64
        })
        .sum()
}

fn requests(keys: u64, many: usize) -> Vec<u64> {
    (0..many as u64).map(|request| hash(request ^ 0x5555_0000) % keys).collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [which, keys, many] = &arguments[..] {
        let hashes = if which.starts_with("any") { Hashes::Any } else { Hashes::Avalanching };
        let keys = keys.parse().expect("a number of keys");
        let requests = requests(keys, many.parse().expect("a number of lookups"));
        let table = filled(keys, hashes);
        let found =
            if which.ends_with("batch") { batches(&table, &requests) } else { lookups(&table, &requests) };
        println!("{found}");
        return;
    }
    for keys in [10_000, 4_000_000] {
        let tables = [Hashes::Any, Hashes::Avalanching].map(|hashes| filled(keys, hashes));
        let requests = requests(keys, 4_000_000);
        // Short enough that some are not interrupted on a machine with other things to do.
        let parts: Vec<&[u64]> = requests.chunks_exact(requests.len() / 100).collect();
        for (form, run) in [("single", lookups as fn(&Table, &[u64]) -> u64), ("batches", batches)] {
            let mut rates = [const { Vec::new() }; 2];
            for turn in 0..6 {
                for (part, table) in parts.iter().flat_map(|part| (0..2).map(move |table| (part, table))) {
                    let start = Instant::now();
                    black_box(run(&tables[(table + turn) % 2], part));
                    rates[(table + turn) % 2].push(part.len() as f64 / start.elapsed().as_secs_f64() / 1e6);
                }
            }
            // The ninth decile: neither interrupted nor lucky.
            let [mixed, trusted] = rates.map(|mut rates| {
                rates.sort_by(f64::total_cmp);
                rates[rates.len() * 9 / 10]
            });
            println!(
                "{keys} keys, {form}: {mixed:.1} M/s mixed, {trusted:.1} trusted, ratio {:.3}",
                mixed / trusted
            );
        }
    }
}
