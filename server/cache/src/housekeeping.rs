//! Housekeeping: what must happen without being asked for.
//!
//! - Expired items are removed. Every page knows the earliest second at which one of its items expires, so pages in
//!   which nothing has expired are not looked at. Where most of what there is dies at once, the index is swept.
//! - Flushed items are swept out, and flushes that were scheduled take place.
//! - The reserve of pages is restored.
//! - Last accesses are kept from wrapping ([`crate::access`]).
//! - A cache that has got a lower limit is emptied down to it ([`crate::resize`]).
//!
//! Nobody who stores depends on any of it: what is dead is reclaimed by who needs its memory ([`crate::reclaim`]). This
//! is for memory that nobody asks for, and so that those who ask find less to do.
//!
//! Work comes in short steps, so a caller may do one between other things; a server gives it a thread that sleeps most
//! of the time. A step takes some tenth of a millisecond, however large the cache is: where that thread shares its core
//! with one that serves, requests wait for the end of a step. So what is bounded is what costs, the items removed and
//! the pages looked at.
//!
//! # Many at once
//!
//! Who clears a page knows the items and looks for each in the index: two lines of it, anywhere. Who sweeps the index
//! reads it as it lies, and looks at each item: one line, anywhere, no hash, and a lock for seven entries. That is half
//! of the cost (38 ns an item instead of 81 to 88), if most items that are looked at are dead. So a round over the
//! pages that finds many pages of dead items sweeps the index once and then goes on, over pages that are empty now. A
//! sweep may miss an item that is displaced meanwhile; the pages' notes stay as they are until the round comes by,
//! which finds it.
//!
//! Rejected: *to reuse a page whose last item has expired, and to leave its items in the index* until somebody comes
//! by: whoever displaces an entry or splits a bucket hashes its key, and a lookup compares it, so what is in the index
//! must stay readable.

use std::sync::Arc;

use atomics::Counting;

use crate::access::SWEEP;
use crate::arena::PageNumber;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::departure::Departure;
use crate::flush::Sweep;
use crate::policy::Policy;
use crate::shared::Engine;
use crate::size_classes::ClassId;
use crate::slab::Class;

/// Pages whose items are looked at in one step.
const PAGES_A_STEP: PageNumber = 16;
/// Items removed in one step after which it does not go on to another page: one is some hundred nanoseconds.
const ITEMS_A_STEP: usize = 512;
/// Pages in one step of which it is looked up when their items expire.
const EXPIRIES_A_STEP: PageNumber = 8192;
/// Pages cleared of expired items in one round before the index may be swept for more.
const PAGES_BEFORE_SWEEP: usize = 64;
/// Buckets of the index that a sweep looks at in one step, and before what it has removed is freed.
const BUCKETS_A_STEP: usize = 1024;
const BUCKETS_AT_ONCE: usize = 8;
/// Steps in which a sweep over last accesses is done at the latest: half an hour of those that a resting housekeeper
/// makes.
const STEPS_TO_HOLD: PageNumber = 18_000;
/// Chunks in the limbo of a class that need no attention: its next allocations take them.
const LIMBO_LEFT_ALONE: usize = 128;

/// What there is still to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Todo {
    /// Nothing that cannot wait: come back in a tenth of a second or so.
    Rest,
    /// A sweep or a shortage is being dealt with, or memory given back: come back soon.
    More,
}

/// What came of [`Housekeeper::reassign`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reassigned {
    /// The page is on its way.
    Done,
    /// The class has no page to give.
    NoSpare,
    /// Somebody still reads what was on the last page that was given.
    Busy,
}

/// What a round over all pages for expired items has come to.
#[derive(Debug, Default)]
struct Round {
    /// Pages looked at, and of these pages with expired items.
    looked: usize,
    due: usize,
    /// Chunks that were in use on those, and items removed.
    used: usize,
    dead: usize,
    /// Whether the index was swept.
    swept: bool,
}

impl Round {
    fn note(&mut self, used: usize, dead: usize) {
        self.due += 1;
        self.used += used;
        self.dead += dead;
    }

