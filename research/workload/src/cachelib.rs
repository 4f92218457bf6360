//! The workloads that Meta published with CacheLib (Berg et al., "The CacheLib caching engine", OSDI 2020), each a
//! folder of three files for the program `cachebench`. [`Workload::published`] has the six of them by name, [`Workload::open`]
//! reads the files as they were published.
//!
//! - `pop.json` is the popularity: `popularityBuckets` keys got `popularityWeights` requests together.
//! - `sizes.json` is the distribution of value sizes: as many `valSizeRange` as `valSizeRangeProbability`, so each
//!   is one size (see [`Histogram`]).
//! - `config.json` has the operations, the key sizes, and whether a get that misses is followed by a set.
//!
//! A *lone get* is for a key that is never asked for again. Such keys have the numbers behind all others.
//!
//! The ratios of operations are weights, divided here by their sum as `cachebench` does. That matters for
//! `kvcache_reg`, where they add up to 1.12: its `loneGetRatio` of 0.135 does not go with the `oneHits` of 0.015 in
//! its `pop.json`, which would make the sum 1 as in all other folders. Both are shown ([`Config::lone_gets`],
//! [`Workload::one_hits`]); who wants the latter replaces the former. `numKeys` counts the original system's keys;
//! the histogram has its own number.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rand::Rng;
use rand::distr::Distribution;
use serde::Deserialize;

use crate::DistributionError;
use crate::discrete::Discrete;
use crate::popularity::{Bucket, Buckets};
use crate::sizes::Histogram;
use crate::table::Table;

/// Why a workload cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum CachelibError {
    /// A file cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is not what `cachebench` reads.
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// The numbers of a file make no distribution.
    Distribution {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: DistributionError,
    },
    /// `pop.json` has not as many buckets as weights.
    Popularity {
        /// The file.
        path: PathBuf,
        /// How many buckets there are.
        buckets: usize,
        /// How many weights there are.
        weights: usize,
    },
}

impl fmt::Display for CachelibError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CachelibError::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            CachelibError::Json { path, source } => {
                write!(f, "{} is not a file of a cachebench workload: {source}", path.display())
            }
            CachelibError::Distribution { path, source } => {
                write!(f, "{} holds no distribution: {source}", path.display())
            }
            CachelibError::Popularity { path, buckets, weights } => {
                write!(f, "{} has {buckets} buckets and {weights} weights: is it complete?", path.display())
            }
        }
    }
}

impl std::error::Error for CachelibError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CachelibError::Read { source, .. } => Some(source),
            CachelibError::Json { source, .. } => Some(source),
            CachelibError::Distribution { source, .. } => Some(source),
            CachelibError::Popularity { .. } => None,
        }
    }
}

/// What a get that misses is followed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnMiss {
    /// A set of the key: the cache stands beside a store.
    Set,
    /// Nothing.
    Nothing,
}

/// What `config.json` tells of the requests. The operations are weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Gets.
    pub gets: f64,
    /// Gets of keys that are never asked for again.
    pub lone_gets: f64,
    /// Sets, beside those that misses are followed by.
    pub sets: f64,
    /// Deletions.
    pub deletes: f64,
    /// Additions to an item's chain, a notion of CacheLib.
    pub add_chained: f64,
    /// What a get that misses is followed by.
    pub on_miss: OnMiss,
    /// Bytes of keys.
    pub key_sizes: Histogram,
    /// The number of keys in the system that was recorded.
    pub original_keys: u64,
}

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
    /// An addition to an item's chain.
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

