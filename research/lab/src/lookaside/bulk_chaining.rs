//! MICA's hash table: bulk chaining, seven words a line.
//!
//! Lim, Han, Andersen and Kaminsky, "MICA", NSDI 2014, section 4.3; as the SLB paper measures it (sections 4.3.2 and
//! 4.3.3): "each bucket is a linked list, in which each node contains seven pointers that fills an entire cache line".
//!
//! ```text
//!   bucket:  7 x | tag 16 | address 48 |   | next 32 | version 32 |
//!   spare:   7 x | tag 16 | address 48 |   | next 32 |     -      |
//! ```
//!
//! The number of buckets is fixed; what does not fit a bucket's line goes to spare lines, chained by number. A reader
//! of the shared form (CREW: concurrent reads, exclusive writes) reads the bucket's version before and after, and
//! begins anew if a writer was there; a writer makes it odd meanwhile. The partitioned form (EREW) has one thread for
//! itself and does neither.
//!
//! The paper's three tables have 2^22, 2^23 and 2^24 buckets for 100 million items. Here they are named by what that
//! comes to, so that they can be measured with fewer: lines a chain, 4, 2 and 1.
//!
//! MICA keeps items in a circular log that overwrites the oldest; the paper's experiment is on the index, and so is
//! this one: items lie on the heap.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use lookaside::index::{Find, SharedStore, Store};
use lookaside::{Found, Pin};
use pages::{Array, PageKind};
use twox_hash::XxHash3_64;

use super::beside::{Record, Records};
use super::contestant::Make;
use super::indexes::{Handled, LocalMap};
use super::items::{Item, Kept, Seen};
use super::record::{Key, Value};
use crate::measure::epochs::{self, Guard};

/// Words in a line.
const SLOTS: usize = 7;
/// Bits of an address.
const ADDRESS_BITS: u32 = 48;

/// Items a bucket in the paper's table of 2^22 buckets, with 100 million of them: chains of four lines.
pub(super) const FOUR_LINES: usize = 24;
/// Of 2^23 buckets: two lines.
pub(super) const TWO_LINES: usize = 12;
/// Of 2^24 buckets: one line.
pub(super) const ONE_LINE: usize = 6;

/// Seven words, and where the chain goes on.
#[repr(C, align(64))]
struct Line {
    slots: [AtomicU64; SLOTS],
    /// The number of the next spare line, counted from one, over the version.
    link: AtomicU64,
}

const _: () = assert!(size_of::<Line>() == 64);

// SAFETY: atomic integers, for all of which zero is a value: no items, no next line, an even version.
unsafe impl pages::Zeroed for Line {}

/// The table: shared (CREW) or one thread's own (EREW), with so many items a bucket.
pub(super) struct BulkChaining<const N: usize, E: Item<N>, const SHARED: bool, const ITEMS: usize> {
    buckets: Array<Line>,
    spares: Array<Line>,
    /// Spare lines in use.
    used: AtomicUsize,
    len: AtomicUsize,
    items: PhantomData<E>,
}

/// A place for a word: a line's slot.
type Slot<'t> = &'t AtomicU64;

