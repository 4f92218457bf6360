//! Changing one key as a whole: look at the item that is there, decide, and do what was decided only if that is still
//! the item that is there.
//!
//! ```text
//! change:
//!   pin; find the item; decide
//!     leave:   done
//!     remove:  take exactly this item out of the index           else look again
//!     touch:   change its expiry in place, if it has room        else put a copy
//!     put:     unpin; write a new item                           this may have to wait its turn for memory
//!              pin; put it in the place of the item that was seen, or of none; else look again
//! ```
//!
//! *The same item* is one with the same place, number and expiry: see [`crate::publication`]. Whoever decides is asked
//! again as often as somebody else was faster, so what he says must depend on nothing but what he is shown.
//!
//! *A touch in place* is not lost to a copy that is being made: an item made from this one at the same time carries the
//! old expiry or the new one. Putting the location in its own place takes the lock that the other one's goes through:
//! if it succeeds, the other one comes later, sees another expiry than he copied, and begins anew; if not, the other
//! one is there, and is asked about next.

use atomics::yield_now;
use cuckoo::Spot;

use crate::access::Accessed;
use crate::allocation::StoreError;
use crate::item::{Expiry, Outline};
use crate::policy::Policy;
use crate::publication::{Published, Seen};
use crate::recency::Recency;
use crate::session::{Hit, Pinned, Session};
use crate::stamp::Number;

/// A scratch buffer larger than this is given back after use.
const SCRATCH_KEPT: usize = 64 << 10;

/// What is to become of a key.
#[derive(Debug, Clone, Copy)]
pub enum Change<'v, R> {
    /// Nothing changes.
    Leave(R),
    /// The item goes, if there is one.
    Remove(R),
    /// A new item comes, in the place of the one that is there, if there is one.
    Put(Put<'v>, R),
    /// The item that is there gets another expiry; all else of it stays, its number too. If there is none, nothing
    /// changes.
    Touch(Expiry, R),
}

/// A new item, but for its key.
#[derive(Debug, Clone, Copy)]
pub struct Put<'v> {
    /// Its value.
    pub value: Value<'v>,
    /// The client's flags.
    pub flags: u32,
    /// When it dies.
    pub expiry: Expiry,
    /// As [`Entry::cas`](crate::engine::Entry::cas).
    pub cas: Option<u64>,
    /// Whether it counts as out of date: [`Hit::is_stale`].
    pub stale: bool,
    /// Whether somebody has the right to fetch it anew already: [`Hit::is_won`].
    pub won: bool,
    /// Whether it counts as looked up already: [`Hit::was_fetched`].
    pub fetched: bool,
}

/// The value of a new item.
#[derive(Debug, Clone, Copy)]
pub enum Value<'v> {
    /// This one.
    Given(&'v [u8]),
    /// What has been written into the buffer that came with the question.
    Scratch,
    /// That of the item that is there; none, if there is none.
    Same,
}

impl<'v> Put<'v> {
    /// An item with no flags that never dies, whose number the engine gives, neither stale nor won nor fetched.
    #[must_use]
    pub fn new(value: Value<'v>) -> Self {
        Put { value, flags: 0, expiry: Expiry::Never, cas: None, stale: false, won: false, fetched: false }
    }

    /// With these [`flags`](Put::flags).
    #[must_use]
    pub fn with_flags(self, flags: u32) -> Self {
        Put { flags, ..self }
    }

    /// With this [`expiry`](Put::expiry).
    #[must_use]
    pub fn with_expiry(self, expiry: Expiry) -> Self {
        Put { expiry, ..self }
    }

    /// With this [number](Put::cas), or the engine's.
    #[must_use]
    pub fn with_cas(self, cas: Option<u64>) -> Self {
        Put { cas, ..self }
    }

    /// [Stale](Put::stale) or not.
    #[must_use]
    pub fn with_stale(self, stale: bool) -> Self {
        Put { stale, ..self }
    }

    /// [Won](Put::won) or not.
    #[must_use]
    pub fn with_won(self, won: bool) -> Self {
        Put { won, ..self }
    }

    /// [Fetched](Put::fetched) or not.
    #[must_use]
    pub fn with_fetched(self, fetched: bool) -> Self {
        Put { fetched, ..self }
    }
}