#[derive(Deserialize)]
struct ConfigFile {
    test_config: TestConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TestConfig {
    get_ratio: f64,
    #[serde(default)]
    lone_get_ratio: f64,
    #[serde(default)]
    set_ratio: f64,
    #[serde(default)]
    del_ratio: f64,
    #[serde(default)]
    add_chained_ratio: f64,
    #[serde(default)]
    enable_lookaside: bool,
    key_size_range: Vec<u64>,
    key_size_range_probability: Vec<f64>,
    num_keys: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PopularityFile {
    one_hits: f64,
    popularity_buckets: Vec<u64>,
    popularity_weights: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SizesFile {
    val_size_range: Vec<u64>,
    val_size_range_probability: Vec<f64>,
}

/// A published workload.
///
/// ```no_run
/// use lookaside_workload::{cachelib::Workload, data::DataFolder, generator, sizes::Sizes};
///
/// let folder = DataFolder::find()?.file("dists/cachelib/kvcache_reg")?;
/// let mut workload = Workload::open(folder)?;
/// let request = workload.draw(&mut generator::seeded(1));
/// // Values eight times as large, as far as a cache takes them.
/// let sizes = workload.value_sizes().scaled(8.0)?.clamped(0, 1_000_000)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    config: Config,
    operations: Discrete<Operation>,
    popularity: Buckets,
    one_hits: f64,
    value_sizes: Histogram,
    next_lone: u64,
}

impl Workload {
    /// The workload of this name, such as `kvcache_reg`, of the figures that are built into the program: hundreds of classes of
    /// popularity and of sizes instead of thousands. `None` where none has the name.
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
        let one = |word| table.numbers(word).next().expect(WELL_FORMED);
        let bounds: Vec<u64> = table.numbers("key_sizes").next().expect(WELL_FORMED);
        let config = Config {
            gets: table.number("get"),
            lone_gets: table.number("lone_get"),
            sets: table.number("set"),
            deletes: table.number("delete"),
            add_chained: table.number("add_chained"),
            on_miss: if table.number::<u8>("set_on_miss") == 1 { OnMiss::Set } else { OnMiss::Nothing },
            key_sizes: Histogram::new(&bounds, &one("key_shares")).expect(WELL_FORMED),
            original_keys: table.number("original_keys"),
        };
        let buckets = table.numbers("popularity").map(|row| Bucket { keys: row[0], weight: row[1] });
        let popularity = Buckets::new(buckets.collect()).expect(WELL_FORMED);
        let (sizes, shares): (Vec<u64>, Vec<f64>) =
            table.numbers("value").map(|row: Vec<u64>| (row[0], row[1] as f64)).unzip();
        let sizes = Histogram::new(&sizes, &shares).expect(WELL_FORMED);
        Some(Workload::new(config, popularity, table.number("one_hits"), sizes).expect(WELL_FORMED))
    }

    /// Reads the workload in `folder`.
    ///
    /// # Errors
    ///
    /// A [`CachelibError`] that names the file and what is wrong with it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Workload, CachelibError> {
        let folder = folder.as_ref();
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read(&path).map_err(|source| CachelibError::Read { path, source })
        };
        Workload::parse(folder, &read("config.json")?, &read("pop.json")?, &read("sizes.json")?)
    }

    /// Reads the workload from the contents of its three files. `folder` is named where something is wrong.
    ///
    /// # Errors
    ///
    /// As [`open`](Workload::open), but never [`CachelibError::Read`].
    pub fn parse(folder: &Path, config: &[u8], pop: &[u8], sizes: &[u8]) -> Result<Workload, CachelibError> {
        let json = |name: &str| {
            let path = folder.join(name);
            move |source| CachelibError::Json { path, source }
        };
        let distribution = |name: &str| {
            let path = folder.join(name);
            move |source| CachelibError::Distribution { path, source }
        };

        let file: ConfigFile = serde_json::from_slice(config).map_err(json("config.json"))?;
        let file = file.test_config;
        let key_sizes = Histogram::new(&file.key_size_range, &file.key_size_range_probability);
        let config = Config {
            gets: file.get_ratio,
            lone_gets: file.lone_get_ratio,
            sets: file.set_ratio,
            deletes: file.del_ratio,
            add_chained: file.add_chained_ratio,
            on_miss: if file.enable_lookaside { OnMiss::Set } else { OnMiss::Nothing },
            key_sizes: key_sizes.map_err(distribution("config.json"))?,
            original_keys: file.num_keys,
        };

        let file: PopularityFile = serde_json::from_slice(pop).map_err(json("pop.json"))?;
        let (buckets, weights) = (file.popularity_buckets, file.popularity_weights);
        if buckets.len() != weights.len() {
            let (buckets, weights) = (buckets.len(), weights.len());
            return Err(CachelibError::Popularity { path: folder.join("pop.json"), buckets, weights });
        }
        let pairs = buckets.into_iter().zip(weights);
        let popularity = Buckets::new(pairs.map(|(keys, weight)| Bucket { keys, weight }).collect());
        let popularity = popularity.map_err(distribution("pop.json"))?;
        let one_hits = file.one_hits;

        let file: SizesFile = serde_json::from_slice(sizes).map_err(json("sizes.json"))?;
        let value_sizes = Histogram::new(&file.val_size_range, &file.val_size_range_probability);
        let value_sizes = value_sizes.map_err(distribution("sizes.json"))?;

        Workload::new(config, popularity, one_hits, value_sizes).map_err(distribution("config.json"))
    }

    fn new(
        config: Config,
        popularity: Buckets,
        one_hits: f64,
        value_sizes: Histogram,
    ) -> Result<Workload, DistributionError> {
        let operations = Discrete::new([
            (Operation::Get, config.gets),
            (Operation::LoneGet, config.lone_gets),
            (Operation::Set, config.sets),
            (Operation::Delete, config.deletes),
            (Operation::AddChained, config.add_chained),
        ])?;
        let next_lone = popularity.records();
        Ok(Workload { config, operations, popularity, one_hits, value_sizes, next_lone })
    }

    /// The same workload with other operations or key sizes.
    ///
    /// # Errors
    ///
    /// Those of [`Discrete::new`], where the operations of `config` are no weights.
    pub fn with_config(self, config: Config) -> Result<Workload, DistributionError> {
        Workload::new(config, self.popularity, self.one_hits, self.value_sizes)
    }

    /// The same workload for one of several threads: its lone gets are for other keys than those of any other
    /// thread, 2^40 of them each.
    pub fn for_thread(&self, thread: u16) -> Workload {
        let first = self.popularity.records() + (u64::from(thread) << 40);
        Workload { next_lone: first, ..self.clone() }
    }

    /// The operations and key sizes.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The popularity of the keys that are asked for more than once.
    pub fn popularity(&self) -> &Buckets {
        &self.popularity
    }

    /// The share of requests for keys that were asked for once, by `pop.json`.
    pub fn one_hits(&self) -> f64 {
        self.one_hits
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