impl<const N: usize, E: Item<N>, const SHARED: bool, const ITEMS: usize> BulkChaining<N, E, SHARED, ITEMS> {
    #[inline(always)]
    fn hash(key: &Key<N>) -> u64 {
        XxHash3_64::oneshot(&key.0)
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &Line {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    #[inline(always)]
    fn next(&self, line: &Line) -> Option<&Line> {
        // acquire pairs with the release in `slot_for`: the next line is seen as it was made.
        let number = line.link.load(Ordering::Acquire) >> 32;
        (number > 0).then(|| &self.spares[number as usize - 1])
    }

    /// The slot of this key and its word, if it is in the chain.
    #[inline(always)]
    fn search<'t>(&'t self, hash: u64, key: &Key<N>) -> Option<(Slot<'t>, u64)> {
        let tag = hash >> ADDRESS_BITS;
        let mut line = self.bucket(hash);
        loop {
            for slot in &line.slots {
                // acquire pairs with the release in `put`: an item is seen as it was made.
                let word = slot.load(Ordering::Acquire);
                if word >> ADDRESS_BITS != tag || address(word) == 0 {
                    continue;
                }
                // SAFETY: words are what `put` made of items; whoever searches is pinned, or owns the table.
                let item = std::mem::ManuallyDrop::new(unsafe { E::from_address(address(word)) });
                if item.key() == key {
                    return Some((slot, word));
                }
            }
            line = self.next(line)?;
        }
    }

    /// What is stored under this key.
    #[inline(always)]
    fn get<'g, G>(&'g self, key: &Key<N>, pinned: &'g G) -> Option<Seen<'g, E>> {
        let hash = Self::hash(key);
        loop {
            let bucket = self.bucket(hash);
            // acquire pairs with the release in `Held::drop`: what the last writer did is seen.
            let before = if SHARED { bucket.link.load(Ordering::Acquire) } else { 0 };
            if before & 1 == 0 {
                let found = self.search(hash, key);
                if SHARED {
                    // pairs with the release fence in `make_odd`: whoever has read a word of a later writer sees its
                    // odd version.
                    fence(Ordering::Acquire);
                }
                if !SHARED || bucket.link.load(Ordering::Relaxed) as u32 == before as u32 {
                    // SAFETY: who asks was pinned before the word was read, or has borrowed what nobody else changes.
                    return found.map(|(_, word)| unsafe { Seen::at(address(word), pinned) });
                }
            }
            std::hint::spin_loop();
        }
    }

    /// Makes an even version odd, if nobody is faster.
    fn make_odd(link: &AtomicU64) -> bool {
        let now = link.load(Ordering::Relaxed);
        let odd = now & 1 == 0
            // acquire pairs with the release in `Held::drop`.
            && link.compare_exchange(now, now | 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if odd {
            // pairs with the acquire fence in `get`.
            fence(Ordering::Release);
        }
        odd
    }

    /// Takes the bucket for a write.
    fn lock(&self, hash: u64) -> Held<'_, SHARED> {
        let bucket = self.bucket(hash);
        while SHARED && !Self::make_odd(&bucket.link) {
            std::hint::spin_loop();
        }
        Held(bucket)
    }

    /// A free slot in the locked chain; a new line is linked if there is none.
    fn slot_for(&self, hash: u64) -> Slot<'_> {
        let mut line = self.bucket(hash);
        loop {
            if let Some(slot) = line.slots.iter().find(|slot| slot.load(Ordering::Relaxed) == 0) {
                return slot;
            }
            match self.next(line) {
                Some(next) => line = next,
                None => {
                    let number = self.used.fetch_add(1, Ordering::Relaxed) + 1;
                    assert!(
                        number <= self.spares.len(),
                        "the table was made for fewer records than were put in"
                    );
                    // release pairs with the acquire in `next`. The version in the low half is the writer's, who is
                    // here.
                    line.link.fetch_or((number as u64) << 32, Ordering::Release);
                }
            }
        }
    }

    /// Puts an item in, and gives back the one of an equal key.
    fn put(&self, item: E) -> Option<E> {
        let _guard = epochs::pin();
        let hash = Self::hash(item.key());
        let _locked = self.lock(hash);
        let old = self.search(hash, item.key());
        let word = word(hash, item);
        let slot = old.map_or_else(|| self.slot_for(hash), |(slot, _)| slot);
        // release pairs with the acquire in `search`.
        slot.store(word, Ordering::Release);
        if old.is_none() {
            self.len.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: given up for this word once, and now out of the table.
        old.map(|(_, word)| unsafe { E::from_address(address(word)) })
    }
}

#[inline(always)]
fn address(word: u64) -> u64 {
    word & ((1 << ADDRESS_BITS) - 1)
}

fn word<const N: usize, E: Item<N>>(hash: u64, item: E) -> u64 {
    let address = item.into_address();
    assert_eq!(address >> ADDRESS_BITS, 0, "the heap lies below 2^48");
    hash >> ADDRESS_BITS << ADDRESS_BITS | address
}

/// A bucket that is being written.
struct Held<'t, const SHARED: bool>(&'t Line);

