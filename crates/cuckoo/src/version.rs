//! The version word: the protocol between readers and writers.
//!
//! # Who reads, who writes
//!
//! A version word guards one bucket ([`crate::layout::Inline`]) or all buckets with the same low bits
//! ([`crate::layout::Striped`]). Its lowest bit is a lock among writers. Two bits are *marks*, set under the lock and
//! never taken back: keys whose first bucket this is may be in the [stash](crate::stash), or else elsewhere than here
//! ([`crate::first`]). The rest counts the entries that have been *displaced* from a guarded bucket to their other one.
//!
//! ```text
//!   31                          3  2  1  0
//!  +-----------------------------+---+---+---+
//!  |  entries displaced from here| E | S | L |
//!  +-----------------------------+---+---+---+
//! ```
//!
//! A miss is believed only where there is no mark of the stash. That costs a lookup next to nothing, for it is asked of
//! the word that a reader has anyway.
//!
//! *Writers* lock the words of every bucket they are about to change, in ascending order, so they cannot deadlock, and
//! two writers to different buckets run side by side. (The paper has one writer at a time, section 3.2.) *Readers*
//! never lock and never wait: they load the two words of their key, search, and if they found nothing load them again.
//!
//! # Why a reader that found its key needs no second look
//!
//! A slot is one word, read whole. If its entry's full key is the key sought, then that entry was in the table at the
//! moment the slot was read, and that moment lies within the lookup. Entries are not changed once they are in the
//! table, and their memory is not reused while a reader may hold their location; that is the owner's part of the
//! bargain.
//!
//! # Why a reader that found nothing needs one, and why it suffices
//!
//! An insert, a removal and a replacement change one word, once: a reader sees the table before or after it. Only a
//! displacement, a split and a merge change more than one. All three copy first and clear last, so the entry is always
//! in at least one bucket, and all announce the change in between, all of it under the lock of the bucket that the
//! entry leaves:
//!
//! 1. store the entry's word into the bucket it moves to;
//! 2. announce: a displacement raises the version of the bucket it leaves, a split publishes the geometry in which the
//!    new bucket exists, a merge one in which the last bucket does not, with one merge more;
//! 3. clear the old slot.
//!
//! Every store is a release, every load of a slot, a version or the geometry by a reader an acquire. A reader loads the
//! geometry, then both versions, then the slots, then versions and geometry again, and believes a miss only if neither
//! version, nor its candidates, nor the number of merges has changed.
//!
//! Suppose that a reader believes a miss of key `k`, although `k` was in the table all along. Call a move of
//! `k` *known* if its announcement was seen by the first look, at the versions and the geometry. Consider the last
//! known move (or the insert of `k`, if there is none). Seeing an announcement (2) implies seeing the copy before it
//! (1), and, for a split, knowing the bucket it went to; for `k`'s candidates did not change between the looks, so they
//! are those of the newest geometry the reader has seen. So in the slot of that copy the reader must find `k`, or
//! something stored there later. `k` can only have been cleared from that slot by a further move (3), whose
//! announcement the reader then sees in its second look, because (3) is a release after (2) and the reader's load of
//! the slot an acquire. That move was not known, so the version, or the candidates, or the number of merges, have
//! changed, and the miss is not believed. The case of a slot reused since is the same: who stores there has held the
//! same lock later.
//!
//! Without that number a bucket could be merged and split again between the two looks at the geometry, which would be
//! the same. It has 24 bits and wraps as the versions do; a merge is not more frequent than a displacement.
//!
//! A reader compares tags first, of all slots together, and then loads the slots that may have its key
//! ([`crate::tags`]). The comparison is a look at each slot like any other, and the load another one, later: what has
//! been said of the slot of that copy holds for both.
//!
//! The paper (section 3.2.1) makes the counter odd before a move and even after it, and readers wait while it is odd.
//! One step between copy and clear is enough, because here the entry is duplicated for a moment, never absent; so no
//! reader ever waits for a writer that was preempted.
//!
//! # Rejected
//!
//! *Raising the version on every change*: negative lookups would retry for inserts that do not concern
//! them. *Validating hits as well* (the paper's Algorithm 1): needed there because memory is reused under the reader;
//! here it is not.
//!
//! # Counters wrap
//!
//! A reader is fooled if exactly 2^29 entries leave its bucket (or stripe) between its two loads, which are nanoseconds
//! apart unless it is preempted; at ten million displacements a second over 8192 stripes that takes five days.
//!
//! # Literature
//!
//! Fan, Andersen, Kaminsky, "MemC3", NSDI 2013, section 3.2 and appendix A. Kung and Robinson, "On optimistic methods
//! for concurrency control", TODS 1981. Boehm, "Can seqlocks get along with programming language memory models?", MSPC
//! 2012: slots are loaded with acquire, so no fence is needed before the second look.

