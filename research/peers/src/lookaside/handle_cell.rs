//! A handle that can be exchanged where it lies, while others read it: for an index whose entries stay where they are
//! and have no call that replaces a value in one step.
//!
//! The cell is one word, the handle's address. A reader loads it and looks at the entry without counting itself; that
//! the entry is still there is the map's rule: it is freed only after all who were pinned when its last handle went.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookaside::{Found, Handle, Pin};

/// The cell.
pub(super) struct HandleCell<K: 'static, V: 'static>(AtomicUsize, PhantomData<Handle<K, V>>);

impl<K: 'static, V: 'static> HandleCell<K, V> {
    /// With this handle.
    pub(super) fn new(handle: Handle<K, V>) -> Self {
        HandleCell(AtomicUsize::new(handle.into_raw()), PhantomData)
    }

    /// The entry, as an answer to a search. The pin is that of the one map whose index has this cell.
    pub(super) fn found<'p>(&self, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        // acquire pairs with the releases in `replace` and `new`'s publication: the entry is seen as it was made.
        let address = self.0.load(Ordering::Acquire);
        // SAFETY: of a handle of this type, which was in the cell when the map was pinned already; only looked at.
        ManuallyDrop::new(unsafe { Handle::<K, V>::from_raw(address) }).found(pin)
    }

    /// Puts another handle in; the one that was there.
    pub(super) fn replace(&self, handle: Handle<K, V>) -> Handle<K, V> {
        // release pairs with the acquire in `found`; acquire, so that what others did to the entry is done before it
        // dies.
        let old = self.0.swap(handle.into_raw(), Ordering::AcqRel);
        // SAFETY: of a handle of this type, given up for the word that has just been taken out, by one thread only.
        unsafe { Handle::from_raw(old) }
    }
}

impl<K: 'static, V: 'static> Drop for HandleCell<K, V> {
    fn drop(&mut self) {
        // SAFETY: of a handle of this type, given up for this word, once.
        drop(unsafe { Handle::<K, V>::from_raw(*self.0.get_mut()) });
    }
}