impl<const SHARED: bool> Drop for Held<'_, SHARED> {
    fn drop(&mut self) {
        if SHARED {
            let now = self.0.link.load(Ordering::Relaxed);
            let version = (now as u32).wrapping_add(1);
            // release pairs with the acquires in `get` and `make_odd`.
            self.0.link.store(now >> 32 << 32 | u64::from(version), Ordering::Release);
        }
    }
}

impl<const N: usize, E: Item<N>, const SHARED: bool, const ITEMS: usize> Drop
    for BulkChaining<N, E, SHARED, ITEMS>
{
    fn drop(&mut self) {
        let used = self.used.load(Ordering::Relaxed).min(self.spares.len());
        for slot in self.buckets.iter().chain(&self.spares[..used]).flat_map(|line| &line.slots) {
            let word = slot.load(Ordering::Relaxed);
            if address(word) != 0 {
                // SAFETY: given up for this word once; the table is going.
                drop(unsafe { E::from_address(address(word)) });
            }
        }
    }
}

impl<const N: usize, E: Item<N>, const SHARED: bool, const ITEMS: usize> Make
    for BulkChaining<N, E, SHARED, ITEMS>
{
    fn make(records: usize) -> Result<Self, String> {
        let map = |lines| Array::map(lines, PageKind::Transparent).map_err(|error| error.to_string());
        Ok(BulkChaining {
            buckets: map((records / ITEMS).max(1).next_power_of_two())?,
            // As many as are needed if every record is in one, full or not: address space, not memory.
            spares: map(records / 4 + 64)?,
            used: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            items: PhantomData,
        })
    }
}

// SAFETY: the records are `Kept`, which frees them after all have left who were pinned when they were replaced; and
// with the table.
unsafe impl<const N: usize, const ITEMS: usize> Records<N> for BulkChaining<N, Kept<N>, true, ITEMS> {
    type Value = Value;

    #[inline(always)]
    fn record<'g>(&'g self, key: &Key<N>, guard: &'g Guard) -> Option<&'g Record<N>> {
        self.get(key, guard).map(|seen| seen.record())
    }

    fn put_record<'g>(&'g self, record: Record<N>, guard: &'g Guard) -> &'g Record<N> {
        Kept::put(record, guard, |kept| self.put(kept))
    }
}

/// The partitioned form alone, of one thread.
impl<const N: usize, const ITEMS: usize> LocalMap<N> for BulkChaining<N, Kept<N>, false, ITEMS> {
    #[inline(always)]
    fn get(&self, key: &Key<N>) -> Option<&Value> {
        // Nobody changes it while it is borrowed: that is as good as a pin.
        BulkChaining::get(self, key, self).map(|seen| &seen.record().1)
    }

    fn put(&mut self, key: Key<N>, value: Value) {
        drop(BulkChaining::put(self, Kept::new(key, value)));
    }
}

type Indexed<const N: usize, const SHARED: bool, const ITEMS: usize> =
    BulkChaining<N, Handled<N>, SHARED, ITEMS>;

impl<const N: usize, const SHARED: bool, const ITEMS: usize> Find<Key<N>, Key<N>, Value>
    for Indexed<N, SHARED, ITEMS>
{
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.get(key, pin)?.found(pin)
    }
}

impl<const N: usize, const ITEMS: usize> SharedStore<Key<N>, Value> for Indexed<N, true, ITEMS> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        self.put(handle)
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}

impl<const N: usize, const ITEMS: usize> Store<Key<N>, Value> for Indexed<N, false, ITEMS> {
    fn replace(&mut self, handle: Handled<N>) -> Option<Handled<N>> {
        self.put(handle)
    }

    fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }
}
