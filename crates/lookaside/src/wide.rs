//! A second word for each slot: for what a pointer of 48 bits does not tell.
//!
//! ```text
//!   bucket   | slot 0 | slot 1 | . . . | slot 6 | counters |     tag and pointer
//!   beside   | word 0 | word 1 | . . . | word 6 | version  |     a length, a key, another pointer
//! ```
//!
//! Both lines are named by the hash alone, so that a lookup waits for both at once.
//!
//! # Protocol
//!
//! A slot and its word are two stores. A reader that took the slot of one item and the word of another would have a
//! pointer with another's length; so the line beside is a sequence lock (Boehm, "Can Seqlocks Get Along With
//! Programming Language Memory Models?", MSPC 2012):
//!
//! ```text
//!   write:  version even -> odd, by compare and swap   slot, word    version + 2
//!   read:   version, even?    slot, word               version the same?
//! ```
//!
//! | who | writes | when |
//! |---|---|---|
//! | [`Words::insert`] | slots and words of a line | while it has made the version odd; who finds it odd lets it be |
//! | [`Slb::warm`] | counters | at any time: they are no part of an item |
//!
//! Nobody waits: a reader that meets a writer has missed, a writer that meets another drops what it has. Nothing is
//! taken out but by [`Slb::reset`], for which the table is borrowed mutably; words may then stay, for nobody reads the
//! word of an empty slot. No user code runs while a version is odd.
//!
//! Rejected: *pairs in an arena, and pointers to them in the slots*: one more line that a lookup waits for, after the
//! bucket's; and no pair could be written over while readers hold its address.

use atomics::{AtomicU64, Ordering, fence};

use crate::bucket::{SLOTS, line};
use crate::config::{Config, CreateError};
use crate::lines::{self, Lines};
use crate::pointer::Pointer;
use crate::random::Random;
use crate::slb::{Insertion, Slb};

/// Seven words and their version.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Beside {
    words: [AtomicU64; SLOTS],
    version: AtomicU64,
}

// SAFETY: atomic integers, for all of which zero is a value: even versions.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Beside {}

/// The words beside a table's slots.
#[derive(Debug)]
pub(crate) struct Words(Lines<Beside>);

impl Words {
    /// As many lines as `table` has.
    pub(crate) fn beside(table: &Slb, config: &Config) -> Result<Words, CreateError> {
        Ok(Words(lines::map(table.capacity() / SLOTS, config.pages)?))
    }

    /// Bytes of memory.
    #[cfg(not(loom))]
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * size_of::<Beside>()
    }

    /// Asks for the line that a call with this hash will read.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        pages::prefetch(line(&self.0, hash));
    }

    /// The slot of the first pointer and word, inserted together with a hash of this tag, that `accept` takes.
    #[inline(always)]
    pub(crate) fn find(
        &self,
        table: &Slb,
        hash: u64,
        mut accept: impl FnMut(Pointer, u64) -> bool,
    ) -> Option<usize> {
        let beside = line(&self.0, hash);
        let (slot, pointer, word) = beside.read(|| table.peek(hash))?;
        if accept(pointer, word) { Some(slot) } else { self.find_behind(table, hash, accept) }
    }

    /// As [`Words::find`], behind the first of this tag. Seldom: another key has its tag.
    #[inline(never)]
    fn find_behind(
        &self,
        table: &Slb,
        hash: u64,
        mut accept: impl FnMut(Pointer, u64) -> bool,
    ) -> Option<usize> {
        let beside = line(&self.0, hash);
        for passed in 1..SLOTS {
            let mut left = passed;
            let at = |_| {
                let here = left == 0;
                left = left.saturating_sub(1);
                here
            };
            let (slot, pointer, word) = beside.read(|| table.find(hash, at))?;
            if accept(pointer, word) {
                return Some(slot);
            }
        }
        None
    }

    /// Puts a pointer and its word in, unless somebody else is putting something into this bucket. Other insertions
    /// into the table are all made by this.
    pub(crate) fn insert(&self, table: &Slb, hash: u64, pointer: Pointer, word: u64, random: &Random) {
        let beside = line(&self.0, hash);
        let version = beside.version.load(Ordering::Relaxed);
        // acquire pairs with the release below: writers of a line come one after the other.
        let exchange =
            |new| beside.version.compare_exchange(version, new, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if !version.is_multiple_of(2) || !exchange(version + 1) {
            return;
        }
        // Pairs with the fence in `Beside::read`: who reads what is written from here on sees an odd version after it,
        // or a later one.
        fence(Ordering::Release);
        if let Insertion::Present | Insertion::Admitted | Insertion::Replaced =
            table.insert(hash, pointer, random)
        {
            let Some((slot, _)) = table.find(hash, |found| found == pointer) else {
                // Cannot be: nobody else writes slots. If it were, a slot would have another's word; so the version
                // stays odd, and nobody reads this line again.
                return;
            };
            beside.words[slot].store(word, Ordering::Relaxed);
        }
        // release pairs with the acquire in `Beside::read`: who begins to read at this version sees all of it, and
        // what the pointers point to.
        beside.version.store(version + 2, Ordering::Release);
    }
}

impl Beside {
    /// What `slot` finds, and its word, if nobody writes meanwhile.
    #[inline(always)]
    fn read(&self, slot: impl FnOnce() -> Option<(usize, Pointer)>) -> Option<(usize, Pointer, u64)> {
        // acquire pairs with the release in `Words::insert`.
        let version = self.version.load(Ordering::Acquire);
        let (slot, pointer) = slot()?;
        let word = self.words[slot].load(Ordering::Relaxed);
        // Pairs with the fence in `Words::insert`.
        fence(Ordering::Acquire);
        let same = self.version.load(Ordering::Relaxed) == version;
        (same && version.is_multiple_of(2)).then_some((slot, pointer, word))
    }
}
