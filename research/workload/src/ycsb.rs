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

impl CoreWorkload {
    /// All of them.
    pub const ALL: [CoreWorkload; 5] =
        [CoreWorkload::A, CoreWorkload::B, CoreWorkload::C, CoreWorkload::D, CoreWorkload::F];

    /// Its name.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            CoreWorkload::A => "A",
            CoreWorkload::B => "B",
            CoreWorkload::C => "C",
            CoreWorkload::D => "D",
            CoreWorkload::F => "F",
        }
    }

    fn operations(self) -> Discrete<IndexOperation> {
        use IndexOperation::{Insert, Read, ReadModifyWrite, Update};
        let (reads, other) = match self {
            CoreWorkload::A => (0.5, Update),
            CoreWorkload::B => (0.95, Update),
            CoreWorkload::C => (1.0, Update),
            CoreWorkload::D => (0.95, Insert),
            CoreWorkload::F => (0.5, ReadModifyWrite),
        };
        Discrete::new([(Read, reads), (other, 1.0 - reads)]).expect("one weight is positive")
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
    operations: Discrete<IndexOperation>,
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
        Ok(Ycsb { operations: core.operations(), choice, records })
    }

    /// The number of records, those loaded and those inserted since.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Draws a request. An insert has the number of the new record.
    pub fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> IndexRequest {
        let operation = self.operations.sample(rng);
        if operation == IndexOperation::Insert {
            return self.insert();
        }
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
