#![forbid(unsafe_code)]
//! What a cache or an index is asked, in which order, and for how large an item.
//!
//! A figure about a cache says as much about its input as about the cache. So every input has one definition here,
//! taken from the publication that introduced it, and draws the same requests again from the same seed.
//!
//! | module | idea |
//! |---|---|
//! | [`data`] | where recorded traces are found |
//! | [`generated`] | traces of the shape of recorded ones, for who has none |
//! | [`trace`] | recorded requests, read one at a time from six formats |
//! | [`stand_in`] | a recorded trace, or the generated one in its place |
//! | [`operation`] | what is asked of a cache |
//! | [`key`] | keys as traces spell them, and keys made from a record's number |
//! | [`popularity`] | which record is asked for: uniform, Zipfian three ways, latest, a published histogram |
//! | [`sizes`] | how large keys and values are; a key keeps its size |
//! | [`discrete`] | a choice from a list of weighted alternatives |
//! | [`cachelib`] | the workloads that Meta published with CacheLib |
//! | [`facebook`] | sizes in the ETC pool of Facebook's memcached |
//! | [`generator`] | seeded random generators, one per thread |
//!
//! Ranks are counted from 0, the hottest. Draws take the caller's generator through [`rand`]'s
//! [`Distribution`](rand::distr::Distribution), so that anything that draws from a `Distribution<u64>` takes any of
//! them.
//!
//! ```
//! use lookaside_workload::{generator, popularity::Zipfian};
//! use rand::distr::Distribution;
//!
//! // A million records; the hottest gets 6.5 % of the requests.
//! let zipfian = Zipfian::new(1_000_000, 0.99)?;
//! assert!((zipfian.share_of_hottest(1) - 0.065).abs() < 0.0005);
//!
//! // Draw before the clock starts, and warm up with other draws than those that are measured: a cache that was warmed
//! // with these shows a hit ratio that no later request will see.
//! let mut ranks = zipfian.sample_iter(generator::seeded(7));
//! let warm_up: Vec<u64> = ranks.by_ref().take(10_000).collect();
//! let measured: Vec<u64> = ranks.take(10_000).collect();
//! assert_ne!(warm_up, measured);
//! # Ok::<(), lookaside_workload::DistributionError>(())
//! ```

pub mod cachelib;
pub mod data;
pub mod discrete;
mod error;
pub mod facebook;
pub mod generated;
pub mod generator;
pub mod key;
pub mod operation;
pub mod popularity;
mod record;
pub mod sizes;
pub mod stand_in;
mod table;
pub mod trace;

pub use error::DistributionError;
