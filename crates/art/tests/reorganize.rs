//! The access log, and moving what is hot together: the tree stays equal to a model, what is hot comes to lie together,
//! and what no longer helps is not done again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lookaside_art::{
    Background, Config, LONGEST_SAMPLED, PageKind, Reorganized, Schedule, Tree, encode, share_of_lookups,
};
use proptest::prelude::*;

fn config() -> Config {
    Config::new().with_node_bytes(1 << 28).with_leaf_bytes(1 << 28)
}

fn scattered(n: u64) -> [u8; 8] {
    encode::u64(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A tree whose hot keys, one in 128, lie far from each other.
fn tree() -> (Tree<[u8; 8], u64>, Vec<[u8; 8]>) {
    let tree = Tree::with_config(&config()).unwrap();
    let reader = tree.pin();
    for n in 0..100_000 {
        reader.insert(&scattered(n), n).unwrap();
    }
    drop(reader);
    let hot = (0..100_000).step_by(128).map(scattered).collect();
    (tree, hot)
}

#[test]
fn hot_paths_come_to_lie_together_and_nothing_changes() {
    let (tree, hot) = tree();
    let model: Vec<_> = tree.pin().iter().map(|(key, value)| (*key, *value)).collect();
    let before = tree.assess(&hot);
    let mut reorganization = tree.reorganization(hot.clone());
    let mut steps = 0;
    while reorganization.step(64).is_continue() {
        steps += 1;
        // Whole between any two steps, for readers and writers.
        let reader = tree.pin();
        assert_eq!(reader.get(&scattered(steps)), Some(&steps));
        assert_eq!(reader.insert(&scattered(steps), steps).unwrap(), Some(&steps));
    }
    let done = reorganization.done();
    assert_eq!((done.keys, done.full), (hot.len(), false));
    assert!(steps > 10 && done.leaves > 700 && done.nodes > 100, "{steps} steps: {done:?}");
    let after = tree.assess(&hot);
    assert!(before.gain() > 3.0, "the hot keys were not scattered to begin with: {before:?}");
    assert!(
        10 * after.pages < 13 * after.packed && after.pages * 3 < before.pages,
        "{before:?} became {after:?}"
    );
    assert!(tree.pin().iter().map(|(key, value)| (*key, *value)).eq(model));
}

/// A processor has the translations of so few pages at hand, wherever they are.
#[test]
fn what_lies_in_few_pages_stays_where_it_is() {
    let (tree, hot) = tree();
    let lies = tree.assess(&hot[..6]);
    assert!(lies.pages > 2 * lies.packed && lies.pages <= 32 && lies.gain() == 1.0, "{lies:?}");
    let look = |hot: &[[u8; 8]]| {
        tree.access_log().sample_every(1);
        let session = tree.session();
        let reader = session.pin();
        hot.iter().chain(hot).for_each(|key| assert!(reader.get(key).is_some()));
        drop(reader);
        drop(session);
        tree.reorganize()
    };
    assert_eq!(look(&hot[..6]), Reorganized::default());
    // The same call, of more keys, moves them.
    assert_eq!(look(&hot).keys, hot.len());
}

/// Of keys that are asked for alike, those that were sampled are no hotter than the others.
#[test]
fn keys_that_were_sampled_by_chance_stay_where_they_are() {
    let (tree, _) = tree();
    let session = tree.session();
    let look = |below: u64, interval: u32| {
        tree.access_log().sample_every(interval);
        let (reader, mut random) = (session.pin(), 1u64);
        for _ in 0..200_000 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            // Half of the lookups are of any key.
            let key = (random >> 33) % if random >> 63 == 0 { 100_000 } else { below };
            assert!(reader.get(&scattered(key)).is_some());
        }
    };
    for (below, worth) in [(100_000, false), (2_000, true)] {
        look(below, 32);
        let frequencies = tree.access_log().frequencies();
        let keys: Vec<_> = frequencies.iter().map(|&(key, _)| key).collect();
        let lie = tree.assess(&keys);
        assert!(lie.gain() > 3.0, "by their pages alone they were worth it: {lie:?}");
        let share = share_of_lookups(&frequencies, 1);
        // Of 6250 samples those of keys that were sampled once say nothing (Good and Turing): of the half that goes to
        // 2000 keys a fifth, of the other half nearly all. That is 0.41, give or take 0.01 for other draws of the
        // sampler; and 0.06 of all keys.
        let expected = if worth { 0.35..0.47 } else { 0.03..0.1 };
        assert!(expected.contains(&share), "{share} of lookups go to what was sampled");
        let schedule = Schedule::new().with_samples(1);
        assert_eq!(tree.worth_moving(frequencies, &schedule), if worth { keys } else { Vec::new() });
    }
    look(100_000, 32);
    assert_eq!(tree.reorganize(), Reorganized::default());
    look(2_000, 32);
    assert!(tree.reorganize().keys > 2_000);
}

/// What was hot in some round lies in the pages of that round. They are used again as it leaves them, in whatever
/// order.
#[test]
fn a_hot_set_that_wanders_needs_no_more_room_with_every_round() {
    const KEYS: u64 = 20_000;
    const HOT: u64 = 1_000;
    let tree = Tree::<[u8; 8], u64>::with_config(&config()).unwrap();
    let mut model = BTreeMap::new();
    for n in 0..KEYS {
        tree.pin().insert(&scattered(n), n).unwrap();
        model.insert(scattered(n), n);
    }
    let (mut begun, mut random) = (Vec::new(), 1u64);
    for round in 0..200u64 {
        // A window that slides over the keys, and as many from anywhere.
        let mut hot: Vec<_> = (0..HOT).map(|n| scattered((round * HOT / 4 + n) % KEYS)).collect();
        hot.extend((0..HOT).map(|_| {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            scattered((random >> 33) % KEYS)
        }));
        let mut reorganization = tree.reorganization(hot.clone());
        while reorganization.step(256).is_continue() {}
        assert!(!reorganization.done().full);
        drop(reorganization);
        // Dense enough not to be done again.
        let after = tree.assess(&hot);
        assert!(2 * after.pages < 3 * after.packed, "round {round}: {after:?}");
        // Values and keys that come and go, some of them hot.
        let reader = tree.pin();
        for n in 0..50 {
            let (one, other) = (scattered((round * 37 + n) % KEYS), scattered((round * 91 + n * 5) % KEYS));
            assert_eq!(reader.insert(&one, round).unwrap().copied(), model.insert(one, round));
            assert_eq!(reader.remove(&other).copied(), model.remove(&other));
        }
        assert!(reader.iter().eq(&model), "after round {round}");
        drop(reader);
        tree.collect();
        assert_eq!(tree.memory().leaves, model.len());
        begun.push(tree.memory().begun_bytes);
    }
    let memory = tree.memory();
    assert!(begun[199] <= begun[99] + begun[99] / 50, "it grows and grows: {begun:?}");
    let live = memory.leaf_bytes + memory.node_bytes();
    // Once where it was put in, and at most four times in pages of mixed use.
    assert!(begun[199] <= 5 * live + (1 << 20), "{memory:?}");
    assert!(memory.free_bytes + live <= memory.begun_bytes, "{memory:?}");
    // What is inserted uses what the pages have free, rather than new ones; but a run for plots is begun as a whole.
    let reader = tree.pin();
    (0..KEYS).for_each(|n| {
        assert_eq!(reader.insert(&scattered(n), n).unwrap().is_none(), !model.contains_key(&scattered(n)))
    });
    assert!(tree.memory().begun_bytes <= begun[199] + begun[199] / 12, "{memory:?}, {:?}", tree.memory());
}

/// A region that is full has places between those that are hot.
#[test]
fn holes_between_hot_places_are_used_when_nothing_else_is_left() {
    let config = config().with_node_bytes(4 << 20).with_leaf_bytes(1 << 20);
    let tree = Tree::<[u8; 8], u64>::with_config(&config).unwrap();
    let mut model = BTreeMap::new();
    for n in 0..20_000 {
        tree.pin().insert(&scattered(n), n).unwrap();
        model.insert(scattered(n), n);
    }
    let mut reorganization = tree.reorganization(model.keys().copied().collect());
    while reorganization.step(usize::MAX).is_continue() {}
    assert!(reorganization.done().leaves > 10_000, "{:?}", reorganization.done());
    drop(reorganization);
    // One of two goes: no page of mixed use is sparse.
    for n in (0..20_000).step_by(2) {
        assert_eq!(tree.pin().remove(&scattered(n)).copied(), model.remove(&scattered(n)));
    }
    tree.collect();
    assert_eq!(tree.memory().leaves, model.len());
    let mut filled = 20_000;
    while tree.pin().insert(&scattered(filled), filled).is_ok() {
        model.insert(scattered(filled), filled);
        filled += 1;
    }
    let memory = tree.memory();
    assert!(memory.leaf_bytes > (1 << 20) * 9 / 10, "{memory:?}");
    assert!(tree.pin().iter().eq(&model));
}

#[test]
fn the_log_counts_what_sessions_look_up() {
    let (tree, _) = tree();
    let session = tree.session();
    let reader = session.pin();
    tree.access_log().sample_every(8);
    // One key in two lookups, nine others in the rest.
    for n in 0..200_000u64 {
        let key = if n % 2 == 0 { 0 } else { 1 + n / 2 % 9 };
        assert!(reader.get(&scattered(key)).is_some());
    }
    let counts = tree.access_log().frequencies();
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let (hottest, most) = counts[0];
    assert_eq!((hottest, counts.len()), (scattered(0), 10));
    // 25,000 are expected, less what the session did before it noticed; half of them of the first key.
    assert!((20_000..30_000).contains(&total), "{total} samples of 200,000 lookups");
    assert!((total * 4 / 10..total * 6 / 10).contains(&most), "{most} of {total}");
    assert!(tree.access_log().frequencies().is_empty(), "the log was not emptied");
    tree.access_log().sample_every(0);
    (0..100u64).for_each(|_| assert!(reader.get(&scattered(1)).is_some()));
    let few = tree.access_log().drain().len();
    (0..100_000u64).for_each(|_| assert!(reader.get(&scattered(1)).is_some()));
    assert!(few + tree.access_log().drain().len() <= 13, "sampled after it was told not to");
}

#[test]
fn a_full_ring_forgets_the_oldest() {
    let (tree, _) = tree();
    let session = tree.session();
    tree.access_log().sample_every(1);
    let reader = session.pin();
    let batch = 100_000 - lookaside_art::RING as u64;
    for n in 0..100_000 {
        reader.get(&scattered(n));
    }
    let samples = tree.access_log().drain();
    assert_eq!(samples.len(), lookaside_art::RING);
    assert_eq!((samples[0], samples[samples.len() - 1]), (scattered(batch), scattered(99_999)));
}

/// Looks up until the thread ends by itself.
fn look_until_it_ends(background: &Background, look: impl Fn()) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !background.has_ended() {
        assert!(Instant::now() < deadline, "it goes on and on: {:?}", background.rounds());
        look();
    }
}

