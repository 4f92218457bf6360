//! How an item leaves: out of the index, through limbo, and its chunks back to their classes.
//!
//! Whoever takes its exact location out of the index stamps it and puts its chunk into its class's limbo; nobody else
//! does. A location leaves the index here and nowhere else: replaced, deleted, evicted, expired, or flushed.
//!
//! The hash of a victim's key is computed while its class is locked, which keeps the item where it is; the index is
//! asked to remove exactly that location afterwards. If the item has gone meanwhile, the location is not there, or it
//! is another item's by now: so whoever finds an item on a page, and not in the index, has it looked at again while its
//! buckets are locked ([`Engine::remove_if_still`]).

#![allow(unsafe_code)]

use std::ops::Range;

use cuckoo::{Location, Spot, Table, TooFull, Upsertion};
use parking_lot::MutexGuard;

use crate::arena::State;
pub(crate) use crate::class_report::Departure;
use crate::counters::Counters;
use crate::front::Change;
use crate::item::{Expiry, Item};
use crate::newcomer::Newcomer;
use crate::policy::Policy;
use crate::pool::Need;
use crate::recency::Recency;
use crate::shared::Engine;
use crate::size_classes::ClassId;
use crate::slab::{Class, ClassState, Returned};
use crate::told::Evicted;

/// Chunks taken out of limbo at once.
const RECYCLED_AT_ONCE: usize = 64;
/// Items of a page whose buckets are asked for together: the nearest cache holds them all.
const REMOVED_AT_ONCE: usize = 32;
/// Chunks that may wait in the limbo of a class before those who put more there see whether some are safe.
const LIMBO_LEFT_ALONE: usize = 256;

/// An item that was found on its page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) hash: u64,
    pub(crate) at: Location,
    /// The class of its first chunk, in whose limbo it will wait.
    pub(crate) home: ClassId,
}

impl<P: Policy> Engine<P> {
    /// What is to be removed, of an item of which the caller has locked a chunk's class.
    pub(crate) fn found(&self, item: Item<'_>) -> Found {
        let at = item.location();
        Found { hash: self.hash(item.key()), at, home: self.class_of(at).id() }
    }

    /// Takes exactly this item out of the index and retires it; false if it is not there. The caller found it in the
    /// index and has been pinned since: no other item can have come to its location.
    pub(crate) fn remove(&self, hash: u64, at: Location, why: Departure, counters: &Counters) -> bool {
        let removed = self.take_out(hash, |found| found == at);
        if removed {
            // SAFETY: removed by us, just now.
            unsafe { self.retire(at, why, counters) };
        }
        removed
    }

    /// As [`remove`](Engine::remove), for a caller who found the item on its page: false also if another one has come
    /// to its location since, unless that has the same hash and is as dead as the first was.
    pub(crate) fn remove_if_still(
        &self,
        hash: u64,
        at: Location,
        why: Departure,
        counters: &Counters,
    ) -> bool {
        let removed = self.take_out_if_still(hash, at, why);
        if removed {
            // SAFETY: removed by us, just now.
            unsafe { self.retire(at, why, counters) };
        }
        removed
    }

    /// The same, but it is the caller's to retire.
    fn take_out_if_still(&self, hash: u64, at: Location, why: Departure) -> bool {
        let still_goes = || {
            // SAFETY: in the index, which cannot lose it while its bucket is locked: it is not reused before that.
            let item = unsafe { Item::at(&self.arena, at) };
            self.hash(item.key()) == hash
                && match why {
                    Departure::Reclaimed | Departure::Swept => self.judge().is_dead(item),
                    Departure::Asked | Departure::Evicted => true,
                }
                && self.leaves(at)
        };
        let _change = self.change(hash);
        // Nearly always it is where it is seen without a lock: then one bucket is locked, and not both.
        let Some(held) = self.table.spot(hash, |found| found == at).and_then(|spot| self.table.hold(spot))
        else {
            return self.table.remove(hash, |found| found == at && still_goes()).is_some();
        };
        let goes = still_goes();
        if goes {
            held.remove(hash);
        }
        goes
    }

