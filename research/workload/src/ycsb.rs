//! The core workloads of YCSB (Cooper, Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking cloud serving
//! systems with YCSB", SoCC 2010, section 4, and the definitions that ship with the program).
//!
//! | workload | operations | records |
//! |---|---|---|
//! | A | 50 % read, 50 % update | scrambled Zipfian |
//! | B | 95 % read, 5 % update | scrambled Zipfian |
//! | C | read | scrambled Zipfian |
//! | D | 95 % read, 5 % insert | latest |
//! | F | 50 % read, 50 % read-modify-write | scrambled Zipfian |
//!
//! E is left out: it scans, and what is driven here has no scans.

use rand::Rng;
use rand::distr::Distribution;

use crate::DistributionError;
use crate::discrete::Discrete;
use crate::operation::{IndexOperation, IndexRequest};
use crate::popularity::{Latest, ScrambledZipfian};

/// YCSB's exponent.
pub const THETA: f64 = 0.99;

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
    /// Read-modify-write.
    F,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Read,
    Update,
    Insert,
    ReadModifyWrite,
}

impl CoreWorkload {
    /// All of them.
    pub const ALL: [CoreWorkload; 5] =
        [CoreWorkload::A, CoreWorkload::B, CoreWorkload::C, CoreWorkload::D, CoreWorkload::F];

    fn kinds(self) -> Discrete<Kind> {
        let kinds = match self {
            CoreWorkload::A => [(Kind::Read, 0.5), (Kind::Update, 0.5)],
            CoreWorkload::B => [(Kind::Read, 0.95), (Kind::Update, 0.05)],
            CoreWorkload::C => [(Kind::Read, 1.0), (Kind::Update, 0.0)],
            CoreWorkload::D => [(Kind::Read, 0.95), (Kind::Insert, 0.05)],
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
/// let mut workload = Ycsb::new(CoreWorkload::C, 1_000_000)?;
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
    /// The workload `core` over `records` records loaded before.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] above 2^53.
    pub fn new(core: CoreWorkload, records: u64) -> Result<Ycsb, DistributionError> {
        let choice = match core {
            CoreWorkload::D => Choice::Latest(Latest::new(records, THETA)?),
            _ => Choice::Scrambled(ScrambledZipfian::new(records)?),
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
        };
        let record = match &self.choice {
            Choice::Latest(latest) => latest.sample(rng),
            Choice::Scrambled(scrambled) => scrambled.sample(rng),
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
