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
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};

use cuckoo::Location;
use parking_lot::Mutex;

use crate::arena::{Arena, Mark, PAGE, PageNumber, State};
use crate::epoch::Epoch;
use crate::flush::Flushes;
use crate::item::{Item, born, owner};
use crate::pace::{Lap, Pace};
use crate::policy::{Look, Policy, Position, Recency};
use crate::pool::Pool;
use crate::size_classes::{ClassId, LARGEST_CHUNK};

/// No expiry in a page.
const NONE: u32 = u32::MAX;
/// The class of a page that belongs to none.
const NOBODY: u8 = u8::MAX;
/// Of so many items of a page one may have been used lately if the page is to go.
const MOST_USED: usize = 4;
/// Pages with free chunks among which a young one is looked for.
const MOST_PREFERRED: usize = 64;
/// A large item is new if it came when more than one part in so many of the time had gone since the hand was there.
const NEW: u32 = 6;
/// Entries that a limbo list has room for when it is empty.
const LIMBO_KEPT: usize = 1024;

/// What is known of one page. All but `class` and `earliest_expiry` belong to the lock of its class; they are atomics
/// only so that the table of pages is shared without unsafe code, and every access is relaxed.
#[derive(Debug)]
pub(crate) struct Page {
    class: AtomicU8,
    /// The first of the free chunks that were used before.
    free_head: AtomicU16,
    free: AtomicU16,
    /// Chunks from here on were never used since the page came to its class.
    fresh: AtomicU16,
    /// Whether the class has it on its list of pages with free chunks.
    listed: AtomicBool,
    /// Whether it is being emptied, to be given away.
    draining: AtomicBool,
    /// No item in the page expires before this second.
    earliest_expiry: AtomicU32,
    /// When it came to its class, or was last passed by the hand, by the pool's clock.
    passed: AtomicU32,
}

impl Page {
    pub(crate) const fn new() -> Page {
        Page {
            class: AtomicU8::new(NOBODY),
            free_head: AtomicU16::new(0),
            free: AtomicU16::new(0),
            fresh: AtomicU16::new(0),
            listed: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            earliest_expiry: AtomicU32::new(NONE),
            passed: AtomicU32::new(0),
        }
    }

    /// The class that a page belongs to of which a chunk is in use: that keeps it there.
    #[inline]
    pub(crate) fn class(&self) -> ClassId {
        ClassId(self.class.load(Ordering::Relaxed))
    }

    /// The class that the page belongs to at the moment, if to any. It does not leave a class but under that class's
    /// lock, so who holds the lock and sees it there knows that it stays.
    pub(crate) fn owner(&self) -> Option<ClassId> {
        Some(self.class()).filter(|class| class.0 != NOBODY)
    }

    /// The page leaves its class, whose lock the caller holds.
    fn leave(&self) {
        self.class.store(NOBODY, Ordering::Relaxed);
    }

    pub(crate) fn fresh(&self) -> usize {
        self.fresh.load(Ordering::Relaxed) as usize
    }

    fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed) as usize
    }

    /// Whether none of its chunks is in use.
    fn is_empty(&self) -> bool {
        self.free() == self.fresh()
    }

    pub(crate) fn earliest_expiry(&self) -> u32 {
        self.earliest_expiry.load(Ordering::Relaxed)
    }

    /// Records that an item in the page expires at `second`. Called after the item went live or its expiry was changed.
    pub(crate) fn expires_at(&self, second: u32) {
        if second < self.earliest_expiry.load(Ordering::Relaxed) {
            // pairs with the acquire in `forget_expiries`.
            self.earliest_expiry.fetch_min(second, Ordering::Release);
        }
    }

    /// Forgets what was recorded; whoever looks at the items afterwards sees those whose record this has wiped out. (An
    /// item that was only about to be recorded records itself.) Should one slip through on a machine that delays a load
    /// so long, it dies when it is looked up or when the hand comes by.
    pub(crate) fn forget_expiries(&self) {
        // acquire pairs with the release in `expires_at`.
        self.earliest_expiry.swap(NONE, Ordering::AcqRel);
    }

    fn bump(counter: &AtomicU16, by: i16) -> u16 {
        let value = counter.load(Ordering::Relaxed).wrapping_add_signed(by);
        counter.store(value, Ordering::Relaxed);
        value
    }
}

/// What the parts of a slab class are looked up in.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) pages: &'a [Page],
    pub(crate) pool: &'a Pool,
}

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

/// What has happened in a class since it was made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tallies {
    pub(crate) evicted: u64,
    pub(crate) evicted_unfetched: u64,
    pub(crate) reclaimed: u64,
    pub(crate) expired_unfetched: u64,
    pub(crate) out_of_memory: u64,
}

