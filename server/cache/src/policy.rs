//! What a policy of eviction is: one for each class, under the lock of the class.
//!
//! A policy has two halves. The first is what a hit does to an item's [`Recency`], two bits in its mark: it runs on the
//! read path, without a lock, and writes only where it changes something. The second is the hand: given the [`Chunks`]
//! of the class, it names the one to evict.
//!
//! To add one: implement [`Policy`], and hand it to [`crate::engine::Cache`] as its type parameter; `tests/policies.rs`
//! runs every policy through its checks, and `research/experiments/memc3-policies.toml` measures it on recorded
//! requests.

use crate::chunks::{Chunks, Position};
use crate::recency::Recency;

/// An eviction policy.
pub trait Policy: Default + Send + 'static {
    /// Its name in options and reports.
    const NAME: &'static str;

    /// The recency of an item that has just come.
    const NEWCOMER: Recency;

    /// The recency after a hit. Where it is the same, nothing is written.
    fn hit(recency: Recency) -> Recency;

    /// The chunk whose item is to go, or `None` if the class has nothing to evict. The number of chunks looked at must
    /// be bounded: the class is locked meanwhile.
    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position>;

    /// A page has come into the ring: those from this one on are one further now. A policy that remembers positions
    /// moves them.
    fn came(&mut self, page: usize) {
        let _ = page;
    }

    /// This page of the ring has gone, and those behind it are one nearer.
    fn went(&mut self, page: usize) {
        let _ = page;
    }

    /// Whether [`entered`](Policy::entered) is to be called: that takes a search for the position.
    const WANTS_ENTRIES: bool = false;

    /// An item is about to be put into this chunk.
    fn entered(&mut self, position: Position) {
        let _ = position;
    }
}
