//! A lock by which threads share an index that is for one owner: whoever searches shares it, whoever changes the index
//! has it alone.
//!
//! It wraps parking_lot's, biased towards who searches ([`Bias`]): where nobody has changed the index for a while, a
//! search writes to no line of other threads, nor does it wait for its loads to end before it begins. The standard
//! library's will not do: a thread that has it shared may come to have it shared once more, by the comparison of keys,
//! though a writer waits meanwhile.
//!
//! Walks and scans take the lock as ever, for what they call may take long.

#![allow(unsafe_code)]

use std::ops::{Bound, ControlFlow, Deref, DerefMut};

use atomics::{Bias, Hold, Reading, Within, held};
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
pub struct RwLock<I> {
    lock: parking_lot::RwLock<I>,
    bias: Bias,
}

impl<I> RwLock<I> {
    /// A lock around this.
    #[must_use]
    pub const fn new(index: I) -> RwLock<I> {
        RwLock { lock: parking_lot::const_rwlock(index), bias: Bias::new() }
    }

    /// What it is around, for who has it alone.
    pub fn get_mut(&mut self) -> &mut I {
        self.lock.get_mut()
    }

    /// What it was around.
    #[must_use]
    pub fn into_inner(self) -> I {
        self.lock.into_inner()
    }

    /// What it is around, shared with others who read, until what is returned is dropped. Waits for who writes.
    pub fn read(&self) -> impl Deref<Target = I> {
        self.lock.read()
    }

    /// As [`RwLock::read`], if that need not wait: for nobody who writes, nor for who waits to write.
    pub fn try_read(&self) -> Option<impl Deref<Target = I>> {
        self.lock.try_read()
    }

    /// What it is around, for this thread alone, until what is returned is dropped. Waits for all others.
    ///
    /// # Panics
    /// If this thread is searching the index: it would wait for itself. Or if the system refuses `membarrier` to a
    /// process that had it: by a filter of system calls that came into force later, and does not allow it. A map's
    /// changes panic then as well, before anything is changed.
    pub fn write(&self) -> impl DerefMut<Target = I> {
        let guard = self.lock.write();
        revoke(self);
        guard
    }
}

/// An index that a thread has shared with others who read.
struct Shared<'l, I> {
    lock: &'l RwLock<I>,
    _by: By<'l, I>,
    _within: Within,
}

/// By what nobody changes an index meanwhile.
enum By<'l, I> {
    /// The lock is biased, and a writer waits for this to go.
    Reading { _reading: Reading<'l> },
    /// The lock.
    Lock { _guard: RwLockReadGuard<'l, I> },
    /// What this thread has already, further up its stack.
    Outer,
}

impl<I> Deref for Shared<'_, I> {
    type Target = I;

    #[inline(always)]
    fn deref(&self) -> &I {
        // SAFETY: nobody has the index alone until this is dropped. By its slot or the lock: whoever changes the index
        // has the lock and has revoked its bias, behind which all slots were empty (`Bias`). By what this thread has
        // further up its stack: that is one of the two, and is dropped later.
        unsafe { &*self.lock.lock.data_ptr() }
    }
}

/// An index, to be searched.
///
/// # Panics
/// As [`shared`].
#[inline(always)]
fn searched<I>(lock: &RwLock<I>) -> Shared<'_, I> {
    match lock.bias.enter() {
        Some(reading) => Shared {
            lock,
            _by: By::Reading { _reading: reading },
            _within: Within::enter(lock, Hold::Shared),
        },
        None => shared(lock),
    }
}

/// An index by its lock, shared: also by a thread that has it so already, for its key's order may look into the map.
///
/// # Panics
/// If this thread is changing the index: it would wait for itself.
#[inline]
fn shared<I>(lock: &RwLock<I>) -> Shared<'_, I> {
    let by = match lock.lock.try_read() {
        Some(guard) => {
            lock.bias.count_shared();
            By::Lock { _guard: guard }
        }
        None => shared_in_time(lock),
    };
    Shared { lock, _by: by, _within: Within::enter(lock, Hold::Shared) }
}

#[cold]
fn shared_in_time<I>(lock: &RwLock<I>) -> By<'_, I> {
    match held(lock) {
        None => By::Lock { _guard: lock.lock.read() },
        // Not behind a writer who waits for this thread: for the lock, if that is how it has the index, or for its
        // slot.
        Some(Hold::Shared) => match lock.lock.try_read_recursive() {
            Some(guard) => By::Lock { _guard: guard },
            None => By::Outer,
        },
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
    let guard = lock.lock.try_write().unwrap_or_else(|| exclusive_in_time(lock));
    revoke(lock);
    (guard, Within::enter(lock, Hold::Exclusive))
}

#[cold]
fn exclusive_in_time<I>(lock: &RwLock<I>) -> RwLockWriteGuard<'_, I> {
    assert_unheld(lock);
    lock.lock.write()
}

/// By who has the lock alone: waits for those who search without it.
#[inline]
fn revoke<I>(lock: &RwLock<I>) {
    if lock.bias.is_set() {
        assert_unheld(lock);
    }
    lock.bias.revoke();
}

