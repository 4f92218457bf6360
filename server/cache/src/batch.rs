//! Requests that come together: what each of them would do for itself is done once for all.
//!
//! ```text
//!   begin     pin; ask for the index lines of all keys, then for the items that are there
//!   look up   those whose turn it is: what was seen is the answer, if nothing has been written since; and else if it
//!               is there still
//!   write     one after the other, in order, each as ever, but:
//!               chunks are taken for the rest of the batch at once, under one lock of their class
//!               the session stays pinned
//!               what has left the index waits here
//!   end       what waits goes to limbo: one stamp and one lock of its class for all; unpin; give back spare chunks
//! ```
//!
//! A batch holds back the memory of what leaves the cache as any pin does, for a few microseconds. Whoever has to wait
//! for memory lets go first, as he would have to wait for himself ([`Session::let_go`]): so in a cache that is short of
//! memory writes are what they are without a batch.
//!
//! What waits here is stamped later than it left the index, which is safe: a stamp may be too late, never too early.
//!
//! What was seen of a key is no answer any more behind a write of the batch, not even behind that of another key: other
//! connections may have written both keys since, in the other order. The key is looked at again, in a line that is
//! there.

#![allow(unsafe_code)]

use cuckoo::{Location, Sighting, Spot};

use crate::allocation::StoreError;
use crate::departure::Departure;
use crate::index::GROUP;
use crate::item::{Item, Outline};
use crate::open_batch::Announced;
use crate::policy::Policy;
use crate::session::{Hit, Pinned, Session};
use crate::shared::Engine;
use crate::unfinished::Unfinished;

/// An item, and where in the index it is, if it was seen at once.
pub(crate) type Found<'p, P> = (Hit<'p, P>, Option<Spot>);

