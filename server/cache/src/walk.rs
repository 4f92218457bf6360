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

use std::ops::ControlFlow;
use std::sync::Arc;

use cuckoo::Location;

use crate::arena::PageNumber;
use crate::clock::Clock;
use crate::item::Item;
use crate::piece::PIECE;
use crate::policy::Policy;
use crate::session::{Hit, Pinned, Session};
use crate::shared::Engine;
use crate::size_classes::ClassId;

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
        let Some(owner) = self.engine.page(page).owner() else { return };
        if self.class.is_some_and(|class| !self.may_hold(owner, page, class)) {
            return;
        }
        let mut from = ControlFlow::Continue(0);
        while let ControlFlow::Continue(chunk) = from {
            let Walk { engine, found, .. } = self;
            found.clear();
            let note = |item: Item<'_>| found.push((item.location(), engine.hash(item.key())));
            from = engine.look_at_piece(owner, page, chunk, note);
            if !found.is_empty() {
                self.show_found(&session.pin(), each);
            }
        }
    }

    /// Shows what the index has of what was noted.
    fn show_found(&self, pinned: &Pinned<'_, P>, each: &mut impl FnMut(&Hit<'_, P>)) {
        let (engine, moment) = (&self.engine, pinned.moment());
        for &(at, hash) in &self.found {
            if engine.table.find(hash, |found| found == at).is_none() {
                continue;
            }
            // SAFETY: found in the index while pinned.
            let item = unsafe { Item::at(&engine.arena, at) };
            if item.generation() != moment.generation || moment.is_dead(item) {
                continue;
            }
            // What lies there may be another item by now, of the same hash but for the bits that the index goes by.
            let hit = pinned.hit(item, engine.hash(item.key()));
            if self.class.is_none_or(|class| class == hit.class()) {
                each(&hit);
            }
        }
    }

    /// Whether items that are counted in a class may lie on a page: its own, or one of larger chunks, where memory was
    /// short.
    fn may_hold(&self, owner: ClassId, page: PageNumber, class: u8) -> bool {
        owner.0 == class || owner.0 > class && self.engine.page(page).has_guests()
    }
}
