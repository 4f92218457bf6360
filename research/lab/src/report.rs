//! Results as text: our numbers, the paper's beside them, and whether what was expected of them is so.
//!
//! Nothing is left out: what was skipped, what was missed and where we lose stand in the same tables as the rest.

use std::borrow::Cow;
use std::fmt::{self, Write};

use serde::Serialize;

use crate::experiment::{
    Beside, Bound, Definition, ExperimentError, Labels, Outcome, Scale, Verdict, is_file,
};
use crate::machine::Provenance;
use crate::results::{Results, Row};

/// What is said of every quick run.
pub(crate) const QUICK: &str = "A quick run: it shows that the experiment works; its numbers mean nothing.";

/// An expectation that was not met.
pub(crate) const MISSED: &str = "MISSED";

/// The report of one experiment: text by `Display`, JSON by `Serialize`.
#[derive(Debug, Serialize)]
pub struct Report<'r> {
    /// The experiment's name.
    pub experiment: &'r str,
    /// What is measured; of a quick run, that it is one.
    pub title: Cow<'r, str>,
    /// The paper's table or figure, if it reproduces one.
    pub reproduces: Option<String>,
    /// How it is measured.
    pub about: &'r str,
    /// Why our numbers differ from the paper's, all in all, where who looked into it has written it down; not of a
    /// quick run.
    pub differs: Option<&'r str>,
    /// Whether the numbers are those of a quick run, which mean nothing.
    pub quick: bool,
    /// What was run: the parameters, as TOML.
    pub parameters: String,
    /// Where the numbers come from.
    pub provenance: &'r Provenance,
    /// The numbers; of a quick run at points that are called what they are.
    pub rows: Cow<'r, [Row]>,
    /// What could not be measured.
    pub skipped: &'r [String],
    /// Runs and points that the definition asks for and the results do not have.
    pub shortfalls: Vec<String>,
    /// The paper's numbers beside ours.
    pub beside: Vec<Beside>,
    /// What became of the expectations; empty for a quick run.
    pub verdicts: Vec<Verdict>,
}

impl<'r> Report<'r> {
    /// The report of `results`, which are those of `definition`; references are looked up beside the definition or,
    /// where that is in a subfolder, above it.
    ///
    /// # Errors
    /// [`ExperimentError::Reference`] where a reference leads nowhere.
    pub fn of(definition: &'r Definition, results: &'r Results) -> Result<Report<'r>, ExperimentError> {
        let labels = Labels::of(definition, results.scale);
        let quick = results.scale == Scale::Quick;
        let folder = definition.path.parent().unwrap_or(&definition.path);
        let beside = definition.references.iter().map(|reference| {
            let found = folder.ancestors().find(|above| is_file(&above.join(&reference.file)));
            let mut beside = reference.beside(found.unwrap_or(folder), &results.rows)?;
            beside.quantity = labels.apply(&beside.quantity);
            beside.ours.iter_mut().for_each(|(point, _)| *point = labels.apply(point));
            Ok::<_, ExperimentError>(beside)
        });
        let verdicts = match results.scale {
            Scale::Full => {
                definition.expectations.iter().map(|expectation| expectation.judge(&results.rows)).collect()
            }
            Scale::Quick => Vec::new(),
        };
        let title = definition.title.as_str();
        let parameters = toml::to_string(&definition.parameters_for(results.scale)).unwrap_or_default();
        let labelled = |row: &Row| Row {
            configuration: labels.apply(&row.configuration),
            point: labels.apply(&row.point),
            ..row.clone()
        };
        Ok(Report {
            experiment: &definition.name,
            title: if quick { format!("{title}: a quick run").into() } else { title.into() },
            reproduces: definition
                .reproduces
                .as_ref()
                .map(|source| format!("{}, {}", source.paper, source.exhibit)),
            about: &definition.about,
            differs: definition.differs.as_deref().filter(|_| !quick),
            quick,
            parameters: labels.apply(parameters.trim()),
            provenance: &results.provenance,
            rows: if quick {
                results.rows.iter().map(labelled).collect()
            } else {
                Cow::Borrowed(results.rows.as_slice())
            },
            skipped: &results.skipped,
            shortfalls: results.shortfalls(definition),
            beside: beside.collect::<Result<_, _>>()?,
            verdicts,
        })
    }

    /// The report as a JSON document.
    ///
    /// # Panics
    /// Never: it is texts and numbers.
    #[must_use]
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("a report is texts and numbers")
    }

    /// Whether every expectation was met.
    #[must_use]
    pub fn all_met(&self) -> bool {
        self.verdicts.iter().all(|verdict| verdict.outcome == Outcome::Met)
    }
}

