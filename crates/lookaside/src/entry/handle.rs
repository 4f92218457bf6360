//! What an index stores: a share in an entry. Here entries are made, counted and freed: see [`crate::entry`].

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use atomics::reclaim::{Guard, free_in_turn, quietly};

use super::found::{Entry, Found};
use super::kept::{self, Fate};
use super::place::Place;
use super::reclaim::{Dead, Free, Reclaimer};
use super::slab::Cut;
use super::word::Word;
use crate::pointer::Pointer;

/// An index's share in an entry: what it stores. It compares, orders and hashes as its key does.
pub struct Handle<K: 'static, V: 'static>(pub(super) NonNull<Entry<K, V>>);

// SAFETY: a counted share in a key and a value, both of which may be read and dropped by any thread.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for Handle<K, V> {}
// SAFETY: as above.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Handle<K, V> {}

/// What a map has of its entries. Invariant in their types, as if it changed them in place: whoever saw a map as one of
/// subtypes or supertypes could have the index's entries of those put into a table that others read as they know it.
///
/// ```compile_fail
/// use lookaside::Map;
///
/// type Any = for<'a> fn(&'a str);
/// type Static = fn(&'static str);
/// // An index that has nothing to do with the types of the entries.
/// fn narrowed<'m>(map: &'m Map<u64, Any, ()>) -> &'m Map<u64, Static, ()> {
///     map
/// }
/// ```
pub(crate) type Entries<K, V> = PhantomData<(Handle<K, V>, fn(K, V) -> (K, V))>;

/// Whoever has one knows that entries that can be found now stay where they are while it lives.
#[derive(Debug, Clone, Copy)]
pub struct Pin<'p> {
    reclaimer: *const Reclaimer,
    life: PhantomData<&'p Reclaimer>,
}

impl<'p> Pin<'p> {
    /// # Safety
    /// For `'p`, nothing retired to `reclaimer` from now on is freed.
    #[inline(always)]
    pub(crate) unsafe fn new(reclaimer: &Arc<Reclaimer>) -> Pin<'p> {
        Pin { reclaimer: Arc::as_ptr(reclaimer), life: PhantomData }
    }
}

impl<K: 'static, V: 'static> Handle<K, V> {
    pub(super) fn entry(&self) -> &Entry<K, V> {
        // SAFETY: counted: it lives at least as long as this handle.
        unsafe { self.0.as_ref() }
    }

