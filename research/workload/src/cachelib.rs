//! The workloads that Meta published with CacheLib (Berg et al., "The CacheLib caching engine", OSDI 2020), for its
//! program `cachebench`. [`Workload::published`] has the six of them by name.
//!
//! - The popularity: so many keys got so many requests together.
//! - The distribution of value sizes (see [`Histogram`]), and that of key sizes.
//! - The operations. All six have gets alone. A *lone get* is for a key that is never asked for again; such keys have
//!   the numbers behind all others.
//!
//! The ratios of operations are weights, divided here by their sum as `cachebench` does. That matters for
//! `kvcache_reg`, where they add up to 1.12.

use rand::Rng;
use rand::distr::Distribution;

use crate::discrete::Discrete;
use crate::popularity::{Bucket, Buckets};
use crate::sizes::Histogram;
use crate::table::Table;

/// A published workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Whether a get is a lone one.
    is_lone: Discrete<bool>,
    popularity: Buckets,
    key_sizes: Histogram,
    value_sizes: Histogram,
    next_lone: u64,
}

impl Workload {
    /// The workload of this name, such as `kvcache_reg`, of the figures that are built into the program: hundreds of
    /// classes of popularity and of sizes instead of thousands. `None` where none has the name.
    ///
    /// ```
    /// use lookaside_workload::{cachelib::Workload, sizes::Sizes};
    ///
    /// let workload = Workload::published("kvcache_reg").expect("one of the six");
    /// assert_eq!(workload.value_sizes().quantile(0.5), 159);
    /// ```
    #[must_use]
    pub fn published(name: &str) -> Option<Workload> {
        const WELL_FORMED: &str = "the tables are those of distributions";
        let table = Table::named(name).filter(|table| table.rows("get").next().is_some())?;
        let is_lone = [(false, table.number("get")), (true, table.number("lone_get"))];
        let bounds: Vec<u64> = table.numbers("key_sizes").next().expect(WELL_FORMED);
        let shares: Vec<f64> = table.numbers("key_shares").next().expect(WELL_FORMED);
        let buckets = table.numbers("popularity").map(|row| Bucket { keys: row[0], weight: row[1] });
        let popularity = Buckets::new(buckets.collect()).expect(WELL_FORMED);
        let (sizes, weights): (Vec<u64>, Vec<f64>) =
            table.numbers("value").map(|row: Vec<u64>| (row[0], row[1] as f64)).unzip();
        Some(Workload {
            is_lone: Discrete::new(is_lone).expect(WELL_FORMED),
            next_lone: popularity.records(),
            popularity,
            key_sizes: Histogram::new(&bounds, &shares).expect(WELL_FORMED),
            value_sizes: Histogram::new(&sizes, &weights).expect(WELL_FORMED),
        })
    }

    /// The popularity of the keys that are asked for more than once.
    pub fn popularity(&self) -> &Buckets {
        &self.popularity
    }

    /// Bytes of keys.
    pub fn key_sizes(&self) -> &Histogram {
        &self.key_sizes
    }

    /// Bytes of values.
    pub fn value_sizes(&self) -> &Histogram {
        &self.value_sizes
    }

    /// Draws a get: the number of its record, which is the rank, 0 the hottest, or one behind all ranks for a lone get.
    pub fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> u64 {
        if self.is_lone.sample(rng) {
            self.next_lone += 1;
            return self.next_lone - 1;
        }
        self.popularity.sample(rng)
    }
}
