//! Our cuckoo table as an index: alone, or with a buffer beside it, over records on the heap; behind a map, over its
//! handles.
//!
//! The table stores locations of 48 bits; here they are addresses. Batches go to [`cuckoo::Table::find_many`], which
//! asks for the lines of all keys before it reads the first.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;

use cuckoo::{Config, Entries, Growth, Hashes, Location, Table, Upsertion};
use lookaside::index::{Find, SharedStore};
use lookaside::{Found, Pin};
use twox_hash::XxHash3_64;

use super::beside::{Record, Records};
use super::contestant::Make;
use super::indexes::Handled;
use super::items::{Item, Kept, Seen};
use super::record::{Key, Value};
use super::visit::BATCH;
use crate::measure::epochs::{self, Guard};

/// The table and what its locations stand for.
pub(super) struct Cuckoo<const N: usize, E: Item<N>> {
    table: Table,
    items: PhantomData<E>,
}

/// Which key an item has. Made only by [`Cuckoo`], whose locations are addresses of items, and used by who is pinned.
struct ByKey<const N: usize, E>(PhantomData<E>);

impl<const N: usize, E: Item<N>> ByKey<N, E> {
    #[inline(always)]
    fn at(location: Location) -> ManuallyDrop<E> {
        // SAFETY: the table has only what was put in by `replace`, which gave the item up for it; whoever reads has
        // pinned before. Only looked at.
        ManuallyDrop::new(unsafe { E::from_address(location.get()) })
    }

    #[inline(always)]
    fn holds(&self, location: Location, key: &Key<N>) -> bool {
        Self::at(location).key() == key
    }
}

impl<const N: usize, E: Item<N>> Entries for ByKey<N, E> {
    fn hash(&self, location: Location) -> u64 {
        hash(Self::at(location).key())
    }

    #[inline(always)]
    fn prefetch(&self, location: Location) {
        let record = std::ptr::with_exposed_provenance::<u8>(location.get() as usize);
        pages::prefetch(record);
        pages::prefetch(record.wrapping_add(64));
    }
}

#[inline(always)]
fn hash<const N: usize>(key: &Key<N>) -> u64 {
    XxHash3_64::oneshot(&key.0)
}

impl<const N: usize, E: Item<N>> Cuckoo<N, E> {
    const ENTRIES: ByKey<N, E> = ByKey(PhantomData);

    #[inline(always)]
    fn get<'g, G>(&self, key: &Key<N>, pinned: &'g G) -> Option<Seen<'g, E>> {
        let location = self.table.find(hash(key), |at| Self::ENTRIES.holds(at, key))?;
        // SAFETY: an address of an item, found while it is pinned.
        Some(unsafe { Seen::at(location.get(), pinned) })
    }

    /// The items of keys, [`BATCH`] at most: `found(i, ...)` is told that of `keys[i]`.
    #[inline(always)]
    fn get_many<'g, G>(
        &self,
        keys: &[&Key<N>],
        pinned: &'g G,
        mut found: impl FnMut(usize, Option<Seen<'g, E>>),
    ) {
        let (mut hashes, mut locations) = ([0; BATCH], [None; BATCH]);
        hashes.iter_mut().zip(keys).for_each(|(hash_of, key)| *hash_of = hash(key));
        let holds = |i: usize, at| Self::ENTRIES.holds(at, keys[i]);
        let locations = &mut locations[..keys.len()];
        self.table.find_many(Self::ENTRIES, &hashes[..keys.len()], holds, locations);
        for (i, location) in locations.iter().enumerate() {
            // SAFETY: an address of an item, found while it is pinned.
            found(i, location.map(|at| unsafe { Seen::at(at.get(), pinned) }));
        }
    }

    fn replace(&self, item: E) -> Option<E> {
        let _guard = epochs::pin();
        let key = *item.key();
        let location = Location::new(item.into_address()).expect("the heap lies below 2^48");
        let holds = |at| Self::ENTRIES.holds(at, &key);
        match self.table.insert_or_replace(hash(&key), location, holds, Self::ENTRIES) {
            // SAFETY: given up for this address once, and now out of the table.
            Ok(Upsertion::Replaced(old)) => Some(unsafe { E::from_address(old.get()) }),
            Ok(Upsertion::Inserted(_)) => None,
            Err(full) => panic!("{full}: made for fewer records than were put in"),
        }
    }
}

impl<const N: usize, E: Item<N>> Drop for Cuckoo<N, E> {
    fn drop(&mut self) {
        for location in self.table.iter() {
            // SAFETY: given up for this address once; the table is going.
            drop(unsafe { E::from_address(location.get()) });
        }
    }
}

impl<const N: usize, E: Item<N>> Make for Cuckoo<N, E> {
    fn make(records: usize) -> Result<Self, String> {
        let config = Config::new().with_growth(Growth::Fixed).with_hashes(Hashes::Avalanching);
        let table = Table::with_capacity(records.max(1), &config).map_err(|error| error.to_string())?;
        Ok(Cuckoo { table, items: PhantomData })
    }
}

// SAFETY: the records are `Kept`, which frees them after all have left who were pinned when they were replaced; and
// with the table.
unsafe impl<const N: usize> Records<N> for Cuckoo<N, Kept<N>> {
    type Value = Value;
    const BATCHES: bool = true;

    #[inline(always)]
    fn record<'g>(&'g self, key: &Key<N>, guard: &'g Guard) -> Option<&'g Record<N>> {
        self.get(key, guard).map(|seen| seen.record())
    }

    #[inline(always)]
    fn records<'g>(
        &'g self,
        keys: &[&Key<N>],
        guard: &'g Guard,
        mut found: impl FnMut(usize, Option<&'g Record<N>>),
    ) {
        self.get_many(keys, guard, |i, seen| found(i, seen.map(|seen| seen.record())));
    }

    fn put_record<'g>(&'g self, record: Record<N>, guard: &'g Guard) -> &'g Record<N> {
        Kept::put(record, guard, |kept| self.replace(kept))
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Cuckoo<N, Handled<N>> {
    #[inline(always)]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.get(key, pin)?.found(pin)
    }

    #[inline]
    fn find_many<'p>(
        &self,
        keys: &[&Key<N>],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, Key<N>, Value>>),
    ) {
        for (batch, keys) in keys.chunks(BATCH).enumerate() {
            self.get_many(keys, pin, |i, seen| {
                found(batch * BATCH + i, seen.and_then(|handle| handle.found(pin)));
            });
        }
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Cuckoo<N, Handled<N>> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        Cuckoo::replace(self, handle)
    }

    fn len(&self) -> usize {
        self.table.len()
    }
}
