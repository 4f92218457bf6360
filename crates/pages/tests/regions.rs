//! What a region promises: zeroed, bounded, of the kind it says, guarded, and an error for every request that
//! cannot be met.

use lookaside_pages::{Array, MapError, PageKind, Region, fault};

/// Writes one byte to every base page.
#[allow(unsafe_code)]
fn touch(region: &Region) {
    for offset in (0..region.len()).step_by(PageKind::Base.size()) {
        // SAFETY: the offset is inside the region, which nobody else uses.
        unsafe { region.as_ptr().add(offset).write(1) };
    }
}

#[allow(unsafe_code)]
fn byte(region: &Region, offset: usize) -> u8 {
    assert!(offset < region.len());
    // SAFETY: the offset is inside the region, which nobody writes meanwhile.
    unsafe { region.as_ptr().add(offset).read() }
}

/// Whether the machine is set to grant any mapping, however absurd.
fn kernel_promises_anything() -> bool {
    std::fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "1")
}

#[test]
fn a_region_is_zeroed_aligned_and_at_least_as_long_as_asked() {
    for kind in [PageKind::Base, PageKind::Transparent, PageKind::Huge2M] {
        for bytes in [1, 4096, 4097, 3 << 20] {
            let region = Region::map(bytes, kind).unwrap();
            assert_eq!(region.len(), bytes.next_multiple_of(region.obtained().size()), "{region:?}");
            assert_eq!(region.as_ptr() as usize % region.obtained().size(), 0, "{region:?}");
            assert!((0..region.len()).step_by(511).all(|offset| byte(&region, offset) == 0));
        }
    }
}

#[test]
fn a_kind_that_the_machine_lacks_falls_back_to_a_smaller_one_and_says_so() {
    for kind in PageKind::ALL {
        let region = Region::map(1 << 20, kind).unwrap();
        assert_eq!(region.asked(), kind);
        assert!(region.obtained() <= kind, "{region:?}");
        // What it says is what the kernel says.
        let census = region.census().expect("this system has smaps");
        match region.obtained() {
            PageKind::Huge2M | PageKind::Huge1G => assert_eq!(census.kernel_page, region.obtained().size()),
            PageKind::Transparent => assert!(census.transparent_eligible),
            PageKind::Base => assert!(census.kernel_page == 4096 && !census.transparent_eligible),
        }
    }
}

#[test]
fn requests_that_cannot_be_met_are_errors() {
    for kind in PageKind::ALL {
        assert_eq!(Region::map(0, kind).unwrap_err(), MapError::ZeroLength);
        // What the message names as the most is not too large, whether this machine has it or not.
        let error = Region::map(usize::MAX, kind).unwrap_err().to_string();
        let most =
            error.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("it ends with a number");
        assert!(!matches!(Region::reserve(most, kind), Err(MapError::TooLarge { .. })), "{error}");
        assert_eq!(Region::map(usize::MAX, kind).unwrap_err(), MapError::TooLarge { bytes: usize::MAX });
        if !kernel_promises_anything() {
            assert!(matches!(Region::map(1 << 45, kind), Err(MapError::Refused { .. })), "32 TiB promised");
        }
        assert!(matches!(Array::<u64>::map(usize::MAX / 2, kind), Err(MapError::TooLarge { .. })));
    }
    // Address space alone is there for the asking.
    assert!(Region::reserve(1 << 42, PageKind::Base).is_ok());
}

#[test]
fn every_mapping_may_fail_in_turn() {
    // Asked for 1 GiB pages, a region tries up to four kinds; failing the n-th only leads to the next.
    for nth in 0.. {
        let (mapped, reached) = fault::fail_nth(nth, || Region::map(1 << 20, PageKind::Huge1G));
        if !reached {
            assert!(mapped.is_ok() && nth >= 1);
            break;
        }
        match mapped {
            Ok(region) => assert!(region.obtained() < PageKind::Huge1G),
            Err(error) => assert!(matches!(error, MapError::Refused { .. })),
        }
    }
    // With base pages there is nothing to fall back to.
    let (mapped, _) = fault::fail_nth(0, || Region::map(1 << 20, PageKind::Base));
    assert!(matches!(mapped, Err(MapError::Refused { .. })));
}

#[test]
fn memory_becomes_resident_when_touched_and_leaves_when_released() {
    let region = Region::reserve(8 << 20, PageKind::Base).unwrap();
    assert_eq!(region.census().unwrap().resident, 0);
    touch(&region);
    assert_eq!(region.census().unwrap().resident, 8 << 20);
    #[allow(unsafe_code)]
    // SAFETY: nobody uses the region while it is released.
    unsafe {
        region.release(100..(4 << 20) + 100);
    }
    // Whole pages within the range only: the page of byte 100 and the one of its end stay.
    assert_eq!(region.census().unwrap().resident, (4 << 20) + 4096);
    assert_eq!((byte(&region, 0), byte(&region, 4096), byte(&region, 4 << 20)), (1, 0, 1));
}

#[test]
fn a_transparent_region_is_made_of_huge_pages_where_the_kernel_grants_them() {
    let region = Region::map(16 << 20, PageKind::Transparent).unwrap();
    touch(&region);
    let census = region.census().unwrap();
    assert_eq!(census.resident, 16 << 20);
    match region.obtained() {
        // Fragmented memory may withhold some; all of them missing would mean that the report is wrong.
        PageKind::Transparent => assert!(census.transparent_huge > 0, "{census:?}"),
        _ => assert_eq!(census.transparent_huge, 0),
    }
    region.make_no_more_huge_pages();
    let after = region.census().unwrap();
    assert_eq!((after.resident, after.transparent_huge), (census.resident, census.transparent_huge));
    assert!(!after.transparent_eligible);
    let base = Region::map(16 << 20, PageKind::Base).unwrap();
    touch(&base);
    assert_eq!(base.census().unwrap().transparent_huge, 0, "regular pages were asked for");
}

#[test]
fn a_region_stands_between_inaccessible_margins() {
    let region = Region::map(1 << 20, PageKind::Base).unwrap();
    let start = region.as_ptr() as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapping_of = |address: usize| {
        maps.lines().find(|line| {
            let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
            (usize::from_str_radix(from, 16).unwrap()..usize::from_str_radix(to, 16).unwrap())
                .contains(&address)
        })
    };
    assert!(mapping_of(start).unwrap().contains("rw-p"));
    assert!(mapping_of(start - 1).unwrap().contains("---p"));
    assert!(mapping_of(start + region.len()).unwrap().contains("---p"));
}

/// A kernel that has no such pages refuses after it has taken away what was mapped there: the gap must be nobody's
/// concern.
#[test]
fn a_kind_that_is_refused_takes_nothing_from_other_threads() {
    const ROUNDS: usize = 2_000;
    std::thread::scope(|scope| {
        for kind in [PageKind::Huge2M, PageKind::Huge1G] {
            scope.spawn(move || (0..ROUNDS).for_each(|_| drop(Region::map(1 << 20, kind).unwrap())));
        }
        for size in [1, 1 << 20, 3 << 20] {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let region = Region::map(size, PageKind::Base).unwrap();
                    touch(&region);
                    assert!((0..region.len()).step_by(4096).all(|offset| byte(&region, offset) == 1));
                }
            });
        }
    });
}
