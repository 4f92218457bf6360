//! The lookaside buffer in front of the index: where the hot items are, in one line a lookup instead of two.
//!
//! Wu, Ni, Jiang, "Search Lookaside Buffer: Efficient Caching for Index Data Structures", SoCC 2017, by way of
//! [`lookaside`], whose `stripes` is the protocol page. What its table holds of an item is its location, plus one, for
//! a pointer is never zero. A cache has one if [`crate::config::Config::lookaside`] says so; without, every path has
//! one branch more.
//!
//! ```text
//!   lookup:  the table -- hit -------------------------------> the item
//!                      \- miss: ticket -> the index -> admit -> the item
//!   write:   Front::write -> change the index -> put -> drop; then stamp the old item, and into limbo
//! ```
//!
//! In batches the table's lines are asked for first, then the items; what the table does not have goes to the index
//! together.
//!
//! # Why no answer is stale, torn or expired
//!
//! *What the table holds, the index holds*, but while a write of the key's stripe goes on. A location leaves the index
//! in three places only: [`Engine::remove`](crate::shared::Engine::remove) (deleted, evicted by the hand or as a
//! neighbour, expired, flushed and swept, on a page that is drained),
//! [`Engine::replace_if`](crate::shared::Engine::replace_if) and [`Engine::upsert`](crate::shared::Engine::upsert)
//! (set, compare-and-swap, append, increment, the copy that a touch may make). Each of them takes the stripe, clears
//! all that has the key's tag, and then changes the index. An admission needs a ticket from before its search, and is
//! dropped if a write of the stripe has begun since: so what it puts in is in the index still. An insert of an absent
//! key takes nothing out, and takes no stripe. Growth and cuckoo paths move the index's entries and not the items: a
//! location stays what it is.
//!
//! *An item found in the table may be read.* In the proof of [`crate::epoch`] the table is one more place that
//! unlinking covers: the slot is cleared before `F_w` and loaded after `F_r`. If `F_w` comes first, the load sees it
//! cleared, and nobody has put the location back, see above. If `F_r` comes first, the memory is not reused before the
//! reader has left. Slots are changed by compare and swap with release and loaded with acquire, so the item is seen as
//! it was published, through whoever admitted it.
//!
//! *It is validated as one from the index is*: whole key and generation by the same `Indexed::holds`, the expiry by who
//! settles the lookup. A touch changes the expiry in the item itself, which both ways read.
//!
//! *Nobody sees the old item after the new one*: the slot is cleared before the index is changed, so who has seen the
//! change sees the slot cleared.
//!
//! # Locks
//!
//! A stripe comes after everything but the index's buckets: it is never asked for while a class is locked, and an
//! eviction that makes room in the index comes between two attempts to insert, never within one, for its victim may
//! have the same stripe.
//!
//! # No epoch, no monitor
//!
//! The buffer's own collector protects a table that is replaced by one of another size. Nobody does that here: it is of
//! one size. Its monitor compares wall time with and without the table; a server's includes its waits for clients, so
//! it stays off.
//!
//! # Rejected
//!
//! *Lookups of the write path by way of the table*: they write to what they find, and miss the index's lines a moment
//! later anyway. *Clearing when a chunk is reused*, which is rarer than removal: the reader could find a location after
//! `F_w`.

#![allow(unsafe_code)]

use cuckoo::{Entries, Location, Table};
use lookaside::{Buffer, CreateError, PageKind, Pointer, Slb, ThreadState, Ticket, Write};

use crate::counters::Counters;
use crate::index::{GROUP, Indexed};

/// The buffer of a cache.
pub(crate) struct Front {
    buffer: Buffer,
}

/// What a lookup works with.
#[derive(Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) seat: &'a ThreadState,
    pub(crate) index: &'a Table,
    pub(crate) entries: Indexed<'a>,
    pub(crate) counters: &'a Counters,
}

fn pointer(at: Location) -> Option<Pointer> {
    Pointer::new(at.get() + 1)
}

fn location(pointer: Pointer) -> Option<Location> {
    Location::new(pointer.address() - 1)
}

impl Front {
    /// A buffer whose table takes so many bytes.
    pub(crate) fn new(bytes: usize, pages: PageKind) -> Result<Front, CreateError> {
        let config = lookaside::Config::with_size(bytes).pages(pages);
        let buffer = Buffer::new(&config)?;
        buffer.monitor(false);
        Ok(Front { buffer })
    }

    /// What a session keeps.
    pub(crate) fn seat(&self) -> ThreadState {
        self.buffer.thread_state()
    }

    /// Bytes of the table.
    pub(crate) fn bytes(&self) -> usize {
        self.table().bytes()
    }

    #[inline(always)]
    fn table(&self) -> &Slb {
        // SAFETY: nobody resizes the buffer: it is this module's alone.
        unsafe { self.buffer.table() }
    }

