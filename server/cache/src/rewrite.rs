//! Writing a value of the same length, as a counter that is counted up has: in a batch, a chunk taken ahead becomes a
//! copy of the item, whose value is then written over, and takes its place.
//!
//! [`Session::change`] does the same for any item and any change of it: it asks what to do, makes a plan, and carries
//! it out. Here nothing is asked but for the value, and the caller goes there whenever something is out of the
//! ordinary: the key has no item, or one in several chunks, or one that can expire, which a touch changes in place; or
//! there is no chunk. What can change of any other item while it is copied is when it was used last, and that the
//! right to fetch it has been won, which counts by chance there, too.
//!
//! Rejected: *to write over the value itself*, as memcached does when nobody else holds the item. Readers look at
//! values without a lock and without a word that says so, for as long as they are pinned: an item is never changed once
//! it is in the index ([`crate::epoch`]).

#![allow(unsafe_code)]

use cuckoo::Location;

use crate::access::Accessed;
use crate::index::GROUP;
use crate::item::Item;
use crate::newcomer::Newcomer;
use crate::policy::Policy;
use crate::session::{Hit, Session};
use crate::stamp::Number;
use crate::unfinished;

impl<P: Policy> Session<P> {
    /// Gives the item of `key` the value that `make` writes over the one that is there, of the same length, and says
    /// what that returned, and the item's number; flags and all else stay. `None` if nothing was changed: because
    /// `make` returned none, or because this is for [`Session::change`], which does it in any case. It is as a rule
    /// where no [batch](Session::begin_batch) is open, and the item has to be one that never expires.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, Entry, Verb};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(64 << 20))?;
    /// let mut session = cache.session();
    /// session.store(Verb::Set, Entry::new(b"n"), b"8")?;
    /// session.begin_batch(&[b"n"], 1);
    /// let made = session.rewrite(b"n", |_, value| {
    ///     value[0] += 1;
    ///     Some(value[0])
    /// });
    /// session.end_batch();
    /// let value = session.pin().get(b"n").unwrap().to_vec();
    /// assert_eq!(value, if made.is_some() { b"9" } else { b"8" });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn rewrite<R>(
        &mut self,
        key: &[u8],
        make: impl FnOnce(&Hit<'_, P>, &mut [u8]) -> Option<R>,
    ) -> Option<(R, u64)> {
        if !self.batch.is_open.get() {
            return None;
        }
        let at = self.another_chunk()?;
        match self.rewrite_into(at, key, make) {
            Ok(made) => {
                self.batch.expected = self.batch.expected.saturating_sub(1);
                Some(made)
            }
            Err(unused) => {
                self.batch.spare.extend(unused);
                // The batch was long enough, and has ended by itself.
                if !self.batch.is_open.get() {
                    self.give_back_spare();
                }
                None
            }
        }
    }

    /// A chunk of the class that the batch has been writing to.
    #[inline]
    fn another_chunk(&mut self) -> Option<Location> {
        let batch = &mut self.batch;
        if batch.spare.is_empty() {
            self.engine.take_ahead(batch.class, batch.expected.clamp(1, GROUP), &mut batch.spare);
        }
        batch.spare.pop()
    }

