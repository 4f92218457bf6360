//! Slab classes: who has which pages, which chunks are free, and which wait in limbo.
//!
//! Each class has a lock that every allocation and every return of a chunk takes, and nothing else does: lookups never.
//! A free chunk is on the list of its page, linked through the chunk itself, so a page all of whose chunks come back
//! can be taken out of its class and given to another: memory does not stay with the class that happened to want it
//! first. Until its last chunk is back, the page is on its class's list of those being drained: what was being written
//! when it was taken out of the ring comes into the index later, where no hand passes by, and is evicted then.
//!
//! A page on which nothing is in use stays where it is, for its class is the likeliest to want it; it is counted as
//! *spare*, and any class that wants a page has it collected ([`crate::reclaim`]). A page's age is told by the clock of
//! [`crate::pool`]: it is stamped when it comes to its class, when the hand has passed it, and when it was spared.
//!
//! The unsafe code here is of one kind: reading the item of a live chunk under the lock of the chunk's class, which its
//! reuse would need.
//!
//! A chunk whose item has left the index waits in the class's limbo, in the order of the stamps ([`crate::epoch`]), and
//! counts as used until it is safe.

#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::ops::Range;

use cuckoo::Location;
use parking_lot::Mutex;

use crate::arena::{Mark, PAGE, PageNumber, State};
use crate::chunks::{Chunks, Position, live_item};
use crate::class_report::{ClassReport, Tallies};
use crate::epoch::Epoch;
use crate::item::Item;
use crate::judge::Judge;
use crate::pace::{Lap, Pace};
use crate::page::{Memory, Page};
use crate::policy::Policy;
use crate::size_classes::ClassId;
use crate::verdict::Verdict;

/// Pages with free chunks among which a young one is looked for.
const MOST_PREFERRED: usize = 64;
/// Entries that a limbo list has room for when it is empty.
const LIMBO_KEPT: usize = 1024;

/// A slab class.
pub(crate) struct Class<P> {
    id: ClassId,
    chunk_size: usize,
    per_page: usize,
    state: Mutex<ClassState<P>>,
}

/// What the lock of a class protects.
pub(crate) struct ClassState<P> {
    /// The ring of the hand; a page that is being drained is not in it.
    ring: Vec<PageNumber>,
    /// The pages that are being drained, and for whom.
    draining: Vec<(PageNumber, Heir)>,
    /// Pages with free or fresh chunks; those without are dropped from it when they are met.
    open: Vec<PageNumber>,
    /// Free chunks on pages of the ring, fresh ones included.
    free: usize,
    /// Pages of the ring with nothing in use.
    empty: usize,
    /// Where the hand was last; the page there is the oldest of the ring, or about to be.
    hand: Position,
    /// How fast the class goes through its pages.
    pace: Pace,
    /// Pages from the hand's on that have been spared since: the one after them is the oldest.
    spared: usize,
    /// Bytes given out since the pool's clock was told.
    given: usize,
    /// Until then items may be evicted here without asking whether another class has older ones.
    allowed_until: u32,
    limbo: VecDeque<(Location, Epoch)>,
    /// Chunks of this class that come free with what is in limbo.
    limbo_chunks: usize,
    policy: P,
    pub(crate) tallies: Tallies,
}

/// What happened to a returned chunk's page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Returned {
    ToItsPage,
    /// It was the last one of a page that is being drained: the page belongs to no class any more.
    Emptied(PageNumber, Heir),
}

/// The class that a page is drained for: whoever wants it, if none.
pub(crate) type Heir = Option<ClassId>;

impl<P: Policy> Class<P> {
    pub(crate) fn new(id: ClassId, chunk_size: usize) -> Self {
        let state = ClassState {
            ring: Vec::new(),
            draining: Vec::new(),
            open: Vec::new(),
            free: 0,
            empty: 0,
            hand: Position::default(),
            pace: Pace::default(),
            spared: 0,
            given: 0,
            allowed_until: 0,
            limbo: VecDeque::new(),
            limbo_chunks: 0,
            policy: P::default(),
            tallies: Tallies::default(),
        };
        Class { id, chunk_size, per_page: PAGE / chunk_size, state: Mutex::new(state) }
    }

