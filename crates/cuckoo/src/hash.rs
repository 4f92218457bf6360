//! What a hash must be, and the mixing of those that are not.
//!
//! A table takes a key's bucket from the lowest bits of its hash, its tag from the highest ([`crate::slot`]), and its
//! other bucket from both. Hashes of which some of these bits hardly differ crowd few buckets, which no growth cures,
//! since growth tells keys apart by more of the same bits: of keys whose hashes are the multiples of 4,096, or of 2^32,
//! a growing table that took them as they are had room for 14; of 32-bit hashes, all of one tag, for some thousand.
//!
//! So a table mixes what it is given, unless told that it need not ([`Hashes::Avalanching`]). What it asks of a hash is
//! then one thing:
//!
//! * **Different keys have different hashes**, nearly all of them. The mix is a bijection: it neither adds equal hashes
//!   nor takes them away, and more keys of the very same hash than two buckets have slots (14) find no place in any
//!   table. [`TooFull::Hashes`](crate::TooFull::Hashes) says so. 32 bits are enough for some hundred thousand keys.
//!
//! Against somebody who chooses keys to harm, the hash must be keyed with a secret as well: the mix has none.
//!
//! The mix is two multiplications, and before, between and after them the upper half is brought down, where a
//! multiplication carries only upwards: the form of MurmurHash3's finaliser (Appleby), with one constant and one
//! distance, as degski found them.
//!
//! It costs a lookup 12 instructions of 170 (callgrind): 2 to 15 % of the lookups in a table that lies in the caches,
//! of which there is little else to wait for, and nothing that could be measured in one that does not
//! (`examples/hash_cost.rs`). So whoever has good hashes says so.
//!
//! Rejected: *one multiplication*, by which some bits of the hash change few of the result; *a folded 128-bit product*,
//! which is no bijection; *a type parameter* instead of a choice at run time, which would save a load and a branch that
//! is always foreseen, and stand in every signature.

/// What the hashes are that a table is given: see [`Config::hashes`](crate::Config::hashes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hashes {
    /// Different for different keys, but for few: of any shape beyond that. The table mixes them.
    #[default]
    Any,
    /// Each bit depends on the whole key as in a random number, as in XXH3, SipHash, wyhash or foldhash: they are used
    /// as they are. A lie costs room: [`TooFull::Hashes`](crate::TooFull::Hashes) comes early, or the table grows for
    /// too few keys.
    Avalanching,
}

/// Odd, with well-mixed bits.
const BY: u64 = 0xd6e8_feb8_6659_fd93;

/// A bijection of 64 bits of whose result every bit depends on every bit.
#[inline(always)]
pub(crate) const fn mix(hash: u64) -> u64 {
    let once = (hash ^ hash >> 32).wrapping_mul(BY);
    let twice = (once ^ once >> 32).wrapping_mul(BY);
    twice ^ twice >> 32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// The inverse of an odd number modulo 2^64, by Newton's iteration.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse))))
    }

    #[test]
    fn the_mix_can_be_undone_so_different_hashes_stay_different() {
        let undone = |mixed: u64| {
            let twice = (mixed ^ mixed >> 32).wrapping_mul(inverse(BY));
            let once = (twice ^ twice >> 32).wrapping_mul(inverse(BY));
            once ^ once >> 32
        };
        for number in (0..64).map(|bit| 1 << bit).chain([0, u64::MAX, BY]) {
            assert_eq!(undone(mix(number)), number);
        }
    }

    /// Strict avalanche: whichever bit of the hash changes, each bit of the mix does in about half of all cases.
    #[test]
    fn every_bit_of_the_mix_depends_on_every_bit_of_the_hash() {
        const SAMPLES: u64 = 4096;
        for from in 0..64 {
            let mut changes = [0u32; 64];
            for sample in 0..SAMPLES {
                let hash = mix(sample);
                let difference = mix(hash) ^ mix(hash ^ 1 << from);
                changes
                    .iter_mut()
                    .enumerate()
                    .for_each(|(to, count)| *count += (difference >> to & 1) as u32);
            }
            for (to, &count) in changes.iter().enumerate() {
                let share = f64::from(count) / SAMPLES as f64;
                assert!((0.4..0.6).contains(&share), "bit {from} changes bit {to} in {share} of all cases");
            }
        }
    }
}
