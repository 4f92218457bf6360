//! The six core workloads of YCSB (Cooper, Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking cloud serving
//! systems with YCSB", SoCC 2010, section 4, and the definitions that ship with the program).
//!
//! | workload | operations | records |
//! |---|---|---|
//! | A | 50 % read, 50 % update | scrambled Zipfian |
//! | B | 95 % read, 5 % update | scrambled Zipfian |
//! | C | read | scrambled Zipfian |
//! | D | 95 % read, 5 % insert | latest |
//! | E | 95 % scan of 1 to 100 records, uniform, 5 % insert | scrambled Zipfian |
//! | F | 50 % read, 50 % read-modify-write | scrambled Zipfian |
//!
//! Inserting must not move the heat of a scrambled distribution. YCSB therefore draws over twice the records that
//! the run is expected to insert, and draws again where a record is not there yet. So does workload E here, but not
//! for ever: where the run inserts far more than there is, the last of 64 draws is folded onto the records
//! that are there.

use rand::distr::Distribution;
use rand::{Rng, RngExt};

use crate::DistributionError;
use crate::discrete::Discrete;
use crate::operation::{IndexOperation, IndexRequest};
use crate::popularity::{Latest, ScrambledZipfian};

/// YCSB's exponent.
pub const THETA: f64 = 0.99;

/// The longest scan of workload E, in records.
pub const LONGEST_SCAN: u32 = 100;

/// How often workload E draws before it folds.
const TRIES: usize = 64;

/// A core workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoreWorkload {
    /// Update heavy.
    A,
    /// Read mostly.
    B,
    /// Read only.
    C,
    /// Read latest.
    D,
    /// Short ranges.
    E,
    /// Read-modify-write.
    F,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Read,
    Update,
    Insert,
    Scan,
    ReadModifyWrite,
}

impl CoreWorkload {
    /// All six.
    pub const ALL: [CoreWorkload; 6] = [
        CoreWorkload::A,
        CoreWorkload::B,
        CoreWorkload::C,
        CoreWorkload::D,
        CoreWorkload::E,
        CoreWorkload::F,
    ];

    fn kinds(self) -> Discrete<Kind> {
        let kinds = match self {
            CoreWorkload::A => [(Kind::Read, 0.5), (Kind::Update, 0.5)],
            CoreWorkload::B => [(Kind::Read, 0.95), (Kind::Update, 0.05)],
            CoreWorkload::C => [(Kind::Read, 1.0), (Kind::Update, 0.0)],
            CoreWorkload::D => [(Kind::Read, 0.95), (Kind::Insert, 0.05)],
            CoreWorkload::E => [(Kind::Scan, 0.95), (Kind::Insert, 0.05)],
            CoreWorkload::F => [(Kind::Read, 0.5), (Kind::ReadModifyWrite, 0.5)],
        };
        Discrete::new(kinds).expect("one weight is positive")
    }
}

/// The requests of a core workload.
///
/// ```
/// use lookaside_workload::generator;
/// use lookaside_workload::operation::IndexOperation;
/// use lookaside_workload::ycsb::{CoreWorkload, Ycsb};
///
/// let mut rng = generator::seeded(1);
/// let mut workload = Ycsb::new(CoreWorkload::C, 1_000_000, 10_000_000)?;
/// assert_eq!(workload.draw(&mut rng).operation, IndexOperation::Read);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Ycsb {
    kinds: Discrete<Kind>,
    choice: Choice,
    records: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Choice {
    Scrambled(ScrambledZipfian),
    Latest(Latest),
}

impl Ycsb {
    /// The workload `core` over `records` records loaded before, for a run of about `operations` requests.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] where those loaded and
    /// those expected are more than 2^53.
    pub fn new(core: CoreWorkload, records: u64, operations: u64) -> Result<Ycsb, DistributionError> {
        Ycsb::with_theta(core, records, operations, THETA)
    }

    /// The same with another exponent.
    ///
    /// # Errors
    ///
    /// As [`new`](Ycsb::new), and [`DistributionError::Theta`] where `theta` is not from 0 to 3.
    pub fn with_theta(
        core: CoreWorkload,
        records: u64,
        operations: u64,
        theta: f64,
    ) -> Result<Ycsb, DistributionError> {
        let choice = match core {
            CoreWorkload::D => Choice::Latest(Latest::new(records, theta)?),
            // Twice the twentieth of the requests that insert.
            CoreWorkload::E if records > 0 => {
                let expected = records.saturating_add(operations / 10);
                Choice::Scrambled(ScrambledZipfian::with_theta(expected, theta)?)
            }
            _ => Choice::Scrambled(ScrambledZipfian::with_theta(records, theta)?),
        };
        Ok(Ycsb { kinds: core.kinds(), choice, records })
    }

    /// The number of records, those loaded and those inserted since.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Draws a request. An insert has the number of the new record.
    pub fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> IndexRequest {
        let operation = match self.kinds.sample(rng) {
            Kind::Insert => return self.insert(),
            Kind::Read => IndexOperation::Read,
            Kind::Update => IndexOperation::Update,
            Kind::ReadModifyWrite => IndexOperation::ReadModifyWrite,
            Kind::Scan => IndexOperation::Scan { records: rng.random_range(1..=LONGEST_SCAN) },
        };
        let record = match &self.choice {
            Choice::Latest(latest) => latest.sample(rng),
            Choice::Scrambled(scrambled) => {
                let there = |record: &u64| *record < self.records;
                let mut last = 0;
                let drawn = std::iter::repeat_with(|| scrambled.sample(rng)).take(TRIES);
                drawn.inspect(|record| last = *record).find(there).unwrap_or(last % self.records)
            }
        };
        IndexRequest { operation, record }
    }

    fn insert(&mut self) -> IndexRequest {
        if let Choice::Latest(latest) = &mut self.choice {
            latest.insert();
        }
        self.records += 1;
        IndexRequest { operation: IndexOperation::Insert, record: self.records - 1 }
    }
}
