use super::*;
use crate::pinned::Pinned;

fn pointer(key: u64) -> Pointer {
    Pointer::new(0x10_0000 + key).unwrap()
}

#[test]
fn there_are_as_many_marks_as_asked_for_or_up_to_the_next_power_of_two() {
    for (asked, given) in [(1, 1), (2, 2), (3, 4), (128, 128), (129, 256), (256, 256)] {
        let buffer = Buffer::for_indexes(&Config::with_size(64), asked).unwrap();
        for _ in 0..given {
            buffer.index_id().unwrap();
        }
        for _ in 0..3 {
            assert_eq!(buffer.index_id(), Err(NoIdLeft(given)));
        }
    }
    for asked in [0, 257, usize::MAX] {
        let outcome = Buffer::for_indexes(&Config::with_size(64), asked);
        assert!(matches!(outcome, Err(CreateError::Parameter { parameter: "indexes", .. })));
    }
}

/// A table of seven slots, six of them in use or all, by its own count and by ours.
#[test]
fn what_a_write_clears_and_puts_in_is_counted() {
    let hash = |key: u64| (key + 1) << 52;
    let config = Config::paper(64);
    let after = |end: fn(&Pinned<'_>, Write<'_>)| {
        let buffer = Buffer::new(&config).unwrap();
        let visit = buffer.pinned();
        for key in 0..7 {
            visit.admit(&visit.ticket(hash(key)), hash(key), pointer(key));
        }
        end(&visit, visit.write(hash(3)));
        let counted = visit.table().in_use();
        assert_eq!(counted, visit.table().occupancy());
        (counted, visit.find(hash(3), |_| true))
    };
    assert_eq!(after(|_, write| drop(write)), (6, None));
    assert_eq!(after(|_, write| write.put(pointer(9))), (7, Some(pointer(9))));
    // Another comes into the slot meanwhile, of another stripe.
    let taken = after(|visit, write| {
        let hash = 1 << 63;
        assert_ne!(Buffer::stripe_of(hash), Buffer::stripe_of(write.hash));
        visit.admit(&visit.ticket(hash), hash, pointer(8));
        assert_eq!(visit.find(hash, |_| true), Some(pointer(8)));
        write.put(pointer(9));
    });
    assert_eq!(taken, (7, Some(pointer(9))));
}

/// The same key, and so the same hash but for the id, in every index.
fn equal_keys_never_meet(size: usize) {
    let buffer = Buffer::for_indexes(&Config::with_size(size), 256).unwrap();
    let visit = buffer.pinned();
    let ids: Vec<IndexId> = (0..256).map(|_| buffer.index_id().unwrap()).collect();
    for hash in [0, u64::MAX, 0xfedc_ba98_7654_3210] {
        for (number, id) in ids.iter().enumerate() {
            let hash = id.on(hash);
            let ticket = visit.ticket(hash);
            visit.admit(&ticket, hash, pointer(number as u64));
        }
        let mut found = 0;
        for (number, id) in ids.iter().enumerate() {
            let own = pointer(number as u64);
            let mut asked = 0;
            let answer = visit.find(id.on(hash), |pointer| {
                assert_eq!(pointer, own, "another index's entry");
                asked += 1;
                true
            });
            assert_eq!(visit.peek(id.on(hash)).map(|(_, found)| found), answer);
            assert_eq!(answer.is_some(), asked == 1);
            found += asked;
        }
        assert!(found > 0);
        // A write to one index leaves the others' entries alone.
        let kept = |number: usize| visit.find(ids[number].on(hash), |_| true).is_some();
        let before: Vec<bool> = (0..256).map(kept).collect();
        drop(visit.write(ids[3].on(hash)));
        let after: Vec<bool> = (0..256).map(kept).collect();
        assert!((0..256).all(|number| after[number] == (before[number] && number != 3)));
    }
}

#[test]
fn equal_keys_of_indexes_that_share_a_buffer_never_meet() {
    equal_keys_never_meet(64);
    equal_keys_never_meet(1 << 16);
}

