//! A session: one thread's way into the cache, and the read path.
//!
//! A session can be *pinned*: what it finds then stays as it is until the pin is dropped, whatever others set, delete
//! or evict meanwhile. Reads go through a pin, [`Pinned`], and give out items that borrow from it. Writes need the
//! session unpinned, which the borrow checker sees to, and pin for themselves as long as they must.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use atomics::{CounterSet, Counting};
use cuckoo::{Location, Sighting};
use lookaside::ThreadState;

use crate::access::{Accessed, Tick};
use crate::clock::Clock;
use crate::counters::{Counters, Counts};
use crate::departure::Departure;
use crate::epoch::Participant;
use crate::front::{Front, Lookup};
use crate::index::GROUP;
use crate::item::{Expiry, Generation, Item};
use crate::open_batch::OpenBatch;
use crate::policy::Policy;
use crate::shared::Engine;
use crate::size_classes::ClassId;
use crate::stamp::Number;

/// One thread's way into a cache: see the module. Made by [`crate::engine::Cache::session`].
pub struct Session<P: Policy = Clock> {
    pub(crate) engine: Arc<Engine<P>>,
    pub(crate) participant: Participant,
    pub(crate) counters: Counting<Counters>,
    /// Its place at the lookaside buffer, where there is one.
    seat: Option<ThreadState>,
    /// Values that are made from other values.
    pub(crate) scratch: Vec<u8>,
    /// Bytes of them.
    pub(crate) copied: u64,
    /// See [`Session::class_met`].
    met: Cell<u8>,
    pub(crate) batch: OpenBatch,
}

impl<P: Policy> Session<P> {
    pub(crate) fn new(engine: Arc<Engine<P>>) -> Self {
        Session {
            participant: Participant::join(&engine.epochs),
            counters: engine.registry.join(),
            seat: engine.front.as_ref().map(Front::seat),
            engine,
            scratch: Vec::new(),
            copied: 0,
            met: Cell::new(0),
            batch: OpenBatch::default(),
        }
    }

    /// What has happened through this session alone.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.counters.add_to(&mut counts);
        counts
    }

    /// Bytes of the values that were made from other values so far: what updates have cost beyond their number.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// The number of the slab class, as in [`Cache::classes`](crate::engine::Cache::classes), of the item that the last
    /// `delete`, `touch` or compare-and-swap met, for those who count by class; of no meaning if there was none.
    #[must_use]
    pub fn class_met(&self) -> u8 {
        self.met.get()
    }

    /// Ends a batch, if there is one.
    pub fn end_batch(&mut self) {
        self.let_go();
        self.batch.is_open.set(false);
        self.give_back_spare();
    }

    /// Unpins a session that is pinned for its batch: what it has found before is not looked at again.
    pub(crate) fn let_go(&self) {
        if !self.batch.is_pinned.replace(false) {
            return;
        }
        let retired = &mut *self.batch.retired.borrow_mut();
        // SAFETY: taken out of the index by this session, which tells nobody else.
        unsafe { self.engine.retire_all(retired) };
        retired.clear();
        self.participant.offline();
    }

    /// Gives back the chunks that were taken for the batch.
    pub(crate) fn give_back_spare(&mut self) {
        if !self.batch.spare.is_empty() {
            self.engine.give_back(self.engine.class(self.batch.class), &mut self.batch.spare);
        }
    }

    /// Pins the session, for lookups. Cheap, but not free: pin once for a batch, and not for longer than it takes to
    /// use what was found, because a pin holds back the memory of everything that leaves the cache meanwhile.
    #[inline]
    pub fn pin(&mut self) -> Pinned<'_, P> {
        if self.batch.is_spent() {
            self.end_batch();
        }
        if !self.batch.has_pin() {
            self.participant.pin();
        }
        let engine = &self.engine;
        let now = engine.now();
        let moment = Moment { now, tick: Tick::of(now), generation: engine.flushes.generation() };
        Pinned { session: self, moment }
    }
}

impl<P: Policy> Drop for Session<P> {
    fn drop(&mut self) {
        self.end_batch();
    }
}

/// When a session was pinned: what it finds is of that generation, and alive or expired by that clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: u32,
    pub(crate) tick: Tick,
    pub(crate) generation: Generation,
}

impl Moment {
    /// Whether an item that was found then is dead: it has expired, for what a lookup finds is of this generation.
    #[inline]
    pub(crate) fn is_dead(self, item: Item<'_>) -> bool {
        item.expiry().has_passed(self.now)
    }
}

/// A pinned session: what it finds stays readable until this is dropped.
pub struct Pinned<'s, P: Policy = Clock> {
    session: &'s Session<P>,
    moment: Moment,
}

