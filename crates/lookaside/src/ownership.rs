//! The one owner of a buffer, who needs no epoch, no stripe and no ticket.

#![allow(unsafe_code)]

use crate::buffer::Buffer;
use crate::seat::Seat;
use crate::slb::Slb;
use crate::stats::{Counts, count};
use crate::word::Pointer;

/// The one owner of a buffer: needs no epoch, no stripe and no ticket.
#[derive(Debug)]
pub(crate) struct Ownership {
    seat: Seat,
}

impl Ownership {
    /// # Safety
    /// While this lives, nobody else reads the buffer or changes it, but to forget pointers; and whoever calls
    /// [`Buffer::resize`] has nothing of the table.
    pub(crate) unsafe fn of(buffer: &Buffer) -> Ownership {
        Ownership { seat: buffer.seat() }
    }

    #[inline(always)]
    pub(crate) fn table<'b>(&self, buffer: &'b Buffer) -> &'b Slb {
        // SAFETY: the table is replaced only by the owner, who then has nothing of the old one: see `of`.
        unsafe { buffer.table.load() }
    }

    #[inline(always)]
    pub(crate) fn uses_table(&self, buffer: &Buffer, lookups: u32) -> bool {
        // An owner's table is of one size. A lookup runs the user's code, which may look up again: were the table
        // replaced there, nobody could say that the lookup outside has nothing of it.
        let Ownership { seat } = self;
        seat.uses_table(
            &seat.countdown,
            lookups,
            &buffer.monitor,
            || self.table(buffer).capacity(),
            |_| false,
        )
    }

    #[inline(always)]
    pub(crate) fn find(
        &self,
        buffer: &Buffer,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        self.seat.find_on_account(&self.seat.countdown, self.table(buffer), hash, accept)
    }

    /// As [`crate::Visit::find_group`].
    #[inline(always)]
    pub(crate) fn find_group(
        &self,
        buffer: &Buffer,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        hit: impl FnMut(usize, Pointer) -> bool,
        search: impl FnMut(&[usize]),
    ) {
        self.seat.find_group(&self.seat.countdown, self.table(buffer), hashes, fetch, hit, search);
    }

    #[inline]
    pub(crate) fn emit(&self, buffer: &Buffer, hash: u64, pointer: Pointer) {
        self.seat.emit(self.table(buffer), hash, |put| Some(put()), pointer);
    }

    /// Clears the table for a write; how many slots.
    #[inline]
    pub(crate) fn clear(&self, buffer: &Buffer, hash: u64) -> usize {
        // SAFETY: as in `table`.
        unsafe { self.seat.clear_held(buffer, hash) }
    }

    /// As [`Buffer::forget`].
    #[inline]
    pub(crate) fn forget(&self, buffer: &Buffer, hash: u64, pointer: Pointer) {
        // SAFETY: as in `table`.
        unsafe { buffer.forget_guarded(hash, pointer) };
    }

    /// Puts a new entry where an old one was cleared.
    #[inline]
    pub(crate) fn put(&self, buffer: &Buffer, hash: u64, pointer: Pointer) {
        self.table(buffer).insert(hash, pointer, &self.seat.random);
    }

    /// A write did without the index.
    #[inline]
    pub(crate) fn succeeded(&self) {
        count(&self.seat.tally.successions);
    }

    /// As [`Seat::tell`].
    pub(crate) fn tell(&self, buffer: &Buffer) {
        self.seat.tell(buffer);
    }

    pub(crate) fn counts(&self, buffer: &Buffer) -> Counts {
        self.tell(buffer);
        buffer.counts()
    }
}
