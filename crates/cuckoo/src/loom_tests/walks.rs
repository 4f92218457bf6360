//! Walks under the model checker, beside what moves entries.

use loom::sync::Arc;

use super::{
    World, beside, check, check_for, grows_to, hash_for, holds, location, seconds_of_a_large_model,
    there_and_back,
};
use crate::layout::{Inline, Layout};
use crate::{Growth, Insertion};

type L = Inline<1>;

fn hash(open: usize, candidates: (usize, usize), next_bit: u64) -> u64 {
    hash_for(open, L::TAG_BITS, candidates, next_bit, 0)
}

/// An entry moves between the buckets that a walk has visited and those that it has not.
#[test]
fn displacement_against_walk() {
    for (from, to) in [(0, 2), (2, 0)] {
        // Key 0 sits in `from`, for key 1 keeps its other bucket; key 2 can only be in `from`.
        let hashes = vec![hash(4, (from, to), 0), hash(4, (to, to), 0), hash(4, (from, from), 0)];
        check_for(Some(seconds_of_a_large_model()), 2, move || {
            let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
            world.insert(1).unwrap();
            world.insert(0).unwrap();
            assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
            let writer = beside(&world, |world| {
                assert!(matches!(world.insert(2), Ok(Insertion::Inserted(work)) if work.displaced == 1))
            });
            assert_eq!(world.count(0), 1, "told twice, or not at all");
            writer.join().unwrap();
        });
    }
}

/// An entry moves to where a walk has been, and with the split of that bucket to a new one, which the walk, when it has
/// seen the last bucket, may come to or not.
#[test]
fn displacement_and_growth_against_walk() {
    // Key 0 sits in bucket 2, for key 1 keeps bucket 0, and goes to bucket 4 when that splits; key 2 can only be in
    // bucket 2.
    let hashes = vec![hash(4, (0, 2), 1), hash(4, (0, 0), 0), hash(4, (2, 2), 0)];
    check_for(Some(seconds_of_a_large_model()), 2, move || {
        let world = Arc::new(World::<L>::new(4, grows_to(5, 0.95), hashes.clone()));
        world.insert(1).unwrap();
        world.insert(0).unwrap();
        assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
        let writer = beside(&world, |world| {
            assert!(matches!(world.insert(2), Ok(Insertion::Inserted(work)) if work.displaced == 1));
            world.table.reserve(3, world.hasher());
        });
        assert_eq!(world.count(0), 1, "told twice, or not at all");
        writer.join().unwrap();
        assert_eq!(world.table.buckets(), 5);
    });
}

/// Who clears the table removes an entry that was there, wherever it moves meanwhile, and tells it once.
#[test]
fn displacement_against_clear() {
    for (from, to) in [(0, 2), (2, 0)] {
        let hashes = vec![hash(4, (from, to), 0), hash(4, (to, to), 0), hash(4, (from, from), 0)];
        check(2, move || {
            let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
            world.insert(1).unwrap();
            world.insert(0).unwrap();
            assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
            let writer = beside(&world, |world| world.insert(2).unwrap());
            let mut removed = Vec::new();
            world.table.clear(world.hasher(), |at| removed.push(at));
            writer.join().unwrap();
            let told = |key| removed.iter().filter(|&&at| holds(at, key)).count();
            assert_eq!((told(0), world.count(0)), (1, 0), "told twice, or not at all, or left");
            assert_eq!(told(2) + world.count(2), 1);
            assert_eq!(world.table.len(), world.count(2));
        });
    }
}

/// An entry comes, with its bucket that is merged, to where a walk has been.
#[test]
fn merge_against_walk() {
    let hashes = vec![hash(3, (2, 2), 0)];
    check(3, move || {
        let world = Arc::new(World::<L>::new(3, grows_to(3, 0.95), hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, |world| assert!(world.merge()));
        assert_eq!(world.count(0), 1, "told twice, or not at all");
        writer.join().unwrap();
        assert_eq!((world.table.buckets(), world.count(0)), (2, 1));
    });
}

/// And leaves again when that bucket is split.
#[test]
fn merge_and_growth_against_walk() {
    let hashes = vec![hash(3, (2, 2), 0)];
    check(2, move || {
        let world = Arc::new(World::<L>::new(3, grows_to(3, 0.95), hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, |world| {
            assert!(world.merge());
            world.table.reserve(2, world.hasher());
        });
        assert_eq!(world.count(0), 1, "told twice, or not at all");
        writer.join().unwrap();
        assert_eq!((world.table.buckets(), world.count(0)), (3, 1));
    });
}

/// An entry leaves for where the walk has yet to come, and comes back to where it has been told.
#[test]
fn there_and_back_against_walk() {
    let hashes = vec![hash(4, (0, 1), 0), hash(4, (0, 0), 0), hash(4, (1, 1), 0)];
    check(1, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, there_and_back);
        assert_eq!(world.count(0), 1, "told twice, or not at all");
        writer.join().unwrap();
    });
}
