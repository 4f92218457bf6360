//! What the experiments rest on: keys are what they are said to be, trees answer, simulated machines see what they must.

use std::collections::HashSet;

use art::PageKind;

use super::draws::Draws;
use super::grown::{Grown, Pages};
use super::keys::KeySet;
use super::simulated::{Observers, Simulation};
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
    // A hundred keys are expected in each hundredth; the chance that any has less than 50 or more than 160 is negligible.
    let mut hundredths = [0; 100];
    numbers(KeySet::Random).for_each(|number| hundredths[((u64::from(number) * 100) >> 32) as usize] += 1);
    assert!(hundredths.iter().all(|count| (50..160).contains(count)), "{hundredths:?}");
}

/// 65,536 dense keys are 256 full nodes below one, and nothing else: nodes that were outgrown are not counted, and few of
/// them wait in a tree that was grown to be measured.
#[test]
fn only_what_is_in_the_tree_is_counted() {
    let keys = KeySet::Dense.keys::<4>(1 << 16).unwrap();
    let owned = super::memory::occupied(&keys).unwrap();
    assert_eq!(owned.nodes.map(|nodes| nodes.count), [0, 0, 0, 257]);
    assert_eq!(owned.leaf_bytes, 16 << 16);
    let shared = Grown::new(&keys, BASE).unwrap().tree().memory();
    assert!(shared.begun_bytes < owned.begun_bytes + (256 << 10), "{shared:?} for {owned:?}");
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

/// Uniform lookups over a tree of several times what the TLBs reach: nearly every leaf is a miss in small pages, and none
/// is in large ones; a tree of a few pages misses nothing.
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