impl<P: Policy> Session<P> {
    /// Begins a batch of lookups and writes of these keys, so many of them writes, by asking for the memory that they
    /// will touch, their cache misses overlapping: of no more than [`GROUP`], for what was asked for first is to be
    /// there still when it is used. Until [`end_batch`](Session::end_batch), or for a few times as many requests,
    /// [lookups](Pinned::get_announced) and writes of this session cost less, and hold back memory as a pin does. Who
    /// may wait for those who are pinned ([`Cache::flush`](crate::engine::Cache::flush), a housekeeper) waits for the
    /// batch to end: this thread ends it first.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, Entry, Verb};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// let keys: [&[u8]; 3] = [b"a", b"b", b"a"];
    /// session.begin_batch(&keys, 3);
    /// for key in keys {
    ///     session.store(Verb::Set, Entry::new(key), b"value")?;
    /// }
    /// session.end_batch();
    /// assert_eq!(cache.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begin_batch(&mut self, keys: &[&[u8]], writes: usize) {
        let (engine, batch) = (&*self.engine, &mut self.batch);
        // Pinned before anything is looked for, so that what is found may be read.
        if !batch.open(keys.len().min(GROUP), writes) {
            self.participant.pin();
        }
        let Announced { hashes, seen, len } = &mut batch.keys;
        let (hashes, seen) = (&mut hashes[..*len], &mut seen[..*len]);
        // Behind a lookaside buffer lookups ask for what they need themselves: most end there.
        if writes == keys.len() || engine.front.is_none() {
            engine.ask_for(keys, hashes, seen);
        } else {
            engine.hash_all(keys, hashes);
            seen.fill(Sighting::Unsettled);
        }
    }

    /// Asks for the memory that a lookup or a write of each of these keys will touch, their cache misses overlapping:
    /// of no more than [`GROUP`], for what was asked for first is to be there still when it is used. Nothing else
    /// happens, so that keys which nobody looks up afterwards do no harm. Behind a lookaside buffer it does nothing,
    /// for most lookups end there.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// session.prefetch(&[b"a", b"b"]);
    /// assert!(session.pin().get(b"a").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn prefetch(&self, keys: &[&[u8]]) {
        if self.engine.front.is_none() {
            let asked = keys.len().min(GROUP);
            let mut seen = [Sighting::Unsettled; GROUP];
            self.engine.ask_for(keys, &mut [0; GROUP][..asked], &mut seen[..asked]);
        }
    }

    /// Starts an item, as the engine does; in a batch with a chunk that it has taken beforehand.
    pub(crate) fn begin_item(&mut self, outline: &Outline<'_>) -> Result<Unfinished, StoreError> {
        if self.batch.is_open.get() {
            if let Some(at) = self.spare_chunk(outline) {
                // SAFETY: allocated for this session, in the class for items of this size.
                return Ok(unsafe { Unfinished::begin(&self.engine.arena, at, outline, P::NEWCOMER) });
            }
            self.let_go();
        }
        self.engine.begin(outline, &self.counters)
    }

    /// Writes an item that is not finished yet, as the engine does; in a batch into a chunk that it has taken
    /// beforehand.
    pub(crate) fn write_item(
        &mut self,
        outline: &Outline<'_>,
        value: &[u8],
    ) -> Result<Unfinished, StoreError> {
        if self.batch.is_open.get() {
            if let Some(at) = self.spare_chunk(outline) {
                // SAFETY: allocated for this session, in the class for items of this size; not chained.
                return Ok(unsafe { Unfinished::whole(&self.engine.arena, at, outline, P::NEWCOMER, value) });
            }
            self.let_go();
        }
        if !outline.is_chained() {
            return self.engine.write(outline, value, &self.counters);
        }
        let mut unfinished = self.engine.begin(outline, &self.counters)?;
        match self.engine.append(&mut unfinished, value, &self.counters) {
            Ok(()) => Ok(unfinished),
            Err(error) => {
                self.engine.discard(&unfinished);
                Err(error)
            }
        }
    }

    fn spare_chunk(&mut self, outline: &Outline<'_>) -> Option<Location> {
        // What is too large for a chunk, or for any item, is not written here.
        let bytes = outline.unchained_size();
        if bytes > self.engine.config.largest_item {
            return None;
        }
        let class = self.engine.sizes.class_for(bytes)?;
        let expected = self.batch.expected;
        self.batch.expected = expected.saturating_sub(1);
        if self.batch.class != class {
            self.give_back_spare();
            self.batch.class = class;
        }
        if self.batch.spare.is_empty() {
            self.engine.take_ahead(class, expected.clamp(1, GROUP), &mut self.batch.spare);
        }
        self.batch.spare.pop()
    }
}

impl<P: Policy> Engine<P> {
    /// Asks for the index lines of the first keys and then for the items that are there: their hashes, and where the
    /// items seemed to be.
    #[inline(always)]
    fn ask_for(&self, keys: &[&[u8]], hashes: &mut [u64], seen: &mut [Sighting]) {
        self.hash_all(keys, hashes);
        let entries = self.entries(self.flushes.generation());
        self.table.sight_many(entries, hashes, seen);
    }

    #[inline]
    fn hash_all(&self, keys: &[&[u8]], hashes: &mut [u64]) {
        for (hash, key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash(key);
        }
    }
}

