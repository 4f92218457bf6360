//! The ideal cache: the most lookups that any table of so many entries could have answered.
//!
//! Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966: throw
//! out what is asked for last. As a table need not take what it is offered, a newcomer that is itself asked for last
//! stays outside.
//!
//! What the cache holds is the set of the positions at which its keys are asked for next. So a key is in it exactly if
//! the present position is, which is then the smallest; the victim is the largest. That is a search tree of 32-bit
//! numbers, and no map from keys.

use std::collections::BTreeSet;

use super::requests::{Kind, Request};

/// A position that never comes.
const NEVER: u32 = u32::MAX;

/// For each lookup, where its key is next looked up before it is deleted.
pub(super) fn next_lookups(requests: &[Request], keys: usize) -> Vec<u32> {
    let mut coming = vec![NEVER; keys];
    let mut next = vec![NEVER; requests.len()];
    for (position, request) in requests.iter().enumerate().rev() {
        let coming = &mut coming[request.key as usize];
        match request.kind {
            // A position fits: the reader counts them.
            Kind::Lookup => next[position] = std::mem::replace(coming, position as u32),
            Kind::Delete => *coming = NEVER,
            Kind::Write | Kind::LookupOfNothing => {}
        }
    }
    next
}

/// Hits among the requests from position `counted_from` on, of a cache with room for `entries` keys.
pub(super) fn hits(requests: &[Request], next: &[u32], entries: usize, counted_from: usize) -> u64 {
    let mut cached = BTreeSet::new();
    let mut hits = 0;
    for (position, request) in requests.iter().enumerate() {
        if request.kind != Kind::Lookup {
            continue;
        }
        if cached.first() == Some(&(position as u32)) {
            cached.pop_first();
            hits += u64::from(position >= counted_from);
        }
        let next = next[position];
        if next == NEVER {
            continue;
        }
        if cached.len() < entries {
            cached.insert(next);
        } else if cached.last().is_some_and(|&last| last > next) {
            cached.pop_last();
            cached.insert(next);
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lookups(keys: &[u32]) -> Vec<Request> {
        keys.iter().map(|&key| Request { key, kind: Kind::Lookup }).collect()
    }

    fn hits_of(requests: &[Request], entries: usize) -> u64 {
        hits(requests, &next_lookups(requests, 16), entries, 0)
    }

    #[test]
    fn known_answers() {
        // A loop over three keys with room for two: two of them stay, and the third never enters.
        assert_eq!(hits_of(&lookups(&[0, 1, 2, 0, 1, 2, 0, 1, 2]), 2), 4);
        // Room for all: everything but the first time.
        assert_eq!(hits_of(&lookups(&[0, 1, 2, 0, 1, 2, 0, 1, 2]), 3), 6);
        // One that comes once does not push out what comes again.
        assert_eq!(hits_of(&lookups(&[0, 1, 0, 2, 0]), 1), 2);
        // What is deleted is not found, and is not worth room.
        let mut requests = lookups(&[0, 0, 0, 0]);
        requests[1].kind = Kind::Delete;
        requests[2].kind = Kind::LookupOfNothing;
        assert_eq!(hits_of(&requests, 1), 0);
    }

    /// The best of all choices, tried one by one.
    fn best(requests: &[Request], entries: usize, cached: &mut Vec<u32>) -> u64 {
        let Some((first, rest)) = requests.split_first() else { return 0 };
        if cached.contains(&first.key) {
            return 1 + best(rest, entries, cached);
        }
        let mut most = best(rest, entries, cached);
        if cached.len() < entries {
            cached.push(first.key);
            most = most.max(best(rest, entries, cached));
            cached.pop();
        } else {
            for at in 0..cached.len() {
                let old = std::mem::replace(&mut cached[at], first.key);
                most = most.max(best(rest, entries, cached));
                cached[at] = old;
            }
        }
        most
    }

    proptest! {
        #[test]
        fn no_choice_of_victims_hits_more_often(
            keys in prop::collection::vec(0u32..5, 0..11),
            entries in 1usize..4,
        ) {
            let requests = lookups(&keys);
            prop_assert_eq!(hits_of(&requests, entries), best(&requests, entries, &mut Vec::new()));
        }
    }
}
