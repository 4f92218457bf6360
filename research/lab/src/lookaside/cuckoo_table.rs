//! Our cuckoo table as an index: alone, or with a buffer beside it, over records on the heap; behind a map, over its
//! handles.
//!
//! The table stores locations of 48 bits; here they are addresses. Batches go to [`cuckoo::Table::find_many`], which
//! asks for the lines of all keys before it reads the first.

#![allow(unsafe_code)]

use std::marker::PhantomData;

use cuckoo::{Config, Entries, Growth, Hashes, Location, Table, Upsertion};
use lookaside::index::{Find, SharedDiscard, SharedStore};
use lookaside::{Found, Handle, Pin};
use twox_hash::XxHash3_64;

use super::beside::{Record, Records};
use super::contestant::{Alone, BATCH, Make, Request, batch_of, get_each_pinned, perform_pinned};
use super::items::{Item, Kept, Seen};
use super::record::{Key, Tally, Value};
use crate::measure::epochs::{self, Guard};

/// The table and what its locations stand for.
pub(super) struct Cuckoo<const N: usize, E: Item<N>> {
    table: Table,
    items: PhantomData<E>,
}

/// Items by their addresses.
///
/// Made only by [`Cuckoo`], whose locations are addresses of items, and used by who is pinned.
struct Addresses<E>(PhantomData<E>);

impl<E> Addresses<E> {
    #[inline(always)]
    fn at<const N: usize>(location: Location) -> std::mem::ManuallyDrop<E>
    where
        E: Item<N>,
    {
        // SAFETY: the table has only what was put in by `replace`, which gave the item up for it; whoever reads has
        // pinned before. Only looked at.
        std::mem::ManuallyDrop::new(unsafe { E::from_address(location.get()) })
    }
}

/// Which key an item has.
struct ByKey<const N: usize, E>(Addresses<E>);

impl<const N: usize, E: Item<N>> ByKey<N, E> {
    #[inline(always)]
    fn holds(&self, location: Location, key: &Key<N>) -> bool {
        Addresses::<E>::at(location).key() == key
    }
}

impl<const N: usize, E: Item<N>> Entries for ByKey<N, E> {
    fn hash(&self, location: Location) -> u64 {
        hash(Addresses::<E>::at(location).key())
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
    const ENTRIES: ByKey<N, E> = ByKey(Addresses(PhantomData));

    #[inline(always)]
    fn get<'g, G>(&self, key: &Key<N>, pinned: &'g G) -> Option<Seen<'g, E>> {
        let location = self.table.find(hash(key), |at| Self::ENTRIES.holds(at, key))?;
        // SAFETY: an address of an item, found while it is pinned.
        Some(unsafe { Seen::at(location.get(), pinned) })
    }

    /// `found[i]` becomes the location of `keys[i]`.
    #[inline]
    fn get_many(&self, keys: &[&Key<N>], found: &mut [Option<Location>]) {
        for (keys, found) in keys.chunks(BATCH).zip(found.chunks_mut(BATCH)) {
            let mut hashes = [0; BATCH];
            hashes.iter_mut().zip(keys).for_each(|(hash_of, key)| *hash_of = hash(key));
            let holds = |i: usize, at| Self::ENTRIES.holds(at, keys[i]);
            self.table.find_many(Self::ENTRIES, &hashes[..keys.len()], holds, found);
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

    fn remove(&self, key: &Key<N>) -> Option<E> {
        let _guard = epochs::pin();
        let location = self.table.remove(hash(key), |at| Self::ENTRIES.holds(at, key))?;
        // SAFETY: given up for this address once, and now out of the table.
        Some(unsafe { E::from_address(location.get()) })
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

impl<const N: usize> Alone<N> for Cuckoo<N, Kept<N>> {
    const SHARES_WRITES: bool = true;
    const HAS_BATCHES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        get_each_pinned(keys, |key, guard| self.get(key, guard).map(|record| record.value().read()))
    }

    fn get_batches(&self, keys: &[Key<N>]) -> Tally {
        let guard = epochs::pin();
        let mut tally = Tally::default();
        for keys in keys.chunks(BATCH) {
            let asked = batch_of(keys);
            let mut found = [None; BATCH];
            self.get_many(&asked[..keys.len()], &mut found[..keys.len()]);
            for location in found[..keys.len()].iter() {
                // SAFETY: an address of an item, found while it is pinned.
                let seen = location.map(|at| unsafe { Seen::<Kept<N>>::at(at.get(), &guard) });
                tally.count(seen.map(|record| record.value().read()));
            }
        }
        tally
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        let get = |key: &Key<N>, guard: &Guard| self.get(key, guard).map(|record| record.value().read());
        perform_pinned(requests, get, |request| {
            self.replace(Kept::new(request.key, Value::of(request.record)));
        })
    }
}

// SAFETY: the records are `Kept`, which frees them after all have left who were pinned when they were replaced; and
// with the table.
unsafe impl<const N: usize> Records<N> for Cuckoo<N, Kept<N>> {
    type Value = Value;

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
        let mut locations = [None; BATCH];
        self.get_many(keys, &mut locations[..keys.len()]);
        for (i, location) in locations[..keys.len()].iter().enumerate() {
            // SAFETY: an address of an item, found while it is pinned.
            let seen = location.map(|at| unsafe { Seen::<Kept<N>>::at(at.get(), guard) });
            found(i, seen.map(|seen| seen.record()));
        }
    }

    fn put_record<'g>(&'g self, record: Record<N>, guard: &'g Guard) -> &'g Record<N> {
        let kept = Kept::new(record.0, record.1);
        // SAFETY: an address of an item, looked at while it is pinned, and dropped at the earliest when it is in the
        // table.
        let seen = unsafe { Seen::<Kept<N>>::at(kept.address(), guard) };
        drop(self.replace(kept));
        seen.record()
    }

    fn discard_record(&self, key: &Key<N>) {
        drop(self.remove(key));
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Cuckoo<N, Handle<Key<N>, Value>> {
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
            let mut locations = [None; BATCH];
            self.get_many(keys, &mut locations[..keys.len()]);
            for (i, location) in locations[..keys.len()].iter().enumerate() {
                // SAFETY: an address of an item, found under the map's pin.
                let seen = location.map(|at| unsafe { Seen::<Handle<_, _>>::at(at.get(), pin) });
                found(batch * BATCH + i, seen.and_then(|handle| handle.found(pin)));
            }
        }
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Cuckoo<N, Handle<Key<N>, Value>> {
    fn replace(&self, handle: Handle<Key<N>, Value>) -> Option<Handle<Key<N>, Value>> {
        Cuckoo::replace(self, handle)
    }

    fn len(&self) -> usize {
        self.table.len()
    }
}

impl<const N: usize> SharedDiscard<Key<N>, Key<N>, Value> for Cuckoo<N, Handle<Key<N>, Value>> {
    fn remove(&self, key: &Key<N>) -> Option<Handle<Key<N>, Value>> {
        Cuckoo::remove(self, key)
    }
}
