//! Sets of slots, of one bucket or of two.

/// Slots of one bucket, or of two: a bit for each, those of the second bucket from [`SlotSet::SECOND`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotSet(pub(super) u32);

impl SlotSet {
    /// Where the second bucket begins. No bucket has more slots.
    pub(crate) const SECOND: usize = 8;

    /// How many.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.0.count_ones() as usize
    }
}

/// The slots, lowest first.
impl Iterator for SlotSet {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let first = (self.0 != 0).then(|| self.0.trailing_zeros() as usize);
        self.0 &= self.0.wrapping_sub(1);
        first
    }
}
