//! What is drawn has the distribution that its documentation states.
//!
//! Seeds are fixed, so a test gives the same answer every time. Tolerances are those of chance: five standard
//! deviations for a share, and for a chi-square statistic the value that one honest generator in a million exceeds.

use std::collections::HashMap;

use lookaside_workload::DistributionError;
use lookaside_workload::generator;
use lookaside_workload::popularity::{
    LARGEST_RECORDS, Latest, Permutation, Permuted, Popularity, ScrambledZipfian, Zipfian,
};
use rand::RngExt;
use rand::distr::Distribution;

/// Fails unless `hits` of `draws` is within five standard deviations of `share`.
#[track_caller]
fn assert_share(hits: u64, draws: u64, share: f64) {
    let expected = share * draws as f64;
    let deviation = (expected * (1.0 - share)).sqrt();
    let off = (hits as f64 - expected) / deviation;
    assert!(off.abs() < 5.0, "{hits} of {draws}, expected {expected:.0}: {off:.1} standard deviations");
}

/// Fails if chi-square says that `hits` do not come from `shares`, which add up to 1.
#[track_caller]
fn assert_distribution(hits: &[u64], shares: &[f64]) {
    assert_eq!(hits.len(), shares.len());
    let draws = hits.iter().sum::<u64>() as f64;
    // Classes that expect fewer than ten draws are too small for chi-square: they are taken together.
    let mut classes = vec![(0.0, 0.0)];
    for (hit, share) in hits.iter().zip(shares) {
        if classes.last().is_some_and(|(_, expected)| *expected >= 10.0) {
            classes.push((0.0, 0.0));
        }
        let (found, expected) = classes.last_mut().unwrap();
        *found += *hit as f64;
        *expected += share * draws;
    }
    if classes.len() > 1 && classes.last().unwrap().1 < 10.0 {
        let (found, expected) = classes.pop().unwrap();
        let last = classes.last_mut().unwrap();
        (last.0, last.1) = (last.0 + found, last.1 + expected);
    }
    assert!(classes.len() > 1, "nothing to compare");
    let chi_square: f64 = classes.iter().map(|(found, expected)| (found - expected).powi(2) / expected).sum();
    // Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is about normal. 4.75 standard
    // deviations leave one in a million.
    let freedom = (classes.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - spread + 4.75 * spread.sqrt()).powi(3);
    assert!(chi_square < limit, "chi-square {chi_square:.1}, limit {limit:.1}, {} classes", classes.len());
}

/// Ranks 0 to 9 alone, then classes that each end a quarter higher.
fn classes(n: u64) -> Vec<u64> {
    let mut ends: Vec<u64> = (1..=10.min(n)).collect();
    while *ends.last().unwrap() < n {
        let last = *ends.last().unwrap();
        ends.push((last + last / 4 + 1).min(n));
    }
    ends
}

fn count_classes(draw: impl FnMut() -> u64, draws: usize, ends: &[u64]) -> Vec<u64> {
    let mut hits = vec![0; ends.len()];
    for rank in std::iter::repeat_with(draw).take(draws) {
        hits[ends.partition_point(|end| *end <= rank)] += 1;
    }
    hits
}

/// The share of each class from the shares of all classes up to it.
fn differences(sums: &[f64]) -> Vec<f64> {
    let before = std::iter::once(&0.0).chain(sums);
    sums.iter().zip(before).map(|(sum, before)| (sum - before) / sums[sums.len() - 1]).collect()
}

/// zeta(n, theta) term by term, and the sums on the way at `ends`.
fn naive_sums(ends: &[u64], theta: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut i = 0;
    ends.iter()
        .map(|end| {
            while i < *end {
                i += 1;
                sum += (i as f64).powf(-theta);
            }
            sum
        })
        .collect()
}

