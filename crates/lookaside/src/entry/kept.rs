//! The handles that a thread keeps while it drops the index of a map: see [`super::departing`].

use std::cell::Cell;
use std::ptr::NonNull;

/// Handles that are kept: enough for a memory that answers a tenth of them at once.
const AHEAD: usize = 16;

/// Handles, by the addresses of their entries, of the map that this thread is dropping.
struct Kept {
    /// The address of what its slabs belong to.
    home: *const (),
    addresses: [Cell<usize>; AHEAD],
    next: Cell<usize>,
    /// Of the map whose entry's destructor drops this one.
    outer: Option<NonNull<Kept>>,
}

thread_local! {
    static KEPT: Cell<Option<NonNull<Kept>>> = const { Cell::new(None) };
}

/// What becomes of a handle that is dropped.
pub(super) enum Fate {
    /// It is let go of.
    Gone,
    /// It is kept.
    Kept,
    /// It is kept, and the one of this address is let go of, which was kept before: of the same home, and given once.
    KeptFor(usize),
}

/// Keeps the handle of the entry at this address, if its map's index is being dropped by this thread. `home` is asked
/// only then.
#[inline(always)]
pub(super) fn keep<H>(address: usize, home: impl FnOnce() -> *const H) -> Fate {
    let Some(kept) = KEPT.get() else { return Fate::Gone };
    // SAFETY: there from when it is set, by `begin`, until it is taken away, by `end`, on this thread.
    let kept = unsafe { kept.as_ref() };
    if !std::ptr::eq(home().cast(), kept.home) {
        return Fate::Gone;
    }
    pages::prefetch(std::ptr::with_exposed_provenance::<u8>(address));
    let next = kept.next.get();
    kept.next.set((next + 1) % AHEAD);
    match kept.addresses[next].replace(address) {
        0 => Fate::Kept,
        before => Fate::KeptFor(before),
    }
}

/// From here on this thread keeps handles of this home.
pub(super) fn begin<H>(home: *const H) {
    let addresses = [const { Cell::new(0) }; AHEAD];
    let kept = Kept { home: home.cast(), addresses, next: Cell::new(0), outer: KEPT.get() };
    KEPT.set(Some(NonNull::from(Box::leak(Box::new(kept)))));
}

/// It keeps none any more. The addresses of those that it has kept, if it did for this home.
pub(super) fn end<H>(home: *const H) -> impl Iterator<Item = usize> {
    let of_home = KEPT.get().and_then(|kept| {
        // SAFETY: as in `keep`. What is dropped meanwhile has taken its own away.
        let (its, outer) = unsafe { (kept.as_ref().home, kept.as_ref().outer) };
        // Of a map that could not be made there is none.
        std::ptr::eq(its, home.cast()).then(|| {
            KEPT.set(outer);
            // SAFETY: leaked by `begin`, and taken away: once.
            unsafe { Box::from_raw(kept.as_ptr()) }
        })
    });
    let addresses = of_home.map(|kept| kept.addresses.map(Cell::into_inner));
    addresses.into_iter().flatten().filter(|&address| address != 0)
}
