//! A region where another one was: the kernel gives the addresses of what was unmapped to who maps next, to another
//! thread perhaps, which has nothing to do with the one before. Under the thread sanitizer, too, it must be other
//! memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use lookaside_pages::{PageKind, Region};

/// Writes one byte to every base page, all of which read as zero.
#[allow(unsafe_code)]
fn use_up(region: &Region) {
    for offset in (0..region.len()).step_by(PageKind::Base.size()) {
        // SAFETY: the offset is inside the region, which nobody else uses.
        let byte = unsafe { &mut *region.as_ptr().add(offset) };
        assert_eq!(std::mem::replace(byte, 1), 0, "at {offset}");
    }
}

/// One thread uses a region up and unmaps it, and then another maps one: nothing if it got the same addresses, else its
/// region.
fn in_another_place() -> Option<Region> {
    let map = || Region::map(1 << 20, PageKind::Base).unwrap();
    let before = AtomicUsize::new(0);
    thread::scope(|scope| {
        let first = scope.spawn(|| {
            let region = map();
            use_up(&region);
            let address = region.as_ptr() as usize;
            drop(region);
            // Relaxed, so that the threads are ordered by the kernel alone, as those of two tests are.
            before.store(address, Ordering::Relaxed);
        });
        let second = scope.spawn(|| {
            let address = loop {
                match before.load(Ordering::Relaxed) {
                    0 => thread::yield_now(),
                    address => break address,
                }
            };
            let region = map();
            use_up(&region);
            (region.as_ptr() as usize != address).then_some(region)
        });
        first.join().unwrap();
        second.join().unwrap()
    })
}

#[test]
fn a_region_has_nothing_to_do_with_the_one_that_was_there_before() {
    // Something else may be mapped there meanwhile, or a better place has become free: the stack of a thread, say. What
    // was mapped in another place stays, and so fills it.
    let mut kept = Vec::new();
    assert!(
        (0..200).any(|_| in_another_place().map(|region| kept.push(region)).is_none()),
        "never in the same place"
    );
}