/// A class as statistics show it.
#[derive(Debug, Clone, Copy)]
pub struct ClassReport {
    /// Bytes of a chunk.
    pub chunk_size: usize,
    /// Chunks in a page.
    pub chunks_per_page: usize,
    /// Pages of the class, those included that are being given up.
    pub pages: usize,
    /// Chunks that hold an item, are being written, or wait in limbo.
    pub used_chunks: usize,
    /// Chunks that are free to be used.
    pub free_chunks: usize,
    /// Chunks that wait in limbo; they are among the used.
    pub limbo_chunks: usize,
    /// Items evicted to make room.
    pub evicted: u64,
    /// Of these, items that nobody ever fetched.
    pub evicted_unfetched: u64,
    /// Items removed because they had expired or were flushed.
    pub reclaimed: u64,
    /// Of these, items that had expired and that nobody ever fetched.
    pub expired_unfetched: u64,
    /// Times that no memory was found.
    pub out_of_memory: u64,
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

/// What is to become of a page that is the oldest of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It can be emptied, and little is lost by that.
    Goes,
    /// More than a quarter of its items have been used since they were last looked at, or are much younger than the
    /// page.
    Used,
    /// Something on it is being written, or is kept by a reader.
    Held,
}

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
        let page = &memory.pages[number as usize];
        page.class.store(self.id.0, Ordering::Relaxed);
        page.free.store(0, Ordering::Relaxed);
        page.fresh.store(0, Ordering::Relaxed);
        page.listed.store(true, Ordering::Relaxed);
        page.draining.store(false, Ordering::Relaxed);
        let now = memory.pool.turns();
        page.passed.store(now, Ordering::Relaxed);
        page.forget_expiries();
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
            let page = &memory.pages[number as usize];
            let (free, fresh) = (page.free(), page.fresh());
            if free == fresh {
                state.empty -= 1;
                memory.pool.no_more_empty(1);
            }
            let at = if free > 0 {
                let at = self.chunk(memory, number, page.free_head.load(Ordering::Relaxed) as usize);
                page.free_head.store(memory.arena.link(at), Ordering::Relaxed);
                Page::bump(&page.free, -1);
                at
            } else if fresh < self.per_page {
                Page::bump(&page.fresh, 1);
                self.chunk(memory, number, fresh)
            } else {
                page.listed.store(false, Ordering::Relaxed);
                state.open.pop();
                continue;
            };
            state.free -= 1;
            state.given += self.chunk_size;
            if state.given >= PAGE {
                state.given -= PAGE;
                memory.pool.tick();
            }
            state.pace.gave_out(memory.pool.turns());
            memory.arena.set_mark(at, Mark::new(State::Filling));
            return Some(at);
        }
        debug_assert_eq!(state.free, 0);
        None
    }

    /// Takes back a chunk that nobody can be reading.
    pub(crate) fn push(&self, state: &mut ClassState<P>, memory: Memory<'_>, at: Location) -> Returned {
        let (number, offset) = memory.arena.page_of(at);
        let page = &memory.pages[number as usize];
        debug_assert_eq!(page.class(), self.id);
        memory.arena.set_mark(at, Mark::new(State::Free));
        memory.arena.set_link(at, page.free_head.load(Ordering::Relaxed));
        page.free_head.store(self.chunk_number(offset), Ordering::Relaxed);
        let free = Page::bump(&page.free, 1) as usize;
        if page.draining.load(Ordering::Relaxed) {
            return self.returned(state, page, number, free);
        }
        state.free += 1;
        if free == page.fresh() {
            state.empty += 1;
            memory.pool.emptied();
        }
        if !page.listed.swap(true, Ordering::Relaxed) {
            state.open.push(number);
        }
        Returned::ToItsPage
    }

    /// Puts a chunk whose item has just been taken out of the index into limbo.
    /// `chunks` of this class come free with it.
    pub(crate) fn retire(
        &self,
        state: &mut ClassState<P>,
        memory: Memory<'_>,
        at: Location,
        stamp: Epoch,
        chunks: usize,
    ) {
        memory.arena.set_mark(at, memory.arena.mark(at).with_state(State::Limbo));
        self.postpone(state, at, stamp, chunks);
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

    /// Puts a chunk that is not safe after all back behind all others.
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
        let chunks = Chunks { chunk_size: self.chunk_size, memory, ring: &state.ring, judge };
        if chunks.len() == 0 {
            return None;
        }
        let position = state.policy.victim(&chunks).or_else(|| {
            // All that is there has come since: the hand has been all around now.
            for &number in &state.ring {
                memory.pages[number as usize].passed.store(memory.pool.turns(), Ordering::Relaxed);
            }
            state.policy.victim(&chunks)
        })?;
        // The pages between the last victim's and this one's have been passed; all of them, if it lies before the last
        // one.
        let pages = state.ring.len();
        let from = state.hand.page % pages;
        let went_round = position.page == from && position.chunk <= state.hand.chunk;
        let passed = if went_round { pages } else { (position.page + pages - from) % pages };
        for page in 0..passed {
            let number = state.ring[(from + page) % pages];
            memory.pages[number as usize].passed.store(memory.pool.turns(), Ordering::Relaxed);
        }
        let victim = chunks.item(position)?;
        let chunks_passed = (passed * self.per_page + position.chunk).saturating_sub(state.hand.chunk);
        let (home, _) = memory.arena.page_of(victim.location());
        let freed = match memory.pages[home as usize].class() == self.id {
            true => victim.chunks_at_home(),
            // Its chunk here is counted when it comes back, as those are that other classes' hands free here.
            false => 0,
        };
        state.pace.passed(chunks_passed, freed);
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
        (0..memory.pages[number as usize].fresh()).filter_map(move |chunk| {
            let at = self.chunk(memory, number, chunk);
            // SAFETY: `_locked` is the state of this class: its lock is held, for as long as the item is.
            unsafe { live_item(memory, at) }
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
            let page = &memory.pages[number as usize];
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
        state.open.retain(|&number| memory.pages[number as usize].owner() == Some(self.id));
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
            .map(|at| (at, &memory.pages[state.open[at] as usize]))
            .filter(|(_, page)| page.free() > 0 || page.fresh() < self.per_page)
            .min_by_key(|(_, page)| now.wrapping_sub(page.passed.load(Ordering::Relaxed)));
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
        let verdict = self.judge_page(memory, judge, number);
        if verdict != Verdict::Goes {
            memory.pages[number as usize].passed.store(memory.pool.turns(), Ordering::Relaxed);
            let pages = state.ring.len();
            state.spared = (oldest + pages - state.hand.page % pages) % pages + 1;
        }
        Some(verdict)
    }

    fn judge_page(&self, memory: Memory<'_>, judge: Judge<'_>, number: PageNumber) -> Verdict {
        let page = &memory.pages[number as usize];
        let now = memory.pool.turns();
        let age = now.wrapping_sub(page.passed.load(Ordering::Relaxed));
        let (mut alive, mut kept, mut used) = (0, 0, Vec::new());
        for chunk in 0..page.fresh() {
            let at = self.chunk(memory, number, chunk);
            match memory.arena.mark(at).state() {
                State::Free => continue,
                State::Filling => return Verdict::Held,
                State::Live | State::Limbo => {}
            }
            // SAFETY: live or in limbo, under the lock of the class: written, and not reused before the lock is given
            // back; and the first chunk of an item not before its further ones.
            let item = unsafe { Item::at(memory.arena, owner(memory.arena, at)) };
            let state = memory.arena.mark(item.location()).state();
            if state == State::Filling || item.is_chained() && item.is_kept() {
                return Verdict::Held;
            }
            if state != State::Live || judge.is_dead(item) {
                continue;
            }
            alive += 1;
            // What has recency and was never fetched has it from its birth.
            if item.recency() > Recency::NONE && item.is_fetched() {
                used.push(item);
            } else if item.location() != at {
                // SAFETY: live and not the first of its item, under the lock of the class.
                let born = unsafe { born(memory.arena, at) };
                kept += usize::from(now.wrapping_sub(born) < age / 2);
            }
        }
        kept += used.len();
        for item in used {
            let lower = Recency::new(item.recency().get().saturating_sub(1));
            memory.arena.set_recency(item.location(), lower);
        }
        if kept * MOST_USED > alive { Verdict::Used } else { Verdict::Goes }
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
        let page = &memory.pages[number as usize];
        if page.is_empty() {
            state.empty -= 1;
            memory.pool.no_more_empty(1);
        }
        page.listed.store(false, Ordering::Relaxed);
        page.draining.store(true, Ordering::Relaxed);
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
            let page = &memory.pages[draining as usize];
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
            evicted: state.tallies.evicted,
            evicted_unfetched: state.tallies.evicted_unfetched,
            reclaimed: state.tallies.reclaimed,
            expired_unfetched: state.tallies.expired_unfetched,
            out_of_memory: state.tallies.out_of_memory,
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

/// Says which of the items that are found live are dead, to those who take them out.
///
/// An item of another generation than the current one is dead only if the current one is looked at *after* the item was
/// found: who keeps an older one in mind, and loses its core or waits for a lock meanwhile, takes what was stored after
/// a flush for what it has flushed. Found by the acquire of its mark, the item was finished by somebody who had seen
/// its generation; so what is loaded then is that one or a later one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) now: u32,
    pub(crate) flushes: &'a Flushes,
}

impl Judge<'_> {
    /// Whether nobody who comes now can get the item any more.
    #[inline]
    pub(crate) fn is_dead(self, item: Item<'_>) -> bool {
        item.generation() != self.flushes.generation() || item.expiry().has_passed(self.now)
    }
}

/// The item that the chunk at `at` belongs to, if the chunk is live.
///
/// # Safety
/// The caller must hold the lock of the chunk's class for `'a`.
unsafe fn live_item<'a>(memory: Memory<'a>, at: Location) -> Option<Item<'a>> {
    if memory.arena.mark(at).state() != State::Live {
        return None;
    }
    // SAFETY: live, under the lock.
    let first = unsafe { owner(memory.arena, at) };
    // Of an item in limbo the first chunk alone says so.
    // SAFETY: a further chunk is freed before the first one of its item, so as long as this one is not, which needs the
    // lock, the first one is not reused either.
    (memory.arena.mark(first).state() == State::Live).then(|| unsafe { Item::at(memory.arena, first) })
}

