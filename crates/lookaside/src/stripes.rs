//! The stripe's word: the protocol that keeps the table equal to the index.
//!
//! # The danger
//!
//! A lookup misses the table, finds an entry in the index, and admits it. Between the find and the offer another
//! thread may have removed the entry and cleared the table: the offer would put it back, stale. The paper (section
//! 3.1.3) has the user lock the key's partition around the whole lookup, hits included. That works here too
//! ([`Stripes::lock`]); but a hit need not take part at all.
//!
//! # Who reads, who writes
//!
//! 1024 words, chosen by ten bits of the hash, a cache line each. Even is free, odd is held, and every *write* leaves
//! the word two further on. The ten bits are of the tag: who holds a stripe is asked about no entry of another one, and
//! so may compare what it is asked about without an epoch, as the paper does, whatever others free.
//!
//! ```text
//!   miss:    ticket = word            write:   word odd (wait while it is)
//!            search the index                  clear the tag's slots
//!   admit:   word: ticket -> odd,              change the index
//!              or drop the offer               put the new pointer in, if it is an update
//!            put the pointer in                word even, two further on
//!            word: back to ticket              retire the old entry
//! ```
//!
//! * A ticket taken while the word is odd is void: the index may be changing.
//! * `admit` only tries: it succeeds only if the word still is the ticket, so no write of the stripe has begun since
//!   before the index was searched. What the search found, it would find now. While it holds the word, no write begins.
//! * An offer changes neither the index nor the truth of other tickets, so it puts the old number back.
//! * A hit reads no stripe. Its slot's load lies within the call, and at that moment the pointer was in the table: the
//!   write that removes the entry had not closed, so the answer is one that an index without a table could have given
//!   during the call.
//! * The entry is retired after the slots are cleared and the word is closed. A reader that loaded the pointer before
//!   pinned its epoch earlier still, so the entry outlives it.
//!
//! No user code runs while an offer holds a word. During a write, the index is changed under it, and keys are
//! compared: neither may write to the map, nor to another one behind the same buffer, or a write of the same stripe
//! would wait for itself. So a word that is held for a write names the thread that holds it, in all of its bits but the
//! lowest, and a thread that finds its own name panics. (That of [`Stripes::lock_raw`] does not: it has to keep the
//! number.) Of indexes that share a buffer each has its part of the stripes only if there are more than four: 16 of
//! them, with 256.
//!
//! # Memory model
//!
//! The ticket's load is an acquire, so the search of the index is not made before it. Closing a write is a release: who
//! takes a ticket from a closed word sees the index as that write left it. `admit`'s exchange is an acquire; success
//! means that it read the very number the ticket was, and numbers never come back until 2^63 writes were made. The
//! opening exchange of a write is an acquire, and the clears after it are exchanges that follow it in the order of each
//! slot: an offer that came before, under the same word, is seen and cleared.
//!
//! # Rejected
//!
//! *A version that hits validate too*: another line a hit. *Admitting without the word, and checking it afterwards*:
//! between the store and the check a reader may have found the stale pointer.
//!
//! # Literature
//!
//! Wu, Ni, Jiang, SoCC 2017, section 3.1.3. Herlihy and Shavit, "The Art of Multiprocessor Programming", lock striping.
//! Boehm, "Can seqlocks get along with programming language memory models?", MSPC 2012.

use atomics::{AtomicU64, Ordering, spin_loop, yield_now};

use crate::config::CreateError;
use crate::lines::{self, Lines};

/// Stripes, as in the paper.
#[cfg(not(loom))]
pub(crate) const STRIPES: usize = 1024;
/// A model has few, so that keys meet.
#[cfg(loom)]
pub(crate) const STRIPES: usize = 1;

/// Attempts before a waiting writer gives its core away.
const SPINS: u32 = 64;

/// The moment at which an index was searched, as far as one stripe is concerned. It is good for one offer, or none.
#[derive(Debug)]
#[must_use = "without its ticket, what was found cannot be admitted"]
pub struct Ticket {
    stripe: usize,
    /// `None` if a write was going on.
    word: Option<u64>,
}

impl Ticket {
    /// The ticket as a number, for callers in other languages; odd if a write was going on.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.word.unwrap_or(1)
    }

    /// The ticket that gave this number for this hash.
    pub fn numbered(hash: u64, number: u64) -> Ticket {
        Ticket { stripe: Stripes::stripe_of(hash), word: (number & 1 == 0).then_some(number) }
    }
}

/// A word, and nothing else in the lines that the processor fetches with it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Stripe(AtomicU64);

// SAFETY: an atomic integer, for which zero is a value: free.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Stripe {}

/// The words.
#[derive(Debug)]
pub(crate) struct Stripes(Lines<Stripe>);

impl Stripes {
    pub(crate) fn new() -> Result<Stripes, CreateError> {
        Ok(Stripes(lines::map(STRIPES, pages::PageKind::Base)?))
    }

    /// The lower bits of the tag: the highest are the same for all keys of an index that shares its table.
    #[inline(always)]
    pub(crate) fn stripe_of(hash: u64) -> usize {
        (hash >> 52) as usize % STRIPES
    }

    #[inline(always)]
    fn word(&self, stripe: usize) -> &AtomicU64 {
        &self.0[stripe].0
    }

