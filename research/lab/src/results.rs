//! Results: rows of CSV, and where they come from.
//!
//! Every run of an experiment is one file, `<machine>/<date>-<experiment>.csv`. It opens with comment lines, which
//! together are a TOML document: the experiment, the machine, the revision, the compiler, the date. The rows follow:
//! one number each, with the median and the extremes of its runs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::experiment::Scale;
use crate::machine::Provenance;

/// What a comment line begins with.
const COMMENT: &str = "# ";

/// One measured number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub configuration: String,
    /// Where on the axis of the figure: a load, a number of threads; empty where there is no axis.
    pub point: String,
    /// Which of its properties.
    pub metric: String,
    /// The unit of the numbers.
    pub unit: String,
    /// The median over the runs.
    pub median: f64,
    /// The smallest.
    pub minimum: f64,
    /// The largest.
    pub maximum: f64,
    /// How many runs.
    pub runs: usize,
    /// The pages that the configuration lay in, as the kernel reported them; empty where it does not matter.
    pub pages: String,
}

impl Row {
    /// Whether this is the number of that name.
    #[must_use]
    pub fn is(&self, configuration: &str, point: &str, metric: &str) -> bool {
        self.configuration == configuration && self.point == point && self.metric == metric
    }

    pub(crate) fn is_finite(&self) -> bool {
        self.median.is_finite() && self.minimum.is_finite() && self.maximum.is_finite()
    }
}

/// What a run of an experiment measured. All but the rows is the comment lines of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The experiment's name.
    pub experiment: String,
    /// How large it was run.
    pub scale: Scale,
    /// What could not be measured, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// The numbers.
    #[serde(skip)]
    pub rows: Vec<Row>,
}

