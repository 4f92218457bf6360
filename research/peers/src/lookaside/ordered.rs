//! Ordered indexes for many threads: scc's B+-tree and crossbeam's skip list.
//!
//! Both keep keys beside what they map to. Alone, values are boxed (shared, in the tree, which copies them when a leaf
//! splits), and a thread pins once for millions of lookups.
//!
//! The skip list's `insert` of a key that is there takes the old entry out first, so that a reader may find neither.
//! Behind a map an entry therefore holds a `HandleCell`, and a replacement exchanges the handle in it.

use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

use crossbeam_skiplist::SkipMap;
use lab::lookaside::{Alone, Key, Make, Request, Tally, Value};
use lab::measure::epochs;
use lookaside::index::{Find, Scan, SharedDiscard, SharedStore, is_empty_range};
use lookaside::{Found, Pin};
use scc::{Guard, TreeIndex};

use super::Handled;
use super::handle_cell::HandleCell;

/// scc's tree alone.
pub(super) struct TreeAlone<const N: usize>(TreeIndex<Key<N>, Arc<Value>>);

impl<const N: usize> Make for TreeAlone<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(TreeAlone(TreeIndex::new()))
    }
}

impl<const N: usize> Alone<N> for TreeAlone<N> {
    const SHARES_WRITES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        let guard = Guard::new();
        let mut tally = Tally::default();
        keys.iter().for_each(|key| tally.count(self.0.peek(key, &guard).map(|value| value.read())));
        tally
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let mut tally = Tally::default();
        for requests in requests.chunks(epochs::REQUESTS) {
            let guard = Guard::new();
            for request in requests {
                if request.set {
                    self.0.upsert_sync(request.key, Arc::new(Value::of(request.record)));
                } else {
                    tally.count(self.0.peek(&request.key, &guard).map(|value| value.read()));
                }
            }
        }
        tally
    }
}

/// scc's tree of handles.
pub(super) struct Tree<const N: usize>(TreeIndex<Key<N>, Handled<N>>);

impl<const N: usize> Make for Tree<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(Tree(TreeIndex::new()))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Tree<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.peek(key, &Guard::new())?.found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Tree<N> {
    const SUCCESSION: bool = true;

    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        let key = *handle.key();
        let old = self.0.peek_with(&key, |_, old| old.clone());
        self.0.upsert_sync(key, handle);
        old
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for Tree<N> {
    fn remove(&self, key: &Key<N>) -> Option<Handled<N>> {
        let old = self.0.peek_with(key, |_, old| old.clone());
        self.0.remove_sync(key).then_some(old)?
    }
}

impl<const N: usize> Scan<Key<N>, Key<N>, Value> for Tree<N> {
    fn scan<'p>(
        &self,
        from: Bound<&Key<N>>,
        to: Bound<&Key<N>>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, Key<N>, Value>) -> ControlFlow<()>,
    ) {
        if is_empty_range(&from, &to) {
            return;
        }
        let guard = Guard::new();
        let range = self.0.range::<Key<N>, _>((from, to), &guard);
        let _ = range.filter_map(|(_, handle)| handle.found(pin)).try_for_each(visit);
    }
}

/// A look of crossbeam-epoch frees eight bags of up to 64 things: so many free twice what all requests retire, two
/// things each.
const LOOKS: usize = 2 * 2 * epochs::REQUESTS / (8 * 64);

/// crossbeam's skip list alone.
pub(super) struct SkipListAlone<const N: usize>(SkipMap<Key<N>, Box<Value>>);

impl<const N: usize> Make for SkipListAlone<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(SkipListAlone(SkipMap::new()))
    }
}

impl<const N: usize> Alone<N> for SkipListAlone<N> {
    const SHARES_WRITES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        // The list pins the same epoch in every call, which is cheap where it is pinned already.
        let _pinned = crossbeam_epoch::pin();
        let mut tally = Tally::default();
        keys.iter().for_each(|key| tally.count(self.0.get(key).map(|entry| entry.value().read())));
        tally
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let mut pinned = crossbeam_epoch::pin();
        let mut tally = Tally::default();
        for requests in requests.chunks(epochs::REQUESTS) {
            for request in requests {
                if request.set {
                    self.0.insert(request.key, Box::new(Value::of(request.record)));
                } else {
                    tally.count(self.0.get(&request.key).map(|entry| entry.value().read()));
                }
            }
            pinned.repin();
            // It frees nothing while a thread stays pinned.
            (0..LOOKS).for_each(|_| pinned.flush());
        }
        tally
    }
}

/// crossbeam's skip list of handles.
pub(super) struct SkipList<const N: usize>(SkipMap<Key<N>, HandleCell<Key<N>, Value>>);

impl<const N: usize> Make for SkipList<N> {
    fn make(_records: usize) -> Result<Self, String> {
        Ok(SkipList(SkipMap::new()))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for SkipList<N> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.get(key)?.value().found(pin)
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for SkipList<N> {
    const SUCCESSION: bool = true;

    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        match self.0.get(handle.key()) {
            Some(entry) => entry.value().replace(handle),
            None => {
                self.0.insert(*handle.key(), HandleCell::new(handle));
                None
            }
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for SkipList<N> {
    fn remove(&self, key: &Key<N>) -> Option<Handled<N>> {
        self.0.remove(key)?.value().take()
    }
}

impl<const N: usize> Scan<Key<N>, Key<N>, Value> for SkipList<N> {
    fn scan<'p>(
        &self,
        from: Bound<&Key<N>>,
        to: Bound<&Key<N>>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, Key<N>, Value>) -> ControlFlow<()>,
    ) {
        if is_empty_range(&from, &to) {
            return;
        }
        // Not the list's `range`: as of 0.1.3 it keeps a count of each entry that it has left, which so is never freed.
        let first = self.0.lower_bound(from);
        let entries = std::iter::successors(first, |entry| entry.next());
        let within = entries.take_while(|entry| (Bound::Unbounded, to).contains(entry.key()));
        let _ = within.filter_map(|entry| entry.value().found(pin)).try_for_each(visit);
    }
}
