//! The lock word, and the protocol between readers and writers.
//!
//! ```text
//!   31        22 21        12 11         2   1   0
//!  +------------+------------+------------+---+---+
//!  |   unused   |    live    |  assigned  | O | L |
//!  +------------+------------+------------+---+---+
//! ```
//!
//! `L` is a lock among writers. `O` says that the node is obsolete: it has left the tree and will never change again.
//! `assigned` counts the bytes that have a slot, `live` the slots that are not null; only who holds the lock changes
//! them.
//!
//! # What can change in a node, and what cannot
//!
//! 1. Its *level*, the position of the byte that it tells apart, never changes. Neither do the bytes before the level:
//!    all keys that are ever below a node agree in them. A node does not store them.
//! 2. A byte is *assigned* a slot once, and keeps it as long as the node lives.
//! 3. A slot is one 32-bit word. It is null, or refers to the child for its byte, and changes by one atomic store.
//!
//! Whatever else is wanted (more slots, fewer, another place in memory) is a new node, which takes the old one's place
//! by one store to its parent's slot.
//!
//! # Writers
//!
//! - Who changes a slot holds the lock of the node that the slot is in. (The root's slot has a lock of its own.)
//! - Who replaces a node holds its parent's lock and its own, stores the new reference into the parent's slot, and
//!   releases the old node's lock as obsolete. So an obsolete node is *frozen*: it shows for ever what it held then.
//! - Who takes a whole subtree out stores into the slot above it first and then freezes its nodes one by one, parents
//!   before children.
//! - A writer searches without locks, takes the locks, and then looks again: neither node is obsolete, and the slots
//!   hold what they held. If not, it starts anew. Nothing is changed before that, and no lock is held while user code
//!   runs.
//! - Locks are taken by rising level. A child's level is higher than its parent's and neither changes, so no two
//!   writers wait for each other.
//!
//! Assigning a slot takes three stores, in this order: the byte, the count, the slot.
//!
//! # Readers
//!
//! A reader loads one slot after another until one is null or refers to a leaf, and compares the leaf's whole key. It
//! takes no lock, reads no version, writes nothing and never starts anew.
//!
//! **Claim.** What it says of its key `k` was true at a moment during the lookup.
//!
//! Call the path of `k` in the tree at some moment the nodes that one meets by following `k`'s bytes, at each node the
//! one at its level. We show that every node the reader visits was on the path of `k` at a moment since the lookup
//! began. The root's slot is always in the tree. Suppose it of node `X`, for moment `a`, and let the reader load `X`'s
//! slot for its byte at moment `t`. If `X` is in the tree at `t`, what it loads is next on the path of `k` at `t`.
//! Otherwise `X` has been frozen at some moment `f`, after `a` and before `t`; the slot held at `f` what it holds at
//! `t`, and `X` was on the path until `f`; so what the reader loads was next on the path just before `f`. Both moments
//! are since the lookup began. (A subtree that was taken out is frozen a little later than it leaves. A writer that
//! began before it left may still change it in between; it counts as having been first, and what is seen of it, by
//! whoever else began before, too.)
//!
//! At the end there is a moment at which the path of `k` ended in that null or that leaf. If the leaf's key is `k`,
//! then `k` was there. If it is not, `k` was not: all keys with `k`'s bytes at the levels of the path are where the
//! path leads to.
//!
//! **One exception, harmless.** The bytes of a Node4 or Node16 are loaded together, before the slot. An unassigned byte
//! reads as zero. A reader of byte zero may so be led to a slot that is being assigned another byte at this very
//! moment. It then descends in a subtree in which `k` cannot be, finds no leaf of `k` there, and says that `k` is
//! absent: which it was when the bytes were loaded. Scans have no key to compare, and writers go on to change what they
//! come to: below another byte a key must not be put. So these load the count first, then the bytes, and look at no
//! slot that is not counted: that is why the count comes before the slot, and after the byte.
//!
//! # Memory
//!
//! A node or leaf that has left the tree is given back once everyone has left who was pinned then
//! ([`atomics::reclaim`]). Leaves do not change once they are published: a new value is a new leaf. Every store to a
//! slot is a release and every load of one an acquire, so who sees a reference sees what it refers to.
//!
//! Nodes with room for many children have one more word, their *plot* ([`crate::space`]): where the next leaf below
//! them is to lie; a Node256 has another, for the next Node4. It takes no part in any of this. No reader looks at it;
//! writers do, before they take a node's lock, under the lock of the class of what lies there. A writer may so take a
//! place in the plot of a node that is obsolete already: what the plot has left is given back when the node is, which
//! is not before that writer has left.
//!
//! # Rejected
//!
//! *Optimistic lock coupling*: readers load a version before and after each node, in the node's first line, which a
//! Node256 would otherwise not have to give; and they start anew when a writer was near. *ROWEX with prefixes in nodes*
//! (both are Leis, Scheibner, Kemper and Neumann, "The ART of practical synchronization", DaMoN 2016): a prefix that
//! shrinks in place has to be told from one that did not. Here nothing has to shrink: putting a node between two others
//! changes neither.
//!
//! # Literature
//!
//! Leis, Kemper, Neumann, "The adaptive radix tree", ICDE 2013 (nodes; optimistic path compression, section III E).
//! Morrison, "PATRICIA", JACM 1968 (levels instead of prefixes).

