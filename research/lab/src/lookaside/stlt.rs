//! STLT-SW before an index: the hardware's table kept by software alone ([`stlt_sw`]), for one thread.
//!
//! ```text
//!    key -- hash --> row: the address of an entry's key -- the same key --> its value, at a fixed distance
//!                      \- none, or another's: OwnedMap::get_key_value -> insert
//! ```
//!
//! The records are those of a map of one owner, whose own table is one line, so that it answers next to nothing: a
//! search costs that line and its hash more than the index's own, some ten nanoseconds of the few lookups that STLT-SW
//! does not answer. With it, whatever stands behind a map stands behind STLT-SW too, its entries the same.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::hash::BuildHasher;

use lookaside::index::{Find, SharedStore, Store};
use lookaside::{Config, Counts, CreateError, Found, Handle, OwnedMap, Pin, RandomState, Verdict};
use parking_lot::Mutex;
use stlt_sw::Table;

use super::contestant::{Abilities, Contestant, Make, OwnedIndex};
use super::record::{Key, Value};
use super::visit::{Answer, BATCH, Lot, Request, Visit, count_many, in_turn};
use crate::subject::{Call, Tally};

/// An index that threads could share, for one.
pub(super) struct OfOne<I>(I);

impl<I: Make> Make for OfOne<I> {
    fn make(records: usize) -> Result<Self, String> {
        I::make(records).map(OfOne)
    }
}

impl<const N: usize, I: Find<Key<N>, Key<N>, Value>> Find<Key<N>, Key<N>, Value> for OfOne<I> {
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.0.find(key, pin)
    }
}

impl<const N: usize, I: SharedStore<Key<N>, Value>> Store<Key<N>, Value> for OfOne<I> {
    fn replace(&mut self, handle: Handle<Key<N>, Value>) -> Option<Handle<Key<N>, Value>> {
        self.0.replace(handle)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// An index and its records, behind STLT-SW.
pub(super) struct BehindStlt<const N: usize, I> {
    rows: Table,
    ways: usize,
    hasher: RandomState,
    /// How far an entry's value lies behind its key; nothing before the first was seen.
    distance: Cell<usize>,
    hits: Cell<u64>,
    misses: Cell<u64>,
    map: OwnedMap<Key<N>, Value, I>,
}

impl<const N: usize, I: OwnedIndex<N>> BehindStlt<N, I> {
    /// Of this index, which is empty; so many bytes of rows, and so many to a set.
    ///
    /// # Errors
    /// In words, that there is no such table.
    pub(super) fn new(index: I, bytes: usize, ways: usize) -> Result<Self, String> {
        /// A line.
        const SMALLEST: usize = 64;
        let mut map =
            OwnedMap::with_index(index, &Config::with_size(SMALLEST)).map_err(|error| error.to_string())?;
        map.monitor(false);
        Ok(BehindStlt {
            rows: Table::with_bytes(bytes, ways).map_err(|refused| refused.to_string())?,
            ways,
            hasher: RandomState::default(),
            distance: Cell::new(0),
            hits: Cell::new(0),
            misses: Cell::new(0),
            map,
        })
    }

    /// The key and the value of the entry whose key is at this address.
    #[inline(always)]
    fn at(&self, address: u64) -> (&Key<N>, &Value) {
        let key = std::ptr::with_exposed_provenance::<Key<N>>(address as usize);
        let value = std::ptr::with_exposed_provenance::<Value>(address as usize + self.distance.get());
        // SAFETY: only `search` gives the rows addresses: of the keys of entries that the map had, with values behind
        // them at this distance, which it has checked. An entry goes only when its key is written or the map is
        // dropped. Writes are made by `set` alone, which has the key forgotten first; nothing that was found is held
        // then, for it borrows this mutably.
        unsafe { (&*key, &*value) }
    }

    /// Asks for the lines of an entry that a lookup reads.
    #[inline(always)]
    fn fetch(address: u64) {
        let entry = std::ptr::with_exposed_provenance::<u8>(address as usize);
        pages::prefetch(entry);
        pages::prefetch(entry.wrapping_add(64));
        pages::prefetch(entry.wrapping_add(size_of::<Key<N>>() + size_of::<Value>() - 1));
    }

    /// The value, if the row's entry is that of the key.
    #[inline(always)]
    fn known(&self, row: Option<u64>, key: &Key<N>) -> Option<&Value> {
        let (held, value) = self.at(row?);
        if held != key {
            return None;
        }
        self.hits.set(self.hits.get() + 1);
        Some(value)
    }

    /// Asks the map, and keeps where the entry is.
    fn search(&self, hash: u64, key: &Key<N>) -> Option<&Value> {
        self.misses.set(self.misses.get() + 1);
        let (held, value) = self.map.get_key_value(key)?;
        let held = std::ptr::from_ref(held).expose_provenance();
        let distance = std::ptr::from_ref(value).expose_provenance().wrapping_sub(held);
        let before = self.distance.replace(distance);
        assert!(before == 0 || before == distance, "entries of one type are alike");
        self.rows.insert(hash, held as u64);
        Some(value)
    }
}

impl<const N: usize, I: OwnedIndex<N>> Visit<N> for BehindStlt<N, I> {
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        let hash = self.hasher.hash_one(key);
        match self.known(self.rows.get(hash), key) {
            Some(value) => Some(see(value)),
            None => self.search(hash, key).map(see),
        }
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        count_many(keys, tally, |keys, values| {
            let mut hashes = [0; BATCH];
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = self.hasher.hash_one(key);
                self.rows.prefetch(*hash);
            }
            let mut rows = [None; BATCH];
            for (row, &hash) in rows.iter_mut().zip(&hashes[..keys.len()]) {
                *row = self.rows.get(hash);
                row.iter().for_each(|&address| Self::fetch(address));
            }
            for (i, (key, value)) in keys.iter().zip(values).enumerate() {
                *value = match self.known(rows[i], key) {
                    Some(value) => Some(value),
                    None => self.search(hashes[i], key),
                };
            }
        });
    }

    fn set(&mut self, request: &Request<N>) {
        self.rows.remove(self.hasher.hash_one(request.key));
        self.map.insert(request.key, Value::of(request.record));
    }
}

impl<const N: usize, I: OwnedIndex<N>> Contestant<N> for Mutex<BehindStlt<N, I>> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut *self.lock(), call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities::SOLE
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        let this = self.get_mut();
        let refused = |_| CreateError::TooSmall { size: bytes, least: 16 * this.ways };
        this.rows = Table::with_bytes(bytes, this.ways).map_err(refused)?;
        Ok(())
    }

    /// There is no monitor: the table is on.
    fn told(&self) -> Option<(Counts, Verdict)> {
        let this = self.lock();
        let mut counts = Counts::default();
        (counts.hits, counts.misses) = (this.hits.get(), this.misses.get());
        Some((counts, this.map.verdict()))
    }
}
