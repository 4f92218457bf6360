//! Tables of lines, and which line a hash means.

/// Lines that read as zero until they are written, and cost no memory until then.
#[cfg(not(loom))]
pub(crate) type Lines<L> = pages::Array<L>;
/// The model has no pages: lines are made one by one.
#[cfg(loom)]
pub(crate) type Lines<L> = Box<[L]>;

/// The line of a hash among `lines`: its low 32 bits, scaled. So tables may have any number of lines, up to 2^32, not only
/// powers of two; and the high bits are left for tags.
#[inline(always)]
pub(crate) fn index(hash: u64, lines: usize) -> usize {
    (((hash & 0xffff_ffff) * lines as u64) >> 32) as usize
}
