//! Which pages no class has, and how memory is shared between pages and the index.
//!
//! There is one limit on bytes. Every page that a class takes brings chunks, and chunks bring entries in the index; so the
//! index's share of the limit is taken together with the page, before either is touched. Pages that come back stay mapped
//! for the next class, unless the index needs their memory: then they are given back to the machine.
//!
//! The last few pages are for emergencies: a class that finds no chunk although it has evicted, because readers still hold
//! what it evicted, takes one of those instead of waiting or refusing.

use std::sync::Arc;

use pages::Budget;
use parking_lot::Mutex;

use crate::arena::{Arena, PAGE, PageNumber};

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
    reserve: usize,
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
            reserve: (limit / 64).clamp(PAGE, 64 * PAGE),
            state: Mutex::new(PoolState {
                free: Vec::new(),
                released: Vec::new(),
                untouched: 0,
                entries: 0,
                returned: 0,
            }),
        }
    }

    /// What the index takes its memory from.
    pub(crate) fn index_budget(&self) -> Arc<Budget> {
        self.index_budget.clone()
    }

    /// Bytes taken of the limit, the index's share included.
    pub(crate) fn taken(&self) -> usize {
        self.budget.taken()
    }

    /// Pages that could be had, the reserve included.
    pub(crate) fn available(&self) -> usize {
        self.state.lock().free.len() + self.budget.left() / PAGE
    }

    /// Whether fewer pages are left than are kept for urgent needs.
    pub(crate) fn is_below_reserve(&self) -> bool {
        self.available() * PAGE < self.reserve
    }

    /// Whether an ordinary need would be refused.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.available() * PAGE < self.reserve + PAGE
    }

    /// A page for `chunks` chunks.
    pub(crate) fn take(&self, arena: &Arena, chunks: usize, need: Need) -> Option<PageNumber> {
        let mut state = self.state.lock();
        let share = ((state.entries + chunks) as f64 * self.index_bytes_per_entry) as usize;
        let more_index = share.saturating_sub(self.index_budget.limit() - self.index_base);
        let kept = if need == Need::Urgent { 0 } else { self.reserve };
        if state.free.len() * PAGE + self.budget.left() < PAGE + more_index + kept {
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

    /// Pages that were ever used: those that a sweep has to look at.
    pub(crate) fn touched(&self) -> PageNumber {
        self.state.lock().untouched
    }
}
