//! Lookups, ranges and insertions of random 64-bit keys.
//!
//! `cargo bench -p lookaside-art`. For a first impression: the laboratory measures, and callgrind counts.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lookaside_art::{Tree, encode};

const KEYS: u64 = 1_000_000;
const BATCH: usize = 64;

fn key(n: u64) -> [u8; 8] {
    encode::u64((n % KEYS).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn batches() -> impl FnMut() -> [[u8; 8]; BATCH] {
    let mut next = 0_u64;
    move || {
        next += 1;
        std::array::from_fn(|i| {
            key((next * BATCH as u64 + i as u64).wrapping_mul(0x5851_F42D_4C95_7F2D) >> 16)
        })
    }
}

fn lookups(criterion: &mut Criterion) {
    let tree = Tree::<[u8; 8], u64>::new().expect("memory");
    let reader = tree.pin();
    for n in 0..KEYS {
        reader.insert(&key(n), n).expect("room");
    }
    let mut group = criterion.benchmark_group("1 M random keys");
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut bench = |name: &str, lookup: &dyn Fn(&[[u8; 8]; BATCH]) -> u64| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(batches(), |keys| black_box(lookup(keys)), BatchSize::SmallInput);
        });
    };
    bench("one at a time", &|keys| keys.iter().map(|key| reader.get(key).expect("there")).sum());
    bench("in batches", &|keys| {
        let mut found = [None; BATCH];
        reader.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| value.expect("there")).sum()
    });
    bench("replaced", &|keys| {
        keys.iter().map(|key| *reader.insert(key, 1).expect("room").expect("there")).sum()
    });
    group.throughput(Throughput::Elements(100 * BATCH as u64));
    group.bench_function("ranges of 100", |bencher| {
        let scan = |keys: &mut [[u8; 8]; BATCH]| {
            let range = |key: &[u8; 8]| {
                reader.range(key..).take(100).fold(0, |sum: u64, (_, n)| sum.wrapping_add(*n))
            };
            keys.iter().map(range).fold(0, u64::wrapping_add)
        };
        bencher.iter_batched_ref(batches(), |keys| black_box(scan(keys)), BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group!(benches, lookups);
criterion_main!(benches);
