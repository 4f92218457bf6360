//! Lookups of hot keys, one at a time and in batches: the index alone, and a map with a table before it.
//!
//! `cargo bench -p lookaside`. For a first impression: the laboratory measures, and callgrind counts.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use lookaside::{Config, Map, OwnedMap, RwLock};

const RECORDS: u64 = 1_000_000;
/// Keys that are asked for.
const HOT: u64 = 50_000;
const BATCH: usize = 64;

/// A key without order, of a hot record.
fn key(n: u64) -> u64 {
    (n % HOT * 19).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn batches() -> impl FnMut() -> [u64; BATCH] {
    let mut next = 0_u64;
    move || {
        next += 1;
        std::array::from_fn(|i| {
            key((next * BATCH as u64 + i as u64).wrapping_mul(0x5851_F42D_4C95_7F2D) >> 16)
        })
    }
}

fn lookups(criterion: &mut Criterion) {
    let number = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let alone: BTreeMap<u64, u64> = (0..RECORDS).map(|n| (number(n), n)).collect();
    let config = Config::with_size(4 << 20);
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &config).expect("a table");
    let mut owned = OwnedMap::with_index(BTreeSet::new(), &config).expect("a table");
    for n in 0..RECORDS {
        map.insert(number(n), n);
        owned.insert(number(n), n);
    }
    let reader = map.pin();
    for n in 0..4 * HOT {
        assert!(reader.get(&key(n)).is_some() && owned.get(&key(n)).is_some());
    }

    let mut group = criterion.benchmark_group("hot keys");
    group.throughput(Throughput::Elements(BATCH as u64));
    let mut bench = |name: &str, lookup: &dyn Fn(&[u64; BATCH]) -> u64| {
        group.bench_function(name, |bencher| {
            bencher.iter_batched_ref(batches(), |keys| black_box(lookup(keys)), BatchSize::SmallInput);
        });
    };
    bench("BTreeMap", &|keys| keys.iter().map(|key| alone[key]).sum());
    bench("Map", &|keys| keys.iter().map(|key| reader.get(key).expect("there")).sum());
    bench("Map, pinned for each", &|keys| keys.iter().map(|key| *map.pin().get(key).expect("there")).sum());
    bench("OwnedMap", &|keys| keys.iter().map(|key| owned.get(key).expect("there")).sum());
    bench("Map, in batches", &|keys| {
        let mut found = [None; BATCH];
        reader.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| value.expect("there")).sum()
    });
    bench("OwnedMap, in batches", &|keys| {
        let mut found = [None; BATCH];
        owned.get_many(&keys.each_ref(), &mut found);
        found.iter().map(|value| value.expect("there")).sum()
    });
    group.finish();
}

criterion_group!(benches, lookups);
criterion_main!(benches);
