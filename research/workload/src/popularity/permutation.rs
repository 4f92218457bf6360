//! Strewing ranks over records: a random permutation that takes no memory.
//!
//! Where rank 0 is record 0, the hot records lie side by side, in one page and in one corner of every tree, and an
//! experiment measures that. So ranks go through a permutation of the records, drawn by a seed.
//!
//! It is a Feistel network (Luby and Rackoff, SIAM J. Comput. 17(2), 1988) over any number of records, after Black
//! and Rogaway ("Ciphers with arbitrary finite domains", CT-RSA 2002):
//!
//! 1. Lay the records out in a rectangle of about square shape with a rows and b columns, a b >= n.
//! 2. A round shifts the row by a hash of the column, the next round the column by a hash of the row. Each is
//!    undone by shifting back, so any number of them is a permutation.
//! 3. The rectangle has fewer than a places that are no record. From there go on until a record is reached: the
//!    cycle that began at a record leads back to one. Almost never needed, as a is about the root of n.
//!
//! Rejected: a shuffled vector. It takes 4 bytes a record and a cache miss a draw, in the caches that are measured.

use rand::Rng;
use rand::distr::Distribution;

use super::check_records;
use crate::DistributionError;

/// Six rounds: three each for rows and columns. Four are enough against an adversary (Luby and Rackoff), and very
/// small rectangles profit from two more.
const ROUNDS: usize = 6;

/// A permutation of the numbers below the number of records.
///
/// ```
/// use lookaside_workload::popularity::Permutation;
///
/// let permutation = Permutation::new(10, 1)?;
/// let mut records: Vec<u64> = (0..10).map(|rank| permutation.record(rank)).collect();
/// records.sort();
/// assert!(records.into_iter().eq(0..10));
/// # Ok::<(), lookaside_workload::DistributionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permutation {
    records: u64,
    rows: u64,
    columns: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `records` records that `seed` draws.
    ///
    /// # Errors
    ///
    /// [`DistributionError::Empty`] without records, [`DistributionError::TooManyRecords`] above 2^53.
    pub fn new(records: u64, seed: u64) -> Result<Permutation, DistributionError> {
        check_records(records)?;
        let rows = (records - 1).isqrt() + 1;
        let columns = records.div_ceil(rows);
        let mut state = seed;
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(state)
        });
        Ok(Permutation { records, rows, columns, keys })
    }

    /// The record that the rank `rank` falls on.
    ///
    /// # Panics
    ///
    /// Where `rank` is not below the number of records.
    #[inline]
    pub fn record(&self, rank: u64) -> u64 {
        assert!(rank < self.records, "rank {rank} of {} records", self.records);
        let mut place = rank;
        loop {
            let (mut row, mut column) = (place / self.columns, place % self.columns);
            for pair in self.keys.chunks_exact(2) {
                row = shift(row, column ^ pair[0], self.rows);
                column = shift(column, row ^ pair[1], self.columns);
            }
            place = row * self.columns + column;
            if place < self.records {
                return place;
            }
        }
    }

    /// The number of records.
    pub fn records(&self) -> u64 {
        self.records
    }
}

/// `value` moved on by a hash of `by`, modulo `modulus`.
#[inline]
fn shift(value: u64, by: u64, modulus: u64) -> u64 {
    let distance = ((u128::from(mix(by)) * u128::from(modulus)) >> 64) as u64;
    let moved = value + distance;
    if moved >= modulus { moved - modulus } else { moved }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit of the input moves every bit.
#[inline]
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Ranks strewn over the records by a [`Permutation`].
#[derive(Debug, Clone, PartialEq)]
pub struct Permuted<D> {
    ranks: D,
    permutation: Permutation,
}

impl<D: Distribution<u64>> Permuted<D> {
    /// Draws a rank from `ranks` and returns the record that `permutation` gives it.
    ///
    /// `ranks` must draw below the number of records of `permutation`: drawing panics otherwise.
    pub fn new(ranks: D, permutation: Permutation) -> Permuted<D> {
        Permuted { ranks, permutation }
    }

    /// The permutation.
    pub fn permutation(&self) -> &Permutation {
        &self.permutation
    }
}

impl<D: Distribution<u64>> Distribution<u64> for Permuted<D> {
    #[inline]
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u64 {
        self.permutation.record(self.ranks.sample(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_bijective(records: u64, seed: u64) {
        let permutation = Permutation::new(records, seed).unwrap();
        let mut seen = vec![false; records as usize];
        for rank in 0..records {
            let record = permutation.record(rank) as usize;
            assert!(!std::mem::replace(&mut seen[record], true), "{records} records: {record} twice");
        }
    }

    #[test]
    fn every_record_is_hit_once() {
        for records in 1..1200 {
            assert_bijective(records, records * 7);
        }
        for records in [1_000_000, 1_048_576, 999_983] {
            assert_bijective(records, 3);
        }
    }

    /// Over many seeds, a rank falls on each record equally often: chi-square with 9 degrees of freedom is below
    /// 42.7 in all but one of 400,000 cases (probability 2.5e-6), and there are 100 of them here.
    #[test]
    fn a_rank_falls_anywhere() {
        const SEEDS: u64 = 2000;
        for records in [2, 3, 5, 10, 16] {
            for rank in 0..records {
                let mut hits = vec![0u64; records as usize];
                for seed in 0..SEEDS {
                    hits[Permutation::new(records, seed).unwrap().record(rank) as usize] += 1;
                }
                let expected = SEEDS as f64 / records as f64;
                let chi: f64 = hits.iter().map(|hit| (*hit as f64 - expected).powi(2) / expected).sum();
                // The bound for the largest number of degrees of freedom here, 15, at the same probability.
                assert!(chi < 54.0, "rank {rank} of {records}: {hits:?}");
            }
        }
    }

    /// The largest domain neither overflows nor walks on for ever.
    #[test]
    fn the_largest_number_of_records_works() {
        let records = super::super::LARGEST_RECORDS;
        let permutation = Permutation::new(records, 1).unwrap();
        for rank in [0, 1, records / 2, records - 1] {
            assert!(permutation.record(rank) < records);
        }
    }

    #[test]
    fn neighbours_part() {
        let permutation = Permutation::new(1_000_000, 1).unwrap();
        let near =
            (0..1000).filter(|rank| permutation.record(*rank).abs_diff(permutation.record(rank + 1)) < 1000);
        // By chance 2 of 1000.
        assert!(near.count() < 12);
    }
}
