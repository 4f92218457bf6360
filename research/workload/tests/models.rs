//! The published models draw what their publications say. Tolerances are five standard deviations of chance, with
//! fixed seeds.

use lookaside_workload::cachelib::Workload;
use lookaside_workload::facebook::{self, EtcKeySizes, EtcValueSizes};
use lookaside_workload::sizes::{Fixed, GeneralisedPareto, Histogram, Sizes};
use lookaside_workload::{DistributionError, generator};

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
        same(EtcKeySizes.quantile(u), 30.7984 + 8.20449 * (e.powf(-0.078688) - 1.0) / 0.078688);
        let tail = 0.44155 + (1.0 - 0.44155) * u;
        same(EtcValueSizes.quantile(tail), 15.0 + pareto(214.476, 0.348238, 1.0 - u));
    }
}

#[test]
fn etc_key_sizes_have_the_mean_of_their_distribution() {
    let keys: Vec<u64> = (0..500_000).map(|record| EtcKeySizes.for_record(record)).collect();
    // mu + sigma (Gamma(1 - k) - 1) / k with Gamma(0.921312) = 1.0520270; cutting to whole bytes takes one half.
    let mean: f64 = 30.7984 + 8.20449 * (1.052_027 - 1.0) / 0.078688;
    assert!((36.2..36.3).contains(&mean), "{mean}");
    assert_mean(&keys, mean - 0.5);
    assert!(keys.iter().all(|size| (1..=250).contains(size)));
}

#[test]
fn etc_value_sizes_are_the_table_and_then_the_tail() {
    const DRAWS: usize = 1_000_000;
    let mut rng = generator::seeded(1);
    let sizes: Vec<u64> = (0..DRAWS).map(|_| EtcValueSizes.draw(&mut rng)).collect();
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
    assert_eq!(EtcValueSizes.quantile(1.0 - 1e-16), facebook::LARGEST_VALUE);

    // A key keeps its size, and the sizes that keys have are those that are drawn.
    let kept: Vec<u64> = (0..200_000u32).map(|key| EtcValueSizes.for_key(&key.to_le_bytes())).collect();
    assert_share(kept.iter().filter(|size| **size < 15).count(), kept.len(), 0.44155);
    assert_eq!(kept[7], EtcValueSizes.for_key(&7u32.to_le_bytes()));
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
fn sizes_are_scaled() {
    let sizes = Histogram::new(&[31, 63, 1000], &[1.0, 1.0, 1.0]).unwrap();
    let scaled = sizes.clone().scaled(2.5).unwrap();
    assert_eq!([0.0, 0.5, 0.9].map(|at| scaled.quantile(at)), [78, 158, 2500]);
    assert_eq!(scaled.for_key(b"a"), scaled.for_key(b"a"));

    for factor in [-1.0, f64::NAN, f64::INFINITY] {
        let error = sizes.clone().scaled(factor).unwrap_err();
        assert!(matches!(error, DistributionError::Factor { .. }), "{error:?}");
    }
    // Beyond what a number holds, a size is the largest number.
    assert_eq!(Fixed(u64::MAX).scaled(1e300).unwrap().quantile(0.5), u64::MAX);
    assert_eq!(GeneralisedPareto { location: 0.0, scale: 1e300, shape: 2.0 }.quantile(0.999), u64::MAX);
}

#[test]
fn cachelib_workloads_draw_ranks_and_lone_gets() {
    const DRAWS: usize = 200_000;
    let mut workload = Workload::published("kvcache_reg").unwrap();
    let keys = workload.popularity().records();
    let mut rng = generator::seeded(7);
    let drawn: Vec<_> = (0..DRAWS).map(|_| workload.draw(&mut rng)).collect();
    let (others, lone): (Vec<u64>, Vec<u64>) = drawn.into_iter().partition(|record| *record < keys);
    // As weights these were published, which add up to 1.12.
    assert_share(lone.len(), DRAWS, 0.134_716_88 / (0.134_716_88 + 0.984_528_31));
    let numbers = (keys..).take(lone.len());
    assert!(lone.into_iter().eq(numbers), "a lone get is for a key that nobody asks for again");
    let hottest = others.iter().filter(|record| **record == 0).count();
    assert_share(hottest, others.len(), workload.popularity().share_of_hottest(1));
}
