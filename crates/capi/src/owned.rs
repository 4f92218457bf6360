//! The form for one owner: for an index that one thread has for itself, as where data is partitioned.
//!
//! No locks, no pins, no tickets, no thread-local variable: a hit's loads and stores are those of a plain table. It may
//! go from one thread to another, but two must not use it at once.

use std::ffi::c_void;
use std::ptr::null_mut;

use lookaside::Pointer;

use crate::handle::Handle;
use crate::layout::{check_layout, lookaside_session};
use crate::options::lookaside_options;
use crate::refusal::{fail, made};
use crate::session::Session;
use crate::stats::{lookaside_counts, lookaside_verdict, write_counts, write_hottest, write_verdict};

/// A buffer that one thread has for itself. For `lookaside_inline.h` it is an SLB.
#[derive(Debug)]
pub struct lookaside_owned {
    _opaque: (),
}

/// What is behind it.
#[repr(C)]
struct Owner {
    handle: Handle,
    session: Session,
}

/// # Safety
/// Null, or made by [`lookaside_owned_create`] and not yet destroyed; and nobody else uses it meanwhile.
#[inline(always)]
unsafe fn owner<'o>(owned: *const lookaside_owned) -> Option<&'o Owner> {
    // SAFETY: the caller's promise.
    unsafe { owned.cast::<Owner>().as_ref() }
}

/// Makes one. NULL as lookaside_create(). lookaside_options.indexes must be 1.
///
/// # Safety
/// As lookaside_create().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_create(options: *const lookaside_options) -> *mut lookaside_owned {
    // SAFETY: the caller's promise.
    let Some(options) = (unsafe { lookaside_options::read(options) }) else { return null_mut() };
    if options.indexes != 1 {
        fail(format_args!("indexes is {}: an owner's buffer is for 1", options.indexes));
        return null_mut();
    }
    let make = || {
        let handle = options.handle()?;
        let session = handle.shared.owner_session();
        Ok(Box::into_raw(Box::new(Owner { handle, session })))
    };
    made(make).map_or(null_mut(), |owner| owner.cast())
}

/// Ends it. NULL: nothing.
///
/// # Safety
/// `o` is not used after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_destroy(o: *mut lookaside_owned) {
    if !o.is_null() {
        // SAFETY: made by `lookaside_owned_create`, and the caller ends with it.
        drop(unsafe { Box::from_raw(o.cast::<Owner>()) });
    }
}

/// The entry emitted for a key, or NULL. NULL `o` or `key`: NULL.
///
/// # Safety
/// `key` is a key for the callbacks of `o`, which no other thread uses meanwhile; so for all that follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_get(o: *mut lookaside_owned, key: *const c_void) -> *mut c_void {
    // SAFETY: the caller's promise.
    match unsafe { owner(o) } {
        Some(owner) if !key.is_null() => owner.handle.get(&owner.session, key),
        _ => null_mut(),
    }
}

/// As lookaside_get_many(), without tickets.
///
/// # Safety
/// As lookaside_get_many().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_get_many(
    o: *mut lookaside_owned,
    keys: *const *mut c_void,
    count: usize,
    entries: *mut *mut c_void,
) -> usize {
    // SAFETY: the caller's promise.
    match unsafe { owner(o) } {
        Some(Owner { handle, session }) if !keys.is_null() && !entries.is_null() => {
            // SAFETY: the caller's promise.
            unsafe { handle.get_many(session, keys, count, entries, null_mut()) }
        }
        _ => 0,
    }
}

/// Offers an entry that was found in the index. Nothing if `o` or `entry` is NULL, or if its address needs more than 48
/// bits.
///
/// # Safety
/// As SLB_emit().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_emit(o: *mut lookaside_owned, entry: *mut c_void) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) }
        && !entry.is_null()
    {
        emit(handle, session, entry, || handle.hash_of_entry(entry));
    }
}

/// As lookaside_owned_emit(), but the hash is that of `key`. NULL `key`: nothing.
///
/// # Safety
/// As lookaside_emit_key().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_emit_key(
    o: *mut lookaside_owned,
    key: *const c_void,
    entry: *mut c_void,
) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) }
        && !key.is_null()
    {
        emit(handle, session, entry, || Some(handle.hash_of_key(key)));
    }
}

fn emit(handle: &Handle, session: &Session, entry: *mut c_void, hash: impl FnOnce() -> Option<u64>) {
    if let Some(pointer) = Pointer::new(entry.expose_provenance() as u64)
        && session.face.uses_table.get() != 0
        && let Some(hash) = hash()
    {
        session.state.admit_alone(handle.table(), hash, pointer);
    }
}

