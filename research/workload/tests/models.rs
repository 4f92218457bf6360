//! The published models draw what their publications say. Tolerances are five standard deviations of chance, with
//! fixed seeds.

use std::path::Path;

use lookaside_workload::cachelib::{CachelibError, OnMiss, Operation, Workload};
use lookaside_workload::mixgraph::{self, MixGraph};
use lookaside_workload::operation::{CacheOperation, IndexOperation};
use lookaside_workload::popularity::{Popularity, Zipfian};
use lookaside_workload::sizes::{Fixed, GeneralisedPareto, Histogram, Sizes};
use lookaside_workload::ycsb::{CoreWorkload, Ycsb};
use lookaside_workload::{DistributionError, facebook, generator};
use rand::distr::Distribution;

#[track_caller]
fn assert_share(hits: usize, draws: usize, share: f64) {
    let expected = share * draws as f64;
    let deviation = (expected * (1.0 - share)).sqrt();
    assert!((hits as f64 - expected).abs() < 5.0 * deviation, "{hits} of {draws}, expected {expected:.0}");
}

/// Fails unless the mean of `values` is within five standard errors of `expected`.
#[track_caller]
fn assert_mean(values: &[u64], expected: f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<u64>() as f64 / n;
    let variance = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / n;
    let error = (variance / n).sqrt();
    assert!(
        (mean - expected).abs() < 5.0 * error,
        "mean {mean}, expected {expected}, standard error {error}"
    );
}

/// The formulas as they are published, with their constants, at a thousand fractions each.
#[test]
fn sizes_are_those_of_the_published_formulas() {
    let pareto = |scale: f64, k: f64, u: f64| scale * (u.powf(-k) - 1.0) / k;
    // Two ways to compute a power differ in the last digits, so a size may be the next byte.
    let same = |found: u64, formula: f64| assert!((found as f64 - (formula - 0.5)).abs() < 0.5 + 1e-6);
    for i in 0..1000 {
        let u = (f64::from(i) + 0.5) / 1000.0;
        let e = -u.ln();
        same(facebook::EtcKeySizes.quantile(u), 30.7984 + 8.20449 * (e.powf(-0.078688) - 1.0) / 0.078688);
        let tail = 0.44155 + (1.0 - 0.44155) * u;
        same(facebook::EtcValueSizes.quantile(tail), 15.0 + pareto(214.476, 0.348238, 1.0 - u));
        same(mixgraph::VALUE_SIZES.quantile(u), pareto(25.45, 0.2615, 1.0 - u));
        same(mixgraph::SCAN_LENGTHS.quantile(u), pareto(14.236, 2.517, 1.0 - u));
    }
}

#[test]
fn etc_key_sizes_have_the_mean_of_their_distribution() {
    let keys: Vec<u64> = (0..500_000).map(|record| facebook::etc().key_sizes.for_record(record)).collect();
    // mu + sigma (Gamma(1 - k) - 1) / k with Gamma(0.921312) = 1.0520270; cutting to whole bytes takes one half.
    let mean: f64 = 30.7984 + 8.20449 * (1.052_027 - 1.0) / 0.078688;
    assert!((36.2..36.3).contains(&mean), "{mean}");
    assert_mean(&keys, mean - 0.5);
    assert!(keys.iter().all(|size| (1..=250).contains(size)));
}

