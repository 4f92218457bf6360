//! Whether an old page may go: it is looked at as a hand looks, but at all of it.
//!
//! The unsafe code here is of one kind: reading the items of a page under the lock of its class, which their reuse
//! would need.

#![allow(unsafe_code)]

use crate::arena::{PageNumber, State};
use crate::item::{Item, born, owner};
use crate::judge::Judge;
use crate::page::Memory;
use crate::recency::Recency;

/// Of so many bytes of a page one may be lost of what has been used lately, or is young, if the page is to go.
const MOST_USED: usize = 4;

/// What is to become of a page that is the oldest of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It can be emptied, and little is lost by that.
    Goes,
    /// More than a quarter of its bytes would be lost of items that have been used since they were last looked at, or
    /// are much younger than the page: of a large item all bytes, whatever of it lies here.
    Used,
    /// Something on it is being written, or is kept by a reader.
    Held,
}

impl Verdict {
    /// On a page of chunks of this size. What has been used counts as used once less afterwards.
    ///
    /// # Safety
    /// The caller holds the lock of the class that the page belongs to.
    pub(crate) unsafe fn on(
        memory: Memory<'_>,
        judge: Judge<'_>,
        number: PageNumber,
        chunk_size: usize,
    ) -> Verdict {
        let page = memory.page(number);
        let now = memory.pool.turns();
        let age = page.since_passed(now);
        let (mut alive, mut kept, mut used) = (0, 0, Vec::new());
        for chunk in 0..page.fresh() {
            let at = memory.arena.location(number, chunk * chunk_size);
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
            alive += chunk_size;
            // A large item goes whole, whatever of it lies here.
            let loss = if item.is_chained() { item.size() } else { chunk_size };
            // What has recency and was never fetched has it from its birth.
            if item.recency() > Recency::NONE && item.is_fetched() {
                used.push(item);
                kept += loss;
            } else if item.is_chained() {
                let first = item.location() == at;
                let further =
                    if first { item.further().next().map(|chunk| chunk.location()) } else { Some(at) };
                // SAFETY: a further chunk of a live item of which a chunk is here, under the lock of the class.
                let born = further.map(|further| unsafe { born(memory.arena, further) });
                kept += if born.is_some_and(|born| now.wrapping_sub(born) < age / 2) { loss } else { 0 };
            }
        }
        for item in used {
            let lower = Recency::new(item.recency().get().saturating_sub(1));
            memory.arena.set_recency(item.location(), lower);
        }
        if kept * MOST_USED > alive { Verdict::Used } else { Verdict::Goes }
    }
}
