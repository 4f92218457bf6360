//! Naming a measured number, and saying what is expected of it.
//!
//! A number is found by configuration, metric and point (the place on the figure's axis: a load, a number of threads).
//! What the papers claim are mostly ratios of two of them, and what a bar demands is sometimes a difference, so a
//! [`Quantity`] is a number, a ratio or a difference. Without a point it stands for all points at which its
//! configuration was measured, and an expectation of it must hold at the worst of them.

use serde::{Deserialize, Serialize};

use crate::results::Row;

/// What to put in relation: fields that are left out are those of the quantity itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Selector {
    /// Another configuration.
    pub configuration: Option<String>,
    /// Another metric.
    pub metric: Option<String>,
    /// Another point.
    pub point: Option<String>,
}

/// A measured number, or its relation to others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantity {
    /// The configuration.
    pub configuration: String,
    /// The metric.
    pub metric: String,
    /// The point; without one, every point.
    pub point: Option<String>,
    /// Divided by the largest of these, if any.
    #[serde(default)]
    pub over: Vec<Selector>,
    /// Less this one, if any.
    pub minus: Option<Selector>,
}

/// What is expected of a quantity.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The expectation in words.
    pub statement: String,
    /// The quantity.
    pub quantity: Quantity,
    /// It is not smaller than this.
    pub at_least: Option<f64>,
    /// It is not larger than this.
    pub at_most: Option<f64>,
}

/// The bound of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Not smaller.
    AtLeast(f64),
    /// Not larger.
    AtMost(f64),
}

/// Whether an expectation was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// At every point.
    Met,
    /// Not at the worst point.
    Missed,
    /// The rows that it speaks of were not measured: something was skipped.
    Unmeasured,
}

/// An expectation and what came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The expectation in words.
    pub statement: String,
    /// The bound.
    pub bound: Bound,
    /// What was measured, at the worst point.
    pub measured: Option<f64>,
    /// The worst point.
    pub point: Option<String>,
    /// Whether it was met.
    pub outcome: Outcome,
}

impl Quantity {
    /// The quantity at every point at which all of its parts were measured, as (point, value), from the medians of
    /// `rows`.
    #[must_use]
    pub fn measured(&self, rows: &[Row]) -> Vec<(String, f64)> {
        let find = |selector: &Selector, point: &str| {
            let configuration = selector.configuration.as_ref().unwrap_or(&self.configuration);
            let metric = selector.metric.as_ref().unwrap_or(&self.metric);
            let point = selector.point.as_deref().unwrap_or(point);
            rows.iter().find(|row| row.is(configuration, point, metric)).map(|row| row.median)
        };
        rows.iter()
            .filter(|row| row.configuration == self.configuration && row.metric == self.metric)
            .filter(|row| self.point.as_ref().is_none_or(|point| *point == row.point))
            .filter_map(|row| {
                let mut value = row.median;
                if !self.over.is_empty() {
                    let others = self.over.iter().filter_map(|selector| find(selector, &row.point));
                    value /= others.reduce(f64::max)?;
                }
                if let Some(selector) = &self.minus {
                    value -= find(selector, &row.point)?;
                }
                Some((row.point.clone(), value))
            })
            .collect()
    }

    /// Whether it is a number that was measured, neither a ratio nor a difference.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.over.is_empty() && self.minus.is_none()
    }

    /// The quantity in words, for a report.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut words = format!("{}, {}", self.configuration, self.metric);
        if let Some(point) = self.point.as_ref().filter(|point| !point.is_empty()) {
            words += &format!(", {point}");
        }
        let describe = |selector: &Selector| {
            [&selector.configuration, &selector.metric, &selector.point]
                .into_iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self.over.as_slice() {
            [] => {}
            [one] => words += &format!(" / {}", describe(one)),
            [first, ..] => {
                words += &format!(" / best of {} and {} more", describe(first), self.over.len() - 1)
            }
        }
        if let Some(selector) = &self.minus {
            words += &format!(" - {}", describe(selector));
        }
        words
    }
}

impl Expectation {
    /// What is wrong with the expectation itself, if anything.
    pub(super) fn defect(&self) -> Option<String> {
        let statement = &self.statement;
        match (self.bound(), &self.quantity) {
            (None, _) => Some(format!("'{statement}' needs one bound, at_least or at_most")),
            (_, Quantity { over, minus: Some(_), .. }) if !over.is_empty() => {
                Some(format!("'{statement}' is both a ratio and a difference: choose one"))
            }
            _ => None,
        }
    }

