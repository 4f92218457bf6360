//! Where memory comes from when no page is nobody's.
//!
//! Memory that holds nothing alive serves any size, on the write path and with no wait. A class that wants a page has
//!
//! ```text
//!   1. the spare pages of all classes collected     nothing on them is in use
//!   2. limbo emptied                                as far as no reader is in the way
//!   3. pages with dead items cleared                expired or flushed, and nobody has noticed
//!   4. the index shrunk                             by what it holds beyond its share
//! ```
//!
//! and only then something alive goes, if the cache evicts: an item of the class itself, or the oldest page of another
//! class.
//!
//! # Which
//!
//! All classes shall evict at the same age: that is what a single clock over all memory would do. How old items get in
//! a class is its lap ([`crate::pace`]). A class that is short takes the oldest page of the class whose lap would still
//! be the longest with one page fewer, if that is longer than its own by an eighth; else it evicts an item of its own,
//! and more for a part of its lap before it looks again. A class to which nothing has come for so long gives its pages,
//! the last one, too, which goes in no other case: a class that still stores would take another one at once. A page
//! that is taken goes to whom it was taken for: whoever came first would have it else, and pages would go round among
//! those who are not short. So memory follows the load as fast as the load changes, and where the sizes stay as they
//! are no page moves. (memcached's operators call memory that does not move calcified.)
//!
//! A page goes whole, so it is looked at as the hand would look: if more than a quarter of its items have been used
//! since, it is spared, and is the youngest then. The ends of large items need a look at their own age, too: they come
//! to a page one by one, over all the time in which it counts as getting older, and each takes its whole item along.
//!
//! # What it costs
//!
//! A store to a cache that is not short of memory comes by nothing of this. To one that is full it costs a look at two
//! words (is anything spare, can anything be dead), and once in a part of the class's lap a look at each class.
//! Who clears a page of dead items or evicts a page's items gets what takes as many stores to fill. A page is cleared
//! once for each second in which something on it expires, and once for each flush.
//!
//! # Rejected
//!
//! *A thread that moves a page a second* (as memcached's, and as this cache's was): a day and a half for 8 GB. *Handing
//! an empty page back at once*: a class that goes up and down by one item would take the pool's lock each time. *Moving
//! live items together*, so that half-empty pages come free: a copy of every item moved, and a page that is mostly
//! empty is soon the oldest.

use crate::arena::{PAGE, PageNumber};
use crate::counters::Counters;
use crate::departure::{Departure, Found};
use crate::item::Expiry;
use crate::pace::Lap;
use crate::policy::Policy;
use crate::search::Moment;
use crate::shared::Engine;
use crate::slab::{Class, Heir};
use crate::verdict::Verdict;

/// Pages with dead items that one allocation clears at the most, where it could evict instead.
const MOST_CLEARED: usize = 16;
/// Classes that are asked for a page, and old pages of each that are looked at for one that may go.
const MOST_ASKED: usize = 4;
const MOST_JUDGED: usize = 4;
/// The part of its lap for which a class evicts its own, once no other has been found that evicts older ones, before it
/// looks again.
const ALLOWED: f64 = 1.0 / 32.0;
/// Load of the index above which it is not shrunk: most merges would need several displacements.
const HIGHEST_LOAD: f64 = 0.65;

/// How far a reclamation may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The class could evict instead.
    Bounded,
    /// Whatever is dead.
    Whole,
}

impl<P: Policy> Engine<P> {
    /// Looks for a page for `class` in memory that holds nothing alive; true if one can be had now.
    pub(crate) fn reclaim(&self, class: &Class<P>, extent: Extent, counters: &Counters) -> bool {
        if extent == Extent::Whole {
            self.recycle_all();
        }
        while self.pool.lacks(class.per_page()) {
            if !self.clear_dead(extent, counters) && (extent == Extent::Bounded || !self.shrink_index()) {
                return false;
            }
        }
        self.collect_spare();
        true
    }

