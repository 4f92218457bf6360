//! The chunks of a class as its policy sees them: a ring of positions, at each an item or none.
//!
//! The unsafe code here is of one kind: reading the item of a live chunk under the lock of the chunk's class, which its
//! reuse would need.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::cmp::Ordering;

use cuckoo::Location;

use crate::arena::{PAGE, PageNumber, State};
use crate::item::{Item, born, owner, renew};
use crate::judge::Judge;
use crate::page::Memory;
use crate::recency::Recency;
use crate::size_classes::LARGEST_CHUNK;

/// How much younger than those that were evicted lately a large item may be to be evicted: one part in so many.
const YOUNGER: u64 = 8;
/// Part of the ring after which any age will do.
const LOOKED_THROUGH: usize = 4;

/// A place in the ring of a class's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Which of the class's pages.
    pub(crate) page: usize,
    /// Which chunk of the page.
    pub(crate) chunk: usize,
}

impl Position {
    /// The same place after a page has come into the ring: see [`came`](crate::engine::Policy::came).
    #[must_use]
    pub fn after_coming(self, page: usize) -> Position {
        Position { page: self.page + usize::from(page <= self.page), ..self }
    }

    /// The same place, or the next one, after a page has gone out of the ring: see
    /// [`went`](crate::engine::Policy::went).
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

/// The chunks of a class as its policy sees them: a ring of positions.
pub struct Chunks<'a> {
    chunk_size: usize,
    memory: Memory<'a>,
    /// That of a class which is locked: what makes looking at its items sound.
    ring: &'a [PageNumber],
    judge: Judge<'a>,
    /// Where the hand is.
    from: Position,
    /// Chunks of this size of the items that were spared.
    spared: Cell<usize>,
    /// Positions at which there was an item too young to be looked at.
    young: Cell<usize>,
}

impl<'a> Chunks<'a> {
    /// The chunks, of this size, on the pages of a ring, in which the hand is there.
    ///
    /// # Safety
    /// The caller holds the lock of the class for `'a`, and the ring is that of the class.
    pub(crate) unsafe fn new(
        chunk_size: usize,
        memory: Memory<'a>,
        ring: &'a [PageNumber],
        judge: Judge<'a>,
        from: Position,
    ) -> Self {
        Chunks { chunk_size, memory, ring, judge, from, spared: Cell::new(0), young: Cell::new(0) }
    }

    /// Positions in the ring.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a policy is only asked about chunks that exist")]
    pub fn len(&self) -> usize {
        self.ring.len() * (PAGE / self.chunk_size)
    }

    /// The position after this one; the first after the last, and for a position that is no more.
    #[must_use]
    pub fn after(&self, position: Position) -> Position {
        let Some(&page) = self.ring.get(position.page) else { return Position::default() };
        if position.chunk + 1 < self.memory.page(page).fresh() {
            Position { chunk: position.chunk + 1, ..position }
        } else if position.page + 1 < self.ring.len() {
            Position { page: position.page + 1, chunk: 0 }
        } else {
            Position::default()
        }
    }

    /// What lies at a position: the item, or the item that the chunk there is a part of. Of an item that has a chunk of
    /// this size before, which the ring has too, only that one counts: or a hand would come by several times a turn,
    /// and to an item that has just come into what it has emptied.
    #[must_use]
    pub fn look(&self, position: Position) -> Look {
        match self.item(position) {
            None => Look::Vacant,
            Some(item) if self.judge.is_dead(item) => Look::Dead,
            Some(item) if self.is_young(position, item) => {
                self.young.set(self.young.get() + 1);
                Look::Vacant
            }
            Some(item) => Look::Live(item.recency()),
        }
    }

    /// Changes what is remembered of the item at a position. A large one counts as new from then on: a hand comes by
    /// where it is more often than once in a turn of small ones.
    pub fn set_recency(&self, position: Position, recency: Recency) {
        let Some(item) = self.item(position) else { return };
        self.memory.arena.set_recency(item.location(), recency);
        let chunks = if self.chunk_size == LARGEST_CHUNK { item.chunks_at_home() } else { 1 };
        self.spared.set(self.spared.get() + chunks);
        if item.is_chained() {
            // SAFETY: live, and a chunk of it is in the ring of the class whose lock is held.
            unsafe { renew(self.memory.arena, item, self.memory.pool.turns()) };
        }
    }