    /// Whether so much is dying that the rest is sooner found in the index: on a quarter of the pages, three quarters
    /// of what is there.
    fn wants_sweep(&self) -> bool {
        !self.swept
            && self.due >= PAGES_BEFORE_SWEEP
            && self.due * 4 >= self.looked
            && self.dead * 4 >= self.used * 3
    }
}

/// The one who does it.
pub struct Housekeeper<P: Policy = Clock> {
    engine: Arc<Engine<P>>,
    counters: Counting<Counters>,
    /// The round over all pages for expired items: the next page, and how many there are still to look at.
    next_page: PageNumber,
    to_look: PageNumber,
    round: Round,
    /// The next bucket of a sweep of the index, if there is one.
    next_bucket: Option<usize>,
    sweep: Option<(Sweep, PageNumber)>,
    /// When the last sweep over last accesses began, and how far it has come.
    held: u32,
    to_hold: Option<PageNumber>,
}

impl<P: Policy> Housekeeper<P> {
    pub(crate) fn new(engine: Arc<Engine<P>>) -> Self {
        let held = engine.now();
        Housekeeper {
            counters: engine.registry.join(),
            next_page: 0,
            to_look: 0,
            round: Round::default(),
            next_bucket: None,
            sweep: None,
            held,
            to_hold: None,
            engine,
        }
    }

    /// Does one step.
    pub fn step(&mut self) -> Todo {
        while !self.flush_due(self.engine.now()) {
            std::thread::yield_now();
        }
        let sweeping = self.sweep_some() || self.expire_some();
        self.hold_some();
        self.recycle();
        let shrinks = self.engine.give_up_some(&self.counters);
        let short = self.engine.evicts() && self.restore_reserve();
        if sweeping || shrinks || short { Todo::More } else { Todo::Rest }
    }

    /// Flushes now, after the sweep of earlier flushes if too many of them are unswept.
    pub(crate) fn flush(&mut self) {
        while !self.try_flush() {
            std::thread::yield_now();
        }
    }

    /// As [`Cache::flush`](crate::engine::Cache::flush), unless too many earlier flushes await their sweep: then a part
    /// of that is done, and `false`. It is for those who must not be kept waiting, and come back. A flush that is still
    /// to come stays.
    pub fn try_flush(&mut self) -> bool {
        let flushed = self.engine.flushes.flush(|| self.engine.epochs.stamp());
        if !flushed {
            self.sweep_some();
        }
        flushed
    }

    /// Carries out a flush that was to take place [by this second](crate::engine::Cache::flush_at), and says whether
    /// none is left to do: as [`Housekeeper::try_flush`], it does a part of what must be done before, else. Each step
    /// does it for the second that the clock shows; who sets the clock, and does it before that, lets nobody see what
    /// is flushed in the second in which it is to be gone.
    pub fn flush_due(&mut self, second: u32) -> bool {
        let flushed = self.engine.flushes.flush_due(second, || self.engine.epochs.stamp());
        if !flushed {
            self.sweep_some();
        }
        flushed
    }

    /// Has a class give a page to another one: the items on its oldest page are evicted. `None` stands for a class that
    /// has pages to give, and for nobody in particular. Nobody needs to ask for it; pages follow the load by
    /// themselves.
    pub fn reassign(&mut self, from: Option<u8>, to: Option<u8>) -> Reassigned {
        if !self.engine.has_emptied() {
            return Reassigned::Busy;
        }
        let heir = to.map(ClassId);
        let gives = |class: &&Class<P>| {
            let asked = from.is_none_or(|from| class.id() == ClassId(from));
            asked && Some(class.id()) != heir && class.lock().pages() > 1
        };
        let Some(class) = self.engine.classes().find(gives) else { return Reassigned::NoSpare };
        self.engine.drain_page(class, heir, &self.counters);
        Reassigned::Done
    }

