//! What one simulated run measured: a file of JSON that whoever runs a guest writes and whoever compares runs reads.
//!
//! ```json
//! {
//!   "format": 1,
//!   "machine": "gainestown", "guest": "red-black tree", "variant": "stlt", "seed": 1,
//!   "windows": [
//!     { "operations": 32000, "fast_path": { "hits": 31400, "misses": 600 },
//!       "core": { "instructions": 0, "cycles": 0, "stack": {} },
//!       "memory": { "accesses": {}, "data_tlb": {}, "l1d": {}, "stlt": {} } }
//!   ]
//! }
//! ```
//!
//! A run is a warm-up and some windows; a window holds what was counted between its ends and nothing that was
//! derived from it, so two programs cannot disagree about a definition. Means and their confidence come from
//! [`Measurement::estimate`]: Student's t over the windows, as if they were independent. They nearly are: a
//! window of tens of thousands of lookups forgets what was in the caches before it.
//!
//! Unknown and missing fields are refused, and so is another [`FORMAT`]: numbers that mean something else
//! must not be compared.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::{CacheCounts, HitsAndMisses};
use crate::core::CoreStatistics;
use crate::statistics::Statistics;

/// The version of the file.
pub const FORMAT: u32 = 1;

/// One run of one guest on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// [`FORMAT`].
    pub format: u32,
    /// The name of the machine's profile.
    pub machine: String,
    /// The program that ran.
    pub guest: String,
    /// How it looked its keys up: `alone`, `slb`, `stlt-sw`, `stlt-va` or `stlt` for the guests of this project.
    pub variant: String,
    /// What its keys and requests were drawn with.
    pub seed: u64,
    /// What was counted, window by window.
    pub windows: Vec<Window>,
}

/// A part of a run that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Operations of the guest: lookups, as a rule.
    pub operations: u64,
    /// Operations that the table in front of the index answered with the right record, and those that it did
    /// not. Only the guest knows: a `loadVA` may find another key's record. Absent if it has none, or does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fast_path: Option<HitsAndMisses>,
    /// Instructions, cycles and what they were spent on.
    pub core: CoreStatistics,
    /// Accesses, TLBs, walks, caches, memory, and the STLT with its buffers.
    pub memory: Statistics,
}

/// A mean over windows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The mean of repeated runs lies this far from [`Estimate::mean`] at most, with 95 % confidence; none of
    /// a single window.
    pub half_width: Option<f64>,
    /// Windows.
    pub windows: usize,
}

/// Why a measurement cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasurementError {
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// It is not JSON, or not of this shape.
    #[error("this is no measurement: {0}; run it again with this version")]
    Syntax(String),
    /// It is of another version.
    #[error("the measurement is of format {found}, this version reads {FORMAT}: run it again")]
    Format {
        /// What the file says.
        found: u64,
    },
    /// There is nothing in it.
    #[error(
        "the measurement has no window in which anything was done: the guest ended before its warm-up did"
    )]
    Empty,
}

impl Measurement {
    /// Reads a measurement.
    ///
    /// # Errors
    /// If the text is no measurement of this [`FORMAT`], or nothing was measured in it.
    pub fn from_json(text: &str) -> Result<Measurement, MeasurementError> {
        let syntax = |error: serde_json::Error| MeasurementError::Syntax(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        // Of another format, the fields are others, too: say what is really the matter.
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => return Err(MeasurementError::Format { found }),
            _ => {}
        }
        let measurement: Measurement = serde_json::from_value(value).map_err(syntax)?;
        if measurement.windows.iter().all(|window| window.core.instructions == 0) {
            return Err(MeasurementError::Empty);
        }
        Ok(measurement)
    }

    /// The file's text.
    ///
    /// # Panics
    /// Never: every field is a number, a text or a list.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and texts are JSON")
    }

    /// Reads a measurement from a file.
    ///
    /// # Errors
    /// As [`Measurement::from_json`], and if the file cannot be read.
    pub fn read(path: &Path) -> Result<Measurement, MeasurementError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| MeasurementError::Io { path: path.to_owned(), error })?;
        Measurement::from_json(&text)
    }

    /// Writes the file whole or not at all: first beside its place, then into it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), MeasurementError> {
        let io = |error| MeasurementError::Io { path: path.to_owned(), error };
        let beside = path.with_extension("unfinished");
        std::fs::write(&beside, self.to_json() + "\n").map_err(io)?;
        std::fs::rename(&beside, path).map_err(io)
    }

    /// A quantity's mean over the windows. Windows without operations are left out; without any others the
    /// mean is not a number.
    #[must_use]
    pub fn estimate(&self, quantity: impl Fn(&Window) -> f64) -> Estimate {
        let values: Vec<f64> =
            self.windows.iter().filter(|window| window.operations > 0).map(quantity).collect();
        Estimate::of(&values)
    }
}

impl Window {
    fn each(&self, count: u64) -> f64 {
        count as f64 / self.operations as f64
    }

