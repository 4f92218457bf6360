//! A plain concurrent chaining hash table: the one behind the paper's Figures 8b to 11 and 15.
//!
//! An array of chains, as many as there are records, rounded up to a power of two: "the chain on each hash bucket has
//! only one entry on average" (section 4.2.2). Readers take no lock: they walk nodes that stay readable while they are
//! pinned. Writers lock one of [`LOCKS`] stripes. A value changes by a new node in the old one's place, so that a
//! reader finds the one or the other. What a writer takes out is dropped with its node, after all readers that were
//! pinned then have left.
//!
//! A node is the record itself, as in C++'s `unordered_map`: two dependent misses a lookup, alone and with a buffer
//! beside. Behind a map, a node would hold a handle of the record, one more: it can, but is measured so behind STLT-SW
//! only.
//!
//! Many keys at once are looked up in three passes: the lines of their chains are asked for, then those of the first
//! nodes, and then the chains are walked. The paper's table has nothing like it; without, what a buffer in front does
//! in batches would be compared with a table that was never asked for any.
//!
//! The table does not grow: the paper's is sized beforehand too.

#![allow(unsafe_code)]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use lookaside::index::{Find, SharedStore};
use lookaside::{Found, Pin};
use parking_lot::Mutex;
use twox_hash::XxHash3_64;

use super::beside::{Record, Records};
use super::contestant::Make;
use super::indexes::Handled;
use super::record::{Key, Value};
use super::visit::BATCH;
use crate::measure::epochs::{self, Guard};

/// Stripes of locks for writers.
const LOCKS: usize = 1024;

/// What a node holds.
pub(crate) trait Keyed<const N: usize>: Send + Sync + 'static {
    /// Its key.
    fn key(&self) -> &Key<N>;
}

impl<const N: usize> Keyed<N> for Handled<N> {
    #[inline(always)]
    fn key(&self) -> &Key<N> {
        Handled::key(self)
    }
}

impl<const N: usize, V: Send + Sync + 'static> Keyed<N> for Record<N, V> {
    #[inline(always)]
    fn key(&self) -> &Key<N> {
        &self.0
    }
}

type Link<E> = AtomicPtr<Node<E>>;

struct Node<E> {
    next: Link<E>,
    entry: E,
}

/// The table.
pub(crate) struct Chaining<const N: usize, E: Keyed<N>> {
    chains: Box<[Link<E>]>,
    locks: Box<[CachePadded<Mutex<()>>]>,
    len: AtomicUsize,
}

impl<const N: usize, E: Keyed<N>> Chaining<N, E> {
    /// A table of at least `records` chains.
    #[must_use]
    pub(crate) fn new(records: usize) -> Self {
        Chaining {
            chains: (0..records.max(1).next_power_of_two()).map(|_| Link::default()).collect(),
            locks: (0..LOCKS).map(|_| CachePadded::new(Mutex::new(()))).collect(),
            len: AtomicUsize::new(0),
        }
    }

    #[inline(always)]
    fn chain_of(&self, key: &Key<N>) -> usize {
        XxHash3_64::oneshot(&key.0) as usize & (self.chains.len() - 1)
    }

    /// What is stored under this key.
    #[inline(always)]
    pub(crate) fn get<'g>(&'g self, key: &Key<N>, guard: &'g Guard) -> Option<&'g E> {
        self.search(self.chain_of(key), key, guard)
    }

    #[inline(always)]
    fn search<'g>(&'g self, chain: usize, key: &Key<N>, _guard: &'g Guard) -> Option<&'g E> {
        // acquire pairs with the releases in `exchange` and `unlink`: a node is seen as it was made.
        let mut node = self.chains[chain].load(Ordering::Acquire);
        // SAFETY: nodes are freed only after all have left who were pinned when they were unlinked.
        while let Some(now) = unsafe { node.as_ref() } {
            if now.entry.key() == key {
                return Some(&now.entry);
            }
            // pairs as above.
            node = now.next.load(Ordering::Acquire);
        }
        None
    }

    /// What is stored under these keys, [`BATCH`] at most: `found(i, ...)` is told that of `keys[i]`.
    #[inline(always)]
    pub(crate) fn get_many<'g>(
        &'g self,
        keys: &[&Key<N>],
        guard: &'g Guard,
        mut found: impl FnMut(usize, Option<&'g E>),
    ) {
        let mut chains = [0; BATCH];
        for (key, chain) in keys.iter().zip(&mut chains) {
            *chain = self.chain_of(key);
            pages::prefetch(&raw const self.chains[*chain]);
        }
        for chain in &chains[..keys.len()] {
            // Relaxed: only asked for.
            let first = self.chains[*chain].load(Ordering::Relaxed).cast_const();
            pages::prefetch(first);
            pages::prefetch(first.cast::<u8>().wrapping_add(64));
        }
        for (i, (key, &chain)) in keys.iter().zip(&chains).enumerate() {
            found(i, self.search(chain, key, guard));
        }
    }