    /// Goes on with, or begins, a sweep of flushed items; false if there is nothing to sweep.
    fn sweep_some(&mut self) -> bool {
        if self.sweep.is_none() {
            if !self.engine.flushes.is_pending() {
                return false;
            }
            self.engine.epochs.advance();
            let safe = self.engine.epochs.safe_before();
            self.sweep = self.engine.flushes.begin_sweep(safe).map(|sweep| (sweep, 0));
        }
        let Some((sweep, from)) = self.sweep else { return true };
        let most = (from + PAGES_A_STEP).min(self.engine.pool.touched());
        let (mut to, mut removed) = (from, 0);
        while to < most && removed < ITEMS_A_STEP {
            removed += self.engine.clear_page(to, Departure::Swept, &self.counters);
            to += 1;
        }
        if to < self.engine.pool.touched() {
            self.sweep = Some((sweep, to));
        } else {
            self.engine.flushes.end_sweep(sweep);
            self.sweep = None;
        }
        true
    }

    /// Goes on with, or begins when its time has come, a sweep over last accesses.
    fn hold_some(&mut self) {
        let now = self.engine.now();
        // A clock that was put back begins anew.
        if self.to_hold.is_none() && (now < self.held || now - self.held >= SWEEP) {
            self.held = now;
            self.to_hold = Some(0);
        }
        let Some(from) = self.to_hold else { return };
        let touched = self.engine.pool.touched();
        let to = (from + PAGES_A_STEP.max(touched / STEPS_TO_HOLD)).min(touched);
        (from..to).for_each(|page| self.engine.hold_accesses(page));
        self.to_hold = (to < touched).then_some(to);
    }

    /// Goes on with a round over all pages, or begins one; false at its end. Each rest is followed by a round.
    fn expire_some(&mut self) -> bool {
        if let Some(from) = self.next_bucket {
            self.next_bucket = self.sweep_index(from);
            return true;
        }
        let now = self.engine.now();
        let touched = self.engine.pool.touched();
        if self.to_look == 0 {
            self.to_look = touched;
            self.round = Round::default();
        }
        let (mut pages, mut removed) = (0, 0);
        for _ in 0..self.to_look.min(EXPIRIES_A_STEP) {
            if pages == PAGES_A_STEP || removed >= ITEMS_A_STEP {
                break;
            }
            self.to_look -= 1;
            self.next_page = if self.next_page + 1 < touched { self.next_page + 1 } else { 0 };
            self.round.looked += 1;
            let page = self.engine.page(self.next_page);
            if page.earliest_expiry() <= now {
                let used = page.used();
                let dead = self.engine.clear_page(self.next_page, Departure::Swept, &self.counters);
                self.round.note(used, dead);
                removed += dead;
                pages += 1;
            }
        }
        if self.round.wants_sweep() && self.engine.front.is_none() {
            self.round.swept = true;
            self.next_bucket = Some(0);
        }
        self.to_look > 0
    }

    /// Goes on with a sweep of the index for what has expired; says with which bucket to go on.
    fn sweep_index(&self, from: usize) -> Option<usize> {
        let buckets = self.engine.table.buckets();
        let (mut to, mut removed) = (from, 0);
        while to < buckets.min(from + BUCKETS_A_STEP) && removed < ITEMS_A_STEP {
            removed += self.engine.remove_expired_in(to..to + BUCKETS_AT_ONCE, &self.counters);
            to += BUCKETS_AT_ONCE;
        }
        (to < buckets).then_some(to)
    }

    /// What was drained, or given up by a reader that stayed long, comes back.
    fn recycle(&self) {
        let mut draining = false;
        for class in self.engine.classes() {
            let state = class.lock();
            let (is_draining, limbo) = (state.is_draining(), state.limbo_len());
            drop(state);
            if is_draining {
                self.engine.evict_draining(class, &self.counters);
            } else if limbo > LIMBO_LEFT_ALONE {
                self.engine.recycle_fully(class);
            }
            draining |= is_draining;
        }
        if draining {
            // The last chunks of a page may be those of items that wait in any class.
            self.engine.recycle_all();
        }
    }

