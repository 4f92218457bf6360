//! Slot by slot, where there are no instructions for all at once, or none that may be used: under the interpreter and
//! the model checker.

use super::set::SlotSet;
use crate::layout::Bucket;

/// The slots whose word has the tag of this number; for zero, which is no tag, the empty ones.
#[inline(always)]
pub(crate) fn in_one<B: Bucket>(bucket: &B, tag: u64) -> SlotSet {
    let slots = bucket.slots().iter().enumerate();
    SlotSet(slots.fold(0, |set, (slot, cell)| set | u32::from(cell.load().raw_tag() == tag) << slot))
}

/// Slots of both among which are all that have the tag: simply all. Whoever follows the set compares tags anyway, and
/// one by one it is not worth doing twice.
///
/// The model checker sees both ways: buckets without a version of their own are compared first.
#[inline(always)]
pub(crate) fn in_both<B: Bucket>(first: &B, second: &B, tag: u64) -> SlotSet {
    if cfg!(loom) && first.version().is_none() {
        return SlotSet(in_one(first, tag).0 | in_one(second, tag).0 << SlotSet::SECOND);
    }
    let all = (1 << B::SLOTS) - 1;
    SlotSet(all | all << SlotSet::SECOND)
}
