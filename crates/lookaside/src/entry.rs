//! Entries, and who may hold them.
//!
//! An entry is a key, its value and the hash it was made with, in a slab of its map's ([`slab`]). Indexes store
//! [`Handle`]s, which count; readers hold [`Found`]s, which do not: a [`Pin`] keeps what they see.
//!
//! The number of handles lies in sixteen bits of the hash that no table asks for ([`Word`]): with a word of their own,
//! entries of two numbers would take a quarter more.
//!
//! # When an entry is freed
//!
//! The map clears the table before it takes an entry from the index. But the index is the user's, and may do with its
//! handles whatever it likes: drop them in the middle of a search, keep clones of them, give back another's. So nothing
//! rests on it. When the last handle of an entry goes, wherever that happens:
//!
//! 1. wait until everyone has left who was pinned. No handle exists any more, so after that nobody can emit the entry:
//!    to emit it, it must be found, and to be found, there must be a handle;
//! 2. forget its pointer in the table, where there still may be one;
//! 3. wait until everyone has left who may have read it there before;
//! 4. free it.
//!
//! An emission goes under the entry's own hash, so step 2 looks where it would be. With an honest index, the table was
//! cleared long before, and step 2 finds nothing. A map can see that: where an index gives an entry back to a write
//! that has cleared the table of its hash, and this is the only handle, nobody can emit it once more. Tickets from
//! before are void, and those taken after come before a search that cannot find it. So it is marked as forgotten, and
//! steps 1 and 2 are left out, the second of which would be a cold line for every write. And the write, which is
//! pinned, retires it at once: the collector gets a handle of its own, and drops it when step 3 is over. Whoever drops
//! the last, the collector or who has the [`crate::Removed`], frees the entry, and need not wait for anybody.
//!
//! What waits belongs to the buffer's collector ([`atomics::reclaim`]). An entry that waits holds a share in its map's
//! reclaimer, by its slab, and so in the buffer: so that this ends, who drops a map collects, and so does whoever drops
//! a handle behind that.
//!
//! When its map goes, nobody is left who looks at an entry, or ever will: those who did had borrowed the map, and no
//! other map behind the same table asks for pointers with this one's mark, which is never given again. So from then on
//! whoever drops the last handle frees the entry, and neither waits nor looks into the table, which of a million
//! entries would be a million cold lines.
//!
//! Where the index is not asked for a write, the entry that it has owns another ([`succession`]).
//!
//! The owner-only form has nobody to wait for: its dead lie in a graveyard until the owner next changes the map, which
//! by the borrow checker is when no reader is left ([`crate::owned`]).
//!
//! A key or a value whose destructor panics does so in the middle of some other call, of another thread perhaps. That
//! call goes on, and so do the other entries on their way: the panic ends where the entry is freed, once the panic hook
//! has told.
//!
//! Rejected: *an index that is trusted* (an `unsafe trait`): then whoever writes one must prove it; *counting readers*:
//! an atomic read-modify-write on a line that all cores share, a hit.

#![allow(unsafe_code)]

mod departing;
mod slab;
mod succession;

use std::borrow::Borrow;
use std::cmp::Ordering as Order;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use atomics::reclaim::{Guard, free_in_turn, quietly};

use self::departing::Fate;
pub(crate) use self::departing::{Departed, Ending, ends};
use self::slab::{Cut, Slabs, give_back, home};
use self::succession::Place;

use crate::word::Pointer;

pub(crate) use self::succession::prefetch_to_succeed;

/// What a collector is told to do with an object.
pub(crate) type Free = unsafe fn(*mut (), *const ());

/// A dead entry: where it was, how to find its successor, and how to forget and to free it.
pub(crate) struct Dead {
    pub(crate) hash: u64,
    pub(crate) address: usize,
    successor: unsafe fn(usize) -> Option<usize>,
    /// Step 2, at the entry's home; to be called when step 1 is over.
    pub(crate) forget: Free,
    /// To be called when step 3 is over.
    pub(crate) free: Free,
}

// SAFETY: an entry's keys and values are `Send` (see `Draft::new`), and nobody else has it.
unsafe impl Send for Dead {}

impl Dead {
    /// What a table may remember of it and of its successor, of what it ever could.
    ///
    /// # Safety
    /// It is not freed, and who saw a handle of it, and could give it another successor, has left.
    pub(crate) unsafe fn pointers(&self) -> impl Iterator<Item = Pointer> + use<> {
        // SAFETY: `successor` is that of the entry's type; the rest is the caller's promise.
        let successor = unsafe { (self.successor)(self.address) };
        let addresses = [Some(self.address), successor].into_iter().flatten();
        addresses.filter_map(|address| Pointer::new(address as u64))
    }

