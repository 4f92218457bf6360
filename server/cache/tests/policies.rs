//! What every eviction policy must do: each one is run through the same workloads, inside a policy that holds it to the
//! contract of [`Policy`].

use std::cell::Cell;
use std::collections::HashMap;

use lookaside_cache::engine::{
    Cache, Chunks, Clock, Config, CountingClock, Entry, Expiry, Look, Policy, Position, Recency, Session,
    Verb,
};
use pages::PageKind;

/// Chunks that a search for a victim may change at the most: far fewer than the classes here have, and what a bound of
/// microseconds means.
const MOST_CHANGED: usize = 4096;

thread_local! {
    /// Searches that were watched on this thread.
    static WATCHED: Cell<usize> = const { Cell::new(0) };
    /// Every how many searches are watched: a watched one looks at the whole class.
    static EVERY: Cell<usize> = const { Cell::new(200) };
    static SEARCHES: Cell<usize> = const { Cell::new(0) };
}

/// A policy that is held to the contract.
#[derive(Default)]
struct Held<P>(P);

/// What lies at every position of the ring.
fn survey(chunks: &Chunks<'_>) -> Vec<(Position, Look)> {
    let mut all = Vec::new();
    let mut position = Position::default();
    loop {
        all.push((position, chunks.look(position)));
        position = chunks.after(position);
        if position == Position::default() {
            assert!(all.len() <= chunks.len());
            return all;
        }
    }
}

impl<P: Policy> Policy for Held<P> {
    const NAME: &'static str = P::NAME;
    const NEWCOMER: Recency = P::NEWCOMER;
    const WANTS_ENTRIES: bool = P::WANTS_ENTRIES;

    fn hit(recency: Recency) -> Recency {
        P::hit(recency)
    }

    fn entered(&mut self, position: Position) {
        self.0.entered(position);
    }

    fn came(&mut self, page: usize) {
        self.0.came(page);
    }

    fn went(&mut self, page: usize) {
        self.0.went(page);
    }

    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position> {
        let search = SEARCHES.replace(SEARCHES.get() + 1);
        if !search.is_multiple_of(EVERY.get()) {
            return self.0.victim(chunks);
        }
        WATCHED.set(WATCHED.get() + 1);
        let before = survey(chunks);
        let victim = self.0.victim(chunks);
        let after = survey(chunks);
        assert_eq!(before.len(), after.len());
        let mut changed = 0;
        for ((position, was), (same, is)) in before.iter().zip(&after) {
            assert_eq!(position, same);
            match (was, is) {
                (Look::Live(was), Look::Live(is)) => {
                    assert!(is <= was, "a search made an item at {position:?} younger");
                    changed += usize::from(is < was);
                }
                (was, is) => assert_eq!(was, is, "a search did more than change what is remembered"),
            }
        }
        assert!(changed <= MOST_CHANGED, "{}: {changed} chunks changed in one search", P::NAME);
        let look_at = |victim| before.iter().find(|(position, _)| *position == victim).map(|&(_, look)| look);
        match victim.and_then(look_at) {
            Some(Look::Dead | Look::Live(Recency::NONE)) => {}
            // Only for want of a better one within the bound.
            Some(Look::Live(recency)) => {
                assert!(changed >= before.len().min(1000), "{}: a victim of recency {recency:?}", P::NAME);
            }
            Some(Look::Vacant) => panic!("{}: nothing lies at the victim's place", P::NAME),
            None => {
                let items = before.iter().filter(|(_, look)| *look != Look::Vacant).count();
                assert_eq!((victim, items), (None, 0), "{}: there was something to evict", P::NAME);
            }
        }
        victim
    }
}

/// Runs a check on every policy.
macro_rules! every_policy {
    ($($check:ident),* $(,)?) => { $(
        #[test]
        fn $check() {
            checks::$check::<Clock>();
            checks::$check::<CountingClock>();
        }
    )* };
}

every_policy!(
    a_hit_is_remembered_and_hits_come_to_rest,
    the_contract_holds_at_every_eviction,
    what_was_hit_has_a_second_chance,
    a_class_all_of_whose_items_are_in_use_still_has_a_victim,
);

fn cache<P: Policy>(limit: usize) -> Cache<Held<P>> {
    Cache::new(Config { pages: PageKind::Base, ..Config::with_limit(limit) }).unwrap()
}

fn key(number: u64) -> [u8; 16] {
    let mut key = [b'k'; 16];
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn set<P: Policy>(session: &mut Session<P>, number: u64, value: u64) {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&value.to_be_bytes());
    session.store(Verb::Set, Entry::new(&key(number)), &bytes).unwrap();
}

