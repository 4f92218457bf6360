//! What is retired is freed while the buffer is in use, however many entries are retired under one pin.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use lookaside_capi::{
    SLB, SLB_create, SLB_destroy, lookaside_pin, lookaside_refresh, lookaside_retire, lookaside_unpin,
};

extern "C-unwind" fn hash(opaque: *mut c_void) -> u64 {
    opaque.addr() as u64
}

extern "C-unwind" fn matches(entry: *mut c_void, key: *mut c_void) -> bool {
    entry == key
}

unsafe extern "C-unwind" fn count(_: *mut c_void, context: *mut c_void) {
    // SAFETY: each retirement below passes its counter.
    unsafe { &*context.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

/// Under each of many pins a hundred entries are retired; few may wait at any time, and none in the end.
fn retire(between: impl Fn(*mut SLB), held: bool) {
    const ROUNDS: usize = 2000;
    const EACH: usize = 100;
    let freed = AtomicUsize::new(0);
    let context = std::ptr::from_ref(&freed).cast_mut().cast();
    // SAFETY: entries are addresses that nobody follows.
    unsafe {
        let b = SLB_create(4096, Some(matches), Some(hash), Some(hash));
        assert!(!b.is_null());
        if held {
            lookaside_pin(b);
        }
        for round in 0..ROUNDS {
            for number in 1..=EACH {
                lookaside_retire(b, std::ptr::without_provenance_mut(64 * number), Some(count), context);
            }
            between(b);
            let waiting = (round + 1) * EACH - freed.load(Ordering::SeqCst);
            assert!(waiting <= 64, "{waiting} wait after {round} rounds");
        }
        SLB_destroy(b);
    }
    assert_eq!(freed.load(Ordering::SeqCst), ROUNDS * EACH);
}

#[test]
fn with_no_pin_held() {
    retire(|_| {}, false);
}

#[test]
fn with_a_pin_that_is_refreshed() {
    // SAFETY: a buffer.
    retire(|b| unsafe { lookaside_refresh(b) }, true);
}

#[test]
fn with_one_pin_after_the_other() {
    // SAFETY: a buffer.
    retire(|b| unsafe { (lookaside_unpin(b), lookaside_pin(b)).0 }, true);
}
