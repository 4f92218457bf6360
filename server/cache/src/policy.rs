//! What a policy of eviction is: one for each class, under the lock of the class.
//!
//! A policy has two halves. The first is what a hit does to an item's [`Recency`], two bits in its mark: it runs on the read
//! path, without a lock, and writes only where it changes something. The second is the hand: given the [`Chunks`] of the
//! class, it names the one to evict.
//!
//! To add one: implement [`Policy`], and hand it to [`crate::Cache`] as its type parameter; `tests/policies.rs` runs every
//! policy through its checks, and `research/experiments/memc3-policies.toml` measures it on recorded requests.

use std::cmp::Ordering;
use std::fmt;

use crate::slab::Chunks;

/// What a policy remembers of an item: 0 to 3.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recency(u8);

impl Recency {
    /// Not used since the hand passed.
    pub const NONE: Recency = Recency(0);
    /// As much as two bits hold.
    pub const MOST: Recency = Recency(3);

    /// A recency of `value`, or the greatest if that is more than two bits hold.
    #[must_use]
    pub const fn new(value: u8) -> Recency {
        if value > 3 { Recency::MOST } else { Recency(value) }
    }

    /// Its number, 0 to 3.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Debug for Recency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A place in the ring of a class's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Which of the class's pages.
    pub(crate) page: usize,
    /// Which chunk of the page.
    pub(crate) chunk: usize,
}

impl Position {
    /// The same place after a page has come into the ring: see [`Policy::came`].
    #[must_use]
    pub fn after_coming(self, page: usize) -> Position {
        Position { page: self.page + usize::from(page <= self.page), ..self }
    }

    /// The same place, or the next one, after a page has gone out of the ring: see [`Policy::went`].
    #[must_use]
    pub fn after_going(self, page: usize) -> Position {
        match page.cmp(&self.page) {
            Ordering::Less => Position { page: self.page - 1, ..self },
            Ordering::Equal => Position { chunk: 0, ..self },
            Ordering::Greater => self,
        }
    }
}

/// What lies at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Nothing that could be evicted.
    Vacant,
    /// An item that nobody can get any more, expired or flushed: the best of victims.
    Dead,
    /// An item, and what is remembered of it.
    Live(Recency),
}

/// An eviction policy.
pub trait Policy: Default + Send + 'static {
    /// Its name in options and reports.
    const NAME: &'static str;

    /// The recency of an item that has just come.
    const NEWCOMER: Recency;

    /// The recency after a hit. Where it is the same, nothing is written.
    fn hit(recency: Recency) -> Recency;

    /// The chunk whose item is to go, or `None` if the class has nothing to evict. The number of chunks looked at must be
    /// bounded: the class is locked meanwhile.
    fn victim(&mut self, chunks: &Chunks<'_>) -> Option<Position>;

    /// A page has come into the ring: those from this one on are one further now. A policy that remembers positions moves them.
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
