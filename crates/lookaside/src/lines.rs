//! The memory of a table: lines that read as zero until they are written, and cost nothing until then.

use pages::{MapError, PageKind};

#[cfg(not(loom))]
pub(crate) use pages::Zeroed as Line;
/// The model has no pages: lines are made one by one.
#[cfg(loom)]
pub(crate) use std::default::Default as Line;

/// Lines.
#[cfg(not(loom))]
pub(crate) type Lines<L> = pages::Array<L>;
#[cfg(loom)]
pub(crate) type Lines<L> = Box<[L]>;

/// So many lines in such pages. What is smaller than half a huge page lies in base pages where the kernel is only to
/// find huge ones: the first line that is written would take all of one, and a map of ten entries two megabytes.
///
/// # Errors
/// [`MapError`]: no memory.
#[cfg(not(loom))]
pub(crate) fn map<L: Line>(lines: usize, pages: PageKind) -> Result<Lines<L>, MapError> {
    let bytes = lines.saturating_mul(size_of::<L>());
    let is_small = pages == PageKind::Transparent && bytes < PageKind::Transparent.size() / 2;
    Lines::map(lines, if is_small { PageKind::Base } else { pages })
}

#[cfg(loom)]
pub(crate) fn map<L: Line>(lines: usize, _pages: PageKind) -> Result<Lines<L>, MapError> {
    Ok((0..lines).map(|_| L::default()).collect())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_takes_no_huge_page() {
        let obtained = |bytes: usize, kind| {
            let region = pages::Region::map(bytes, kind).expect("memory");
            let lines: Lines<std::sync::atomic::AtomicU64> = map(bytes / 8, kind).expect("memory");
            (lines.region().obtained(), region.obtained())
        };
        let half = PageKind::Transparent.size() / 2;
        assert_eq!(obtained(half - 8, PageKind::Transparent).0, PageKind::Base);
        // What the machine gives: none where it has no huge pages.
        let (lines, region) = obtained(half, PageKind::Transparent);
        assert_eq!(lines, region);
        let (lines, region) = obtained(8, PageKind::Base);
        assert_eq!(lines, region);
    }
}