    /// As [`rewrite`](Session::rewrite), into this chunk, which comes back if it was not used.
    #[inline]
    fn rewrite_into<R>(
        &mut self,
        at: Location,
        key: &[u8],
        make: impl FnOnce(&Hit<'_, P>, &mut [u8]) -> Option<R>,
    ) -> Result<(R, u64), Option<Location>> {
        let class = self.batch.class;
        let pinned = self.pin();
        let (hash, Some(spot)) = pinned.spot(key) else { return Err(Some(at)) };
        let engine = pinned.engine();
        let generation = pinned.moment().generation;
        if engine.flushes.generation_to_store(generation, pinned.moment().now) != generation {
            // What is stored now is hidden, and a copy would be what it is a copy of.
            return Err(Some(at));
        }
        // SAFETY: found in the index while pinned.
        let old = unsafe { Item::at(&engine.arena, spot.location()) };
        let fits = !old.is_chained() && engine.sizes.class_for(old.size()) == Some(class);
        if !fits || old.has_expiry_field() || old.own_cas().is_some() {
            return Err(Some(at));
        }
        let hit = pinned.hit(old, hash);
        let accessed = Accessed::new(pinned.moment().now, hit.is_stale(), hit.is_won());
        let recency = if old.is_fetched() { P::hit(P::NEWCOMER) } else { P::NEWCOMER };
        // SAFETY: the caller's chunk, of the class for items of this size, and an item of one chunk without an expiry;
        // nobody but the caller sees the value before it goes live.
        let value = unsafe { &mut *unfinished::copy(&engine.arena, at, old, recency, accessed) };
        let made = make(&hit, value).ok_or(Some(at))?;
        unfinished::goes_live(&engine.arena, at);
        // By its size, above: of no chained item there is more to know.
        pinned.meet_one_of(class);
        let entries = engine.entries(generation);
        // SAFETY: just finished, and the caller's; pinned.
        let newcomer =
            unsafe { Newcomer::new(&engine.arena, entries, &engine.stamps, at, key, hash, Number::NONE) };
        if !engine.replace_on(spot, &newcomer, || true) {
            // SAFETY: the caller's, and it was never in the index. Whoever has seen it live may be reading it under the
            // lock of its class, by which it comes back.
            unsafe { engine.dismantle(at) };
            return Err(None);
        }
        pinned.settle_in(&newcomer, Some(spot.location()));
        let (value_len, number) = (old.value_len(), newcomer.cas());
        drop(pinned);
        self.copied += value_len as u64;
        Ok((made, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Cache, Config, Entry, Stored, Verb};
    use crate::item::Expiry;

    /// A cache with chunks to be taken ahead, and `n` in it.
    fn cache(entry: Entry<'_>) -> Cache {
        let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
        cache.session().store(Verb::Set, entry, b"10").expect("room");
        cache
    }

    fn count<P: Policy>(session: &mut Session<P>) -> Option<(u8, u64)> {
        session.rewrite(b"n", |_, value| {
            value[1] += 1;
            Some(value[1])
        })
    }

    #[test]
    fn a_value_is_written_over_and_all_else_stays() {
        let cache = cache(Entry::new(b"n").with_flags(7));
        let mut session = cache.session();
        let before = session.pin().get(b"n").expect("it is there").cas();
        session.begin_batch(&[b"m".as_slice(), b"n", b"n", b"n"], 4);
        // What a batch writes first has its chunks taken ahead.
        session.store(Verb::Set, Entry::new(b"m").with_flags(1), b"00").expect("room");
        assert_eq!(count(&mut session).map(|made| made.0), Some(b'1'));
        let (second, number) = count(&mut session).expect("once more");
        assert_eq!(second, b'2');
        assert!(
            session
                .rewrite(b"n", |_, value| {
                    value.fill(b'x');
                    None::<()>
                })
                .is_none()
        );
        session.end_batch();
        let pinned = session.pin();
        let hit = pinned.get(b"n").expect("it is there");
        assert_eq!((hit.to_vec(), hit.flags(), hit.cas()), (b"12".to_vec(), 7, number));
        assert!(number > before && hit.was_fetched());
        drop(pinned);
        assert_eq!(cache.len(), 2);
        let stale = session.store(Verb::CompareAndSwap(before), Entry::new(b"n"), b"99");
        assert_eq!(stale, Ok(Stored::Exists));
    }

    #[test]
    fn what_can_expire_or_is_not_there_is_left_alone() {
        let cache = cache(Entry::new(b"n").with_expiry(Expiry::At(9)));
        let mut session = cache.session();
        assert!(count(&mut session).is_none(), "no batch");
        session.begin_batch(&[b"n".as_slice(); 3], 3);
        session.store(Verb::Set, Entry::new(b"mmmmm"), b"00").expect("room");
        assert!(count(&mut session).is_none());
        assert!(session.delete(b"n"));
        assert!(count(&mut session).is_none());
        session.end_batch();
        assert_eq!(cache.len(), 1);
    }
}