    fn bound(&self) -> Option<Bound> {
        match (self.at_least, self.at_most) {
            (Some(bound), None) => Some(Bound::AtLeast(bound)),
            (None, Some(bound)) => Some(Bound::AtMost(bound)),
            _ => None,
        }
    }

    /// Compares the expectation with what was measured.
    ///
    /// # Panics
    /// If it has no bound, which reading a definition refuses.
    #[must_use]
    pub fn judge(&self, rows: &[Row]) -> Verdict {
        let bound = self.bound().expect("a definition is refused if an expectation has no bound");
        let measured = self.quantity.measured(rows).into_iter();
        let by_value = |a: &(String, f64), b: &(String, f64)| a.1.total_cmp(&b.1);
        let worst = match bound {
            Bound::AtLeast(_) => measured.min_by(by_value),
            Bound::AtMost(_) => measured.max_by(by_value),
        };
        let outcome = match (&worst, bound) {
            (None, _) => Outcome::Unmeasured,
            (Some((_, value)), Bound::AtLeast(bound)) if *value >= bound => Outcome::Met,
            (Some((_, value)), Bound::AtMost(bound)) if *value <= bound => Outcome::Met,
            _ => Outcome::Missed,
        };
        let (point, measured) = worst.unzip();
        Verdict { statement: self.statement.clone(), bound, measured, point, outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::row;

    fn rows() -> Vec<Row> {
        vec![
            row("ours", "1 thread", "speed", 12.0),
            row("ours", "2 threads", "speed", 20.0),
            row("theirs", "1 thread", "speed", 4.0),
            row("theirs", "2 threads", "speed", 10.0),
            row("others", "1 thread", "speed", 5.0),
            row("ours", "", "longest", 9.0),
            row("ours fixed", "", "longest", 8.5),
        ]
    }

    fn expectation(text: &str) -> Expectation {
        toml::from_str(&format!("statement = 's'\n{text}")).unwrap()
    }

    fn verdict(text: &str) -> (Outcome, Option<f64>, Option<String>) {
        let verdict = expectation(text).judge(&rows());
        (verdict.outcome, verdict.measured, verdict.point)
    }

    #[test]
    fn an_expectation_without_a_point_is_judged_at_the_worst_one() {
        let ratio =
            "quantity = { configuration = 'ours', metric = 'speed', over = [{ configuration = 'theirs' }] }";
        let worst = Some("2 threads".to_string());
        assert_eq!(verdict(&format!("{ratio}\nat_least = 2.0")), (Outcome::Met, Some(2.0), worst.clone()));
        assert_eq!(verdict(&format!("{ratio}\nat_least = 2.1")), (Outcome::Missed, Some(2.0), worst));
        let best = Some("1 thread".to_string());
        assert_eq!(verdict(&format!("{ratio}\nat_most = 2.9")), (Outcome::Missed, Some(3.0), best));
    }

    #[test]
    fn a_ratio_is_to_the_best_of_the_others_that_were_measured_there() {
        let ratio = "quantity = { configuration = 'ours', metric = 'speed', point = '1 thread',
            over = [{ configuration = 'theirs' }, { configuration = 'others' }, { configuration = 'absent' }] }
            at_least = 2.5";
        assert_eq!(verdict(ratio), (Outcome::Missed, Some(2.4), Some("1 thread".into())));
    }

    #[test]
    fn a_difference_is_in_the_metric_s_own_unit() {
        let difference = "at_most = 0.5
            quantity = { configuration = 'ours', metric = 'longest', minus = { configuration = 'ours fixed' } }";
        assert_eq!(verdict(difference), (Outcome::Met, Some(0.5), Some(String::new())));
    }

    #[test]
    fn what_was_not_measured_is_neither_met_nor_missed() {
        for quantity in [
            "{ configuration = 'absent', metric = 'speed' }",
            "{ configuration = 'ours', metric = 'speed', point = '3 threads' }",
            "{ configuration = 'ours', metric = 'speed', over = [{ configuration = 'absent' }] }",
        ] {
            let verdict = verdict(&format!("quantity = {quantity}\nat_least = 0"));
            assert_eq!(verdict, (Outcome::Unmeasured, None, None));
        }
    }

    #[test]
    fn a_ratio_that_is_a_difference_too_is_refused() {
        let both = "quantity = { configuration = 'a', metric = 'm', over = [{}], minus = {} }\nat_least = 1";
        assert!(expectation(both).defect().is_some());
        let bounds = "quantity = { configuration = 'a', metric = 'm' }\nat_least = 1\nat_most = 2";
        assert!(expectation(bounds).defect().is_some());
    }
}