#[test]
fn etc_value_sizes_are_the_table_and_then_the_tail() {
    const DRAWS: usize = 1_000_000;
    let etc = facebook::etc();
    let mut rng = generator::seeded(1);
    let sizes: Vec<u64> = (0..DRAWS).map(|_| facebook::EtcValueSizes.draw(&mut rng)).collect();
    let count = |size| sizes.iter().filter(|drawn| **drawn == size).count();
    for (size, share) in
        [(0, 0.00536), (1, 0.00047), (2, 0.17820), (3, 0.09239), (11, 0.08989), (14, 0.01980)]
    {
        assert_share(count(size), DRAWS, share);
    }
    assert_share(sizes.iter().filter(|size| **size < 15).count(), DRAWS, 0.44155);

    // The published mean of the tail, 15 + sigma / (1 - k), less one half for whole bytes.
    let tail: Vec<u64> = sizes.iter().copied().filter(|size| *size >= 15).collect();
    assert_mean(&tail, 15.0 + 214.476 / (1.0 - 0.348238) - 0.5);
    // And its median, 15 + sigma (2^k - 1) / k.
    let median = 15.0 + 214.476 * (2f64.powf(0.348238) - 1.0) / 0.348238;
    assert_share(tail.iter().filter(|size| (**size as f64) < median).count(), tail.len(), 0.5);
    assert_eq!(facebook::EtcValueSizes.quantile(1.0 - 1e-16), facebook::LARGEST_VALUE);

    // A key keeps its size, and the sizes that keys have are those that are drawn.
    let kept: Vec<u64> = (0..200_000u32).map(|key| etc.value_sizes.for_key(&key.to_le_bytes())).collect();
    assert_share(kept.iter().filter(|size| **size < 15).count(), kept.len(), 0.44155);
    assert_eq!(kept[7], facebook::etc().value_sizes.for_key(&7u32.to_le_bytes()));
}

#[test]
fn etc_updates_once_for_thirty_gets_and_usr_hardly_ever() {
    const DRAWS: usize = 300_000;
    let popularity = Zipfian::new(1000, 0.99).unwrap();
    let mut rng = generator::seeded(2);
    for (model, writes) in [(facebook::etc(), 1.0 / 31.0), (facebook::usr(), 0.002)] {
        let drawn: Vec<_> = (0..DRAWS).map(|_| model.draw(&popularity, &mut rng)).collect();
        assert_share(drawn.iter().filter(|r| r.operation == CacheOperation::Set).count(), DRAWS, writes);
        assert_share(drawn.iter().filter(|r| r.record == 0).count(), DRAWS, popularity.share_of_hottest(1));
    }
    let usr = facebook::usr();
    let long = (0..100_000).filter(|record| match usr.key_sizes.for_record(*record) {
        16 => false,
        21 => true,
        other => panic!("a key of {other} bytes"),
    });
    assert_share(long.count(), 100_000, 0.5);
    let mut key = Vec::new();
    usr.key(7, &mut key);
    assert_eq!(key.len() as u64, usr.key_sizes.for_record(7));
    assert_eq!(usr.value_sizes.for_key(&key), 2);
}

/// A record's key size tells nothing of its value size.
#[test]
fn key_and_value_sizes_are_independent() {
    const RECORDS: usize = 400_000;
    let halves = Histogram::new(&[0, 1], &[1.0, 1.0]).unwrap();
    let mut both = 0;
    for record in 0..RECORDS as u64 {
        both += halves.for_record(record) * halves.for_key(&record.to_le_bytes());
    }
    assert_share(both as usize, RECORDS, 0.25);
}

#[test]
fn sizes_are_scaled_and_clamped() {
    let sizes = Histogram::new(&[31, 63, 1000], &[1.0, 1.0, 1.0]).unwrap();
    let scaled = sizes.clone().scaled(2.5).unwrap();
    assert_eq!([0.0, 0.5, 0.9].map(|at| scaled.quantile(at)), [78, 158, 2500]);
    let clamped = scaled.clamped(100, 2000).unwrap();
    assert_eq!([0.0, 0.5, 0.9].map(|at| clamped.quantile(at)), [100, 158, 2000]);
    assert_eq!(clamped.for_key(b"a"), clamped.for_key(b"a"));

    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        let error = sizes.clone().scaled(factor).unwrap_err();
        assert!(matches!(error, DistributionError::Factor { .. }), "{error:?}");
    }
    let error = sizes.clamped(2, 1).unwrap_err();
    assert_eq!(error, DistributionError::Range { smallest: 2, largest: 1 });
    // Beyond what a number holds, a size is the largest number.
    assert_eq!(Fixed(u64::MAX).scaled(1e300).unwrap().quantile(0.5), u64::MAX);
    assert_eq!(GeneralisedPareto { location: 0.0, scale: 1e300, shape: 2.0 }.quantile(0.999), u64::MAX);
}

