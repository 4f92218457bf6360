//! The memory of the items: one region, cut into pages of 64 KiB, each cut into chunks of one class.
//!
//! A [`Location`] is the offset of a chunk in units of eight bytes. The first byte of every chunk is its [`Mark`], an
//! atomic that any thread may read at any time: the state of the chunk and, of an item, what the eviction policy
//! remembers of it. Everything else in a chunk belongs to whoever the state says: see [`State`].
//!
//! ```text
//!   mark, one byte
//!   7         6            5           4         3 2       1 0
//!  +---------+------------+-----------+---------+---------+-------+
//!  | chained | has expiry | has flags | fetched | recency | state |
//!  +---------+------------+-----------+---------+---------+-------+
//! ```

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

use cuckoo::Location;
use pages::{Array, MapError, PageKind, Region};

use crate::recency::Recency;

/// Bytes of a slab page.
pub const PAGE: usize = 64 << 10;
/// Bytes that a location counts in.
pub(crate) const UNIT: usize = 8;

/// Number of a slab page.
pub(crate) type PageNumber = u32;

/// What a chunk is at the moment, and whose it is.
///
/// ```text
///            allocate                commit                  retire               recycle
///   Free  -------------> Filling -------------> Live -------------------> Limbo ----------> Free
///   (class lock)         (its writer)           (all read, none writes)   (as Live)         (class lock)
///                           |                                                               ^
///                           +---------------------- given up -------------------------------+
/// ```
///
/// A chunk leaves `Live` by the hand of the one who takes its location out of the index, while he has its buckets
/// locked; then he retires it, under the lock of its class. It leaves `Limbo` when no
/// reader can hold its location any more ([`crate::epoch`]). Both `Free` ends are under the lock of its class, so who
/// holds that lock and sees `Live` may read the item: it will not be reused before the lock is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// On a free list, or never used.
    Free = 0,
    /// Being written by the one thread that owns it.
    Filling = 1,
    /// Written; in the index, or about to be put there.
    Live = 2,
    /// Taken out of the index, or just being taken; readers that came before may still be reading.
    Limbo = 3,
}

/// A value of a chunk's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    const RECENCY_SHIFT: u32 = 2;
    const RECENCY: u8 = 0b1100;
    const FETCHED: u8 = 1 << 4;
    const HAS_FLAGS: u8 = 1 << 5;
    const HAS_EXPIRY: u8 = 1 << 6;
    const CHAINED: u8 = 1 << 7;
    const STATE: u8 = 0b11;

    pub(crate) fn new(state: State) -> Mark {
        Mark(state as u8)
    }

    pub(crate) fn with_recency(self, recency: Recency) -> Mark {
        Mark(self.0 & !Mark::RECENCY | recency.get() << Mark::RECENCY_SHIFT)
    }

    pub(crate) fn with_fetched(self) -> Mark {
        Mark(self.0 | Mark::FETCHED)
    }

    pub(crate) fn with_fields(self, has_flags: bool, has_expiry: bool, chained: bool) -> Mark {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        Mark(
            self.0
                | bit(has_flags, Mark::HAS_FLAGS)
                | bit(has_expiry, Mark::HAS_EXPIRY)
                | bit(chained, Mark::CHAINED),
        )
    }

    pub(crate) fn with_state(self, state: State) -> Mark {
        Mark(self.0 & !Mark::STATE | state as u8)
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match self.0 & Mark::STATE {
            0 => State::Free,
            1 => State::Filling,
            2 => State::Live,
            _ => State::Limbo,
        }
    }

    #[inline]
    pub(crate) fn recency(self) -> Recency {
        Recency::new((self.0 & Mark::RECENCY) >> Mark::RECENCY_SHIFT)
    }

    #[inline]
    pub(crate) fn is_fetched(self) -> bool {
        self.0 & Mark::FETCHED != 0
    }

    /// Whether it is what it would be after a hit that leaves this recency.
    #[inline]
    pub(crate) fn is_after_hit(self, recency: Recency) -> bool {
        // One comparison of all bits, because every lookup makes it.
        self.0 == self.with_recency(recency).0 | Mark::FETCHED
    }

    #[inline]
    pub(crate) fn has_flags(self) -> bool {
        self.0 & Mark::HAS_FLAGS != 0
    }

    #[inline]
    pub(crate) fn has_expiry(self) -> bool {
        self.0 & Mark::HAS_EXPIRY != 0
    }

    #[inline]
    pub(crate) fn is_chained(self) -> bool {
        self.0 & Mark::CHAINED != 0
    }
}

/// The region of all pages, mapped as address space and touched as pages are handed out.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Array<AtomicU8>,
    pages: PageNumber,
}

