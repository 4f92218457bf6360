//! The marks of a bucket under the model checker: keys whose first bucket this is are in the stash, or elsewhere.

use loom::sync::Arc;
use loom::thread;

use super::{World, beside, check, check_for, grows_to, hash_for, holds, location, seconds_of_a_large_model};
use crate::layout::{Inline, Layout};
use crate::{Growth, Insertion};

type L = Inline<1>;

fn hash(open: usize, candidates: (usize, usize), next_bit: u64) -> u64 {
    hash_for(open, L::TAG_BITS, candidates, next_bit, 0)
}

/// Whoever was told a stashed key by a walk finds it: its mark is there before it is in the list.
#[test]
fn a_stashed_key_that_a_walk_has_told_is_found() {
    let hashes = vec![hash(2, (0, 1), 0); 3];
    check(1, move || {
        let world = Arc::new(World::<L>::stashing(2, Growth::Fixed, hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let mut walk = world.table.iter();
        assert_eq!(walk.by_ref().take(2).filter(|&at| holds(at, 2)).count(), 0, "all but the stash");
        let writer = beside(&world, |world| world.insert(2).unwrap());
        // The writer may run here, and tells nothing by this.
        thread::spawn(|| ()).join().unwrap();
        if walk.any(|at| holds(at, 2)) {
            assert_eq!(world.get(2), Some(location(2, 0)), "told, and missed after that");
        }
        drop(walk);
        writer.join().unwrap();
        assert_eq!((world.get(2), world.count(2)), (Some(location(2, 0)), 1));
    });
}

/// A stashed key is found before, while and after its bucket is merged into another, which takes on the mark.
#[test]
fn a_stashed_key_is_found_while_its_bucket_is_merged() {
    let hashes = vec![hash(5, (4, 4), 0); 2];
    check(2, move || {
        let world = Arc::new(World::<L>::stashing(5, grows_to(5, 0.95), hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let writer = beside(&world, |world| assert!(world.merge()));
        assert_eq!(world.get(1), Some(location(1, 0)), "missed while its bucket is merged");
        writer.join().unwrap();
        assert_eq!(world.table.buckets(), 4);
        for key in [0, 1] {
            assert_eq!((world.get(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// The same of a key that is not in its first bucket.
#[test]
fn a_key_elsewhere_is_found_while_its_first_bucket_is_merged() {
    // The second finds its first bucket taken.
    let hashes = vec![hash(5, (4, 4), 0), hash(5, (4, 1), 0)];
    check(3, move || {
        let world = Arc::new(World::<L>::of_a_map(5, grows_to(5, 0.95), hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let writer = beside(&world, |world| assert!(world.merge()));
        assert_eq!(world.get_first(1), Some(location(1, 0)), "missed while its first bucket is merged");
        writer.join().unwrap();
        assert_eq!(world.table.buckets(), 4);
        for key in [0, 1] {
            assert_eq!((world.get_first(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// Who was disturbed, and so has looked in both buckets, has found a key in its second one: who looks for it in its
/// first one only, after that, finds it, too.
#[test]
fn a_key_that_was_found_in_its_second_bucket_is_found_by_its_first_one() {
    let hashes = vec![hash(4, (0, 2), 0), hash(4, (0, 0), 0)];
    check(2, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(1).unwrap();
        let writer = beside(&world, |world| world.insert(0).unwrap());
        if world.get(0).is_some() {
            assert_eq!(world.get_first(0), Some(location(0, 0)), "found, and missed after that");
        }
        writer.join().unwrap();
    });
}

/// Who has seen a mark has seen what was announced by the same word before it: that a key has moved.
#[test]
fn a_mark_hides_no_displacement_before_it() {
    // Key 0 sits in bucket 2, for key 3 keeps bucket 0; key 1, which can only be in bucket 2, sends it there. Key 2
    // finds bucket 2, its first one, taken, and marks it.
    let hashes =
        [((0, 2), 0), ((2, 2), 0), ((2, 1), 0), ((0, 0), 0)].map(|(at, next)| hash(4, at, next)).to_vec();
    check(1, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(3).unwrap();
        world.insert(0).unwrap();
        assert!(world.table.remove_exact(world.hashes[3], location(3, 0)));
        let writer = beside(&world, |world| {
            world.insert(1).unwrap();
            world.insert(2).unwrap();
        });
        assert_eq!(world.get(0), Some(location(0, 0)), "missed behind a mark");
        writer.join().unwrap();
    });
}

/// Who looks in a key's first bucket only finds it before that is split, while, and afterwards in another one.
#[test]
fn a_key_is_found_by_its_first_bucket_while_that_splits() {
    let hashes = vec![hash(4, (0, 1), 1)];
    check(2, move || {
        let world = Arc::new(World::<L>::of_a_map(4, grows_to(5, 0.95), hashes.clone()));
        world.insert(0).unwrap();
        let splitter = beside(&world, |world| world.table.reserve(3, world.hasher()));
        assert_eq!(world.get_first(0), Some(location(0, 0)), "missed while its bucket may be splitting");
        splitter.join().unwrap();
        assert_eq!((world.table.buckets(), world.get_first(0)), (5, Some(location(0, 0))));
    });
}

/// An entry is put into the first bucket that its key has once that is locked, whichever it was before.
#[test]
fn a_key_goes_to_its_first_bucket_while_that_splits() {
    let hashes = vec![hash(4, (0, 1), 1)];
    check(1, move || {
        let world = Arc::new(World::<L>::of_a_map(4, grows_to(5, 0.95), hashes.clone()));
        let splitter = beside(&world, |world| world.table.reserve(4, world.hasher()));
        world.insert(0).unwrap();
        assert_eq!(world.get_first(0), Some(location(0, 0)));
        splitter.join().unwrap();
        assert_eq!(world.table.buckets(), 5);
        assert_eq!((world.get_first(0), world.count(0)), (Some(location(0, 0)), 1));
    });
}

/// Who locks a key's first bucket alone asks for its mark once more: the key may have gone elsewhere since, and there
/// may be room by now.
#[test]
fn a_key_that_goes_elsewhere_is_not_inserted_at_home_as_well() {
    let hashes = vec![hash(4, (0, 2), 0), hash(4, (0, 0), 0)];
    check(1, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(1).unwrap();
        let inserts = |world: &World<L>, which| {
            matches!(world.insert_at(0, location(0, which)), Ok(Insertion::Inserted(_)))
        };
        let other = beside(&world, move |world| {
            let inserted = inserts(world, 1);
            assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
            inserted
        });
        let inserted = inserts(&world, 0);
        assert!(inserted ^ other.join().unwrap(), "both, or neither");
        assert_eq!(world.count(0), 1);
        assert!(world.table.iter().all(|at| holds(at, 0)));
    });
}

/// Keys of one hash, whose two buckets have a slot each: the third goes to the stash. Whoever looks for it from when it
/// is in finds it, and of two who put it in one does.
#[test]
fn a_stashed_key_is_put_in_once_and_found() {
    let hashes = vec![hash_for(2, L::TAG_BITS, (0, 1), 0, 0); 3];
    check_for(Some(seconds_of_a_large_model()), 3, move || {
        let world = Arc::new(World::<L>::stashing(2, Growth::Fixed, hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let other = beside(&world, |world| {
            let inserted = matches!(world.insert_at(2, location(2, 1)), Ok(Insertion::Inserted(_)));
            assert!(world.get(2).is_some(), "it is in, by this thread or by the other one");
            inserted
        });
        let inserted = matches!(world.insert_at(2, location(2, 0)), Ok(Insertion::Inserted(_)));
        let (found, others) = (world.get(2), other.join().unwrap());
        assert!(inserted ^ others, "both, or neither");
        assert_eq!(found, Some(location(2, others.into())));
        assert_eq!((world.count(0), world.count(1), world.count(2)), (1, 1, 1));
        assert!(world.table.remove_exact(world.hashes[2], location(2, others.into())));
        assert_eq!((world.get(2), world.table.len()), (None, 2));
    });
}

/// The mark of a bucket goes with its entries when it splits: a stashed key is found before, meanwhile and after.
#[test]
fn a_stashed_key_is_found_while_its_bucket_splits() {
    // Of one hash, whose first bucket is 0, and 4 once that has been split.
    let hashes = vec![hash_for(4, L::TAG_BITS, (0, 1), 1, 0); 3];
    check_for(Some(seconds_of_a_large_model()), 3, move || {
        let world = Arc::new(World::<L>::stashing(4, grows_to(5, 0.95), hashes.clone()));
        for key in 0..3 {
            world.insert(key).unwrap();
        }
        assert_eq!(world.table.buckets(), 4);
        let writer = beside(&world, |world| world.table.reserve(3, world.hasher()));
        assert_eq!(world.get(2), Some(location(2, 0)), "missed while its bucket may be splitting");
        writer.join().unwrap();
        assert_eq!(world.table.buckets(), 5);
        for key in 0..3 {
            assert_eq!((world.get(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// Who looks in a key's first bucket only finds it while it is displaced to the other one, and afterwards.
#[test]
fn a_key_is_found_by_its_first_bucket_while_it_is_displaced() {
    let hashes = vec![hash_for(4, L::TAG_BITS, (0, 2), 0, 0), hash_for(4, L::TAG_BITS, (0, 0), 0, 0)];
    check(3, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, |world| {
            assert!(matches!(world.insert(1), Ok(Insertion::Inserted(work)) if work.displaced == 1))
        });
        assert_eq!(world.get_first(0), Some(location(0, 0)), "missed while it moves");
        writer.join().unwrap();
        for key in 0..2 {
            assert_eq!((world.get_first(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// So does a map's batch.
#[test]
fn a_batch_finds_by_first_buckets_what_is_displaced() {
    let hashes = [((0, 2), 0), ((0, 0), 0), ((3, 3), 0)]
        .map(|(candidates, nth)| hash_for(4, L::TAG_BITS, candidates, 0, nth))
        .to_vec();
    check(3, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, |world| world.insert(1).unwrap());
        let mut found = [None; 2];
        let hashes = [world.hashes[0], world.hashes[2]];
        let eq = |i, at| holds(at, 2 * i);
        world.table.find_group_first(&world.hasher(), &hashes, eq, |i, at| found[i] = at);
        assert_eq!(found, [Some(location(0, 0)), None]);
        writer.join().unwrap();
    });
}

/// A key that went to its other bucket is found by its first one while that splits: the mark is handed on.
#[test]
fn a_key_elsewhere_is_found_while_its_first_bucket_splits() {
    // The first bucket is 0, and 4 once that has been split; the second key finds it taken.
    let hashes = vec![hash_for(4, L::TAG_BITS, (0, 0), 0, 0), hash_for(4, L::TAG_BITS, (0, 1), 1, 0)];
    check(3, move || {
        let world = Arc::new(World::<L>::of_a_map(4, grows_to(5, 0.95), hashes.clone()));
        world.insert(0).unwrap();
        world.insert(1).unwrap();
        assert_eq!(world.table.buckets(), 4);
        let writer = beside(&world, |world| world.table.reserve(3, world.hasher()));
        assert_eq!(world.get_first(1), Some(location(1, 0)), "missed while its bucket may be splitting");
        writer.join().unwrap();
        assert_eq!(world.table.buckets(), 5);
        for key in 0..2 {
            assert_eq!((world.get_first(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// Of two who insert a key, one by its first bucket's lock alone and the other, because that bucket was full when he
/// looked, by both, one succeeds; and what one has seen the other one sees.
#[test]
fn a_key_is_inserted_once_by_one_lock_or_by_two() {
    let hashes = vec![hash_for(4, L::TAG_BITS, (0, 2), 0, 0), hash_for(4, L::TAG_BITS, (0, 0), 0, 0)];
    check_for(Some(seconds_of_a_large_model()), 3, move || {
        let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
        world.insert(1).unwrap();
        let other = beside(&world, |world| {
            let inserted = matches!(world.insert_at(0, location(0, 1)), Ok(Insertion::Inserted(_)));
            assert!(world.get_first(0).is_some(), "it is in, by this thread or by the other one");
            inserted
        });
        assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
        let inserted = matches!(world.insert_at(0, location(0, 0)), Ok(Insertion::Inserted(_)));
        let (found, others) = (world.get_first(0), other.join().unwrap());
        assert!(inserted ^ others, "both, or neither");
        assert_eq!((found, world.count(0)), (Some(location(0, others.into())), 1));
        assert!(world.table.replace(
            world.hashes[0],
            location(0, others.into()),
            location(0, inserted.into())
        ));
        assert!(world.table.remove_exact(world.hashes[0], location(0, inserted.into())));
        assert_eq!((world.get_first(0), world.table.len()), (None, 0));
    });
}