#[test]
fn the_background_moves_what_is_hot_and_ends_when_it_no_longer_helps() {
    let (tree, hot) = tree();
    let tree = Arc::new(tree);
    tree.access_log().sample_every(4);
    let before = tree.assess(&hot);
    let schedule = Schedule::new().with_every(Duration::from_millis(5)).with_patience(4);
    let session = tree.session();
    let look = || {
        let reader = session.pin();
        hot.iter().for_each(|key| assert!(reader.get(key).is_some()));
    };
    // Before it begins: so it finds something at its first look, however seldom this thread has its turn after that.
    (0..20).for_each(|_| look());
    let background = tree.keep_organized(schedule).unwrap();
    look_until_it_ends(&background, look);
    let rounds = background.rounds();
    assert!(!rounds.is_empty() && rounds.iter().all(|round| round.keys > 0), "{rounds:?}");
    let after = tree.assess(&hot);
    assert!(after.pages * 2 < before.pages, "{before:?} became {after:?} in {rounds:?}");
    assert_eq!(tree.pin().iter().count(), 100_000);
}

/// Places that fit the holes of sparse pages badly lie no denser after a round than before it: there is an end to that,
/// too.
#[test]
fn the_background_ends_when_what_it_moves_comes_to_lie_no_better() {
    const KEYS: u64 = 50_000;
    let tree = Arc::new(Tree::<[u8], u32>::with_config(&config()).unwrap());
    // In leaves of two sizes, of which the larger leaves a third of three small ones' room.
    let small = |n: u64| n.to_be_bytes()[2..].to_vec();
    let large = |n: u64| [&scattered(n)[..], &[9; 10]].concat();
    let mut reader = tree.pin();
    for n in 0..KEYS {
        reader.insert(&small(n), 0).unwrap();
    }
    let move_all = |keys: Vec<Vec<u8>>| {
        let mut reorganization = tree.reorganization(keys);
        while reorganization.step(1 << 10).is_continue() {}
    };
    move_all((0..KEYS).map(small).collect());
    for n in (0..KEYS).filter(|n| n % 4 != 0) {
        reader.remove(&small(n));
        reader.refresh();
    }
    let hot: Vec<Vec<u8>> = (0..KEYS / 20).map(large).collect();
    for key in &hot {
        reader.insert(key, 0).unwrap();
        reader.refresh();
    }
    drop(reader);
    let entries = tree.len();
    tree.collect();
    assert_eq!(tree.memory().leaves, entries);
    move_all(hot.clone());
    tree.collect();
    assert_eq!(tree.memory().leaves, entries);
    let lie = tree.assess(hot.iter().map(Vec::as_slice));
    assert!(lie.gain() > 1.5, "they do not lie badly: {lie:?}");
    tree.access_log().sample_every(1);
    let schedule = Schedule::new().with_every(Duration::from_millis(2)).with_rest(0.0);
    let session = tree.session();
    let look = || {
        let reader = session.pin();
        hot.iter().for_each(|key| assert!(reader.get(key).is_some()));
    };
    // Before it begins: so it sees all of them, more than once each, at its first look.
    (0..4).for_each(|_| look());
    let background = tree.keep_organized(schedule).unwrap();
    look_until_it_ends(&background, look);
    assert!(!background.rounds().is_empty(), "it never tried");
}