    /// Takes the pages with nothing in use away from all classes; true if there were any.
    pub(crate) fn collect_spare(&self) -> bool {
        if self.pool.spare() == 0 {
            return false;
        }
        let mut collected = false;
        for class in self.classes() {
            let taken = class.take_empty(&mut class.lock(), self.memory());
            collected |= !taken.is_empty();
            for page in taken {
                self.pool.give(page, class.per_page());
            }
        }
        collected
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now(), flush: self.flushes.flushed() }
    }

    /// Clears pages with dead items until one of them is spare; false if there is no such page, or not within the
    /// extent.
    pub(crate) fn clear_dead(&self, extent: Extent, counters: &Counters) -> bool {
        let moment = self.moment();
        if self.search.is_over(moment) {
            return false;
        }
        let mut cleared = 0;
        while let Some(page) = self.search.next(moment, self.memory(), &self.flushes) {
            self.clear_page(page, Departure::Reclaimed, counters);
            if self.pool.spare() > 0 {
                return true;
            }
            cleared += 1;
            if cleared == MOST_CLEARED && extent == Extent::Bounded {
                break;
            }
        }
        false
    }

    /// Makes room for the items to come of a class that has few chunks left, while no page can be had: by evicting one
    /// of its own or, if those are younger than others', a page of another class.
    pub(crate) fn make_way(&self, class: &Class<P>, counters: &Counters) {
        if self.reclaim(class, Extent::Bounded, counters) {
            return;
        }
        let allowed = class.lock().is_allowed(self.pool.turns());
        if !allowed && self.take_from_others(class, counters) {
            return;
        }
        self.evict_from(class, counters);
    }

    /// Sees to it that a page comes free for a class, if another class would evict older items than this one even with
    /// a page fewer; else the class is allowed to evict some of its own.
    pub(crate) fn take_from_others(&self, class: &Class<P>, counters: &Counters) -> bool {
        // What waits in limbo elsewhere for nobody's sake comes first.
        for other in self.classes() {
            let state = other.lock();
            if state.limbo_len() > 0 && other.id() != class.id() {
                self.recycle_some(other, state);
            }
        }
        if self.pool.spare() > 0 || self.shrink_index() {
            return true;
        }
        let own = class.lap(&mut class.lock(), self.memory()).map_or(0.0, |lap| lap.now);
        if self.has_emptied() {
            let others = self
                .oldest_first()
                .into_iter()
                .filter(|(other, lap)| other.id() != class.id() && lap.spares_page_for(own));
            for (other, _) in others.take(MOST_ASKED) {
                if self.empty_page_of(other, MOST_JUDGED, Some(class.id()), counters) {
                    return true;
                }
            }
        }
        let until = self.pool.turns().wrapping_add((own * ALLOWED) as u32 + 1);
        class.lock().allow_until(until);
        false
    }

    /// The classes with pages and their laps, first those that evict the oldest items.
    fn oldest_first(&self) -> Vec<(&Class<P>, Lap)> {
        let laps = self.classes().filter_map(|class| {
            let lap = class.lap(&mut class.lock(), self.memory())?;
            Some((class, lap))
        });
        let mut laps: Vec<_> = laps.collect();
        laps.sort_by(|(_, one), (_, other)| other.age().total_cmp(&one.age()));
        laps
    }

    /// Evicts what is on the oldest page of a class that may go, of so many; false if there is none.
    fn empty_page_of(&self, class: &Class<P>, judged: usize, heir: Heir, counters: &Counters) -> bool {
        let goes = (0..judged).any(|_| {
            let verdict = class.judge_oldest(&mut class.lock(), self.memory(), self.judge());
            verdict == Some(Verdict::Goes)
        });
        if goes {
            self.drain_page(class, heir, counters);
        }
        goes
    }

    /// Takes an old page that can be emptied and evicts what is on it, so that any class can have it; false if there is
    /// none.
    pub(crate) fn empty_a_page(&self, counters: &Counters) -> bool {
        // Twice around: what has been used is spared the first time.
        self.oldest_first().into_iter().any(|(class, _)| {
            let pages = class.lock().pages();
            self.empty_page_of(class, 2 * pages, None, counters)
        })
    }

    /// Takes the oldest page of the class with the oldest items and evicts what is on it: one that has been used much
    /// only if the next few have, too. False if there is none.
    pub(crate) fn empty_oldest_page(&self, counters: &Counters) -> bool {
        let Some((class, _)) = self.oldest_first().into_iter().next() else { return false };
        if !self.empty_page_of(class, MOST_JUDGED, None, counters) {
            self.drain_page(class, None, counters);
        }
        true
    }

    /// Whether those have left who were pinned when a page was emptied last: while one of them has lost its core, no
    /// page comes back, and more of them would be emptied for nothing, in the end all.
    pub(crate) fn has_emptied(&self) -> bool {
        let mut emptying = self.emptying.lock();
        let Some(present) = *emptying else { return true };
        if self.epochs.safe_before() < present {
            return false;
        }
        *emptying = None;
        drop(emptying);
        self.recycle_all();
        true
    }

    /// Takes the oldest page out of a class and evicts what is on it. Its chunks come back as they become safe, which
    /// is at once if nobody is reading.
    pub(crate) fn drain_page(&self, class: &Class<P>, heir: Heir, counters: &Counters) {
        let drained = class.drain(&mut class.lock(), self.memory(), heir);
        if let Some(returned) = drained {
            self.give_page(class, returned);
            self.evict_draining(class, counters);
            if class.lock().is_draining() {
                *self.emptying.lock() = Some(self.epochs.advance());
            }
        }
    }

    /// Evicts what is on the pages that a class is giving up: also what was being written when they were drained, and
    /// has come into the index since.
    pub(crate) fn evict_draining(&self, class: &Class<P>, counters: &Counters) {
        let state = class.lock();
        // All of it while the class is locked, which keeps the pages its own and the items where they are.
        let victims: Vec<_> = state
            .draining()
            .flat_map(|page| class.items_of(&state, self.memory(), page))
            .map(|item| self.found(item))
            .collect();
        drop(state);
        self.remove_all(class, &victims, Departure::Evicted, counters);
    }

    /// Removes the dead items of a page, and notes when the next one expires; says how many there were.
    pub(crate) fn clear_page(&self, number: PageNumber, why: Departure, counters: &Counters) -> usize {
        let page = self.page(number);
        let Some(class) = page.owner().map(|id| self.class(id)) else { return 0 };
        let judge = self.judge();
        let mut dead = Vec::new();
        let state = class.lock();
        if page.owner() != Some(class.id()) {
            // It has changed hands since, and is being filled anew.
            return 0;
        }
        // Forgotten first and noted again item by item, so that a note made meanwhile is not lost.
        page.forget_expiries();
        if page.is_empty() {
            return 0;
        }
        for item in class.items_of(&state, self.memory(), number) {
            if judge.is_dead(item) {
                dead.push(self.found(item));
            } else if let Expiry::At(second) = item.expiry() {
                page.expires_at(second);
            }
        }
        drop(state);
        let removed = dead.len();
        if removed > 0 {
            self.remove_all(class, &dead, why, counters);
        }
        removed
    }

    /// Removes items with a chunk in a class, and frees what is safe of them.
    fn remove_all(&self, class: &Class<P>, items: &[Found], why: Departure, counters: &Counters) {
        self.remove_all_if_still(items, why, counters);
        self.recycle_fully(class);
        // An item of which only a further chunk is here waits in the limbo of another class: that of all first chunks.
        if let Some(elsewhere) = items.iter().find(|found| found.home != class.id()) {
            self.recycle_fully(self.class(elsewhere.home));
        }
    }

    /// Has the index give up a page's worth of memory, if it has that much beyond its share; true if it has.
    pub(crate) fn shrink_index(&self) -> bool {
        self.pool.index_surplus() >= PAGE && self.table.shrink(HIGHEST_LOAD)
    }
}
