//! What went wrong once, and must not again.

use lookaside_pages::{MapError, PageKind, Region};
use outside::{Resource, limited};

/// Writes one byte to every base page that `used` does not have yet, all of which read as zero.
#[allow(unsafe_code)]
fn use_up(region: &Region, used: &mut usize) {
    for offset in (*used..region.len()).step_by(PageKind::Base.size()) {
        // SAFETY: the offset is inside the region, which nobody else uses.
        let byte = unsafe { &mut *region.as_ptr().add(offset) };
        assert_eq!(std::mem::replace(byte, 7), 0, "at {offset}");
    }
    *used = region.len();
}

/// Whether it holds what [`use_up`] has written.
#[allow(unsafe_code)]
fn is_kept(region: &Region) -> bool {
    let mut offsets = (0..region.len()).step_by(PageKind::Base.size());
    // SAFETY: the offset is inside the region, which nobody writes.
    offsets.all(|offset| unsafe { region.as_ptr().add(offset).read() } == 7)
}

/// A tree claimed addresses for all that it might ever hold, 40 GiB, and could not be made in a process with a limit on
/// them (`ulimit -v`). Such a region begins small now, grows where it is, keeps what it holds, and comes to what the
/// limit leaves.
#[test]
fn a_region_grows_where_addresses_are_limited() {
    const LIMIT: usize = 24 << 20;
    limited("a_region_grows_where_addresses_are_limited", Resource::As, LIMIT, || {
        for kind in [PageKind::Base, PageKind::Transparent] {
            assert!(Region::reserve(1 << 35, kind).is_err(), "there is no limit");
            let [first, second] = [(); 2].map(|()| Region::growing(1 << 35, kind).unwrap());
            let mut used = [0; 2];
            // In turn, so that each would be in the other's way.
            for wanted in (1..).map(|step| step * (64 << 10)) {
                if first.grow(wanted).is_err() || second.grow(wanted).is_err() {
                    break;
                }
                use_up(&first, &mut used[0]);
                use_up(&second, &mut used[1]);
            }
            let both = first.len() + second.len();
            assert!(both > LIMIT / 3 * 2, "{kind}: {both} bytes");
            use_up(&first, &mut used[0]);
            assert!(is_kept(&first) && is_kept(&second));
            let census = first.census().expect("this system has smaps");
            assert_eq!(census.resident, first.len(), "{kind}: it is one mapping");
            // What was refused is given when there is room again.
            drop(second);
            first.grow(first.len() + 1).unwrap();
            use_up(&first, &mut used[0]);
            assert!(is_kept(&first));
        }
    });
}

/// The same with a limit on what may be written, for which all that is claimed counts as well.
#[test]
fn a_region_grows_where_memory_is_limited() {
    const LIMIT: usize = 16 << 20;
    limited("a_region_grows_where_memory_is_limited", Resource::Data, LIMIT, || {
        let region = Region::growing(1 << 35, PageKind::Base).unwrap();
        let mut used = 0;
        while region.grow(used + 1).is_ok() {
            use_up(&region, &mut used);
        }
        assert!(used > LIMIT / 3 * 2 && is_kept(&region), "{used} bytes");
    });
}

#[test]
fn a_region_does_not_grow_beyond_its_reach() {
    let region = Region::growing(3 << 20, PageKind::Base).unwrap();
    region.grow(3 << 20).unwrap();
    assert!(matches!(region.grow((3 << 20) + 1), Err(MapError::Refused { .. })));
    assert_eq!((region.len(), region.reach()), (3 << 20, 3 << 20));
}