/// Nobody asks for anything: that says nothing about where things lie.
#[test]
fn the_background_waits_for_lookups() {
    let (tree, hot) = tree();
    let tree = Arc::new(tree);
    tree.access_log().sample_every(1);
    let schedule = Schedule::new().with_every(Duration::from_millis(1)).with_patience(1);
    let background = tree.keep_organized(schedule.clone()).unwrap();
    // Another one, which finds what is no use forty times, as often: meanwhile this one has looked many times as well.
    let (other, _) = self::tree();
    let other = Arc::new(other);
    other.access_log().sample_every(1);
    let clock = other.keep_organized(schedule.with_patience(40)).unwrap();
    let others = other.session();
    look_until_it_ends(&clock, || {
        let reader = others.pin();
        hot[..6].iter().for_each(|key| assert!(reader.get(key).is_some()));
    });
    assert!(!background.has_ended(), "it ended before anybody had looked anything up");
    assert!(background.rounds().is_empty());
}

/// Whoever asks for keys of megabytes, which need not be there, does not fill the log with them.
#[test]
fn very_long_keys_are_not_sampled() {
    let tree = Tree::<[u8], u32>::with_config(&config()).unwrap();
    tree.access_log().sample_every(1);
    let session = tree.session();
    let reader = session.pin();
    let lengths = [0, 1, LONGEST_SAMPLED, LONGEST_SAMPLED + 1, 1 << 20];
    for length in lengths {
        assert_eq!(reader.get(&vec![7; length]), None);
    }
    let sampled: Vec<usize> = tree.access_log().drain().iter().map(Vec::len).collect();
    assert_eq!(sampled, lengths[..3]);
}

