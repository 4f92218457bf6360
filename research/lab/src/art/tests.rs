//! What the experiments rest on: keys are what they are said to be, trees answer, simulated machines see what they
//! must.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use art::PageKind;

use super::beside::{self, Worker};
use super::draws::Draws;
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use super::lookups::Way;
use super::ordered::{self, Call, Lot};
use super::simulated::{Observers, Simulation};
use super::strings::{self, Requests};
use super::texts::{self, Text};
use crate::experiment::ExperimentError;

const SETS: [KeySet; 3] = [KeySet::Dense, KeySet::Sparse, KeySet::Random];
const BASE: Pages = Pages(PageKind::Base);

fn simulation(lookups: usize) -> Simulation {
    toml::from_str(&format!(
        "machines = ['sandy_bridge', 'current_server']\nwarm_up = {lookups}\nlookups = {lookups}"
    ))
    .unwrap()
}

#[test]
fn keys_are_distinct_and_as_far_apart_as_they_are_said_to_be() {
    for set in SETS {
        let keys = set.keys::<4>(10_000).unwrap();
        assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 10_000, "{set:?}");
        let long: HashSet<_> = set.keys::<8>(10_000).unwrap().into_iter().collect();
        assert_eq!(long.len(), 10_000, "{set:?}");
    }
    let numbers = |set: KeySet| set.keys::<4>(10_000).unwrap().into_iter().map(u32::from_be_bytes);
    assert!(numbers(KeySet::Dense).eq(0..10_000));
    let sparse: Vec<u32> = numbers(KeySet::Sparse).collect();
    let step = (1u64 << 32) / 10_000;
    let even = |pair: &[u32]| (step..=step + 1).contains(&u64::from(pair[1] - pair[0]));
    assert!(sparse.windows(2).all(even) && sparse[9_999] > u32::MAX - 500_000);
    // A hundred keys are expected in each hundredth; the chance that any has less than 50 or more than 160 is
    // negligible.
    let mut hundredths = [0; 100];
    numbers(KeySet::Random).for_each(|number| hundredths[((u64::from(number) * 100) >> 32) as usize] += 1);
    assert!(hundredths.iter().all(|count| (50..160).contains(count)), "{hundredths:?}");
}

/// 65,536 dense keys are 256 full nodes below one, and nothing else: nodes that were outgrown are not counted, and few
/// of them wait in a tree that was grown to be measured.
#[test]
fn only_what_is_in_the_tree_is_counted() {
    let keys = KeySet::Dense.keys::<4>(1 << 16).unwrap();
    let owned = super::memory::occupied(&keys).unwrap();
    assert_eq!(owned.nodes.map(|nodes| nodes.count), [0, 0, 0, 257]);
    assert_eq!(owned.leaf_bytes, 16 << 16);
    // Each of the 257 has been three smaller ones before. Tests beside this one keep them from being freed while they
    // look at a tree or a table, which they do not for ever.
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let counts = Grown::new(&keys, BASE).unwrap().tree().memory().nodes.map(|nodes| nodes.count);
        assert!(counts[3] == 257, "{counts:?}");
        let waiting: usize = counts[..3].iter().sum();
        if waiting < 32 {
            break;
        }
        assert!(Instant::now() < deadline, "{waiting} were outgrown, and never freed");
    }
}

#[test]
fn a_reorganised_tree_answers_as_before_and_a_wrong_sum_is_noticed() {
    for set in SETS {
        let keys = set.keys::<8>(20_000).unwrap();
        let grown = Grown::new(&keys, BASE).unwrap();
        let mut draws = Draws::new(&keys, 1.2).unwrap();
        let seen = draws.next(50_000);
        let done = grown.learn_and_reorganize(&seen.keys, 1, 1);
        let distinct: HashSet<_> = seen.keys.iter().collect();
        assert_eq!((done.keys, done.leaves, done.full), (distinct.len(), distinct.len(), false), "{set:?}");
        assert!(done.nodes > 10);
        let asked = draws.next(10_000);
        grown.look_up(&asked.keys, asked.expected).unwrap();
        let wrong = grown.look_up(&asked.keys, asked.expected + 1).unwrap_err();
        assert!(matches!(wrong, ExperimentError::WrongAnswer { .. }));
    }
}

/// Uniform lookups over a tree of several times what the TLBs reach: nearly every leaf is a miss in small pages, and
/// none is in large ones; a tree of a few pages misses nothing.
#[test]
fn simulated_machines_see_pages() {
    let keys = KeySet::Dense.keys::<4>(400_000).unwrap();
    let grown = Grown::new(&keys, BASE).unwrap();
    let observers = Observers::new(&simulation(40_000), &mut Draws::new(&keys, 0.0).unwrap()).unwrap();
    let [small, large] =
        [PageKind::Base, PageKind::Transparent].map(|kind| observers.observe(&grown, Pages(kind)).unwrap());
    let each = |observed: &super::simulated::Observed| observed.statistics.per_lookup(observed.lookups);
    assert_eq!([&*small[0].machine, &*small[1].machine], ["Sandy Bridge", "current server"]);
    // 6.4 MB of leaves and 1.6 MB of nodes in 2 MB of reach.
    assert!(each(&small[0]).tlb_misses > 0.5, "{:?}", each(&small[0]));
    assert!(each(&large[0]).tlb_misses < 0.01, "{:?}", each(&large[0]));
    assert_eq!(each(&small[0]).tlb_visits, each(&large[0]).tlb_visits);
    assert!(small[0].statistics.translation_share(0) > large[0].statistics.translation_share(0));
    assert!(
        each(&small[1]).tlb_misses < each(&small[0]).tlb_misses,
        "2048 translations reach further than 512"
    );

    let few = KeySet::Dense.keys::<4>(500).unwrap();
    let grown = Grown::new(&few, BASE).unwrap();
    let observers = Observers::new(&simulation(10_000), &mut Draws::new(&few, 0.0).unwrap()).unwrap();
    let seen = &observers.observe(&grown, BASE).unwrap()[0];
    assert_eq!((each(seen).tlb_misses, each(seen).l1_misses), (0.0, 0.0));
}