fn assert_unheld<I>(lock: &RwLock<I>) {
    assert!(
        held(lock).is_none(),
        "a map was changed while its own index was being walked or its keys compared, by what that calls: \
         collect the keys first, and change the map then"
    );
}

impl<Q: ?Sized, K: 'static, V: 'static, I: Find<Q, K, V>> Find<Q, K, V> for RwLock<I> {
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        searched(self).find(key, pin)
    }

    #[inline]
    fn find_many<'p>(&self, keys: &[&Q], pin: &Pin<'p>, found: impl FnMut(usize, Option<Found<'p, K, V>>)) {
        searched(self).find_many(keys, pin, found);
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
        shared(self).len()
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
        shared(self).scan(from, to, pin, visit);
    }
}

impl<K: 'static, V: 'static, I: Walk<K, V>> Walk<K, V> for RwLock<I> {
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        shared(self).walk(pin, visit);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;
    use crate::{Config, Map};

    /// A biased one.
    fn biased() -> RwLock<u64> {
        let lock = RwLock::new(7);
        while !lock.bias.is_set() {
            assert_eq!(*shared(&lock), 7);
        }
        lock
    }

    /// Waits until another thread has revoked the bias, and so has the lock.
    fn wait_for_a_writer(lock: &RwLock<u64>) {
        while lock.bias.is_set() {
            thread::yield_now();
        }
    }

    #[test]
    fn who_searches_does_not_take_the_lock() {
        let lock = biased();
        let searched = searched(&lock);
        assert!(lock.lock.try_write().is_some());
        assert_eq!(*searched, 7);
    }

    #[test]
    fn a_search_within_a_search_goes_on_while_a_writer_waits() {
        let lock = biased();
        thread::scope(|scope| {
            let outer = searched(&lock);
            let writer = scope.spawn(|| *exclusive(&lock).0 == 7);
            wait_for_a_writer(&lock);
            assert!(matches!(searched(&lock)._by, By::Outer));
            assert!(matches!(shared(&lock)._by, By::Outer));
            assert!(!writer.is_finished() && *outer == 7);
            drop(outer);
            assert!(writer.join().expect("it does not panic"));
        });
        assert!(matches!(searched(&lock)._by, By::Lock { .. }), "somebody has written");
    }

    #[test]
    fn a_scan_within_a_search_holds_a_writer_back_and_a_search_within_a_scan_does() {
        let lock = biased();
        let outer = searched(&lock);
        let inner = shared(&lock);
        assert!(matches!(inner._by, By::Lock { .. }) && lock.lock.try_write().is_none());
        drop(inner);
        drop(outer);
        let outer = shared(&lock);
        let inner = searched(&lock);
        assert!(matches!(inner._by, By::Reading { .. }) && lock.lock.try_write().is_none());
        drop(inner);
        drop(outer);
        assert!(lock.lock.try_write().is_some());
    }

    #[test]
    fn who_would_wait_for_himself_is_told() {
        let lock = biased();
        let told = |call: &dyn Fn()| catch_unwind(AssertUnwindSafe(call)).is_err();
        let outer = searched(&lock);
        assert!(told(&|| drop(exclusive(&lock))) && told(&|| drop(lock.write())));
        drop(outer);
        assert!(lock.bias.is_set(), "nothing was written");
        let outer = exclusive(&lock);
        assert!(told(&|| drop(searched(&lock))) && told(&|| drop(shared(&lock))));
        assert!(told(&|| drop(exclusive(&lock))));
        drop(outer);
        assert_eq!(*searched(&lock), 7);
        assert_eq!(*exclusive(&lock).0, 7);
    }

    /// The lock is biased between two writes: what was written is found from then on.
    #[test]
    fn what_was_written_is_found_by_those_who_do_not_take_the_lock() {
        const KEYS: u64 = 60;
        // Enough for the lock to be biased, and to be used so.
        const LOOKUPS: u64 = 3_000;
        let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(64)).expect("a table");
        let (written, looked_up) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            let readers = [0, 1].map(|thread| {
                let (map, written, looked_up) = (&map, &written, &looked_up);
                scope.spawn(move || {
                    let mut reader = map.pin();
                    for number in thread.. {
                        let all = written.load(Ordering::Acquire);
                        if all == KEYS {
                            break;
                        }
                        let key = number * 7 % KEYS;
                        assert!(key >= all || reader.get(&key) == Some(&key), "{key} of {all} is not found");
                        looked_up.fetch_add(1, Ordering::Relaxed);
                        if number % 64 == 0 {
                            reader.refresh();
                        }
                    }
                })
            });
            for key in 0..KEYS {
                map.insert(key, key);
                written.store(key + 1, Ordering::Release);
                let enough = looked_up.load(Ordering::Relaxed) + LOOKUPS;
                let goes_on = || key + 1 < KEYS && readers.iter().all(|reader| !reader.is_finished());
                while looked_up.load(Ordering::Relaxed) < enough && goes_on() {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(map.len() as u64, KEYS);
    }
}
