//! Naming a cache in a definition, and making it.
//!
//! A cache's size is that of the space for items, as in the paper: the index is not counted (footnote 5).

use pages::PageKind;
use serde::Deserialize;

use super::chaining_clock::{self, ChainingClock};
use super::chaining_lru::{self, ChainingLru};
use super::contestant::{Contestant, Value};
use super::cuckoo_clock::CuckooClock;
use super::cuckoo_lru::{self, CuckooLru};
use crate::experiment::ExperimentError;
use crate::index::Key;
use crate::index::tables::page_kind;
use crate::subject::Call;

/// A cache as definitions name it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CacheChoice {
    /// The name of the configuration in the results.
    pub(super) name: String,
    /// The cache.
    pub(super) cache: Design,
    /// Whether it is asked one by one or in batches.
    #[serde(default)]
    pub(super) call: Call,
}

/// The kinds of cache.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Design {
    /// memcached's.
    ChainingLru {
        /// Bytes of a chunk, where that is more than the item.
        #[serde(default)]
        chunk: usize,
        /// Pages of items and index.
        #[serde(deserialize_with = "page_kind")]
        pages: PageKind,
    },
    /// memcached's replacement over the cuckoo index.
    CuckooLru,
    /// memcached's index with CLOCK.
    ChainingClock,
    /// Ours.
    CuckooClock,
}

