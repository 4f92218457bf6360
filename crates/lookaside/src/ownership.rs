//! The one owner of a buffer, who needs no epoch, no stripe and no ticket.

#![allow(unsafe_code)]

use crate::buffer::Buffer;
use crate::seat::Seat;
use crate::stats::{Counts, count};
use crate::table::Table;
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
    pub(crate) unsafe fn of<T: Table>(buffer: &Buffer<T>) -> Ownership {
        Ownership { seat: buffer.seat() }
    }

    #[inline(always)]
    pub(crate) fn table<'b, T: Table>(&self, buffer: &'b Buffer<T>) -> &'b T {
        // SAFETY: the table is replaced only by the owner, who then has nothing of the old one: see `of`.
        unsafe { buffer.table.load() }
    }

    #[inline(always)]
    pub(crate) fn uses_table<T: Table>(&self, buffer: &Buffer<T>, lookups: u32) -> bool {
        // An owner's table is of one size. A lookup runs the user's code, which may look up again: were the table replaced there,
        // nobody could say that the lookup outside has nothing of it.
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
    pub(crate) fn find<T: Table>(
        &self,
        buffer: &Buffer<T>,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        self.seat.find_on_account(&self.seat.countdown, self.table(buffer), hash, accept)
    }

    /// As [`crate::Visit::find_group`].
    #[inline(always)]
    pub(crate) fn find_group<T: Table>(
        &self,
        buffer: &Buffer<T>,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        hit: impl FnMut(usize, Pointer) -> bool,
        search: impl FnMut(&[usize]),
    ) {
        self.seat.find_group(&self.seat.countdown, self.table(buffer), hashes, fetch, hit, search);
    }

    pub(crate) fn emit<T: Table>(&self, buffer: &Buffer<T>, hash: u64, pointer: Pointer) {
        self.seat.emit(self.table(buffer), hash, |put| Some(put()), pointer);
    }

    /// Clears the table for a write; how many slots.
    pub(crate) fn clear<T: Table>(&self, buffer: &Buffer<T>, hash: u64) -> usize {
        // SAFETY: as in `table`.
        unsafe { self.seat.clear_held(buffer, hash) }
    }

    /// As [`Buffer::forget`].
    pub(crate) fn forget<T: Table>(&self, buffer: &Buffer<T>, hash: u64, pointer: Pointer) {
        // SAFETY: as in `table`.
        unsafe { buffer.forget_guarded(hash, pointer) };
    }

    /// Puts a new entry where an old one was cleared.
    pub(crate) fn put<T: Table>(&self, buffer: &Buffer<T>, hash: u64, pointer: Pointer) {
        self.table(buffer).insert(hash, pointer, &self.seat.random);
    }

    /// A write did without the index.
    pub(crate) fn succeeded(&self) {
        count(&self.seat.tally.successions);
    }

    /// As [`Seat::tell`].
    pub(crate) fn tell<T: Table>(&self, buffer: &Buffer<T>) {
        self.seat.tell(buffer);
    }

    pub(crate) fn counts<T: Table>(&self, buffer: &Buffer<T>) -> Counts {
        self.tell(buffer);
        buffer.counts()
    }
}
