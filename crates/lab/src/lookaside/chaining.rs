//! A plain concurrent chaining hash table: the one behind the paper's Figures 8b to 11 and 15.
//!
//! An array of chains, as many as there are records, rounded up to a power of two: "the chain on each hash bucket has only one
//! entry on average" (section 4.2.2). Readers take no lock: they walk nodes that stay readable while an epoch is pinned.
//! Writers lock one of [`LOCKS`] stripes. A value changes by a new node in the old one's place, so that a reader finds the
//! one or the other. What a writer takes out is dropped with its node, after all readers that were pinned then have left.
//!
//! Alone, a node is the record itself, as in C++'s `unordered_map`: two dependent misses a lookup. Behind a map, a node holds
//! a handle of the record.
//!
//! The table does not grow: the paper's is sized beforehand too.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam_epoch::{Atomic, Guard, Owned, Shared};
use crossbeam_utils::CachePadded;
use lookaside::index::{Find, SharedDiscard, SharedStore};
use lookaside::{Found, Handle, Pin};
use parking_lot::Mutex;
use twox_hash::XxHash3_64;

use super::contestant::{Alone, Make, Request, get_each_pinned, perform_pinned};
use super::record::{Key, Tally, Value};

/// Stripes of locks for writers.
const LOCKS: usize = 1024;

/// What a node holds.
pub(crate) trait Keyed<const N: usize>: Send + Sync + 'static {
    /// Its key.
    fn key(&self) -> &Key<N>;
}

impl<const N: usize> Keyed<N> for Handle<Key<N>, Value> {
    #[inline(always)]
    fn key(&self) -> &Key<N> {
        Handle::key(self)
    }
}

impl<const N: usize> Keyed<N> for (Key<N>, Value) {
    #[inline(always)]
    fn key(&self) -> &Key<N> {
        &self.0
    }
}

struct Node<E> {
    next: Atomic<Node<E>>,
    entry: E,
}

/// The table.
pub(crate) struct Chaining<const N: usize, E: Keyed<N>> {
    chains: Box<[Atomic<Node<E>>]>,
    locks: Box<[CachePadded<Mutex<()>>]>,
    len: AtomicUsize,
}

