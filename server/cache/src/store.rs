//! The write path: storing, changing and deleting.
//!
//! ```text
//! store:
//!   write the item into chunks of its own           not pinned: this may have to wait its turn for memory
//!   pin
//!   give it a stamp and the current generation
//!   put its location into the index                 as the verb says: always, if absent, if present, if unchanged
//!   retire the item that was there, or discard the new one
//!   unpin
//! ```
//!
//! An item is never changed once it is in the index; a value made from another (append, prepend, increment) is a new
//! item that replaces the old one if that still has the stamp it had when it was read, and else all over again. Both
//! the index's replacement and the stamp are needed: the location alone could have been reused for the same key
//! meanwhile.

#![allow(unsafe_code)]

use cuckoo::{Insertion, Location, TooFull, Upsertion};

use crate::allocation::StoreError;
use crate::counters::Counters;
use crate::departure::Departure;
use crate::item::{Expiry, Item, Outline};
use crate::policy::Policy;
use crate::session::{Hit, Pinned, Session};
use crate::shared::Engine;
use crate::stamp::Stamps;
use crate::unfinished::Unfinished;

/// Neighbours evicted from the index to make room for one key.
const MOST_NEIGHBOURS: usize = 64;
/// A scratch buffer larger than this is given back after use.
const SCRATCH_KEPT: usize = 64 << 10;

/// Under which condition an item is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// In any case.
    Set,
    /// If the key has no item.
    Add,
    /// If the key has one.
    Replace,
    /// Behind the value of the item that is there, which keeps its flags and expiry.
    Append,
    /// Before it.
    Prepend,
    /// If the key's item still has this number ([`Hit::cas`]).
    CompareAndSwap(u64),
}

/// What became of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The item is in the cache, and has this number.
    Stored(u64),
    /// The verb's condition did not hold.
    NotStored,
    /// A compare-and-swap found another item than expected.
    Exists,
    /// A compare-and-swap found nothing.
    NotFound,
}

/// What an item is stored with, but for its value.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The key: 1 to 250 bytes.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it dies.
    pub expiry: Expiry,
}

impl<'a> Entry<'a> {
    /// An entry with no flags that never dies.
    #[must_use]
    pub fn new(key: &'a [u8]) -> Self {
        Entry { key, flags: 0, expiry: Expiry::Never }
    }

    pub(crate) fn outline(&self, value_len: usize) -> Outline<'a> {
        Outline { key: self.key, flags: self.flags, expiry: self.expiry, expiry_to_come: false, value_len }
    }
}

/// How an update of an existing item ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated<R> {
    /// The new value is in the cache, under this number.
    Updated(u64),
    /// The key has no item.
    NotFound,
    /// The function that was to make the new value declined.
    Declined(R),
}

/// Whether an update makes another item of it for compare-and-swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Identity {
    New,
    Kept,
}

impl<P: Policy> Session<P> {
    /// Stores a value.
    ///
    /// # Errors
    /// [`StoreError`]; if it was a `Set`, the key has no item then, rather than a stale one.
    ///
    /// # Panics
    /// If the key is empty or longer than 250 bytes.
    pub fn store(&mut self, verb: Verb, entry: Entry<'_>, value: &[u8]) -> Result<Stored, StoreError> {
        if let Verb::Append | Verb::Prepend = verb {
            return self.extend(verb, entry.key, value);
        }
        let mut unfinished = match self.engine.begin(&entry.outline(value.len()), &self.counters) {
            Ok(unfinished) => unfinished,
            Err(error) => return Err(self.fail(verb, entry.key, error)),
        };
        if let Err(error) = self.engine.append(&mut unfinished, value, &self.counters) {
            self.engine.discard(&unfinished);
            return Err(self.fail(verb, entry.key, error));
        }
        self.commit_unfinished(verb, entry.key, &unfinished)
    }

    /// Changes the value of the item of `key` to what `make` writes into the buffer it is given; flags and expiry stay.
    ///
    /// `make` may be called again if the item is changed by others meanwhile, and must not depend on how often.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, Entry, Updated, Verb};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// session.store(Verb::Set, Entry::new(b"n"), b"41")?;
    /// let outcome = session.update(b"n", |item, new| {
    ///     let n: u64 = std::str::from_utf8(&item.to_vec()).unwrap().parse().map_err(|_| "not a number")?;
    ///     new.extend((n + 1).to_string().bytes());
    ///     Ok::<(), &str>(())
    /// })?;
    /// assert!(matches!(outcome, Updated::Updated(_)));
    /// assert_eq!(session.pin().get(b"n").unwrap().to_vec(), b"42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreError`]: the item is as it was.
    pub fn update<R>(
        &mut self,
        key: &[u8],
        mut make: impl FnMut(&Hit<'_, P>, &mut Vec<u8>) -> Result<(), R>,
    ) -> Result<Updated<R>, StoreError> {
        self.remake(key, None, Identity::New, &mut make)
    }

    /// Deletes the item of `key`, and says whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let hash = self.engine.hash(key);
        let pinned = self.pin();
        loop {
            let Some(hit) = pinned.find(key, hash) else { return false };
            pinned.meet(&hit);
            let (engine, counters, at) = (pinned.engine(), pinned.counters(), hit.item.location());
            let dead = engine.judge().is_dead(hit.item);
            let removed = if dead {
                engine.remove_if_still(hash, at, Departure::Reclaimed, counters)
            } else {
                engine.remove(hash, at, Departure::Asked, counters)
            };
            if removed {
                return !dead;
            }
            // It has gone meanwhile, or was dead and has been touched, or another one made from it has taken its place,
            // which is to go too: look again.
        }
    }

