//! An owner whose property outlives what is still to be done with it.
//!
//! What has left a tree is freed later, by any thread, into the tree's spaces: which must still be there, even if the tree
//! itself has gone meanwhile. So every such errand has a [`Ticket`], and the property is dropped when the owner has gone and
//! the last ticket has been given back.
//!
//! An `Arc` does that with one count, which every writer would change twice for each node that it replaces; two writers
//! would wait for its line most of the time. Here the count is spread: each thread adds what it takes to a line of its own,
//! and takes what it gives back from its own line, too, whoever took it. A line may so become negative; the sum of all is
//! what is out.
//!
//! ```text
//! take:         own line += 1
//! give back:    own line -= 1;  if the line is closed: rest -= 1, and if that makes zero, drop
//! owner goes:   each line += CLOSED, summing up what the lines held;
//!               rest += sum - MANY (it began as MANY), and if that makes zero, drop
//! ```
//!
//! **Claim.** The property is dropped once, after the owner has gone and all tickets are back. Nothing is taken any more when
//! the owner goes. A ticket that is given back to a line before it is closed is in the sum; one that is given back after
//! is taken from the rest. So the rest ends as MANY + (sum - MANY) - (those given back after) = 0, when the last has been
//! given back and the owner's step is done. Before that step it is about MANY, and after it what is still out: it becomes
//! zero once, and whoever makes it zero drops. All steps release and acquire, so who drops has seen all that was done.
//!
//! Rejected: *an `Arc`*, see above; *letting the tree's end wait in the epochs' queue*: errands of threads that have long
//! been idle stay behind it.

#![allow(unsafe_code)]
// The models only look at the count.
#![cfg_attr(loom, allow(dead_code))]

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

use atomics::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// Lines that the count is spread over.
const LINES: usize = if cfg!(loom) { 2 } else { 16 };
/// Added to a line when it is closed: more than a line can ever be away from zero. A ticket is given back on the line of
/// whoever happens to collect, so that one line may rise, and another fall, for as long as the owner lives: only their sum is
/// what is out.
const CLOSED: u64 = 1 << 62;
/// What the rest begins with: more than can ever be given back.
const MANY: u64 = 1 << 50;

/// How many tickets are out.
#[derive(Debug)]
pub(crate) struct Count {
    lines: [CachePadded<AtomicU64>; LINES],
    rest: CachePadded<AtomicU64>,
}

impl Count {
    pub(crate) fn new() -> Count {
        Count { lines: Default::default(), rest: CachePadded::new(AtomicU64::new(MANY)) }
    }

    pub(crate) fn take(&self, line: usize) {
        // Relaxed: who takes a ticket has the owner, whose end is behind everything that it did.
        self.lines[line].fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it was the last, and the owner has gone. Whoever is not the last must not look at the count again: so it is
    /// given by its address, not by a reference, which would have to hold to the end of the call.
    ///
    /// # Safety
    /// A ticket is out, which is given back by this.
    pub(crate) unsafe fn give_back(count: *const Count, line: usize) -> bool {
        // SAFETY: the count is there as long as a ticket is out: up to the first step, and, if the line was closed before
        // that, up to the second.
        unsafe {
            // release pairs with the acquire in `close`.
            let before = (*count).lines[line].fetch_sub(1, Ordering::Release);
            // Below zero is above all of these.
            let is_closed = (CLOSED / 2..CLOSED * 2).contains(&before);
            // release pairs with the acquire of whoever comes after, up to the last.
            is_closed && (*count).rest.fetch_sub(1, Ordering::AcqRel) == 1
        }
    }

    /// The owner goes; whether everything is back already. If not, whoever brings the last may free the count at once, before
    /// this has returned: given by its address, as in [`give_back`](Count::give_back).
    ///
    /// # Safety
    /// The count is there, and this is called once.
    pub(crate) unsafe fn close(count: *const Count) -> bool {
        // SAFETY: nobody frees the count before the last step, which says who does.
        unsafe {
            // acquire pairs with the release in `give_back`.
            let close = |sum: u64, line: usize| {
                sum.wrapping_add((*count).lines[line].fetch_add(CLOSED, Ordering::AcqRel))
            };
            let change = (0..LINES).fold(0, close).wrapping_sub(MANY);
            (*count).rest.fetch_add(change, Ordering::AcqRel).wrapping_add(change) == 0
        }
    }
}

/// The line of this thread.
fn own_line() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Without a destructor, so that it is there for those of others.
    thread_local! { static LINE: Cell<usize> = const { Cell::new(usize::MAX) } }
    LINE.with(|line| {
        if line.get() == usize::MAX {
            line.set(NEXT.fetch_add(1, Ordering::Relaxed) % LINES);
        }
        line.get()
    })
}

struct Property<T> {
    value: T,
    count: Count,
}

/// The owner: see the module.
pub(crate) struct Owner<T>(NonNull<Property<T>>);

/// What keeps the property when the owner has gone.
pub(crate) struct Ticket<T>(NonNull<Property<T>>);

impl<T> Owner<T> {
    pub(crate) fn new(value: T) -> Owner<T> {
        let property = Box::new(Property { value, count: Count::new() });
        Owner(NonNull::from(Box::leak(property)))
    }

    /// A ticket, which may be given back anywhere.
    ///
    /// # Safety
    /// If it comes to another thread than the owner is on, `T` is `Send` and `Sync`.
    pub(crate) unsafe fn ticket(&self) -> Ticket<T> {
        // SAFETY: the property is there as long as the owner is.
        unsafe { self.0.as_ref() }.count.take(own_line());
        Ticket(self.0)
    }
}

impl<T> Deref for Owner<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the property is there as long as the owner is.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> Deref for Ticket<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the property is there as long as a ticket is out.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        // SAFETY: the property is there as long as the owner is; whoever is last drops it, once.
        unsafe {
            if Count::close(&raw const (*self.0.as_ptr()).count) {
                drop(Box::from_raw(self.0.as_ptr()));
            }
        }
    }
}

impl<T> Drop for Ticket<T> {
    fn drop(&mut self) {
        // SAFETY: the property is there as long as a ticket is out; whoever is last drops it, once.
        unsafe {
            if Count::give_back(&raw const (*self.0.as_ptr()).count, own_line()) {
                drop(Box::from_raw(self.0.as_ptr()));
            }
        }
    }
}

// SAFETY: it is a box, from which `&T` comes only where it is itself shared, or by tickets, whose contract asks for `Sync`.
unsafe impl<T: Send> Send for Owner<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Owner<T> {}

impl<T: fmt::Debug> fmt::Debug for Owner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
