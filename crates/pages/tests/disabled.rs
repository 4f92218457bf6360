//! A process that was told to do without transparent huge pages. The only test of its program, because the setting is
//! the whole process's.

use lookaside_pages::{PageKind, Region};
use rustix::thread::disable_transparent_huge_pages;

#[test]
fn a_region_says_so_when_its_process_gets_no_huge_pages() {
    disable_transparent_huge_pages(true).unwrap();
    let region = Region::map(4 << 20, PageKind::Transparent).unwrap();
    assert_eq!((region.asked(), region.obtained()), (PageKind::Transparent, PageKind::Base));
}