/// Why results could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// A file or folder could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
    /// A file holds something else than results.
    #[error("{} holds no results: {reason}; remove it, or run the experiment again", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl Results {
    /// Where the results are kept below `folder`.
    #[must_use]
    pub fn path(&self, folder: &Path) -> PathBuf {
        let machine = self.provenance.machine.slug();
        let date = self.provenance.date.get(..10).unwrap_or(&self.provenance.date);
        folder.join(machine).join(format!("{date}-{}.csv", self.experiment))
    }

    /// Writes the file, in the place of one of the same day, and says where it is.
    ///
    /// # Errors
    /// [`ResultsError::Io`]: the one of the same day is as it was.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ResultsError> {
        let path = self.path(folder);
        let io = |error| ResultsError::Io { path: path.clone(), error };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(io)?;
        }
        let unfinished = path.with_extension("csv.unfinished");
        let written = fs::write(&unfinished, self.to_text()).and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            io(error)
        })?;
        Ok(path)
    }

    /// The content of the file.
    ///
    /// # Panics
    /// Never: writing to memory does not fail, and every field can be written.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        let header = toml::to_string(self).expect("a header is tables of texts and numbers");
        let mut text = Vec::new();
        for line in header.lines() {
            writeln!(text, "{}", format!("{COMMENT}{line}").trim_end()).expect("memory takes all");
        }
        let mut writer = csv::Writer::from_writer(text);
        for row in &self.rows {
            writer.serialize(row).expect("a row is texts and numbers");
        }
        writer.into_inner().expect("memory takes all")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ResultsError`]
    pub fn read(path: &Path) -> Result<Results, ResultsError> {
        let text =
            fs::read_to_string(path).map_err(|error| ResultsError::Io { path: path.to_owned(), error })?;
        Self::parse(&text).map_err(|reason| ResultsError::Malformed { path: path.to_owned(), reason })
    }

    fn parse(text: &str) -> Result<Results, String> {
        let comments: Vec<_> = text.lines().map_while(|line| line.strip_prefix(COMMENT.trim_end())).collect();
        let header: Results = toml::from_str(&comments.join("\n")).map_err(|error| error.to_string())?;
        let rows = csv::ReaderBuilder::new()
            .comment(Some(COMMENT.as_bytes()[0]))
            .from_reader(text.as_bytes())
            .deserialize()
            .collect::<Result<_, _>>()
            .map_err(|error: csv::Error| error.to_string())?;
        Ok(Results { rows, ..header })
    }

    /// The newest results of the experiment `name` below `folder`, of whichever machine; `None` where there are none.
    ///
    /// # Errors
    /// [`ResultsError`], for a file of that name that cannot be read.
    pub fn newest(folder: &Path, name: &str) -> Result<Option<Results>, ResultsError> {
        let mut newest: Option<Results> = None;
        for machine in entries(folder)? {
            for path in if machine.is_dir() { entries(&machine)? } else { Vec::new() } {
                // `2026-11-21-name.csv`
                let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                if stem.get(10..).and_then(|rest| rest.strip_prefix('-')) != Some(name) {
                    continue;
                }
                let results = Self::read(&path)?;
                if newest.as_ref().is_none_or(|newest| newest.provenance.date < results.provenance.date) {
                    newest = Some(results);
                }
            }
        }
        Ok(newest)
    }
}

/// The paths in a folder, in order; none where there is no folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let io = |error| ResultsError::Io { path: folder.to_owned(), error };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).map_err(io)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>().map_err(io)?;
    paths.sort();
    Ok(paths)
}

/// A row for tests.
#[cfg(test)]
pub(crate) fn row(configuration: &str, point: &str, metric: &str, median: f64) -> Row {
    Row {
        configuration: configuration.into(),
        point: point.into(),
        metric: metric.into(),
        unit: "M/s".into(),
        median,
        minimum: median,
        maximum: median,
        runs: 1,
        pages: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn results(date: &str, rows: Vec<Row>) -> Results {
        let provenance = Provenance { date: date.into(), ..Provenance::default() };
        let skipped = vec!["libcuckoo: libcuckoo-dev is not installed".to_string()];
        Results { experiment: "table2".into(), scale: Scale::Full, skipped, provenance, rows }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            texts in prop::collection::vec("[ -~é]{0,12}", 5),
            numbers in prop::collection::vec(-1e12f64..1e12, 3),
            runs in 1usize..100,
        ) {
            let row = Row {
                configuration: format!("{}x", texts[0]), point: texts[1].clone(), metric: texts[2].clone(),
                unit: texts[3].clone(), median: numbers[0], minimum: numbers[1], maximum: numbers[2], runs,
                pages: texts[4].clone(),
            };
            let written = results("2026-11-21T10:00:00Z", vec![row]);
            let text = String::from_utf8(written.to_text()).unwrap();
            // A configuration that begins as a comment does would be lost: the definitions name none so.
            prop_assume!(!texts[0].starts_with('#'));
            prop_assert_eq!(Results::parse(&text).unwrap(), written);
        }
    }

    #[test]
    fn the_newest_of_a_name_is_found() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Results::newest(folder.path(), "table2").unwrap().is_none());
        assert!(Results::newest(&folder.path().join("absent"), "table2").unwrap().is_none());
        for (date, value) in [("2026-11-22T08:00:00Z", 2.0), ("2026-11-21T09:00:00Z", 1.0)] {
            let path = results(date, vec![row("a", "", "m", value)]).write(folder.path()).unwrap();
            assert!(path.ends_with(format!("{}-table2.csv", &date[..10])), "{}", path.display());
        }
        let newest = Results::newest(folder.path(), "table2").unwrap().unwrap();
        assert_eq!(newest.rows[0].median, 2.0);
        assert!(Results::newest(folder.path(), "2-table2").unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_written_takes_nothing_away() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |value| results("2026-11-21T09:00:00Z", vec![row("a", "", "m", value)]).write(folder.path());
        let path = write(1.0).unwrap();
        let in_the_way = path.with_extension("csv.unfinished");
        fs::create_dir(&in_the_way).unwrap();
        assert!(matches!(write(2.0), Err(ResultsError::Io { .. })));
        assert_eq!(Results::read(&path).unwrap().rows[0].median, 1.0);
        fs::remove_dir(&in_the_way).unwrap();
        assert_eq!(Results::read(&write(2.0).unwrap()).unwrap().rows[0].median, 2.0);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let sound = results("2026-11-21T09:00:00Z", vec![row("a", "", "m", 1.0)]);
        let path = sound.write(folder.path()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for broken in [
            String::new(),
            text.replace("scale = \"full\"", "scale = \"half\""),
            text.replace("a,,m,M/s,1.0", "a,,m,M/s,many"),
            text.replace("a,,m", "a,m"),
        ] {
            assert_ne!(broken, text);
            fs::write(&path, broken).unwrap();
            assert!(matches!(Results::newest(folder.path(), "table2"), Err(ResultsError::Malformed { .. })));
        }
    }
}