/// Several reports, or what [`Report::to_value`] made of them, as one JSON document: an array.
///
/// # Panics
/// Never: they are texts and numbers.
#[must_use]
pub fn to_json(reports: &[impl Serialize]) -> String {
    serde_json::to_string_pretty(reports).expect("a report is texts and numbers")
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.experiment, self.title)?;
        if let Some(source) = &self.reproduces {
            writeln!(f, "after {source}")?;
        }
        if self.quick {
            writeln!(f, "{QUICK} What was run:\n{}\nIn full, which this is not:", self.parameters)?;
        }
        writeln!(f, "{}", self.about.trim())?;
        writeln!(f, "{}", self.provenance)?;
        for shortfall in &self.shortfalls {
            writeln!(f, "{shortfall}")?;
        }
        write!(f, "\n{}", self.numbers())?;
        for skipped in self.skipped {
            writeln!(f, "skipped: {skipped}")?;
        }
        if !self.beside.is_empty() {
            write!(f, "\nThe paper's numbers and ours:\n{}", self.papers())?;
            for (quantity, differs) in self.differences() {
                writeln!(f, "{quantity}: {differs}")?;
            }
        }
        if !self.verdicts.is_empty() {
            write!(f, "\n{}", self.outcomes())?;
        }
        Ok(())
    }
}

/// What reports have as tables, as text and on a page.
impl Report<'_> {
    /// All numbers.
    pub(crate) fn numbers(&self) -> Table {
        let mut table =
            Table::new(["configuration", "at", "metric", "median", "from", "to", "unit", "runs", "pages"]);
        for row in self.rows.iter() {
            table.add([
                row.configuration.clone(),
                row.point.clone(),
                row.metric.clone(),
                number(row.median),
                number(row.minimum),
                number(row.maximum),
                row.unit.clone(),
                row.runs.to_string(),
                row.pages.clone(),
            ]);
        }
        table
    }

    /// The paper's numbers beside ours.
    pub(crate) fn papers(&self) -> Table {
        let mut table = Table::new(["quantity", "paper", "ours", "unit", "where"]);
        for beside in &self.beside {
            table.add([
                beside.quantity.clone(),
                number(beside.paper),
                ours(beside),
                beside.unit.clone(),
                beside.exhibit.clone(),
            ]);
        }
        table
    }

    /// Why ours are others, where that is known: of which quantity, and why.
    pub(crate) fn differences(&self) -> impl Iterator<Item = (&str, &str)> {
        self.beside
            .iter()
            .filter_map(|beside| Some((beside.quantity.as_str(), beside.differs.as_ref()?.trim())))
    }

    /// What was expected and what came of it.
    pub(crate) fn outcomes(&self) -> Table {
        let mut table = Table::new(["expected", "bound", "measured", "at", ""]);
        for verdict in &self.verdicts {
            table.add([
                verdict.statement.clone(),
                match verdict.bound {
                    Bound::AtLeast(bound) => format!("≥ {bound}"),
                    Bound::AtMost(bound) => format!("≤ {bound}"),
                },
                verdict.measured.map_or_else(String::new, number),
                verdict.point.clone().unwrap_or_default(),
                match verdict.outcome {
                    Outcome::Met => "met".into(),
                    Outcome::Missed => MISSED.into(),
                    Outcome::Unmeasured => "not measured".into(),
                },
            ]);
        }
        table
    }
}

/// Our numbers beside one of a paper's, in words.
fn ours(beside: &Beside) -> String {
    match beside.ours.as_slice() {
        [] => "not measured".into(),
        [(_, only)] => number(*only),
        several => {
            let points = several.iter().map(|(point, value)| format!("{} ({point})", number(*value)));
            points.collect::<Vec<_>>().join(", ")
        }
    }
}

/// A number with about four digits, and without a fraction where it is large.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        0.0 => 0,
        ..0.1 => 4,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// A table: as text, in columns as wide as they need to be.
pub(crate) struct Table {
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'t>(head: impl IntoIterator<Item = &'t str>) -> Table {
        Table { head: head.into_iter().map(str::to_owned).collect(), lines: Vec::new() }
    }

    /// Adds a line, of as many cells as the head has.
    pub(crate) fn add(&mut self, line: impl Into<Vec<String>>) {
        self.lines.push(line.into());
    }

    /// The names of the columns, and whether each begins with a number.
    pub(crate) fn head(&self) -> impl Iterator<Item = (&str, bool)> {
        let first = |column: usize| self.lines.first().is_some_and(|line| is_number(&line[column]));
        self.head.iter().enumerate().map(move |(column, name)| (name.as_str(), first(column)))
    }

    /// The lines, each of as many cells as the head has.
    pub(crate) fn lines(&self) -> &[Vec<String>] {
        &self.lines
    }
}

