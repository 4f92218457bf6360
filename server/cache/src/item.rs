//! How an item lies in its chunk.
//!
//! ```text
//!   0      1          2                    4          6          8
//!  +------+----------+--------------------+----------+----------+ - - - - - - - - +-----+-------+ - - - - - +
//!  | mark | key      | value length (13)  | stamp    | access   | chain, expiry,  | key | value | own CAS:  |
//!  |      | length   | has own CAS (1)    |          |          | flags: if any   |     |       | if any    |
//!  |      |          | generation (2)     |          |          |                 |     |       |           |
//!  +------+----------+--------------------+----------+----------+ - - - - - - - - +-----+-------+ - - - - - +
//! ```
//!
//! Eight bytes of header: a 16-byte key with a 32-byte value takes 56, and 56 is a chunk size. (memcached: 48 and more,
//! paper, section 2.2.) Expiry and client flags take four bytes each, a compare-and-swap number of the client's own
//! eight, and only in items that have them. The *stamp* is the end of the item's own number ([`crate::stamp`]);
//! *access* is when it was used last, and two flags ([`crate::access`]); the *generation* is the flush it has survived
//! ([`crate::flush`]). The client's number comes last, at any address, so that nobody who compares keys asks whether
//! there is one; of a chained item it is the last of the first chunk.
//!
//! An item that does not fit the largest chunk is *chained*: its first chunk holds, after the header,
//!
//! ```text
//!   8              12            16
//!  +--------------+-------------+----------------+
//!  | value length | references  | next chunk + 1 |
//!  +--------------+-------------+----------------+
//! ```
//!
//! and each further chunk, which has a key length of zero, its data after a header of 24 bytes:
//!
//! ```text
//!   0      1    2             4        8                16               24
//!  +------+----+-------------+--------+----------------+----------------+------+
//!  | mark | 0  | data length | born   | next chunk + 1 | first chunk    | data |
//!  +------+----+-------------+--------+----------------+----------------+------+
//! ```
//!
//! *Born* is when it was written, or spared because it had been used, by the clock of [`crate::pool`]: a page may hold
//! the ends of large items of any age.
//!
//! Who may read and who may write is said by the chunk's state ([`crate::arena::State`]). Of a live item only the mark,
//! the access, the expiry (changed by `touch`) and the reference count change, and these are atomics; so is the stamp,
//! which is written when the item is live and not yet in the index. All else is written once, before that.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use cuckoo::Location;

use crate::access::Access;
use crate::arena::{Arena, Mark, State};
use crate::recency::Recency;
use crate::size_classes::LARGEST_CHUNK;
use crate::stamp::Stamp;

/// Bytes of the longest key; no key is empty, for a length of zero marks a further chunk.
pub const MAX_KEY_LEN: usize = 250;
/// Bytes before the optional fields.
pub(crate) const HEADER: usize = 8;
/// Bytes of the fields of a chained item.
pub(crate) const CHAIN_FIELDS: usize = 16;
/// Bytes of a compare-and-swap number of the client's.
pub(crate) const OWN_CAS: usize = 8;
/// The half at two: a length, and this if the client has given a number. A value in one chunk is shorter.
const LENGTH: u16 = (1 << 13) - 1;
pub(crate) const HAS_OWN_CAS: u16 = 1 << 13;
pub(crate) const GENERATION_SHIFT: u32 = 14;
const _: () = assert!(LARGEST_CHUNK - HEADER - 1 <= LENGTH as usize);
/// Bytes before the data of a further chunk.
pub(crate) const FURTHER_HEADER: usize = 24;

/// When an item dies, in seconds by the cache's clock ([`Cache::set_time`](crate::engine::Cache::set_time)), or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It lives until it is deleted, replaced or evicted.
    Never,
    /// It is dead from this second on.
    At(u32),
}

impl Expiry {
    pub(crate) fn to_word(self) -> u32 {
        match self {
            Expiry::Never => 0,
            // Second zero is past, and so is second one.
            Expiry::At(second) => second.max(1),
        }
    }

