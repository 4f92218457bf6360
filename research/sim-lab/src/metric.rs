//! What is shown of a run, by itself or beside another: one name, one formula.
//!
//! Those that compare do it with the run that the definition names, as a rule the same program without a table in
//! front.

use serde::Deserialize;
use sim::{CacheCounts, CycleStack, Window};

use crate::run::Run;

/// A number of a run, by its name in definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Metric(usize);

/// How it is computed.
enum Formula {
    /// Of our run. Nothing, if it has none.
    Own(fn(&Run) -> Option<f64>),
    /// Of ours and the other.
    Beside(fn(&Run, &Run) -> f64),
    /// What the other counts, and we do not, of the other's, in percent.
    Saved(fn(&Window) -> u64),
    /// The cycles of a window by what was waited for, divided by this.
    Stack(fn(&Window) -> u64),
}

use Formula::{Beside, Own, Saved, Stack};

/// The names in definitions and in reports, the units, and the formulas.
static METRICS: [(&str, &str, &str, Formula); 20] = [
    ("cycles", "cycles", "per request", Own(|run| Some(cycles(run)))),
    // Half the width of the interval over the windows of one run.
    ("confidence", "cycles, 95 % confidence", "% of the mean", Own(|run| Some(confidence(run)))),
    ("instructions", "instructions", "per request", Own(|run| Some(mean(run, Window::instructions)))),
    ("speed-up", "speed-up", "x", Beside(|run, other| cycles(other) / cycles(run))),
    ("slowdown", "slowdown", "%", Beside(|run, other| percent(cycles(run) / cycles(other) - 1.0))),
    (
        "saved",
        "time that the other does not need",
        "%",
        Beside(|run, other| percent(1.0 - cycles(other) / cycles(run))),
    ),
    ("table-misses", "table misses", "%", Own(table_misses)),
    ("walks", "page walks", "per request", Own(|run| Some(mean(run, Window::walks)))),
    ("memory-reads", "reads of memory", "per request", Own(|run| Some(mean(run, Window::memory_reads)))),
    ("first-tlb-miss-reduction", "first TLB misses saved", "%", Saved(|of| of.memory.data_tlb.misses)),
    // The STB may have them.
    ("second-tlb-miss-reduction", "second TLB misses saved", "%", Saved(|of| of.memory.second_tlb.misses)),
    ("walk-reduction", "page walks saved", "%", Saved(|of| of.memory.accesses.data_walks)),
    ("l1-miss-reduction", "first cache's misses saved", "%", Saved(|of| all_misses(&of.memory.l1d))),
    ("l3-miss-reduction", "third cache's misses saved", "%", Saved(|of| all_misses(&of.memory.l3))),
    ("memory-read-reduction", "reads of memory saved", "%", Saved(|of| of.memory.memory.reads)),
    (
        "memory-traffic",
        "reads of memory, with prefetches",
        "x",
        Beside(|run, other| mean(run, Window::memory_reads) / mean(other, Window::memory_reads)),
    ),
    (
        "memory-latency",
        "latency of memory, more",
        "%",
        Beside(|run, other| percent(latency(run) / latency(other) - 1.0)),
    ),
    ("translation-accuracy", "translations prefetched that were used", "%", Own(translation_accuracy)),
    ("stack", "cycles", "per request", Stack(|of| of.operations)),
    ("shares", "share", "%", Stack(|of| of.core.cycles)),
];

/// A number with its name and unit.
pub(crate) struct Sample {
    pub(crate) metric: String,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
}

fn mean(run: &Run, quantity: impl Fn(&Window) -> f64) -> f64 {
    run.measurement.estimate(quantity).mean
}

fn each(run: &Run, count: fn(&Window) -> u64) -> f64 {
    mean(run, |window| count(window) as f64 / window.operations as f64)
}

fn percent(share: f64) -> f64 {
    100.0 * share
}

fn cycles(run: &Run) -> f64 {
    mean(run, Window::cycles)
}

fn confidence(run: &Run) -> f64 {
    percent(run.measurement.estimate(Window::cycles).half_width.unwrap_or(0.0) / cycles(run))
}

/// Who has no table, or one that does not say, has none to miss.
fn table_misses(run: &Run) -> Option<f64> {
    let says = run.measurement.windows.iter().any(|window| window.table_miss_rate().is_some());
    says.then(|| percent(mean(run, |window| window.table_miss_rate().unwrap_or(0.0))))
}

/// Loads, stores and walks that a cache did not have.
fn all_misses(counts: &CacheCounts) -> u64 {
    counts.load.misses + counts.store.misses + counts.walk.misses
}

/// Of a line, with what it waits for memory's channel.
fn latency(run: &Run) -> f64 {
    let waited = each(run, |window| window.core.waited_for_channel);
    let reads = mean(run, Window::memory_reads).max(f64::MIN_POSITIVE);
    f64::from(run.configuration.machine.memory.latency) + waited / reads
}

fn translation_accuracy(run: &Run) -> Option<f64> {
    let made = each(run, |window| window.memory.accesses.translations_prefetched);
    let used = each(run, |window| window.memory.accesses.prefetch_buffer_hits);
    Some(if made == 0.0 { 0.0 } else { percent(used / made) })
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

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Metric, String> {
        let place = METRICS.iter().position(|metric| metric.0 == name);
        place.map(Metric).ok_or_else(|| format!("there is no metric '{name}'"))
    }
}

impl Metric {
    /// Whether it compares.
    #[must_use]
    pub fn compares(self) -> bool {
        matches!(METRICS[self.0].3, Beside(_) | Saved(_))
    }

    /// The samples of `run`, beside `other` where it compares.
    pub(crate) fn of(self, run: &Run, other: &Run) -> Vec<Sample> {
        let (_, name, unit, formula) = &METRICS[self.0];
        let value = match *formula {
            Own(number) => number(run),
            Beside(number) => Some(number(run, other)),
            Saved(count) => {
                let before = each(other, count);
                Some(if before == 0.0 { 0.0 } else { percent(1.0 - each(run, count) / before) })
            }
            Stack(by) => {
                let sample = |(part, cycles): (&str, StackPart)| {
                    let value = mean(run, |of| cycles(&of.core.stack) as f64 / by(of) as f64);
                    let value = if *unit == "%" { percent(value) } else { value };
                    Sample { metric: format!("{name}: {part}"), unit, value }
                };
                return STACK.into_iter().map(sample).collect();
            }
        };
        value.map(|value| Sample { metric: (*name).into(), unit, value }).into_iter().collect()
    }
}