impl Arena {
    /// Address space for `pages` pages.
    pub(crate) fn reserve(pages: PageNumber, kind: PageKind) -> Result<Arena, MapError> {
        Ok(Arena { memory: Array::reserve(pages as usize * PAGE, kind)?, pages })
    }

    pub(crate) fn pages(&self) -> PageNumber {
        self.pages
    }

    pub(crate) fn region(&self) -> &Region {
        self.memory.region()
    }

    /// The chunk that starts `offset` bytes into a page.
    #[inline]
    pub(crate) fn location(&self, page: PageNumber, offset: usize) -> Location {
        debug_assert!(page < self.pages && offset < PAGE && offset.is_multiple_of(UNIT));
        Location::new((page as usize * PAGE + offset) as u64 / UNIT as u64)
            .expect("an arena within 2^51 bytes")
    }

    /// The page of a chunk, and how many bytes into it the chunk starts.
    #[inline]
    pub(crate) fn page_of(&self, at: Location) -> (PageNumber, usize) {
        let offset = at.get() as usize * UNIT;
        ((offset / PAGE) as PageNumber, offset % PAGE)
    }

    /// The first byte of the chunk at `at`.
    ///
    /// # Panics
    /// If the arena has no such place.
    #[inline]
    pub(crate) fn start(&self, at: Location) -> *mut u8 {
        // Checked, so that a location from anywhere is at worst a panic. The pointer is made from the whole region's,
        // not from the one byte's: it is good for the chunk behind it.
        let offset = at.get() as usize * UNIT;
        assert!(offset < self.memory.len());
        // SAFETY: within the region, as just checked.
        unsafe { self.memory.region().as_ptr().add(offset) }
    }

    #[inline]
    fn cell(&self, at: Location) -> &AtomicU8 {
        &self.memory[at.get() as usize * UNIT]
    }

    #[inline]
    pub(crate) fn mark(&self, at: Location) -> Mark {
        // pairs with the release in `set_mark`: who sees Live sees the item written.
        Mark(self.cell(at).load(Ordering::Acquire))
    }

    /// Changes the mark of a chunk whose state is this thread's to change.
    #[inline]
    pub(crate) fn set_mark(&self, at: Location, mark: Mark) {
        // pairs with the acquire in `mark`.
        self.cell(at).store(mark.0, Ordering::Release);
    }

    /// Records a hit: this recency or more, and that the item was fetched. The state, which may be changing, is not
    /// touched.
    #[inline]
    pub(crate) fn raise_recency(&self, at: Location, from: Recency, to: Recency) {
        // Adds and keeps the bits that are missing; a hit lost to another one, or to the hand, is no harm. Relaxed:
        // recency orders nothing.
        let bits = (from.get() ^ to.get()) << Mark::RECENCY_SHIFT;
        if to.get() & from.get() == from.get() {
            self.cell(at).fetch_or(bits | Mark::FETCHED, Ordering::Relaxed);
        } else {
            self.set_recency(at, to);
            self.cell(at).fetch_or(Mark::FETCHED, Ordering::Relaxed);
        }
    }

    /// Sets the recency, whatever it was; the rest of the mark is not touched.
    #[inline]
    pub(crate) fn set_recency(&self, at: Location, recency: Recency) {
        let cell = self.cell(at);
        // Relaxed: recency orders nothing. `update` retries only against a concurrent change of the same byte.
        let _ = cell.try_update(Ordering::Relaxed, Ordering::Relaxed, |mark| {
            Some(Mark(mark).with_recency(recency).0).filter(|&new| new != mark)
        });
    }

    /// Where a free chunk keeps the number of the next free chunk of its page: the caller holds the lock of its class.
    pub(crate) fn set_link(&self, at: Location, next: u16) {
        // SAFETY: a chunk has at least 16 bytes; nobody but the holder of the class lock looks into a free one beyond
        // its mark. The address is a multiple of eight plus four: aligned.
        unsafe { self.start(at).add(4).cast::<u16>().write(next) };
    }

    /// What [`set_link`](Arena::set_link) put there, under the same lock.
    pub(crate) fn link(&self, at: Location) -> u16 {
        // SAFETY: as in `set_link`, which wrote it.
        unsafe { self.start(at).add(4).cast::<u16>().read() }
    }

    /// Gives the memory of a page, none of whose chunks is in use, back to the machine.
    pub(crate) fn release(&self, page: PageNumber) {
        let start = page as usize * PAGE;
        // SAFETY: the pool gives this page to nobody meanwhile, and reading it as zero, which is all free chunks, is
        // right.
        let _ = unsafe { self.memory.region().release(start..start + PAGE) };
    }
}
