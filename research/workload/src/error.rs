//! Why a distribution cannot be made from the parameters given.

/// Why a distribution cannot be made from the parameters given.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistributionError {
    /// There is nothing to draw from: no records, or no alternative with a weight above zero.
    #[error("there is nothing to draw from: give at least one record or one positive weight")]
    Empty,
    /// More records than a 64-bit float counts exactly.
    #[error("{records} records are more than can be counted: give at most {largest}")]
    TooManyRecords {
        /// The number of records asked for.
        records: u64,
        /// The largest number that can be asked for.
        largest: u64,
    },
    /// The exponent of a Zipfian distribution lies outside the range that is supported and tested.
    #[error("a Zipfian exponent of {theta} is not supported: give one from 0 to {largest}")]
    Theta {
        /// The exponent asked for.
        theta: f64,
        /// The largest exponent that can be asked for; the smallest is 0.
        largest: f64,
    },
    /// A weight is negative, infinite or not a number, or the weights add up to infinity.
    #[error("{weight} is not a weight: give finite weights, none below zero, with a finite sum")]
    Weight {
        /// The weight, or the sum.
        weight: f64,
    },
    /// A factor that scales sizes is negative, infinite or not a number.
    #[error("sizes cannot be scaled by {factor}: give a finite factor, not below zero")]
    Factor {
        /// The factor asked for.
        factor: f64,
    },
    /// The histogram of sizes has neither as many sizes as weights nor one more.
    #[error(
        "{sizes} sizes do not go with {weights} weights: give as many sizes as weights (single sizes), or one more \
         (the bounds of ranges)"
    )]
    Lengths {
        /// How many sizes there are.
        sizes: usize,
        /// How many weights there are.
        weights: usize,
    },
    /// The sizes of a histogram are to rise from one to the next, and do not.
    #[error("the size at position {position} is below the one before it: sort the histogram by size")]
    Unsorted {
        /// The position of the first size that is below its predecessor, from 0.
        position: usize,
    },
}
