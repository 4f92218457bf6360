//! The workloads that Meta published with CacheLib (Berg et al., "The CacheLib caching engine", OSDI 2020), for its
//! program `cachebench`. [`Workload::published`] has the six of them by name.
//!
//! - The popularity: so many keys got so many requests together.
//! - The distribution of value sizes (see [`Histogram`]).
//! - The operations and the key sizes.
//!
//! A *lone get* is for a key that is never asked for again. Such keys have the numbers behind all others.
//!
//! The ratios of operations are weights, divided here by their sum as `cachebench` does. That matters for
//! `kvcache_reg`, where they add up to 1.12.

use rand::Rng;
use rand::distr::Distribution;

use crate::discrete::Discrete;
use crate::popularity::{Bucket, Buckets};
use crate::sizes::Histogram;
use crate::table::Table;

/// One operation of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A get.
    Get,
    /// A get of a key that is never asked for again.
    LoneGet,
    /// A set.
    Set,
    /// A deletion.
    Delete,
    /// An addition to an item's chain, a notion of CacheLib.
    AddChained,
}

/// One operation and the record that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Request {
    /// What is asked.
    pub operation: Operation,
    /// The record's number: its rank, 0 the hottest, or a number behind all ranks for a lone get.
    pub record: u64,
}

/// A published workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    operations: Discrete<Operation>,
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
        let operations = [
            ("get", Operation::Get),
            ("lone_get", Operation::LoneGet),
            ("set", Operation::Set),
            ("delete", Operation::Delete),
            ("add_chained", Operation::AddChained),
        ];
        let operations = operations.map(|(word, operation)| (operation, table.number(word)));
        let bounds: Vec<u64> = table.numbers("key_sizes").next().expect(WELL_FORMED);
        let shares: Vec<f64> = table.numbers("key_shares").next().expect(WELL_FORMED);
        let buckets = table.numbers("popularity").map(|row| Bucket { keys: row[0], weight: row[1] });
        let popularity = Buckets::new(buckets.collect()).expect(WELL_FORMED);
        let (sizes, weights): (Vec<u64>, Vec<f64>) =
            table.numbers("value").map(|row: Vec<u64>| (row[0], row[1] as f64)).unzip();
        Some(Workload {
            operations: Discrete::new(operations).expect(WELL_FORMED),
            next_lone: popularity.records(),
            popularity,
            key_sizes: Histogram::new(&bounds, &shares).expect(WELL_FORMED),
            value_sizes: Histogram::new(&sizes, &weights).expect(WELL_FORMED),
        })
    }

    /// The operations, and the share of each.
    pub fn operations(&self) -> &Discrete<Operation> {
        &self.operations
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

    /// Draws a request.
    pub fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> Request {
        let operation = self.operations.sample(rng);
        let record = if operation == Operation::LoneGet {
            self.next_lone += 1;
            self.next_lone - 1
        } else {
            self.popularity.sample(rng)
        };
        Request { operation, record }
    }
}