#[test]
fn plain_zipfian_follows_ycsbs_formula_draw_by_draw() {
    for (n, theta) in [(1_000_000u64, 0.99f64), (1000, 0.5), (3, 0.8), (2, 0.99), (1, 0.99)] {
        // The formula as it is published, with the sums term by term.
        let zeta_n = naive_sums(&[n], theta)[0];
        let zeta_2 = 1.0 + 0.5f64.powf(theta);
        let alpha = 1.0 / (1.0 - theta);
        let eta = (1.0 - (2.0 / n as f64).powf(1.0 - theta)) / (1.0 - zeta_2 / zeta_n);
        let formula = |u: f64| {
            if u * zeta_n < 1.0 {
                0
            } else if u * zeta_n < 1.0 + 0.5f64.powf(theta) {
                1
            } else {
                (n as f64 * (eta * u - eta + 1.0).powf(alpha)).floor() as u64
            }
        };
        let zipfian = Zipfian::new(n, theta).unwrap();
        let (mut draws, mut uniforms) = (generator::seeded(1), generator::seeded(1));
        let mut differing = 0;
        for _ in 0..200_000 {
            let (drawn, expected) = (zipfian.sample(&mut draws), formula(uniforms.random()));
            // Two ways to add a million terms differ in the last digits; then a rank may be the next one.
            assert!(drawn.abs_diff(expected) <= 1, "n {n}, theta {theta}: {drawn} instead of {expected}");
            differing += u32::from(drawn != expected);
        }
        assert!(differing < 5, "n {n}, theta {theta}: {differing} of 200,000 differ");
    }
}

#[test]
fn plain_zipfian_over_a_million_gives_its_hottest_key_six_and_a_half_percent() {
    const DRAWS: usize = 2_000_000;
    let zipfian = Zipfian::new(1_000_000, 0.99).unwrap();
    assert!((zipfian.share_of_hottest(1) - 0.065).abs() < 0.0005);

    let ends = classes(1_000_000);
    let mut rng = generator::seeded(2);
    let hits = count_classes(|| zipfian.sample(&mut rng), DRAWS, &ends);
    assert_share(hits[0], DRAWS as u64, 1.0 / naive_sums(&[1_000_000], 0.99)[0]);

    let bounds: Vec<f64> = ends.iter().map(|end| zipfian.share_of_hottest(*end)).collect();
    assert_distribution(&hits, &differences(&bounds));
}

#[test]
fn exact_zipfian_is_the_power_law_for_every_exponent() {
    const DRAWS: usize = 300_000;
    let exponents = [0.0, 0.3, 0.5, 0.99, 1.0 - 1e-7, 1.0, 1.0 + 1e-12, 1.0 + 1e-7, 1.2117, 1.5, 2.0994, 3.0];
    for theta in exponents {
        for n in [2, 3, 10, 1000, 1_000_000] {
            let zipfian = Zipfian::exact(n, theta).unwrap();
            let ends = classes(n);
            let sums = naive_sums(&ends, theta);
            let total = *sums.last().unwrap();
            let mut rng = generator::seeded(n ^ theta.to_bits());
            let hits = count_classes(|| zipfian.sample(&mut rng), DRAWS, &ends);
            assert_distribution(&hits, &differences(&sums));
            for (end, sum) in ends.iter().zip(&sums) {
                // A million additions, the largest terms first, lose a few digits.
                assert!((zipfian.share_of_hottest(*end) - sum / total).abs() < 1e-10);
            }
        }
    }
}

/// From an exponent of 1 on, YCSB's formula does not hold and the exact method draws.
#[test]
fn the_method_changes_where_ycsbs_formula_ends() {
    for theta in [1.0, 1.2, 3.0] {
        assert_eq!(Zipfian::new(1000, theta).unwrap(), Zipfian::exact(1000, theta).unwrap());
    }
    for theta in [0.0, 0.99, 0.9999] {
        assert_ne!(Zipfian::new(1000, theta).unwrap(), Zipfian::exact(1000, theta).unwrap());
    }
    // Near the change both are close: YCSB's formula approximates the power law.
    let (formula, exact) = (Zipfian::new(100_000, 0.9999).unwrap(), Zipfian::exact(100_000, 0.9999).unwrap());
    for hottest in [1, 2, 10, 1000, 50_000] {
        let (a, b) = (formula.share_of_hottest(hottest), exact.share_of_hottest(hottest));
        assert!((a - b).abs() < 0.02, "{hottest} hottest: {a} and {b}");
    }
}

