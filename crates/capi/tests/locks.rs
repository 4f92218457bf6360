//! The paper's protocol (way 2 of the header): whoever holds the lock of a key is given nothing to compare that another
//! thread may free meanwhile. So entries that can meet in a bucket under one tag have one lock.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lookaside_capi::{
    SLB_create, SLB_destroy, SLB_emit, SLB_get, SLB_invalidate, SLB_lock, SLB_unlock, lookaside_monitor,
};

/// The library's mix of a caller's hash, as its layout is documented.
fn mix(hash: u64) -> u64 {
    let factors = [0xd6e8_feb8_6659_fd93u64, 0x243f_6a88_85a3_08d3];
    factors.iter().fold(hash ^ 0x9e37_79b9_7f4a_7c15, |number, &by| {
        let product = u128::from(number) * u128::from(by);
        product as u64 ^ (product >> 64) as u64
    })
}

static COMPARING: AtomicBool = AtomicBool::new(false);
static LOOKED: AtomicBool = AtomicBool::new(false);
static FREED: AtomicBool = AtomicBool::new(false);
static FREED_WHILE_COMPARED: AtomicBool = AtomicBool::new(false);

extern "C-unwind" fn hash(opaque: *mut c_void) -> u64 {
    // SAFETY: keys and entries are numbers here.
    unsafe { *opaque.cast::<u64>() }
}

/// Is asked about an entry of another key, and looks long.
extern "C-unwind" fn matches(entry: *mut c_void, key: *mut c_void) -> bool {
    COMPARING.store(true, Ordering::SeqCst);
    let deadline = Instant::now() + Duration::from_millis(300);
    while Instant::now() < deadline && !FREED.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
    FREED_WHILE_COMPARED.fetch_or(FREED.load(Ordering::SeqCst), Ordering::SeqCst);
    hash(entry) == hash(key)
}

/// A buffer that threads share.
#[derive(Clone, Copy)]
struct Shared(*mut lookaside_capi::SLB);
// SAFETY: its functions may be called by any thread.
unsafe impl Send for Shared {}

impl Shared {
    fn raw(self) -> *mut lookaside_capi::SLB {
        self.0
    }
}

fn pointer(number: &u64) -> *mut c_void {
    std::ptr::from_ref(number).cast_mut().cast()
}

#[test]
fn an_entry_is_not_freed_while_another_keys_lookup_compares_it_under_its_lock() {
    // One bucket for all; two keys of one tag, as unlike as can be otherwise.
    let first = 1u64;
    let differ =
        |other: &u64| mix(*other) >> 48 == mix(first) >> 48 && (mix(*other) ^ mix(first)) >> 32 & 1023 != 0;
    let second = (2..).find(differ).unwrap();
    // SAFETY: callbacks for numbers; calls as the header has it for locks.
    unsafe {
        let b = SLB_create(64, Some(matches), Some(hash), Some(hash));
        assert!(!b.is_null());
        lookaside_monitor(b, false);
        SLB_emit(b, pointer(&second));
        let shared = Shared(b);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let b = shared.raw();
                while !COMPARING.load(Ordering::SeqCst) && !LOOKED.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                SLB_lock(b, pointer(&second));
                SLB_invalidate(b, pointer(&second));
                SLB_unlock(b, pointer(&second));
                // From here on the header lets it be freed.
                FREED.store(true, Ordering::SeqCst);
            });
            SLB_lock(b, pointer(&first));
            assert_eq!(SLB_get(b, pointer(&first)), null_mut());
            SLB_unlock(b, pointer(&first));
            // If nothing was compared, nobody is to wait for it.
            LOOKED.store(true, Ordering::SeqCst);
        });
        SLB_destroy(b);
    }
    assert!(COMPARING.load(Ordering::SeqCst) && FREED.load(Ordering::SeqCst), "the tags did not meet");
    assert!(!FREED_WHILE_COMPARED.load(Ordering::SeqCst), "freed while it was compared");
}