    /// Whether a large item is too young to be evicted, so near to where the hand was.
    ///
    /// What one small item leaves another takes, so newcomers lie behind the hand, and a turn of it is in the order of
    /// age. The chunks that a large one leaves lie anywhere, and so do the large ones that come. So the hand passes a
    /// large item that is not about as old as those that were evicted last; the further it goes, the younger they may
    /// be.
    ///
    /// Rejected: to pass what has come since the hand was there. Where all lie anywhere, most has: the hand finds
    /// nothing in all the ring, and then takes whatever it meets. When the sizes of the load changed, a cache of 512 MB
    /// came to hold 85 % of what a fresh one does.
    fn is_young(&self, position: Position, item: Item<'a>) -> bool {
        let Some(age) = self.age(position, item) else { return false };
        let chunks = self.len();
        let place = |at: Position| at.page * (PAGE / self.chunk_size) + at.chunk;
        let passed = (place(position) + chunks - place(self.from) % chunks) % chunks;
        let part = chunks / LOOKED_THROUGH;
        let left = part.saturating_sub(passed) as u64;
        let least = u64::from(self.memory.pool.evicted_age()) * (YOUNGER - 1) / YOUNGER;
        u64::from(age) * (part as u64) < least * left
    }

    /// How long ago the item at a position came, by the clock of [`crate::pool`]; of a small one nothing says so.
    pub(crate) fn age(&self, position: Position, item: Item<'a>) -> Option<u32> {
        let &number = self.ring.get(position.page).filter(|_| item.is_chained())?;
        let at = self.memory.arena.location(number, position.chunk * self.chunk_size);
        let further = if item.location() == at { item.further().next()?.location() } else { at };
        // SAFETY: a further chunk of a live item, and not freed before the lock of this class is given back: it is of
        // this class, or its item is, which is retired under that lock.
        let born = unsafe { born(self.memory.arena, further) };
        Some(self.memory.pool.turns().wrapping_sub(born))
    }

    /// Chunks that the hand has passed on its way over so many positions, for what it says of the age of items: not
    /// those that it has not looked at.
    pub(crate) fn passed(&self, positions: usize, freed: usize) -> usize {
        if self.chunk_size == LARGEST_CHUNK {
            // Here most positions have a part of an item that is looked at elsewhere.
            freed + self.spared.get()
        } else {
            positions.saturating_sub(self.young.get())
        }
    }

    pub(crate) fn item(&self, position: Position) -> Option<Item<'a>> {
        let page = *self.ring.get(position.page)?;
        if position.chunk >= self.memory.page(page).fresh() {
            return None;
        }
        let at = self.memory.arena.location(page, position.chunk * self.chunk_size);
        // SAFETY: the lock of the class is held for 'a, as who made this has promised.
        let item = unsafe { live_item(self.memory, at) };
        item.filter(|item| self.chunk_size < LARGEST_CHUNK || item.location() == at)
    }
}

/// The item that the chunk at `at` belongs to, if the chunk is live.
///
/// # Safety
/// The caller must hold the lock of the chunk's class for `'a`.
pub(crate) unsafe fn live_item<'a>(memory: Memory<'a>, at: Location) -> Option<Item<'a>> {
    if memory.arena.mark(at).state() != State::Live {
        return None;
    }
    // SAFETY: live, under the lock.
    let first = unsafe { owner(memory.arena, at) };
    // Of an item in limbo the first chunk alone says so.
    // SAFETY: a further chunk is freed before the first one of its item, so as long as this one is not, which needs the
    // lock, the first one is not reused either.
    (memory.arena.mark(first).state() == State::Live).then(|| unsafe { Item::at(memory.arena, first) })
}
