//! Lookups of keys that are there and of keys that are not, one at a time and in batches.
//!
//! `cargo bench -p lookaside-cuckoo`. For a first impression: the laboratory measures, and callgrind counts.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lookaside_cuckoo::{Config, Hashes, Location, Table};

const KEYS: u64 = 4_000_000;
const BATCH: usize = 64;

/// An even hash (splitmix64).
fn hash(key: u64) -> u64 {
    let z = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Keys from `first` on.
fn batches(first: u64) -> impl FnMut() -> [u64; BATCH] {
    let mut next = 0_u64;
    move || {
        next += 1;
        std::array::from_fn(|i| first + hash(next * BATCH as u64 + i as u64) % KEYS)
    }
}

fn lookups(criterion: &mut Criterion) {
    let config = Config::new().with_hashes(Hashes::Avalanching);
    let table: Table = Table::with_capacity(KEYS as usize, &config).expect("memory");
    // Keys that are their own locations.
    let hasher = |at: Location| hash(at.get());
    for key in 0..KEYS {
        table.insert_unique(hash(key), Location::new(key).expect("48 bits"), hasher).expect("room");
    }
    let mut group = criterion.benchmark_group("4 M keys");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (kind, first) in [("found", 0), ("not found", KEYS)] {
        let single = |keys: &[u64; BATCH]| {
            keys.iter().filter(|key| table.find(hash(**key), |at| at.get() == **key).is_some()).count()
        };
        let batched = |keys: &[u64; BATCH]| {
            let (hashes, mut found) = (keys.map(hash), [None; BATCH]);
            table.find_many(hasher, &hashes, |i, at| at.get() == keys[i], &mut found);
            found.iter().flatten().count()
        };
        group.bench_function(format!("{kind}, one at a time"), |bencher| {
            bencher.iter_batched_ref(batches(first), |keys| black_box(single(keys)), BatchSize::SmallInput);
        });
        group.bench_function(format!("{kind}, in batches"), |bencher| {
            bencher.iter_batched_ref(batches(first), |keys| black_box(batched(keys)), BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, lookups);
criterion_main!(benches);
