//! Succession: writes that the index is not asked for.
//!
//! A table saves lookups their walk through the index, and not writes theirs: where one request in twenty is a SET, a
//! tree with a table in front spends half of its time on those. But a SET whose key the table has need not walk either,
//! for the table says where the entry is:
//!
//! ```text
//!    index ---- first -----------> successor        the index's handle stays where it is
//!                 ^       place        |
//!                 +--------------------+
//!                         place
//!    table ----------------------> successor        and a hit is as short as before
//! ```
//!
//! The entry whose handle the index has, the *first*, gets a *successor*, with the new value; the next such SET
//! replaces that. Who finds the first in the index is given its successor; the table has the successor's own address,
//! so a hit follows no pointer more. When the key is written while the table does not have it, the index gives its
//! first back for a new one, and when it is removed, for none: there the succession ends, and the newest value is what
//! was replaced.
//!
//! # Why nothing stale is found
//!
//! To the table a succession is a write like others: under the stripe of its hash, which voids the tickets, with the
//! table cleared first. "The index changes" is here one store, by which the first has a successor, or names another.
//! What [`crate::stripes`] says of changes of the index, and what is modelled there, holds of that store.
//!
//! # Who is freed when
//!
//! * A successor that is replaced was forgotten when the write began, and nothing names it any more: whoever can still
//!   reach it is pinned.
//! * A first keeps its successor to its end. Who has found the first in the index may look at the place only after the
//!   index has given the first back, and must not find the old value there. So what was replaced is a share of the
//!   successor.
//! * A successor names its first, and a write that finds it in the table goes there. So a first is freed when the table
//!   has forgotten both, and all have left who may have found one of them there.
//! * A first without handles gets no successor: it is dying. Who saw a handle before the last one went is waited for
//!   before the table forgets, and so is the successor that he gave it.
//! * Where an index gives the last handle of a first back to a write of its own map and hash, nobody can admit its
//!   successor any more either, and both are marked as forgotten.
//!
//! # What it costs
//!
//! The first stays, with its old value's bytes: a key that was succeeded has two entries. None begins to while there
//! are as many of them as the table has slots. Values with a destructor are not kept like that: with those, each write
//! goes to the index. And an index does not hear of these writes; one that wants to, or that is as quick as the table,
//! does not take part ([`crate::index::Store::SUCCESSION`]).
//!
//! # Rejected
//!
//! *The table naming the first*: no write would have to touch the table, but each hit on a key that was ever written
//! would follow one pointer more. *The value in a cell of its own*: so would each hit. *The index naming a cell that
//! names the entry*: so would each comparison of a tree. *Writing behind, in batches that the index then takes
//! together*: what the table has not applied yet, it must not throw out. *A first that lets go of its successor when
//! the index gives it back*: whoever found the first before would find its old value, a write too late.

use std::mem::{ManuallyDrop, needs_drop, offset_of};
use std::ptr::with_exposed_provenance;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use atomics::reclaim::Guard;

use super::found::{Entry, Found};
use super::handle::{Draft, Handle};
use super::reclaim::Reclaimer;
use super::slab::Cut;
use super::word::Word;
use crate::pointer::Pointer;

/// Whether values of this type may stay behind when they have been replaced: see the head of this file.
pub(crate) const fn may_stay<V>() -> bool {
    !needs_drop::<V>()
}

impl<K: 'static, V: 'static> Handle<K, V> {
    /// A share of the successor of an entry that an index has given back.
    ///
    /// # Safety
    /// The index gave this handle back to a write of the map of `reclaimer` that holds the stripe of `hash`, or is
    /// alone.
    pub(crate) unsafe fn successor(&self, hash: u64, reclaimer: &Arc<Reclaimer>) -> Option<Handle<K, V>> {
        let entry = self.entry();
        // Another map's, or another stripe's: there a write may be giving it another successor right now.
        let is_other = (entry.word.load(Ordering::Relaxed) ^ hash) & Word::HASH != 0;
        if is_other || !self.is_of(Arc::as_ptr(reclaimer)) || !entry.is_succeeded() {
            return None;
        }
        // SAFETY: the handle that `set` was given. The place has it still, and keeps it: under the stripe.
        let successor = ManuallyDrop::new(unsafe { Handle::from_raw(entry.place.successor()?) });
        Some(Handle::clone(&successor))
    }
}

