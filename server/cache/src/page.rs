//! What is known of a page beside what lies on it.
//!
//! The table of pages has room for as many as the cache may ever grow to, and its memory is touched as pages are: so a
//! page of which nothing is known is all zero. The unsafe code here says just that.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, Ordering};

use pages::Zeroed;

use crate::arena::{Arena, PageNumber};
use crate::pool::Pool;
use crate::size_classes::ClassId;

/// No second is recorded.
const NONE: u32 = u32::MAX;

/// The earliest second that was recorded: kept the other way round, so that zero is none.
#[derive(Debug, Default)]
struct Earliest(AtomicU32);

impl Earliest {
    fn get(&self) -> u32 {
        !self.0.load(Ordering::Relaxed)
    }

    /// Of several who record, the earliest stays.
    fn record(&self, second: u32) {
        if second < self.get() {
            // release pairs with the acquire in `forget`.
            self.0.fetch_max(!second, Ordering::Release);
        }
    }

    fn forget(&self) {
        // acquire pairs with the release in `record`.
        self.0.swap(!NONE, Ordering::AcqRel);
    }
}

/// What is known of one page. All but `class`, what is earliest, and `guests` belong to the lock of its class; they are
/// atomics only so that the table of pages is shared without unsafe code, and every access is relaxed.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The number of its class, plus one; zero if it belongs to none.
    class: AtomicU8,
    /// The first of the free chunks that were used before.
    free_head: AtomicU16,
    free: AtomicU16,
    /// Chunks from here on were never used since the page came to its class.
    fresh: AtomicU16,
    /// Whether the class has it on its list of pages with free chunks.
    listed: AtomicBool,
    /// Whether it is being emptied, to be given away.
    draining: AtomicBool,
    /// Whether items have come to it that are counted in a class of smaller chunks.
    guests: AtomicBool,
    /// No item in the page expires before this second.
    earliest_expiry: Earliest,
    /// No item in the page was used last before this second.
    earliest_use: AtomicU32,
    /// When it came to its class, by the pool's clock.
    came: AtomicU32,
    /// When it came to its class, or was last passed by the hand, by the same clock.
    passed: AtomicU32,
}

impl Page {
    /// The page comes to a class, whose lock the caller holds, as one of which nothing is in use: by the pool's clock
    /// and by the cache's.
    pub(crate) fn come(&self, class: ClassId, now: u32, second: u32) {
        self.class.store(class.0 + 1, Ordering::Relaxed);
        self.free.store(0, Ordering::Relaxed);
        self.fresh.store(0, Ordering::Relaxed);
        self.listed.store(true, Ordering::Relaxed);
        self.draining.store(false, Ordering::Relaxed);
        self.guests.store(false, Ordering::Relaxed);
        self.came.store(now, Ordering::Relaxed);
        self.pass(now);
        self.forget_expiries();
        self.not_used_before(second);
    }

    /// The page leaves its class, whose lock the caller holds.
    pub(crate) fn leave(&self) {
        self.class.store(0, Ordering::Relaxed);
    }

    /// The class that a page belongs to of which a chunk is in use: that keeps it there.
    #[inline]
    pub(crate) fn class(&self) -> ClassId {
        ClassId(self.class.load(Ordering::Relaxed).wrapping_sub(1))
    }

    /// The class that the page belongs to at the moment, if to any. It does not leave a class but under that class's
    /// lock, so who holds the lock and sees it there knows that it stays.
    pub(crate) fn owner(&self) -> Option<ClassId> {
        self.class.load(Ordering::Relaxed).checked_sub(1).map(ClassId)
    }

    /// Chunks that have been used since the page came to its class: those that lie before the rest.
    #[inline]
    pub(crate) fn fresh(&self) -> usize {
        self.fresh.load(Ordering::Relaxed) as usize
    }

    /// Chunks of these that are free.
    #[inline]
    pub(crate) fn free(&self) -> usize {
        self.free.load(Ordering::Relaxed) as usize
    }