impl Design {
    /// An empty cache with `space` bytes for items of 16 + 32 bytes.
    pub(super) fn make(&self, space: usize) -> Result<Box<dyn Contestant>, ExperimentError> {
        // What can be placed in huge pages is, where that is worth it: as the cache under test chooses for itself.
        let huge = if space >= 64 << 20 { PageKind::Transparent } else { PageKind::Base };
        Ok(match *self {
            Design::ChainingLru { chunk, pages } => {
                let bytes = chunk.max(chaining_lru::LAYOUT.bytes());
                Box::new(ChainingLru::new(space / bytes, bytes, pages)?)
            }
            Design::CuckooLru => Box::new(CuckooLru::new(space / cuckoo_lru::LAYOUT.bytes(), huge)?),
            Design::ChainingClock => {
                Box::new(ChainingClock::new(space / chaining_clock::LAYOUT.bytes(), huge)?)
            }
            Design::CuckooClock => Box::new(CuckooClock::<cache::engine::Clock>::new(
                space,
                size_of::<Key>(),
                size_of::<Value>(),
            )?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::contestant::{Request, Tally, Verb};
    use super::*;
    use rand::RngExt;
    use std::collections::{HashMap, VecDeque};
    use workload::generator::seeded;

    const SPACE: usize = 1 << 20;

    fn all() -> [Design; 4] {
        [
            Design::ChainingLru { chunk: 120, pages: PageKind::Base },
            Design::CuckooLru,
            Design::ChainingClock,
            Design::CuckooClock,
        ]
    }

    /// Requests for a fifth more keys than the smallest of the caches has room for, some of them hotter than others.
    fn requests(count: usize, seed: u64) -> Vec<Request> {
        let mut random = seeded(seed);
        let mut draw = |_| {
            let keys: u64 = if random.random_bool(0.5) { 1_000 } else { 22_000 };
            let record = random.random_range(0..keys);
            let verb = if random.random_bool(0.05) { Verb::Set } else { Verb::Get };
            Request { key: Key::of(record), verb }
        };
        (0..count).map(&mut draw).collect()
    }

    #[test]
    fn every_cache_finds_what_was_set_last_and_holds_what_its_space_allows() {
        for design in all() {
            let cache = design.make(SPACE).unwrap();
            let mut visitor = cache.enter();
            // Of no request: its value is another than theirs would be.
            let key = Key::of(1 << 40);
            assert_eq!(visitor.get(&key), None);
            for other in [1, 2, 3] {
                let value = Value::of(&Key::of(other));
                assert!(visitor.set(&key, &value));
                assert_eq!(visitor.get(&key), Some(value), "{design:?}");
            }
            assert!(!cache.has_evicted());
            for (seed, batched) in [(0, false), (1, true)] {
                let requests = requests(200_000, seed);
                let tally =
                    if batched { visitor.perform_batched(&requests) } else { visitor.perform(&requests) };
                assert_eq!(tally.wrong, 0, "{design:?}");
                // A store gives up if a reader whose thread has lost its core keeps it waiting: seldom, on a busy
                // machine.
                assert!(tally.refused < 30, "{design:?}: {} of 300000 refused", tally.refused);
                assert!((5.0..60.0).contains(&tally.miss_ratio()), "{design:?}: {tally:?}");
                assert!(tally.gets > 180_000);
            }
            assert!(cache.has_evicted(), "{design:?}");
            let per_item = SPACE / cache.holding().items;
            let expected = match design {
                Design::ChainingLru { .. } => 120..=120,
                Design::CuckooLru => 104..=104,
                Design::ChainingClock => 88..=88,
                // Of 16 pages, one is kept in reserve, and one or two more are the index's.
                Design::CuckooClock => 56..=72,
            };
            assert!(expected.contains(&per_item), "{design:?}: {per_item}");
        }
    }

    /// Both caches with lists hit and miss as the plainest LRU does.
    #[test]
    fn strict_lru_is_strict() {
        let designs = [Design::ChainingLru { chunk: 0, pages: PageKind::Base }, Design::CuckooLru];
        for (design, bytes) in designs.into_iter().zip([112, 104]) {
            let cache = design.make(100 * bytes).unwrap();
            let mut visitor = cache.enter();
            let mut newest_first: VecDeque<[u8; 16]> = VecDeque::new();
            let mut random = seeded(3);
            for _ in 0..20_000 {
                let key = Key::of(random.random_range(0..150) * random.random_range(0..2));
                let known = newest_first.iter().position(|known| *known == key.0);
                let hit = visitor.get(&key).is_some();
                assert_eq!(hit, known.is_some(), "{design:?}");
                match known {
                    Some(at) => drop(newest_first.remove(at)),
                    None => newest_first.truncate(99),
                }
                newest_first.push_front(key.0);
                if !hit {
                    assert!(visitor.set(&key, &Value::of(&key)));
                }
            }
        }
    }

    /// The chaining cache's CLOCK hits and misses as the plainest one does.
    #[test]
    fn clock_gives_a_second_chance() {
        let cache = Design::ChainingClock.make(100 * 88).unwrap();
        let mut visitor = cache.enter();
        let (mut ring, mut at): (Vec<([u8; 16], bool)>, _) = (Vec::new(), 0);
        let mut random = seeded(4);
        for _ in 0..20_000 {
            let key = Key::of(random.random_range(0..150) * random.random_range(0..2));
            let hit = visitor.get(&key).is_some();
            match ring.iter_mut().find(|(known, _)| *known == key.0) {
                Some((_, used)) => {
                    assert!(hit);
                    *used = true;
                }
                None => {
                    assert!(!hit && visitor.set(&key, &Value::of(&key)));
                    if ring.len() < 100 {
                        ring.push((key.0, true));
                        continue;
                    }
                    while std::mem::take(&mut ring[at].1) {
                        at = (at + 1) % 100;
                    }
                    ring[at] = (key.0, true);
                    at = (at + 1) % 100;
                }
            }
        }
    }

    /// Threads that get, set and evict at once see no wrong value, and lose nothing that they need.
    #[test]
    fn threads_share_a_cache() {
        for design in all() {
            let cache = design.make(SPACE).unwrap();
            let tally = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..2)
                    .map(|thread| {
                        let cache = &*cache;
                        scope.spawn(move || cache.enter().perform(&requests(150_000, thread)))
                    })
                    .collect();
                let mut sum = Tally::default();
                threads.into_iter().for_each(|thread| sum += thread.join().unwrap());
                sum
            });
            // A thread that loses its core in the middle of a request holds back what the other evicts until it goes
            // on; the other may then find nothing free.
            assert_eq!(tally.wrong, 0, "{design:?}");
            assert!(tally.refused < tally.gets / 100, "{design:?}: {tally:?}");
            assert!(cache.has_evicted());
            // Each key has one item.
            let mut counts = HashMap::new();
            let mut visitor = cache.enter();
            for record in 0..22_000 {
                if visitor.get(&Key::of(record)).is_some() {
                    *counts.entry(record).or_insert(0) += 1;
                }
            }
            let (found, items) = (counts.len(), cache.holding().items);
            assert_eq!(found, items, "{design:?}");
        }
    }
}
