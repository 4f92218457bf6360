//! Tests for all indexes of one owner, and for all contestants: behind a [`lookaside::OwnedMap`] with a tiny table an
//! index must be a map, and in each form it must answer requests. What threads share is tested in `history`.
//!
//! The table has two lines for a hundred keys, so entries come and go all the time, and the index answers as often as
//! the table does.

use std::collections::{BTreeMap, BTreeSet};

use lookaside::{Config, OwnedMap, Random};

use super::contestant::{Contestant, OwnedIndex};
use super::entrant::{Entrant, Made};
use super::record::{Key, Value};
use super::visit::{BATCH, Request};
use crate::subject::{Call, Tally};

/// Keys that are written.
const KEYS: u32 = 100;
/// Steps of the check.
const STEPS: u32 = 20_000;

/// Checks an index behind a map against a plain map, with each kind of admission.
///
/// # Panics
/// Where the two differ.
pub fn check_owned<I: OwnedIndex<24>>() {
    check_owned_behind::<I>(&Config::with_size(128), 1000);
    // Of what is emitted, its log sees a twentieth.
    check_owned_behind::<I>(&Config::paper(128), 10);
}

/// Behind a table made so, which must have evicted so often.
fn check_owned_behind<I: OwnedIndex<24>>(config: &Config, evictions: u64) {
    let index = I::make(KEYS as usize).unwrap_or_else(|reason| panic!("{reason}"));
    let mut map = OwnedMap::with_index(index, config).expect("two lines are a table");
    map.monitor(false);
    let (mut model, random) = (BTreeMap::new(), Random::new(3));
    let key = || Key::of(u64::from(random.below(KEYS)));
    for step in 0..STEPS {
        let (key_now, value) = (key(), Value::of(u64::from(step)));
        match random.below(10) {
            0 => {
                let old = map.insert(key_now, value.clone());
                assert_eq!(old.as_deref().cloned(), model.insert(key_now, value), "insert, step {step}");
            }
            1 => {
                let replaced = map.replace(key_now, value.clone()).ok();
                assert_eq!(replaced.as_deref(), model.get(&key_now), "replace, step {step}");
                model.entry(key_now).and_modify(|old| *old = value);
            }
            2 | 3 => {
                let keys: Vec<_> = (0..random.below(40)).map(|_| key()).collect();
                let expected: Vec<_> = keys.iter().map(|key| model.get(key)).collect();
                let mut values = vec![None; keys.len()];
                map.get_many(&keys.iter().collect::<Vec<_>>(), &mut values);
                assert_eq!(values, expected, "get_many, step {step}");
            }
            _ => assert_eq!(map.get(&key_now), model.get(&key_now), "get, step {step}"),
        }
        assert_eq!(map.len(), model.len(), "step {step}");
    }
    let counts = map.counts();
    assert!(counts.hits > 1000 && counts.evictions > evictions && counts.cleared > 100, "{counts:?}");
}

/// Checks each form of an entrant against a plain map: alone, and behind the tables that it can be put behind, watched
/// by the monitor or not.
///
/// # Panics
/// Where they differ, or a table that nobody switches off answers next to nothing.
pub fn check_entrant<const N: usize>(entrant: &Entrant<N>) {
    let check = |form: &str, made: Made<N>| {
        let name = format!("{}, {form}", entrant.name);
        let contestant = made.unwrap_or_else(|reason| panic!("{name}: {reason}"));
        check_requests(&name, &*contestant);
        contestant.counts().map_or(0, |counts| counts.hits)
    };
    check("alone", (entrant.alone)(KEYS as usize));
    let answers = |form: &str, hits: u64| {
        assert!(hits > u64::from(STEPS) / 40, "{}, {form}: {hits} hits", entrant.name);
    };
    let slb = Config::with_size(128);
    for (form, make) in
        [("SLB", entrant.shared), ("SLB, owner-only", entrant.sole), ("SLB, by calls", entrant.called)]
    {
        let Some(make) = make else { continue };
        answers(form, check(form, make(KEYS as usize, &slb, false)));
        check(&format!("{form}, with the monitor"), make(KEYS as usize, &slb, true));
    }
    if let Some(make) = entrant.stlt {
        answers("STLT-SW", check("STLT-SW", make(KEYS as usize, 128, 4)));
    }
}

/// Writes and lookups mixed, and lookups alone, a few at a time: each by itself, or in batches. No key stands twice
/// among those that are mixed in batches, because there a lookup may be carried out after a write that follows it. What
/// is found is compared by number and sum.
fn check_requests<const N: usize>(name: &str, contestant: &dyn Contestant<N>) {
    let mut model = BTreeMap::new();
    let random = Random::new(7);
    let key = || u64::from(random.below(KEYS));
    let mut found = 0;
    for round in 0..STEPS / 20 {
        let call = if random.below(2) == 0 { Call::Single } else { Call::Batch };
        let most = 2 * BATCH as u32;
        let (mut seen, mut requests, mut expected) = (BTreeSet::new(), Vec::new(), Tally::default());
        for step in 0..random.below(most) {
            let (number, record, set) = (key(), u64::from(round * most + step), random.below(3) == 0);
            if !seen.insert(number) && call == Call::Batch {
                continue;
            }
            if set {
                model.insert(number, record);
            } else {
                expected.count(model.get(&number).map(|&record| Value::expected(record)));
            }
            requests.push(Request { key: Key::of(number), record, set });
        }
        let answer = contestant.perform(0, call, &requests).tally;
        assert_eq!(answer, expected, "{name}, round {round}, {call:?}, writes and lookups");
        found += expected.found;
        let asked: Vec<_> = (0..random.below(most)).map(|_| key()).collect();
        let mut expected = Tally::default();
        asked
            .iter()
            .for_each(|number| expected.count(model.get(number).map(|&record| Value::expected(record))));
        let keys: Vec<_> = asked.into_iter().map(Key::of).collect();
        let answer = contestant.get(0, call, &[], &keys).tally;
        assert_eq!(answer, expected, "{name}, round {round}, {call:?}, lookups");
        found += expected.found;
    }
    assert!(found > u64::from(STEPS) / 10, "{name}: next to nothing was found");
}
