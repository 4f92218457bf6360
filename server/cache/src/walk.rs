//! A walk over all items, page by page, in steps that hold nobody up.
//!
//! ```text
//! step, for each page:
//!   lock its class; note where its items begin, and their hashes; unlock     a piece of the page at a time
//!   pin; look up each of these in the index; show what is there and alive; unpin
//! ```
//!
//! An item that lives during the whole walk lies on its page all the while, and is seen once. What comes or goes
//! meanwhile is seen or not. An item seen live on its page may be on its way into the index, or out of it, and then its
//! memory is used again although the walker is pinned; so only what the index has since is looked at.
//!
//! The unsafe code here is of one kind: looking at an item that the index has.

#![allow(unsafe_code)]

use std::sync::Arc;

use cuckoo::Location;

use crate::arena::PageNumber;
use crate::clock::Clock;
use crate::item::Item;
use crate::policy::Policy;
use crate::session::{Hit, Session};
use crate::shared::Engine;
use crate::size_classes::ClassId;

/// Chunks of a page that are looked at while its class is locked.
const PIECE: usize = 128;

/// A walk over the items of a cache: made by [`Cache::walk`](crate::engine::Cache::walk).
pub struct Walk<P: Policy = Clock> {
    engine: Arc<Engine<P>>,
    class: Option<u8>,
    next: PageNumber,
    /// Where items of a piece begin, and the hashes of their keys.
    found: Vec<(Location, u64)>,
}

impl<P: Policy> Walk<P> {
    pub(crate) fn new(engine: Arc<Engine<P>>, class: Option<u8>) -> Self {
        Walk { engine, class, next: 0, found: Vec::with_capacity(PIECE) }
    }

    /// Goes on by so many pages of 64 KiB and shows the items that are there and alive; false once all have been seen.
    /// It counts as no use of them.
    ///
    /// A class is locked for a small part of a page, and the session pinned, at a time. `each` is called while it is
    /// pinned: it had better not wait for anything.
    ///
    /// # Panics
    /// If the session is one of another cache.
    pub fn step(
        &mut self,
        session: &mut Session<P>,
        most_pages: usize,
        mut each: impl FnMut(&Hit<'_, P>),
    ) -> bool {
        assert!(Arc::ptr_eq(&self.engine, &session.engine), "a session of the cache that is walked over");
        for _ in 0..most_pages {
            if self.next >= self.engine.pool.touched() {
                return false;
            }
            let page = self.next;
            self.next += 1;
            self.show(page, session, &mut each);
        }
        self.next < self.engine.pool.touched()
    }

    fn show(&mut self, page: PageNumber, session: &mut Session<P>, each: &mut impl FnMut(&Hit<'_, P>)) {
        let mut from = Some(0);
        while let Some(chunk) = from {
            from = self.look(page, chunk);
            if self.found.is_empty() {
                continue;
            }
            let pinned = session.pin();
            for &(at, hash) in &self.found {
                if self.engine.table.find(hash, |found| found == at).is_none() {
                    continue;
                }
                // SAFETY: found in the index while pinned.
                let item = unsafe { Item::at(&self.engine.arena, at) };
                let moment = pinned.moment();
                if item.generation() != moment.generation || moment.is_dead(item) {
                    continue;
                }
                // What lies there may be another item by now, of the same hash.
                let hit = pinned.hit(item, self.engine.hash(item.key()));
                if self.class.is_none_or(|class| class == hit.class()) {
                    each(&hit);
                }
            }
        }
    }

    /// Notes the items that begin in a piece of a page, and says where the next piece begins.
    fn look(&mut self, number: PageNumber, from: usize) -> Option<usize> {
        self.found.clear();
        let page = self.engine.page(number);
        let owner = page.owner()?;
        if self.class.is_some_and(|class| !Self::may_hold(owner, class)) {
            return None;
        }
        let class = self.engine.class(owner);
        let state = class.lock();
        if page.owner() != Some(owner) {
            // It has changed hands since, and what is there comes now.
            return None;
        }
        let memory = self.engine.memory();
        let chunks = from..(from + PIECE).min(page.fresh());
        self.found.extend(
            class
                .items_beginning_in(&state, memory, number, chunks.clone())
                .map(|item| (item.location(), self.engine.hash(item.key()))),
        );
        (chunks.end < page.fresh()).then_some(chunks.end)
    }

    /// Whether items counted in a class may lie on a page of another one: in larger chunks, where memory is short.
    fn may_hold(owner: ClassId, class: u8) -> bool {
        owner.0 >= class
    }
}
