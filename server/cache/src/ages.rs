//! How long ago the items of a class were used last that were not used for the longest time.
//!
//! No item can be asked for its neighbours in age: there is no list of them, which would cost each item sixteen bytes.
//! Each page knows a second before which none of its items was used last. As items are used and go, it becomes later
//! than that; it is put right when the page is looked at. So the page that seems to have the oldest item is looked at,
//! and then the one that seems to have it now, until that is one that was looked at: it has it. A few steps do mostly,
//! and more are not made: then it is the oldest item of those pages that were looked at.
//!
//! The sweep that keeps last accesses from wrapping ([`crate::access`]) looks at all pages, and puts them all right.

use crate::access::Tick;
use crate::arena::PageNumber;
use crate::policy::Policy;
use crate::shared::Engine;
use crate::slab::Class;

/// Pages that are looked at for one answer.
const MOST_LOOKED_AT: usize = 8;

impl<P: Policy> Engine<P> {
    /// Seconds since the least lately used item of a class was used; `None` if it has none.
    pub(crate) fn oldest_age(&self, class: &Class<P>) -> Option<u32> {
        let pages = class.lock().all_pages();
        let mut looked_at: Vec<(PageNumber, Option<u32>)> = Vec::with_capacity(MOST_LOOKED_AT);
        loop {
            let used = pages.iter().filter(|&&page| !self.page(page).is_empty());
            let Some((_, page)) = used.map(|&page| (self.page(page).earliest_use(), page)).min() else {
                break;
            };
            if looked_at.len() == MOST_LOOKED_AT || looked_at.iter().any(|&(other, _)| other == page) {
                break;
            }
            looked_at.push((page, self.find_earliest_use(page)));
        }
        let earliest = looked_at.into_iter().filter_map(|(_, second)| second).min()?;
        Some(self.now().saturating_sub(earliest))
    }

    /// Looks when the items of a page were used last, and puts right what it knows of that.
    fn find_earliest_use(&self, number: PageNumber) -> Option<u32> {
        let judge = self.judge();
        let mut earliest = None;
        self.look_at_page(number, |item| {
            if !judge.is_dead(item) {
                let second = item.access().load().second(judge.now);
                earliest = Some(earliest.map_or(second, |earliest: u32| earliest.min(second)));
            }
        });
        // What comes meanwhile is used now.
        self.page(number).not_used_before(earliest.unwrap_or(judge.now));
        earliest
    }

    /// Keeps the last accesses of a page's items from wrapping: see [`crate::access`].
    pub(crate) fn hold_accesses(&self, number: PageNumber) {
        let now = self.now();
        let mut earliest = now;
        self.look_at_page(number, |item| {
            item.access().hold(Tick::of(now));
            earliest = earliest.min(item.access().load().second(now));
        });
        self.page(number).not_used_before(earliest);
    }
}