#[test]
fn scrambled_zipfian_follows_ycsbs_formula_draw_by_draw() {
    let (items, theta, zeta_n) = (1e10f64, 0.99f64, 26.46902820178302);
    let alpha = 1.0 / (1.0 - theta);
    let eta = (1.0 - (2.0 / items).powf(1.0 - theta)) / (1.0 - (1.0 + 0.5f64.powf(theta)) / zeta_n);
    let rank = |u: f64| {
        if u * zeta_n < 1.0 {
            0
        } else if u * zeta_n < 1.0 + 0.5f64.powf(theta) {
            1
        } else {
            (items * (eta * u - eta + 1.0).powf(alpha)).floor() as u64
        }
    };
    let hash = |rank: u64| {
        let mut hash = 0xCBF29CE484222325u64;
        for shift in (0..64).step_by(8) {
            hash ^= (rank >> shift) & 0xff;
            hash = hash.wrapping_mul(1_099_511_628_211);
        }
        hash
    };
    let scrambled = ScrambledZipfian::new(1_000_003).unwrap();
    let (mut draws, mut uniforms) = (generator::seeded(9), generator::seeded(9));
    for _ in 0..200_000 {
        assert_eq!(scrambled.sample(&mut draws), hash(rank(uniforms.random())) % 1_000_003);
    }
    // Another exponent has its own sum.
    let other = ScrambledZipfian::with_theta(1_000_000, 0.8).unwrap();
    let share = Zipfian::new(10_000_000_000, 0.8).unwrap().share_of_hottest(1);
    let hits = (0..500_000).filter(|_| other.sample(&mut draws) == other.record(0)).count();
    assert_share(hits as u64, 500_000, share + 1e-6);
}

#[test]
fn scrambled_zipfian_gives_its_hottest_key_3_78_percent_for_every_n() {
    const DRAWS: u64 = 1_000_000;
    for n in [100_000, 1_000_000, 12_345_678] {
        let scrambled = ScrambledZipfian::new(n).unwrap();
        let mut rng = generator::seeded(3);
        let mut hits = HashMap::new();
        for _ in 0..DRAWS {
            *hits.entry(scrambled.sample(&mut rng)).or_insert(0u64) += 1;
        }
        let (hottest, count) = hits.iter().max_by_key(|(_, count)| **count).unwrap();
        assert_eq!(*hottest, scrambled.record(0));
        // The other ranks that fall on the same record add what a record gets on the average, 1 / n.
        assert_share(*count, DRAWS, 0.0378 + 1.0 / n as f64);
        assert!((*count as f64 / DRAWS as f64 - 0.0378).abs() < 0.001);
        let second = 0.5f64.powf(0.99) / 26.46902820178302;
        assert_share(hits[&scrambled.record(1)], DRAWS, second + 1.0 / n as f64);
    }
}

#[test]
fn permuting_moves_the_heat_and_keeps_it() {
    const DRAWS: u64 = 500_000;
    let zipfian = Zipfian::new(10_000, 0.99).unwrap();
    let permutation = Permutation::new(10_000, 77).unwrap();
    let permuted = Permuted::new(zipfian.clone(), permutation.clone());
    let (mut a, mut b) = (generator::seeded(4), generator::seeded(4));
    for _ in 0..DRAWS {
        assert_eq!(permuted.sample(&mut a), permutation.record(zipfian.sample(&mut b)));
    }
    assert_ne!(permutation.record(0), 0);
    assert_ne!(permutation, Permutation::new(10_000, 78).unwrap());
}

#[test]
fn uniform_is_uniform() {
    let uniform = Popularity::uniform(1000).unwrap();
    let mut rng = generator::seeded(5);
    let mut hits = vec![0; 1000];
    for _ in 0..500_000 {
        hits[uniform.sample(&mut rng) as usize] += 1;
    }
    assert_distribution(&hits, &[0.001; 1000]);
}

