//! Which pages no class has, and how memory is shared between pages and the index.
//!
//! There is one limit on bytes. Every page that a class takes brings chunks, and chunks bring entries in the index; so
//! the index's share of the limit is taken together with the page, before either is touched. Pages that come back stay
//! mapped for the next class, unless the index needs their memory: then they are given back to the machine. What the
//! index was given for chunks that are no more, and has not touched, comes back with the next page that is wanted.
//!
//! Whether a page can be had is asked in one way only ([`Pool::lacks`] and [`Pool::take`] by the same sum): pages that
//! lie in a class with nothing on them are as good as pages of nobody, for [`crate::reclaim`] collects them.
//!
//! The limit may be changed. What a lower one is exceeded by, the *excess*, is what housekeeping takes away: pages of
//! nobody go back to the machine, and the limit that is in force falls with them ([`crate::resize`]). Until then nobody
//! gets a page who could evict instead.
//!
//! The last few pages are for emergencies: a class that finds no chunk although it has evicted, because readers still
//! hold what it evicted, takes one of those instead of waiting or refusing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread::Thread;

use pages::Budget;
use parking_lot::Mutex;

use crate::arena::{Arena, PAGE, PageNumber};

/// The weight of the last of those that were evicted in their mean age is one part in so many.
const EVICTED_LATELY: i64 = 4;

/// Pages that are taken between two calls of who has memory ready.
pub(crate) const PAGES_A_CALL: usize = 4;

/// Whether a page is wanted or needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The class could evict instead.
    Ordinary,
    /// The class has nothing it could use now.
    Urgent,
}

/// The pages that belong to no class.
#[derive(Debug)]
pub(crate) struct Pool {
    budget: Budget,
    index_budget: Arc<Budget>,
    /// Bytes of the index that its initial size covers without any page.
    index_base: usize,
    index_bytes_per_entry: f64,
    /// Bytes kept for urgent needs.
    reserve: AtomicUsize,
    /// Bytes that items and index may take, and by how much the budget is still above that: changed under the lock of
    /// `state`.
    limit: AtomicUsize,
    excess: AtomicUsize,
    /// Pages of classes with nothing on them: each class counts its own, under its lock.
    spare: AtomicUsize,
    /// The clock that pages are aged by: see [`Pool::tick`].
    turns: AtomicU32,
    /// How old the large items were that were evicted last, on average, by that clock.
    evicted_age: AtomicU32,
    /// The second by the cache's clock, for pages that come to a class.
    second: AtomicU32,
    state: Mutex<PoolState>,
}

#[derive(Debug)]
struct PoolState {
    /// Pages whose memory is ours.
    free: Vec<PageNumber>,
    /// Pages whose memory was given back.
    released: Vec<PageNumber>,
    /// Pages from here on were never used.
    untouched: PageNumber,
    /// Entries that the chunks of all classes could hold.
    entries: usize,
    /// Pages that classes have given back.
    returned: usize,
    /// Pages that classes have taken, and who is called as they are.
    taken: usize,
    called: Option<Thread>,
}

/// Bytes kept for urgent needs, of so many.
fn reserve_of(limit: usize) -> usize {
    (limit / 64).clamp(PAGE, 64 * PAGE)
}

impl Pool {
    /// Shares `limit` bytes, of which `index_base` are the index's from the start.
    pub(crate) fn new(limit: usize, index_base: usize, index_bytes_per_entry: f64) -> Pool {
        let budget = Budget::new(limit);
        let index_base = if budget.try_take(index_base) { index_base } else { 0 };
        Pool {
            index_budget: Arc::new(Budget::new(index_base)),
            budget,
            index_base,
            index_bytes_per_entry,
            reserve: AtomicUsize::new(reserve_of(limit)),
            limit: AtomicUsize::new(limit),
            excess: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
            turns: AtomicU32::new(0),
            second: AtomicU32::new(0),
            evicted_age: AtomicU32::new(0),
            state: Mutex::new(PoolState {
                free: Vec::new(),
                released: Vec::new(),
                untouched: 0,
                entries: 0,
                returned: 0,
                taken: 0,
                called: None,
            }),
        }
    }

    /// Gives the index bytes that its entries will be entitled to; what they are not, it can give up again. False, and
    /// nothing is given, where there is not so much.
    pub(crate) fn advance_index(&self, bytes: usize) -> bool {
        let has = self.budget.try_take(bytes);
        if has {
            self.index_budget.raise(bytes);
        }
        has
    }

