//! Twitter's 54 memcached clusters (Yang, Yue and Rashmi, "A large scale analysis of hundreds of in-memory cache
//! clusters at Twitter", OSDI 2020), as the table of March 2020 in `twitter/cache-trace` describes them.
//!
//! What the table does not say as its header does:
//!
//! - A missing number is `N/A` or `NA`. Cluster 5 has nothing but its miss ratio and its category; cluster 21 has no
//!   miss ratio; clusters 43 and 46 have no Zipf exponent.
//! - A Zipf exponent of 0 stands where none was fitted. Most such clusters ask for a key once or twice, and cluster
//!   35 does not.
//! - Operations and times to live have two decimals: shares below 1 % are left out, and the rest adds up to between
//!   0.97 and 1.01. Used as weights they are divided by their sum. Of the times to live only common ones are there.
//! - Times to live are a quoted list in seconds, hours or days, with decimals (`1.8h`), a comma at its end, and the
//!   same time twice in two units (`1d` and `24h` in cluster 49).
//! - Of key and value sizes there is the mean alone.

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use csv::ByteRecord;

use crate::DistributionError;
use crate::discrete::Discrete;
use crate::model::CacheModel;
use crate::operation::CacheOperation;
use crate::row::{RowError, parse};
use crate::sizes::Fixed;
use crate::table::{Table, number};

/// Why the table cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClusterError {
    /// Reading failed.
    Read {
        /// The system's reason.
        source: io::Error,
    },
    /// The first line does not name the table's columns.
    Header {
        /// The name of the first column that is missing or stands elsewhere.
        wanted: &'static str,
    },
    /// A row cannot be read.
    Row(RowError),
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClusterError::Read { source } => write!(f, "the table of clusters cannot be read: {source}"),
            ClusterError::Header { wanted } => {
                write!(
                    f,
                    "line 1 is not the header of the table of clusters: column {wanted:?} is not in its place"
                )
            }
            ClusterError::Row(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClusterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClusterError::Read { source } => Some(source),
            _ => None,
        }
    }
}

impl From<csv::Error> for ClusterError {
    fn from(error: csv::Error) -> ClusterError {
        // What is not the system's own error keeps its words.
        let source = match error.into_kind() {
            csv::ErrorKind::Io(source) => source,
            other => io::Error::other(format!("{other:?}")),
        };
        ClusterError::Read { source }
    }
}

impl From<RowError> for ClusterError {
    fn from(error: RowError) -> ClusterError {
        ClusterError::Row(error)
    }
}

/// What a cluster is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Caching what a storage system holds.
    Storage,
    /// Caching what was computed.
    Computation,
    /// Data that is held nowhere else.
    Transient,
}

/// One row of the table. What is not told is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// The cluster's number, from 1.
    pub number: u32,
    /// The share of reads that missed, from 0 to 1.
    pub miss_ratio: Option<f64>,
    /// What the cluster is used for.
    pub category: Category,
    /// Mean bytes of keys.
    pub key_size: Option<f64>,
    /// Mean bytes of values.
    pub value_size: Option<f64>,
    /// Thousands of requests a second.
    pub kilo_requests: Option<f64>,
    /// Mean requests for a key.
    pub mean_frequency: Option<f64>,
    /// The keys that were asked for once, in percent.
    pub one_hit_wonders: Option<f64>,
    /// The requests that were the first for their key, in percent.
    pub compulsory_misses: Option<f64>,
    /// Common times to live and their shares.
    pub times_to_live: Vec<(Duration, f64)>,
    /// The working set in MB if nothing expired.
    pub working_set_without_expiry: Option<f64>,
    /// The working set in MB.
    pub working_set: Option<f64>,
    /// Operations and their shares.
    pub operations: Vec<(CacheOperation, f64)>,
    /// The exponent of the Zipf distribution of popularity. 0 stands where none was fitted.
    pub zipf_alpha: Option<f64>,
}

const COLUMNS: [&str; 14] = [
    "cluster",
    "production_miss_ratio",
    "category(1=storage 2=computation 3=transient)",
    "key_size_mean",
    "value_size_mean",
    "kqps",
    "mean_freq",
    "one_hit_wonder_pct",
    "compulsory_miss_pct",
    "common_ttls",
    "wss_mb_no_ttl",
    "wss_mb",
    "operations",
    "zipf_alpha",
];

