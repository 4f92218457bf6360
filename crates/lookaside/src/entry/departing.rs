//! The entries of a map that goes, freed a few behind the one whose handle is dropped.
//!
//! An index drops its handles in its own order, in which entries lie anywhere: each would wait for its line. So while a
//! map drops its index, the thread keeps the last sixteen handles, asks for their lines, and frees those whose lines
//! have come meanwhile: a million entries that came in no order are gone in half of the time.
//!
//! ```text
//!   Ending (a field before the index)      this thread keeps handles of this home
//!   the index drops its handles            each is kept, and the one before the last so many let go of
//!   Departed (a field behind it)           the rest is let go of
//! ```

use std::marker::PhantomData;
use std::sync::Arc;

use super::found::Entry;
use super::handle::Handle;
use super::kept;
use super::reclaim::Reclaimer;
use super::slab::Cut;

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
        self.0.end();
        self.0.release(Cut::of::<Entry<K, V>>());
        kept::begin(Arc::as_ptr(&self.0));
    }
}

impl<K, V> Drop for Departed<K, V> {
    fn drop(&mut self) {
        for address in kept::end(Arc::as_ptr(&self.0)) {
            // SAFETY: kept by `keep`, of this map and so of this type.
            drop(unsafe { Handle::<K, V>::from_raw(address) });
        }
    }
}