#[test]
fn latest_is_zipfian_from_the_newest_record_backwards() {
    const DRAWS: u64 = 300_000;
    let mut latest = Latest::new(1000, 0.99).unwrap();
    let mut rng = generator::seeded(6);
    for newest in [999, 1000, 1001] {
        assert_eq!(latest.newest(), newest);
        let mut hits = vec![0; newest as usize];
        for _ in 0..DRAWS {
            hits[(newest - latest.sample(&mut rng)) as usize] += 1;
        }
        let distances = Zipfian::new(newest, 0.99).unwrap();
        let bounds: Vec<f64> = (1..=newest).map(|hottest| distances.share_of_hottest(hottest)).collect();
        assert_distribution(&hits, &differences(&bounds));
        latest.insert();
    }
}

#[test]
fn the_choice_at_run_time_draws_what_the_type_draws() {
    let draws = |distribution: &dyn Fn(&mut generator::Xoshiro256PlusPlus) -> u64| -> Vec<u64> {
        let mut rng = generator::seeded(7);
        (0..1000).map(|_| distribution(&mut rng)).collect()
    };
    let (n, theta) = (5000, 0.8);
    let pairs: [(Popularity, Vec<u64>); 3] = [
        (Popularity::zipfian(n, theta).unwrap(), draws(&|rng| Zipfian::new(n, theta).unwrap().sample(rng))),
        (
            Popularity::scrambled(n, theta).unwrap(),
            draws(&|rng| ScrambledZipfian::with_theta(n, theta).unwrap().sample(rng)),
        ),
        (
            Popularity::permuted(n, theta, 9).unwrap(),
            draws(&|rng| Permutation::new(n, 9).unwrap().record(Zipfian::new(n, theta).unwrap().sample(rng))),
        ),
    ];
    for (chosen, expected) in pairs {
        assert_eq!(draws(&|rng| chosen.sample(rng)), expected);
    }
}

#[test]
fn parameters_that_make_no_distribution_are_refused() {
    let too_many = LARGEST_RECORDS + 1;
    for made in [
        Zipfian::new(0, 0.99).err(),
        Zipfian::new(0, 1.5).err(),
        ScrambledZipfian::new(0).err(),
        Latest::new(0, 0.99).err(),
        Permutation::new(0, 1).err(),
        Popularity::uniform(0).err(),
    ] {
        assert_eq!(made, Some(DistributionError::Empty));
    }
    for made in [
        Zipfian::new(too_many, 0.99).err(),
        Zipfian::new(u64::MAX, 1.5).err(),
        ScrambledZipfian::new(too_many).err(),
        Latest::new(u64::MAX, 0.99).err(),
        Permutation::new(u64::MAX, 1).err(),
        Popularity::uniform(too_many).err(),
    ] {
        assert!(matches!(made, Some(DistributionError::TooManyRecords { .. })), "{made:?}");
    }
    for theta in [-0.1, 3.1, f64::NAN, f64::INFINITY] {
        for made in [
            Zipfian::new(10, theta).err(),
            Zipfian::exact(10, theta).err(),
            ScrambledZipfian::with_theta(10, theta).err(),
            Latest::new(10, theta).err(),
            Popularity::permuted(10, theta, 1).err(),
        ] {
            assert!(matches!(made, Some(DistributionError::Theta { .. })), "{theta}: {made:?}");
        }
    }
}

/// A test of the test: chi-square must see a distribution that is only slightly another one.
#[test]
#[should_panic(expected = "chi-square")]
fn the_test_for_a_distribution_can_fail() {
    let zipfian = Zipfian::exact(1000, 0.99).unwrap();
    let mut rng = generator::seeded(8);
    let ends = classes(1000);
    let hits = count_classes(|| zipfian.sample(&mut rng), 300_000, &ends);
    assert_distribution(&hits, &differences(&naive_sums(&ends, 0.98)));
}