    /// Gives the item of `key` another expiry, and says whether there was one. Its number stays.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`]: an item without expiry is copied to get one, and there was no memory for it.
    pub fn touch(&mut self, key: &[u8], expiry: Expiry) -> Result<bool, StoreError> {
        let hash = self.engine.hash(key);
        let pinned = self.pin();
        let engine = pinned.engine();
        let mut touched = false;
        loop {
            let Some(hit) = pinned.find_alive(key, hash) else { return Ok(touched) };
            pinned.meet(&hit);
            if !hit.item.set_expiry(expiry) {
                break;
            }
            let at = hit.item.location();
            // An item made from this one at the same time carries over the old expiry or the new one. Putting the
            // location in its own place takes the lock that the other one's goes through: if it succeeds, the other one
            // comes later and sees the new expiry; if not, the other one is there, and gets it too.
            if engine.table.replace(hash, at, at) {
                // Noted after it was changed: see `Page::expires_at`.
                engine.note_expiry(at, expiry);
                return Ok(true);
            }
            touched = true;
        }
        drop(pinned);
        let copy = |hit: &Hit<'_, P>, new: &mut Vec<u8>| {
            hit.pieces().for_each(|piece| new.extend_from_slice(piece));
            Ok::<(), std::convert::Infallible>(())
        };
        let outcome = self.remake(key, Some(expiry), Identity::Kept, &mut { copy })?;
        Ok(matches!(outcome, Updated::Updated(_)))
    }

    /// A store has failed: what it was to replace goes too, if it was a `Set`.
    #[cold]
    pub(crate) fn fail(&mut self, verb: Verb, key: &[u8], error: StoreError) -> StoreError {
        if verb == Verb::Set {
            self.delete(key);
        }
        error
    }

    pub(crate) fn extend(&mut self, verb: Verb, key: &[u8], piece: &[u8]) -> Result<Stored, StoreError> {
        let outcome = self.update(key, |hit, new| {
            if verb == Verb::Prepend {
                new.extend_from_slice(piece);
            }
            hit.pieces().for_each(|old| new.extend_from_slice(old));
            if verb == Verb::Append {
                new.extend_from_slice(piece);
            }
            Ok::<(), std::convert::Infallible>(())
        })?;
        Ok(match outcome {
            Updated::Updated(number) => Stored::Stored(number),
            Updated::NotFound => Stored::NotStored,
            Updated::Declined(never) => match never {},
        })
    }

    fn remake<R>(
        &mut self,
        key: &[u8],
        new_expiry: Option<Expiry>,
        identity: Identity,
        make: &mut impl FnMut(&Hit<'_, P>, &mut Vec<u8>) -> Result<(), R>,
    ) -> Result<Updated<R>, StoreError> {
        let hash = self.engine.hash(key);
        let mut scratch = std::mem::take(&mut self.scratch);
        let outcome = loop {
            scratch.clear();
            let pinned = self.pin();
            let Some(hit) = pinned.find_alive(key, hash) else { break Ok(Updated::NotFound) };
            if let Err(reason) = make(&hit, &mut scratch) {
                break Ok(Updated::Declined(reason));
            }
            let old_stamp = hit.item.stamp();
            let outline = Outline {
                key,
                flags: hit.flags(),
                expiry: new_expiry.unwrap_or(hit.expiry()),
                // What can be touched in place can be while its copy is made, which is to have room for it.
                expiry_to_come: hit.item.has_expiry_field(),
                value_len: scratch.len(),
            };
            let carries = new_expiry.is_none();
            drop(pinned);
            self.copied += scratch.len() as u64;
            match self.replace_if_unchanged(&outline, hash, &scratch, old_stamp, identity, carries) {
                Ok(Some(number)) => break Ok(Updated::Updated(number)),
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        if scratch.capacity() <= SCRATCH_KEPT {
            self.scratch = scratch;
        }
        outcome
    }

    /// Puts a new item in the place of the one with `old_stamp`; `None` if that is not there any more, or can be
    /// touched in place and the new one cannot. If it carries over the old one's expiry, that is what a touch has made
    /// of it meanwhile.
    fn replace_if_unchanged(
        &mut self,
        outline: &Outline<'_>,
        hash: u64,
        value: &[u8],
        old_stamp: u32,
        identity: Identity,
        carries_expiry: bool,
    ) -> Result<Option<u64>, StoreError> {
        let mut unfinished = self.engine.begin(outline, &self.counters)?;
        if let Err(error) = self.engine.append(&mut unfinished, value, &self.counters) {
            self.engine.discard(&unfinished);
            return Err(error);
        }
        let pinned = self.pin();
        let engine = pinned.engine();
        let stamp = if identity == Identity::Kept { old_stamp } else { engine.stamps.next(hash) };
        unfinished.finish(&engine.arena, stamp, pinned.moment().generation);
        let at = unfinished.first();
        // SAFETY: ours until it is published, and last looked at just before.
        let new = unsafe { Item::at(&engine.arena, at) };
        let old = pinned
            .find_alive(outline.key, hash)
            .filter(|hit| hit.item.stamp() == old_stamp)
            .filter(|hit| new.has_expiry_field() || !hit.item.has_expiry_field())
            .map(|hit| hit.item);
        let carry = |old: Item<'_>| {
            // While the buckets are locked: a touch of the old item is seen, or finds that the new one is there.
            !carries_expiry || new.set_expiry(old.expiry())
        };
        // Pinned since it was found, so its location has not been reused for another item of this key.
        match old.filter(|&old| engine.replace_if(hash, old.location(), at, || carry(old))) {
            Some(old) => {
                engine.published(at, pinned.counters());
                // SAFETY: replaced by us.
                unsafe { engine.retire(old.location(), Departure::Asked, pinned.counters()) };
                Ok(Some(Stamps::number(stamp, hash)))
            }
            None => {
                engine.discard(&unfinished);
                Ok(None)
            }
        }
    }

    pub(crate) fn commit_unfinished(
        &mut self,
        verb: Verb,
        key: &[u8],
        unfinished: &Unfinished,
    ) -> Result<Stored, StoreError> {
        let hash = self.engine.hash(key);
        let pinned = self.pin();
        let engine = pinned.engine();
        let stamp = engine.stamps.next(hash);
        let at = unfinished.first();
        unfinished.finish(&engine.arena, stamp, pinned.moment().generation);
        match pinned.publish(verb, key, hash, at) {
            Ok(Published::InPlaceOf(old)) => {
                engine.published(at, pinned.counters());
                if let Some(old) = old {
                    // SAFETY: replaced by us.
                    unsafe { engine.retire(old, Departure::Asked, pinned.counters()) };
                }
                Ok(Stored::Stored(Stamps::number(stamp, hash)))
            }
            Ok(Published::Refused(outcome)) => {
                engine.discard(unfinished);
                Ok(outcome)
            }
            Err(_) => {
                engine.discard(unfinished);
                drop(pinned);
                Err(self.fail(verb, key, StoreError::OutOfMemory))
            }
        }
    }
}

/// How an item got into the index, or did not.
enum Published {
    /// It is there, and this one is not any more.
    InPlaceOf(Option<Location>),
    /// The verb's condition did not hold.
    Refused(Stored),
}

impl<P: Policy> Pinned<'_, P> {
    /// Puts the location of a finished item into the index, if the verb's condition holds.
    fn publish(&self, verb: Verb, key: &[u8], hash: u64, at: Location) -> Result<Published, TooFull> {
        let engine = self.engine();
        let entries = engine.entries(self.moment().generation);
        loop {
            if verb == Verb::Set {
                let upsertion = self.with_room(hash, || engine.upsert(&entries, key, hash, at))?;
                return Ok(Published::InPlaceOf(match upsertion {
                    Upsertion::Inserted(_) => None,
                    Upsertion::Replaced(old) => Some(old),
                }));
            }
            let found = self.find(key, hash);
            // By its expiry alone: what was flushed since this thread's pin is alive for it, as what it stores is.
            let has_expired = |hit: &Hit<'_, P>| hit.item.expiry().has_passed(engine.now());
            let alive = found.filter(|hit| !has_expired(hit));
            if let (Verb::CompareAndSwap(_), Some(hit)) = (verb, &alive) {
                self.meet(hit);
            }
            let replaces = match (verb, alive) {
                (Verb::Add, None) => found,
                (Verb::Replace, Some(hit)) => Some(hit),
                (Verb::CompareAndSwap(number), Some(hit)) if hit.cas() == number => Some(hit),
                (Verb::CompareAndSwap(_), Some(_)) => return Ok(Published::Refused(Stored::Exists)),
                (Verb::CompareAndSwap(_), None) => return Ok(Published::Refused(Stored::NotFound)),
                _ => return Ok(Published::Refused(Stored::NotStored)),
            };
            // A dead item may be touched before it is replaced.
            let still = |hit: Hit<'_, P>| alive.is_some() || has_expired(&hit);
            match replaces {
                // Pinned since it was found: if this location is there, it is this item.
                Some(hit) if engine.replace_if(hash, hit.item.location(), at, || still(hit)) => {
                    return Ok(Published::InPlaceOf(Some(hit.item.location())));
                }
                Some(_) => {}
                None => {
                    let holds = |at| entries.holds(at, key);
                    match self.with_room(hash, || engine.table.insert_or_get(hash, at, holds, entries))? {
                        Insertion::Inserted(_) => return Ok(Published::InPlaceOf(None)),
                        Insertion::Occupied(_) => {}
                    }
                }
            }
            // Somebody else was faster: look again.
        }
    }

    /// Tries an insert again, with ever fewer neighbours, until the index has room. What `insert` locks it must give
    /// back before it returns: a neighbour may need the same.
    fn with_room<T>(&self, hash: u64, mut insert: impl FnMut() -> Result<T, TooFull>) -> Result<T, TooFull> {
        for _ in 0..MOST_NEIGHBOURS {
            match insert() {
                Err(_) if self.engine().evicts() => {
                    self.engine().evict_neighbour(hash, self.counters());
                }
                outcome => return outcome,
            }
        }
        Err(TooFull::Table)
    }
}

