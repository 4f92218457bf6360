//! What the paper's interface lacks: lookups that take no lock, and what they need (tickets, writes, pins, retirement);
//! batches; and the door for `lookaside_inline.h`.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::handle::{Handle, SLB, VOID_TICKET, lookaside_ticket};
use crate::layout::{check_layout, lookaside_session};
use crate::session::Session;

/// Frees an entry; `context` is what lookaside_retire() was given. It may be called by any thread that uses the buffer,
/// in lookaside_pin(), lookaside_unpin(), lookaside_refresh(), lookaside_retire(), lookaside_reclaim(),
/// lookaside_resize(), SLB_destroy(), or as a thread ends. It must not call functions of the same buffer, nor wait for
/// a lock that somebody has who calls one.
pub type lookaside_freefunc = Option<unsafe extern "C-unwind" fn(entry: *mut c_void, context: *mut c_void)>;

/// As SLB_get(); on a miss, `*ticket` is what to emit with, if the index is searched after this: see
/// lookaside_ticket_take(). On a hit `*ticket` is good for nothing. NULL `b` or `key`: NULL, and a ticket that is good
/// for nothing. `ticket` may be NULL.
///
/// # Safety
/// As SLB_get(). `ticket` is NULL or points to a ticket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_get(
    b: *mut SLB,
    key: *const c_void,
    ticket: *mut lookaside_ticket,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let (found, number) = match unsafe { Handle::of(b) } {
        Some(handle) if !key.is_null() => match handle.get_or_ticket(handle.session(), key) {
            Ok(found) => (found, VOID_TICKET),
            Err(number) => (null_mut(), number),
        },
        _ => (null_mut(), VOID_TICKET),
    };
    if !ticket.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *ticket = number };
    }
    found
}

/// A ticket for a key: to be taken before the index is searched for it. It is void if a write of the key's stripe is
/// going on. NULL `b` or `key`: a void one.
///
/// # Safety
/// `key` is a key for the callbacks of `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_ticket_take(b: *mut SLB, key: *const c_void) -> lookaside_ticket {
    // SAFETY: the caller's promise.
    match unsafe { Handle::of(b) } {
        Some(handle) if !key.is_null() => handle.shared.buffer.ticket(handle.hash_of_key(key)).number(),
        _ => VOID_TICKET,
    }
}

/// Offers an entry that was found in the index after `ticket` was taken for its key. Dropped if a write of the key's
/// stripe has begun since; so the buffer cannot be given what the index no longer has. Otherwise as SLB_emit().
///
/// # Safety
/// `entry` is an entry for the callbacks of `b`, alive; this thread has pinned since before the search, or is alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_emit_ticket(b: *mut SLB, entry: *mut c_void, ticket: lookaside_ticket) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !entry.is_null()
    {
        handle.emit(handle.session(), entry, Some(ticket));
    }
}

/// As lookaside_emit_ticket(), or as SLB_emit() if `ticket` is NULL; but the hash is that of `key`, so that `entryhash`
/// is not called. NULL `key`: nothing.
///
/// # Safety
/// As those. `key` is the key of `entry`; `ticket` is NULL or points to a ticket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_emit_key(
    b: *mut SLB,
    key: *const c_void,
    entry: *mut c_void,
    ticket: *const lookaside_ticket,
) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        // SAFETY: the caller's promise.
        let ticket = unsafe { ticket.as_ref() }.copied();
        handle.emit_hashed(handle.session(), || Some(handle.hash_of_key(key)), entry, ticket);
    }
}

/// Begins a write of a key: takes its lock, as SLB_lock(), and forgets its entry. To be called before the index is
/// changed. NULL `b` or `key`: nothing.
///
/// From here to lookaside_write_end() no thread is given the key's entry, and no ticket is good; whoever was given it
/// before may still use it while it is pinned.
///
/// # Safety
/// `key` is a key for the callbacks of `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_write_begin(b: *mut SLB, key: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        let (session, hash) = (handle.session(), handle.hash_of_key(key));
        handle.lock(session, hash);
        handle.clear(session, hash);
    }
}

/// Ends a write, after the index has changed. `entry` is what the index now has for the key: it enters if the old one
/// was there, as with SLB_update(); NULL if there is none, or if it shall not enter. Only after this retire the old
/// entry. NULL `b` or `key`, or no lock of this thread on the key: nothing.
///
/// # Safety
/// As SLB_update().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_write_end(b: *mut SLB, key: *const c_void, entry: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) }
        && !key.is_null()
    {
        let (session, hash) = (handle.session(), handle.hash_of_key(key));
        if !entry.is_null() && handle.holds(session, hash) {
            handle.update(session, hash, entry);
        }
        handle.unlock(session, hash);
    }
}

/// Pins: entries that this thread is given, by the buffer or the index, are not freed by lookaside_retire() before it
/// unpins. Pins nest. Hold a pin for as many lookups as you like, but not for ever: what others retire meanwhile waits.
/// NULL: nothing.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_pin(b: *mut SLB) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        handle.session().pin();
    }
}