/// Pages of 2 MiB are begun at multiples of that; what lies before them is not lost.
#[test]
fn nothing_is_lost_before_a_huge_page() {
    let lost = |pages| {
        let tree = Tree::<[u8; 8], u64>::with_config(&config().with_pages(pages)).unwrap();
        let mut next = 0;
        for _ in 0..6 {
            let first = next;
            let mut reader = tree.pin();
            for _ in 0..60_000 {
                reader.insert(&scattered(next), next).unwrap();
                next += 1;
                if next % 256 == 0 {
                    reader.refresh();
                }
            }
            drop(reader);
            let hot = (first..next).filter(|n| n % 3 == 0).map(scattered).collect();
            let mut reorganization = tree.reorganization(hot);
            while reorganization.step(1 << 10).is_continue() {}
        }
        tree.collect();
        assert_eq!(tree.memory().leaves, next as usize);
        let memory = tree.memory();
        memory.begun_bytes - (memory.leaf_bytes + memory.node_bytes() + memory.free_bytes)
    };
    // Runs that are being cut, and what nodes have set aside for their leaves, are in no count.
    let (base, huge) = (lost(PageKind::Base), lost(PageKind::Transparent));
    assert!(huge < base + (1 << 20), "{huge} bytes, and {base} where pages are small");
}