impl<P: Policy> Engine<P> {
    /// An item has come into the index.
    fn published(&self, at: Location, counters: &Counters) {
        // SAFETY: published by the caller, who is still pinned since.
        let item = unsafe { Item::at(&self.arena, at) };
        counters.stored(1);
        counters.bytes_stored(item.size() as u64);
        self.note_expiry(at, item.expiry());
    }

    /// Lets housekeeping know when to look at the item's page.
    fn note_expiry(&self, at: Location, expiry: Expiry) {
        if let Expiry::At(second) = expiry {
            self.page(self.arena.page_of(at).0).expires_at(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Cache, Config};

    #[test]
    fn an_add_that_a_flush_overtakes_does_not_replace_what_it_found_alive() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (engine, mut session, other) = (cache.engine(), cache.session(), cache.session());
        let entry = Entry::new(b"key");
        session.store(Verb::Set, entry, b"old").expect("room");
        let mut unfinished = engine.begin(&entry.outline(3), &other.counters).expect("room");
        engine.append(&mut unfinished, b"new", &other.counters).expect("room");

        let hash = engine.hash(b"key");
        let pinned = session.pin();
        cache.flush();
        unfinished.finish(&engine.arena, engine.stamps.next(hash), pinned.moment().generation);
        let published = pinned.publish(Verb::Add, b"key", hash, unfinished.first());
        assert!(matches!(published, Ok(Published::Refused(Stored::NotStored))));
        engine.discard(&unfinished);
    }

    #[test]
    fn a_copy_of_what_can_be_touched_in_place_can_be_too() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let mut session = cache.session();
        let can_be_touched =
            |session: &mut Session| session.pin().peek(b"key").expect("it is there").item.has_expiry_field();
        session.store(Verb::Set, Entry::new(b"key"), b"1").expect("room");
        session.store(Verb::Append, Entry::new(b"key"), b"2").expect("room");
        assert!(!can_be_touched(&mut session), "four bytes for nothing");
        assert_eq!(session.touch(b"key", Expiry::At(9)), Ok(true));
        assert_eq!(session.touch(b"key", Expiry::Never), Ok(true));
        session.store(Verb::Append, Entry::new(b"key"), b"3").expect("room");
        assert!(can_be_touched(&mut session));
        assert_eq!(session.pin().get(b"key").expect("it is there").to_vec(), b"123");
        assert_eq!(session.pin().get(b"key").expect("it is there").expiry(), Expiry::Never);
    }

    /// A copy that cannot be touched does not take the place of an item that has become one that can.
    #[test]
    fn a_copy_without_room_for_an_expiry_is_made_again() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (engine, mut session) = (cache.engine(), cache.session());
        session.store(Verb::Set, Entry::new(b"key"), b"1").expect("room");
        let stamp = session.pin().peek(b"key").expect("it is there").item.stamp();
        assert_eq!(session.touch(b"key", Expiry::At(9)), Ok(true));
        let outline = Entry::new(b"key").outline(1);
        let outcome =
            session.replace_if_unchanged(&outline, engine.hash(b"key"), b"2", stamp, Identity::New, true);
        assert!(matches!(outcome, Ok(None)));
        assert_eq!(session.pin().get(b"key").expect("it is there").expiry(), Expiry::At(9));
    }
}
