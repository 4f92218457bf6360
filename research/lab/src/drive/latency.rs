//! Latencies, as histograms and as the few numbers that are shown of them.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest latency told apart, in nanoseconds: a minute. What takes longer is a minute.
const LONGEST: u64 = 60_000_000_000;

/// Latencies in nanoseconds, to three digits.
#[derive(Debug, Clone)]
pub(super) struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order");
        Latencies { histogram }
    }
}

impl Latencies {
    #[inline]
    pub(super) fn record(&mut self, nanoseconds: u64, times: u64) {
        self.histogram.saturating_record_n(nanoseconds, times);
    }

    pub(super) fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    pub(super) fn summary(&self) -> LatencySummary {
        let at = |percent| self.histogram.value_at_percentile(percent) as f64 / 1e3;
        LatencySummary {
            requests: self.histogram.len(),
            p50: at(50.0),
            p90: at(90.0),
            p99: at(99.0),
            p99_9: at(99.9),
            max: at(100.0),
        }
    }
}

/// Latencies of requests, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct LatencySummary {
    /// Requests that were timed.
    pub requests: u64,
    /// Half of the requests took no longer.
    pub p50: f64,
    /// 90 % took no longer.
    pub p90: f64,
    /// 99 % took no longer.
    pub p99: f64,
    /// 99.9 % took no longer.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut latencies = Latencies::default();
        latencies.record(10_000, 899);
        latencies.record(50_000, 100);
        let mut others = Latencies::default();
        others.record(u64::MAX, 1);
        latencies.add(&others);
        let summary = latencies.summary();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.002;
        assert_eq!(summary.requests, 1000);
        assert!(near(summary.p50, 10.0) && near(summary.p90, 50.0) && near(summary.p99, 50.0), "{summary:?}");
        assert!(near(summary.max, 6e7), "{summary:?}");
    }
}
