//! Destructors that run one after the other, and not each on top of another.
//!
//! crossbeam-epoch runs what was deferred where a thread pins, and where it ends. What runs there pins, too: an entry that has
//! died is to be forgotten by the table, and freed later. While the thread has a handle that it is known by, such a pin is one of
//! several, and nothing comes of it. A thread that is ending has lost its handle; it is given a new one for each pin, which looks for
//! what was deferred when it first pins: it runs the next destructor on top of this one, and so on through all that waits. Some ten
//! thousand entries were more than a thread's stack.
//!
//! So who is to do such a thing does it only if no other is at it further up the stack of his thread; else he leaves it there, and the
//! outermost does it when he has done his own. Later is no harm: what is retired or freed later was reachable by nobody new meanwhile.
//! Nor need he do the work of all threads: pinned, he lets the epoch move on by one at most, and so comes to the end of what could
//! be freed when he began.
//!
//! Rejected: *asking whether the thread is ending*: crossbeam-epoch does not tell, and a mark of our own may go before its handle or
//! after it. *A list that other threads see to*: there may be none.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Work = Box<dyn FnOnce()>;

thread_local! {
    /// What is left to do, while somebody is at it. Without a destructor: so it is there when the thread ends.
    static LEFT: Cell<Option<ManuallyDrop<Vec<Work>>>> = const { Cell::new(None) };
}

/// Does this now, or when this thread has done another such thing that it is in the middle of.
pub(crate) fn in_turn(work: impl FnOnce() + 'static) {
    if let Some(mut left) = LEFT.take() {
        left.push(Box::new(work));
        LEFT.set(Some(left));
        return;
    }
    LEFT.set(Some(ManuallyDrop::new(Vec::new())));
    // Also when it panics.
    let _rest = Rest;
    work();
}

/// Dropped by the outermost.
struct Rest;

impl Rest {
    /// One of those that were left.
    fn next() -> Option<Work> {
        let mut left = LEFT.take()?;
        let next = left.pop();
        match next {
            Some(_) => LEFT.set(Some(left)),
            None => drop(ManuallyDrop::into_inner(left)),
        }
        next
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        let mut pinned = None;
        while let Some(work) = Rest::next() {
            // Pinning may leave more to do, but not that this ends.
            pinned.get_or_insert_with(|| catch_unwind(crossbeam_epoch::pin));
            quietly(work);
        }
    }
}

/// Runs a destructor, and lets nobody hear of its panics.
pub(crate) fn quietly(destructor: impl FnOnce()) {
    // Nobody sees what a panic left half done: it is gone.
    let mut outcome = catch_unwind(AssertUnwindSafe(destructor));
    // What it panicked with has a destructor, which might panic, too; and so on, though not for ever.
    for _ in 0..8 {
        let Err(payload) = outcome else { return };
        outcome = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
    std::mem::forget(outcome);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn what_is_left_by_another_is_done_when_that_has_been_done() {
        let done = Rc::new(RefCell::new(Vec::new()));
        fn deeper(done: &Rc<RefCell<Vec<u32>>>, depth: u32) {
            let told = Rc::clone(done);
            in_turn(move || {
                if depth < 3 {
                    deeper(&told, depth + 1);
                    deeper(&told, depth + 1);
                }
                told.borrow_mut().push(depth);
            });
        }
        deeper(&done, 0);
        // Each before those that it left.
        assert_eq!(done.borrow_mut().split_off(0), [0, 1, 2, 3, 3, 2, 3, 3, 1, 2, 3, 3, 2, 3, 3]);
        deeper(&done, 2);
        assert_eq!(*done.borrow(), [2, 3, 3], "the next begins anew");
    }

    /// Neither one of the outermost nor one of what was left.
    #[test]
    fn a_panic_leaves_nothing_undone() {
        let panic = || std::panic::resume_unwind(Box::new("on purpose"));
        let done = Rc::new(Cell::new(0));
        for outermost_panics in [false, true] {
            done.set(0);
            let told = Rc::clone(&done);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                in_turn(move || {
                    for left in 0..6 {
                        let count = Rc::clone(&told);
                        in_turn(move || {
                            count.set(count.get() + 1);
                            if left % 2 == 0 {
                                panic();
                            }
                        });
                    }
                    if outermost_panics {
                        panic();
                    }
                });
            }));
            assert_eq!((outcome.is_err(), done.get()), (outermost_panics, 6));
            let told = Rc::clone(&done);
            in_turn(move || told.set(told.get() + 1));
            assert_eq!(done.get(), 7, "at once, and not left to anyone");
        }
    }
}
