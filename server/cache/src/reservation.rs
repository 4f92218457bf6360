//! Values that come in pieces: room is made for all of one beforehand, and nobody sees it before it is whole.

#![allow(unsafe_code)]

use std::sync::Arc;

use atomics::yield_now;

use crate::access::Accessed;
use crate::allocation::StoreError;
use crate::change::Changed;
use crate::clock::Clock;
use crate::item::Item;
use crate::policy::Policy;
use crate::publication::{Published, Seen, Stored, Verb};
use crate::session::{Hit, Session};
use crate::shared::Engine;
use crate::stamp::Number;
use crate::store::Entry;
use crate::unfinished::Unfinished;

impl<P: Policy> Session<P> {
    /// Makes room for a value that is still to come, piece by piece.
    ///
    /// # Errors
    /// [`StoreError`], as [`Session::store`].
    ///
    /// # Panics
    /// If the key is empty or longer than 250 bytes.
    pub fn reserve(
        &mut self,
        verb: Verb,
        entry: Entry<'_>,
        value_len: usize,
    ) -> Result<Reservation<P>, StoreError> {
        if !self.engine.promise(value_len) {
            return Err(self.fail(verb, entry.key, StoreError::OutOfMemory));
        }
        let mut reservation =
            Reservation { engine: self.engine.clone(), unfinished: None, verb, promised: value_len };
        match self.begin_item(&entry.outline(value_len)) {
            Ok(unfinished) => {
                reservation.unfinished = Some(unfinished);
                Ok(reservation)
            }
            Err(error) => Err(self.fail(verb, entry.key, error)),
        }
    }

    /// Adds the next piece of a reserved value.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`]: the reservation is of no use any more, and is to be dropped.
    ///
    /// # Panics
    /// If the pieces are longer together than was reserved.
    pub fn fill(&mut self, reservation: &mut Reservation<P>, piece: &[u8]) -> Result<(), StoreError> {
        let Some(unfinished) = &mut reservation.unfinished else { return Ok(()) };
        self.engine
            .append(unfinished, piece, &self.counters)
            .map_err(|error| self.fail(reservation.verb, &reservation.key(), error))
    }

    /// Stores a reserved value, all of which has come.
    ///
    /// # Errors
    /// [`StoreError`], as [`Session::store`].
    ///
    /// # Panics
    /// If pieces of the value are missing.
    pub fn commit(&mut self, mut reservation: Reservation<P>) -> Result<Stored, StoreError> {
        let (verb, key) = (reservation.verb, reservation.key());
        if let Verb::Append | Verb::Prepend = verb {
            assert_eq!(reservation.missing(), 0, "a value that was promised has not been written");
            let (pieces, cas) = (reservation.to_vec(), reservation.item().and_then(Item::own_cas));
            drop(reservation);
            return self.extend(verb, &key, cas, &pieces);
        }
        let unfinished = reservation.take_unfinished();
        self.commit_unfinished(verb, &key, &unfinished)
    }

    /// Stores a reserved value, all of which has come, if `decide` says so, which is shown the item that is there; as
    /// [`Session::change`]. Expiry, flags and number are those that it was reserved with; the verb does not matter.
    /// (But a `Set` for which there is no memory takes the item away: who wants it to stay reserves an `Add`.)
    ///
    /// # Errors
    /// [`StoreError`]: the key is as it was.
    ///
    /// # Panics
    /// If pieces of the value are missing.
    pub fn commit_if<R>(
        &mut self,
        mut reservation: Reservation<P>,
        mut decide: impl FnMut(Option<&Hit<'_, P>>) -> Commit<R>,
    ) -> Result<Changed<R>, StoreError> {
        let key = reservation.key();
        let unfinished = reservation.take_unfinished();
        let hash = self.engine.hash(&key);
        loop {
            // Anew each time, for the time goes on.
            let pinned = self.pin();
            let engine = pinned.engine();
            let now = pinned.find_alive(&key, hash);
            if let Some(hit) = &now {
                pinned.meet(hit);
            }
            let (stale, won, result) = match decide(now.as_ref()) {
                // As in `change`.
                Commit::Leave(_) if now.is_some_and(|hit| hit.is_leaving()) => {
                    yield_now();
                    continue;
                }
                Commit::Leave(result) => {
                    engine.discard(&unfinished);
                    return Ok(Changed { result, cas: None });
                }
                Commit::Put { stale, won, result } => (stale, won, result),
            };
            let accessed = Accessed::new(pinned.moment().now, stale, won);
            let newcomer = pinned.newcomer(&unfinished, &key, hash, accessed, Number::NONE);
            match pinned.take_place_of(now.as_ref().map(|hit| Seen::of(hit, None, None)), &newcomer) {
                Ok(Some(Published::InPlaceOf(old))) => {
                    pinned.settle_in(&newcomer, old);
                    return Ok(Changed { result, cas: Some(newcomer.cas()) });
                }
                Ok(_) => {}
                Err(_) => {
                    engine.discard(&unfinished);
                    return Err(StoreError::OutOfMemory);
                }
            }
        }
    }
}

/// What a reserved value is to do.
#[derive(Debug, Clone, Copy)]
pub enum Commit<R> {
    /// Nothing changes; the value is dropped.
    Leave(R),
    /// It comes in the place of the item that is there, if there is one.
    Put {
        /// As [`Put::stale`](crate::engine::Put::stale).
        stale: bool,
        /// As [`Put::won`](crate::engine::Put::won).
        won: bool,
        /// What is handed on.
        result: R,
    },
}

/// Room for a value that is still to come. Dropped, it is given back.
pub struct Reservation<P: Policy = Clock> {
    engine: Arc<Engine<P>>,
    /// There, until it is committed.
    unfinished: Option<Unfinished>,
    verb: Verb,
    /// Bytes that were promised for it.
    promised: usize,
}

impl<P: Policy> Reservation<P> {
    /// Bytes of the value that are still to come.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.unfinished.as_ref().map_or(0, Unfinished::missing)
    }

    /// The item, which is the caller's from then on.
    pub(crate) fn take_unfinished(&mut self) -> Unfinished {
        self.unfinished.take().expect("a reservation is committed once")
    }

    /// A copy of the value, all of which has come: for what is to be made of it and of the item that is there.
    ///
    /// # Panics
    /// If pieces of it are missing.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        assert_eq!(self.missing(), 0, "a value that was promised has not been written");
        self.item().into_iter().flat_map(Item::parts).collect::<Vec<_>>().concat()
    }

    fn item(&self) -> Option<Item<'_>> {
        // SAFETY: the reservation's own, header and key written when it began.
        self.unfinished.as_ref().map(|unfinished| unsafe { Item::at(&self.engine.arena, unfinished.first()) })
    }

    /// Bytes of the value, come or still to come.
    #[must_use]
    pub fn value_len(&self) -> usize {
        self.item().map_or(0, Item::value_len)
    }

    /// The number of the slab class that an item with this value is counted in, as in
    /// [`Cache::classes`](crate::engine::Cache::classes).
    #[must_use]
    pub fn class(&self) -> u8 {
        self.engine.sizes.class_of_item(self.item().map_or(0, Item::first_chunk)).0
    }

    /// The key that the value is for.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        self.item().map_or_else(Vec::new, |item| item.key().to_vec())
    }
}

impl<P: Policy> Drop for Reservation<P> {
    fn drop(&mut self) {
        self.engine.settle(self.promised);
        if let Some(unfinished) = &self.unfinished {
            self.engine.discard(unfinished);
        }
    }
}