    fn from_word(word: u32) -> Expiry {
        if word == 0 { Expiry::Never } else { Expiry::At(word) }
    }

    /// Whether an item with this expiry is dead at `now`.
    #[must_use]
    pub fn has_passed(self, now: u32) -> bool {
        matches!(self, Expiry::At(second) if second <= now)
    }
}

/// The flush that an item has survived: two bits, compared for equality only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u8);

impl Generation {
    pub(crate) fn new(value: u8) -> Self {
        Generation(value & 0b11)
    }

    /// The one before that.
    pub(crate) fn before(value: u8) -> Self {
        Generation::new(value.wrapping_sub(1))
    }

    pub(crate) fn get(self) -> u8 {
        self.0
    }
}

/// What an item is made of, but for its value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) expiry: Expiry,
    /// Whether it has room for another expiry although it has none.
    pub(crate) expiry_to_come: bool,
    /// A compare-and-swap number of the client's.
    pub(crate) cas: Option<u64>,
    pub(crate) value_len: usize,
}

impl Outline<'_> {
    pub(crate) fn has_flags(&self) -> bool {
        self.flags != 0
    }

    /// Whether the item does not fit one chunk.
    pub(crate) fn is_chained(&self) -> bool {
        self.unchained_size() > LARGEST_CHUNK
    }

    pub(crate) fn has_expiry(&self) -> bool {
        // A chained item always has the field, so that a touch never copies a large value.
        self.has_expiry_if_unchained() || self.is_chained()
    }

    fn has_expiry_if_unchained(&self) -> bool {
        self.expiry != Expiry::Never || self.expiry_to_come
    }

    fn unchained_size(&self) -> usize {
        let optional =
            if self.has_flags() { 4 } else { 0 } + if self.has_expiry_if_unchained() { 4 } else { 0 };
        HEADER + optional + self.key.len() + self.value_len + self.own_cas()
    }

    /// Bytes of the client's number.
    fn own_cas(&self) -> usize {
        if self.cas.is_some() { OWN_CAS } else { 0 }
    }

    /// Bytes in the first chunk before the value.
    fn value_offset(&self) -> usize {
        let chain = if self.is_chained() { CHAIN_FIELDS } else { 0 };
        let expiry = if self.has_expiry() { 4 } else { 0 };
        let flags = if self.has_flags() { 4 } else { 0 };
        HEADER + chain + expiry + flags + self.key.len()
    }

    /// Bytes that the first chunk must have: all of the item, or a whole largest chunk.
    pub(crate) fn first_chunk(&self) -> usize {
        if self.is_chained() { LARGEST_CHUNK } else { self.unchained_size() }
    }

    /// Bytes of the value in the first chunk.
    pub(crate) fn first_room(&self) -> usize {
        self.value_len.min(self.first_chunk() - self.value_offset() - self.own_cas())
    }
}

