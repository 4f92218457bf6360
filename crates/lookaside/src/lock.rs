//! A lock by which threads share an index that is for one owner: whoever searches shares it, whoever changes the index
//! has it alone.
//!
//! It wraps parking_lot's. The standard library's will not do: a thread that has it shared may come to have it shared
//! once more, by the comparison of keys, though a writer waits meanwhile.

use std::ops::{Bound, ControlFlow, Deref, DerefMut};

use atomics::{Hold, Within, held};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};

use crate::entry::{Found, Handle, Pin};
use crate::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store, Walk};

/// An index that one thread at a time may change, for a map that threads share: see [`crate::index`].
///
/// ```
/// use lookaside::{Config, Map, RwLock};
/// use std::collections::BTreeSet;
///
/// let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(1 << 20))?;
/// map.insert(1, 2);
/// # Ok::<(), lookaside::CreateError>(())
/// ```
#[derive(Debug, Default)]
pub struct RwLock<I>(parking_lot::RwLock<I>);

impl<I> RwLock<I> {
    /// A lock around this.
    #[must_use]
    pub const fn new(index: I) -> RwLock<I> {
        RwLock(parking_lot::const_rwlock(index))
    }

    /// What it is around, for who has it alone.
    pub fn get_mut(&mut self) -> &mut I {
        self.0.get_mut()
    }

    /// What it was around.
    #[must_use]
    pub fn into_inner(self) -> I {
        self.0.into_inner()
    }

    /// What it is around, shared with others who read, until what is returned is dropped. Waits for who writes.
    pub fn read(&self) -> impl Deref<Target = I> {
        self.0.read()
    }

    /// As [`RwLock::read`], if that need not wait: for nobody who writes, nor for who waits to write.
    pub fn try_read(&self) -> Option<impl Deref<Target = I>> {
        self.0.try_read()
    }

    /// What it is around, for this thread alone, until what is returned is dropped. Waits for all others.
    pub fn write(&self) -> impl DerefMut<Target = I> {
        self.0.write()
    }
}

/// The lock of an index, shared: also by a thread that has it so already, for its key's order may look into the map.
///
/// # Panics
/// If this thread is changing the index: it would wait for itself.
#[inline]
fn shared<I>(lock: &RwLock<I>) -> (RwLockReadGuard<'_, I>, Within) {
    let guard = lock.0.try_read().unwrap_or_else(|| shared_in_time(lock));
    (guard, Within::enter(lock, Hold::Shared))
}

#[cold]
fn shared_in_time<I>(lock: &RwLock<I>) -> RwLockReadGuard<'_, I> {
    match held(lock) {
        None => lock.0.read(),
        // Not behind a writer who waits for this thread.
        Some(Hold::Shared) => lock.0.read_recursive(),
        Some(Hold::Exclusive) => {
            panic!(
                "a map was used by the comparison of its own keys while its index was changed: it must not be"
            )
        }
    }
}

/// The lock of an index, for a change.
///
/// # Panics
/// If this thread is searching or changing the index: it would wait for itself.
#[inline]
fn exclusive<I>(lock: &RwLock<I>) -> (RwLockWriteGuard<'_, I>, Within) {
    let guard = lock.0.try_write().unwrap_or_else(|| exclusive_in_time(lock));
    (guard, Within::enter(lock, Hold::Exclusive))
}

#[cold]
fn exclusive_in_time<I>(lock: &RwLock<I>) -> RwLockWriteGuard<'_, I> {
    assert!(
        held(lock).is_none(),
        "a map was changed while its own index was being walked or its keys compared, by what that calls: \
         collect the keys first, and change the map then"
    );
    lock.0.write()
}

impl<Q: ?Sized, K: 'static, V: 'static, I: Find<Q, K, V>> Find<Q, K, V> for RwLock<I> {
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        shared(self).0.find(key, pin)
    }

    #[inline]
    fn find_many<'p>(&self, keys: &[&Q], pin: &Pin<'p>, found: impl FnMut(usize, Option<Found<'p, K, V>>)) {
        shared(self).0.find_many(keys, pin, found);
    }
}

impl<K: 'static, V: 'static, I: Store<K, V>> SharedStore<K, V> for RwLock<I> {
    const SUCCESSION: bool = I::SUCCESSION;

    fn replace(&self, handle: Handle<K, V>) -> Option<Handle<K, V>> {
        exclusive(self).0.replace(handle)
    }

    fn arrange(entries: &mut Vec<(K, V)>) {
        I::arrange(entries);
    }

    fn load(&self, handles: Vec<Handle<K, V>>) {
        exclusive(self).0.load(handles);
    }

    fn len(&self) -> usize {
        shared(self).0.len()
    }
}

impl<Q: ?Sized, K: 'static, V: 'static, I: Discard<Q, K, V>> SharedDiscard<Q, K, V> for RwLock<I> {
    fn remove(&self, key: &Q) -> Option<Handle<K, V>> {
        exclusive(self).0.remove(key)
    }
}

impl<Q: ?Sized, K: 'static, V: 'static, I: Scan<Q, K, V>> Scan<Q, K, V> for RwLock<I> {
    fn scan<'p>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
    ) {
        shared(self).0.scan(from, to, pin, visit);
    }
}

impl<K: 'static, V: 'static, I: Walk<K, V>> Walk<K, V> for RwLock<I> {
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        shared(self).0.walk(pin, visit);
    }
}