#[test]
fn parameters_are_refused_that_name_nothing() {
    assert!(Pages::try_from("5k".to_owned()).is_err());
    assert!(super::Width::try_from(16).is_err());
    let unknown: Simulation = toml::from_str("machines = ['pentium']\nwarm_up = 1\nlookups = 1").unwrap();
    let keys = KeySet::Dense.keys::<4>(10).unwrap();
    assert!(Observers::new(&unknown, &mut Draws::new(&keys, 0.0).unwrap()).is_err());
    assert!(KeySet::Dense.keys::<4>(1 << 32).is_err());
}

/// Batches and logged lookups find what single ones find, a wrong sum is noticed, and so is a log that does not sample.
#[test]
fn every_way_of_asking_finds_the_same() {
    let keys = KeySet::Random.keys::<8>(20_000).unwrap();
    let grown = Grown::new(&keys, BASE).unwrap();
    let mut asked = Draws::new(&keys, 0.99).unwrap().next(10_007);
    let ways = [Way::Single, Way::Batch(1), Way::Batch(32), Way::Batch(64), Way::Logged(0), Way::Logged(16)];
    for way in ways {
        way.ask(&grown, &asked).unwrap();
    }
    // Within one sample of what is due, and not in a tree that nobody samples.
    let (_, samples) = grown.look_up_logged(&asked.keys, asked.expected, 1).unwrap();
    assert_eq!(samples, asked.keys.len());
    asked.expected += 1;
    for way in ways {
        let wrong = way.ask(&grown, &asked).unwrap_err();
        assert!(matches!(wrong, ExperimentError::WrongAnswer { .. }), "{way:?}");
    }
}

#[test]
fn workers_beside_a_reorganisation_leave_every_key_where_it_was() {
    if crate::measure::cores().unwrap().len() < 2 {
        return;
    }
    let keys = KeySet::Random.keys::<8>(20_000).unwrap();
    let grown = Grown::new(&keys, BASE).unwrap();
    let mut draws = Draws::new(&keys, 0.99).unwrap();
    let hot = grown.learn(&draws.next(20_000).keys, 2, 1);
    assert!(hot.len() > 1000);
    for worker in Worker::ALL {
        let asked = draws.next(30_000);
        let (_, moved) = beside::work_beside(worker, &grown, &asked, &hot, 64, 0.0).unwrap();
        assert!(moved.nodes > 0 && moved.leaves > 0, "{moved:?}");
        grown.restore(&asked).unwrap();
        grown.look_up(&keys, (0..20_000).sum()).unwrap();
    }
    // Nothing hot, nothing moved: that is no measurement.
    let wrong = beside::work_beside(Worker::Reader, &grown, &draws.next(10), &[], 64, 0.0).unwrap_err();
    assert!(matches!(wrong, ExperimentError::WrongAnswer { .. }));
}

#[test]
fn every_index_of_texts_answers_alike() {
    let paths: Vec<Text> = (0..50)
        .map(|n: u32| format!("cdn:v/t{}.1-0/{:07}_{n}_o.jpg", n % 5, n * 1237).into_bytes().into())
        .collect();
    let keys = texts::vary(&paths, 700).unwrap();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 700);
    assert!(keys.iter().zip(paths.iter().cycle()).all(|(key, path)| key.len() == path.len()));
    assert!(keys.iter().all(|key| key.starts_with(b"cdn:v/t") && key.ends_with(b"_o.jpg")));
    assert!(texts::vary(&[b"short/1".as_slice().into()], 2).is_err(), "nothing to vary");

    let requests = Requests::of(&keys, (0..2000).map(|at| at * 37 % 700));
    let all = strings::fill(&keys, 1 << 12).unwrap();
    assert_eq!(all.len(), strings::NAMES.len());
    for call in Call::ALL {
        let first = all[2].ask(call, &requests.requests).unwrap();
        for (name, texts) in strings::NAMES.iter().zip(&all) {
            let rate = |expected| {
                let lot = Requests::of(&keys, (0..2000).map(|at| at * 37 % 700));
                ordered::rate((name, &**texts), call, &[Lot { expected, ..lot }], &mut Some(expected))
            };
            texts.learn(true);
            let answered = rate(first).unwrap();
            texts.learn(false);
            let again = texts.ask(call, &requests.requests);
            assert_eq!(again, answered.map(|_| first), "{name}, {call:?}");
            assert_eq!(rate(first + 1).is_err(), answered.is_some(), "{name}, {call:?}");
        }
    }
    let absent = Requests::of(&[b"cdn:v/t0".as_slice().into()], [0].into_iter());
    assert!(all.iter().all(|texts| texts.ask(Call::Single, &absent.requests) > Some(1 << 40)));
}