    /// Frees it, and lets go of its successor. Does not panic, whatever its destructors do.
    ///
    /// # Safety
    /// Nobody can reach it, and nobody frees it twice; nor does the table have the successor.
    pub(crate) unsafe fn free(self) {
        // SAFETY: `free` is that of the entry's type; the rest is the caller's promise.
        unsafe { (self.free)(self.object(), std::ptr::null()) };
    }

    /// As collectors know it.
    pub(crate) fn object(&self) -> *mut () {
        std::ptr::with_exposed_provenance_mut(self.address)
    }
}

/// An entry's hash, but for the bits that no table asks for: in these is the number of its handles, and what else is to
/// be known of it.
///
/// ```text
///   63 ... 48   47          46          45 ... 32   31 ... 0
///   hash        forgotten   succeeded   handles     hash
/// ```
///
/// Of an entry that has had [`Word::MANY`] handles at once no more are counted, and it is never freed: nobody knows any
/// more when the last goes.
struct Word(AtomicU64);

impl Word {
    const ONE: u64 = 1 << 32;
    const MANY: u64 = (1 << 14) - 1;
    /// The entry has a successor.
    const SUCCEEDED: u64 = 1 << 46;
    /// No table has the entry, and nobody can emit it any more.
    const FORGOTTEN: u64 = 1 << 47;
    const HASH: u64 = !(0xffff << 32);

    /// With one handle.
    fn new(hash: u64) -> Word {
        Word(AtomicU64::new(hash & Word::HASH | Word::ONE))
    }

    const fn handles(word: u64) -> u64 {
        word >> 32 & Word::MANY
    }

    const fn is_forgotten(word: u64) -> bool {
        word & Word::FORGOTTEN != 0
    }

    fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(ordering)
    }

    /// One handle more, if `may` says so of the word.
    fn share(&self, may: impl Fn(u64) -> bool) -> bool {
        let more = |word| match Word::handles(word) {
            Word::MANY => Some(word),
            _ => Some(word + Word::ONE),
        };
        let more = |word| if may(word) { more(word) } else { None };
        // Relaxed, as `Arc`: nothing is read through the number.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One handle less; what the word was, unless nobody knows how many there are.
    fn let_go(&self) -> Option<u64> {
        let less = |word| (Word::handles(word) != Word::MANY).then(|| word - Word::ONE);
        // Release pairs with the fence in `Handle::drop` and with the acquires of the number: what other handles did to
        // the entry is done before it dies.
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, less).ok()
    }
}

/// Where entries go when their last handle has gone.
pub(crate) trait Reclaim: Send + Sync {
    /// Takes a dead entry, to be forgotten and freed when nobody can reach it.
    fn retire(self: Arc<Self>, dead: Dead);

    /// Forgets it, and frees it when nobody can reach it any more.
    ///
    /// # Safety
    /// Called by [`Dead::forget`] only.
    unsafe fn forget(&self, dead: Dead);
}

/// Where the entries of one map lie, and where they go. Their slabs name it.
pub(crate) struct Reclaimer {
    reclaim: Arc<dyn Reclaim>,
    /// Entries of the map that have a successor, but for what is on its way out.
    successions: AtomicUsize,
    /// The map is gone.
    ended: AtomicBool,
    slabs: Slabs,
}

impl Reclaimer {
    /// Of a map that threads share, or of an owner's.
    pub(crate) fn of(reclaim: Arc<dyn Reclaim>, shared: bool) -> Arc<Reclaimer> {
        let (successions, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Reclaimer { reclaim, successions, ended, slabs: Slabs::new(shared) })
    }

    fn has_ended(&self) -> bool {
        // Acquire pairs with the release of `Ending`: all who looked at entries of the map have left.
        self.ended.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Reclaimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reclaimer").finish_non_exhaustive()
    }
}

/// A key and its value. They come first: a hit reads the line that the pointer names, and no other if they are small.
#[repr(C)]
struct Entry<K, V> {
    key: K,
    value: V,
    word: Word,
    place: Place,
}

/// An index's share in an entry: what it stores. It compares, orders and hashes as its key does.
pub struct Handle<K: 'static, V: 'static>(NonNull<Entry<K, V>>);

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

impl<K, V> Entry<K, V> {
    #[inline(always)]
    fn is_succeeded(&self) -> bool {
        // Acquire pairs with the release in `set_succeeded`: the place was set before, the table cleared before that.
        self.word.load(Ordering::Acquire) & Word::SUCCEEDED != 0
    }

