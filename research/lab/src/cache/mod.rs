//! Experiments on the cache: the paper's section 5.3, and two questions of our own (how dense it is, and who is
//! evicted).
//!
//! The caches that the paper compares with are small and live here, with items of 16 + 32 bytes laid out as memcached
//! lays them out; the cache under test is [`cache::engine::Cache`].
//!
//! | module | idea |
//! |---|---|
//! | `contestant` | what an experiment asks of a cache |
//! | `items` | the baselines' items |
//! | `recency_list` | what baselines are made of beside `index::chains`: memcached's strict LRU |
//! | `chaining_lru` | baseline: memcached |
//! | `cuckoo_lru`, `chaining_clock` | baselines: half way, either way |
//! | `cuckoo_clock` | the cache under test |
//! | `choice` | naming a cache in a definition |
//! | `requests` | what is asked |
//! | `replacement` | kind `cache-replacement`: Table 3 |
//! | `throughput` | kind `cache-throughput`: Figure 8, the other half of Table 1 |
//! | `density` | kind `cache-density`: resident memory |
//! | `memory_sizes` | kind `memory-sizes`: memory goes from one size to another |
//! | `eviction` | policies that the cache does not have, simulated |
//! | `hit_time` | the time of a hit, by what a policy notes of it |
//! | `policies` | kind `cache-policies`: eviction on recorded requests |

mod chaining_clock;
mod chaining_lru;
mod choice;
mod contestant;
mod cuckoo_clock;
mod cuckoo_lru;
mod density;
mod eviction;
mod hit_time;
mod items;
mod memory_sizes;
mod policies;
mod recency_list;
mod replacement;
mod requests;
mod throughput;

use crate::experiment::Laboratory;

/// Adds the kinds of experiment on the cache.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory
        .with_kind("cache-replacement", replacement::run)
        .with_kind("cache-throughput", throughput::run)
        .with_kind("cache-density", density::run)
        .with_kind("memory-sizes", memory_sizes::run)
        .with_kind("cache-policies", policies::run)
}