#[test]
fn mixgraph_mixes_gets_puts_and_cut_scans() {
    const DRAWS: usize = 300_000;
    let model = MixGraph::new(Popularity::uniform(100).unwrap());
    let mut rng = generator::seeded(3);
    let drawn: Vec<_> = (0..DRAWS).map(|_| model.sample(&mut rng)).collect();
    let count = |wanted: fn(&IndexOperation) -> bool| drawn.iter().filter(|r| wanted(&r.operation)).count();
    assert_share(count(|operation| *operation == IndexOperation::Read), DRAWS, 0.83);
    assert_share(count(|operation| *operation == IndexOperation::Update), DRAWS, 0.14);
    let scans: Vec<u64> = drawn
        .iter()
        .filter_map(|request| match request.operation {
            IndexOperation::Scan { records } => Some(u64::from(records)),
            _ => None,
        })
        .collect();
    assert_share(scans.len(), DRAWS, 0.03);
    assert!(scans.iter().all(|records| (1..=mixgraph::LONGEST_SCAN).contains(records)));
    // The distribution function of the tail: above x lie (1 + k x / sigma)^(-1/k).
    let above = |x: f64| (1.0 + 2.517 * x / 14.236f64).powf(-1.0 / 2.517);
    assert_share(scans.iter().filter(|records| **records >= 100).count(), scans.len(), above(100.0));
    assert_share(scans.iter().filter(|records| **records == 10_000).count(), scans.len(), above(10_000.0));

    let values: Vec<u64> = (0..DRAWS).map(|_| mixgraph::VALUE_SIZES.draw(&mut rng)).collect();
    // Cut to whole bytes: the sum over x of the share above x, for x = 1, 2, ...
    let mean: f64 = (1..100_000).map(|x| (1.0 + 0.2615 * f64::from(x) / 25.45).powf(-1.0 / 0.2615)).sum();
    assert!((mean - (25.45 / (1.0 - 0.2615) - 0.5)).abs() < 0.01);
    assert_mean(&values, mean);
}

#[test]
fn ycsb_mixes_are_those_of_the_core_workloads() {
    const DRAWS: usize = 200_000;
    const RECORDS: u64 = 10_000;
    for core in CoreWorkload::ALL {
        let mut workload = Ycsb::new(core, RECORDS, DRAWS as u64).unwrap();
        let mut rng = generator::seeded(4);
        let mut next = RECORDS;
        let mut counts = [0; 5];
        let mut lengths = vec![0; 101];
        for _ in 0..DRAWS {
            let before = workload.records();
            let request = workload.draw(&mut rng);
            if request.operation == IndexOperation::Insert {
                assert_eq!(request.record, next, "inserts are numbered without a gap");
                next += 1;
            } else {
                assert!(request.record < before, "only what is there is asked for");
            }
            counts[match request.operation {
                IndexOperation::Read => 0,
                IndexOperation::Update => 1,
                IndexOperation::Insert => 2,
                IndexOperation::Scan { records } => {
                    lengths[records as usize] += 1;
                    3
                }
                IndexOperation::ReadModifyWrite => 4,
            }] += 1;
        }
        assert_eq!(workload.records(), next);
        let shares = match core {
            CoreWorkload::A => [0.5, 0.5, 0.0, 0.0, 0.0],
            CoreWorkload::B => [0.95, 0.05, 0.0, 0.0, 0.0],
            CoreWorkload::C => [1.0, 0.0, 0.0, 0.0, 0.0],
            CoreWorkload::D => [0.95, 0.0, 0.05, 0.0, 0.0],
            CoreWorkload::E => [0.0, 0.0, 0.05, 0.95, 0.0],
            CoreWorkload::F => [0.5, 0.0, 0.0, 0.0, 0.5],
        };
        for (count, share) in counts.into_iter().zip(shares) {
            if share == 0.0 || share == 1.0 {
                assert_eq!(count, (share * DRAWS as f64) as usize, "{core:?}");
            } else {
                assert_share(count, DRAWS, share);
            }
        }
        if core == CoreWorkload::E {
            assert_eq!(lengths[0], 0);
            for length in &lengths[1..] {
                assert_share(*length, counts[3], 0.01);
            }
        }
    }
}