    /// The entry has a successor from now on. Under the stripe of its hash.
    fn set_succeeded(&self) {
        // Release pairs with the acquire in `is_succeeded`.
        self.word.0.fetch_or(Word::SUCCEEDED, Ordering::Release);
    }
}

impl<K: 'static, V: 'static> Handle<K, V> {
    fn entry(&self) -> &Entry<K, V> {
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

    /// Whether the entry is of the map of this reclaimer.
    #[inline(always)]
    fn is_of(&self, reclaimer: *const Reclaimer) -> bool {
        std::ptr::eq(self.home(), reclaimer)
    }

    /// Of the map that the entry is of.
    #[inline(always)]
    fn home(&self) -> *const Reclaimer {
        // SAFETY: counted, and made by `Draft::new`.
        unsafe { home(self.0.as_ptr().expose_provenance(), Cut::of::<Entry<K, V>>()) }
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
            reclaimer.successions.fetch_sub(1, Ordering::Relaxed);
        }
        last
    }

    /// Gives the collector a handle, which it drops when all have left who are pinned now, and marks the entry as
    /// forgotten.
    ///
    /// # Safety
    /// As [`Handle::forgotten`], and this is the only one.
    unsafe fn share_with<L>(&self, guard: &Guard<'_, L>) {
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
        match departing::keep(self) {
            Fate::Gone => self.let_go(),
            Fate::Kept => {}
            Fate::KeptFor(before) => before.let_go(),
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
                    false => give_back(object.cast(), Cut::of::<Entry<K, V>>()),
                }
            }
            return;
        }
        let address = self.0.as_ptr().expose_provenance();
        let (successor, forget, free) = (successor_of::<K, V>, forget::<K, V> as Free, free::<K, V> as Free);
        let dead = Dead { hash: word & Word::HASH, address, successor, forget, free };
        // SAFETY: as above: nobody gives the place back before it is retired.
        let reclaim = Arc::clone(unsafe { &(*self.home()).reclaim });
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
        (word, &*home(address, Cut::of::<Entry<K, V>>()))
    };
    let (successor, forget, free) = (successor_of::<K, V>, forget::<K, V> as Free, free::<K, V> as Free);
    let dead = Dead { hash: word & Word::HASH, address, successor, forget, free };
    // SAFETY: the caller's promise. The home is that of the entry, which stays.
    unsafe { home.reclaim.forget(dead) };
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
unsafe fn free<K: 'static, V: 'static>(entry: *mut (), _: *const ()) {
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
        give_back(entry.cast(), Cut::of::<Entry<K, V>>());
    }
}