    /// The entry's key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.entry().key
    }

    /// The entry's value, as it was put into the index. Where the index lets entries be succeeded
    /// ([`Store::SUCCESSION`](crate::index::Store::SUCCESSION)), the key may have another by now: [`Handle::found`] has
    /// it.
    #[must_use]
    pub fn value(&self) -> &V {
        &self.entry().value
    }

    /// The entry as an answer to a search under this pin; `None` if it is another map's.
    #[must_use]
    pub fn found<'p>(&self, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        if !self.is_of(pin.reclaimer) {
            return None;
        }
        // It is alive now, and if it dies, then to a reclaimer that frees nothing for 'p. The same goes for its
        // successor.
        let entry = if self.entry().is_succeeded() { self.newest() } else { self.0 };
        Some(Found { entry, life: PhantomData })
    }

    /// Its entry's successor, or its entry.
    #[inline(always)]
    fn newest(&self) -> NonNull<Entry<K, V>> {
        let successor = self.entry().place.successor();
        successor
            .and_then(|address| NonNull::new(std::ptr::with_exposed_provenance_mut(address)))
            .unwrap_or(self.0)
    }

    /// Whether the entry is of the map of this reclaimer.
    #[inline(always)]
    pub(super) fn is_of(&self, reclaimer: *const Reclaimer) -> bool {
        std::ptr::eq(self.home(), reclaimer)
    }

    /// Of the map that the entry is of.
    #[inline(always)]
    fn home(&self) -> *const Reclaimer {
        // SAFETY: counted, and made by `Draft::new`.
        unsafe { Reclaimer::home(self.0.as_ptr().expose_provenance(), Cut::of::<Entry<K, V>>()) }
    }

    /// Gives the handle up for the address of its entry, for an index that stores words. It still counts: the entry
    /// stays until the handle has been [taken back](Handle::from_raw) and dropped.
    #[must_use]
    pub fn into_raw(self) -> usize {
        ManuallyDrop::new(self).0.as_ptr().expose_provenance()
    }

    /// The handle that was given up for this address.
    ///
    /// An index that only looks may make one of these and forget it again ([`ManuallyDrop`]): what it is good for then
    /// is reading the key, and [`Handle::found`].
    ///
    /// # Safety
    /// The address came from [`Handle::into_raw`] of a handle of this type. Each handle is taken back, to be dropped,
    /// at most once; and while it is only looked at, it is not cloned, and either the index still has it, or the search
    /// by which the index came to it began before it was given back or dropped, under a pin of the entry's own map that
    /// still holds.
    #[must_use]
    pub unsafe fn from_raw(address: usize) -> Handle<K, V> {
        let entry = std::ptr::with_exposed_provenance_mut(address);
        // SAFETY: the address of an entry is not zero.
        Handle(unsafe { NonNull::new_unchecked(entry) })
    }

    /// Takes note that this is the last of an entry, if so, and that no table has it, nor its successor; and retires
    /// it.
    ///
    /// # Safety
    /// The index gave this handle back to a write of the map of `reclaimer` that has cleared the table of `hash` and
    /// has not ended; all who may have found the entry have pinned `guard`'s collector; and nobody makes another handle
    /// of this one.
    pub(crate) unsafe fn forgotten<L>(&self, hash: u64, reclaimer: &Arc<Reclaimer>, guard: &Guard<'_, L>) {
        // SAFETY: the caller's promise.
        if unsafe { self.is_last(hash, reclaimer) } {
            // SAFETY: the caller's promise; it is the only one.
            unsafe { self.share_with(guard) };
        }
    }

    /// As [`Handle::forgotten`], by an owner: there is nobody to wait for.
    ///
    /// # Safety
    /// The index gave this handle back to a change of the map of `reclaimer`, which has cleared the table of `hash`,
    /// and puts nothing in again of this entry.
    pub(crate) unsafe fn forgotten_alone(&self, hash: u64, reclaimer: &Arc<Reclaimer>) {
        // SAFETY: the caller's promise.
        if unsafe { self.is_last(hash, reclaimer) } {
            let word = &self.entry().word.0;
            word.store(word.load(Ordering::Relaxed) | Word::FORGOTTEN, Ordering::Relaxed);
        }
    }

    /// Whether this is the last handle of an entry of this map and hash, whose successor, if it has one, is marked as
    /// forgotten then.
    ///
    /// # Safety
    /// As [`Handle::forgotten`], or [`Handle::forgotten_alone`].
    unsafe fn is_last(&self, hash: u64, reclaimer: &Arc<Reclaimer>) -> bool {
        let entry = self.entry();
        // Acquire pairs with the release in `Word::let_go`: what was done through other handles, to a value with a lock
        // in it, say, is done before it dies. The store that marks it would otherwise come between that release and the
        // last drop. If there is no handle but this, nobody else changes the number.
        let word = entry.word.load(Ordering::Acquire);
        // Another map's or another hash's: that table may still have it.
        let last = (word ^ hash) & Word::HASH == 0
            && self.is_of(Arc::as_ptr(reclaimer))
            && Word::handles(word) == 1
            && !Word::is_forgotten(word);
        // Found by this entry only, whoever else has a handle of it, and freed behind it.
        if last && let Some(successor) = entry.place.successor() {
            // SAFETY: alive while this entry is, whose place has a handle of it.
            let successor = unsafe { &*std::ptr::with_exposed_provenance::<Entry<K, V>>(successor) };
            successor.word.0.fetch_or(Word::FORGOTTEN, Ordering::Relaxed);
            reclaimer.beside.successions.fetch_sub(1, Ordering::Relaxed);
        }
        last
    }

    /// Gives the collector a handle, which it drops when all have left who are pinned now, and marks the entry as
    /// forgotten.
    ///
    /// # Safety
    /// As [`Handle::forgotten`], and this is the only one.
    pub(super) unsafe fn share_with<L>(&self, guard: &Guard<'_, L>) {
        unsafe fn let_go<K: 'static, V: 'static>(entry: *mut (), _: *const ()) {
            // SAFETY: the handle that was counted below. Once.
            drop(unsafe { Handle::<K, V>::from_raw(entry.expose_provenance()) });
        }
        let word = &self.entry().word.0;
        word.store((word.load(Ordering::Relaxed) + Word::ONE) | Word::FORGOTTEN, Ordering::Relaxed);
        // SAFETY: by the caller's promise nobody who pins from now on can find it. Entries are `Send`, and `'static`.
        unsafe { guard.retire(self.0.as_ptr().cast(), std::ptr::null(), let_go::<K, V>) };
    }

    /// What the table is to remember: nothing, if the address has more than 48 bits.
    pub(crate) fn pointer(&self) -> Option<Pointer> {
        Found::<K, V> { entry: self.0, life: PhantomData }.pointer()
    }
}