/// The chunks of a class as its policy sees them: a ring of positions.
pub struct Chunks<'a> {
    chunk_size: usize,
    memory: Memory<'a>,
    /// Borrowed from the locked state of the class, which is what makes looking at its items sound.
    ring: &'a [PageNumber],
    judge: Judge<'a>,
}

impl<'a> Chunks<'a> {
    /// Positions in the ring.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a policy is only asked about chunks that exist")]
    pub fn len(&self) -> usize {
        self.ring.len() * (PAGE / self.chunk_size)
    }

    /// The position after this one; the first after the last, and for a position that is no more.
    #[must_use]
    pub fn after(&self, position: Position) -> Position {
        let Some(&page) = self.ring.get(position.page) else { return Position::default() };
        if position.chunk + 1 < self.memory.pages[page as usize].fresh() {
            Position { chunk: position.chunk + 1, ..position }
        } else if position.page + 1 < self.ring.len() {
            Position { page: position.page + 1, chunk: 0 }
        } else {
            Position::default()
        }
    }

    /// What lies at a position: the item, or the item that the chunk there is a part of. Of an item that has a chunk of
    /// this size before, which the ring has too, only that one counts: or a hand would come by several times a turn,
    /// and to an item that has just come into what it has emptied.
    #[must_use]
    pub fn look(&self, position: Position) -> Look {
        match self.item(position) {
            None => Look::Vacant,
            Some(item) if self.judge.is_dead(item) => Look::Dead,
            Some(item) if self.is_new(position, item) => Look::Vacant,
            Some(item) => Look::Live(item.recency()),
        }
    }

