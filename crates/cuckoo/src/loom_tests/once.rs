//! [`crate::once`] under the model checker: what makes a value once for all who ask for its key, over the table of the
//! other models.

use loom::sync::Arc;
use loom::thread;

use super::{World, check_for, hash_for, location, seconds_of_a_large_model};
use crate::layout::{Inline, Layout};
use crate::once::{Once, number_of};
use crate::slot::Location;
use crate::{Growth, Insertion};

/// Two keys, of a mutex each, and what makes their values once.
type Makers = (World<Inline<1>>, Once);

fn makers(hashes: &[u64; 2]) -> Arc<Makers> {
    Arc::new((World::new(4, Growth::Fixed, hashes.to_vec()), Once::default()))
}

fn hashes_to_make() -> [u64; 2] {
    let first = hash_for(4, Inline::<1>::TAG_BITS, (0, 2), 0, 0);
    let mut others = (0..64).map(|nth| hash_for(4, Inline::<1>::TAG_BITS, (1, 3), 0, nth));
    let second = others.find(|&hash| number_of(hash) != number_of(first));
    [first, second.expect("half of them")]
}

/// Asks for a key as `get_or_insert_with` does, by a closure that says where the new entry is. Where that says nothing
/// it has panicked: nothing is put in, and the right to make the value goes.
fn ask((world, once): &Makers, key: usize, make: impl FnOnce() -> Option<Location>) -> Option<Location> {
    let find = |&key: &usize| world.get(key).map(Some);
    once.get_or_make(world.hashes[key], key, find, |key| {
        let new = make()?;
        match world.insert_at(key, new) {
            Ok(Insertion::Occupied(old)) => Some(old),
            outcome => outcome.ok().map(|_| new),
        }
    })
}

/// And both see it.
#[test]
fn of_two_who_ask_for_a_key_one_makes_its_value() {
    let hashes = hashes_to_make();
    check_for(Some(seconds_of_a_large_model()), 3, move || {
        let world = makers(&hashes);
        let other = thread::spawn({
            let world = world.clone();
            move || {
                let mut made = false;
                let make = || {
                    made = true;
                    Some(location(0, 1))
                };
                (ask(&world, 0, make), made)
            }
        });
        let mut made = false;
        let make = || {
            made = true;
            Some(location(0, 0))
        };
        let found = ask(&world, 0, make);
        let (other_found, other_made) = other.join().unwrap();
        assert!(made ^ other_made, "both, or neither");
        assert_eq!([found, other_found], [Some(location(0, other_made.into())); 2]);
        assert_eq!(world.0.count(0), 1);
    });
}

#[test]
fn where_making_a_value_fails_the_next_makes_it() {
    let hashes = hashes_to_make();
    check_for(Some(seconds_of_a_large_model()), 3, move || {
        let world = makers(&hashes);
        let other = thread::spawn({
            let world = world.clone();
            move || ask(&world, 0, || None)
        });
        let mut made = false;
        let make = || {
            made = true;
            Some(location(0, 0))
        };
        assert_eq!(ask(&world, 0, make), Some(location(0, 0)));
        assert!(made);
        // He has failed, or came behind.
        assert!([None, Some(location(0, 0))].contains(&other.join().unwrap()));
        assert_eq!(world.0.count(0), 1);
    });
}

/// Each makes a value for which it asks for the other's; a model that hangs is a failure. Here a value may be made
/// twice, but is there once.
#[test]
fn of_two_whose_values_ask_for_each_other_none_waits_for_ever() {
    let hashes = hashes_to_make();
    check_for(Some(seconds_of_a_large_model()), 2, move || {
        let world = makers(&hashes);
        let both = |world: &Makers, key: usize, which: usize| {
            let other = 1 - key;
            let mut inner = None;
            let outer = ask(world, key, || {
                inner = ask(world, other, || Some(location(other, which)));
                Some(location(key, which))
            });
            (outer, inner)
        };
        let thread = thread::spawn({
            let world = world.clone();
            move || both(&world, 1, 1)
        });
        let (zero, one) = both(&world, 0, 0);
        let (others_one, others_zero) = thread.join().unwrap();
        let there = [0, 1].map(|key| world.0.get(key));
        assert_eq!((zero, others_one), (there[0], there[1]));
        assert!(one.is_none_or(|one| Some(one) == there[1]));
        assert!(others_zero.is_none_or(|zero| Some(zero) == there[0]));
        assert_eq!([0, 1].map(|key| world.0.count(key)), [1, 1]);
    });
}