#[test]
fn ycsb_heat_stays_where_it_belongs() {
    const DRAWS: usize = 200_000;
    let mut rng = generator::seeded(5);
    let hottest = |core, rng: &mut _| {
        let mut workload = Ycsb::new(core, 100_000, DRAWS as u64).unwrap();
        let mut hits = std::collections::HashMap::new();
        let (mut newest, mut others) = (0usize, 0usize);
        for _ in 0..DRAWS {
            let last = workload.records() - 1;
            let request = workload.draw(rng);
            if request.operation != IndexOperation::Insert {
                others += 1;
                newest += usize::from(request.record == last);
                *hits.entry(request.record).or_insert(0usize) += 1;
            }
        }
        (*hits.values().max().unwrap(), newest, others)
    };
    for core in [CoreWorkload::A, CoreWorkload::B, CoreWorkload::C, CoreWorkload::F] {
        let (hits, _, others) = hottest(core, &mut rng);
        assert_share(hits, others, 0.0378 + 1e-5);
    }
    // Record numbers above those loaded are drawn again, which heats the others by at most 1 / (1 - 1/6).
    let (hits, _, others) = hottest(CoreWorkload::E, &mut rng);
    let share = hits as f64 / others as f64;
    assert!((0.037..0.0378 * 1.25).contains(&share), "{share}");
    // In D the newest record is the hottest at every moment, with the share of a plain Zipfian over all.
    let (_, newest, others) = hottest(CoreWorkload::D, &mut rng);
    let share = newest as f64 / others as f64;
    let (many, few) = (Zipfian::new(111_000, 0.99).unwrap(), Zipfian::new(99_999, 0.99).unwrap());
    let tolerance = 5.0 * (share / others as f64).sqrt();
    let range = many.share_of_hottest(1) - tolerance..few.share_of_hottest(1) + tolerance;
    assert!(range.contains(&share), "{share} not in {range:?}");
}

#[test]
fn ycsb_ends_its_search_where_hardly_anything_is_there() {
    let mut workload = Ycsb::new(CoreWorkload::E, 1, 1_000_000_000).unwrap();
    let mut rng = generator::seeded(6);
    for _ in 0..10_000 {
        let before = workload.records();
        assert!(workload.draw(&mut rng).record <= before);
    }
    assert_eq!(Ycsb::new(CoreWorkload::E, 0, 10).unwrap_err(), DistributionError::Empty);
    let error = Ycsb::new(CoreWorkload::E, 10, u64::MAX).unwrap_err();
    assert!(matches!(error, DistributionError::TooManyRecords { .. }), "{error:?}");
}

const CONFIG: &str = r#"{"cache_config": {"cacheSizeMB": 8}, "test_config": {
    "enableLookaside": true, "getRatio": 0.7, "loneGetRatio": 0.2, "setRatio": 0.1,
    "keySizeRange": [16, 32], "keySizeRangeProbability": [1.0], "numKeys": 99}}"#;
const POP: &str = r#"{"oneHits": 0.25, "popularityWeights": [10, 30, 60], "popularityBuckets": [10, 1, 4]}"#;
const SIZES: &str = r#"{"valSizeRangeProbability": [1, 3], "valSizeRange": [31, 63]}"#;