#[test]
fn the_background_ends_when_it_is_dropped() {
    let (tree, _) = tree();
    let tree = Arc::new(tree);
    let schedule = Schedule::new().with_every(Duration::from_secs(3600)).with_patience(0);
    let background = tree.keep_organized(schedule).unwrap();
    assert!(!background.has_ended());
    drop(background);
    // Its thread had the other share.
    assert_eq!(Arc::strong_count(&tree), 1);
}

#[derive(Debug, Clone)]
enum Operation {
    Insert(Vec<u8>),
    Remove(Vec<u8>),
    Reorganize(Vec<Vec<u8>>, usize),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => Just(0u8), 3 => Just(255), 1 => any::<u8>()], 0..6)
}

proptest! {
    #[test]
    fn the_tree_stays_equal_to_a_model(operations in prop::collection::vec(prop_oneof![
        8 => key().prop_map(Operation::Insert),
        3 => key().prop_map(Operation::Remove),
        1 => (prop::collection::vec(key(), 0..40), 1usize..30)
            .prop_map(|(keys, work)| Operation::Reorganize(keys, work)),
    ], 1..300), is_huge: bool) {
        let pages = if is_huge { PageKind::Transparent } else { PageKind::Base };
        let tree = Tree::<[u8], String>::with_config(&config().with_pages(pages)).unwrap();
        let mut model = BTreeMap::new();
        for (number, operation) in operations.into_iter().enumerate() {
            let reader = tree.pin();
            match operation {
                Operation::Insert(key) => {
                    let old = model.insert(key.clone(), number.to_string());
                    prop_assert_eq!(reader.insert(&key, number.to_string()).unwrap(), old.as_ref());
                }
                Operation::Remove(key) => prop_assert_eq!(reader.remove(&key).cloned(), model.remove(&key)),
                Operation::Reorganize(keys, work) => {
                    let wanted = keys.len();
                    let mut reorganization = tree.reorganization(keys);
                    while reorganization.step(work).is_continue() {
                        prop_assert!(reader.iter().eq(model.iter().map(|(key, value)| (&key[..], value))));
                    }
                    prop_assert_eq!(reorganization.done().keys, wanted);
                }
            }
            prop_assert!(reader.iter().eq(model.iter().map(|(key, value)| (&key[..], value))));
        }
        let reader = tree.pin();
        for (key, value) in &model {
            prop_assert_eq!(reader.get(key), Some(value));
        }
        drop(reader);
        tree.collect();
        prop_assert_eq!(tree.memory().leaves, model.len());
    }
}