/// An item that may be read for as long as `'a`.
///
/// Made by [`Item::at`], whose caller answers for that; then it can be trusted.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    arena: &'a Arena,
    at: Location,
    start: *const u8,
    mark: Mark,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Item<'a> {
    /// The item at `at`.
    ///
    /// # Safety
    /// The chunk must hold the first chunk of an item, written before, and nobody may write it, or the further chunks
    /// of its chain, during `'a`: because the caller is pinned and found it in the index since, or in the lookaside
    /// buffer, or holds the lock of its class (or of a bucket it is in, or of a further chunk's class) and saw it live,
    /// or is the one who writes it, or has taken it out of the index itself and not yet retired it.
    #[inline]
    pub(crate) unsafe fn at(arena: &'a Arena, at: Location) -> Item<'a> {
        Item { arena, at, start: arena.start(at), mark: arena.mark(at), lifetime: PhantomData }
    }

    #[inline]
    pub(crate) fn location(self) -> Location {
        self.at
    }

    #[inline]
    fn byte(self, offset: usize) -> u8 {
        // SAFETY: within the header, which the maker of `self` vouches for.
        unsafe { self.start.add(offset).read() }
    }

    #[inline]
    fn half(self, offset: usize) -> u16 {
        // SAFETY: as in `byte`; the offset is even and the chunk a multiple of eight.
        unsafe { self.start.add(offset).cast::<u16>().read() }
    }

    #[inline]
    fn word(self, offset: usize) -> u32 {
        // SAFETY: as in `half`; the offset is a multiple of four.
        unsafe { self.start.add(offset).cast::<u32>().read() }
    }

    #[inline]
    fn bytes(self, offset: usize, len: usize) -> &'a [u8] {
        // SAFETY: the lengths in the header were written with the bytes they describe, all within the chunk.
        unsafe { std::slice::from_raw_parts(self.start.add(offset), len) }
    }

    #[inline]
    fn fields_offset(self) -> usize {
        if self.mark.is_chained() { HEADER + CHAIN_FIELDS } else { HEADER }
    }

    #[inline]
    fn key_offset(self) -> usize {
        self.fields_offset()
            + if self.mark.has_expiry() { 4 } else { 0 }
            + if self.mark.has_flags() { 4 } else { 0 }
    }

    #[inline]
    pub(crate) fn key(self) -> &'a [u8] {
        self.bytes(self.key_offset(), self.byte(1) as usize)
    }

    #[inline]
    pub(crate) fn generation(self) -> Generation {
        Generation((self.half(2) >> GENERATION_SHIFT) as u8)
    }

    /// The end of its number.
    #[inline]
    pub(crate) fn stamp(self) -> Stamp {
        // Relaxed: who has found the item sees it through the index.
        Stamp::from_bits(self.stamp_cell().load(Ordering::Relaxed))
    }

    /// Gives the item the end of its number: while it is not in the index, and by who is putting it there.
    pub(crate) fn set_stamp(self, stamp: Stamp) {
        self.stamp_cell().store(stamp.bits(), Ordering::Relaxed);
    }

    fn stamp_cell(self) -> &'a AtomicU16 {
        // SAFETY: within the header, aligned to two bytes, and only accessed as an atomic once the item is written.
        unsafe { &*self.start.add(4).cast::<AtomicU16>() }
    }

    /// When it was used last, and who has been told what of it.
    #[inline]
    pub(crate) fn access(self) -> &'a Access {
        // SAFETY: as in `stamp_cell`; the type is an atomic of two bytes.
        unsafe { &*self.start.add(6).cast::<Access>() }
    }

    /// Whether nobody had begun to take the item out of the index before now.
    #[inline]
    pub(crate) fn is_live(self) -> bool {
        self.arena.mark(self.at).state() == State::Live
    }

    #[inline]
    fn has_own_cas(self) -> bool {
        self.half(2) & HAS_OWN_CAS != 0
    }

    /// Bytes of the client's number.
    #[inline]
    fn own_cas_len(self) -> usize {
        if self.has_own_cas() { OWN_CAS } else { 0 }
    }

    /// The client's number, if it has given one.
    #[inline]
    pub(crate) fn own_cas(self) -> Option<u64> {
        self.has_own_cas().then(|| {
            let at = self.first_chunk() - OWN_CAS;
            // SAFETY: the last bytes of the item's first chunk, written with the header; at any address.
            unsafe { self.start.add(at).cast::<u64>().read_unaligned() }
        })
    }

    #[inline]
    pub(crate) fn value_len(self) -> usize {
        if self.mark.is_chained() { self.word(8) as usize } else { (self.half(2) & LENGTH) as usize }
    }

    #[inline]
    fn expiry_cell(self) -> Option<&'a AtomicU32> {
        self.mark.has_expiry().then(|| {
            // SAFETY: the field exists, is aligned to four bytes, lives as long as the item, and is only ever accessed
            // as an atomic once the item is published.
            unsafe { &*self.start.add(self.fields_offset()).cast::<AtomicU32>() }
        })
    }

    #[inline]
    pub(crate) fn expiry(self) -> Expiry {
        // Relaxed: a second more or less of an expiry orders nothing.
        self.expiry_cell().map_or(Expiry::Never, |cell| Expiry::from_word(cell.load(Ordering::Relaxed)))
    }

    /// Changes the expiry in place; false if the item has no room for one.
    pub(crate) fn set_expiry(self, expiry: Expiry) -> bool {
        match self.expiry_cell() {
            Some(cell) => {
                cell.store(expiry.to_word(), Ordering::Relaxed);
                true
            }
            None => expiry == Expiry::Never,
        }
    }

    /// Whether the expiry can be changed in place.
    pub(crate) fn has_expiry_field(self) -> bool {
        self.mark.has_expiry()
    }

    #[inline]
    pub(crate) fn flags(self) -> u32 {
        if self.mark.has_flags() {
            self.word(self.fields_offset() + if self.mark.has_expiry() { 4 } else { 0 })
        } else {
            0
        }
    }

    #[inline]
    pub(crate) fn recency(self) -> Recency {
        self.mark.recency()
    }

    /// Whether a hit that leaves this recency changes nothing.
    #[inline]
    pub(crate) fn is_after_hit(self, recency: Recency) -> bool {
        self.mark.is_after_hit(recency)
    }

    #[inline]
    pub(crate) fn is_fetched(self) -> bool {
        self.mark.is_fetched()
    }

    #[inline]
    pub(crate) fn is_chained(self) -> bool {
        self.mark.is_chained()
    }

    /// Chunks of the item that are of the class of its first one: of a chained item all but the last.
    #[inline]
    pub(crate) fn chunks_at_home(self) -> usize {
        if self.mark.is_chained() {
            1 + (self.value_len() - self.first_part().len()) / (LARGEST_CHUNK - FURTHER_HEADER)
        } else {
            1
        }
    }

    /// Bytes of the item: header, key and value, chunk rounding apart.
    #[inline]
    pub(crate) fn size(self) -> usize {
        self.key_offset() + self.byte(1) as usize + self.value_len() + self.own_cas_len()
    }

    /// The value, or the part of it that lies in the first chunk.
    #[inline]
    pub(crate) fn first_part(self) -> &'a [u8] {
        let offset = self.key_offset() + self.byte(1) as usize;
        let len = self.value_len();
        let len =
            if self.mark.is_chained() { len.min(LARGEST_CHUNK - offset - self.own_cas_len()) } else { len };
        self.bytes(offset, len)
    }

    /// Bytes of the first chunk that the item takes: all of its own, unless it is chained, and then all of the chunk's.
    #[inline]
    pub(crate) fn first_chunk(self) -> usize {
        // For who reads the value, too, there is nothing to work out: where it ends.
        self.first_part().as_ptr_range().end.addr() - self.start.addr() + self.own_cas_len()
    }

    /// The parts of the value, in order: one, unless the item is chained.
    pub(crate) fn parts(self) -> impl Iterator<Item = &'a [u8]> {
        std::iter::once(self.first_part()).chain(self.further().map(|further| further.data()))
    }

    /// The further chunks of a chained item, in order.
    pub(crate) fn further(self) -> impl Iterator<Item = Further<'a>> {
        let arena = self.arena;
        let first = if self.mark.is_chained() { self.next_of_first() } else { None };
        // SAFETY: links lead to the further chunks of the same item, for which the maker of `self` vouched too.
        std::iter::successors(first.map(|at| unsafe { Further::at(arena, at) }), move |further| {
            // SAFETY: as above.
            further.next().map(|at| unsafe { Further::at(arena, at) })
        })
    }

    fn next_of_first(self) -> Option<Location> {
        // SAFETY: the field exists in a chained item and is aligned to eight bytes.
        let link = unsafe { self.start.add(16).cast::<u64>().read() };
        link.checked_sub(1).and_then(Location::new)
    }

    fn references(self) -> &'a AtomicU32 {
        debug_assert!(self.mark.is_chained());
        // SAFETY: the field exists in a chained item, is aligned to four bytes, and is only accessed as an atomic.
        unsafe { &*self.start.add(12).cast::<AtomicU32>() }
    }

    /// Keeps a chained item from being reused after the caller's pin has moved on, until [`Item::give_up`].
    pub(crate) fn keep(self) {
        // Relaxed: whoever wants to reuse it synchronises with the caller's pin first, and so sees the count.
        self.references().fetch_add(1, Ordering::Relaxed);
    }

    /// Undoes one [`Item::keep`].
    pub(crate) fn give_up(self) {
        // release pairs with the acquire in `is_kept`: the last read of the value comes before its reuse.
        self.references().fetch_sub(1, Ordering::Release);
    }

    /// Whether somebody keeps a chained item that no pin protects any more.
    pub(crate) fn is_kept(self) -> bool {
        // pairs with the release in `give_up`.
        self.references().load(Ordering::Acquire) != 0
    }
}

