//! RocksDB's model of a graph store: an ordered index with point reads, writes and short scans (Cao, Dong, Vemuri
//! and Du, "Characterizing, modeling, and benchmarking RocksDB key-value workloads at Facebook", FAST 2020; the
//! `mixgraph` benchmark of RocksDB).
//!
//! Keys have 48 bytes. Value sizes and scan lengths follow generalised Pareto distributions: values with shape
//! 0.2615 and scale 25.45, scans with shape 2.517 and scale 14.236, cut at 10,000 records. Of the requests 83 % are
//! GETs, 14 % PUTs and 3 % SEEKs with the scan that follows.
//!
//! What is ours: a scan reads at least one record. Which keys are asked for is the caller's choice.

use rand::Rng;
use rand::distr::Distribution;

use crate::discrete::Discrete;
use crate::operation::{IndexOperation, IndexRequest};
use crate::sizes::{GeneralisedPareto, Sizes};

/// Bytes of every key.
pub const KEY_SIZE: usize = 48;

/// The longest scan, in records.
pub const LONGEST_SCAN: u64 = 10_000;

/// Bytes of values.
pub const VALUE_SIZES: GeneralisedPareto = GeneralisedPareto { location: 0.0, scale: 25.45, shape: 0.2615 };

/// Records that a scan reads, before the cut.
pub const SCAN_LENGTHS: GeneralisedPareto = GeneralisedPareto { location: 0.0, scale: 14.236, shape: 2.517 };

/// The requests of the model over records drawn from `D`.
///
/// ```
/// use lookaside_workload::{generator, mixgraph::MixGraph, popularity::Popularity};
/// use rand::distr::Distribution;
///
/// let requests = MixGraph::new(Popularity::zipfian(1_000_000, 0.9)?);
/// let request = requests.sample(&mut generator::seeded(1));
/// assert!(request.record < 1_000_000);
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MixGraph<D> {
    records: D,
    kinds: Discrete<Kind>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Get,
    Put,
    Seek,
}

impl<D: Distribution<u64>> MixGraph<D> {
    /// The requests of the model over records drawn from `records`.
    pub fn new(records: D) -> MixGraph<D> {
        let kinds = Discrete::new([(Kind::Get, 0.83), (Kind::Put, 0.14), (Kind::Seek, 0.03)]);
        MixGraph { records, kinds: kinds.expect("positive weights") }
    }
}

impl<D: Distribution<u64>> Distribution<IndexRequest> for MixGraph<D> {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> IndexRequest {
        let operation = match self.kinds.sample(rng) {
            Kind::Get => IndexOperation::Read,
            Kind::Put => IndexOperation::Update,
            Kind::Seek => {
                IndexOperation::Scan { records: SCAN_LENGTHS.draw(rng).clamp(1, LONGEST_SCAN) as u32 }
            }
        };
        IndexRequest { operation, record: self.records.sample(rng) }
    }
}
