//! How an item comes into the index: under a verb's condition, or in the place of what was seen there.
//!
//! Both end in one of three ways: the key had an item, which is replaced if it still is that one; it had none, and one
//! is inserted if it still has none; or somebody else was faster, and it begins anew.

#![allow(unsafe_code)]

use atomics::yield_now;
use cuckoo::{Insertion, Location, Spot, TooFull, Upsertion};

use crate::access::Accessed;
use crate::counters::Counters;
use crate::item::{Expiry, Item};
use crate::newcomer::Newcomer;
use crate::policy::Policy;
use crate::session::{Hit, Moment, Pinned};
use crate::shared::Engine;
use crate::stamp::Number;
use crate::unfinished::Unfinished;

/// Neighbours evicted from the index to make room for one key.
const MOST_NEIGHBOURS: usize = 64;

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

/// How an item got into the index, or did not.
pub(crate) enum Published {
    /// It is there, and this one is not any more.
    InPlaceOf(Option<Location>),
    /// The verb's condition did not hold.
    Refused(Stored),
}

/// What an item was when it was looked at, to tell whether it is the same later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    at: Location,
    /// Where in the index.
    spot: Option<Spot>,
    /// Under which pin of a batch.
    pin: Option<u64>,
    number: Number,
    expiry: Expiry,
}

impl Seen {
    #[inline]
    pub(crate) fn of<P: Policy>(hit: &Hit<'_, P>, spot: Option<Spot>, pin: Option<u64>) -> Seen {
        Seen { at: hit.item.location(), spot, pin, number: hit.number(), expiry: hit.expiry() }
    }

    pub(crate) fn number(self) -> Number {
        self.number
    }

    /// Whether it is the same item; both its place and its number are needed, for the place alone could have been
    /// reused for the same key.
    fn is<P: Policy>(self, hit: &Hit<'_, P>) -> bool {
        // What is leaving has no number, and is the same as nothing.
        self.number != Number::NONE && hit.item.location() == self.at && hit.number() == self.number
    }
}