/// Whether a cell is a number: it stands at the right then, and so does the head of a column that begins with one.
pub(crate) fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = [&self.head].into_iter().chain(&self.lines).map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.head.len()).map(width).collect();
        let lines =
            self.lines.iter().map(|line| line.iter().map(|cell| (cell.as_str(), is_number(cell))).collect());
        for line in std::iter::once(self.head().collect::<Vec<_>>()).chain(lines) {
            let mut text = String::new();
            for ((cell, at_right), &width) in line.into_iter().zip(&widths) {
                if at_right {
                    write!(text, "{cell:>width$}  ")?;
                } else {
                    write!(text, "{cell:<width$}  ")?;
                }
            }
            writeln!(f, "  {}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::row;
    use std::path::Path;

    const DEFINITION: &str = r#"
name = "speed"
title = "Speed of <two> tables"
reproduces = { paper = "A paper", exhibit = "Figure 1" }
kind = "none"
about = "Two tables are compared."
differs = "Our machine is newer.\n\nAnd larger."
runs = 3
[rows]
configurations = ["ours", "theirs"]
metrics = ["speed"]
[[expectations]]
statement = "ours is faster"
quantity = { configuration = "ours", metric = "speed", over = [{ configuration = "theirs" }] }
at_least = 2
[[expectations]]
statement = "theirs is fast"
quantity = { configuration = "theirs", metric = "speed" }
at_least = 100
[[expectations]]
statement = "a third one exists"
quantity = { configuration = "third", metric = "speed" }
at_least = 1
[[references]]
file = "papers/paper.csv"
filter = { configuration = "theirs" }
ours = { configuration = "theirs", metric = "speed", point = "R = 1 M, 1 thread" }
differs = "Memory & caches."
[[references]]
file = "papers/paper.csv"
filter = { configuration = "gain" }
ours = { configuration = "ours", metric = "speed", over = [{ configuration = "theirs" }] }
"#;

    /// An experiment with something of everything that a report tells.
    pub(crate) fn with_report(scale: Scale, check: impl FnOnce(&Definition, &Report<'_>)) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("papers")).unwrap();
        let csv = "configuration,value,unit,where\ntheirs,7.43,Mops,Table 2\ngain,2,x,Table 2\n";
        std::fs::write(folder.path().join("papers/paper.csv"), csv).unwrap();
        // A definition in a subfolder, as those of other programs are.
        let path = folder.path().join("peers").join("speed.toml");
        let definition = Definition::parse(DEFINITION, Path::new(&path)).unwrap();
        let points = ["R = 1 M, 1 thread", "R = 1 M, 2 threads", "R = 10 M, 1 thread", "R = 10 M, 2 threads"];
        let rows = points.iter().flat_map(|point| {
            [row("ours", point, "speed", 25.0), Row { maximum: 20.0, ..row("theirs", point, "speed", 10.0) }]
        });
        let results = Results {
            experiment: "speed".into(),
            scale,
            skipped: vec!["third: it is not installed".into()],
            provenance: Provenance { allocator: "system".into(), ..Provenance::default() },
            rows: rows.collect(),
        };
        check(&definition, &Report::of(&definition, &results).unwrap());
    }

    #[test]
    fn met_missed_and_unmeasured_are_all_told() {
        with_report(Scale::Full, |_, report| {
            let outcomes: Vec<_> = report.verdicts.iter().map(|verdict| verdict.outcome).collect();
            assert_eq!(outcomes, [Outcome::Met, Outcome::Missed, Outcome::Unmeasured]);
            assert!(!report.all_met());
            let text = report.to_string();
            for part in [
                "after A paper, Figure 1",
                "MISSED",
                "not measured",
                "7.43",
                "Memory & caches.",
                "skipped: third",
                "kept with 1 of 3 runs",
            ] {
                assert!(text.contains(part), "{part} is not in\n{text}");
            }
            let json = to_json(std::slice::from_ref(report));
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json[0]["verdicts"][0]["outcome"], "met");
            assert_eq!(json[0]["beside"][0]["paper"], 7.43);
            assert_eq!(json[0]["shortfalls"][0], "kept with 1 of 3 runs");
        });
    }

    #[test]
    fn a_quick_run_is_called_one_and_judges_nothing() {
        with_report(Scale::Quick, |_, report| {
            assert!(report.verdicts.is_empty());
            assert!(report.to_string().contains("mean nothing"));
        });
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["name", "speed"]);
        table.add(["a".into(), "12.5".into()]);
        table.add(["longer".into(), "1".into()]);
        assert_eq!(table.to_string(), "  name    speed\n  a        12.5\n  longer      1\n");
    }
}
