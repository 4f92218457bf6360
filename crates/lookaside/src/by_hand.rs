//! A thread's state by hand: for faces that keep guards and tables themselves, and count their lookups. The C interface
//! is one, the front of the server's cache another.
//!
//! What needs the state alone is in `thread_state`; here is what needs the buffer, too.

use crate::buffer::Buffer;
use crate::pointer::Pointer;
use crate::slb::Slb;
use crate::stripes::Ticket;
use crate::thread_state::ThreadState;

impl ThreadState {
    /// Whether the next [`ThreadState::TURN`] lookups are to ask the table, of such a capacity: the monitor's decision.
    /// The first call of these is of so many lookups. Tells the counts.
    #[cold]
    pub fn turn(&self, buffer: &Buffer, lookups: u32, capacity: impl Fn() -> usize) -> bool {
        self.tell(buffer);
        self.next_turn(lookups, &buffer.monitor, capacity)
    }

    /// Tells the buffer what was counted, and takes note if its monitor watches no more.
    #[inline]
    pub fn tell(&self, buffer: &Buffer) {
        self.tell_of(&buffer.totals, &buffer.monitor);
    }

    /// Offers what the index gave. Dropped if a write of the stripe has begun since the ticket was taken.
    #[inline]
    pub fn admit_ticketed(&self, buffer: &Buffer, table: &Slb, ticket: &Ticket, hash: u64, pointer: Pointer) {
        self.admit(table, hash, |put| buffer.stripes.with_ticket(ticket, put), pointer);
    }

    /// Clears the slots of a hash; how many. The caller holds the stripe, or is alone.
    ///
    /// # Safety
    /// As [`Buffer::table`].
    #[allow(unsafe_code)]
    #[inline]
    pub unsafe fn clear_held(&self, buffer: &Buffer, hash: u64) -> usize {
        let tally = &self.tally;
        // SAFETY: the caller's promise.
        let cleared = unsafe { buffer.clear(hash) };
        tally.invalidations.add(1);
        tally.cleared.add(cleared as u64);
        cleared
    }

    /// Counts entries that an owner has put into the lines by himself: so many into free slots, and so many into those
    /// of others.
    #[inline]
    pub fn put(&self, filled: u64, replaced: u64) {
        let (tally, all) = (&self.tally, filled + replaced);
        tally.offers.set(tally.offers.get() + all);
        tally.admissions.set(tally.admissions.get() + all);
        tally.evictions.set(tally.evictions.get() + replaced);
        self.filled.set(self.filled.get() + filled);
    }
}