    /// Changes what is remembered of the item at a position.
    pub fn set_recency(&self, position: Position, recency: Recency) {
        if let Some(item) = self.item(position) {
            self.memory.arena.set_recency(item.location(), recency);
        }
    }

    /// Whether a large item has come to its place long after the hand was there. What one small item leaves another
    /// takes, so newcomers lie behind the hand; the chunks that a large one leaves lie anywhere, and so do the large
    /// ones that come.
    fn is_new(&self, position: Position, item: Item<'a>) -> bool {
        let Some(&number) = self.ring.get(position.page).filter(|_| item.is_chained()) else { return false };
        let at = self.memory.arena.location(number, position.chunk * self.chunk_size);
        let further = if item.location() == at {
            item.further().next().map(|chunk| chunk.location())
        } else {
            Some(at)
        };
        let Some(further) = further else { return false };
        // SAFETY: a further chunk of a live item, and not freed before the lock of this class is given back: it is of
        // this class, or its item is, which is retired under that lock.
        let born = unsafe { born(self.memory.arena, further) };
        let now = self.memory.pool.turns();
        let passed = self.memory.pages[number as usize].passed.load(Ordering::Relaxed);
        let (age, since) = (now.wrapping_sub(born), now.wrapping_sub(passed));
        age < since - since / NEW
    }

    fn item(&self, position: Position) -> Option<Item<'a>> {
        let page = *self.ring.get(position.page)?;
        if position.chunk >= self.memory.pages[page as usize].fresh() {
            return None;
        }
        let at = self.memory.arena.location(page, position.chunk * self.chunk_size);
        // SAFETY: the ring is borrowed from the state that the lock of this class protects, so the lock is held for 'a.
        let item = unsafe { live_item(self.memory, at) };
        item.filter(|item| self.chunk_size < LARGEST_CHUNK || item.location() == at)
    }
}