fn parse(config: &str, pop: &str, sizes: &str) -> Result<Workload, CachelibError> {
    Workload::parse(Path::new("folder"), config.as_bytes(), pop.as_bytes(), sizes.as_bytes())
}

#[test]
fn cachelib_workloads_draw_their_operations_and_ranks() {
    const DRAWS: usize = 200_000;
    let mut workload = parse(CONFIG, POP, SIZES).unwrap();
    assert_eq!(workload.config().on_miss, OnMiss::Set);
    assert_eq!(workload.config().original_keys, 99);
    assert_eq!(workload.one_hits(), 0.25);
    assert_eq!(workload.popularity().records(), 15);
    assert_eq!(workload.value_sizes().mean(), 55.0);
    assert_eq!(workload.config().key_sizes.quantile(0.0), 16);
    assert_eq!(workload.config().key_sizes.quantile(0.999_999), 31);

    let mut rng = generator::seeded(7);
    let mut ranks = [0; 15];
    let mut lone = 15;
    let (mut gets, mut sets) = (0, 0);
    for _ in 0..DRAWS {
        let request = workload.draw(&mut rng);
        match request.operation {
            Operation::LoneGet => {
                assert_eq!(request.record, lone, "a lone get is for a key that nobody asks for again");
                lone += 1;
                continue;
            }
            Operation::Get => gets += 1,
            Operation::Set => sets += 1,
            other => panic!("{other:?} has no weight"),
        }
        ranks[request.record as usize] += 1;
    }
    assert_share(gets, DRAWS, 0.7);
    assert_share(sets, DRAWS, 0.1);
    // The single key with weight 30 is the hottest, then the four keys with 15 each, then the ten with 1 each.
    for (rank, hits) in ranks.into_iter().enumerate() {
        let weight = match rank {
            0 => 30.0,
            1..=4 => 15.0,
            _ => 1.0,
        };
        assert_share(hits, gets + sets, weight / 100.0);
    }

    // Threads do not share their lone keys.
    let mut only_lone = workload.config().clone();
    (only_lone.gets, only_lone.sets) = (0.0, 0.0);
    let workload = workload.with_config(only_lone).unwrap();
    let first = |thread| workload.for_thread(thread).draw(&mut generator::seeded(1)).record;
    assert_eq!(first(0), 15);
    assert_eq!(first(3), 15 + (3 << 40));
}

#[test]
fn a_cachelib_file_that_is_wrong_is_named() {
    let message = |config: &str, pop: &str, sizes: &str| parse(config, pop, sizes).unwrap_err().to_string();
    let expect = |message: String, parts: &[&str]| {
        assert!(parts.iter().all(|part| message.contains(part)), "{message:?} without one of {parts:?}");
    };
    expect(message("{", POP, SIZES), &["config.json", "line 1"]);
    expect(message(CONFIG, "{}", SIZES), &["pop.json", "oneHits"]);
    expect(
        message(CONFIG, &POP.replace("[10, 30, 60]", "[10]"), SIZES),
        &["pop.json", "3 buckets", "1 weights"],
    );
    expect(
        message(CONFIG, &POP.replace("[10, 30, 60]", "[0, 0, 0]"), SIZES),
        &["pop.json", "nothing to draw"],
    );
    expect(message(CONFIG, POP, &SIZES.replace("[31, 63]", "[63, 31]")), &["sizes.json", "position 1"]);
    expect(message(CONFIG, POP, &SIZES.replace("[31, 63]", "[31]")), &["sizes.json", "1 sizes", "2 weights"]);
    expect(message(&CONFIG.replace("0.7", "-0.7"), POP, SIZES), &["config.json", "-0.7"]);
    let absent = Workload::open("no such folder").unwrap_err();
    assert!(matches!(&absent, CachelibError::Read { path, .. } if path.ends_with("config.json")), "{absent}");
}
