//! One call that frees at a time, of each thread at each collector: what comes up meanwhile, further down its stack, is
//! left to it.
//!
//! Known by the thread and not by its record: a thread that is ending has a record for each guard.
//!
//! What needs to wait for nobody is freed in the same way ([`free_in_turn`]).

use std::cell::Cell;
use std::mem::ManuallyDrop;

use super::bag::Retired;

/// The right to free. Dropped when that is done.
#[derive(Debug)]
pub(super) struct Turn {
    #[cfg_attr(loom, expect(dead_code))]
    collector: usize,
}

/// Addresses of collectors, and whether somebody asked for another round.
#[cfg(not(loom))]
type Turns = Vec<(usize, bool)>;

#[cfg(not(loom))]
thread_local! {
    /// Without a destructor, and so there when the thread ends; empty, and without memory, when nobody frees.
    static TURNS: Cell<ManuallyDrop<Turns>> = const { Cell::new(ManuallyDrop::new(Vec::new())) };
}

#[cfg(not(loom))]
fn with_turns<R>(change: impl FnOnce(&mut Turns) -> R) -> R {
    let mut turns = TURNS.take();
    let result = change(&mut turns);
    if turns.is_empty() {
        drop(ManuallyDrop::into_inner(turns));
    } else {
        TURNS.set(turns);
    }
    result
}

#[cfg(not(loom))]
impl Turn {
    /// Begins, unless this thread has: then that goes round once more.
    pub(super) fn begin(collector: usize) -> Option<Turn> {
        if Turn::ask_again(collector) {
            return None;
        }
        with_turns(|turns| turns.push((collector, false)));
        Some(Turn { collector })
    }

    /// Asks for another round, if there is one of this thread.
    pub(super) fn ask_again(collector: usize) -> bool {
        with_turns(|turns| match turns.iter_mut().find(|(other, _)| *other == collector) {
            Some((_, again)) => {
                *again = true;
                true
            }
            None => false,
        })
    }

    /// Whether somebody asked since this was last called.
    pub(super) fn is_asked_again(&self) -> bool {
        with_turns(|turns| {
            let own = turns.iter_mut().find(|(other, _)| *other == self.collector);
            own.is_some_and(|(_, again)| std::mem::take(again))
        })
    }
}

#[cfg(not(loom))]
impl Drop for Turn {
    fn drop(&mut self) {
        with_turns(|turns| turns.retain(|(other, _)| *other != self.collector));
    }
}

/// In the models what is freed retires nothing.
#[cfg(loom)]
impl Turn {
    pub(super) fn begin(collector: usize) -> Option<Turn> {
        Some(Turn { collector })
    }

    pub(super) fn ask_again(_: usize) -> bool {
        false
    }

    pub(super) fn is_asked_again(&self) -> bool {
        false
    }
}

thread_local! {
    /// What is left to be freed by the outermost, if there is one. Without a destructor.
    static LEFT: Cell<Option<ManuallyDrop<Vec<Retired>>>> = const { Cell::new(None) };
}

/// Calls `free(object, context)`, now or, where this thread is in the middle of such a call, behind that: a chain of
/// objects each of which drops the next needs no more stack than one. Panics end here.
///
/// # Safety
/// It may be called, by this thread, until the outermost such call ends.
pub unsafe fn free_in_turn(object: *mut (), context: *const (), free: unsafe fn(*mut (), *const ())) {
    let retired = Retired { object, context, free };
    if let Some(mut left) = LEFT.take() {
        left.push(retired);
        LEFT.set(Some(left));
        return;
    }
    LEFT.set(Some(ManuallyDrop::new(Vec::new())));
    let mut next = Some(retired);
    while let Some(retired) = next {
        // SAFETY: the caller's promise, or that of who left it.
        unsafe { retired.free() };
        let mut left = LEFT.take().unwrap_or_default();
        next = left.pop();
        match next {
            Some(_) => LEFT.set(Some(left)),
            None => drop(ManuallyDrop::into_inner(left)),
        }
    }
}