    pub(crate) fn id(&self) -> ClassId {
        self.id
    }

    pub(crate) fn per_page(&self) -> usize {
        self.per_page
    }

    pub(crate) fn lock(&self) -> parking_lot::MutexGuard<'_, ClassState<P>> {
        self.state.lock()
    }

    fn chunk_number(&self, offset: usize) -> u16 {
        (offset / self.chunk_size) as u16
    }

    fn chunk(&self, memory: Memory<'_>, page: PageNumber, number: usize) -> Location {
        memory.arena.location(page, number * self.chunk_size)
    }

    /// Takes over a page that belongs to nobody.
    pub(crate) fn adopt(&self, state: &mut ClassState<P>, memory: Memory<'_>, number: PageNumber) {
        let now = memory.pool.turns();
        memory.page(number).come(self.id, now, memory.pool.second());
        if state.ring.is_empty() {
            state.pace.begin(now);
        }
        state.empty += 1;
        memory.pool.emptied();
        // Behind the hand, so that it is a whole turn away.
        let place = if state.hand.page == 0 { state.ring.len() } else { state.hand.page };
        state.ring.insert(place, number);
        state.hand = state.hand.after_coming(place);
        state.policy.came(place);
        state.open.push(number);
        state.free += self.per_page;
        state.pace.came(self.per_page);
    }

    /// A free chunk, now in state `Filling` and the caller's.
    pub(crate) fn pop(&self, state: &mut ClassState<P>, memory: Memory<'_>) -> Option<Location> {
        while let Some(&number) = state.open.last() {
            let page = memory.page(number);
            let (free, fresh) = (page.free(), page.fresh());
            if free == fresh {
                state.empty -= 1;
                memory.pool.no_more_empty(1);
            }
            let at = if free > 0 {
                let at = self.chunk(memory, number, page.first_free() as usize);
                page.take_free(memory.arena.link(at));
                at
            } else if fresh < self.per_page {
                page.take_fresh();
                self.chunk(memory, number, fresh)
            } else {
                page.unlist();
                state.open.pop();
                continue;
            };
            state.free -= 1;
            self.give_out(state, memory, at);
            return Some(at);
        }
        debug_assert_eq!(state.free, 0);
        None
    }

    /// A chunk is given out: it is in state `Filling` now, and the caller's.
    #[inline]
    fn give_out(&self, state: &mut ClassState<P>, memory: Memory<'_>, at: Location) {
        state.given += self.chunk_size;
        if state.given >= PAGE {
            state.given -= PAGE;
            memory.pool.tick();
        }
        state.pace.gave_out(memory.pool.turns());
        memory.arena.set_mark(at, Mark::new(State::Filling));
    }

    /// The oldest chunk in limbo, if its stamp is before `safe` and it is all of its item: in state `Filling`, and the
    /// caller's, without having been free. Not one of a page that is being drained.
    #[inline]
    pub(crate) fn pop_reusable(
        &self,
        state: &mut ClassState<P>,
        memory: Memory<'_>,
        safe: Epoch,
    ) -> Option<Location> {
        let &(at, stamp) = state.limbo.front()?;
        let (number, _) = memory.arena.page_of(at);
        if stamp >= safe || memory.arena.mark(at).is_chained() || memory.page(number).is_draining() {
            return None;
        }
        state.limbo.pop_front();
        state.limbo_chunks -= 1;
        self.give_out(state, memory, at);
        Some(at)
    }

    /// Takes back a chunk that nobody can be reading.
    pub(crate) fn push(&self, state: &mut ClassState<P>, memory: Memory<'_>, at: Location) -> Returned {
        let (number, offset) = memory.arena.page_of(at);
        let page = memory.page(number);
        debug_assert_eq!(page.class(), self.id);
        memory.arena.set_mark(at, Mark::new(State::Free));
        memory.arena.set_link(at, page.first_free());
        let free = page.put_free(self.chunk_number(offset));
        if page.is_draining() {
            return self.returned(state, page, number, free);
        }
        state.free += 1;
        if free == page.fresh() {
            state.empty += 1;
            memory.pool.emptied();
        }
        if page.list() {
            state.open.push(number);
        }
        Returned::ToItsPage
    }

    /// The oldest chunk in limbo, if its stamp is before `safe`; it is the caller's then, in state `Limbo` still.
    pub(crate) fn pop_limbo(&self, state: &mut ClassState<P>, safe: Epoch) -> Option<(Location, Epoch)> {
        let oldest = if state.limbo.front()?.1 < safe { state.limbo.pop_front() } else { None };
        if state.limbo.is_empty() {
            // A page that was drained, or a reader that stayed long, may have made it very long.
            state.limbo.shrink_to(LIMBO_KEPT);
        }
        oldest
    }

    /// Puts a chunk, whose item has just been taken out of the index or is not safe after all, behind all others in
    /// limbo: `chunks` of this class come free with it.
    pub(crate) fn postpone(&self, state: &mut ClassState<P>, at: Location, stamp: Epoch, chunks: usize) {
        state.limbo.push_back((at, stamp));
        state.limbo_chunks += chunks;
    }

    /// The item that the policy would evict.
    pub(crate) fn victim<'a>(
        &self,
        state: &'a mut ClassState<P>,
        memory: Memory<'a>,
        judge: Judge<'a>,
    ) -> Option<Item<'a>> {
        // SAFETY: the ring is borrowed from the state that the lock of this class protects.
        let chunks = unsafe { Chunks::new(self.chunk_size, memory, &state.ring, judge, state.hand) };
        if chunks.len() == 0 {
            return None;
        }
        let position = state.policy.victim(&chunks)?;
        // The pages between the last victim's and this one's have been passed; all of them, if it lies before the last
        // one.
        let pages = state.ring.len();
        let from = state.hand.page % pages;
        let went_round = position.page == from && position.chunk <= state.hand.chunk;
        let passed = if went_round { pages } else { (position.page + pages - from) % pages };
        for page in 0..passed {
            let number = state.ring[(from + page) % pages];
            memory.page(number).pass(memory.pool.turns());
        }
        let victim = chunks.item(position)?;
        if let Some(age) = chunks.age(position, victim).filter(|_| !judge.is_dead(victim)) {
            memory.pool.evicts_of_age(age);
        }
        let chunks_passed = (passed * self.per_page + position.chunk).saturating_sub(state.hand.chunk);
        let (home, _) = memory.arena.page_of(victim.location());
        let freed = match memory.page(home).class() == self.id {
            true => victim.chunks_at_home(),
            // Its chunk here is counted when it comes back, as those are that other classes' hands free here.
            false => 0,
        };
        state.pace.passed(chunks.passed(chunks_passed, freed), freed);
        state.hand = position;
        state.spared = state.spared.saturating_sub(passed);
        Some(victim)
    }

    /// The items of a page that are dead, or all of them.
    pub(crate) fn items_of<'a>(
        &'a self,
        _locked: &'a ClassState<P>,
        memory: Memory<'a>,
        number: PageNumber,
    ) -> impl Iterator<Item = Item<'a>> + 'a {
        (0..memory.page(number).fresh()).filter_map(move |chunk| {
            let at = self.chunk(memory, number, chunk);
            // SAFETY: `_locked` is the state of this class: its lock is held, for as long as the item is.
            unsafe { live_item(memory, at) }
        })
    }

    /// The items that begin in these chunks of a page.
    pub(crate) fn items_beginning_in<'a>(
        &'a self,
        locked: &'a ClassState<P>,
        memory: Memory<'a>,
        number: PageNumber,
        chunks: Range<usize>,
    ) -> impl Iterator<Item = Item<'a>> + 'a {
        let _ = locked;
        chunks.filter_map(move |chunk| {
            let at = self.chunk(memory, number, chunk);
            // SAFETY: `locked` is the state of this class: its lock is held, for as long as the item is.
            unsafe { live_item(memory, at) }.filter(|item| item.location() == at)
        })
    }

    /// Tells the policy that an item is coming into this chunk, if it wants to know.
    pub(crate) fn entered(&self, state: &mut ClassState<P>, memory: Memory<'_>, at: Location) {
        if !P::WANTS_ENTRIES {
            return;
        }
        let (number, offset) = memory.arena.page_of(at);
        if let Some(page) = state.ring.iter().rposition(|&in_ring| in_ring == number) {
            state.policy.entered(Position { page, chunk: offset / self.chunk_size });
        }
    }

    /// Takes the pages of the ring out of it on which nothing is in use: they are nobody's then.
    pub(crate) fn take_empty(&self, state: &mut ClassState<P>, memory: Memory<'_>) -> Vec<PageNumber> {
        let mut taken = Vec::with_capacity(state.empty);
        if state.empty == 0 {
            return taken;
        }
        let (mut index, mut gone) = (0, Vec::with_capacity(state.empty));
        state.ring.retain(|&number| {
            let page = memory.page(number);
            let stays = !page.is_empty();
            if !stays {
                gone.push(index);
                page.leave();
                taken.push(number);
            }
            index += 1;
            stays
        });
        for page in gone.into_iter().rev() {
            state.hand = state.hand.after_going(page);
            state.policy.went(page);
        }
        state.open.retain(|&number| memory.page(number).owner() == Some(self.id));
        state.free -= taken.len() * self.per_page;
        state.pace.went(taken.len() * self.per_page);
        debug_assert_eq!(taken.len(), state.empty);
        memory.pool.no_more_empty(taken.len());
        state.empty = 0;
        taken
    }

    /// How old items get here; `None` if there are no pages.
    pub(crate) fn lap(&self, state: &mut ClassState<P>, memory: Memory<'_>) -> Option<Lap> {
        let pages = state.pages();
        (pages > 0).then(|| state.pace.lap(self.per_page, pages, state.free, memory.pool.turns()))
    }

    /// Lets the next chunk that is given out be one that the hand has passed lately, if there is one.
    pub(crate) fn prefer_passed(&self, state: &mut ClassState<P>, memory: Memory<'_>) {
        let now = memory.pool.turns();
        let last = state.open.len();
        let youngest = (last.saturating_sub(MOST_PREFERRED)..last)
            .map(|at| (at, memory.page(state.open[at])))
            .filter(|(_, page)| page.free() > 0 || page.fresh() < self.per_page)
            .min_by_key(|(_, page)| page.since_passed(now));
        if let Some((at, _)) = youngest {
            state.open.swap(at, last - 1);
        }
    }

    /// Looks at the oldest page of the ring as a hand does, but at all of it: if much of it has been used or has come
    /// since the last time, or something on it cannot be evicted now, it is spared, and is the youngest.
    pub(crate) fn judge_oldest(
        &self,
        state: &mut ClassState<P>,
        memory: Memory<'_>,
        judge: Judge<'_>,
    ) -> Option<Verdict> {
        let oldest = state.oldest()?;
        let number = state.ring[oldest];
        // SAFETY: the caller has the state that the lock of this class protects, and the page is in its ring.
        let verdict = unsafe { Verdict::on(memory, judge, number, self.chunk_size) };
        if verdict != Verdict::Goes {
            memory.page(number).pass(memory.pool.turns());
            let pages = state.ring.len();
            state.spared = (oldest + pages - state.hand.page % pages) % pages + 1;
        }
        Some(verdict)
    }

    /// Takes the oldest page out of the ring to be emptied: its free chunks are not given out any more, its items are
    /// for the caller to evict. `Emptied` at once if nothing of it is in use.
    pub(crate) fn drain(
        &self,
        state: &mut ClassState<P>,
        memory: Memory<'_>,
        heir: Heir,
    ) -> Option<Returned> {
        let page = state.oldest()?;
        let number = state.ring.remove(page);
        state.hand = state.hand.after_going(page);
        state.policy.went(page);
        state.open.retain(|&open| open != number);
        let page = memory.page(number);
        if page.is_empty() {
            state.empty -= 1;
            memory.pool.no_more_empty(1);
        }
        page.drain();
        let free = page.free();
        let left = free + (self.per_page - page.fresh());
        state.free -= left;
        state.pace.went(left);
        state.draining.push((number, heir));
        Some(self.returned(state, page, number, free))
    }

    /// What became of a page that is being drained and has so many free chunks.
    fn returned(&self, state: &mut ClassState<P>, page: &Page, number: PageNumber, free: usize) -> Returned {
        let place = state.draining.iter().position(|&(draining, _)| draining == number);
        match place {
            Some(place) if free == page.fresh() => {
                page.leave();
                let (number, heir) = state.draining.swap_remove(place);
                Returned::Emptied(number, heir)
            }
            _ => Returned::ToItsPage,
        }
    }

    pub(crate) fn report(&self, memory: Memory<'_>) -> ClassReport {
        let state = self.lock();
        let used = |&(draining, _): &(PageNumber, Heir)| {
            let page = memory.page(draining);
            page.fresh() - page.free()
        };
        let leaving: usize = state.draining.iter().map(used).sum();
        ClassReport {
            chunk_size: self.chunk_size,
            chunks_per_page: self.per_page,
            pages: state.ring.len() + state.draining.len(),
            used_chunks: state.ring.len() * self.per_page - state.free + leaving,
            free_chunks: state.free,
            limbo_chunks: state.limbo_chunks,
            departures: state.tallies.departures,
            evicted_age: state.tallies.evicted_age,
        }
    }
}