/// A new entry that nobody knows of.
pub(crate) struct Draft<K: 'static, V: 'static>(NonNull<Entry<K, V>>);

impl<K: 'static, V: 'static> Draft<K, V> {
    pub(crate) fn new(key: K, value: V, hash: u64, home: &Arc<Reclaimer>) -> Draft<K, V>
    where
        K: Send + Sync,
        V: Send + Sync,
    {
        let entry = home.place(Cut::of::<Entry<K, V>>()).cast::<Entry<K, V>>();
        // SAFETY: a place for such an entry, of this one's own, and not null.
        unsafe {
            entry.write(Entry { key, value, word: Word::new(hash), place: Place::default() });
            Draft(NonNull::new_unchecked(entry))
        }
    }

    fn entry(&self) -> &Entry<K, V> {
        // SAFETY: owned.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn key(&self) -> &K {
        &self.entry().key
    }

    /// As [`Handle::pointer`].
    pub(crate) fn pointer(&self) -> Option<Pointer> {
        Found::<K, V> { entry: self.0, life: PhantomData }.pointer()
    }

    /// The entry, as one that will be found.
    ///
    /// # Safety
    /// It is not dropped as a draft, and its first handle goes to nobody but those who free nothing for `'p`.
    pub(crate) unsafe fn found<'p>(&self) -> Found<'p, K, V> {
        Found { entry: self.0, life: PhantomData }
    }

    /// Its first handle.
    pub(crate) fn handle(self) -> Handle<K, V> {
        Handle(ManuallyDrop::new(self).0)
    }
}

impl<K: 'static, V: 'static> Drop for Draft<K, V> {
    fn drop(&mut self) {
        // SAFETY: nobody knows of it, and it is not dropped again.
        unsafe { free::<K, V>(self.0.as_ptr().cast(), std::ptr::null()) };
    }
}

impl<K: 'static, V: 'static> Clone for Handle<K, V> {
    /// Another handle. An entry that has more than some sixteen thousand at once is never freed.
    fn clone(&self) -> Self {
        self.entry().word.share(|_| true);
        Handle(self.0)
    }
}

impl<K: 'static, V: 'static> Drop for Handle<K, V> {
    fn drop(&mut self) {
        match kept::keep(self.0.as_ptr().expose_provenance(), || self.home()) {
            Fate::Gone => self.let_go(),
            Fate::Kept => {}
            // SAFETY: kept as this one is, and given once. A home's entries are of one type.
            Fate::KeptFor(before) => ManuallyDrop::new(unsafe { Self::from_raw(before) }).let_go(),
        }
    }
}

impl<K: 'static, V: 'static> Handle<K, V> {
    /// Counts the handle off. To be called where it is dropped.
    fn let_go(&self) {
        let entry = self.entry();
        // Of what is forgotten, and of a map that is gone, nobody makes another handle of the only one. If that is the
        // collector's, it is behind step 3, and if it is another, too: then the collector's is gone. Acquire pairs with
        // the release in `let_go`.
        let mut word = entry.word.load(Ordering::Acquire);
        // SAFETY: this handle keeps the entry, so its slab, and so its home.
        let ended = Word::handles(word) == 1 && unsafe { &*self.home() }.has_ended();
        if !(Word::handles(word) == 1 && (ended || Word::is_forgotten(word))) {
            word = match entry.word.let_go() {
                Some(before) if Word::handles(before) == 1 => before,
                _ => return,
            };
            fence(Ordering::Acquire);
        }
        let object = self.0.as_ptr().cast();
        if ended || Word::is_forgotten(word) {
            let (owes, successor) = (needs_drop::<K>() || needs_drop::<V>(), Word::SUCCEEDED);
            // SAFETY: see above. In turn where user code runs: its value may have the last handle of another.
            unsafe {
                match owes || word & successor != 0 {
                    true => free_in_turn(object, std::ptr::null(), free::<K, V>),
                    false => Reclaimer::give_back(object.cast(), Cut::of::<Entry<K, V>>()),
                }
            }
            return;
        }
        let address = self.0.as_ptr().expose_provenance();
        let (successor, forget, free) = (successor_of::<K, V>, forget::<K, V> as Free, free::<K, V> as Free);
        let dead = Dead { hash: word & Word::HASH, address, successor, forget, free };
        // SAFETY: as above: nobody gives the place back before it is retired.
        let reclaim = Arc::clone(unsafe { &(*self.home()).beside.reclaim });
        reclaim.retire(dead);
    }
}