    /// The link that leads to the node of this key, or the last one. The chain is locked.
    fn link(&self, chain: usize, key: &Key<N>) -> &Link<E> {
        let mut link = &self.chains[chain];
        loop {
            // Relaxed: written under the lock that is held.
            // SAFETY: linked, and nobody unlinks it under the lock.
            match unsafe { link.load(Ordering::Relaxed).as_ref() } {
                Some(node) if node.entry.key() != key => link = &node.next,
                _ => return link,
            }
        }
    }

    /// Puts an entry in the place of the one of an equal key, of which `leave` is told under the lock.
    fn exchange<'g, R>(
        &'g self,
        entry: E,
        guard: &'g Guard,
        leave: impl FnOnce(&E) -> R,
    ) -> (&'g E, Option<R>) {
        let chain = self.chain_of(entry.key());
        let _locked = self.locks[chain % LOCKS].lock();
        let link = self.link(chain, entry.key());
        let old = link.load(Ordering::Relaxed);
        // SAFETY: linked, under the lock.
        let next = unsafe { old.as_ref() };
        let next = next.map_or(null_mut(), |old| old.next.load(Ordering::Relaxed));
        let node = Box::into_raw(Box::new(Node { next: Link::new(next), entry }));
        // release pairs with the acquires in `get`.
        link.store(node, Ordering::Release);
        // SAFETY: whoever takes it out from now on frees it when all have left who are pinned, as this guard is.
        let entry = unsafe { &(*node).entry };
        if old.is_null() {
            self.len.fetch_add(1, Ordering::Relaxed);
            return (entry, None);
        }
        // SAFETY: it was linked, and is freed when all have left who are pinned.
        let left = leave(unsafe { &(*old).entry });
        // SAFETY: from a box, unlinked under the lock, and so once. Entries are `Send`.
        unsafe { guard.retire_box(old) };
        (entry, Some(left))
    }

    /// Takes the entry of this key out.
    fn discard(&self, key: &Key<N>) {
        // First, and so dropped last: what is freed then runs under no lock.
        let guard = epochs::pin();
        let chain = self.chain_of(key);
        let _locked = self.locks[chain % LOCKS].lock();
        let link = self.link(chain, key);
        let old = link.load(Ordering::Relaxed);
        // SAFETY: linked, under the lock.
        let Some(node) = (unsafe { old.as_ref() }) else { return };
        // release pairs with the acquires in `get`.
        link.store(node.next.load(Ordering::Relaxed), Ordering::Release);
        self.len.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: as in `exchange`.
        unsafe { guard.retire_box(old) };
    }
}

impl<const N: usize, E: Keyed<N>> Drop for Chaining<N, E> {
    fn drop(&mut self) {
        for chain in &mut self.chains {
            let mut next = std::mem::take(chain.get_mut());
            while !next.is_null() {
                // SAFETY: `&mut self`: nobody reads, and each node is linked once. From a box.
                let node = *unsafe { Box::from_raw(next) };
                next = node.next.into_inner();
            }
        }
    }
}

impl<const N: usize, E: Keyed<N>> Make for Chaining<N, E> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Chaining::new(records))
    }
}

// SAFETY: a node is freed, and its record with it, after all have left who were pinned when it was unlinked; and with
// the table.
unsafe impl<const N: usize, V: Send + Sync + 'static> Records<N> for Chaining<N, Record<N, V>> {
    type Value = V;
    const BATCHES: bool = true;

    #[inline(always)]
    fn record<'g>(&'g self, key: &Key<N>, guard: &'g Guard) -> Option<&'g Record<N, V>> {
        self.get(key, guard)
    }

    #[inline(always)]
    fn records<'g>(
        &'g self,
        keys: &[&Key<N>],
        guard: &'g Guard,
        found: impl FnMut(usize, Option<&'g Record<N, V>>),
    ) {
        self.get_many(keys, guard, found);
    }

    fn put_record<'g>(&'g self, record: Record<N, V>, guard: &'g Guard) -> &'g Record<N, V> {
        self.exchange(record, guard, |_| ()).0
    }

    fn discard_record(&self, key: &Key<N>) {
        self.discard(key);
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Chaining<N, Handled<N>> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.get(key, &epochs::pin())?.found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Chaining<N, Handled<N>> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        self.exchange(handle, &epochs::pin(), Handled::clone).1
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}