impl<P> ClassState<P> {
    /// Pages in the ring.
    pub(crate) fn pages(&self) -> usize {
        self.ring.len()
    }

    /// Which page of the ring is the oldest: not the one that the hand is in the middle of, for what the hand has
    /// passed there has made room for the youngest.
    fn oldest(&self) -> Option<usize> {
        let pages = self.ring.len();
        let begun = usize::from(self.hand.chunk > 0);
        (pages > 0).then(|| (self.hand.page + self.spared.max(begun)) % pages)
    }

    /// Pages that are being drained: each leaves the list when its last chunk comes back.
    pub(crate) fn draining(&self) -> impl Iterator<Item = PageNumber> {
        self.draining.iter().map(|&(page, _)| page)
    }

    /// All pages of the class, those that are being drained among them.
    pub(crate) fn all_pages(&self) -> Vec<PageNumber> {
        self.ring.iter().copied().chain(self.draining()).collect()
    }

    /// Whether there are such pages.
    pub(crate) fn is_draining(&self) -> bool {
        !self.draining.is_empty()
    }

    /// Chunks that are free or will be once they are safe.
    pub(crate) fn available(&self) -> usize {
        self.free + self.limbo_chunks
    }

    /// What was taken out of limbo frees so many chunks of this class.
    pub(crate) fn leave_limbo(&mut self, chunks: usize) {
        self.limbo_chunks -= chunks;
    }

    pub(crate) fn free(&self) -> usize {
        self.free
    }

    /// A chunk is about to come back of an item of another class that is no more.
    pub(crate) fn comes_back(&mut self) {
        self.pace.came(1);
    }

    /// Whether items may be evicted here at this time without looking at other classes.
    pub(crate) fn is_allowed(&self, now: u32) -> bool {
        (self.allowed_until.wrapping_sub(now) as i32) > 0
    }

    /// Until that time items may be evicted here without looking at other classes again.
    pub(crate) fn allow_until(&mut self, time: u32) {
        self.allowed_until = time;
    }

    pub(crate) fn limbo_len(&self) -> usize {
        self.limbo.len()
    }
}
