//! Comparing the tags of a bucket, all at once.
//!
//! A lookup that finds nothing compares fourteen tags and needs none of the words behind them. One comparison and one
//! branch after another, that is most of its instructions; and instructions are what limits it, because a core looks
//! ahead only so many of them, and the fewer a lookup takes, the more lookups' cache misses overlap. So the tags of
//! both buckets are compared together, into one set, and a lookup has one branch for it: which bucket it is that has
//! the key is not for the branch predictor to guess.
//!
//! The set is a hint, and may have too much in it: whoever follows it loads the slot by itself, as the protocol of
//! [`crate::version`] has it, and looks at the tag again. That a slot is not in the set means that it did not have the
//! tag at the moment when it was compared, which lies within the call. No later load is made before the comparison's.
//!
//! | file | for |
//! |---|---|
//! | `tags/sse2.rs` | x86-64, which has had these instructions from the start |
//! | `tags/portable.rs` | everything else, the model checker and the interpreter among it |
//!
//! Rejected, measured among 100 million keys on a Zen 4: *one bucket after the other*, which makes single positive
//! lookups a quarter faster, because they need not wait for a second line, and negative ones a fifth slower; *deciding
//! by the first bucket's set alone where it is not empty*, the same speed as now; *64-byte vectors, chosen when the
//! program runs*, a quarter of the instructions: batches gain a tenth, and single negative lookups lose a fifth.

mod portable;
mod set;
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, lookaside_portable))))]
mod sse2;

#[cfg(any(loom, miri, lookaside_portable, not(target_arch = "x86_64")))]
pub(crate) use portable::{in_both, in_one};
#[cfg(all(target_arch = "x86_64", not(any(loom, miri, lookaside_portable))))]
pub(crate) use sse2::{in_both, in_one};

pub(crate) use self::set::SlotSet;

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::{Bucket, EightWay, FourWay, SevenWay, sealed::Sealed};
    use crate::slot::{Location, Next, Tag, Word};
    use proptest::prelude::*;

    /// A bucket whose slots have these tags; a zero is an empty one.
    fn bucket<L: Sealed>(tags: &[u64]) -> pages::Array<L::Bucket> {
        let buckets = pages::Array::<L::Bucket>::map(1, pages::PageKind::Base).unwrap();
        for (slot, &tag) in buckets[0].slots().iter().zip(tags).filter(|(_, tag)| **tag > 0) {
            // All ones beside the tag: what lies there must not matter.
            let location = Location::new((1 << Location::BITS) - 1).unwrap();
            slot.store(Word::new(Tag::of(tag << 50, 14), Next::Bit(1), location));
        }
        if let Some(version) = buckets[0].version() {
            version.lock();
            version.raise();
        }
        buckets
    }

    fn agree<L: Sealed>(first: &[u64], second: &[u64], wanted: u64) -> Result<(), TestCaseError> {
        let buckets = [bucket::<L>(first), bucket::<L>(second)];
        let [one, two] = [&buckets[0][0], &buckets[1][0]];
        let slots = one.slots().len();
        let has_it = |tags: &[u64]| (0..slots).filter(|&slot| tags[slot] == wanted).collect::<Vec<_>>();
        let mut expected = has_it(first);
        prop_assert_eq!(portable::in_one(one, wanted).collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(in_one(one, wanted).collect::<Vec<_>>(), expected.clone());
        prop_assert_eq!(in_one(one, wanted).len(), expected.len());
        expected.extend(has_it(second).iter().map(|slot| SlotSet::SECOND + slot));
        let candidates: Vec<_> = portable::in_both(one, two, wanted).collect();
        prop_assert!(expected.iter().all(|slot| candidates.contains(slot)));
        if cfg!(all(target_arch = "x86_64", not(any(miri, lookaside_portable)))) {
            prop_assert_eq!(in_both(one, two, wanted).collect::<Vec<_>>(), expected);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn every_variant_finds_the_same_slots(
            first in prop::collection::vec(prop_oneof![0u64..3, 0u64..1 << 14], 8),
            second in prop::collection::vec(prop_oneof![0u64..3, 0u64..1 << 14], 8),
            wanted in prop_oneof![0u64..3, 0u64..1 << 14],
        ) {
            agree::<FourWay>(&first, &second, wanted)?;
            agree::<SevenWay>(&first, &second, wanted)?;
            agree::<EightWay>(&first, &second, wanted)?;
        }
    }
}
