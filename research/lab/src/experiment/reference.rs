//! The papers' numbers beside ours.
//!
//! `research/experiments/papers/` holds the figures that the papers print, as CSV. A reference picks one of them by the
//! values of its columns and names the quantity of ours that stands beside it. Where the two differ the definition says
//! why: the sentence is written by who looked into it, and printed with the numbers.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::ExperimentError;
use super::files;
use super::quantity::Quantity;
use crate::results::Row;

/// A paper's number and what stands beside it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The CSV file, relative to the definitions' folder.
    pub file: String,
    /// The values that the columns must have: exactly one line of the file has them.
    pub filter: BTreeMap<String, String>,
    /// The column that holds the number.
    #[serde(default = "value_column")]
    pub column: String,
    /// The quantity of ours.
    pub ours: Quantity,
    /// What of ours stands there: it must be what the paper's number is.
    #[serde(default)]
    pub ours_as: Form,
    /// Why ours is another number, where it is.
    pub differs: Option<String>,
}

/// How a quantity of ours is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// As it was measured.
    #[default]
    Measured,
    /// A ratio, as per cent that it is above one.
    Gain,
    /// A ratio, as per cent that it is below one.
    Loss,
}

impl Form {
    fn of(self, measured: f64) -> f64 {
        match self {
            Form::Measured => measured,
            Form::Gain => 100.0 * (measured - 1.0),
            Form::Loss => 100.0 * (1.0 - measured),
        }
    }
}

fn value_column() -> String {
    "value".into()
}

/// A paper's number with ours beside it.
#[derive(Debug, Clone, Serialize)]
pub struct Beside {
    /// What was measured, in words.
    pub quantity: String,
    /// The paper's number.
    pub paper: f64,
    /// Its unit, where the file has one.
    pub unit: String,
    /// Where in the paper it stands, where the file says so.
    pub exhibit: String,
    /// Our number at each point that was measured.
    pub ours: Vec<(String, f64)>,
    /// Why they differ.
    pub differs: Option<String>,
}

impl Reference {
    /// Looks the paper's number up below `folder` and puts ours beside it.
    ///
    /// # Errors
    /// [`ExperimentError::Reference`] where not exactly one line fits, or it holds no number.
    pub fn beside(&self, folder: &Path, rows: &[Row]) -> Result<Beside, ExperimentError> {
        let path = folder.join(&self.file);
        let wrong = |reason: String| ExperimentError::Reference { path: path.clone(), reason };
        let text = files::read(&path).map_err(|error| wrong(error.to_string()))?;
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let mut fitting = Vec::new();
        for line in reader.deserialize::<BTreeMap<String, String>>() {
            let line = line.map_err(|error| wrong(error.to_string()))?;
            if self.filter.iter().all(|(column, value)| line.get(column) == Some(value)) {
                fitting.push(line);
            }
        }
        let [line] = fitting.as_slice() else {
            return Err(wrong(format!("{} lines fit {:?}: exactly one must", fitting.len(), self.filter)));
        };
        let text =
            line.get(&self.column).ok_or_else(|| wrong(format!("it has no column '{}'", self.column)))?;
        let paper = text.parse().map_err(|_| wrong(format!("'{text}' is no number")))?;
        let column = |name: &str| line.get(name).cloned().unwrap_or_default();
        let ours = self.ours.measured(rows).into_iter();
        Ok(Beside {
            quantity: self.ours.describe(),
            paper,
            unit: column("unit"),
            exhibit: column("where"),
            ours: ours.map(|(point, measured)| (point, self.ours_as.of(measured))).collect(),
            differs: self.differs.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::row;

    fn beside(filter: &str) -> Result<Beside, ExperimentError> {
        let folder = tempfile::tempdir().unwrap();
        let csv = "configuration,metric,value,unit,where\na,speed,7.5,M/s,Fig 1\n\
                   a,space,13,B,Table 2\nb,speed,fast,M/s,Fig 1\n";
        std::fs::write(folder.path().join("paper.csv"), csv).unwrap();
        let text = format!(
            "file = 'paper.csv'\nfilter = {filter}\nours = {{ configuration = 'x', metric = 'speed' }}\n\
                 differs = 'Faster.'"
        );
        let reference: Reference = toml::from_str(&text).unwrap();
        reference.beside(folder.path(), &[row("x", "1 thread", "speed", 9.0)])
    }

    #[test]
    fn the_line_that_fits_is_found() {
        let beside = beside("{ configuration = 'a', metric = 'speed' }").unwrap();
        assert_eq!((beside.paper, beside.unit.as_str(), beside.exhibit.as_str()), (7.5, "M/s", "Fig 1"));
        assert_eq!(beside.ours, [("1 thread".to_string(), 9.0)]);
    }

    #[test]
    fn a_ratio_is_said_as_the_paper_says_it() {
        for (form, ratio, said) in
            [(Form::Measured, 1.5, 1.5), (Form::Gain, 1.5, 50.0), (Form::Loss, 0.75, 25.0)]
        {
            assert_eq!(form.of(ratio), said);
        }
        let text = "file = 'f'\nfilter = {}\nours = { configuration = 'x', metric = 'y' }\nours_as = 'gain'";
        assert_eq!(toml::from_str::<Reference>(text).unwrap().ours_as, Form::Gain);
        assert!(toml::from_str::<Reference>(&text.replace("'gain'", "'percent'")).is_err());
    }

    #[test]
    fn none_several_or_no_number_are_errors() {
        for (filter, reason) in [
            ("{ configuration = 'c' }", "0 lines fit"),
            ("{ configuration = 'a' }", "2 lines fit"),
            ("{ configuration = 'b' }", "no number"),
            ("{ column = 'a' }", "0 lines fit"),
        ] {
            let error = beside(filter).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