/// Lets the home of the entry at this address forget it.
///
/// # Safety
/// It died, and who saw a handle of it has left. Once.
unsafe fn forget<K: 'static, V: 'static>(entry: *mut (), _: *const ()) {
    let address = entry.expose_provenance();
    // SAFETY: freed by its home behind this at the earliest.
    let (word, home) = unsafe {
        let word = (*entry.cast::<Entry<K, V>>()).word.load(Ordering::Relaxed);
        (word, &*Reclaimer::home(address, Cut::of::<Entry<K, V>>()))
    };
    let (successor, forget, free) = (successor_of::<K, V>, forget::<K, V> as Free, free::<K, V> as Free);
    let dead = Dead { hash: word & Word::HASH, address, successor, forget, free };
    // SAFETY: the caller's promise. The home is that of the entry, which stays.
    unsafe { home.beside.reclaim.forget(dead) };
}

/// The address of the successor of the entry at this one.
///
/// # Safety
/// It is there.
unsafe fn successor_of<K, V>(address: usize) -> Option<usize> {
    // SAFETY: the caller promises that it is there.
    unsafe { &*std::ptr::with_exposed_provenance::<Entry<K, V>>(address) }.place.successor()
}

/// Frees the entry at this address, and lets go of its successor. Does not panic, whatever its destructors do.
///
/// # Safety
/// It is one of `Draft::new`. Nobody can reach it, and nobody frees it twice; nor does the table have the successor.
pub(super) unsafe fn free<K: 'static, V: 'static>(entry: *mut (), _: *const ()) {
    let address = entry.expose_provenance();
    let entry = entry.cast::<Entry<K, V>>();
    // SAFETY: the caller's promise.
    unsafe { leave::<K, V>(address) };
    // Each part by itself: were the destructors of a key and of its value to panic at once, the process would end.
    // SAFETY: the caller promises that he is the last to know of it.
    unsafe {
        quietly(|| (&raw mut (*entry).key).drop_in_place());
        quietly(|| (&raw mut (*entry).value).drop_in_place());
        // Its parts, of which no other has a destructor, are dropped.
        Reclaimer::give_back(entry.cast(), Cut::of::<Entry<K, V>>());
    }
}

/// Lets go of an entry's successor, if it has one.
///
/// # Safety
/// As [`free`].
pub(super) unsafe fn leave<K: 'static, V: 'static>(address: usize) {
    // SAFETY: the caller's promise; the place owns a handle.
    unsafe {
        if let Some(successor) = successor_of::<K, V>(address) {
            let word =
                (*std::ptr::with_exposed_provenance::<Entry<K, V>>(address)).word.load(Ordering::Relaxed);
            // Already counted off by `is_last`, else.
            if !Word::is_forgotten(word) {
                (*Reclaimer::home(address, Cut::of::<Entry<K, V>>()))
                    .beside
                    .successions
                    .fetch_sub(1, Ordering::Relaxed);
            }
            drop(Handle::<K, V>::from_raw(successor));
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Handle<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(self.key()).field(self.value()).finish()
    }
}

impl<K: PartialEq, V> PartialEq for Handle<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<K: Eq, V> Eq for Handle<K, V> {}

impl<K: PartialOrd, V> PartialOrd for Handle<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        self.key().partial_cmp(other.key())
    }
}

impl<K: Ord, V> Ord for Handle<K, V> {
    fn cmp(&self, other: &Self) -> Order {
        self.key().cmp(other.key())
    }
}

impl<K: Hash, V> Hash for Handle<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// What a handle is looked up by: a `Q` that its key can be borrowed as. (`Borrow<Q>` itself cannot be written for
/// every `Q`.)
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Sought<Q: ?Sized>(Q);

impl<Q: ?Sized> Sought<Q> {
    /// This key, to look handles up by.
    #[must_use]
    pub fn of(key: &Q) -> &Sought<Q> {
        // SAFETY: a transparent wrapper of a `Q`.
        unsafe { &*(std::ptr::from_ref(key) as *const Sought<Q>) }
    }
}

impl<Q: ?Sized, K: Borrow<Q>, V> Borrow<Sought<Q>> for Handle<K, V> {
    fn borrow(&self) -> &Sought<Q> {
        Sought::of(self.key().borrow())
    }
}
