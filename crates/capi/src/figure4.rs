//! The paper's eight functions (Figure 4), by name and type.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::handle::{Handle, SLB, hashfunc, matchfunc};
use crate::options::{create, lookaside_options};

/// Makes a buffer in front of one index. `size` is the bytes of the Cache Table, at least 64; locks and what else is
/// needed come on top. What admits entries by default has no Log Table; see lookaside_paper_options() for the paper's.
/// The monitor is on: now and then lookups miss on purpose, for a trial; see lookaside_monitor().
///
/// NULL if a callback is NULL, if `size` is less than 64 or absurd, or without memory: lookaside_last_error() says why.
///
/// # Safety
/// `matchfunc` gets what was emitted and what was looked up; `keyhash` and `entryhash` agree on a key and its entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_create(
    size: usize,
    r#match: matchfunc,
    keyhash: hashfunc,
    entryhash: hashfunc,
) -> *mut SLB {
    create(&lookaside_options { size, r#match, keyhash, entryhash, ..lookaside_options::default() })
}

/// Ends a buffer. What was retired to it is freed before this returns, by callbacks in this thread; where indexes share
/// it (lookaside_share()), as the last of them is ended. Other threads must have made their last call; they need not
/// have ended. NULL: nothing.
///
/// # Safety
/// `b` is not used after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_destroy(b: *mut SLB) {
    if !b.is_null() {
        // SAFETY: made by `Handle::into_raw`, and the caller ends with it.
        drop(unsafe { Box::from_raw(b.cast::<Handle>()) });
    }
}

/// The entry emitted for a key, or NULL: then search the index. NULL `b` or `key`: NULL.
///
/// Under SLB_lock() for the key, nothing more is needed, and the entry may be used until SLB_unlock(). Without it,
/// other threads may use the buffer only if this one has called lookaside_pin(): the entry may be used until
/// lookaside_unpin(), and whoever removes an entry frees it through lookaside_retire(). Where only one thread uses the
/// buffer, neither is needed.
///
/// # Safety
/// `key` is a key for the callbacks of `b`, and this thread has the lock, or a pin, or is alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_get(b: *mut SLB, key: *const c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { Handle::of(b) } {
        Some(handle) if !key.is_null() => handle.get(handle.session(), key),
        _ => null_mut(),
    }
}

/// Offers an entry that was found in the index; the buffer decides whether it enters. Does nothing if `b` or `entry` is
/// NULL, or if the address of `entry` needs more than 48 bits: it is refused, never cut.
///
/// Under SLB_lock() for the entry's key, from before the search of the index, this is the paper's protocol. Without the
/// lock it is right only where nobody can change the index between the search and this call: where one thread is alone,
/// or searches under a lock of the index that writers take too. Otherwise use lookaside_emit_ticket().
///
/// # Safety
/// `entry` is an entry for the callbacks of `b`, alive, and what the index has. This thread has the lock, or has called
/// lookaside_pin(), or is alone: others may resize.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_emit(b: *mut SLB, entry: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !entry.is_null()
    {
        handle.emit(handle.session(), entry, None);
    }
}

/// Forgets the entry of a key, which is being removed from the index. NULL `b` or `key`: nothing.
///
/// Under SLB_lock() for the key: call it before SLB_unlock(); before or after the index changes is the same. Without
/// the lock: call it *after* the index has changed; until it returns, other threads may still be given the old entry,
/// and when it has returned none will be, and tickets taken before are void. (Where that interval matters, use
/// lookaside_write_begin().) Only then free the entry: if threads pin, through lookaside_retire().
///
/// # Safety
/// `key` is a key for the callbacks of `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_invalidate(b: *mut SLB, key: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        handle.clear(handle.session(), handle.hash_of_key(key));
    }
}

/// Tells that the entry of a key is now another: changed, or moved. If the buffer has the old one, or had it when this
/// thread began the write (by lookaside_write_begin(), or by SLB_invalidate() under the lock), it now has the new one;
/// otherwise nothing enters. If `entry` is NULL or needs more than 48 bits, the old one is forgotten and that is all.
/// NULL `b` or `key`: nothing.
///
/// With and without SLB_lock(): as SLB_invalidate(). Without, nobody else may write the same key from before the index
/// is changed until this returns, or an entry could come back that has gone already: lookaside_write_begin() sees to
/// that. The old entry, if it is another, is to be freed as said there.
///
/// # Safety
/// `key` is a key, and `entry` an entry, for the callbacks of `b`; `entry` is what the index has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_update(b: *mut SLB, key: *const c_void, entry: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        handle.update(handle.session(), handle.hash_of_key(key), entry);
    }
}

/// Takes the lock of a key's stripe, one of 1024, waiting for whoever has it. NULL `b` or `key`: nothing.
///
/// Take it before any lock of the index, and give it back after those. A thread that has it may take it again, and
/// gives it back as often. Threads that take the locks of several keys at once can deadlock: keys of one stripe look
/// like any others.
///
/// # Safety
/// `key` is a key for the callbacks of `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_lock(b: *mut SLB, key: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        handle.lock(handle.session(), handle.hash_of_key(key));
    }
}

/// Gives back what SLB_lock() took. Nothing if this thread does not have it, or if `b` or `key` is NULL.
///
/// # Safety
/// `key` is a key for the callbacks of `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn SLB_unlock(b: *mut SLB, key: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        handle.unlock(handle.session(), handle.hash_of_key(key));
    }
}
