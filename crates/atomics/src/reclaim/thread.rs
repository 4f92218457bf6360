//! Numbers of threads: the smallest that no other living thread has.

use std::cell::Cell;
use std::collections::BTreeSet;

use parking_lot::Mutex;

/// The calling thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Thread {
    /// Greater than all, if it has none.
    pub(crate) number: usize,
    /// Of no other living thread.
    pub(crate) identity: usize,
}

const NONE: usize = usize::MAX;

thread_local! {
    /// Has no destructor, and so can be had until the thread is gone.
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    static END: End = const { End };
}

static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { next: 0, free: BTreeSet::new() });

struct Numbers {
    next: usize,
    /// Less than `next`.
    free: BTreeSet<usize>,
}

/// Gives the number back.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let number = NUMBER.replace(NONE);
        if number != NONE {
            NUMBERS.lock().free.insert(number);
        }
    }
}

/// The calling thread, as far as it is known.
#[inline(always)]
pub(crate) fn current() -> Thread {
    NUMBER.with(|number| Thread { number: number.get(), identity: std::ptr::from_ref(number).addr() })
}

/// The calling thread with a number; none if its thread-locals are being destroyed, and the number has gone.
pub(crate) fn numbered() -> Option<Thread> {
    let thread = current();
    if thread.number != NONE {
        return Some(thread);
    }
    // Before it gets a number: it is given back for certain.
    END.try_with(|_| {}).ok()?;
    let number = {
        let mut numbers = NUMBERS.lock();
        numbers.free.pop_first().unwrap_or_else(|| {
            numbers.next += 1;
            numbers.next - 1
        })
    };
    NUMBER.set(number);
    Some(current())
}
