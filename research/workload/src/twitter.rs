//! Twitter's 54 memcached clusters (Yang, Yue and Rashmi, "A large scale analysis of hundreds of in-memory cache
//! clusters at Twitter", OSDI 2020), as the table of March 2020 in `twitter/cache-trace` describes them: of each what a
//! generated trace is made of.
//!
//! What the table does not say as its header does:
//!
//! - Of cluster 5 nothing of this was published; clusters 43 and 46 have no Zipf exponent.
//! - A Zipf exponent of 0 stands where none was fitted. Most such clusters ask for a key once or twice, and cluster
//!   35 does not.
//! - Operations and times to live have two decimals: shares below 1 % are left out, and the rest adds up to between
//!   0.97 and 1.01. Used as weights they are divided by their sum. Of the times to live only common ones are there.
//! - Of key and value sizes there is the mean alone.

use std::time::Duration;

use crate::DistributionError;
use crate::discrete::Discrete;
use crate::operation::CacheOperation;
use crate::table::{Table, number};

/// A cluster. What the table does not tell of it is `None`, or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Its number, from 1.
    pub number: u32,
    /// Mean bytes of keys.
    pub key_size: Option<f64>,
    /// Mean bytes of values.
    pub value_size: Option<f64>,
    /// Common times to live and their shares.
    pub times_to_live: Vec<(Duration, f64)>,
    /// Operations and their shares.
    pub operations: Vec<(CacheOperation, f64)>,
    /// The exponent of the Zipf distribution of popularity. 0 stands where none was fitted.
    pub zipf_alpha: Option<f64>,
}

impl Cluster {
    /// All clusters.
    ///
    /// ```
    /// use lookaside_workload::twitter::Cluster;
    ///
    /// let clusters = Cluster::published();
    /// assert_eq!((clusters.len(), clusters[51].number, clusters[51].value_size), (54, 52, Some(273.0)));
    /// ```
    #[must_use]
    pub fn published() -> Vec<Cluster> {
        let table = Table::named("twitter").expect("it is among the tables");
        let of = |word: &str, cluster: &str| {
            let row = table.rows(word).find(|row| row[0] == cluster).expect("each cluster has its lines");
            row[1..].to_vec()
        };
        let cluster = |row: Vec<&str>| {
            let figure = |at: usize| (row[at] != "-").then(|| number(row[at]));
            let operation = |pair: &[&str]| {
                (CacheOperation::from_name(pair[0].as_bytes()).expect("an operation"), number(pair[1]))
            };
            let time = |pair: &[&str]| (Duration::from_secs(number(pair[0])), number(pair[1]));
            Cluster {
                number: number(row[0]),
                key_size: figure(3),
                value_size: figure(4),
                zipf_alpha: figure(11),
                operations: of("operations", row[0]).chunks(2).map(operation).collect(),
                times_to_live: of("times", row[0]).chunks(2).map(time).collect(),
            }
        };
        table.rows("cluster").map(cluster).collect()
    }

    /// The operations as weights.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] for cluster 5, of which the table tells none.
    pub fn operation_mix(&self) -> Result<Discrete<CacheOperation>, DistributionError> {
        Discrete::new(self.operations.iter().copied())
    }

    /// The common times to live as weights.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] for cluster 5, of which the table tells none.
    pub fn time_to_live_mix(&self) -> Result<Discrete<Duration>, DistributionError> {
        Discrete::new(self.times_to_live.iter().copied())
    }
}