/// A further chunk of a chained item.
#[derive(Clone, Copy)]
pub(crate) struct Further<'a> {
    at: Location,
    start: *const u8,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Further<'a> {
    /// The further chunk at `at`.
    ///
    /// # Safety
    /// As [`Item::at`], of the item that the chunk belongs to.
    unsafe fn at(arena: &'a Arena, at: Location) -> Further<'a> {
        Further { at, start: arena.start(at), lifetime: PhantomData }
    }

    pub(crate) fn location(self) -> Location {
        self.at
    }

    fn data(self) -> &'a [u8] {
        // SAFETY: the header was written with the data it describes, within the chunk.
        unsafe {
            let len = self.start.add(2).cast::<u16>().read() as usize;
            std::slice::from_raw_parts(self.start.add(FURTHER_HEADER), len)
        }
    }

    fn next(self) -> Option<Location> {
        // SAFETY: the field is aligned to eight bytes, and written before the item was published.
        let link = unsafe { self.start.add(8).cast::<u64>().read() };
        link.checked_sub(1).and_then(Location::new)
    }
}

/// The first chunk of the item that a live chunk belongs to: itself, unless it is a further one.
///
/// # Safety
/// The caller holds the lock of the chunk's class and has seen it live under that lock.
pub(crate) unsafe fn owner(arena: &Arena, at: Location) -> Location {
    let start = arena.start(at);
    // SAFETY: a live chunk's header is written, and it is not reused while the lock is held.
    unsafe {
        if start.add(1).read() != 0 {
            return at;
        }
        Location::new(start.add(16).cast::<u64>().read()).expect("written from a location")
    }
}