/// Forgets the entry of a key. To be called before the entry is freed. NULL `o` or `key`: nothing.
///
/// # Safety
/// As SLB_invalidate().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_invalidate(o: *mut lookaside_owned, key: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) }
        && !key.is_null()
    {
        handle.clear_held(session, handle.hash_of_key(key));
    }
}

/// Tells that the entry of a key is now another, as SLB_update(). NULL `o` or `key`: nothing.
///
/// # Safety
/// As SLB_update().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_update(
    o: *mut lookaside_owned,
    key: *const c_void,
    entry: *mut c_void,
) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) }
        && !key.is_null()
    {
        let hash = handle.hash_of_key(key);
        let cleared = handle.clear_held(session, hash);
        if cleared > 0
            && let Some(pointer) = Pointer::new(entry.expose_provenance() as u64)
        {
            session.state.put_held(handle.table(), hash, pointer);
        }
    }
}

/// Replaces the table by an empty one of `size` bytes. False as lookaside_resize().
///
/// # Safety
/// `o` is NULL, or one of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_resize(o: *mut lookaside_owned, size: usize) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { owner(o) } {
        Some(owner) => resize(owner, size),
        None => {
            fail(format_args!("no buffer to resize was given"));
            false
        }
    }
}

fn resize(Owner { handle, session }: &Owner, size: usize) -> bool {
    // There is nobody else: what is replaced goes at once.
    let resized = made(|| handle.shared.resize(size).map_err(|error| error.to_string())).is_some();
    session.see(handle.shared.lines());
    resized
}

/// Forgets all entries: as lookaside_clear().
///
/// # Safety
/// `o` is NULL, or one of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_clear(o: *mut lookaside_owned) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { owner(o) } {
        Some(owner) => resize(owner, owner.handle.table().config().size),
        None => {
            fail(format_args!("no buffer to clear was given"));
            false
        }
    }
}

/// The session for lookups by `lookaside_inline.h`: as lookaside_attach(), but good until `o` is destroyed.
///
/// # Safety
/// `o` is NULL, or one of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_attach(
    o: *mut lookaside_owned,
    layout: u32,
) -> *mut lookaside_session {
    // SAFETY: the caller's promise.
    match unsafe { owner(o) } {
        Some(owner) if check_layout(layout) => std::ptr::from_ref(&owner.session).cast_mut().cast(),
        _ => null_mut(),
    }
}

/// What has happened so far: as lookaside_get_counts().
///
/// # Safety
/// As lookaside_get_counts().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_get_counts(
    o: *mut lookaside_owned,
    counts: *mut lookaside_counts,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) } {
        // SAFETY: the caller's promise.
        unsafe { write_counts(handle, session, counts, bytes) };
    }
}

/// Entries that the table holds; counted by walking over it. NULL: 0.
///
/// # Safety
/// `o` is NULL, or one of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_occupancy(o: *mut lookaside_owned) -> usize {
    // SAFETY: the caller's promise.
    unsafe { owner(o) }.map_or(0, |owner| owner.handle.table().occupancy())
}

/// The warmest entries: as lookaside_hottest(). NULL: 0.
///
/// # Safety
/// As lookaside_hottest().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_hottest(
    o: *mut lookaside_owned,
    entries: *mut *mut c_void,
    temperatures: *mut u8,
    most: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { owner(o).map_or(0, |owner| write_hottest(&owner.handle, entries, temperatures, most)) }
}

/// What the monitor has found: as lookaside_get_verdict().
///
/// # Safety
/// As lookaside_get_verdict().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_get_verdict(
    o: *mut lookaside_owned,
    verdict: *mut lookaside_verdict,
    bytes: usize,
) {
    // SAFETY: the caller's promise.
    if let Some(owner) = unsafe { owner(o) } {
        // SAFETY: the caller's promise.
        unsafe { write_verdict(&owner.handle, verdict, bytes) };
    }
}

/// Lets the monitor watch, or not: as lookaside_monitor().
///
/// # Safety
/// `o` is NULL, or one of these.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_owned_monitor(o: *mut lookaside_owned, watching: bool) {
    // SAFETY: the caller's promise.
    if let Some(Owner { handle, session }) = unsafe { owner(o) } {
        handle.shared.buffer.monitor(watching);
        session.end_turn();
    }
}
