//! Tables of lines, and which line a hash means.

/// Lines that read as zero until they are written, and cost no memory until then.
#[cfg(not(loom))]
pub(crate) type Lines<L> = pages::Array<L>;
/// The model has no pages: lines are made one by one.
#[cfg(loom)]
pub(crate) type Lines<L> = Box<[L]>;

/// The line of a hash among `lines`: its low 32 bits, scaled. So tables may have any number of lines, up to 2^32, not
/// only powers of two; and the high bits are left for tags.
#[inline(always)]
pub(crate) fn index(hash: u64, lines: usize) -> usize {
    (((hash & 0xffff_ffff) * lines as u64) >> 32) as usize
}

/// The line of a hash.
///
/// # Panics
/// In debug builds, if there is none: tables have at least one.
#[inline(always)]
#[allow(unsafe_code)]
pub(crate) fn line<L>(lines: &[L], hash: u64) -> &L {
    debug_assert!(!lines.is_empty());
    // SAFETY: 32 bits of the product's upper half, of a number below 2^32 and that of the lines: less than the latter.
    // Tables have at least one line: see `crate::config::lines_of`.
    unsafe { lines.get_unchecked(index(hash, lines.len())) }
}