impl<P: Policy> Drop for Pinned<'_, P> {
    fn drop(&mut self) {
        if !self.session.batch.holds_pins() {
            self.session.participant.offline();
        }
    }
}

impl<'s, P: Policy> Pinned<'s, P> {
    /// The item of `key`, if there is one and it is alive. Counts a hit or a miss, and is remembered by the policy.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Hit<'_, P>> {
        let engine = &*self.session.engine;
        let hash = engine.hash(key);
        let entries = engine.entries(self.moment.generation);
        let found = match self.front() {
            None => engine.table.find(hash, |at| entries.holds(at, key)),
            Some((front, lookup)) => front.get(lookup, key, hash),
        };
        self.settle(key, hash, found)
    }

    /// Looks up the keys, their cache misses overlapping, and calls `each` with every key's number and item, in order,
    /// until that breaks off; says how many were answered.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, Entry, Verb};
    /// use std::ops::ControlFlow;
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// session.store(Verb::Set, Entry::new(b"b"), b"2")?;
    /// let mut found = Vec::new();
    /// session.pin().get_many(&[b"a", b"b"], |_, hit| {
    ///     found.push(hit.map(|hit| hit.to_vec()));
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(found, [None, Some(b"2".to_vec())]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_many<'p>(
        &'p self,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Option<Hit<'p, P>>) -> ControlFlow<()>,
    ) -> usize {
        let engine = &*self.session.engine;
        let entries = engine.entries(self.moment.generation);
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let mut hashes = [0; GROUP];
            let mut locations: [Option<Location>; GROUP] = [None; GROUP];
            let hashes = &mut hashes[..keys.len()];
            let locations = &mut locations[..keys.len()];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = engine.hash(key);
            }
            match self.front() {
                None => {
                    engine.table.find_many(entries, hashes, |i, at| entries.holds(at, keys[i]), locations)
                }
                Some((front, lookup)) => front.get_many(lookup, keys, hashes, locations),
            }
            for (i, ((key, &hash), &at)) in keys.iter().zip(&*hashes).zip(&*locations).enumerate() {
                let number = group * GROUP + i;
                if each(number, self.settle(key, hash, at)).is_break() {
                    return number + 1;
                }
            }
        }
        keys.len()
    }

    /// Looks up keys of a batch, those that were announced from number `first` on, and calls `each` as
    /// [`get_many`](Pinned::get_many) does.
    ///
    /// # Panics
    /// If fewer keys were announced.
    #[inline]
    pub fn get_announced<'p>(
        &'p self,
        first: usize,
        keys: &[&[u8]],
        mut each: impl FnMut(usize, Option<Hit<'p, P>>) -> ControlFlow<()>,
    ) -> usize {
        let engine = &*self.session.engine;
        let entries = engine.entries(self.moment.generation);
        let batch = &self.session.batch;
        let is_fresh = batch.turn_of(first, keys.len());
        let hashes = &batch.keys.hashes[first..][..keys.len()];
        let seen = &batch.keys.seen[first..][..keys.len()];
        let mut behind = [None; GROUP];
        let front = self.front();
        if let Some((front, lookup)) = front {
            front.get_many(lookup, keys, hashes, &mut behind[..keys.len()]);
        }
        for (i, ((key, &hash), &seen)) in keys.iter().zip(hashes).zip(seen).enumerate() {
            let at = match seen {
                _ if front.is_some() => behind[i],
                // Found under the pin that is still held; or, if others may have come into its place, there now.
                Sighting::At(spot)
                    if (is_fresh || engine.table.is_at(spot)) && entries.holds(spot.location(), key) =>
                {
                    Some(spot.location())
                }
                Sighting::Nowhere if is_fresh => None,
                _ => engine.table.find(hash, |at| entries.holds(at, key)),
            };
            if each(i, self.settle(key, hash, at)).is_break() {
                return i + 1;
            }
        }
        keys.len()
    }

    /// The lookaside buffer, where there is one, and what a lookup in it works with.
    #[inline(always)]
    fn front(&self) -> Option<(&Front, Lookup<'_>)> {
        let Session { engine, counters, seat, .. } = self.session;
        let (front, seat) = (engine.front.as_ref()?, seat.as_ref()?);
        let entries = engine.entries(self.moment.generation);
        Some((front, Lookup { seat, index: &engine.table, entries, counters }))
    }

    /// Looks at the item of `key` without counting it as used.
    #[must_use]
    pub fn peek(&self, key: &[u8]) -> Option<Hit<'_, P>> {
        self.find_alive(key, self.session.engine.hash(key))
    }

    pub(crate) fn find_alive(&self, key: &[u8], hash: u64) -> Option<Hit<'_, P>> {
        self.find(key, hash).filter(|hit| !self.moment.is_dead(hit.item))
    }

    /// The item of `key`, dead or alive.
    pub(crate) fn find(&self, key: &[u8], hash: u64) -> Option<Hit<'_, P>> {
        let engine = &*self.session.engine;
        let entries = engine.entries(self.moment.generation);
        let at = engine.table.find(hash, |at| entries.holds(at, key))?;
        // SAFETY: found in the index while pinned, for as long as `self` is borrowed.
        let item = unsafe { Item::at(&engine.arena, at) };
        Some(self.hit(item, hash))
    }

    /// An item that was found while pinned, as it is now.
    pub(crate) fn hit<'p>(&'p self, item: Item<'p>, hash: u64) -> Hit<'p, P> {
        Hit { item, hash, accessed: item.access().load(), engine: &self.session.engine }
    }

    /// Remembers whom an operation has met: see [`Session::class_met`].
    pub(crate) fn meet(&self, hit: &Hit<'_, P>) {
        self.session.met.set(hit.class());
    }

    /// The same of an item of which no more is wanted than its class, which is known.
    pub(crate) fn meet_one_of(&self, class: ClassId) {
        self.session.met.set(class.0);
    }

    pub(crate) fn moment(&self) -> Moment {
        self.moment
    }

    pub(crate) fn engine(&self) -> &Engine<P> {
        &self.session.engine
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.session.counters
    }

    pub(crate) fn batch(&self) -> &OpenBatch {
        &self.session.batch
    }

    // Always: a call would pass six words and return five for each key of a batch.
    #[inline(always)]
    fn settle(&self, key: &[u8], hash: u64, found: Option<Location>) -> Option<Hit<'_, P>> {
        let Session { engine, counters, .. } = self.session;
        let Some(at) = found else {
            counters.misses(1);
            if engine.flushes.is_pending() {
                self.bury_flushed(key, hash);
            }
            return None;
        };
        // SAFETY: found in the index or before it while pinned, for as long as `self` is borrowed.
        let item = unsafe { Item::at(&engine.arena, at) };
        if self.moment.is_dead(item) {
            counters.misses(1);
            counters.expired(1);
            self.bury(hash, at);
            return None;
        }
        counters.hits(1);
        let recency = item.recency();
        let after = P::hit(recency);
        if !item.is_after_hit(after) {
            engine.arena.raise_recency(at, recency, after);
        }
        let accessed = item.access().load();
        if accessed.is_behind(self.moment.tick) {
            item.access().note(self.moment.tick);
        }
        Some(Hit { item, hash, accessed, engine })
    }

    /// Nothing of this generation was found while flushed items await their sweep: if the key's is one of them, it goes
    /// at once.
    #[cold]
    fn bury_flushed(&self, key: &[u8], hash: u64) {
        let Session { engine, counters, .. } = self.session;
        let entries = engine.entries(self.moment.generation);
        let Some(at) = engine.table.find(hash, |at| entries.has_key(at, key)) else { return };
        // SAFETY: found in the index while pinned.
        let item = unsafe { Item::at(&engine.arena, at) };
        // The current generation, not that of the pin, and looked at now: see `Judge`. What was stored meanwhile stays.
        if item.generation() != engine.flushes.generation() && self.bury(hash, at) {
            counters.flushed(1);
        }
    }

    /// An item was found dead: it goes, and whether it was this call that took it out is said.
    #[cold]
    fn bury(&self, hash: u64, at: Location) -> bool {
        let Session { engine, counters, .. } = self.session;
        // It may have been touched since.
        engine.remove_if_still(hash, at, Departure::Reclaimed, counters)
    }
}

