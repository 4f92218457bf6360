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

/// So many lines in such pages.
///
/// # Errors
/// [`MapError`]: no memory.
#[cfg(not(loom))]
pub(crate) fn map<L: Line>(lines: usize, pages: PageKind) -> Result<Lines<L>, MapError> {
    Lines::map(lines, pages)
}

#[cfg(loom)]
pub(crate) fn map<L: Line>(lines: usize, _pages: PageKind) -> Result<Lines<L>, MapError> {
    Ok((0..lines).map(|_| L::default()).collect())
}