impl Cluster {
    /// All clusters, of the figures that are built into the program.
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
                miss_ratio: figure(1),
                category: match row[2] {
                    "1" => Category::Storage,
                    "2" => Category::Computation,
                    _ => Category::Transient,
                },
                key_size: figure(3),
                value_size: figure(4),
                kilo_requests: figure(5),
                mean_frequency: figure(6),
                one_hit_wonders: figure(7),
                compulsory_misses: figure(8),
                working_set_without_expiry: figure(9),
                working_set: figure(10),
                zipf_alpha: figure(11),
                operations: of("operations", row[0]).chunks(2).map(operation).collect(),
                times_to_live: of("times", row[0]).chunks(2).map(time).collect(),
            }
        };
        table.rows("cluster").map(cluster).collect()
    }

    /// Reads the whole table.
    ///
    /// # Errors
    ///
    /// The first [`ClusterError`], with line and column where a row is wrong.
    ///
    /// ```no_run
    /// use lookaside_workload::{data::DataFolder, twitter::Cluster};
    /// use std::fs::File;
    ///
    /// let table = DataFolder::find()?.file("dists/twitter_2020Mar_clusters.csv")?;
    /// let clusters = Cluster::read_all(File::open(table)?)?;
    /// assert_eq!(clusters[51].number, 52);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_all(table: impl Read) -> Result<Vec<Cluster>, ClusterError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(table);
        let mut row = ByteRecord::new();
        reader.read_byte_record(&mut row)?;
        for (position, wanted) in COLUMNS.into_iter().enumerate() {
            if row.get(position) != Some(wanted.as_bytes()) {
                return Err(ClusterError::Header { wanted });
            }
        }
        let mut clusters = Vec::new();
        while reader.read_byte_record(&mut row)? {
            clusters.push(Cluster::from_row(&row)?);
        }
        Ok(clusters)
    }

    fn from_row(row: &ByteRecord) -> Result<Cluster, RowError> {
        let line = row.position().map_or(0, csv::Position::line);
        if row.len() != COLUMNS.len() {
            return Err(RowError::new(line, "(all)", row.as_slice(), "fourteen columns"));
        }
        let number = |position: usize| match &row[position] {
            b"N/A" | b"NA" => Ok(None),
            field => amount(line, COLUMNS[position], field).map(Some),
        };
        let name = row[0].strip_prefix(b"cluster").unwrap_or_default();
        let category = match &row[2] {
            b"1" => Category::Storage,
            b"2" => Category::Computation,
            b"3" => Category::Transient,
            other => return Err(RowError::new(line, "category", other, "1, 2 or 3")),
        };
        Ok(Cluster {
            number: parse(line, "cluster", name, "the word cluster and a number")?,
            miss_ratio: number(1)?,
            category,
            key_size: number(3)?,
            value_size: number(4)?,
            kilo_requests: number(5)?,
            mean_frequency: number(6)?,
            one_hit_wonders: number(7)?,
            compulsory_misses: number(8)?,
            times_to_live: shares(line, COLUMNS[9], &row[9], b',', time_to_live)?,
            working_set_without_expiry: number(10)?,
            working_set: number(11)?,
            operations: shares(line, COLUMNS[12], &row[12], b' ', CacheOperation::from_name)?,
            zipf_alpha: number(13)?,
        })
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

    /// Operations and sizes as a model, in which every key and every value has the mean size, rounded; or `None`
    /// for cluster 5, of which the table tells neither.
    pub fn model(&self) -> Option<CacheModel> {
        Some(CacheModel {
            key_sizes: Box::new(Fixed(self.key_size?.round() as u64)),
            value_sizes: Box::new(Fixed(self.value_size?.round() as u64)),
            operations: self.operation_mix().ok()?,
        })
    }
}

/// A number that is not negative and not infinite.
fn amount(line: u64, column: &'static str, field: &[u8]) -> Result<f64, RowError> {
    const WANTED: &str = "a number from 0 on, N/A or NA";
    let amount: f64 = parse(line, column, field, WANTED)?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err(RowError::new(line, column, field, WANTED))
    }
}

/// A list such as `get:0.97 set:0.03`, whose parts `read` understands; `N/A` is the empty list.
fn shares<T>(
    line: u64,
    column: &'static str,
    list: &[u8],
    separator: u8,
    read: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<(T, f64)>, RowError> {
    if list == b"N/A" {
        return Ok(Vec::new());
    }
    let parts = list.split(|byte| *byte == separator).map(<[u8]>::trim_ascii);
    let parts = parts.filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let wrong = || RowError::new(line, column, part, "a name or a time, a colon and a share");
            let colon = part.iter().position(|byte| *byte == b':').ok_or_else(wrong)?;
            let what = read(&part[..colon]).ok_or_else(wrong)?;
            Ok((what, amount(line, column, &part[colon + 1..])?))
        })
        .collect()
}

/// A time such as `300s`, `1.8h` or `14d`.
fn time_to_live(text: &[u8]) -> Option<Duration> {
    let (unit, number) = text.split_last()?;
    let seconds = match unit {
        b's' => 1.0,
        b'h' => 3600.0,
        b'd' => 86_400.0,
        _ => return None,
    };
    let number: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}