    /// What the index takes its memory from.
    pub(crate) fn index_budget(&self) -> Arc<Budget> {
        self.index_budget.clone()
    }

    /// Bytes taken of the limit, the index's share included.
    pub(crate) fn taken(&self) -> usize {
        self.budget.taken()
    }

    /// Bytes that items and index may take.
    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that are still to be given up after the limit was lowered.
    pub(crate) fn excess(&self) -> usize {
        // Relaxed: a hint where the lock is not held.
        self.excess.load(Ordering::Relaxed)
    }

    fn reserve(&self) -> usize {
        self.reserve.load(Ordering::Relaxed)
    }

    /// Sets another limit: a higher one holds at once, a lower one as far as memory is given up.
    pub(crate) fn set_limit(&self, limit: usize) {
        let state = self.state.lock();
        let in_force = self.budget.limit();
        if limit > in_force {
            self.budget.raise(limit - in_force);
        }
        self.limit.store(limit, Ordering::Relaxed);
        self.excess.store(in_force.saturating_sub(limit), Ordering::Relaxed);
        self.reserve.store(reserve_of(limit), Ordering::Relaxed);
        drop(state);
    }

    /// Gives what belongs to nobody back to the machine, up to so many pages, as long as the limit is exceeded; says
    /// whether it still is.
    pub(crate) fn give_up_excess(&self, arena: &Arena, most_pages: usize) -> bool {
        let mut state = self.state.lock();
        self.trim_index(&state);
        for _ in 0..=most_pages {
            let excess = self.excess();
            let bytes = excess.min(self.budget.left());
            if bytes > 0 && self.budget.try_lower(bytes) {
                self.excess.store(excess - bytes, Ordering::Relaxed);
            }
            if self.excess() == 0 {
                return false;
            }
            let Some(page) = state.free.pop() else { return true };
            arena.release(page);
            state.released.push(page);
            self.budget.give_back(PAGE);
        }
        true
    }

    /// Pages that could be had, the reserve included, those not that still lie in a class.
    pub(crate) fn available(&self) -> usize {
        self.left(&self.state.lock()) / PAGE
    }

    /// Whether fewer pages are left than are kept for urgent needs.
    pub(crate) fn is_below_reserve(&self) -> bool {
        (self.available() + self.spare()) * PAGE < self.reserve()
    }

    /// Whether an ordinary need of a page for `chunks` chunks could not be met, not even with the pages that lie spare.
    pub(crate) fn lacks(&self, chunks: usize) -> bool {
        let state = self.state.lock();
        self.trim_index(&state);
        let spare = (self.spare() * PAGE).saturating_sub(self.excess());
        self.index_wants(&state, chunks) + PAGE + self.reserve() > self.left(&state) + spare
    }

    /// Bytes that belong to nobody, and that the limit allows.
    fn left(&self, state: &PoolState) -> usize {
        self.unowned(state).saturating_sub(self.excess())
    }

    /// Bytes that belong to nobody.
    fn unowned(&self, state: &PoolState) -> usize {
        state.free.len() * PAGE + self.budget.left()
    }

    /// Bytes that the index is entitled to for so many entries, beyond its base.
    fn index_share(&self, entries: usize) -> usize {
        (entries as f64 * self.index_bytes_per_entry) as usize
    }

    /// Bytes that the index gets with a page for `chunks` chunks.
    fn index_wants(&self, state: &PoolState, chunks: usize) -> usize {
        self.index_share(state.entries + chunks).saturating_sub(self.index_budget.limit() - self.index_base)
    }

    /// Takes from the index what it has beyond its share and has not touched, for pages.
    fn trim_index(&self, state: &PoolState) {
        let given = self.index_budget.limit() - self.index_base;
        // Whole pages: what is a little too much will be wanted again.
        let surplus = given.saturating_sub(self.index_share(state.entries)) / PAGE * PAGE;
        let untouched = self.index_budget.left() / PAGE * PAGE;
        let bytes = surplus.min(untouched);
        if bytes > 0 && self.index_budget.try_lower(bytes) {
            self.budget.give_back(bytes);
        }
    }

    /// Bytes of the index beyond what its entries are entitled to: those that it could give up by shrinking.
    pub(crate) fn index_surplus(&self) -> usize {
        let state = self.state.lock();
        (self.index_budget.limit() - self.index_base).saturating_sub(self.index_share(state.entries))
    }