    /// Begins a write of keys with this hash: the index is to be changed before what is returned is dropped, and what
    /// has left it to be stamped after.
    pub(crate) fn write(&self, hash: u64) -> Change<'_> {
        // SAFETY: as in `table`.
        Change(unsafe { self.buffer.write(hash) })
    }

    /// The item of `key`, from the table or else from the index, for a caller who is pinned.
    // Not inlined: the lookup without a buffer is to stay as small as it is.
    #[inline(never)]
    pub(crate) fn get(&self, lookup: Lookup<'_>, key: &[u8], hash: u64) -> Option<Location> {
        let Lookup { seat, index, entries, counters } = lookup;
        let known = self.look(lookup, key, hash);
        if known.is_some() {
            counters.lookaside_hits(1);
            return known;
        }
        counters.lookaside_misses(1);
        let ticket = self.buffer.ticket(hash);
        let found = index.find(hash, |at| entries.holds(at, key));
        self.admit(seat, &ticket, hash, found);
        found
    }

    /// The items of up to [`GROUP`] keys, for a caller who is pinned.
    #[inline(never)]
    pub(crate) fn get_many(
        &self,
        lookup: Lookup<'_>,
        keys: &[&[u8]],
        hashes: &[u64],
        found: &mut [Option<Location>],
    ) {
        let Lookup { seat, index, entries, counters } = lookup;
        let table = self.table();
        hashes.iter().for_each(|&hash| table.prefetch(hash));
        let mut peeked = [None; GROUP];
        for (peeked, &hash) in peeked.iter_mut().zip(hashes) {
            *peeked = table.peek(hash).and_then(|(slot, pointer)| Some((slot, location(pointer)?)));
            if let Some((_, at)) = *peeked {
                entries.prefetch(at);
            }
        }
        let mut missed = Missed { numbers: [0; GROUP], keys: [&[]; GROUP], hashes: [0; GROUP], len: 0 };
        for (number, (&key, &hash)) in keys.iter().zip(hashes).enumerate() {
            // What was peeked at is an answer of that moment: it need not be looked for again.
            found[number] = match peeked[number] {
                Some((slot, at)) if entries.holds(at, key) => {
                    seat.hit(table, hash, slot);
                    Some(at)
                }
                // Behind another with the same tag, or put there since, or not there.
                _ => self.look(lookup, key, hash),
            };
            if found[number].is_none() {
                missed.push(number, key, hash);
            }
        }
        counters.lookaside_hits((keys.len() - missed.len) as u64);
        if missed.len == 0 {
            return;
        }
        counters.lookaside_misses(missed.len as u64);
        let Missed { numbers, keys, hashes, len } = missed;
        let mut tickets = [const { None }; GROUP];
        for (ticket, &hash) in tickets.iter_mut().zip(&hashes[..len]) {
            *ticket = Some(self.buffer.ticket(hash));
        }
        let mut answers = [None; GROUP];
        index.find_many(entries, &hashes[..len], |i, at| entries.holds(at, keys[i]), &mut answers[..len]);
        for (i, ticket) in tickets.iter().flatten().enumerate() {
            found[numbers[i]] = answers[i];
            self.admit(seat, ticket, hashes[i], answers[i]);
        }
    }

    /// What the table knows of a key.
    #[inline(always)]
    fn look(&self, lookup: Lookup<'_>, key: &[u8], hash: u64) -> Option<Location> {
        let Lookup { seat, entries, .. } = lookup;
        let holds = |pointer| location(pointer).is_some_and(|at| entries.holds(at, key));
        seat.find(self.table(), hash, holds).and_then(location)
    }

    #[inline]
    fn admit(&self, seat: &ThreadState, ticket: &Ticket, hash: u64, found: Option<Location>) {
        if let Some(pointer) = found.and_then(pointer) {
            seat.admit_ticketed(&self.buffer, self.table(), ticket, hash, pointer);
        }
    }
}

/// A write that has begun. Dropping it ends it.
#[must_use = "the index is to be changed before this is dropped"]
pub(crate) struct Change<'f>(Write<'f>);

impl Change<'_> {
    /// An item has come into the index: if its key was hot, it stays so.
    pub(crate) fn put(&self, at: Location) {
        if let Some(pointer) = pointer(at) {
            self.0.put(pointer);
        }
    }
}

/// Keys of a group that the table did not have.
struct Missed<'k> {
    numbers: [usize; GROUP],
    keys: [&'k [u8]; GROUP],
    hashes: [u64; GROUP],
    len: usize,
}

impl<'k> Missed<'k> {
    #[inline]
    fn push(&mut self, number: usize, key: &'k [u8], hash: u64) {
        self.numbers[self.len] = number;
        self.keys[self.len] = key;
        self.hashes[self.len] = hash;
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_pointers_less_one_and_the_last_one_is_not_remembered() {
        for raw in [0, 1, (1 << 48) - 2] {
            let at = Location::new(raw).unwrap();
            assert_eq!(location(pointer(at).unwrap()), Some(at));
        }
        assert_eq!(pointer(Location::new((1 << 48) - 1).unwrap()), None);
    }
}
