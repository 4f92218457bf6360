//! Ordered indexes for many threads: scc's B+-tree and crossbeam's skip list.
//!
//! Both keep keys beside what they map to. Alone, values are boxed (shared, in the tree, which copies them when a leaf
//! splits), and a thread pins once for millions of lookups.
//!
//! The skip list's `insert` of a key that is there takes the old entry out first, so that a reader may find neither.
//! Behind a map an entry therefore holds a `HandleCell`, and a replacement exchanges the handle in it.

use crossbeam_skiplist::SkipMap;
use lab::lookaside::indexes::{ConcurrentMap, Handled};
use lab::lookaside::{Key, Make, Value};
use lab::measure::epochs;
use lookaside::index::{Find, SharedStore};
use lookaside::{Found, Pin};
use scc::{Guard, TreeIndex};

use super::handle_cell::HandleCell;

/// scc's tree.
pub(super) struct Tree<K: 'static, T: 'static>(TreeIndex<K, T>);

impl<K, T> ConcurrentMap<K, T> for Tree<K, T>
where
    K: Clone + Ord + Send + Sync + 'static,
    T: Clone + Send + Sync + 'static,
{
    const SUCCESSION: bool = true;

    /// There always, but while it is refreshed: two at once would keep what the first keeps.
    type Guard<'m> = Option<Guard>;

    fn with_capacity(_records: usize) -> Self {
        Tree(TreeIndex::new())
    }

    #[inline(always)]
    fn guard(&self) -> Self::Guard<'_> {
        Some(Guard::new())
    }

    fn refresh<'m>(&'m self, guard: &mut Self::Guard<'m>) {
        *guard = None;
        *guard = Some(Guard::new());
    }

    #[inline(always)]
    fn look<R>(&self, key: &K, guard: &Self::Guard<'_>, see: impl FnOnce(&T) -> R) -> Option<R> {
        self.0.peek(key, guard.as_ref()?).map(see)
    }

    #[inline(always)]
    fn put(&self, key: K, new: T, _guard: &Self::Guard<'_>) {
        self.0.upsert_sync(key, new);
    }

    fn exchange(&self, key: K, new: T) -> Option<T> {
        let old = self.0.peek_with(&key, |_, old| old.clone());
        self.0.upsert_sync(key, new);
        old
    }

    fn keys(&self) -> usize {
        self.0.len()
    }
}

/// A look of crossbeam-epoch frees eight bags of up to 64 things: so many free twice what all requests retire, two
/// things each.
const LOOKS: usize = 2 * 2 * epochs::REQUESTS / (8 * 64);

/// crossbeam's skip list alone.
pub(super) struct SkipListAlone<const N: usize>(SkipMap<Key<N>, Box<Value>>);

impl<const N: usize> ConcurrentMap<Key<N>, Box<Value>> for SkipListAlone<N> {
    /// The list pins the same epoch in every call, which is cheap where it is pinned already.
    type Guard<'m> = crossbeam_epoch::Guard;

    fn with_capacity(_records: usize) -> Self {
        SkipListAlone(SkipMap::new())
    }

    fn guard(&self) -> Self::Guard<'_> {
        crossbeam_epoch::pin()
    }

    fn refresh<'m>(&'m self, guard: &mut Self::Guard<'m>) {
        guard.repin();
        // It frees nothing while a thread stays pinned.
        (0..LOOKS).for_each(|_| guard.flush());
    }

    #[inline(always)]
    fn look<R>(
        &self,
        key: &Key<N>,
        _guard: &Self::Guard<'_>,
        see: impl FnOnce(&Box<Value>) -> R,
    ) -> Option<R> {
        self.0.get(key).map(|entry| see(entry.value()))
    }

    #[inline(always)]
    fn put(&self, key: Key<N>, new: Box<Value>, _guard: &Self::Guard<'_>) {
        self.0.insert(key, new);
    }

    fn exchange(&self, _key: Key<N>, _new: Box<Value>) -> Option<Box<Value>> {
        unreachable!("alone, nobody asks for what was there")
    }

    fn keys(&self) -> usize {
        self.0.len()
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
            Some(entry) => Some(entry.value().replace(handle)),
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