    /// Cycles of an operation.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        self.each(self.core.cycles)
    }

    /// Instructions of an operation.
    #[must_use]
    pub fn instructions(&self) -> f64 {
        self.each(self.core.instructions)
    }

    /// The program's loads and stores in an operation, each once however many bytes it has.
    #[must_use]
    pub fn memory_accesses(&self) -> f64 {
        self.each(self.memory.accesses.loads + self.memory.accesses.stores)
    }

    /// Loads and stores whose translation the first TLB did not have, in an operation.
    #[must_use]
    pub fn first_tlb_misses(&self) -> f64 {
        self.each(self.memory.data_tlb.misses)
    }

    /// Page walks for loads and stores in an operation: neither TLB, nor the STB, nor a prefetch helped.
    #[must_use]
    pub fn walks(&self) -> f64 {
        self.each(self.memory.accesses.data_walks)
    }

    /// Loads and stores in an operation that `cache` did not have; the page walker's reads are not among them.
    #[must_use]
    pub fn misses(&self, cache: impl Fn(&Statistics) -> CacheCounts) -> f64 {
        let counts = cache(&self.memory);
        self.each(counts.load.misses + counts.store.misses)
    }

    /// Lines read from memory in an operation, for whomever: the program, the walker, prefetchers.
    #[must_use]
    pub fn memory_reads(&self) -> f64 {
        self.each(self.memory.memory.reads + self.memory.memory.prefetches)
    }

    /// The share of operations that the table in front of the index did not answer, from 0 to 1.
    #[must_use]
    pub fn table_miss_rate(&self) -> Option<f64> {
        let counts = self.fast_path?;
        (counts.total() > 0).then(|| counts.misses as f64 / counts.total() as f64)
    }
}

impl Estimate {
    /// Of these values.
    #[must_use]
    pub fn of(values: &[f64]) -> Estimate {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let half_width = (values.len() > 1).then(|| {
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
            student(values.len() - 1) * (variance / count).sqrt()
        });
        Estimate { mean, half_width, windows: values.len() }
    }
}

/// The 97.5 % quantile of Student's t: printed tables, then the Cornish-Fisher expansion.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    let beyond = freedom as f64;
    match freedom {
        0 => f64::INFINITY,
        1..=30 => TABLE[freedom - 1],
        _ => 1.960 + 2.372 / beyond + 2.823 / (beyond * beyond),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(operations: u64, cycles: u64) -> Window {
        let core = CoreStatistics { instructions: 10 * operations, cycles, ..CoreStatistics::default() };
        Window { operations, core, ..Window::default() }
    }

    fn example() -> Measurement {
        let mut first = window(100, 20_000);
        first.fast_path = Some(HitsAndMisses { hits: 75, misses: 25 });
        first.memory.stlt.hits = 80;
        Measurement {
            format: FORMAT,
            machine: "gainestown".into(),
            guest: "B-tree".into(),
            variant: "stlt".into(),
            seed: u64::MAX,
            windows: vec![first, window(100, 22_000), window(200, 42_000), window(0, 3)],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.json");
        example().write(&path).expect("written");
        assert_eq!(Measurement::read(&path).expect("read"), example());
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("a folder").count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn other_shapes_are_refused() {
        let text = example().to_json();
        for (sound, defective, reason) in [
            ("\"format\": 1", "\"format\": 2", "is of format 2"),
            ("\"seed\"", "\"sead\"", "unknown field `sead`"),
            ("\"cycles\"", "\"cicles\"", "unknown field `cicles`"),
            ("\"guest\": \"B-tree\",", "", "missing field `guest`"),
            ("\"instructions\": ", "\"instructions\": 0.5", "invalid type"),
        ] {
            let error = Measurement::from_json(&text.replace(sound, defective)).expect_err(defective);
            assert!(error.to_string().contains(reason), "{error}");
        }
        let empty = Measurement { windows: Vec::new(), ..example() };
        assert!(matches!(Measurement::from_json(&empty.to_json()), Err(MeasurementError::Empty)));
        assert!(matches!(Measurement::from_json("{"), Err(MeasurementError::Syntax(_))));
    }

    #[test]
    fn the_mean_is_over_windows_and_its_confidence_student_s() {
        let cycles = example().estimate(Window::cycles);
        assert_eq!((cycles.mean, cycles.windows), (210.0, 3));
        // A standard deviation of 10 over three windows, at t = 4.303.
        let half_width = cycles.half_width.expect("several windows");
        assert!((half_width - 4.303 * 10.0 / 3_f64.sqrt()).abs() < 1e-9, "{half_width}");
        assert_eq!(Estimate::of(&[7.0]).half_width, None);
        assert!(Estimate::of(&[]).mean.is_nan());
        assert_eq!(example().windows[0].table_miss_rate(), Some(0.25));
        assert_eq!(example().windows[1].table_miss_rate(), None);
    }

    #[test]
    fn student_s_quantiles_fall_to_the_normal_one() {
        assert!((1..200).all(|freedom| student(freedom + 1) < student(freedom)));
        assert!((student(40) - 2.021).abs() < 0.001 && (student(120) - 1.980).abs() < 0.001);
    }
}