    /// Empties pages until the reserve is there again; true while it is not.
    fn restore_reserve(&mut self) -> bool {
        // What is still to be given up comes first, and then there is a reserve as well.
        if self.engine.pool.excess() > 0 || !self.engine.pool.is_below_reserve() {
            return false;
        }
        if self.engine.has_emptied() && self.engine.pool.is_below_reserve() {
            self.engine.empty_a_page(&self.counters);
        }
        self.engine.pool.is_below_reserve()
    }
}

#[cfg(test)]
mod tests {
    use cuckoo::Location;

    use super::{Class, ITEMS_A_STEP};
    use crate::arena::PAGE;
    use crate::departure::Departure;
    use crate::engine::{Cache, Config, Entry, Expiry, Session, Todo, Verb};
    use crate::pool::Need;
    use crate::size_classes::LARGEST_CHUNK;

    /// Who begins to look for dead items, is held up while a flush comes and goes, and then finds what was stored after
    /// it.
    #[test]
    fn what_is_stored_after_a_flush_is_not_taken_for_flushed() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let mut session = cache.session();
        session.store(Verb::Set, Entry::new(b"before"), b"1").expect("room");
        let judge = cache.engine().judge();
        cache.flush();
        session.store(Verb::Set, Entry::new(b"after"), b"2").expect("room");
        let pinned = session.pin();
        let after = pinned.peek(b"after").expect("it is there");
        assert!(!judge.is_dead(after.item));
        assert!(pinned.peek(b"before").is_none());
    }

    /// Nobody asks for an item for days: it stays old, and whoever does then is told so.
    #[test]
    fn last_accesses_do_not_wrap_while_housekeeping_goes_on() {
        for start in [0, 1000, u32::MAX - 400_000] {
            let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
            cache.set_time(start);
            let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
            for (key, len) in [(b"small", 10), (b"large", 100_000)] {
                session.store(Verb::Set, Entry::new(key), &vec![1; len]).expect("room");
                let won = session.pin().peek(key).expect("it is there").win();
                assert!(won);
            }
            let class = usize::from(cache.class_of(&Entry::new(b"small"), 10));
            for hour in 1..=100 {
                cache.set_time(start + hour * 3600);
                for _ in 0..3 {
                    housekeeper.step();
                }
                let least = (hour * 3600).min(9 * 3600);
                for key in [b"small", b"large"] {
                    let pinned = session.pin();
                    let hit = pinned.peek(key).expect("it is there");
                    let age = cache.time() - hit.last_access();
                    assert!((least - 3..=hour * 3600).contains(&age), "{age} after {hour} hours");
                    assert!(hit.is_won());
                }
                assert!(cache.oldest_age(class) >= least);
            }
            assert_eq!(session.pin().get(b"small").map(|hit| hit.is_won()), Some(true));
            assert!(cache.time() - session.pin().peek(b"small").expect("it is there").last_access() < 4);
        }
    }

    /// A step removed all that was dead on 64 pages, which took as long as eight milliseconds. Where the housekeeper
    /// shares a core with who serves, requests waited for that.
    #[test]
    fn a_step_removes_a_few_items_however_many_are_to_go() {
        for way in ["flush", "expiry", "limit"] {
            let limit = 8 << 20;
            let cache: Cache = Cache::new(Config::with_limit(limit)).expect("a cache");
            cache.set_time(1);
            let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
            for key in 0..limit as u32 / 32 {
                let key = key.to_be_bytes();
                let entry = Entry::new(&key).with_expiry(Expiry::At(10));
                session.store(Verb::Set, entry, &[1; 16]).expect("room");
            }
            let full = cache.len();
            match way {
                "flush" => cache.flush(),
                "expiry" => cache.set_time(10),
                _ => cache.resize(limit / 2).expect("a limit"),
            }
            // The last page that a step takes on goes whole.
            let most = ITEMS_A_STEP + PAGE / 16;
            let mut before = full;
            loop {
                let todo = housekeeper.step();
                let removed = before - cache.len();
                assert!(removed <= most, "{way}: {removed} in a step");
                before = cache.len();
                if todo == Todo::Rest {
                    break;
                }
            }
            assert!(before < full * 3 / 4, "{way}: {before} of {full} are left");
        }
    }

    /// Deletes what lies at a location and stores under `key` what comes there next.
    fn reuse(session: &mut Session, cache: &Cache, old: &[u8], at: Location, key: &[u8]) {
        assert!(session.delete(old));
        let engine = cache.engine();
        engine.recycle_fully(engine.class_of(at));
        session.store(Verb::Set, Entry::new(key), b"later").expect("room");
        assert_eq!(session.pin().peek(key).expect("it is there").item.location(), at);
    }

    /// Who finds an item on its page, dead or the victim, is held up, and then finds another one in its place.
    #[test]
    fn an_item_is_not_removed_for_one_that_was_there_before() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        let (engine, mut session) = (cache.engine(), cache.session());
        session.store(Verb::Set, Entry::new(b"aa"), b"first").expect("room");
        let (hash, at) =
            (engine.hash(b"aa"), session.pin().peek(b"aa").expect("it is there").item.location());

        reuse(&mut session, &cache, b"aa", at, b"aa");
        assert!(!engine.remove_if_still(hash, at, Departure::Reclaimed, &session.counters));
        assert!(session.pin().peek(b"aa").is_some());

        // Another key in the same bucket, with the same tag: as if it had the hash of the first.
        reuse(&mut session, &cache, b"aa", at, b"bb");
        let entries = engine.entries(engine.flushes.generation());
        assert!(engine.table.remove_exact(engine.hash(b"bb"), at));
        engine.table.insert_or_replace(hash, at, |at| entries.holds(at, b"bb"), entries).expect("room");
        assert!(!engine.remove_if_still(hash, at, Departure::Evicted, &session.counters));
        assert_eq!(engine.table.find(hash, |found| found == at), Some(at));
    }

    /// What is swept is free at once; but not what somebody may be reading.
    #[test]
    fn what_is_read_while_it_is_swept_stays_as_it_is() {
        let cache: Cache = Cache::new(Config::with_limit(4 << 20)).expect("a cache");
        cache.set_time(1);
        let (mut session, mut reader) = (cache.session(), cache.session());
        let entry = |key| Entry::new(key).with_expiry(Expiry::At(10));
        session.store(Verb::Set, entry(b"key"), b"value").expect("room");
        let pinned = reader.pin();
        let hit = pinned.peek(b"key").expect("it is there");
        cache.set_time(10);
        cache.housekeeper().step();
        assert_eq!(cache.len(), 0);
        // More than its page has room for.
        for other in 0..PAGE as u32 / 16 {
            let key = format!("{other:03x}");
            session
                .store(Verb::Set, Entry::new(key.as_bytes()).with_expiry(Expiry::At(20)), b"other")
                .expect("room");
        }
        assert_eq!(hit.to_vec(), b"value");
    }

    /// Of a cache all of which expires in one second, most goes by a sweep of the index, and what is displaced or large
    /// not later than at the end of the round; what lives stays.
    #[test]
    fn all_that_expires_together_goes_in_one_round() {
        let cache: Cache = Cache::new(Config::with_limit(32 << 20)).expect("a cache");
        cache.set_time(1);
        let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
        let count = 300_000_u32;
        let second = |key: u32| if key.is_multiple_of(10) { 20 } else { 10 };
        for key in 0..count {
            let entry = key.to_be_bytes();
            let entry = Entry::new(&entry).with_expiry(Expiry::At(second(key)));
            session.store(Verb::Set, entry, &[1; 16]).expect("room");
        }
        let large = Entry::new(b"large").with_expiry(Expiry::At(10));
        session.store(Verb::Set, large, &[1; LARGEST_CHUNK + 100]).expect("room");
        assert_eq!(cache.len(), count as usize + 1);
        cache.set_time(10);
        let mut swept = false;
        while housekeeper.step() == Todo::More {
            swept |= housekeeper.round.swept;
        }
        assert!(swept);
        assert_eq!(cache.len(), count as usize / 10);
        let pinned = session.pin();
        assert!((0..count).all(|key| pinned.peek(&key.to_be_bytes()).is_some() == (second(key) == 20)));
        drop(pinned);
        // And the pages know when the rest expires.
        cache.set_time(20);
        while housekeeper.step() == Todo::More {}
        assert_eq!(cache.len(), 0);
    }

    /// A full cache, of items of 4 KiB.
    fn full(limit: usize) -> (Cache, Session) {
        let cache: Cache = Cache::new(Config::with_limit(limit)).expect("a cache");
        let mut session = cache.session();
        for key in 0..limit / 4000 {
            session.store(Verb::Set, Entry::new(&key.to_be_bytes()), &[1; 4000]).expect("room");
        }
        (cache, session)
    }

    #[test]
    fn one_slow_reader_does_not_make_the_reserve_cost_the_cache() {
        let (cache, _) = full(16 << 20);
        let engine = cache.engine();
        let mut housekeeper = cache.housekeeper();
        while housekeeper.step() == Todo::More {}
        while engine.pool.take(&engine.arena, 1, Need::Urgent).is_some() {}
        let before = cache.len();

        let mut reader = cache.session();
        let pinned = reader.pin();
        for _ in 0..1000 {
            assert_eq!(housekeeper.step(), Todo::More);
        }
        let evicted = before - cache.len();
        assert!((1..=PAGE / 4096).contains(&evicted), "{evicted} evicted: more than what one page holds");

        drop(pinned);
        assert!((0..1000).any(|_| housekeeper.step() == Todo::Rest), "the reserve does not come back");
        assert!(cache.len() > before / 2, "{} of {before} left", cache.len());
    }

    #[test]
    fn what_was_being_written_to_a_page_that_is_given_up_does_not_keep_it() {
        // A value in one chunk, and one whose further chunks are of another class than its first.
        for len in [4000, LARGEST_CHUNK + 100] {
            let (cache, mut session) = full(16 << 20);
            let mut housekeeper = cache.housekeeper();
            let mut reservation = session.reserve(Verb::Set, Entry::new(b"new"), len).expect("room");
            session.fill(&mut reservation, &vec![1; len]).expect("room");
            let is_drained = |class: &Class<_>| class.lock().pages() == 0 && !class.lock().is_draining();
            for class in cache.engine().classes() {
                while class.lock().pages() > 0 {
                    cache.engine().drain_page(class, None, &session.counters);
                }
            }
            assert_eq!(cache.len(), 0);
            assert!(!cache.engine().classes().all(is_drained), "what is being written stays");

            session.commit(reservation).expect("its room is kept");
            assert_eq!(session.pin().peek(b"new").expect("it is stored").to_vec(), vec![1; len]);
            housekeeper.step();
            assert!(
                cache.engine().classes().all(is_drained),
                "{len} bytes: a page is in no ring and not free"
            );
            assert!(session.pin().peek(b"new").is_none());
        }
    }

    #[test]
    fn chunks_of_a_page_that_is_given_up_come_back_whoever_else_keeps_quiet() {
        let (cache, mut session) = full(16 << 20);
        session.store(Verb::Set, Entry::new(b"chained"), &vec![1; LARGEST_CHUNK + 100]).expect("room");
        let engine = cache.engine();
        let at = session
            .pin()
            .peek(b"chained")
            .expect("it is there")
            .item
            .further()
            .next()
            .expect("chained")
            .location();
        let class = engine.class_of(at);
        let mut housekeeper = cache.housekeeper();

        // A reader is in the way when the page is drained, and nothing is asked of the cache afterwards.
        let mut reader = cache.session();
        let pinned = reader.pin();
        engine.drain_page(class, None, &session.counters);
        assert_eq!(class.lock().draining().count(), 1);
        drop(pinned);
        housekeeper.step();
        assert!(!class.lock().is_draining());
    }
}
