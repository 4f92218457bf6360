//! The entries of a map that goes, freed a few behind the one whose handle is dropped.
//!
//! An index drops its handles in its own order, in which entries lie anywhere: each would wait for its line. So while a
//! map drops its index, the thread keeps the last [`AHEAD`] handles, asks for their lines, and frees those whose lines
//! have come meanwhile: a million entries that came in no order are gone in half of the time.
//!
//! ```text
//!   Ending (a field before the index)      this thread keeps handles of this home
//!   the index drops its handles            each is kept, and the one before the last so many let go of
//!   Departed (a field behind it)           the rest is let go of
//! ```

use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::slab::Cut;
use super::{Entry, Handle, Reclaimer};

/// Handles that are kept: enough for a memory that answers a tenth of them at once.
const AHEAD: usize = 16;

/// Handles, by the addresses of their entries, of the map that this thread is dropping.
struct Kept {
    home: *const Reclaimer,
    addresses: [Cell<usize>; AHEAD],
    next: Cell<usize>,
    /// Of the map whose entry's destructor drops this one.
    outer: Option<NonNull<Kept>>,
}

thread_local! {
    static KEPT: Cell<Option<NonNull<Kept>>> = const { Cell::new(None) };
}

/// What becomes of a handle that is dropped.
pub(super) enum Fate<K: 'static, V: 'static> {
    /// It is let go of.
    Gone,
    /// It is kept.
    Kept,
    /// It is kept, and this is let go of, which was kept before.
    KeptFor(ManuallyDrop<Handle<K, V>>),
}

/// Keeps this handle, if its map's index is being dropped by this thread.
#[inline(always)]
pub(super) fn keep<K, V>(handle: &Handle<K, V>) -> Fate<K, V> {
    let Some(kept) = KEPT.get() else { return Fate::Gone };
    // SAFETY: there from when it is set, by `Ending`, until it is taken away, by `Departed`, on this thread.
    let kept = unsafe { kept.as_ref() };
    if !handle.is_of(kept.home) {
        return Fate::Gone;
    }
    pages::prefetch(handle.0.as_ptr());
    let next = kept.next.get();
    kept.next.set((next + 1) % AHEAD);
    let before = kept.addresses[next].replace(handle.0.as_ptr().expose_provenance());
    match before {
        0 => Fate::Kept,
        // SAFETY: kept here as this one is, and given once. The home's entries are of one type.
        before => Fate::KeptFor(ManuallyDrop::new(unsafe { Handle::from_raw(before) })),
    }
}

/// A map's word that it is gone: to be dropped before its index, by which nobody looks any more.
pub(crate) struct Ending<K: 'static, V: 'static>(Arc<Reclaimer>, PhantomData<fn() -> Handle<K, V>>);

/// To be dropped behind the index, by the same thread.
pub(crate) struct Departed<K: 'static, V: 'static>(Arc<Reclaimer>, PhantomData<fn() -> Handle<K, V>>);

/// Both.
pub(crate) fn ends<K, V>(reclaimer: &Arc<Reclaimer>) -> (Ending<K, V>, Departed<K, V>) {
    (Ending(Arc::clone(reclaimer), PhantomData), Departed(Arc::clone(reclaimer), PhantomData))
}

impl<K, V> Drop for Ending<K, V> {
    fn drop(&mut self) {
        // Release pairs with the acquire in `has_ended`.
        self.0.ended.store(true, Ordering::Release);
        self.0.release(Cut::of::<Entry<K, V>>());
        let addresses = [const { Cell::new(0) }; AHEAD];
        let kept = Kept { home: Arc::as_ptr(&self.0), addresses, next: Cell::new(0), outer: KEPT.get() };
        KEPT.set(Some(NonNull::from(Box::leak(Box::new(kept)))));
    }
}

impl<K, V> Drop for Departed<K, V> {
    fn drop(&mut self) {
        let Some(kept) = KEPT.get() else { return };
        // SAFETY: as in `keep`. What is dropped meanwhile has taken its own away.
        let (home, outer) = unsafe { (kept.as_ref().home, kept.as_ref().outer) };
        // Of a map that could not be made there is none.
        if !std::ptr::eq(home, Arc::as_ptr(&self.0)) {
            return;
        }
        KEPT.set(outer);
        // SAFETY: leaked by `Ending`, and taken away: once.
        let kept = unsafe { Box::from_raw(kept.as_ptr()) };
        for address in kept.addresses.iter().map(Cell::get).filter(|&address| address != 0) {
            // SAFETY: kept by `keep`, of this map and so of this type.
            drop(unsafe { Handle::<K, V>::from_raw(address) });
        }
    }
}
