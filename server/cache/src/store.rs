//! The write path: storing, changing and deleting.
//!
//! ```text
//! store:
//!   write the item into chunks of its own           not pinned: this may have to wait its turn for memory
//!   pin
//!   give it the current generation
//!   put its location into the index                 as the verb says: always, if absent, if present, if unchanged;
//!                                                   there it gets its number
//!   retire the item that was there, or discard the new one
//!   unpin
//! ```
//!
//! An item is never changed once it is in the index; a value made from another (append, prepend, increment) is a new
//! item that replaces the old one if that is unchanged, and else all over again: see [`crate::change`]. How an item
//! gets into the index is in [`crate::publication`].

use crate::access::Accessed;
use crate::allocation::StoreError;
use crate::change::{Change, Put, Value};
use crate::departure::Departure;
use crate::item::{Expiry, Outline};
use crate::policy::Policy;
use crate::publication::{Published, Stored, Verb};
use crate::session::{Hit, Session};
use crate::stamp::Number;
use crate::unfinished::Unfinished;

/// What an item is stored with, but for its value.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The key: 1 to 250 bytes.
    pub key: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// When it dies.
    pub expiry: Expiry,
    /// The number that compare-and-swap goes by, where the client wants to say it itself: eight bytes of the item.
    pub cas: Option<u64>,
}

impl<'a> Entry<'a> {
    /// An entry with no flags that never dies, and whose number the engine gives.
    #[must_use]
    pub fn new(key: &'a [u8]) -> Self {
        Entry { key, flags: 0, expiry: Expiry::Never, cas: None }
    }

    /// With these [`flags`](Entry::flags).
    #[must_use]
    pub fn with_flags(self, flags: u32) -> Self {
        Entry { flags, ..self }
    }

    /// With this [`expiry`](Entry::expiry).
    #[must_use]
    pub fn with_expiry(self, expiry: Expiry) -> Self {
        Entry { expiry, ..self }
    }

    /// With this [number](Entry::cas), or the engine's.
    #[must_use]
    pub fn with_cas(self, cas: Option<u64>) -> Self {
        Entry { cas, ..self }
    }

    pub(crate) fn outline(&self, value_len: usize) -> Outline<'a> {
        let Entry { key, flags, expiry, cas } = *self;
        Outline { key, flags, expiry, expiry_to_come: false, cas, value_len }
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
            return self.extend(verb, entry.key, entry.cas, value);
        }
        match self.write_item(&entry.outline(value.len()), value) {
            Ok(unfinished) => self.commit_unfinished(verb, entry.key, &unfinished),
            Err(error) => Err(self.fail(verb, entry.key, error)),
        }
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
        make: impl FnMut(&Hit<'_, P>, &mut Vec<u8>) -> Result<(), R>,
    ) -> Result<Updated<R>, StoreError> {
        self.remake(key, None, make)
    }

    fn remake<R>(
        &mut self,
        key: &[u8],
        cas: Option<u64>,
        mut make: impl FnMut(&Hit<'_, P>, &mut Vec<u8>) -> Result<(), R>,
    ) -> Result<Updated<R>, StoreError> {
        let changed = self.change(key, |now, new| {
            let Some(hit) = now else { return Change::Leave(Updated::NotFound) };
            match make(hit, new) {
                Ok(()) => {
                    let put = Put::new(Value::Scratch).with_flags(hit.flags()).with_expiry(hit.expiry());
                    Change::Put(Put { cas, ..put }, Updated::Updated(0))
                }
                Err(reason) => Change::Leave(Updated::Declined(reason)),
            }
        })?;
        Ok(match (changed.result, changed.cas) {
            (Updated::Updated(_), Some(number)) => Updated::Updated(number),
            (other, _) => other,
        })
    }

    /// Deletes the item of `key`, and says whether there was one.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let pinned = self.pin();
        loop {
            let (hash, found) = pinned.look(key);
            let Some((hit, spot)) = found else { return false };
            pinned.meet(&hit);
            let (engine, counters, at) = (pinned.engine(), pinned.counters(), hit.item.location());
            let dead = engine.judge().is_dead(hit.item);
            let removed = if dead {
                engine.remove_if_still(hash, at, Departure::Reclaimed, counters)
            } else {
                pinned.remove(hash, at, spot)
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
        let changed = self.change(key, |now, _| match now {
            Some(_) => Change::Touch(expiry, true),
            None => Change::Leave(false),
        })?;
        Ok(changed.result)
    }

    /// A store has failed: what it was to replace goes too, if it was a `Set`.
    #[cold]
    pub(crate) fn fail(&mut self, verb: Verb, key: &[u8], error: StoreError) -> StoreError {
        if verb == Verb::Set {
            self.delete(key);
        }
        error
    }

    pub(crate) fn extend(
        &mut self,
        verb: Verb,
        key: &[u8],
        cas: Option<u64>,
        piece: &[u8],
    ) -> Result<Stored, StoreError> {
        let outcome = self.remake(key, cas, |hit, new| {
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

    pub(crate) fn commit_unfinished(
        &mut self,
        verb: Verb,
        key: &[u8],
        unfinished: &Unfinished,
    ) -> Result<Stored, StoreError> {
        let pinned = self.pin();
        let (hash, spot) =
            if verb == Verb::Set { pinned.spot(key) } else { (pinned.engine().hash(key), None) };
        let accessed = Accessed::new(pinned.moment().now, false, false);
        let newcomer = pinned.newcomer(unfinished, key, hash, accessed, Number::NONE);
        let published = match spot {
            Some(spot) if pinned.engine().replace_on(spot, &newcomer, || true) => {
                Ok(Published::InPlaceOf(Some(spot.location())))
            }
            _ => pinned.publish(verb, &newcomer),
        };
        match published {
            Ok(Published::InPlaceOf(old)) => {
                pinned.settle_in(&newcomer, old);
                Ok(Stored::Stored(newcomer.cas()))
            }
            Ok(Published::Refused(outcome)) => {
                pinned.engine().discard(unfinished);
                Ok(outcome)
            }
            Err(_) => {
                pinned.engine().discard(unfinished);
                drop(pinned);
                Err(self.fail(verb, key, StoreError::OutOfMemory))
            }
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
        let newcomer =
            pinned.newcomer(&unfinished, b"key", hash, Accessed::new(0, false, false), Number::NONE);
        let published = pinned.publish(Verb::Add, &newcomer);
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

    /// A copy that cannot be touched does not take the place of an item that has become one that can, and been touched.
    #[test]
    fn a_copy_of_what_is_touched_meanwhile_is_made_again() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (mut session, mut other) = (cache.session(), cache.session());
        session.store(Verb::Set, Entry::new(b"key"), b"1").expect("room");
        let mut made = 0;
        let outcome = session.update(b"key", |_, new| {
            made += 1;
            if made == 1 {
                assert_eq!(other.touch(b"key", Expiry::At(9)), Ok(true));
            }
            new.extend_from_slice(b"2");
            Ok::<(), ()>(())
        });
        assert!(matches!(outcome, Ok(Updated::Updated(_))));
        assert_eq!(made, 2);
        assert_eq!(session.pin().get(b"key").expect("it is there").expiry(), Expiry::At(9));
    }
}
