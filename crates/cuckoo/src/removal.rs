//! Taking an entry out, and putting another in its place.
//!
//! Both are one store to the entry's slot, under the locks of the key's buckets, or of its first one alone where no key
//! of that bucket is elsewhere ([`crate::home`]). A reader beside them finds the entry as it was or as it is.

use atomics::Ordering;

use crate::layout::Layout;
use crate::slot::{Location, Tag, Word};
use crate::table::{Place, Table};

impl<L: Layout> Table<L> {
    /// Removes the entry of a key of this hash for which `eq` is true, and says where it was.
    ///
    /// `eq` runs while the key's buckets are locked: it must not use the table.
    pub fn remove(&self, hash: u64, mut eq: impl FnMut(Location) -> bool) -> Option<Location> {
        self.remove_one(hash, &mut eq)
    }

    /// Removes the entry at exactly this location, and says whether it was there. Of several who try, one succeeds.
    pub fn remove_exact(&self, hash: u64, location: Location) -> bool {
        self.remove_one(hash, &mut |other| other == location).is_some()
    }

    fn remove_one(&self, hash: u64, is_it: &mut impl FnMut(Location) -> bool) -> Option<Location> {
        self.remove_mixed(self.mixed(hash), is_it)
    }

    /// As [`Table::remove`], of a hash that is mixed already.
    pub(crate) fn remove_mixed(
        &self,
        hash: u64,
        is_it: &mut impl FnMut(Location) -> bool,
    ) -> Option<Location> {
        let tag = Tag::of(hash, L::TAG_BITS);
        if let Some(home) = self.lock_first(hash) {
            let (cell, word) = self.find_at_home(&home, tag, is_it)?;
            cell.store(Word::EMPTY);
            drop(home);
            self.counter(hash).fetch_sub(1, Ordering::Relaxed);
            return Some(word.location());
        }
        let locked = self.lock_candidates(hash, tag, None);
        let found = self.find_locked(&locked, is_it)?;
        match found {
            Place::Slot(cell, _) => cell.store(Word::EMPTY),
            Place::Stash(stash, location) => stash.remove(location),
        }
        drop(locked);
        self.counter(hash).fetch_sub(1, Ordering::Relaxed);
        Some(found.location())
    }

    /// Puts `new` where `old` is, if it still is there for a key of this hash: a compare and swap of the location.
    ///
    /// Both must stand for the same key. A concurrent reader finds the one or the other, never neither.
    pub fn replace(&self, hash: u64, old: Location, new: Location) -> bool {
        self.replace_if(hash, old, new, || true)
    }

    /// As [`replace`](Table::replace), if `old` is there and `still` says so.
    ///
    /// `still` runs while the key's buckets are locked, so that nobody replaces or removes `old` meanwhile: it must not
    /// use the table.
    pub fn replace_if(&self, hash: u64, old: Location, new: Location, still: impl FnOnce() -> bool) -> bool {
        let hash = self.mixed(hash);
        let tag = Tag::of(hash, L::TAG_BITS);
        if let Some(home) = self.lock_first(hash) {
            let found = self.find_at_home(&home, tag, &mut |location| location == old);
            let Some((cell, word)) = found.filter(|_| self.call_out(still)) else { return false };
            cell.store(Word::new(tag, word.next(), new));
            return true;
        }
        let locked = self.lock_candidates(hash, tag, None);
        match self.find_locked(&locked, &mut |location| location == old) {
            Some(found) if self.call_out(still) => {
                self.store_at(found, tag, new);
                true
            }
            _ => false,
        }
    }
}
