//! What a lookaside table is, whichever it is: the face of the [`Slb`](crate::Slb) and of STLT-SW's
//! [`Stlt`](crate::Stlt).
//!
//! A table knows hashes and pointers, and neither keys nor entries: it never follows a pointer and calls no user code but
//! `accept`, with no lock held. It may forget anything at any time; what it must not do is answer with a pointer that has
//! been cleared. Calls may come from any number of threads at once. That a pointer is not emitted after its entry has
//! been removed is the affair of [`crate::stripes`].

use std::ops::Range;

use crate::config::CreateError;
use crate::mark::Mark;
use crate::random::Random;
use crate::word::Pointer;

/// What became of an emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emission {
    /// Not hot enough, as far as the table knows.
    Refused,
    /// Not a single place in the table was to be had without a fight: another thread was faster.
    Contended,
    /// It was there already.
    Present,
    /// It entered a free slot.
    Admitted,
    /// It entered the slot of the coldest, which was thrown out.
    Replaced,
}

/// What a table is made from.
pub trait Parameters: Clone + Send + Sync + std::fmt::Debug + 'static {
    /// The kind of table that it is for.
    type Table: Table<Config = Self>;

    /// An empty table.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    fn create(&self) -> Result<Self::Table, CreateError>;

    /// The same, but for the size in bytes.
    #[must_use]
    fn with_size_of(&self, size: usize) -> Self;
}

/// A table from hashes to pointers that forgets.
///
/// # Safety
/// Maps follow the pointers that a table gives. So `find` and `peek` answer only with pointers that were inserted with a
/// hash of the same eight highest bits, which tell indexes apart; and when `clear`, `vacate` or `forget` has returned, a
/// pointer inserted before is no longer given for such a hash.
#[allow(unsafe_code)]
pub unsafe trait Table: Send + Sync + Sized + 'static {
    /// Its parameters.
    type Config: Parameters<Table = Self>;

    /// A pointer emitted with this hash that `accept` takes, and the slot that it is in; `accept` is asked about each one
    /// whose tag agrees.
    fn find(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<(usize, Pointer)>;

    /// What [`Table::find`] would ask about first. Nearly always the right one.
    fn peek(&self, hash: u64) -> Option<(usize, Pointer)> {
        self.find(hash, |_| true)
    }

    /// How many of 2^32 lookups are to be followed by [`Table::warm`] if they are hits, less one.
    fn counted(&self) -> u32;

    /// Warms a slot that was found with this hash. It may hold another's entry by now.
    fn warm(&self, hash: u64, slot: usize, random: &Random);

    /// [`Table::find`], and the hit counted if chance will have it: for who keeps no [`crate::Seat`].
    fn hit(&self, hash: u64, random: &Random, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        let (slot, pointer) = self.find(hash, accept)?;
        if random.next() >> 32 <= u64::from(self.counted()) {
            self.warm(hash, slot, random);
        }
        Some(pointer)
    }

    /// Asks for the memory that a call with this hash will touch.
    fn prefetch(&self, hash: u64);

    /// Whether an emission with this hash is worth a lock. Counts it as an emission.
    fn wants(&self, hash: u64, random: &Random) -> bool;

    /// Puts a wanted pointer in. The caller holds the stripe of `hash`.
    fn insert(&self, hash: u64, pointer: Pointer, random: &Random) -> Emission;

    /// Forgets every pointer that has the tag of this hash: those of all its keys, and perhaps a few others. How many.
    fn clear(&self, hash: u64) -> usize;

    /// As [`Table::clear`], for a write that will put another pointer in with this hash: one of the cleared slots may be kept for
    /// it, and counts as filled until [`Table::fill`] or [`Table::give_up`]. The caller holds the stripe of `hash`.
    fn vacate(&self, hash: u64) -> (usize, Option<usize>) {
        (self.clear(hash), None)
    }

    /// Puts a wanted pointer into the slot that [`Table::vacate`] kept for it, or if another has come there, as
    /// [`Table::insert`] does.
    fn fill(&self, slot: usize, hash: u64, pointer: Pointer, random: &Random) {
        let _ = slot;
        self.insert(hash, pointer, random);
    }

    /// Nothing will be put into a slot that was kept.
    fn give_up(&self, slot: usize) {
        let _ = slot;
    }

    /// Forgets this pointer, emitted with this hash.
    fn forget(&self, hash: u64, pointer: Pointer);

    /// Pointers that it has room for.
    fn capacity(&self) -> usize;

    /// Pointers that it holds; counted by walking over it.
    fn occupancy(&self) -> usize;

    /// The pointers of an index's warmest slots with their temperatures, warmest first, at most `most`. Walks over the table.
    fn hottest(&self, most: usize, mark: Mark) -> Vec<(Pointer, u8)>;

    /// Bytes of memory.
    fn bytes(&self) -> usize;

    /// Pointers that it holds, as it has counted, and lines that they lie in; `None` of a table that is always of one size.
    fn filled(&self) -> Option<(usize, usize)> {
        None
    }

    /// An empty table of so many times half as many lines, to which [`Table::copy_lines`] can copy; `None` if there can be
    /// none.
    fn folded(&self, times: u32) -> Option<Self> {
        let _ = times;
        None
    }

    /// Copies pointers of these lines to a table that [`Table::folded`] gave. What is cleared meanwhile from this table, and then
    /// from that one, is in neither: [`crate::current`] has the protocol.
    fn copy_lines(&self, lines: Range<usize>, folded: &Self) {
        let _ = (lines, folded);
    }
}
