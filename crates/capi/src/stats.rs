//! What has happened so far, what the monitor makes of it, and what is hot.

use std::ffi::c_void;

use crate::handle::{Handle, SLB, address};
use crate::options::write_known;
use crate::session::Session;

/// What has happened, as far as the threads have told: each tells every 1024 lookups, when it ends, and here.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct lookaside_counts {
    /// Lookups that the table answered.
    pub hits: u64,
    /// Lookups that went on to the index.
    pub misses: u64,
    /// Lookups that did not ask the table, because the monitor had switched it off.
    pub bypassed: u64,
    /// Entries offered.
    pub emissions: u64,
    /// Of these, entries that were put in.
    pub admissions: u64,
    /// Of those, entries that took another's place.
    pub evictions: u64,
    /// Emissions dropped because a write came between, or another thread was faster.
    pub refused_tickets: u64,
    /// Writes that told the table.
    pub invalidations: u64,
    /// Slots that they cleared.
    pub cleared: u64,
    /// Entries that the tables have room for.
    pub capacity: u64,
    /// Bytes of the tables.
    pub bytes: u64,
}

/// What the monitor has found.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct lookaside_verdict {
    /// Cost of a lookup by itself without the table by its cost with it; 0 before there were enough trials.
    pub gain: f64,
    /// Trials made.
    pub trials: u64,
    /// How often it has switched.
    pub switches: u64,
    /// Whether it watches at all.
    pub watching: bool,
    /// Whether lookups one at a time use the table.
    pub on: bool,
    /// Whether lookups in batches use it.
    pub on_in_batches: bool,
    /// Zeroes, for what newer libraries may say.
    pub reserved: [u8; 5],
    /// As `gain`, of lookups in batches.
    pub gain_in_batches: f64,
}

/// Writes what fits.
///
/// # Safety
/// `counts` is null, or points to `bytes` bytes.
pub(crate) unsafe fn write_counts(
    handle: &Handle,
    session: &Session,
    counts: *mut lookaside_counts,
    bytes: usize,
) {
    if counts.is_null() {
        return;
    }
    session.gather();
    session.state.tell(&handle.shared.buffer);
    let (told, table) = (handle.shared.buffer.counts(), handle.table());
    let all = lookaside_counts {
        hits: told.hits,
        misses: told.misses,
        bypassed: told.bypassed,
        emissions: told.offers,
        admissions: told.admissions,
        evictions: told.evictions,
        refused_tickets: told.refused_tickets,
        invalidations: told.invalidations,
        cleared: told.cleared,
        capacity: table.capacity() as u64,
        bytes: table.bytes() as u64,
    };
    // SAFETY: the caller's promise.
    unsafe { write_known(&all, counts, bytes) };
}

/// What has happened so far. `bytes` is sizeof *counts as the caller knows it: newer libraries add fields at the end.
/// Needs a pin where others may resize. Nothing if `b` or `counts` is NULL.
///
/// # Safety
/// `counts` is NULL, or points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_get_counts(b: *mut SLB, counts: *mut lookaside_counts, bytes: usize) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        // SAFETY: the caller's promise.
        unsafe { write_counts(handle, handle.session(), counts, bytes) };
    }
}

/// Entries that the table holds; counted by walking over it. Needs a pin where others may resize. NULL: 0.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_occupancy(b: *mut SLB) -> usize {
    // SAFETY: the caller's promise.
    unsafe { Handle::of(b) }.map_or(0, |handle| handle.table().occupancy())
}

/// The warmest entries of this index, warmest first, and how warm each is (0 to 255): at most `most`; how many. Walks
/// over the table. Needs a pin. `temperatures` may be NULL; if `b` or `entries` is, 0.
///
/// # Safety
/// The arrays have `most` elements each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_hottest(
    b: *mut SLB,
    entries: *mut *mut c_void,
    temperatures: *mut u8,
    most: usize,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { Handle::of(b).map_or(0, |handle| write_hottest(handle, entries, temperatures, most)) }
}

/// # Safety
/// The arrays have `most` elements each.
pub(crate) unsafe fn write_hottest(
    handle: &Handle,
    entries: *mut *mut c_void,
    temperatures: *mut u8,
    most: usize,
) -> usize {
    if entries.is_null() {
        return 0;
    }
    let hottest = handle.table().hottest(most, handle.mark);
    for (i, &(pointer, temperature)) in hottest.iter().enumerate() {
        // SAFETY: the caller's promise; there are at most `most`.
        unsafe {
            *entries.add(i) = address(pointer);
            if !temperatures.is_null() {
                *temperatures.add(i) = temperature;
            }
        }
    }
    hottest.len()
}

/// Lets the monitor watch, or not: if not, the table is always used. It is on in a new buffer, unless lookaside_options
/// say otherwise. Threads follow within 1024 lookups. NULL: nothing.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_monitor(b: *mut SLB, watching: bool) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        handle.shared.buffer.monitor(watching);
        handle.session().end_turn();
    }
}

/// What the monitor has found. `bytes` is sizeof *verdict as the caller knows it. Nothing if `b` or `verdict` is NULL.
///
/// # Safety
/// `verdict` is NULL, or points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_get_verdict(b: *mut SLB, verdict: *mut lookaside_verdict, bytes: usize) {
    // SAFETY: the caller's promise.
    if let Some(handle) = unsafe { Handle::of(b) } {
        // SAFETY: the caller's promise.
        unsafe { write_verdict(handle, verdict, bytes) };
    }
}

/// # Safety
/// `verdict` is NULL, or points to `bytes` bytes.
pub(crate) unsafe fn write_verdict(handle: &Handle, verdict: *mut lookaside_verdict, bytes: usize) {
    if verdict.is_null() {
        return;
    }
    let found = handle.shared.buffer.verdict();
    let all = lookaside_verdict {
        gain: found.gain.unwrap_or(0.0),
        trials: found.trials,
        switches: found.switches,
        watching: found.watching,
        on: found.on,
        on_in_batches: found.on_in_batches,
        reserved: [0; 5],
        gain_in_batches: found.gain_in_batches.unwrap_or(0.0),
    };
    // SAFETY: the caller's promise.
    unsafe { write_known(&all, verdict, bytes) };
}
