//! The safe face: a map that owns an index and its entries, with a table in front.
//!
//! ```text
//!    Map ---- index (the user's): handles, found by key
//!     |          |
//!     |          v
//!     |       entries (the map's): hash, key, value
//!     |          ^
//!     +---- Buffer: pointers to the hot ones, found by hash
//! ```
//!
//! A lookup asks the table first; a hit compares the full key and is done. What it does stands in four files:
//!
//! ```text
//!    MapRef::get                           hash the key; is what has this hash of this key?   map
//!     +-- ThreadState::uses_table          is the table to be asked? Counts the lookup        thread_state
//!     +-- ThreadState::find_on_account     counts a miss; what is no miss is a hit            thread_state
//!          +-- HitLines::hit               the line of the hash                               slb
//!               +-- Bucket::hit            slot after slot; warms the one that was hit        bucket
//! ```
//!
//! Between them are four that only hand on, and change for reasons of their own: [`Hashing`] calls the hasher,
//! [`Pinned`] says which thread's state that is, and which table, which `AtomicTable` loads, and [`Found`] is where a
//! pointer leads. `OwnedMap` has the state and the table itself. The monitor is not on the way: it says once for many
//! lookups whether they ask, in two numbers of the state. Nor are the stripes, random numbers, the index and what sums
//! up the counts: only a miss, a full counter, and who asks for counts come there.
//!
//! A miss takes a ticket, asks the index, and admits what it found. Values change by replacement only: a write clears
//! the table, changes the index, and lets go of the old entry, all under the stripe of its key ([`crate::stripes`]), so
//! writes of one key happen one after the other whatever the index does. Where the table has the key, and the index
//! takes part, a write does without the index ([`Store::SUCCESSION`](crate::index::Store::SUCCESSION)). A value of
//! atomics, or with a lock in it, can also be changed where it is found: neither table nor index take notice, and where
//! the table has the key, that is as fast as a lookup.
//!
//! A [`MapRef`] pins the buffer once for as many lookups as one likes: that is what a hit does not pay. What is removed
//! meanwhile is freed after it has gone, or has been [refreshed](MapRef::refresh). A map that is dropped frees all of
//! its entries that nobody holds, before that returns.
//!
//! In batches, lines are asked for before they are needed: those of the table for all keys, then those of the entries;
//! and what the table does not have goes to the index together, which walks while the entries are on their way.

#![allow(unsafe_code)]

mod compound;
mod pin_each;
mod words;

use std::borrow::Borrow;
use std::cell::Cell;
use std::hash::{BuildHasher, Hash};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use equivalent::Equivalent;

use crate::buffer::{Buffer, Write};
use crate::config::{Config, CreateError};
use crate::entry::{
    Dead, Departed, Draft, Ending, Entries, Found, Handle, Pin, Reclaim, Reclaimer, Removed, ends, may_stay,
    prefetch, prefetch_to_succeed,
};
use crate::folding::RandomState;
use crate::hashing::{Hashing, IntoHashing};
use crate::index::{Find, Ordered, Scan, SharedDiscard, SharedStore, View};
use crate::index_id::{IndexId, NoIdLeft};
use crate::lock::RwLock;
use crate::pinned::Pinned;
use crate::shared::SharedBuffer;
use crate::stripes::Ticket;
use crate::thread_state::GROUP;
use crate::words::range as range_of;

pub use compound::{Computed, Mismatch, OccupiedError, Operation};

impl Reclaim for Buffer {
    fn retire(self: Arc<Self>, dead: Dead) {
        // SAFETY: no handle is left, so that nobody who pins from now on comes to one; `forget` is the entry's own.
        // Once.
        unsafe { self.collector.retire(dead.object(), std::ptr::null(), dead.forget) };
        // Pairs with the fence of who drops a map: if that does not see what was put into the bag, this sees that it
        // has gone.
        fence(Ordering::SeqCst);
        if self.maps.load(Ordering::Relaxed) == 0 {
            // Nobody else may come by.
            self.collect();
        }
    }