    /// Before the index is searched for a key of this hash.
    #[inline]
    pub(crate) fn ticket(&self, hash: u64) -> Ticket {
        let stripe = Stripes::stripe_of(hash);
        // pairs with the release in `Held::drop`: who reads an even word sees what the write before it did.
        let word = self.word(stripe).load(Ordering::Acquire);
        Ticket { stripe, word: (word & 1 == 0).then_some(word) }
    }

    /// Runs `put` if no write of the ticket's stripe has begun since the ticket was taken, and none begins meanwhile.
    #[inline]
    pub(crate) fn with_ticket<T>(&self, ticket: &Ticket, put: &mut dyn FnMut() -> T) -> Option<T> {
        let ticketed = ticket.word?;
        let word = self.word(ticket.stripe);
        // acquire pairs with the releases below and in `Held::drop`: what others put in is seen; a failure ends it.
        word.compare_exchange(ticketed, ticketed | 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        let outcome = put();
        // pairs with the acquires of whoever takes the word next: they see what was put in.
        word.store(ticketed, Ordering::Release);
        Some(outcome)
    }

    /// Takes a stripe for a write, waiting for whoever holds it.
    pub(crate) fn lock(&self, hash: u64) -> Held<'_> {
        let word = self.word(Stripes::stripe_of(hash));
        Held { word, back: after_write(acquire(word, this_thread())) }
    }

    /// Takes all of them, one after the other, waiting for whoever holds one.
    #[cfg(not(loom))]
    pub(crate) fn lock_all(&self) -> Vec<Held<'_>> {
        self.0
            .iter()
            .map(|Stripe(word)| Held { word, back: after_write(acquire(word, this_thread())) })
            .collect()
    }

    /// The paper's lock, whose holder is trusted to give it back: see [`Stripes::unlock_raw`].
    pub(crate) fn lock_raw(&self, hash: u64) {
        acquire(self.word(Stripes::stripe_of(hash)), None);
    }

    /// Gives back what [`Stripes::lock_raw`] took. Does nothing if the stripe is not held.
    pub(crate) fn unlock_raw(&self, hash: u64) {
        let word = self.word(Stripes::stripe_of(hash));
        let now = word.load(Ordering::Relaxed);
        if now & 1 == 1 {
            // pairs with the acquires of `acquire`, `ticket` and `with_ticket`.
            word.store(now.wrapping_add(1), Ordering::Release);
        }
    }
}

/// An odd number that is this thread's only.
#[cfg(not(loom))]
#[inline]
fn this_thread() -> Option<u64> {
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    Some(HERE.with(|here| (std::ptr::from_ref(here).addr() as u64) << 1 | 1))
}

/// A model's threads are one thread's. None of its numbers is as high.
#[cfg(loom)]
fn this_thread() -> Option<u64> {
    Some(u64::MAX)
}

/// Makes a word odd if it is even, and says what it was: this odd number, or the next one.
fn take(word: &AtomicU64, holder: Option<u64>) -> Option<u64> {
    let now = word.load(Ordering::Relaxed);
    let held = holder.unwrap_or(now | 1);
    // acquire pairs with the releases of whoever held it before.
    let taken =
        now & 1 == 0 && word.compare_exchange(now, held, Ordering::Acquire, Ordering::Relaxed).is_ok();
    taken.then_some(now)
}

/// As [`take`], waiting for whoever holds the word.
///
/// # Panics
/// If that is this holder.
fn acquire(word: &AtomicU64, holder: Option<u64>) -> u64 {
    let mut spins = 0;
    loop {
        if let Some(taken) = take(word, holder) {
            return taken;
        }
        assert!(
            cfg!(loom) || holder != Some(word.load(Ordering::Relaxed)),
            "a map was written to by the comparison of its own keys, or by its index, while it was written to: \
             it must not be"
        );
        spins += 1;
        if spins % SPINS == 0 { yield_now() } else { spin_loop() }
    }
}

/// The word of a stripe that was taken for a write, when it is given back: its tickets are void.
fn after_write(taken: u64) -> u64 {
    taken.wrapping_add(2)
}

/// A stripe held: given back on drop, also when the index panics.
#[derive(Debug)]
pub(crate) struct Held<'s> {
    word: &'s AtomicU64,
    /// What the word is then.
    back: u64,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // pairs with the acquires in `ticket`, `with_ticket` and `acquire`: the next sees the index as this write left
        // it.
        self.word.store(self.back, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_outlives_a_held_stripe_of_others_and_no_write() {
        let stripes = Stripes::new().unwrap();
        let (first, last) = (0u64, u64::MAX);
        let (ticket, held) = (stripes.ticket(first), stripes.lock(last));
        assert!(stripes.with_ticket(&ticket, &mut || ()).is_some(), "another is held");
        drop(held);
        drop(stripes.lock(first));
        assert!(stripes.with_ticket(&ticket, &mut || ()).is_none(), "there was a write");
        let ticket = stripes.ticket(first);
        let all = stripes.lock_all();
        assert_eq!(all.len(), STRIPES);
        assert!(stripes.with_ticket(&ticket, &mut || ()).is_none(), "it is taken");
        drop(all);
    }
}