/// What has become of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed<R> {
    /// What was handed on with the decision that was carried out.
    pub result: R,
    /// The number of the item that was put, as [`Hit::cas`] tells it; `None` if none was.
    pub cas: Option<u64>,
}

/// What a decision needs memory for.
struct Plan<'v, R> {
    put: Put<'v>,
    seen: Option<Seen>,
    /// Whether there will be an expiry, although there is none.
    expiry_to_come: bool,
    /// The new item counts as the same one, and as used as that was.
    copies: Option<Use>,
    hash: u64,
    result: R,
}

/// How an item has been used.
#[derive(Debug, Clone, Copy)]
struct Use {
    accessed: Accessed,
    /// If it was fetched.
    recency: Option<Recency>,
}

/// How far a decision was carried out.
enum Progress<'v, R> {
    Done(R),
    Again,
    Planned(Plan<'v, R>),
}

impl<P: Policy> Session<P> {
    /// Changes one key as a whole: `decide` is shown the item that is there, or `None` if none is alive, and what it
    /// says is done only if that is still so. It is asked again if somebody else was faster, and must not depend on how
    /// often. It is given an empty buffer, for a value that it makes. What it looks at counts as no use.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Change, Config, Put, Value};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// // Counts, from 1 on.
    /// for n in 1..=3 {
    ///     let changed = session.change(b"n", |now, new| {
    ///         let count = now.map_or(0, |hit| hit.to_vec()[0]) + 1;
    ///         new.push(count);
    ///         Change::Put(Put::new(Value::Scratch), count)
    ///     })?;
    ///     assert_eq!(changed.result, n);
    ///     assert_eq!(changed.cas, session.pin().get(b"n").map(|hit| hit.cas()));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreError`]: the key is as it was.
    ///
    /// # Panics
    /// If something is put under a key that is empty or longer than 250 bytes.
    pub fn change<'v, R>(
        &mut self,
        key: &[u8],
        mut decide: impl FnMut(Option<&Hit<'_, P>>, &mut Vec<u8>) -> Change<'v, R>,
    ) -> Result<Changed<R>, StoreError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let outcome = loop {
            scratch.clear();
            let plan = match self.pin().decide(key, &mut scratch, &mut decide) {
                Progress::Done(result) => break Ok(Changed { result, cas: None }),
                Progress::Again => continue,
                Progress::Planned(plan) => plan,
            };
            match self.put(key, &scratch, &plan) {
                Ok(Some(cas)) => {
                    break Ok(Changed { result: plan.result, cas: plan.copies.is_none().then_some(cas) });
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        if scratch.capacity() <= SCRATCH_KEPT {
            self.scratch = scratch;
        }
        outcome
    }

    /// Puts what was planned; its number, or `None` if somebody else was faster.
    fn put<R>(&mut self, key: &[u8], scratch: &[u8], plan: &Plan<'_, R>) -> Result<Option<u64>, StoreError> {
        let &Plan { put: Put { flags, expiry, cas, stale, won, fetched, .. }, expiry_to_come, .. } = plan;
        let value = match plan.put.value {
            Value::Given(value) => value,
            Value::Scratch | Value::Same => {
                self.copied += scratch.len() as u64;
                scratch
            }
        };
        let outline = Outline { key, flags, expiry, expiry_to_come, cas, value_len: value.len() };
        let unfinished = self.write_item(&outline, value)?;
        let pinned = self.pin();
        let now = pinned.moment().now;
        let (accessed, number) = match (plan.copies, plan.seen) {
            (Some(copied), Some(seen)) => (copied.accessed, seen.number()),
            _ => (Accessed::new(now, stale, won), Number::NONE),
        };
        let newcomer = pinned.newcomer(&unfinished, key, plan.hash, accessed, number);
        let copied = plan.copies.and_then(|copied| copied.recency);
        if let Some(recency) = copied.or_else(|| fetched.then(|| P::hit(P::NEWCOMER))) {
            pinned.engine().arena.raise_recency(newcomer.location(), P::NEWCOMER, recency);
        }
        let placed = pinned.take_place_of(plan.seen, &newcomer);
        if let Ok(Some(Published::InPlaceOf(old))) = placed {
            pinned.settle_in(&newcomer, old);
            return Ok(Some(newcomer.cas()));
        }
        pinned.engine().discard(&unfinished);
        if placed.is_err() { Err(StoreError::OutOfMemory) } else { Ok(None) }
    }
}

impl<P: Policy> Pinned<'_, P> {
    /// Asks what is to become of a key, and does it as far as it needs no memory.
    fn decide<'v, R>(
        &self,
        key: &[u8],
        scratch: &mut Vec<u8>,
        decide: &mut impl FnMut(Option<&Hit<'_, P>>, &mut Vec<u8>) -> Change<'v, R>,
    ) -> Progress<'v, R> {
        let (hash, found) = self.look(key);
        let found = found.filter(|(hit, _)| !self.moment().is_dead(hit.item));
        let (now, spot) = (found.map(|(hit, _)| hit), found.and_then(|(_, spot)| spot));
        if let Some(hit) = &now {
            self.meet(hit);
        }
        let seen = now.as_ref().map(|hit| Seen::of(hit, spot, self.batch().pin()));
        let change = decide(now.as_ref(), scratch);
        if let (Change::Leave(_), Some(hit)) = (&change, &now)
            && hit.is_leaving()
        {
            // Its number may have been compared, and it has none: it is evicted, or replaced, and which of the two is
            // known when its bucket is not locked any more.
            yield_now();
            return Progress::Again;
        }
        let (put, result) = match (change, &now) {
            (Change::Leave(result), _) | (Change::Remove(result) | Change::Touch(_, result), None) => {
                return Progress::Done(result);
            }
            (Change::Remove(result), Some(hit)) => {
                // Pinned since it was found.
                let removed = self.remove(hash, hit.item.location(), spot);
                return if removed { Progress::Done(result) } else { Progress::Again };
            }
            (Change::Touch(expiry, result), Some(hit)) => {
                return self.touch(hit, spot, expiry, result, scratch);
            }
            (Change::Put(put, result), _) => (put, result),
        };
        // What can be touched in place can be while its copy is made, which is to have room for it.
        let is_copy = !matches!(put.value, Value::Given(_));
        let expiry_to_come = is_copy && now.is_some_and(|hit| hit.item.has_expiry_field());
        if let Value::Same = put.value {
            scratch.clear();
            now.iter().flat_map(Hit::pieces).for_each(|piece| scratch.extend_from_slice(piece));
        }
        Progress::Planned(Plan { put, seen, expiry_to_come, copies: None, hash, result })
    }

