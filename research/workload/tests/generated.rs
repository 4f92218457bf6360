//! Generated traces have the shape of what they stand in for.

use std::collections::{HashMap, HashSet};

use lookaside_workload::generated::{Generated, words};
use lookaside_workload::key::Key;
use lookaside_workload::operation::CacheOperation;
use lookaside_workload::stand_in::{StandIn, recorded_or_generated};
use lookaside_workload::trace::Record;

fn generated(name: &str) -> impl Iterator<Item = Record> {
    Generated::named(name).unwrap_or_else(|| panic!("{name}"))
}

/// The keys of the requests, numbered as they first occur.
fn numbered(records: impl Iterator<Item = Record>) -> Vec<usize> {
    let mut numbers = HashMap::new();
    records
        .map(|record| {
            let next = numbers.len();
            *numbers.entry(record.key).or_insert(next)
        })
        .collect()
}

/// The share of the requests, in per cent, that a cache of so many keys answers, which lets go of the one that was
/// asked for longest ago.
fn hits_of_lru(requests: &[usize], keys: usize, room: usize) -> f64 {
    // A ring through all that is there: what was asked for last stands behind the head, `keys`.
    let (mut before, mut behind) = (vec![usize::MAX; keys + 1], vec![usize::MAX; keys + 1]);
    (before[keys], behind[keys]) = (keys, keys);
    let (mut hits, mut held) = (0, 0);
    for &key in requests {
        if behind[key] != usize::MAX {
            hits += 1;
        } else if held == room {
            let last = before[keys];
            (behind[before[last]], before[keys]) = (keys, before[last]);
            behind[last] = usize::MAX;
        } else {
            held += 1;
        }
        if behind[key] != usize::MAX {
            (behind[before[key]], before[behind[key]]) = (behind[key], before[key]);
        }
        (behind[key], before[key]) = (behind[keys], keys);
        before[behind[keys]] = key;
        behind[keys] = key;
    }
    100.0 * f64::from(hits) / requests.len() as f64
}

/// The recorded traces' hit ratios, counted with another program.
#[test]
fn recorded_shapes_have_their_requests_and_keys_and_hit_as_often() {
    let shapes = [
        ("web07", 76_118, 20_484, [42.4, 52.1, 57.4, 62.9, 69.2]),
        ("orm-busy", 5_000_000, 76_349, [79.4, 85.2, 89.2, 93.4, 96.7]),
    ];
    for (name, requests, keys, hits) in shapes {
        let trace = numbered(generated(&format!("generated/{name}")));
        assert_eq!((trace.len(), trace.iter().max()), (requests, Some(&(keys - 1))), "{name}");
        for (part, expected) in [64, 16, 8, 4, 2].into_iter().zip(hits) {
            let found = hits_of_lru(&trace, keys, keys / part);
            assert!((found - expected).abs() < 2.5, "{name}, 1/{part}: {found} instead of {expected}");
        }
    }
}

#[test]
fn paths_are_those_of_a_content_delivery_network() {
    let trace: Vec<_> = generated("generated/fb-cdn").collect();
    let mut keys = HashSet::new();
    for record in &trace {
        let Key::Text(text) = &record.key else { panic!("a path") };
        assert!(text.starts_with(b"cdn:") || text.starts_with(b"igcdn:"), "{}", record.key);
        keys.insert(text);
    }
    assert_eq!((trace.len(), keys.len()), (9_999, 3_125));
}

#[test]
fn published_workloads_are_drawn() {
    let trace = generated("generated/kvcache_reg");
    assert_eq!(trace.filter(|record| record.operation == CacheOperation::Get).count(), 1_000_000);
    assert!(["generated/none", "generated/words"].iter().all(|name| Generated::named(name).is_none()));
}

#[test]
fn every_name_is_a_trace_and_repeats() {
    let names: Vec<_> = Generated::names().collect();
    assert_eq!(names.len(), 9, "{names:?}");
    for name in names.iter().filter(|name| !name.ends_with("orm-busy")) {
        let few = || generated(name).take(1_000).collect::<Vec<_>>();
        assert_eq!((few().len(), few()), (1_000, few()), "{name}");
    }
}

#[test]
fn words_are_as_long_as_words() {
    let words = words();
    let mean = words.iter().map(|word| word.len()).sum::<usize>() as f64 / words.len() as f64;
    // 9.6 letters in the mean. Short ones are few, and drawn ones are then there already.
    assert!((9.0..10.8).contains(&mean), "{mean}");
}

#[test]
fn a_trace_that_is_not_here_has_another_in_its_place_and_says_so() {
    if std::env::var_os(lookaside_workload::data::VARIABLE).is_some() {
        return outside::say("recorded traces are named: nothing stands in for them");
    }
    let (trace, stand_in) = recorded_or_generated("traces/web07.trace.xz").unwrap().unwrap();
    let StandIn { name, absent } = stand_in.unwrap();
    assert_eq!((trace.count(), name.as_str()), (76_118, "generated/web07"));
    assert!(absent.to_string().contains("LOOKASIDE_DATA"), "{absent}");
    assert!(recorded_or_generated("traces/none.trace").unwrap().is_err());
}