    unsafe fn forget(&self, dead: Dead) {
        // SAFETY: freed below at the earliest. Who saw a handle of it was pinned, and has left.
        unsafe { dead.pointers() }.for_each(|pointer| Buffer::forget(self, dead.hash, pointer));
        // SAFETY: nobody has a handle, and whoever was about to admit it has left; it is in no table any more, and
        // whoever read it there will have left when this runs. Once. Entries are `Send` and `'static`.
        unsafe { self.collector.retire(dead.object(), std::ptr::null(), dead.free) };
    }
}

/// That there is a map behind a buffer. Dropped behind its index.
#[derive(Debug)]
struct Present(Arc<Buffer>);

impl Present {
    fn at(buffer: &Arc<Buffer>) -> Present {
        buffer.maps.fetch_add(1, Ordering::Relaxed);
        Present(Arc::clone(buffer))
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.maps.fetch_sub(1, Ordering::Relaxed);
        // Pairs with that in `retire`.
        fence(Ordering::SeqCst);
        self.0.collect();
    }
}

/// A map over an index of type `I`, with a table in front; for any number of threads. Where no index is named, it is in
/// the order of its keys.
///
/// ```
/// let map = lookaside::Map::<String, u64>::new();
/// map.insert("rome".to_string(), 753);
/// let reader = map.pin();
/// assert_eq!(reader.get("rome"), Some(&753));
/// assert_eq!(reader.get("remus"), None);
/// ```
pub struct Map<K: 'static, V: 'static, I = RwLock<Ordered<K, V>>, S = RandomState> {
    /// Dropped first.
    _ending: Ending<K, V>,
    index: I,
    /// Dropped behind the index.
    _departed: Departed<K, V>,
    hashing: Hashing<S>,
    id: IndexId,
    /// Whether hashes are neither mixed nor given an id: one question, where most maps have nothing to do.
    hashes_as_is: bool,
    buffer: SharedBuffer,
    reclaimer: Arc<Reclaimer>,
    entries: Entries<K, V>,
    /// Dropped behind the index, whose handles go by the collector.
    _present: Present,
}

impl<K, V, I> Map<K, V, I> {
    /// A map over this index, with a table of its own.
    ///
    /// What the index has already is found, too, if it belongs to this map: nothing does yet.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn with_index(index: I, config: &Config) -> Result<Self, CreateError> {
        Map::with_index_and_hasher(index, config, RandomState::default())
    }
}

impl<K, V, I, S> Map<K, V, I, S> {
    /// A map over this index, with a table of its own, whose keys are hashed so. See [`Map::sharing`].
    ///
    /// # Errors
    /// As [`Map::with_index`].
    pub fn with_index_and_hasher(
        index: I,
        config: &Config,
        hasher: impl IntoHashing<Hasher = S>,
    ) -> Result<Self, CreateError> {
        let buffer = SharedBuffer::for_indexes(config, 1)?;
        Ok(Map::sharing(index, &buffer, hasher).expect("a buffer for one index, which has none"))
    }

    /// A map over this index, behind a table that others may share.
    ///
    /// Any hasher will do that gives different keys different hashes: those of hashers that are not known to be even in
    /// all of their bits are mixed. See [`Hashing`] for what a hash must be.
    ///
    /// # Errors
    /// [`NoIdLeft`] if the buffer was made for fewer indexes.
    pub fn sharing(
        index: I,
        buffer: &SharedBuffer,
        hasher: impl IntoHashing<Hasher = S>,
    ) -> Result<Self, NoIdLeft> {
        let (id, buffer) = (buffer.0.index_id()?, buffer.clone());
        let reclaimer = Reclaimer::of(Arc::clone(&buffer.0) as Arc<dyn Reclaim>, true);
        let present = Present::at(&buffer.0);
        let (ending, departed) = ends(&reclaimer);
        let hashing = hasher.into_hashing();
        Ok(Map {
            _ending: ending,
            index,
            _departed: departed,
            hashes_as_is: !hashing.mixes() && id.is_alone(),
            hashing,
            id,
            buffer,
            reclaimer,
            entries: Entries::default(),
            _present: present,
        })
    }