    /// [Removes](Engine::remove_if_still) many items that have been found on their pages: their buckets are fetched
    /// together, and what nobody can be reading is free at once.
    pub(crate) fn remove_all_if_still(&self, items: &[Found], why: Departure, counters: &Counters) {
        let mut removed = Vec::with_capacity(REMOVED_AT_ONCE);
        for group in items.chunks(REMOVED_AT_ONCE) {
            group.iter().for_each(|found| self.table.prefetch(found.hash));
            for &Found { hash, at, .. } in group {
                if self.take_out_if_still(hash, at, why) {
                    removed.push(at);
                }
            }
            // SAFETY: removed by us, just now.
            unsafe { self.bury(&removed, why, counters) };
            removed.clear();
        }
    }

    /// Removes what has died of the items in these buckets of the index, on pages where something has expired; says how
    /// many those were. It may miss some. Chained items are left to who looks at pages: many of them cost too much.
    ///
    /// Not for a cache with a lookaside buffer, which must be told the hash before a bucket is locked.
    pub(crate) fn remove_expired_in(&self, buckets: Range<usize>, counters: &Counters) -> usize {
        debug_assert!(self.front.is_none());
        let (now, mut removed) = (self.now(), Vec::with_capacity(buckets.len() * <Table>::BUCKET_SLOTS));
        let may_go = |at| {
            let due = self.page(self.arena.page_of(at).0).earliest_expiry() <= now;
            if due {
                pages::prefetch(self.arena.start(at));
            }
            due
        };
        self.table.sweep(buckets, may_go, |at| {
            // SAFETY: in the index, which cannot lose it while its bucket is locked: it is not reused before that.
            let item = unsafe { Item::at(&self.arena, at) };
            let goes = !item.is_chained() && self.judge().is_dead(item) && self.leaves(at);
            if goes {
                removed.push(at);
            }
            goes
        });
        // Of most buckets nothing goes where something lives: then no word that others share is written.
        if !removed.is_empty() {
            // SAFETY: removed by us, just now.
            unsafe { self.bury(&removed, Departure::Swept, counters) };
        }
        removed.len()
    }

    /// Takes the item of which `is_it` is true out of the index, and says whether it was there: it is the caller's to
    /// retire.
    pub(crate) fn take_out(&self, hash: u64, mut is_it: impl FnMut(Location) -> bool) -> bool {
        let _change = self.change(hash);
        self.table.remove(hash, |at| is_it(at) && self.leaves(at)).is_some()
    }

    /// Takes an item that was found out of the index, if it is on its spot still: it is the caller's to retire. He has
    /// been pinned since.
    pub(crate) fn take_out_on(&self, spot: Spot, hash: u64) -> bool {
        let _change = self.change(hash);
        let Some(held) = self.table.hold(spot) else { return false };
        self.leaves(spot.location());
        held.remove(hash);
        true
    }