/// When a further chunk was written, by the pool's clock.
///
/// # Safety
/// The caller holds the lock of the chunk's class, has seen it live under that lock, and knows that it is a further
/// one.
pub(crate) unsafe fn born(arena: &Arena, at: Location) -> u32 {
    // SAFETY: as the caller says.
    unsafe { birth(arena, at) }.load(Ordering::Relaxed)
}

/// Where a further chunk says when it was written. Several classes may look at it at once, each under its own lock.
///
/// # Safety
/// As [`born`].
unsafe fn birth(arena: &Arena, at: Location) -> &AtomicU32 {
    // SAFETY: a live chunk's header is written, and it is not reused while the lock is held; the field is aligned, and
    // only accessed as an atomic once the item is live.
    unsafe { AtomicU32::from_ptr(arena.start(at).add(4).cast::<u32>()) }
}

/// Lets a large item count as written now: it has been used, and is spared.
///
/// # Safety
/// The caller holds the lock of a class that a chunk of the item is of, and has seen the item live under that lock.
pub(crate) unsafe fn renew(arena: &Arena, item: Item<'_>, now: u32) {
    for chunk in item.further() {
        // SAFETY: a further chunk of an item that stays live as long as the lock is held.
        unsafe { birth(arena, chunk.location()) }.store(now, Ordering::Relaxed);
    }
}