    /// Changes an item's expiry in place, or plans a copy of it if it has no room for one.
    fn touch<'v, R>(
        &self,
        hit: &Hit<'_, P>,
        spot: Option<Spot>,
        expiry: Expiry,
        result: R,
        scratch: &mut Vec<u8>,
    ) -> Progress<'v, R> {
        let at = hit.item.location();
        let tick = self.moment().tick;
        let seen = Seen::of(hit, spot, self.batch().pin());
        if hit.item.set_expiry(expiry) {
            if hit.is_behind(tick) {
                hit.item.access().note(tick);
            }
            let table = &self.engine().table;
            // Its bucket was locked: that is all.
            let is_there = spot.is_some_and(|spot| table.hold(spot).is_some());
            if !is_there && !table.replace(hit.hash, at, at) {
                return Progress::Again;
            }
            // Noted after it was changed: see `Page::expires_at`.
            self.engine().note_expiry(at, expiry);
            return Progress::Done(result);
        }
        scratch.clear();
        hit.pieces().for_each(|piece| scratch.extend_from_slice(piece));
        let put =
            Put::new(Value::Same).with_flags(hit.flags()).with_expiry(expiry).with_cas(hit.item.own_cas());
        let item = hit.item;
        let recency = item.is_fetched().then(|| item.recency());
        let copies = Some(Use { accessed: item.access().load().at(tick), recency });
        Progress::Planned(Plan {
            put,
            seen: Some(seen),
            expiry_to_come: true,
            copies,
            hash: hit.hash,
            result,
        })
    }
}