use atomics::{AtomicU32, Ordering, spin_loop, yield_now};

/// A version word: see the module.
#[derive(Debug, Default)]
pub struct Version(AtomicU32);

// SAFETY: one atomic integer, for which zero is a value: unlocked, nothing has left.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for Version {}

/// What a reader remembers of a version word: all of it, so that to remember costs nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot(u32);

impl Version {
    const LOCKED: u32 = 1;
    const STASHED: u32 = 2;
    const ELSEWHERE: u32 = 4;
    const STEP: u32 = 8;
    /// Attempts before a waiting writer gives its core away.
    const SPINS: u32 = 64;

    /// For readers, before the slots.
    #[inline]
    pub(crate) fn snapshot(&self) -> Snapshot {
        // pairs with the release in `raise`: who sees a step sees the copy that preceded it.
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// For readers, after the slots: whether nothing has left one of the two since, and no key whose first bucket the
    /// first of them is is in the stash.
    #[inline(always)]
    pub(crate) fn are_still(words: (&Version, &Version), snapshots: (Snapshot, Snapshot)) -> bool {
        let stashed = snapshots.0.0 & Version::STASHED;
        // In one comparison: the lock is the lowest bit, and the only one that may have changed.
        words.0.since(snapshots.0) | words.1.since(snapshots.1) | stashed <= Version::LOCKED
    }

    /// For readers, after the slots of a first bucket: whether nothing has left since, and no key of it is elsewhere.
    #[inline(always)]
    pub(crate) fn is_still_complete(&self, snapshot: Snapshot) -> bool {
        self.since(snapshot) | snapshot.0 & Version::ELSEWHERE <= Version::LOCKED
    }

    /// The bits that have changed.
    #[inline(always)]
    fn since(&self, snapshot: Snapshot) -> u32 {
        // As in `snapshot`: the next look must see what this one saw.
        self.0.load(Ordering::Acquire) ^ snapshot.0
    }

    /// Whether keys whose first bucket this is may be in the stash.
    pub(crate) fn has_stashed(&self) -> bool {
        // Relaxed: what is behind a mark is read under the bucket's lock, and whoever saw a key inserted sees it.
        self.0.load(Ordering::Relaxed) & Version::STASHED != 0
    }

    /// Whether keys whose first bucket this is may be elsewhere.
    #[inline]
    pub(crate) fn has_elsewhere(&self) -> bool {
        // Relaxed: as in `has_stashed`.
        self.0.load(Ordering::Relaxed) & Version::ELSEWHERE != 0
    }

    /// Says, while locked, that a key whose first bucket this is goes to the stash.
    pub(crate) fn mark_stashed(&self) {
        self.mark(Version::STASHED | Version::ELSEWHERE);
    }

    /// Says, while locked, that a key whose first bucket this is goes elsewhere.
    pub(crate) fn mark_elsewhere(&self) {
        self.mark(Version::ELSEWHERE);
    }

    /// Takes on, while locked, the marks of a bucket from which keys come.
    pub(crate) fn mark_as(&self, other: &Version) {
        self.mark(other.0.load(Ordering::Relaxed) & (Version::STASHED | Version::ELSEWHERE));
    }

    fn mark(&self, marks: u32) {
        let now = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(now & Version::LOCKED, Version::LOCKED);
        // release pairs with the acquire in `snapshot`: who sees a mark sees what the steps before it announced.
        self.0.store(now | marks, Ordering::Release);
    }

    /// Takes the lock, waiting for a writer that holds it.
    #[inline]
    pub(crate) fn lock(&self) {
        let mut spins = 0;
        while !self.try_lock() {
            spins += 1;
            if spins % Version::SPINS == 0 { yield_now() } else { spin_loop() }
        }
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        let now = self.0.load(Ordering::Relaxed);
        now & Version::LOCKED == 0
            && self
                .0
                // acquire pairs with the release in `unlock`: what the last writer did is seen by this one.
                .compare_exchange(now, now | Version::LOCKED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether a writer, this one or another, holds the lock: for assertions.
    pub(crate) fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed) & Version::LOCKED != 0
    }

    /// Records, while locked, that an entry copied elsewhere is about to be cleared here. (Its first bucket may be the
    /// other one: the slot does not say.)
    #[inline]
    pub(crate) fn raise(&self) {
        let now = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(now & Version::LOCKED, Version::LOCKED);
        // release pairs with the acquire in `snapshot`: the copy comes before the step.
        self.0.store(now.wrapping_add(Version::STEP) | Version::ELSEWHERE, Ordering::Release);
    }

    /// Gives the lock back.
    #[inline]
    pub(crate) fn unlock(&self) {
        let now = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(now & Version::LOCKED, Version::LOCKED);
        // release pairs with the acquire in `try_lock`.
        self.0.store(now & !Version::LOCKED, Ordering::Release);
    }
}