    /// What is told of an item that is being evicted.
    #[cold]
    fn evicted<'i>(&self, item: Item<'i>) -> Evicted<'i> {
        let now = self.now();
        Evicted {
            key: item.key(),
            value_len: item.value_len(),
            ttl: match item.expiry() {
                Expiry::Never => None,
                Expiry::At(second) => Some(second.saturating_sub(now)),
            },
            idle: now.saturating_sub(item.access().load().second(now)),
            fetched: item.is_fetched(),
            class: self.sizes.class_of_item(item.first_chunk()).0,
        }
    }

    /// Puts a newcomer into the place of `old` in the index; false if `old` is not there, or `still` says no, which is
    /// asked while its buckets are locked. It is the caller's to retire then.
    pub(crate) fn replace_if(
        &self,
        newcomer: &Newcomer<'_>,
        old: Location,
        still: impl FnOnce() -> bool,
    ) -> bool {
        let change = self.change(newcomer.hash());
        let goes = || {
            let goes = still() && self.leaves(old);
            if goes {
                newcomer.enters();
            }
            goes
        };
        let replaced = self.table.replace_if(newcomer.hash(), old, newcomer.location(), goes);
        if let Some(change) = change.filter(|_| replaced) {
            change.put(newcomer.location());
        }
        replaced
    }

    /// As [`replace_if`](Engine::replace_if), of an item on this spot; false also if it is somewhere else by now.
    pub(crate) fn replace_on(
        &self,
        spot: Spot,
        newcomer: &Newcomer<'_>,
        still: impl FnOnce() -> bool,
    ) -> bool {
        let change = self.change(newcomer.hash());
        let Some(held) = self.table.hold(spot) else { return false };
        if !still() {
            return false;
        }
        self.leaves(spot.location());
        newcomer.enters();
        held.replace(newcomer.location());
        if let Some(change) = change {
            change.put(newcomer.location());
        }
        true
    }

    /// Puts a newcomer into the index, in the place of the item of its key that is there, if there is one: that is the
    /// caller's to retire.
    pub(crate) fn upsert(&self, newcomer: &Newcomer<'_>) -> Result<Upsertion, TooFull> {
        let change = self.change(newcomer.hash());
        let leaves = |at| newcomer.has_key_of(at) && self.leaves(at);
        let upsertion =
            self.table.insert_or_replace(newcomer.hash(), newcomer.location(), leaves, newcomer)?;
        if let Some(change) = change {
            change.put(newcomer.location());
        }
        Ok(upsertion)
    }

    /// Marks an item that is about to be taken out of the index, by who has its buckets locked, so that nobody takes
    /// its number for that of one that comes later ([`crate::stamp`]). True, for it leaves.
    fn leaves(&self, at: Location) -> bool {
        self.arena.set_mark(at, self.arena.mark(at).with_state(State::Limbo));
        true
    }

    /// Tells the lookaside buffer, where there is one, that the index is about to lose something of this hash.
    #[inline]
    fn change(&self, hash: u64) -> Option<Change<'_>> {
        self.front.as_ref().map(|front| front.write(hash))
    }

    /// Sends an item that has left the index to limbo.
    ///
    /// # Safety
    /// The caller has taken this location out of the index: nobody else will retire it.
    pub(crate) unsafe fn retire(&self, at: Location, why: Departure, counters: &Counters) {
        // SAFETY: it is not reused before it is retired, which is ours to do.
        let chunks = unsafe { self.count_out(at, counters) };
        // SAFETY: as above.
        let item = unsafe { Item::at(&self.arena, at) };
        if why == Departure::Evicted && self.told.is_on() {
            self.told.tell(&self.evicted(item));
        }
        let class = self.class_of(at);
        let stamp = self.epochs.stamp();
        let mut state = class.lock();
        state.tallies.count_departure(item, why, self.now());
        class.postpone(&mut state, at, stamp, chunks);
        // Where more leaves than comes, nobody else would: and memory in limbo serves no other class.
        let waiting = state.limbo_len();
        if waiting > LIMBO_LEFT_ALONE && waiting.is_multiple_of(RECYCLED_AT_ONCE) {
            self.recycle_some(class, state);
        }
    }

    /// Counts an item that has left the index; says how many chunks of its class come free with it.
    ///
    /// # Safety
    /// The caller has taken this location out of the index, and has not retired it.
    pub(crate) unsafe fn count_out(&self, at: Location, counters: &Counters) -> usize {
        // SAFETY: it is not reused before it is retired, which is the caller's to do.
        let item = unsafe { Item::at(&self.arena, at) };
        counters.removed(1);
        counters.bytes_removed(item.size() as u64);
        item.chunks_at_home()
    }

    /// Sends items to limbo that somebody has replaced or deleted, and that have been
    /// [counted out](Engine::count_out).
    ///
    /// # Safety
    /// The caller has taken these locations out of the index: nobody else will retire them.
    pub(crate) unsafe fn retire_all(&self, mut retired: &[(Location, usize)]) {
        let stamp = self.epochs.stamp();
        while let Some(&(first, _)) = retired.first() {
            let class = self.class_of(first);
            let mut state = class.lock();
            let before = state.limbo_len();
            while let Some((&(at, chunks), others)) = retired.split_first()
                && self.class_of(at).id() == class.id()
            {
                class.postpone(&mut state, at, stamp, chunks);
                retired = others;
            }
            let waiting = state.limbo_len();
            if waiting > LIMBO_LEFT_ALONE && waiting / RECYCLED_AT_ONCE != before / RECYCLED_AT_ONCE {
                self.recycle_some(class, state);
            }
        }
    }

    /// Retires items that have left the index for one reason, and frees those at once that nobody can be reading: they
    /// would go through limbo for nothing.
    ///
    /// # Safety
    /// As for [`retire`](Engine::retire), of each.
    unsafe fn bury(&self, mut removed: &[Location], why: Departure, counters: &Counters) {
        // SAFETY: not reused before it is retired, which is ours to do.
        let item = |at| unsafe { Item::at(&self.arena, at) };
        if why == Departure::Evicted && self.told.is_on() {
            removed.iter().for_each(|&at| self.told.tell(&self.evicted(item(at))));
        }
        counters.removed(removed.len() as u64);
        counters.bytes_removed(removed.iter().map(|&at| item(at).size() as u64).sum());
        let (stamp, now) = (self.epochs.stamp(), self.now());
        // What was stamped until now becomes safe as soon as those pinned now have left.
        self.epochs.advance();
        let is_safe = stamp < self.epochs.safe_before();
        while let Some(&first) = removed.first() {
            let class = self.class_of(first);
            let mut emptied = Vec::new();
            let mut state = class.lock();
            while let Some((&at, others)) = removed.split_first()
                && self.class_of(at).id() == class.id()
            {
                let item = item(at);
                state.tallies.count_departure(item, why, now);
                if is_safe && !item.is_chained() {
                    let returned = class.push(&mut state, self.memory(), at);
                    if returned != Returned::ToItsPage {
                        emptied.push(returned);
                    }
                } else {
                    class.postpone(&mut state, at, stamp, item.chunks_at_home());
                }
                removed = others;
            }
            drop(state);
            for returned in emptied {
                self.give_page(class, returned);
            }
        }
    }

    /// Makes room in the index for a key of this hash, by evicting one of those in its two buckets: the first that has
    /// not been used lately, or else the first. The caller must be pinned.
    pub(crate) fn evict_neighbour(&self, hash: u64, counters: &Counters) -> bool {
        let mut choice: Option<(u64, Location, Recency)> = None;
        for at in self.table.neighbours(hash) {
            // SAFETY: found in the index while pinned.
            let item = unsafe { Item::at(&self.arena, at) };
            if choice.is_none_or(|(_, _, recency)| item.recency() < recency) {
                choice = Some((self.hash(item.key()), at, item.recency()));
            }
        }
        choice.is_some_and(|(hash, at, _)| self.remove(hash, at, Departure::Evicted, counters))
    }

    /// Evicts one item that has a chunk of this class, if there is one; says in the limbo of which class it is.
    pub(crate) fn evict_from(&self, class: &Class<P>, counters: &Counters) -> Option<&Class<P>> {
        let judge = self.judge();
        let mut state = class.lock();
        let victim = class.victim(&mut state, self.memory(), judge)?;
        let (at, hash, dead) = (victim.location(), self.hash(victim.key()), judge.is_dead(victim));
        // While the class is locked: once the item is retired, others may empty its page, and it may be nobody's.
        let home = self.class_of(at);
        drop(state);
        let why = if dead { Departure::Reclaimed } else { Departure::Evicted };
        self.remove_if_still(hash, at, why, counters).then_some(home)
    }

    /// Frees what is safe in the limbo of a class, and says whether the class has free chunks now.
    pub(crate) fn recycle(&self, class: &Class<P>, state: MutexGuard<'_, ClassState<P>>) -> bool {
        if state.limbo_len() == 0 {
            return state.free() > 0;
        }
        self.recycle_some(class, state);
        class.lock().free() > 0
    }

    /// Frees up to [`RECYCLED_AT_ONCE`] of what is safe in the limbo of a class, and says how many it has looked at.
    pub(crate) fn recycle_some(&self, class: &Class<P>, mut state: MutexGuard<'_, ClassState<P>>) -> usize {
        // What was stamped until now becomes safe as soon as those pinned now have left.
        self.epochs.advance();
        let safe = self.epochs.safe_before();
        let mut chained = Vec::new();
        let mut emptied = Vec::new();
        let mut popped = 0;
        while popped < RECYCLED_AT_ONCE {
            let Some((at, stamp)) = class.pop_limbo(&mut state, safe) else { break };
            popped += 1;
            // SAFETY: taken out of the index by whoever retired it, and safe: nobody reads it but us.
            let item = unsafe { Item::at(&self.arena, at) };
            state.leave_limbo(item.chunks_at_home());
            if !item.is_chained() {
                let returned = class.push(&mut state, self.memory(), at);
                if returned != Returned::ToItsPage {
                    emptied.push(returned);
                }
            } else if item.is_kept() {
                class.postpone(&mut state, at, stamp, item.chunks_at_home());
            } else {
                chained.push(at);
            }
        }
        drop(state);
        for returned in emptied {
            self.give_page(class, returned);
        }
        for at in chained {
            // SAFETY: as above, and nobody keeps it.
            unsafe { self.dismantle(at) };
        }
        popped
    }

    /// Frees all that is in the limbo of a class now, as far as it is safe and nobody keeps it.
    pub(crate) fn recycle_fully(&self, class: &Class<P>) {
        // Counted beforehand: what is kept comes back to the end of the list.
        let mut left = class.lock().limbo_len();
        while left > 0 {
            match self.recycle_some(class, class.lock()) {
                0 => return,
                popped => left = left.saturating_sub(popped),
            }
        }
    }

    /// Frees all that is safe, in all classes.
    pub(crate) fn recycle_all(&self) {
        self.classes().for_each(|class| self.recycle_fully(class));
    }

    /// Frees all chunks of an item.
    ///
    /// # Safety
    /// The caller owns the item: it was never in the index, or is safe to reuse.
    pub(crate) unsafe fn dismantle(&self, first: Location) {
        // SAFETY: the caller's.
        let item = unsafe { Item::at(&self.arena, first) };
        // The first chunk last: as long as a further one is not free, its owner is not reused (see `slab`).
        let further: Vec<Location> = item.further().map(|further| further.location()).collect();
        let home = self.class_of(first).id();
        for at in further {
            self.give_chunk(at, home);
        }
        self.give_chunk(first, home);
    }

    fn give_chunk(&self, at: Location, home: ClassId) {
        let class = self.class_of(at);
        let mut state = class.lock();
        if class.id() != home {
            state.comes_back();
        }
        let returned = class.push(&mut state, self.memory(), at);
        drop(state);
        self.give_page(class, returned);
    }

    /// Gives a page that has left a class to the one that it was drained for.
    pub(crate) fn give_page(&self, class: &Class<P>, returned: Returned) {
        let Returned::Emptied(page, heir) = returned else { return };
        self.pool.give(page, class.per_page());
        let Some(heir) = heir.map(|id| self.class(id)) else { return };
        // Not if there is too little for the heir's share of the index, or the reserve has been used: it asks again
        // then.
        if let Some(page) = self.pool.take(&self.arena, heir.per_page(), Need::Ordinary) {
            heir.adopt(&mut heir.lock(), self.memory(), page);
        }
    }
}