impl<P: Policy> Pinned<'_, P> {
    /// Sends an item that has left the index to limbo, at the end of the batch if there is one.
    ///
    /// # Safety
    /// The caller has taken this location out of the index: nobody else will retire it.
    pub(crate) unsafe fn retire(&self, at: Location) {
        let batch = self.batch();
        if batch.is_open.get() {
            // SAFETY: the caller's, until it is in limbo.
            let chunks = unsafe { self.engine().count_out(at, self.counters()) };
            batch.retired.borrow_mut().push((at, chunks));
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.engine().retire(at, Departure::Asked, self.counters()) };
        }
    }

    /// The hash of a key, and where its item is, dead or alive, if it was seen at once.
    // Always: what it returns would be written in pieces and read as a whole, which waits for the writes.
    #[inline(always)]
    pub(crate) fn spot(&self, key: &[u8]) -> (u64, Option<Spot>) {
        let engine = self.engine();
        let entries = engine.entries(self.moment().generation);
        let hash = engine.hash(key);
        let spot = match self.batch().announced(hash) {
            // In the index now, under this pin, so that it may be read.
            Some(Some(spot)) if engine.table.is_at(spot) && entries.holds(spot.location(), key) => Some(spot),
            Some(None) => None,
            _ => engine.table.spot(hash, |at| entries.holds(at, key)),
        };
        (hash, spot)
    }

    /// The hash of a key, and its item, dead or alive, and where that is, if it was seen at once.
    #[inline]
    pub(crate) fn look(&self, key: &[u8]) -> (u64, Option<Found<'_, P>>) {
        let (hash, spot) = self.spot(key);
        let found = match spot {
            Some(spot) => {
                // SAFETY: found in the index while pinned, for as long as `self` is borrowed.
                let item = unsafe { Item::at(&self.engine().arena, spot.location()) };
                Some((self.hit(item, hash), Some(spot)))
            }
            None => self.find(key, hash).map(|hit| (hit, None)),
        };
        (hash, found)
    }

    /// Takes exactly this item out of the index, which somebody has asked for, and retires it; false if it is not
    /// there. It was found in the index under this pin, on that spot if any: no other item can have come to its
    /// location.
    pub(crate) fn remove(&self, hash: u64, at: Location, spot: Option<Spot>) -> bool {
        let engine = self.engine();
        let removed = spot.is_some_and(|spot| engine.take_out_on(spot, hash))
            || engine.take_out(hash, |found| found == at);
        if removed {
            // SAFETY: taken out by us, just now.
            unsafe { self.retire(at) };
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use crate::StoreError;
    use crate::engine::{Cache, Config, Entry, Stored, Verb};

    #[test]
    fn an_item_may_be_no_larger_in_a_batch() {
        let config = Config { largest_item: 1000, ..Config::with_limit(64 << 20) };
        let cache: Cache = Cache::new(config).expect("a cache");
        let mut session = cache.session();
        session.store(Verb::Set, Entry::new(b"large"), b"old").expect("room");
        // Of the largest size, so that its class has chunks to be taken ahead.
        let largest = 1000 - 8 - b"small".len();
        session.begin_batch(&[b"small", b"large"], 2);
        let stored = session.store(Verb::Set, Entry::new(b"small"), &vec![1; largest]);
        assert!(matches!(stored, Ok(Stored::Stored(_))), "{stored:?}");
        let stored = session.store(Verb::Set, Entry::new(b"large"), &vec![1; largest + 1]);
        assert_eq!(stored, Err(StoreError::TooLarge));
        session.end_batch();
        assert!(session.pin().get(b"large").is_none(), "a set that fails leaves nothing");
        assert_eq!(cache.len(), 1);
    }

    /// Where items are replaced and no more of them come, a class has as few chunks left for ever.
    #[test]
    fn a_batch_takes_its_chunks_at_once_however_few_its_class_has_left() {
        let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
        let mut session = cache.session();
        let keys: Vec<[u8; 8]> = (0..10_000_u64).map(u64::to_be_bytes).collect();
        let set = |session: &mut crate::engine::Session, key: &[u8]| {
            session.store(Verb::Set, Entry::new(key), &[1; 32]).expect("room");
        };
        let class = session.engine.sizes.class_for(8 + 8 + 32).expect("a class");
        let per_page = session.engine.class(class).per_page();
        for stored in 1..keys.len() {
            set(&mut session, &keys[stored - 1]);
            let is_near_the_end_of_a_page = stored > 3 * per_page && stored % per_page > per_page - 80;
            if is_near_the_end_of_a_page {
                let group: Vec<&[u8]> = keys[..16].iter().map(|key| &key[..]).collect();
                session.begin_batch(&group, 16);
                set(&mut session, group[0]);
                assert_eq!(session.batch.spare.len(), 15, "of a batch's sixteen, after {stored} items");
                group[1..].iter().for_each(|key| set(&mut session, key));
                session.end_batch();
            }
        }
    }
}
