//! The median and the extremes of a few samples.

/// What is kept of the samples of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub minimum: f64,
    /// The largest.
    pub maximum: f64,
}

impl Summary {
    /// The summary of `samples`, in any order.
    ///
    /// ```
    /// use lookaside_lab::measure::Summary;
    ///
    /// let summary = Summary::of(&[4.0, 1.0, 2.0, 9.0]);
    /// assert_eq!((summary.median, summary.minimum, summary.maximum), (3.0, 1.0, 9.0));
    /// ```
    ///
    /// # Panics
    /// Without samples.
    #[must_use]
    pub fn of(samples: &[f64]) -> Summary {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (minimum, maximum) = match sorted.as_slice() {
            [] => panic!("a number without samples has no median"),
            [only] => (*only, *only),
            [first, .., last] => (*first, *last),
        };
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Summary { median, minimum, maximum }
    }
}