impl<K: 'static, V: 'static> Found<'_, K, V> {
    /// A handle of this entry, if it has one still.
    pub(crate) fn share(self) -> Option<Handle<K, V>> {
        // Not a forgotten one's, whose only handle a map counts on.
        let may = |word| Word::handles(word) > 0 && !Word::is_forgotten(word);
        self.entry().word.share(may).then(|| Handle(self.entry))
    }

    /// Lets `next` succeed this entry; gives this one back. Gives back `next` if that is for the index to do: if no
    /// handle of the first is left, or there are `most` successions and this would be one more.
    ///
    /// # Safety
    /// A write found this entry by the table, under the stripe of its hash, which it holds and by which it has cleared
    /// the table; or is alone. `next` is of the same map and hash. If there is a guard, all who may have found this
    /// entry have pinned its collector, and nobody makes another handle of what is given back.
    pub(crate) unsafe fn succeed<L>(
        self,
        next: Draft<K, V>,
        most: usize,
        guard: Option<&Guard<'_, L>>,
    ) -> Result<Handle<K, V>, Draft<K, V>> {
        let entry = self.entry();
        let Some(address) = entry.place.first() else {
            // SAFETY: found, so it is there, and so are its slab and its home.
            let successions = unsafe {
                &(*Reclaimer::home(self.entry.as_ptr().expose_provenance(), Cut::of::<Entry<K, V>>()))
                    .beside
                    .successions
            };
            // A first that has a successor is not in the table, unless by an index that lies.
            if entry.place.successor().is_some() || successions.load(Ordering::Relaxed) >= most {
                return Err(next);
            }
            let Some(share) = self.share() else { return Err(next) };
            successions.fetch_add(1, Ordering::Relaxed);
            let next = next.handle();
            next.entry().place.succeeds(self.entry.as_ptr().expose_provenance());
            entry.place.set(next.into_raw());
            entry.set_succeeded();
            return Ok(share);
        };
        // SAFETY: freed with this one, which was found; this one is its successor, for the table had it, and under the
        // stripe.
        let first = unsafe { &*with_exposed_provenance::<Entry<K, V>>(address) };
        // Relaxed: whoever sees a handle here is waited for by whoever retires the first after that, for he is pinned.
        if Word::handles(first.word.load(Ordering::Relaxed)) == 0 {
            return Err(next);
        }
        // Acquire as in `forgotten`, and by the same right: the table is cleared, and the first will name another.
        let word = entry.word.load(Ordering::Acquire);
        let last = Word::handles(word) == 1 && !Word::is_forgotten(word);
        let next = next.handle();
        next.entry().place.succeeds(address);
        first.place.set(next.into_raw());
        // The place has let go of this one.
        let replaced = Handle(self.entry);
        match guard {
            // SAFETY: the only one; no table has it, and nothing names it any more. The rest is the caller's promise.
            Some(guard) if last => unsafe { replaced.share_with(guard) },
            None if last => drop(entry.word.0.fetch_or(Word::FORGOTTEN, Ordering::Relaxed)),
            _ => {}
        }
        Ok(replaced)
    }

    /// Asks for what a write will touch of its first, if it has one.
    #[inline(always)]
    pub(crate) fn prefetch_first(self) {
        if let Some(first) = self.entry().place.first() {
            prefetch_place::<K, V>(first);
        }
    }
}

/// Asks for what a write will touch of an entry that it finds: where the key begins, and the place.
#[inline(always)]
pub(crate) fn prefetch_to_succeed<K: 'static, V: 'static>(pointer: Pointer) {
    let address = pointer.address() as usize;
    pages::prefetch(with_exposed_provenance::<Entry<K, V>>(address));
    prefetch_place::<K, V>(address);
}

#[inline(always)]
fn prefetch_place<K: 'static, V: 'static>(address: usize) {
    pages::prefetch(with_exposed_provenance::<u8>(address + offset_of!(Entry<K, V>, place)));
}