use atomics::{AtomicU32, Ordering, spin_loop, yield_now};

/// A lock word: see the module.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Lock(AtomicU32);

/// What a lock word says besides being locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct State(u32);

impl State {
    const COUNT: u32 = (1 << 10) - 1;
    const ASSIGNED: u32 = 2;
    const LIVE: u32 = 12;

    pub(crate) fn new(assigned: usize, live: usize) -> State {
        debug_assert!(assigned <= 256 && live <= 257);
        State((assigned as u32) << State::ASSIGNED | (live as u32) << State::LIVE)
    }

    /// Bytes that have a slot.
    pub(crate) fn assigned(self) -> usize {
        (self.0 >> State::ASSIGNED & State::COUNT) as usize
    }

    /// Slots that are not null.
    pub(crate) fn live(self) -> usize {
        (self.0 >> State::LIVE & State::COUNT) as usize
    }
}

impl Lock {
    const LOCKED: u32 = 1;
    const OBSOLETE: u32 = 2;
    /// Attempts before a waiting writer gives its core away.
    const SPINS: u32 = 64;

    pub(crate) fn new(state: State) -> Lock {
        Lock(AtomicU32::new(state.0))
    }

    /// The counts now. A scan that sees a slot filled sees the count that includes it.
    #[inline]
    pub(crate) fn state(&self) -> State {
        // pairs with the release in `announce`: the bytes of the slots counted are seen.
        State(self.0.load(Ordering::Acquire) & !(Lock::LOCKED | Lock::OBSOLETE))
    }

    /// Takes the lock, waiting for a writer that holds it; `None` if the node is obsolete.
    #[inline]
    pub(crate) fn acquire(&self) -> Option<State> {
        let mut spins = 0;
        loop {
            // acquire pairs with the release in `release_obsolete`: who starts anew finds what is there instead.
            let now = self.0.load(Ordering::Acquire);
            if now & Lock::OBSOLETE != 0 {
                return None;
            }
            if now & Lock::LOCKED == 0
                && self
                    .0
                    // acquire pairs with the release in `release`: what the last writer did is seen by this one.
                    .compare_exchange(now, now | Lock::LOCKED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(State(now));
            }
            spins += 1;
            if spins % Lock::SPINS == 0 { yield_now() } else { spin_loop() }
        }
    }

    /// Publishes new counts while the lock is held, before the slot that they count is filled.
    #[inline]
    pub(crate) fn announce(&self, state: State) {
        // release pairs with the acquire in `state`.
        self.0.store(state.0 | Lock::LOCKED, Ordering::Release);
    }

    /// Gives the lock back.
    #[inline]
    pub(crate) fn release(&self, state: State) {
        // release pairs with the acquire in `acquire`.
        self.0.store(state.0, Ordering::Release);
    }

    /// Gives the lock back for the last time: the node has left the tree.
    #[inline]
    pub(crate) fn release_obsolete(&self) {
        let now = self.0.load(Ordering::Relaxed);
        // The counts stay, for scans that are still here. Release pairs with the acquire in `acquire`.
        self.0.store(now & !Lock::LOCKED | Lock::OBSOLETE, Ordering::Release);
    }
}