fn get<P: Policy>(session: &mut Session<P>, number: u64) -> Option<u64> {
    let pinned = session.pin();
    let hit = pinned.get(&key(number))?;
    let value = hit.contiguous().expect("a small value");
    Some(u64::from_be_bytes(value[..8].try_into().unwrap()))
}

/// Stores items until one has had to go; says how many there are then.
fn fill<P: Policy>(cache: &Cache<P>, session: &mut Session<P>) -> u64 {
    for number in 0.. {
        set(session, number, number);
        if cache.classes().iter().any(|(_, class)| class.departures.evicted > 0) {
            return number + 1;
        }
    }
    unreachable!("a cache is full sooner or later")
}

/// The next of a sequence of numbers in no order.
fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *random >> 33
}

mod checks {
    use super::*;

    pub(crate) fn a_hit_is_remembered_and_hits_come_to_rest<P: Policy>() {
        for start in 0..=3 {
            let mut recency = Recency::new(start);
            for _ in 0..4 {
                let after = P::hit(recency);
                // A policy of one bit has no more than one to say.
                assert!(after >= recency || after > Recency::NONE, "{}: a hit was forgotten", P::NAME);
                recency = after;
            }
            assert_eq!(P::hit(recency), recency, "{}: every further hit would write", P::NAME);
        }
        assert!(P::hit(P::NEWCOMER) > Recency::NONE);
    }

    /// Gets, sets and deletes, some items expiring; whatever is found is what was stored last.
    pub(crate) fn the_contract_holds_at_every_eviction<P: Policy>() {
        let cache = cache::<P>(2 << 20);
        let mut session = cache.session();
        let mut latest = HashMap::new();
        let mut random = 1;
        WATCHED.set(0);
        for sequence in 0..150_000u64 {
            if sequence.is_multiple_of(1000) {
                cache.set_time(1 + (sequence / 1000) as u32);
            }
            // Half of the requests for a hundredth of the keys.
            let keys = if next(&mut random).is_multiple_of(2) { 500 } else { 200_000 };
            let number = next(&mut random) % keys;
            match next(&mut random) % 16 {
                0..10 => {
                    let found = get(&mut session, number);
                    assert!(
                        found.is_none() || found == latest.get(&number).copied(),
                        "{}: {number}",
                        P::NAME
                    );
                    if found.is_none() {
                        set(&mut session, number, sequence);
                        latest.insert(number, sequence);
                    }
                }
                10..15 => {
                    set(&mut session, number, sequence);
                    latest.insert(number, sequence);
                }
                _ => {
                    let expiry = Expiry::At(cache.time() + 1 + (number % 20) as u32);
                    session.touch(&key(number), expiry).unwrap();
                }
            }
        }
        assert!(WATCHED.get() > 50, "{}: {} searches were watched", P::NAME, WATCHED.get());
        assert!(latest.len() > cache.len(), "more was stored than there is room for");
    }

    pub(crate) fn what_was_hit_has_a_second_chance<P: Policy>() {
        let cache = cache::<P>(2 << 20);
        let mut session = cache.session();
        let room = fill(&cache, &mut session);
        // Where the hand stands now, one turn of it makes all alike: nothing is remembered from before.
        for number in room..3 * room {
            set(&mut session, number, number);
        }
        let kept: Vec<_> =
            (room..3 * room).filter(|&number| session.pin().peek(&key(number)).is_some()).collect();
        let (hit, not): (Vec<_>, Vec<_>) = kept.iter().partition(|&number| number % 2 == 0);
        for &number in &hit {
            assert_eq!(get(&mut session, number), Some(number));
        }
        // Less than those that were not hit make room for.
        for number in 3 * room..3 * room + room / 3 {
            set(&mut session, number, number);
        }
        let left = |numbers: &[u64], session: &mut Session<Held<P>>| {
            numbers.iter().filter(|&&number| session.pin().peek(&key(number)).is_some()).count()
        };
        assert_eq!(left(&hit, &mut session), hit.len(), "{}: what was hit must stay", P::NAME);
        assert!(left(&not, &mut session) < not.len() / 2, "{}: what was not must go", P::NAME);
    }

    pub(crate) fn a_class_all_of_whose_items_are_in_use_still_has_a_victim<P: Policy>() {
        let cache = cache::<P>(8 << 20);
        let mut session = cache.session();
        let room = fill(&cache, &mut session);
        for _ in 0..4 {
            for number in 0..room {
                get(&mut session, number);
            }
        }
        WATCHED.set(0);
        EVERY.set(1);
        // What the class keeps ready, and then some.
        for number in room..room + 150 {
            set(&mut session, number, number);
            assert_eq!(get(&mut session, number), Some(number));
        }
        assert!(WATCHED.get() > 100 && room as usize > 20 * MOST_CHANGED, "{} of {room}", WATCHED.get());
        EVERY.set(200);
    }
}
