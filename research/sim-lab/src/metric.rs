//! What is shown of a run, by itself or beside another: one name, one formula.

use serde::Deserialize;
use sim::{CacheCounts, CycleStack, Window};

use crate::run::Run;

/// A number of a run. Those that compare do it with the run that the definition names, as a rule the same
/// program without a table in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Cycles of a request.
    Cycles,
    /// Half the width of the 95 % confidence interval of the cycles, over the windows of one run, of their mean.
    Confidence,
    /// Instructions of a request.
    Instructions,
    /// The other's cycles divided by ours.
    SpeedUp,
    /// Our cycles beyond the other's, of the other's.
    Slowdown,
    /// The share of our cycles that the other does not need.
    Saved,
    /// The share of lookups that the table in front did not answer.
    TableMisses,
    /// Page walks.
    Walks,
    /// Lines read from memory.
    MemoryReads,
    /// The other's misses of the first TLB that we do not have, of the other's.
    FirstTlbMissReduction,
    /// Of translations that neither TLB had (the STB may have).
    SecondTlbMissReduction,
    /// Of page walks.
    WalkReduction,
    /// Of the first data cache's misses.
    L1MissReduction,
    /// Of the third cache's misses.
    L3MissReduction,
    /// Of lines read from memory.
    MemoryReadReduction,
    /// Our lines from memory, prefetches among them, divided by the other's.
    MemoryTraffic,
    /// Cycles that a line waits for memory's channel, beyond the other's, of the other's latency.
    MemoryLatency,
    /// Prefetched translations that were used, of those that were prefetched.
    TranslationAccuracy,
    /// Cycles by what was waited for.
    Stack,
    /// The same as shares of all cycles.
    Shares,
}

/// A number with its name and unit.
pub(crate) struct Sample {
    pub(crate) metric: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

fn mean(run: &Run, quantity: impl Fn(&Window) -> f64) -> f64 {
    run.measurement.estimate(quantity).mean
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

/// A part of a stack of cycles.
pub type StackPart = fn(&CycleStack) -> u64;

/// The parts of a stack of cycles, named.
pub const STACK: [(&str, StackPart); 8] = [
    ("base", |stack| stack.base),
    ("fetch", |stack| stack.fetch),
    ("branches", |stack| stack.branch),
    ("translation", |stack| stack.translation),
    ("L2", |stack| stack.l2),
    ("L3", |stack| stack.l3),
    ("memory", |stack| stack.memory),
    ("STLT", |stack| stack.stlt),
];

/// Loads, stores and walks that a cache did not have.
fn all_misses(counts: &CacheCounts) -> u64 {
    counts.load.misses + counts.store.misses + counts.walk.misses
}

impl Metric {
    /// Whether it compares.
    #[must_use]
    pub const fn compares(self) -> bool {
        !matches!(
            self,
            Metric::Cycles
                | Metric::Confidence
                | Metric::Instructions
                | Metric::TableMisses
                | Metric::Walks
                | Metric::MemoryReads
                | Metric::TranslationAccuracy
                | Metric::Stack
                | Metric::Shares
        )
    }

    /// The samples of `run`, beside `other` where it compares.
    pub(crate) fn of(self, run: &Run, other: &Run) -> Vec<Sample> {
        let each = |count: fn(&Window) -> u64| {
            move |run: &Run| mean(run, |window| count(window) as f64 / window.operations as f64)
        };
        let reduction = |count: fn(&Window) -> u64| {
            let before = each(count)(other);
            if before == 0.0 { 0.0 } else { percent(1.0 - each(count)(run) / before) }
        };
        let (ours, theirs) = (mean(run, Window::cycles), mean(other, Window::cycles));
        let (metric, unit, value) = match self {
            Metric::Cycles => ("cycles", "per request", ours),
            Metric::Confidence => {
                let cycles = run.measurement.estimate(Window::cycles);
                ("cycles, 95 % confidence", "% of the mean", percent(cycles.half_width.unwrap_or(0.0) / ours))
            }
            Metric::Instructions => ("instructions", "per request", mean(run, Window::instructions)),
            Metric::SpeedUp => ("speed-up", "x", theirs / ours),
            Metric::Slowdown => ("slowdown", "%", percent(ours / theirs - 1.0)),
            Metric::Saved => ("time that the other does not need", "%", percent(1.0 - theirs / ours)),
            Metric::TableMisses => {
                // Who has no table, or one that does not say, has none to miss.
                if run.measurement.windows.iter().all(|window| window.table_miss_rate().is_none()) {
                    return Vec::new();
                }
                ("table misses", "%", percent(mean(run, |window| window.table_miss_rate().unwrap_or(0.0))))
            }
            Metric::Walks => ("page walks", "per request", mean(run, Window::walks)),
            Metric::MemoryReads => ("reads of memory", "per request", mean(run, Window::memory_reads)),
            Metric::FirstTlbMissReduction => {
                ("first TLB misses saved", "%", reduction(|window| window.memory.data_tlb.misses))
            }
            Metric::SecondTlbMissReduction => {
                ("second TLB misses saved", "%", reduction(|window| window.memory.second_tlb.misses))
            }
            Metric::WalkReduction => {
                ("page walks saved", "%", reduction(|window| window.memory.accesses.data_walks))
            }
            Metric::L1MissReduction => {
                ("first cache's misses saved", "%", reduction(|window| all_misses(&window.memory.l1d)))
            }
            Metric::L3MissReduction => {
                ("third cache's misses saved", "%", reduction(|window| all_misses(&window.memory.l3)))
            }
            Metric::MemoryReadReduction => {
                ("reads of memory saved", "%", reduction(|window| window.memory.memory.reads))
            }
            Metric::MemoryTraffic => {
                let traffic = mean(run, Window::memory_reads) / mean(other, Window::memory_reads);
                ("reads of memory, with prefetches", "x", traffic)
            }
            Metric::MemoryLatency => {
                let latency = |run: &Run| {
                    let shape = run.configuration.machine.memory;
                    let waited = each(|window| window.core.waited_for_channel)(run);
                    f64::from(shape.latency) + waited / mean(run, Window::memory_reads).max(f64::MIN_POSITIVE)
                };
                ("latency of memory, more", "%", percent(latency(run) / latency(other) - 1.0))
            }
            Metric::TranslationAccuracy => {
                let made = each(|window| window.memory.accesses.translations_prefetched)(run);
                let used = each(|window| window.memory.accesses.prefetch_buffer_hits)(run);
                (
                    "translations prefetched that were used",
                    "%",
                    if made == 0.0 { 0.0 } else { percent(used / made) },
                )
            }
            Metric::Stack | Metric::Shares => {
                let sample = |(name, part): (&str, StackPart)| {
                    let cycles = |window: &Window| part(&window.core.stack) as f64;
                    if self == Metric::Stack {
                        let value = mean(run, |window| cycles(window) / window.operations as f64);
                        Sample { metric: format!("cycles: {name}"), unit: "per request", value }
                    } else {
                        let value = percent(mean(run, |window| cycles(window) / window.core.cycles as f64));
                        Sample { metric: format!("share: {name}"), unit: "%", value }
                    }
                };
                return STACK.into_iter().map(sample).collect();
            }
        };
        vec![Sample { metric: metric.into(), unit, value }]
    }
}