/// An item that was found, readable for as long as the pin it was found under.
pub struct Hit<'p, P: Policy = Clock> {
    pub(crate) item: Item<'p>,
    pub(crate) hash: u64,
    /// As it was before this lookup.
    accessed: Accessed,
    engine: &'p Arc<Engine<P>>,
}

impl<P: Policy> Clone for Hit<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Policy> Copy for Hit<'_, P> {}

impl<'p, P: Policy> Hit<'p, P> {
    /// The key.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &'p [u8] {
        self.item.key()
    }

    /// Bytes of the value.
    #[inline]
    #[must_use]
    pub fn value_len(&self) -> usize {
        self.item.value_len()
    }

    /// The value, if it lies in one piece, as all values of up to about 8 KB do.
    #[inline]
    #[must_use]
    pub fn contiguous(&self) -> Option<&'p [u8]> {
        (!self.item.is_chained()).then(|| self.item.first_part())
    }

    /// The pieces of the value, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &'p [u8]> + use<'p, P> {
        self.item.parts()
    }

    /// A copy of the value.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces().collect::<Vec<_>>().concat()
    }

    /// The client's flags.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.item.flags()
    }

    /// When the item dies.
    #[inline]
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        self.item.expiry()
    }

    /// The number that [`crate::engine::Verb::CompareAndSwap`] goes by: the one that the item was stored with, if it
    /// was ([`Entry::cas`](crate::engine::Entry::cas)); else another one, and a higher one, each time the key is
    /// stored.
    ///
    /// Of an item to which many stores have come since, elsewhere, another one may be told than before: see
    /// docs/design/item.md.
    #[inline]
    #[must_use]
    pub fn cas(&self) -> u64 {
        self.item.own_cas().unwrap_or_else(|| self.number().told(self.hash))
    }

    /// Whether the item has this [number](Hit::cas); `None` if it is [leaving](Hit::is_leaving), and has none.
    pub(crate) fn has_cas(&self, cas: u64) -> Option<bool> {
        let has_it = self.cas() == cas;
        (has_it || !self.is_leaving()).then_some(has_it)
    }

    /// Whether somebody has begun to take the item out of the index. In a moment it is not there: what is said of it
    /// may be true of neither the item nor of what comes in its place.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.item.is_live()
    }

    /// The engine's own number of the item.
    pub(crate) fn number(&self) -> Number {
        let number = self.engine.stamps.full(self.item.stamp(), self.hash);
        // Looked at after the counter: see `stamp`.
        if self.item.is_live() { number } else { Number::NONE }
    }

    /// The second, by the cache's clock, of the last lookup before this one that counted, or of the store: up to three
    /// seconds late, but not later than now, so that who stores and looks is told now; and up to a minute early, for a
    /// hit is not noted where another one was noted a moment ago.
    #[must_use]
    pub fn last_access(&self) -> u32 {
        let now = self.engine.now();
        (self.accessed.second(now).saturating_add(3)).min(now)
    }

    /// Bytes of the item: header, key and value, without what its chunks have left over.
    #[must_use]
    pub fn size(&self) -> usize {
        self.item.size()
    }

    /// Whether somebody has looked the item up before this lookup (and not only peeked at it).
    #[must_use]
    pub fn was_fetched(&self) -> bool {
        self.item.is_fetched()
    }

    /// Whether the item was stored as one that is out of date and should be fetched anew:
    /// [`Put::stale`](crate::engine::Put::stale).
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.accessed.is_stale()
    }

    /// Whether somebody had won the right to fetch the item anew before this lookup: see [`Hit::win`].
    #[must_use]
    pub fn is_won(&self) -> bool {
        self.accessed.is_won()
    }

    /// Whether this lookup is to be noted as the last access.
    pub(crate) fn is_behind(&self, tick: Tick) -> bool {
        self.accessed.is_behind(tick)
    }

    /// Wins the right to fetch the item anew, as others are told from then on: true for exactly one of all who call
    /// this, unless the item was stored as [won](crate::engine::Put::won).
    #[must_use]
    pub fn win(&self) -> bool {
        self.item.access().win()
    }

    /// The number of the slab class that the item is counted in, as in
    /// [`Cache::classes`](crate::engine::Cache::classes): that for items of its size. (In a cache of few pages the item
    /// itself may lie in a larger chunk.)
    #[inline]
    #[must_use]
    pub fn class(&self) -> u8 {
        self.engine.sizes.class_of_item(self.item.first_chunk()).0
    }

    /// Keeps a large value, one in several pieces, readable beyond the pin; `None` for a value in one piece, which is
    /// to be copied. Memory that is kept so counts inside the cache's limit and cannot be reused.
    #[must_use]
    pub fn keep(&self) -> Option<Kept<P>> {
        self.item.is_chained().then(|| {
            self.item.keep();
            Kept { engine: self.engine.clone(), at: self.item.location() }
        })
    }
}

/// A large value that stays readable as long as this lives.
pub struct Kept<P: Policy = Clock> {
    engine: Arc<Engine<P>>,
    at: Location,
}

impl<P: Policy> Kept<P> {
    fn item(&self) -> Item<'_> {
        // SAFETY: kept: it is not reused before this is dropped.
        unsafe { Item::at(&self.engine.arena, self.at) }
    }

    /// Bytes of the value.
    #[must_use]
    pub fn value_len(&self) -> usize {
        self.item().value_len()
    }

    /// The pieces of the value, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.item().parts()
    }
}

impl<P: Policy> Drop for Kept<P> {
    fn drop(&mut self) {
        self.item().give_up();
    }
}
