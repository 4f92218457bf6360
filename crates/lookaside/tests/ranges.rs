//! Ranges of a map: what they show while they are read piece by piece.

use std::ops::Bound;

use lookaside::{Map, OwnedMap};

fn numbers<'m>(range: impl Iterator<Item = (&'m u64, &'m u64)>) -> Vec<u64> {
    range.map(|(number, _)| *number).collect()
}

#[test]
fn ranges_of_any_length_have_each_entry_once() {
    for many in [0, 1, 15, 16, 17, 47, 48, 49, 5000] {
        let map: Map<u64, u64> = (0..many).map(|number| (number, 0)).collect();
        let owned: OwnedMap<u64, u64> = (0..many).map(|number| (number, 0)).collect();
        let (reader, all) = (map.pin(), (0..many).collect::<Vec<_>>());
        assert_eq!(numbers(reader.range::<u64, _>(..)), all);
        assert_eq!(numbers(owned.range::<u64, _>(..)), all);
        assert_eq!(numbers(reader.range(..many / 2)), all[..many as usize / 2]);
        assert_eq!(numbers(owned.range(many / 3..)), all[many as usize / 3..]);
    }
}

/// Where the standard library's maps panic.
#[test]
fn a_range_that_ends_before_it_begins_has_nothing() {
    let map: Map<u64, u64> = (0..10).map(|number| (number, 0)).collect();
    let owned: OwnedMap<u64, u64> = (0..10).map(|number| (number, 0)).collect();
    #[expect(clippy::reversed_empty_ranges)]
    let backwards = 7..3;
    assert_eq!(map.pin().range(backwards.clone()).next(), None);
    assert_eq!(owned.range(backwards).next(), None);
    let nowhere = (Bound::Excluded(3), Bound::Excluded(3));
    assert_eq!((map.pin().range(nowhere).next(), owned.range(nowhere).next()), (None, None));
}

#[test]
fn strings_are_ranged_by_what_they_are_borrowed_as() {
    let names = ["remus", "roma", "rome", "romulus"];
    let map: Map<String, usize> = names.iter().map(|name| name.to_string()).zip(0..).collect();
    let reader = map.pin();
    let range = reader.range::<str, _>((Bound::Excluded("roma"), Bound::Unbounded));
    assert_eq!(range.map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["rome", "romulus"]);
}

/// No lock is held, so the map can be changed: entries that are there all the time are shown, in order, and once.
#[test]
fn a_map_is_changed_while_its_range_is_read() {
    let map: Map<u64, u64> = (0..1000).map(|number| (number * 2, 0)).collect();
    let reader = map.pin();
    let mut shown = Vec::new();
    for (number, _) in reader.range(10..) {
        shown.push(*number);
        // The one shown goes, and one before it comes; one far behind comes, and is shown.
        map.remove(number);
        map.insert(number - 1, 0);
        if number % 2 == 0 && *number < 900 {
            map.insert(number + 999, 0);
        }
    }
    assert!(shown.is_sorted_by(|one, other| one < other));
    let even: Vec<u64> = shown.iter().copied().filter(|number| number % 2 == 0).collect();
    assert_eq!(even, (5..1000).map(|number| number * 2).collect::<Vec<_>>());
    assert_eq!(shown.len() - even.len(), (10..900).step_by(2).count(), "those that came");
}