/// Unpins. Nothing if this thread has not pinned, or if `b` is NULL.
///
/// # Safety
/// `b` is NULL, or a buffer; this thread no longer uses what it was given since it pinned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_unpin(b: *mut SLB) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        handle.session().unpin();
    }
}

/// Unpins and pins again, so that what was retired can be freed: for threads that stay pinned. Nothing if this thread
/// has not pinned, or has pinned more than once; or if `b` is NULL.
///
/// # Safety
/// As lookaside_unpin().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_refresh(b: *mut SLB) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        handle.session().repin();
    }
}

/// Frees an entry, by `free(entry, context)`, when every thread that is pinned now has unpinned: at the latest in
/// SLB_destroy(). The entry is in the index no more, and the buffer was told: after SLB_invalidate(), SLB_update(),
/// lookaside_write_end() or SLB_unlock(). Nothing if `b`, `entry` or `free` is NULL.
///
/// # Safety
/// Nobody can find the entry any more, and nobody else frees it. `free` may be called in any thread that uses the
/// buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_retire(
    b: *mut SLB,
    entry: *mut c_void,
    free: lookaside_freefunc,
    context: *mut c_void,
) {
    // SAFETY: the caller's promise.
    if let (Some(handle), Some(free)) = (unsafe { Handle::of(b) }, free)
        && !entry.is_null()
    {
        let retired = Box::into_raw(Box::new(Retired { free, entry, context }));
        handle.session().pinned(|guard| {
            // SAFETY: the caller's promise: whoever still uses it is pinned, it is freed by this only, and by any
            // thread.
            unsafe { guard.retire(retired.cast(), std::ptr::null(), Retired::free) };
        });
    }
}

/// An entry that its user frees.
struct Retired {
    free: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void),
    entry: *mut c_void,
    context: *mut c_void,
}

impl Retired {
    /// # Safety
    /// Made by `lookaside_retire`, and freed once.
    unsafe fn free(retired: *mut (), _: *const ()) {
        // SAFETY: the caller's promise.
        let Retired { free, entry, context } = *unsafe { Box::from_raw(retired.cast::<Retired>()) };
        // The callback cannot unwind out of what calls it: see the head of the crate.
        call_free(free, entry, context);
    }
}

/// A frame that nothing unwinds through.
extern "C" fn call_free(
    free: unsafe extern "C-unwind" fn(*mut c_void, *mut c_void),
    entry: *mut c_void,
    context: *mut c_void,
) {
    // SAFETY: promised to `lookaside_retire`.
    unsafe { free(entry, context) };
}

/// Frees now what was retired, by whichever thread, and that nobody holds back by a pin. Without this a thread does it
/// by and by, when it unpins or refreshes: then at most 64 entries that it has retired wait, and none longer than two
/// refreshes, unless another thread is pinned for so long. NULL: nothing.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_reclaim(b: *mut SLB) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        handle.shared.buffer.collect();
    }
}

/// The entries of `count` keys: `entries[i]` becomes that of `keys[i]`, or NULL. How many were found. Lines are asked
/// for ahead, those of the table for sixteen keys, then those of their entries: the largest gain that there is. Needs a
/// pin, or to be alone.
///
/// If `tickets` is not NULL, `tickets[i]` becomes what to emit with where `entries[i]` is NULL. A NULL key has no
/// entry. If `b`, `keys` or `entries` is NULL: 0, and nothing is written.
///
/// # Safety
/// As SLB_get(). The arrays have `count` elements each, and do not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_get_many(
    b: *mut SLB,
    keys: *const *mut c_void,
    count: usize,
    entries: *mut *mut c_void,
    tickets: *mut lookaside_ticket,
) -> usize {
    // SAFETY: the caller's promise.
    match unsafe { Handle::of(b) } {
        Some(handle) if !keys.is_null() && !entries.is_null() => {
            // SAFETY: the caller's promise.
            unsafe { handle.get_many(handle.session(), keys, count, entries, tickets) }
        }
        _ => 0,
    }
}

/// This thread's session for lookups by `lookaside_inline.h`, which passes the version of the layout that it knows.
/// Good until the thread ends or the buffer does, for this thread only. NULL if `b` is NULL, or if the library's layout
/// is another: lookaside_last_error() says so.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_attach(b: *mut SLB, layout: u32) -> *mut lookaside_session {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { Handle::of(b) }) else { return null_mut() };
    if !check_layout(layout) {
        return null_mut();
    }
    std::ptr::from_ref(handle.session()).cast::<lookaside_session>().cast_mut()
}

/// For `lookaside_inline.h`: tells what a session counted, and asks the monitor, before a call of so many lookups.
/// Nothing if either is NULL.
///
/// # Safety
/// `session` is this thread's for `b`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_turn(b: *const SLB, session: *mut lookaside_session, lookups: u32) {
    // SAFETY: the caller's promise. A session begins with what C sees of it.
    if let (Some(handle), Some(session)) = unsafe { (Handle::of(b), session.cast::<Session>().as_ref()) } {
        handle.turn(session, lookups);
    }
}