#[test]
fn what_happens_is_counted() {
    let buffer = Buffer::new(&Config::with_size(64)).unwrap();
    let mut visit = buffer.pinned();
    let hash = |key: u64| (key + 1) << Pointer::BITS;
    let look = |visit: &Pinned<'_>, key| visit.find(hash(key), |_| true).is_some();
    // Eight misses and offers in a table of seven.
    for key in 0..8 {
        let ticket = visit.ticket(hash(key));
        assert!(!look(&visit, key));
        visit.admit(&ticket, hash(key), pointer(key));
    }
    assert_eq!((buffer.counts().hits, buffer.counts().misses), (0, 8), "while the visit lasts");
    assert!(look(&visit, 7) && look(&visit, 7));
    // Admitted again: there already. With a ticket from before a write: dropped.
    let ticket = visit.ticket(hash(7));
    visit.admit(&ticket, hash(7), pointer(7));
    let write = visit.write(hash(7));
    write.put(pointer(77));
    drop(write);
    visit.admit(&ticket, hash(7), pointer(7));
    assert_eq!(visit.find(hash(7), |_| true), Some(pointer(77)));
    let write = visit.write(hash(99));
    write.put(pointer(99));
    drop(write);
    assert!(!look(&visit, 99), "was not hot, and so is not put in");
    visit.refresh();
    let expected = Counts {
        hits: 3,
        misses: 9,
        bypassed: 0,
        offers: 10,
        admissions: 8,
        evictions: 1,
        refused_tickets: 1,
        invalidations: 2,
        cleared: 1,
        successions: 0,
    };
    assert_eq!(buffer.counts(), expected);
    assert_eq!(buffer.counts().hit_ratio(), 0.25);
    assert_eq!(Counts::default().hit_ratio(), 0.0);
    assert!(look(&visit, 7));
    drop(visit);
    assert_eq!(buffer.counts(), Counts { hits: 4, ..expected }, "left behind");
}

#[test]
fn tickets_are_void_from_the_moment_a_write_begins() {
    let buffer = Buffer::new(&Config::with_size(64)).unwrap();
    let visit = buffer.pinned();
    let hash = 5 << Pointer::BITS;
    let admits = |ticket: &Ticket| {
        visit.admit(ticket, hash, pointer(1));
        let there = visit.find(hash, |_| true).is_some();
        buffer.forget(hash, pointer(1));
        there
    };
    let before = visit.ticket(hash);
    assert!(admits(&before) && admits(&before), "as often as one likes");
    let write = visit.write(hash);
    let during = visit.ticket(hash);
    assert!(!admits(&before) && !admits(&during));
    drop(write);
    assert!(!admits(&before) && !admits(&during) && admits(&visit.ticket(hash)));
    let before = visit.ticket(hash);
    buffer.lock(hash);
    assert!(!admits(&before) && !admits(&visit.ticket(hash)));
    buffer.unlock(hash);
    buffer.unlock(hash);
    assert!(!admits(&before) && admits(&visit.ticket(hash)));
}

#[test]
fn a_resized_table_is_empty_and_a_refused_size_changes_nothing() {
    let buffer = Buffer::new(&Config::with_size(64)).unwrap();
    let visit = buffer.pinned();
    let hash = 5 << Pointer::BITS;
    visit.admit(&visit.ticket(hash), hash, pointer(1));
    let old = visit.table();
    for size in [0, 63, usize::MAX] {
        assert!(buffer.resize(size).is_err());
        assert!(visit.find(hash, |_| true).is_some());
    }
    let ticket = visit.ticket(hash);
    buffer.resize(6400).unwrap();
    assert!(visit.find(hash, |_| true).is_none());
    assert_eq!((visit.table().capacity(), old.capacity(), old.occupancy()), (700, 7, 1));
    visit.admit(&ticket, hash, pointer(1));
    assert!(visit.find(hash, |_| true).is_some(), "the ticket speaks of the index, not of the table");
    // A write that began before the table was replaced.
    let write = visit.write(hash);
    buffer.resize(64).unwrap();
    write.put(pointer(2));
    drop(write);
    assert!(visit.find(hash, |_| true).is_none(), "put into a table that is gone");
    visit.admit(&visit.ticket(hash), hash, pointer(2));
    assert_eq!(visit.find(hash, |_| true), Some(pointer(2)));
}