    /// A reader for this thread. See [`MapRef`].
    #[must_use]
    #[inline(always)]
    pub fn pin(&self) -> MapRef<'_, K, V, I, S> {
        MapRef { map: self, pinned: self.buffer.0.pinned() }
    }

    /// The table in front: for its size, its monitor and its counts.
    #[must_use]
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// What the index shows of itself, for what only it can do: reorganise itself, say.
    ///
    /// The index is not to be had otherwise: a key whose entry was taken out or replaced behind the map's back would
    /// still be found in the table, with its old value.
    #[must_use]
    pub fn view(&self) -> I::Shown<'_>
    where
        I: View,
    {
        self.index.view()
    }
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> Map<K, V, I, S> {
    /// [`MapRef::insert`], pinned for this call.
    pub fn insert(&self, key: K, value: V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V>,
    {
        self.pin().insert(key, value)
    }

    /// [`MapRef::remove`], pinned for this call.
    pub fn remove<Q>(&self, key: &Q) -> Option<Removed<K, V>>
    where
        Q: Hash + ?Sized,
        I: SharedDiscard<Q, K, V>,
    {
        self.pin().remove(key)
    }

    /// The hash of a key as the table sees it.
    #[inline(always)]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        let hash = self.hashing.hash_as_is(key);
        if self.hashes_as_is { hash } else { self.id.on(self.hashing.even(hash)) }
    }

    /// A new entry of this map, that nobody knows of.
    fn handle(&self, key: K, value: V) -> Handle<K, V>
    where
        K: Hash,
    {
        let hash = self.hash(&key);
        Draft::new(key, value, hash, &self.reclaimer).handle()
    }

    /// Entries in the index, as far as it knows.
    pub fn len(&self) -> usize
    where
        I: SharedStore<K, V>,
    {
        self.index.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool
    where
        I: SharedStore<K, V>,
    {
        self.index.is_empty()
    }
}

/// A thread at a map, whose buffer it has pinned: what it has found stays until it is dropped or refreshed.
///
/// Long-lived ones hold back the memory of what others remove: refresh them now and then. One that is forgotten
/// ([`std::mem::forget`]) does so for ever, also when the map has gone, and the table stays with it.
pub struct MapRef<'m, K: 'static, V: 'static, I = RwLock<Ordered<K, V>>, S = RandomState> {
    map: &'m Map<K, V, I, S>,
    pinned: Pinned<'m>,
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> MapRef<'_, K, V, I, S> {
    /// Lets go of what was found, so that what others removed can be freed. While this thread has
    /// another reader of a map behind the same buffer, that holds it still.
    pub fn refresh(&mut self) {
        self.pinned.refresh();
    }

    #[inline(always)]
    fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.map.hash(key)
    }

    #[inline(always)]
    fn token(&self) -> Pin<'_> {
        // SAFETY: the visit has pinned the buffer, and keeps it pinned while it is borrowed: `refresh` needs it
        // mutably. What is retired to the buffer after that is freed after it.
        unsafe { Pin::new(&self.map.reclaimer) }
    }

    /// The entries of the warmest slots with their counters, warmest first, at most so many. Walks over the whole
    /// table.
    #[must_use]
    pub fn hottest(&self, most: usize) -> Vec<(&K, &V, u8)> {
        let hottest = self.map.buffer.0.hottest(most, self.map.id).into_iter();
        // SAFETY: as in `look`: this map's id, and pinned before the table was read.
        let found = hottest.map(|(pointer, degrees)| (unsafe { Found::<K, V>::at(pointer) }, degrees));
        found.map(|(found, degrees)| (found.key(), found.value(), degrees)).collect()
    }

    /// The value of a key, or of what is [`Equivalent`] to one: see [`OwnedMap::get`](crate::OwnedMap::get).
    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        Some(self.find(key)?.value())
    }

    #[inline(always)]
    fn find<Q>(&self, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        // A hit is inlined, and nothing else is: the fewer instructions, the more lookups wait for memory at once.
        if !self.pinned.uses_table(1) {
            return self.search(key);
        }
        let hash = self.hash(key);
        match self.look(hash, key) {
            Some(found) => Some(found),
            None => self.search_and_admit(key, hash),
        }
    }

    #[inline(never)]
    fn search<Q>(&self, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        self.map.index.find(key, &self.token())
    }

    #[inline(never)]
    fn search_and_admit<Q>(&self, key: &Q, hash: u64) -> Option<Found<'_, K, V>>
    where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        let ticket = self.pinned.ticket(hash);
        let found = self.map.index.find(key, &self.token())?;
        self.admit(&ticket, hash, found);
        Some(found)
    }

    /// A key as it was put in, and its value.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        let found = self.find(key)?;
        Some((found.key(), found.value()))
    }

    /// What the table knows of a key.
    #[inline(always)]
    fn look<Q>(&self, hash: u64, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        // SAFETY, here and below: the table holds pointers of entries, of this type under this id; they are freed
        // only after all have left who were pinned when they could be read there.
        let holds = |pointer| {
            // SAFETY: as above.
            let found = unsafe { Found::<K, V>::at(pointer) };
            key.equivalent(found.key())
        };
        // SAFETY: as above.
        self.pinned.find_on_account(hash, holds).map(|pointer| unsafe { Found::at(pointer) })
    }

    #[inline]
    fn admit(&self, ticket: &Ticket, hash: u64, found: Found<'_, K, V>) {
        // An index that lies may find an entry of another hash. It would be forgotten where it is not.
        if found.is_of(hash)
            && let Some(pointer) = found.pointer()
        {
            self.pinned.admit_soon(ticket, hash, pointer);
        }
    }

    /// The values of many keys: `values[i]` becomes that of `keys[i]`. Each is what [`MapRef::get`] could have given
    /// during the call.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'r, Q>(&'r self, keys: &[&Q], values: &mut [Option<&'r V>])
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            if self.pinned.uses_table(keys.len() as u32) {
                self.get_group(keys, values);
            } else {
                // An index that lies may leave a key out, or name one that there is not.
                values.fill(None);
                self.map.index.find_many(keys, &self.token(), |i, found| {
                    values.get_mut(i).into_iter().for_each(|value| *value = found.map(Found::value));
                });
            }
        }
    }

    #[inline]
    fn get_group<'r, Q>(&'r self, keys: &[&Q], values: &mut [Option<&'r V>])
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        // Loaded once: nothing that follows an acquiring load can be kept in a register from before it.
        let lines = self.pinned.table().lines();
        let mut hashes = [0; GROUP];
        for (&key, hash) in keys.iter().zip(&mut hashes) {
            *hash = self.hash(key);
            lines.prefetch(*hash);
        }
        let values = &Cell::from_mut(values).as_slice_of_cells()[..keys.len()];
        let hit = |i: usize, pointer| {
            // SAFETY: as in `look`.
            let found = unsafe { Found::<K, V>::at(pointer) };
            // SAFETY: `find_group` numbers the hashes, of which there are as many as keys, and as values.
            let (key, value) = unsafe { (keys.get_unchecked(i), values.get_unchecked(i)) };
            let same = key.equivalent(found.key());
            if same {
                value.set(Some(found.value()));
            }
            same
        };
        let search = |missed: &[usize]| self.search_missed(keys, &hashes, missed, values);
        self.pinned.find_group(&hashes[..keys.len()], prefetch::<K, V>, hit, search);
    }

    /// Asks the index for those keys of a group that the table did not have.
    fn search_missed<'r, Q>(
        &'r self,
        keys: &[&Q],
        hashes: &[u64],
        missed: &[usize],
        values: &[Cell<Option<&'r V>>],
    ) where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        let mut sought = [keys[0]; GROUP];
        let mut tickets = [const { None }; GROUP];
        for ((&i, key), ticket) in missed.iter().zip(&mut sought).zip(&mut tickets) {
            *key = keys[i];
            *ticket = Some(self.pinned.ticket(hashes[i]));
        }
        let mut found = [None; GROUP];
        // Offered to the table when the index has done: their atomic exchanges would wait for its loads.
        self.map.index.find_many(&sought[..missed.len()], &self.token(), |at, answer| {
            found.get_mut(at).into_iter().for_each(|found| *found = answer);
        });
        for ((&i, found), ticket) in missed.iter().zip(found).zip(&tickets) {
            values[i].set(found.map(Found::value));
            if let (Some(found), Some(ticket)) = (found, ticket) {
                self.admit(ticket, hashes[i], found);
            }
        }
    }

    /// Puts an entry in, and gives back the one that it replaced.
    ///
    /// # Panics
    /// If the key's `Eq`, or its order or hash where the index asks for them, writes to the map: the write is under
    /// way.
    #[doc(alias = "swap")]
    pub fn insert(&self, key: K, value: V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: SharedStore<K, V>,
    {
        self.may_write();
        let hash = self.hash(&key);
        // Its line comes while the entry is made.
        self.pinned.prefetch(hash);
        let draft = Draft::new(key, value, hash, &self.map.reclaimer);
        let (write, known) = self.write_over(hash, draft.key());
        self.store(hash, draft, write, known, |_| {}).map(Removed)
    }

    /// Puts an entry in if there is one of this key already, and gives back the one that it replaced; else gives back
    /// what it was given.
    ///
    /// # Errors
    /// The key and the value, if the map has no such key.
    pub fn replace(&self, key: K, value: V) -> Result<Removed<K, V>, (K, V)>
    where
        K: Hash + Eq,
        I: SharedStore<K, V> + Find<K, K, V>,
    {
        self.may_write();
        let hash = self.hash(&key);
        let (write, known) = self.write_over(hash, &key);
        if known.is_none() && self.map.index.find(&key, &self.token()).is_none() {
            return Err((key, value));
        }
        // An index that found the key and then has none to give back lies; the new one is as good as an answer.
        let mut share = None;
        let draft = Draft::new(key, value, hash, &self.map.reclaimer);
        let old = self.store(hash, draft, write, known, |new| share = Some(new.clone()));
        Ok(Removed(old.or(share).expect("one of the two")))
    }

    /// Puts a new entry in, after `show` has seen it if that goes by the index, and ends the write; what it replaced.
    #[inline(always)]
    fn store(
        &self,
        hash: u64,
        draft: Draft<K, V>,
        write: Write<'_>,
        known: Option<Found<'_, K, V>>,
        show: impl FnOnce(&Handle<K, V>),
    ) -> Option<Handle<K, V>>
    where
        I: SharedStore<K, V>,
    {
        let handle = match self.succeed(known, draft, &write) {
            Ok(old) => return Some(old),
            Err(draft) => draft.handle(),
        };
        show(&handle);
        let pointer = handle.pointer();
        let old = self.map.index.replace(handle);
        // An index that lies may give back the very one, which the table is about to have.
        let others = old.as_ref().filter(|old| old.pointer() != pointer);
        let newest = self.gave_back(others, hash, &write);
        // Should the index have dropped it, it is forgotten and freed only when this thread has left.
        if let Some(pointer) = pointer {
            write.put(pointer);
        }
        drop(write);
        newest.or(old)
    }

    /// Begins a write of this key, and finds its entry in the table if it may be succeeded.
    #[inline(always)]
    fn write_over(&self, hash: u64, key: &K) -> (Write<'_>, Option<Found<'_, K, V>>)
    where
        K: Eq,
        I: SharedStore<K, V>,
    {
        if !(I::SUCCESSION && may_stay::<V>()) {
            return (self.pinned.write(hash), None);
        }
        // On its way while the stripe is taken.
        if let Some((_, pointer)) = self.pinned.peek(hash) {
            prefetch_to_succeed::<K, V>(pointer);
        }
        let mut known = None;
        let write = self.pinned.write_over(hash, |pointer| {
            // SAFETY: as in `look`.
            let found = unsafe { Found::<K, V>::at(pointer) };
            let same = found.key() == key && found.is_of(hash);
            if same {
                found.prefetch_first();
                known = Some(found);
            }
            same
        });
        (write, known)
    }

    /// Lets the new entry succeed the one that the table had, and gives that back; or gives the new one back, for the
    /// index.
    #[inline(always)]
    fn succeed(
        &self,
        known: Option<Found<'_, K, V>>,
        draft: Draft<K, V>,
        write: &Write<'_>,
    ) -> Result<Handle<K, V>, Draft<K, V>> {
        let Some(known) = known else { return Err(draft) };
        let pointer = draft.pointer();
        // SAFETY: found by the write, of whose hash both are, and of this map by the id. Readers have pinned the
        // buffer; users get what is given back as a `Removed`.
        let old = unsafe { known.succeed(draft, write.capacity(), Some(&self.pinned.guard().0)) }?;
        if let Some(pointer) = pointer {
            write.put(pointer);
        }
        self.pinned.succeeded();
        Ok(old)
    }

    /// The index gave this back to a write of this hash. Its successor, if it has one, is what was replaced. Users get
    /// either as a [`Removed`], which is no handle to clone.
    fn gave_back(&self, old: Option<&Handle<K, V>>, hash: u64, _write: &Write<'_>) -> Option<Handle<K, V>> {
        let old = old?;
        // SAFETY: given back to that write, which cleared the table when it began; readers have pinned the buffer; of
        // neither will another handle be made.
        unsafe {
            let newest = old.successor(hash, &self.map.reclaimer);
            old.forgotten(hash, &self.map.reclaimer, &self.pinned.guard().0);
            newest
        }
    }

    /// Takes an entry out.
    pub fn remove<Q>(&self, key: &Q) -> Option<Removed<K, V>>
    where
        Q: Hash + ?Sized,
        I: SharedDiscard<Q, K, V>,
    {
        self.may_write();
        let hash = self.hash(key);
        let write = self.pinned.write(hash);
        let old = self.map.index.remove(key);
        let newest = self.gave_back(old.as_ref(), hash, &write);
        drop(write);
        newest.or(old).map(Removed)
    }

    /// Makes the table forget a key: to be called after the index has changed the entry of it on its own, as one does
    /// that lets entries go when it is full.
    pub fn forget<Q: Hash + ?Sized>(&self, key: &Q) {
        self.may_write();
        drop(self.pinned.write(self.hash(key)));
    }

    /// The entries of the keys in a range, in the index's order, as from the standard library's maps; none where the
    /// range ends before it begins.
    ///
    /// Goes to the index as it is read on: a few entries at first, then more at a time, with no lock held in between.
    /// What others put in meanwhile may be among them.
    ///
    /// ```
    /// let map: lookaside::Map<u64, u64> = (0..100).map(|number| (number, number * number)).collect();
    /// let reader = map.pin();
    /// assert_eq!(reader.range(3..).map(|(_, square)| *square).take(2).collect::<Vec<_>>(), [9, 16]);
    /// assert_eq!(reader.range(2..=3).count(), 2);
    /// ```
    pub fn range<Q, R>(&self, range: R) -> impl Iterator<Item = (&K, &V)>
    where
        Q: ?Sized,
        K: Borrow<Q>,
        R: RangeBounds<Q>,
        I: Scan<Q, K, V>,
    {
        range_of(&self.map.index, self.token(), range)
    }

    /// Shows the entries between two bounds, in order, until `visit` breaks. Goes to the index.
    ///
    /// The index is in the middle of its search while `visit` runs: it must not change the map. To take out what is
    /// found, collect the keys first.
    ///
    /// # Panics
    /// If `visit` changes an index under a [`RwLock`](crate::RwLock), which this thread has locked. An index with locks
    /// of its own may wait for ever.
    pub fn scan<'r, Q>(
        &'r self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        mut visit: impl FnMut(&'r K, &'r V) -> ControlFlow<()>,
    ) where
        Q: ?Sized,
        I: Scan<Q, K, V>,
    {
        let token: Pin<'r> = self.token();
        self.map.index.scan(from, to, &token, &mut |found| visit(found.key(), found.value()));
    }
}