/// Lets go of an entry's successor, if it has one.
///
/// # Safety
/// As [`free`].
unsafe fn leave<K: 'static, V: 'static>(address: usize) {
    // SAFETY: the caller's promise; the place owns a handle.
    unsafe {
        if let Some(successor) = successor_of::<K, V>(address) {
            let word =
                (*std::ptr::with_exposed_provenance::<Entry<K, V>>(address)).word.load(Ordering::Relaxed);
            // Already counted off by `is_last`, else.
            if !Word::is_forgotten(word) {
                (*home(address, Cut::of::<Entry<K, V>>())).successions.fetch_sub(1, Ordering::Relaxed);
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

/// An entry that has been taken out of a map, or replaced. Its value can be read as long as one likes.
#[derive(Debug)]
pub struct Removed<K: 'static, V: 'static>(pub(crate) Handle<K, V>);

impl<K, V> Removed<K, V> {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &K {
        self.0.key()
    }
}

impl<K, V> Removed<K, V> {
    /// The key and the value themselves, if nobody else can see them any more. Behind a map that threads share that is
    /// when all have left who were pinned when the entry was taken out, and memory was collected since; of an
    /// [`OwnedMap`](crate::OwnedMap) it is always, unless the index has one of its handles still.
    ///
    /// ```
    /// let mut map = lookaside::OwnedMap::<String, String>::new();
    /// map.insert("rome".to_string(), "eternal".to_string());
    /// let removed = map.remove("rome").unwrap();
    /// assert_eq!(removed.try_unwrap().unwrap(), ("rome".to_string(), "eternal".to_string()));
    /// ```
    ///
    /// # Errors
    /// This, if somebody may see it.
    pub fn try_unwrap(self) -> Result<(K, V), Self> {
        let entry = self.0.entry();
        // Acquire as in `Handle::drop`.
        let word = entry.word.load(Ordering::Acquire);
        if Word::handles(word) != 1 || !Word::is_forgotten(word) {
            return Err(self);
        }
        let entry = ManuallyDrop::new(self).0.0;
        // SAFETY: the only handle, of an entry that is in no table and that nobody can see: the key and the value are
        // read once, and the place given back without them.
        unsafe {
            leave::<K, V>(entry.as_ptr().expose_provenance());
            let (key, value) =
                ((&raw const (*entry.as_ptr()).key).read(), (&raw const (*entry.as_ptr()).value).read());
            give_back(entry.as_ptr().cast(), Cut::of::<Entry<K, V>>());
            Ok((key, value))
        }
    }

    /// The value: itself if nobody else can see it any more ([`Removed::try_unwrap`]), else a clone.
    #[must_use]
    pub fn into_value(self) -> V
    where
        V: Clone,
    {
        self.try_unwrap().map_or_else(|shared| V::clone(&shared), |(_, value)| value)
    }
}

impl<K, V> Deref for Removed<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.0.value()
    }
}

/// Whether values of this type may stay behind when they have been replaced: see [`succession`].
pub(crate) const fn may_stay<V>() -> bool {
    !needs_drop::<V>()
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

/// An entry that was found, and stays for `'p`.
pub struct Found<'p, K: 'static, V: 'static> {
    entry: NonNull<Entry<K, V>>,
    life: PhantomData<&'p Entry<K, V>>,
}

impl<K: 'static, V: 'static> Clone for Found<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: 'static, V: 'static> Copy for Found<'_, K, V> {}

impl<'p, K: 'static, V: 'static> Found<'p, K, V> {
    /// The entry behind a pointer that a table gave.
    ///
    /// # Safety
    /// It was emitted by [`Found::pointer`] of an entry of this type, and is not freed for `'p`.
    #[inline(always)]
    pub(crate) unsafe fn at(pointer: Pointer) -> Found<'p, K, V> {
        let entry = std::ptr::with_exposed_provenance_mut(pointer.address() as usize);
        // SAFETY: a pointer is never zero.
        Found { entry: unsafe { NonNull::new_unchecked(entry) }, life: PhantomData }
    }

    #[inline(always)]
    fn entry(self) -> &'p Entry<K, V> {
        // SAFETY: alive for 'p, by the promises of `Handle::found` and `Found::at`; nothing in it changes but atomics.
        unsafe { self.entry.as_ref() }
    }

    /// The entry's key.
    #[inline(always)]
    #[must_use]
    pub fn key(self) -> &'p K {
        &self.entry().key
    }

    /// The entry's value.
    #[inline(always)]
    #[must_use]
    pub fn value(self) -> &'p V {
        &self.entry().value
    }

    /// The same, for longer.
    ///
    /// # Safety
    /// The entry is not freed for `'q`.
    pub(crate) unsafe fn outlive<'q>(self) -> Found<'q, K, V> {
        Found { entry: self.entry, life: PhantomData }
    }

    /// The entry's value, to be changed; `None` if there is more than the index's handle.
    ///
    /// # Safety
    /// For `'p` nobody else looks at the entry, nor makes or uses another handle of it.
    pub(crate) unsafe fn value_mut(self) -> Option<&'p mut V> {
        // Acquire pairs with the release in `Word::let_go`: what was seen through other handles is over.
        if Word::handles(self.entry().word.load(Ordering::Acquire)) != 1 {
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { &mut (*self.entry.as_ptr()).value })
    }

    /// The hash that it was made with.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        self.entry().word.load(Ordering::Relaxed) & Word::HASH
    }

    /// Whether it was made with this hash, as far as tables tell hashes apart.
    #[inline]
    pub(crate) fn is_of(self, hash: u64) -> bool {
        (self.hash() ^ hash) & Word::HASH == 0
    }

    /// What the table is to remember: nothing, if the address has more than 48 bits.
    #[inline]
    pub(crate) fn pointer(self) -> Option<Pointer> {
        Pointer::new(self.entry.as_ptr().expose_provenance() as u64)
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Found<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Found").field(self.key()).field(self.value()).finish()
    }
}

/// Asks for the lines of an entry that a hit will read: the first, where the key is, and the last of a value that is
/// not large. It may begin anywhere in its first line.
#[inline(always)]
pub(crate) fn prefetch<K, V>(pointer: Pointer) {
    let entry = std::ptr::with_exposed_provenance::<Entry<K, V>>(pointer.address() as usize);
    pages::prefetch(entry);
    let bytes = size_of::<K>() + size_of::<V>();
    if bytes > 64 {
        pages::prefetch(entry.cast::<u8>().wrapping_add(64));
    }
    if (1..=128).contains(&bytes) {
        pages::prefetch(entry.cast::<u8>().wrapping_add(bytes - 1));
    }
}

#[cfg(test)]
mod tests;