impl<P: Policy> Pinned<'_, P> {
    /// An item of the caller's, all of which is written, made ready to be put into the index by this thread.
    ///
    /// `number` is that of the item that it is a copy of, or none.
    pub(crate) fn newcomer<'k>(
        &'k self,
        unfinished: &Unfinished,
        key: &'k [u8],
        hash: u64,
        accessed: Accessed,
        number: Number,
    ) -> Newcomer<'k> {
        let engine = self.engine();
        let Moment { generation, now, .. } = self.moment();
        unfinished.finish(&engine.arena, engine.flushes.generation_to_store(generation, now), accessed);
        let (entries, at) = (engine.entries(generation), unfinished.first());
        // SAFETY: just finished, and the caller's; pinned.
        unsafe { Newcomer::new(&engine.arena, entries, &engine.stamps, at, key, hash, number) }
    }

    /// Puts a newcomer into the index, if the verb's condition holds.
    pub(crate) fn publish(&self, verb: Verb, newcomer: &Newcomer<'_>) -> Result<Published, TooFull> {
        let (engine, hash) = (self.engine(), newcomer.hash());
        loop {
            if verb == Verb::Set {
                let upsertion = self.with_room(hash, || engine.upsert(newcomer))?;
                return Ok(Published::InPlaceOf(match upsertion {
                    Upsertion::Inserted(_) => None,
                    Upsertion::Replaced(old) => Some(old),
                }));
            }
            let found = self.find(newcomer.key(), hash);
            let alive = found.filter(|hit| !self.has_expired(hit));
            if let (Verb::CompareAndSwap(_), Some(hit)) = (verb, &alive) {
                self.meet(hit);
            }
            let replaces = match (verb, alive) {
                (Verb::Add, None) => found,
                (Verb::Replace, Some(hit)) => Some(hit),
                (Verb::CompareAndSwap(number), Some(hit)) => match hit.has_cas(number) {
                    Some(true) => Some(hit),
                    Some(false) => return Ok(Published::Refused(Stored::Exists)),
                    // Evicted, or replaced: that is known when its bucket is not locked any more.
                    None => {
                        yield_now();
                        continue;
                    }
                },
                (Verb::CompareAndSwap(_), None) => return Ok(Published::Refused(Stored::NotFound)),
                _ => return Ok(Published::Refused(Stored::NotStored)),
            };
            // A dead item may be touched before it is replaced.
            let still = |hit: Hit<'_, P>| alive.is_some() || self.has_expired(&hit);
            match replaces {
                // Pinned since it was found: if this location is there, it is this item.
                Some(hit) if engine.replace_if(newcomer, hit.item.location(), || still(hit)) => {
                    return Ok(Published::InPlaceOf(Some(hit.item.location())));
                }
                None if self.insert(newcomer)? => return Ok(Published::InPlaceOf(None)),
                // Somebody else was faster: look again.
                _ => {}
            }
        }
    }

    /// Puts a newcomer into the place of the item that was seen, or of none; false if that is not there any more, or
    /// dead, or has another expiry: a touch of it is not lost.
    pub(crate) fn take_place_of(
        &self,
        seen: Option<Seen>,
        newcomer: &Newcomer<'_>,
    ) -> Result<Option<Published>, TooFull> {
        let engine = self.engine();
        let (old, placed) = match seen {
            Some(seen) => {
                // What lies there may be another key's by now, which has the same tag: it is looked at while it is in
                // the index, for its buckets are locked. So it need not be searched for again.
                let is_as_seen = || {
                    // SAFETY: in the index, which cannot lose it meanwhile.
                    let hit = self.hit(unsafe { Item::at(&engine.arena, seen.at) }, newcomer.hash());
                    // Pinned all along: what lies there is what was seen.
                    let is_it = seen.pin.is_some() && seen.pin == self.batch().pin()
                        || newcomer.has_key_of(seen.at) && seen.is(&hit);
                    is_it && hit.expiry() == seen.expiry && !self.has_expired(&hit)
                };
                let placed = seen.spot.is_some_and(|spot| engine.replace_on(spot, newcomer, is_as_seen))
                    || engine.replace_if(newcomer, seen.at, is_as_seen);
                (Some(seen.at), placed)
            }
            None => match self.find(newcomer.key(), newcomer.hash()) {
                Some(hit) => {
                    let at = hit.item.location();
                    (Some(at), engine.replace_if(newcomer, at, || self.has_expired(&hit)))
                }
                None => (None, self.insert(newcomer)?),
            },
        };
        Ok(placed.then_some(Published::InPlaceOf(old)))
    }

    /// A newcomer has come into the index: it is counted, and what it has replaced goes.
    pub(crate) fn settle_in(&self, newcomer: &Newcomer<'_>, old: Option<Location>) {
        let engine = self.engine();
        engine.published(newcomer.item(), self.counters());
        if let Some(old) = old {
            // SAFETY: replaced by this thread, says the caller.
            unsafe { self.retire(old) };
        }
    }

    /// By its expiry alone: what was flushed since this thread's pin is alive for it, as what it stores is.
    fn has_expired(&self, hit: &Hit<'_, P>) -> bool {
        hit.item.expiry().has_passed(self.engine().now())
    }

    /// Inserts a newcomer unless its key has an item, dead or alive.
    fn insert(&self, newcomer: &Newcomer<'_>) -> Result<bool, TooFull> {
        let holds = |at| newcomer.has_key_of(at);
        let table = &self.engine().table;
        let insert = || table.insert_or_get(newcomer.hash(), newcomer.location(), holds, newcomer);
        Ok(matches!(self.with_room(newcomer.hash(), insert)?, Insertion::Inserted(_)))
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
    fn published(&self, item: Item<'_>, counters: &Counters) {
        counters.stored(1);
        counters.bytes_stored(item.size() as u64);
        self.note_expiry(item.location(), item.expiry());
    }

    /// Lets housekeeping know when to look at the item's page.
    pub(crate) fn note_expiry(&self, at: Location, expiry: Expiry) {
        if let Expiry::At(second) = expiry {
            self.page(self.arena.page_of(at).0).expires_at(second);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Cache, Config, Entry, Session, Stored, Verb};
    use crate::item::Expiry;

    fn number(session: &mut Session) -> u64 {
        session.pin().peek(b"key").expect("it is there").cas()
    }

    /// Once, a compare-and-swap met an item that another thread was evicting, and said that it had been changed.
    #[test]
    fn an_item_that_leaves_has_no_number_and_is_none_that_was_changed() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (mut session, mut other) = (cache.session(), cache.session());
        session.store(Verb::Set, Entry::new(b"key"), b"value").expect("room");
        let number = number(&mut session);
        let pinned = session.pin();
        let hit = pinned.peek(b"key").expect("it is there");
        assert_eq!((hit.has_cas(number), hit.has_cas(number + 1)), (Some(true), Some(false)));
        assert!(other.delete(b"key"));
        assert_eq!(hit.has_cas(number), None);
        drop(pinned);
        let swapped = session.store(Verb::CompareAndSwap(number), Entry::new(b"key"), b"new");
        assert_eq!(swapped, Ok(Stored::NotFound));
    }

    /// So many stores to other keys of the same group that the ends of numbers come again.
    #[test]
    fn an_old_number_never_stands_for_a_later_item() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (engine, mut session) = (cache.engine(), cache.session());
        let hash = engine.hash(b"key");
        let mut told = Vec::new();
        for others in [0, 1, 65_534, 65_535, 65_536, 65_537, 200_000, 65_535, 65_535] {
            session.store(Verb::Set, Entry::new(b"key"), b"old").expect("room");
            told.push(number(&mut session));
            for _ in 0..others {
                engine.stamps.next(hash);
            }
            told.push(number(&mut session));
            session.delete(b"key");
            session.store(Verb::Set, Entry::new(b"key"), b"new").expect("room");
            let now = number(&mut session);
            for &old in &told {
                assert!(old < now, "{old} was told before {now}");
                let outcome = session.store(Verb::CompareAndSwap(old), Entry::new(b"key"), b"in vain");
                assert_eq!(outcome, Ok(Stored::Exists));
            }
            let right = session.store(Verb::CompareAndSwap(now), Entry::new(b"key"), b"right");
            assert!(matches!(right, Ok(Stored::Stored(_))), "{right:?}");
        }
    }

    /// An item that nobody stored for long is told another number than it was; who asks again gets on.
    #[test]
    fn who_is_refused_in_vain_gets_on_when_he_asks_again() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (engine, mut session) = (cache.engine(), cache.session());
        session.store(Verb::Set, Entry::new(b"key"), b"old").expect("room");
        let before = number(&mut session);
        for _ in 0..70_000 {
            engine.stamps.next(engine.hash(b"key"));
        }
        let now = number(&mut session);
        assert!(before < now);
        let mut swap = |number| session.store(Verb::CompareAndSwap(number), Entry::new(b"key"), b"new");
        assert_eq!(swap(before), Ok(Stored::Exists));
        assert!(matches!(swap(now), Ok(Stored::Stored(_))));
        // A touch that copies keeps what the item is, also as an old one.
        for _ in 0..70_000 {
            engine.stamps.next(engine.hash(b"key"));
        }
        let before = number(&mut session);
        assert_eq!(session.touch(b"key", Expiry::At(9)), Ok(true));
        assert_eq!(number(&mut session), before);
    }
}