impl<const N: usize, E: Keyed<N>> Chaining<N, E> {
    /// A table of at least `records` chains.
    #[must_use]
    pub(crate) fn new(records: usize) -> Self {
        Chaining {
            chains: (0..records.max(1).next_power_of_two()).map(|_| Atomic::null()).collect(),
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
        // acquire pairs with the releases in `exchange` and `unlink`: a node is seen as it was made.
        let mut node = self.chains[self.chain_of(key)].load(Ordering::Acquire, guard);
        // SAFETY: nodes are freed only after all epochs that were pinned when they were unlinked have been left.
        while let Some(now) = unsafe { node.as_ref() } {
            if now.entry.key() == key {
                return Some(&now.entry);
            }
            // pairs as above.
            node = now.next.load(Ordering::Acquire, guard);
        }
        None
    }

    /// The link that leads to the node of this key, or the last one. The chain is locked.
    fn link<'g>(&'g self, chain: usize, key: &Key<N>, guard: &'g Guard) -> &'g Atomic<Node<E>> {
        let mut link = &self.chains[chain];
        loop {
            // Relaxed: written under the lock that is held.
            // SAFETY: linked, and nobody unlinks it under the lock.
            match unsafe { link.load(Ordering::Relaxed, guard).as_ref() } {
                Some(node) if node.entry.key() != key => link = &node.next,
                _ => return link,
            }
        }
    }

    /// Puts an entry in the place of the one of an equal key, which `take_leave` sees once more.
    fn exchange<R>(&self, entry: E, take_leave: impl FnOnce(&E) -> R) -> Option<R> {
        let guard = crossbeam_epoch::pin();
        let chain = self.chain_of(entry.key());
        let _locked = self.locks[chain % LOCKS].lock();
        let link = self.link(chain, entry.key(), &guard);
        let old = link.load(Ordering::Relaxed, &guard);
        // SAFETY: linked, under the lock.
        let known = unsafe { old.as_ref() };
        let next = known.map_or(Shared::null(), |old| old.next.load(Ordering::Relaxed, &guard));
        // release pairs with the acquires in `get`.
        link.store(Owned::new(Node { next: Atomic::from(next), entry }), Ordering::Release);
        let Some(known) = known else {
            self.len.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let left = take_leave(&known.entry);
        // SAFETY: unlinked, under the lock: nobody finds it any more, and nobody else lets it go.
        unsafe { guard.defer_destroy(old) };
        Some(left)
    }

    /// Takes the entry of this key out, which `take_leave` sees once more.
    fn unlink<R>(&self, key: &Key<N>, take_leave: impl FnOnce(&E) -> R) -> Option<R> {
        let guard = crossbeam_epoch::pin();
        let chain = self.chain_of(key);
        let _locked = self.locks[chain % LOCKS].lock();
        let link = self.link(chain, key, &guard);
        let old = link.load(Ordering::Relaxed, &guard);
        // SAFETY: linked, under the lock.
        let known = unsafe { old.as_ref() }?;
        // release pairs with the acquires in `get`.
        link.store(known.next.load(Ordering::Relaxed, &guard), Ordering::Release);
        self.len.fetch_sub(1, Ordering::Relaxed);
        let left = take_leave(&known.entry);
        // SAFETY: unlinked, under the lock: nobody finds it any more, and nobody else lets it go.
        unsafe { guard.defer_destroy(old) };
        Some(left)
    }

    /// Puts an entry in, and says whether it replaced another.
    pub(crate) fn put(&self, entry: E) -> bool {
        self.exchange(entry, |_| ()).is_some()
    }

    /// Takes the entry of this key out, and says whether there was one.
    pub(crate) fn discard(&self, key: &Key<N>) -> bool {
        self.unlink(key, |_| ()).is_some()
    }

    /// Puts an entry in, and gives back the one of an equal key.
    pub(crate) fn replace(&self, entry: E) -> Option<E>
    where
        E: Clone,
    {
        self.exchange(entry, E::clone)
    }

    /// Takes the entry of this key out, and gives it back.
    pub(crate) fn remove(&self, key: &Key<N>) -> Option<E>
    where
        E: Clone,
    {
        self.unlink(key, E::clone)
    }
}

impl<const N: usize, E: Keyed<N>> Drop for Chaining<N, E> {
    fn drop(&mut self) {
        for chain in &mut self.chains {
            let mut next = std::mem::replace(chain, Atomic::null());
            // SAFETY: `&mut self`: nobody reads, and each node is linked once.
            while let Some(node) = unsafe { next.try_into_owned() } {
                next = node.into_box().next;
            }
        }
    }
}

impl<const N: usize, E: Keyed<N>> Make for Chaining<N, E> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Chaining::new(records))
    }
}

impl<const N: usize> Alone<N> for Chaining<N, (Key<N>, Value)> {
    const SHARES_WRITES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        get_each_pinned(keys, |key, guard| self.get(key, guard).map(|record| record.1.read()))
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let get = |key: &Key<N>, guard: &Guard| self.get(key, guard).map(|record| record.1.read());
        perform_pinned(requests, get, |request| {
            self.put((request.key, Value::of(request.record)));
        })
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Chaining<N, Handle<Key<N>, Value>> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.get(key, &crossbeam_epoch::pin())?.found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Chaining<N, Handle<Key<N>, Value>> {
    fn replace(&self, handle: Handle<Key<N>, Value>) -> Option<Handle<Key<N>, Value>> {
        Chaining::replace(self, handle)
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for Chaining<N, Handle<Key<N>, Value>> {
    fn remove(&self, key: &Key<N>) -> Option<Handle<Key<N>, Value>> {
        Chaining::remove(self, key)
    }
}
