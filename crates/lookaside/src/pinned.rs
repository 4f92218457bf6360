//! A thread's visit to a buffer that others visit, too: pinned, it finds and admits, and what it finds stays while it
//! lasts.
//!
//! What a thread keeps for a buffer ([`ThreadState`]) lies in its record at the buffer's collector: whoever has pinned
//! has found it. So a visit is no more than a pin, and one of a single lookup costs little.

use crate::buffer::{Buffer, Guard, Write};
use crate::pointer::Pointer;
use crate::slb::Slb;
use crate::stripes::Ticket;
use crate::thread_state::{GROUP, ThreadState};

/// A thread at a buffer, which it has pinned.
#[derive(Debug)]
pub struct Pinned<'b> {
    buffer: &'b Buffer,
    guard: Guard<'b>,
}

impl Buffer {
    /// A thread's visit. Pins the buffer: what is removed meanwhile is freed only after the visit has ended.
    #[must_use]
    #[inline(always)]
    pub fn pinned(&self) -> Pinned<'_> {
        Pinned::new(self)
    }
}

impl<'b> Pinned<'b> {
    /// Lookups that [`Pinned::find_group`] takes at most.
    pub const GROUP: usize = GROUP;

    /// Pins the buffer.
    #[inline(always)]
    pub(crate) fn new(buffer: &'b Buffer) -> Pinned<'b> {
        Pinned { buffer, guard: buffer.pin() }
    }

    #[inline(always)]
    fn thread_state(&self) -> &ThreadState {
        self.guard.0.local()
    }

    /// What pins the buffer.
    #[inline(always)]
    pub fn guard(&self) -> &Guard<'b> {
        &self.guard
    }

    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &'b Buffer {
        self.buffer
    }

    /// Lets go of what was removed so far, and pins anew. What this thread has retired is freed at every second
    /// refresh, if nobody holds it, or where that is much at the first.
    #[inline]
    pub fn refresh(&mut self) {
        self.admit_waiting();
        self.thread_state().heed(&self.buffer.monitor);
        self.guard.refresh();
    }

    /// Whether the next so many lookups are to ask the table, by [`Pinned::find_on_account`] or [`Pinned::find_group`]:
    /// the monitor's decision, which may be one for a lookup alone and another for several. Counts them: those that ask
    /// as hits, of which the misses are taken off. 1024 at most: more count as so many.
    #[inline(always)]
    #[must_use]
    pub fn uses_table(&self, lookups: u32) -> bool {
        self.thread_state().uses_table(lookups, &self.buffer.monitor, || self.table().capacity())
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    pub(crate) fn table(&self) -> &Slb {
        // SAFETY: pinned: see the head of `buffer`.
        unsafe { self.buffer.table.load() }
    }

    /// The pointer admitted with this hash that `accept` takes, if the table has it.
    #[inline(always)]
    pub fn find(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.thread_state().find(self.table(), hash, accept)
    }

    /// Asks for the line of this hash.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.table().prefetch(hash);
    }

    /// The slot and the pointer that are likely to be the answer.
    #[inline(always)]
    #[must_use]
    pub fn peek(&self, hash: u64) -> Option<(usize, Pointer)> {
        self.table().peek(hash)
    }

    /// As [`Pinned::find`], for a lookup that [`Pinned::uses_table`] let ask, and counted.
    #[inline(always)]
    pub fn find_on_account(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.thread_state().find_on_account(self.table().lines(), hash, accept)
    }

    /// As many lookups together as there are hashes, which [`Pinned::uses_table`] let ask, and counted. Their lines
    /// should be on their way ([`Pinned::prefetch`]).
    ///
    /// `fetch` asks for the lines of an entry that may be an answer. `hit` is shown the number of a lookup and a
    /// pointer that may be its answer: it says whether it is, and then keeps it. `search` is to ask the index, with
    /// tickets taken there, for the lookups of these numbers; it is called at most twice: first while entries are on
    /// their way.
    ///
    /// # Panics
    /// If there are more than [`Pinned::GROUP`].
    #[inline(always)]
    pub fn find_group(
        &self,
        hashes: &[u64],
        fetch: impl Fn(Pointer),
        hit: impl FnMut(usize, Pointer) -> bool,
        search: impl FnMut(&[usize]),
    ) {
        self.thread_state().find_group(self.table().lines(), hashes, fetch, hit, search);
    }

    /// To be taken after a miss and before the index is searched.
    #[inline]
    pub fn ticket(&self, hash: u64) -> Ticket {
        self.buffer.stripes.ticket(hash)
    }

    /// Offers what the index gave. Dropped if a write of the stripe has begun since the ticket was taken.
    #[inline]
    pub fn admit(&self, ticket: &Ticket, hash: u64, pointer: Pointer) {
        let stripes = &self.buffer.stripes;
        self.thread_state().admit(self.table(), hash, |put| stripes.with_ticket(ticket, put), pointer);
    }

    /// As [`Pinned::admit`], but done together with others, at the latest when the visit ends or is refreshed. Each
    /// offer takes words by atomic exchanges, and each of those waits for every load before it: together they wait
    /// once.
    #[inline]
    pub fn admit_soon(&self, ticket: &Ticket, hash: u64, pointer: Pointer) {
        if self.thread_state().let_wait(ticket.number(), hash, pointer) {
            self.admit_waiting();
        }
    }

    #[inline(always)]
    fn admit_waiting(&self) {
        if self.thread_state().lets_wait() {
            self.admit_all();
        }
    }

    #[inline(never)]
    fn admit_all(&self) {
        for (ticket, hash, pointer) in self.thread_state().waiting() {
            self.admit(&Ticket::numbered(hash, ticket), hash, pointer);
        }
    }

    /// Begins a write: see [`Buffer::write`].
    #[inline]
    pub fn write(&self, hash: u64) -> Write<'_> {
        // Its own writes would void the tickets: a key that is read and written in turn would never be admitted.
        self.admit_waiting();
        // SAFETY: as in `table`.
        #[allow(unsafe_code)]
        self.counted(unsafe { self.buffer.write(hash) })
    }

    /// As [`Pinned::write`]; before it clears the table, `accept` is shown what that has, as by [`Pinned::find`].
    #[inline]
    pub(crate) fn write_over(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Write<'_> {
        self.admit_waiting();
        // SAFETY: as in `table`.
        #[allow(unsafe_code)]
        self.counted(unsafe { self.buffer.write_over(hash, accept) })
    }

    #[inline]
    fn counted<'v>(&self, write: Write<'v>) -> Write<'v> {
        let tally = &self.thread_state().tally;
        tally.invalidations.add(1);
        tally.cleared.add(write.cleared as u64);
        write
    }

    /// A write did without the index.
    #[inline]
    pub(crate) fn succeeded(&self) {
        self.thread_state().tally.successions.add(1);
    }
}

impl Drop for Pinned<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // While still pinned: what was found is there.
        self.admit_waiting();
    }
}