    /// Whether none of its chunks is in use.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free() == self.fresh()
    }

    /// Chunks that hold an item, are being written, or wait in limbo.
    pub(crate) fn used(&self) -> usize {
        // Beside who changes both, without the lock of its class.
        self.fresh().saturating_sub(self.free())
    }

    /// The first free chunk: of no meaning if there is none.
    #[inline]
    pub(crate) fn first_free(&self) -> u16 {
        self.free_head.load(Ordering::Relaxed)
    }

    /// The first free chunk is taken, and `next` comes to be the first.
    #[inline]
    pub(crate) fn take_free(&self, next: u16) {
        self.free_head.store(next, Ordering::Relaxed);
        bump(&self.free, -1);
    }

    /// A chunk comes back to be the first free one; says how many are free now.
    #[inline]
    pub(crate) fn put_free(&self, chunk: u16) -> usize {
        self.free_head.store(chunk, Ordering::Relaxed);
        bump(&self.free, 1) as usize
    }

    /// The first chunk that was never used is taken.
    #[inline]
    pub(crate) fn take_fresh(&self) {
        bump(&self.fresh, 1);
    }

    /// Puts it on the list of pages with free chunks; false if it is there.
    #[inline]
    pub(crate) fn list(&self) -> bool {
        // Two steps: the caller holds the lock of its class.
        let listed = self.listed.load(Ordering::Relaxed);
        self.listed.store(true, Ordering::Relaxed);
        !listed
    }

    /// Takes it off that list.
    pub(crate) fn unlist(&self) {
        self.listed.store(false, Ordering::Relaxed);
    }

    /// It is being emptied from now on.
    pub(crate) fn drain(&self) {
        self.unlist();
        self.draining.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// An item comes to it that is counted in another class.
    pub(crate) fn takes_guest(&self) {
        self.guests.store(true, Ordering::Relaxed);
    }

    /// Whether some have since it came to its class.
    pub(crate) fn has_guests(&self) -> bool {
        self.guests.load(Ordering::Relaxed)
    }

    /// Whether it has come to its class after that time.
    pub(crate) fn came_after(&self, time: u32) -> bool {
        self.came.load(Ordering::Relaxed).wrapping_sub(time).cast_signed() > 0
    }

    /// The hand has passed it, or it was spared.
    pub(crate) fn pass(&self, now: u32) {
        self.passed.store(now, Ordering::Relaxed);
    }

    /// How long ago that was.
    pub(crate) fn since_passed(&self, now: u32) -> u32 {
        now.wrapping_sub(self.passed.load(Ordering::Relaxed))
    }

    /// The second before which no item was used last.
    pub(crate) fn earliest_use(&self) -> u32 {
        self.earliest_use.load(Ordering::Relaxed)
    }

    /// Records that no item is there, or comes later, that was used last before that second.
    pub(crate) fn not_used_before(&self, second: u32) {
        self.earliest_use.store(second, Ordering::Relaxed);
    }

    pub(crate) fn earliest_expiry(&self) -> u32 {
        self.earliest_expiry.get()
    }

    /// Records that an item in the page expires at `second`. Called after the item went live or its expiry was changed.
    pub(crate) fn expires_at(&self, second: u32) {
        self.earliest_expiry.record(second);
    }

    /// Forgets what was recorded; whoever looks at the items afterwards sees those whose record this has wiped out. (An
    /// item that was only about to be recorded records itself.) Should one slip through on a machine that delays a load
    /// so long, it dies when it is looked up or when the hand comes by.
    pub(crate) fn forget_expiries(&self) {
        self.earliest_expiry.forget();
    }
}

// SAFETY: integers and booleans in atomics: zero is a value of each, nothing is to be dropped, and no alignment is
// above four.
unsafe impl Zeroed for Page {}

#[inline]
fn bump(counter: &AtomicU16, by: i16) -> u16 {
    let value = counter.load(Ordering::Relaxed).wrapping_add_signed(by);
    counter.store(value, Ordering::Relaxed);
    value
}

/// What the parts of a slab class are looked up in.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) pages: &'a [Page],
    pub(crate) pool: &'a Pool,
}

impl<'a> Memory<'a> {
    #[inline]
    pub(crate) fn page(self, number: PageNumber) -> &'a Page {
        &self.pages[number as usize]
    }
}
