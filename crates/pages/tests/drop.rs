//! A dropped region leaves nothing behind. Alone in its process: a neighbour could map the same addresses anew.

use lookaside_pages::{PageKind, Region};

#[test]
fn a_dropped_region_leaves_no_mapping_behind() {
    let is_mapped = |address: usize| {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().any(|line| line.starts_with(&format!("{address:x}-")))
    };
    for kind in PageKind::ALL {
        let region = Region::map(64 << 20, kind).unwrap();
        let address = region.as_ptr() as usize;
        assert!(is_mapped(address), "{region:?}");
        drop(region);
        assert!(!is_mapped(address), "{kind}");
    }
}