    /// Pages of classes with nothing on them.
    pub(crate) fn spare(&self) -> usize {
        // Relaxed: a hint; the pages themselves change hands under the locks of their classes.
        self.spare.load(Ordering::Relaxed)
    }

    /// A page has come to be empty in its class.
    pub(crate) fn emptied(&self) {
        self.spare.fetch_add(1, Ordering::Relaxed);
    }

    /// Pages that were empty in their class are not, or not there, any more.
    pub(crate) fn no_more_empty(&self, pages: usize) {
        self.spare.fetch_sub(pages, Ordering::Relaxed);
    }

    /// The clock that pages are aged by: it advances by one when a class has given out a page's worth of chunks.
    pub(crate) fn tick(&self) {
        // Relaxed: a number that orders nothing.
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// The cache's second.
    pub(crate) fn second(&self) -> u32 {
        self.second.load(Ordering::Relaxed)
    }

    /// Tells it.
    pub(crate) fn set_second(&self, second: u32) {
        self.second.store(second, Ordering::Relaxed);
    }

    /// How old the large items were that were evicted last, on average, by the clock: about as old as all will be.
    pub(crate) fn evicted_age(&self) -> u32 {
        self.evicted_age.load(Ordering::Relaxed)
    }

    /// A large item of that age is evicted. (Two who say so at once count as one.)
    pub(crate) fn evicts_of_age(&self, age: u32) {
        let mean = self.evicted_age();
        let change = (i64::from(age) - i64::from(mean)) / EVICTED_LATELY;
        self.evicted_age.store(mean.saturating_add_signed(change as i32), Ordering::Relaxed);
    }

    /// What that clock says.
    pub(crate) fn turns(&self) -> u32 {
        self.turns.load(Ordering::Relaxed)
    }

    /// A page for `chunks` chunks.
    pub(crate) fn take(&self, arena: &Arena, chunks: usize, need: Need) -> Option<PageNumber> {
        let mut state = self.state.lock();
        self.trim_index(&state);
        let more_index = self.index_wants(&state, chunks);
        let (left, kept) = match need {
            Need::Ordinary => (self.left(&state), self.reserve()),
            // Also while the limit is exceeded: what was emptied for this is not to be given up.
            Need::Urgent => (self.unowned(&state), 0),
        };
        if left < PAGE + more_index + kept {
            return None;
        }
        // The index's share comes out of what is left, or out of free pages.
        while self.budget.left() < more_index {
            let page = state.free.pop()?;
            arena.release(page);
            state.released.push(page);
            self.budget.give_back(PAGE);
        }
        if more_index > 0 {
            if !self.budget.try_take(more_index) {
                return None;
            }
            self.index_budget.raise(more_index);
        }
        let page = match state.free.pop() {
            Some(page) => page,
            None => {
                if !self.budget.try_take(PAGE) {
                    return None;
                }
                match state.released.pop() {
                    Some(page) => page,
                    None if state.untouched < arena.pages() => {
                        state.untouched += 1;
                        state.untouched - 1
                    }
                    None => {
                        self.budget.give_back(PAGE);
                        return None;
                    }
                }
            }
        };
        state.entries += chunks;
        state.taken += 1;
        if state.taken.is_multiple_of(PAGES_A_CALL)
            && let Some(thread) = &state.called
        {
            thread.unpark();
        }
        Some(page)
    }

    /// Takes back a page that held `chunks` chunks, none of which is in use.
    pub(crate) fn give(&self, page: PageNumber, chunks: usize) {
        let mut state = self.state.lock();
        state.entries -= chunks;
        state.returned += 1;
        state.free.push(page);
    }

    /// Pages that classes have given back so far.
    pub(crate) fn returned(&self) -> usize {
        self.state.lock().returned
    }

    /// Bytes of pages that were ever used, from the first on, and bytes that items and index may take beyond those they
    /// have.
    pub(crate) fn frontier(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.untouched as usize * PAGE, self.budget.left().saturating_sub(self.excess()))
    }

    /// Has this thread unparked as pages are taken, once in [`PAGES_A_CALL`].
    pub(crate) fn call_as_pages_are_taken(&self, thread: Thread) {
        self.state.lock().called = Some(thread);
    }

    /// Pages that were ever used: those that a sweep has to look at.
    pub(crate) fn touched(&self) -> PageNumber {
        self.state.lock().untouched
    }
}
