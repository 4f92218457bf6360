//! What an experiment sees while it runs: how often to measure, where to put the samples, whom to tell how far it is.

use std::borrow::Cow;

use indicatif::{ProgressBar, ProgressStyle};

use crate::measure::Summary;
use crate::results::Row;

/// One run of one definition.
#[derive(Debug)]
pub struct Session {
    runs: usize,
    series: Vec<Series>,
    pages: Vec<(String, String)>,
    skipped: Vec<Skip>,
    progress: ProgressBar,
}

/// Samples of one number.
#[derive(Debug)]
struct Series {
    configuration: String,
    point: String,
    metric: Cow<'static, str>,
    unit: &'static str,
    samples: Vec<f64>,
}

/// A configuration that could not be measured here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Skip {
    pub(super) configuration: String,
    pub(super) reason: String,
}

impl Session {
    /// A session that measures everything `runs` times and shows its progress on `progress`.
    #[must_use]
    pub fn new(runs: usize, progress: ProgressBar) -> Session {
        Session { runs, series: Vec::new(), pages: Vec::new(), skipped: Vec::new(), progress }
    }

    /// A progress bar on standard error, which shows itself only if that is a terminal.
    ///
    /// # Panics
    /// Never: the bar's template is a constant.
    #[must_use]
    pub fn progress_bar(name: &str) -> ProgressBar {
        let style =
            ProgressStyle::with_template("{prefix} [{elapsed_precise}] {bar:30} {pos}/{len} {wide_msg}")
                .expect("the template is well-formed");
        ProgressBar::new(0).with_style(style).with_prefix(name.to_owned())
    }

    /// How often everything is to be measured.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Announces steps to come.
    pub fn announce(&self, steps: usize) {
        self.progress.inc_length(steps as u64);
    }

    /// Tells that a step begins.
    pub fn begin(&self, what: impl Into<Cow<'static, str>>) {
        self.progress.set_message(what);
        // A bar redraws when it is told to, and a step may be long.
        self.progress.tick();
    }

    /// Tells that a step has ended.
    pub fn end(&self) {
        self.progress.inc(1);
    }

    /// Adds a sample of `metric`, in `unit`, to what was measured of `configuration` at `point`.
    pub fn record(
        &mut self,
        configuration: &str,
        point: &str,
        metric: impl Into<Cow<'static, str>>,
        unit: &'static str,
        sample: f64,
    ) {
        let metric = metric.into();
        let known = self.series.iter_mut().find(|series| {
            (&*series.configuration, &*series.point, &series.metric) == (configuration, point, &metric)
        });
        match known {
            Some(series) => series.samples.push(sample),
            None => self.series.push(Series {
                configuration: configuration.to_owned(),
                point: point.to_owned(),
                metric,
                unit,
                samples: vec![sample],
            }),
        }
    }

    /// Records the pages that a configuration lies in, as the kernel reported them.
    pub fn record_pages(&mut self, configuration: &str, pages: String) {
        match self.pages.iter_mut().find(|(known, _)| known == configuration) {
            Some((_, known)) => *known = pages,
            None => self.pages.push((configuration.to_owned(), pages)),
        }
    }

    /// Records that a configuration cannot be measured here, and why.
    pub fn skip(&mut self, configuration: &str, reason: impl Into<String>) {
        let skip = Skip { configuration: configuration.to_owned(), reason: reason.into() };
        if !self.skipped.contains(&skip) {
            self.skipped.push(skip);
        }
    }

    /// The rows measured, and what was skipped.
    pub(super) fn finish(self) -> (Vec<Row>, Vec<Skip>) {
        self.progress.finish_and_clear();
        let pages_of = |configuration: &str| {
            let known = self.pages.iter().find(|(known, _)| known == configuration);
            known.map(|(_, pages)| pages.clone()).unwrap_or_default()
        };
        let rows = self.series.into_iter().map(|series| {
            let summary = Summary::of(&series.samples);
            Row {
                pages: pages_of(&series.configuration),
                configuration: series.configuration,
                point: series.point,
                metric: series.metric.into_owned(),
                unit: series.unit.to_owned(),
                median: summary.median,
                minimum: summary.minimum,
                maximum: summary.maximum,
                runs: series.samples.len(),
            }
        });
        (rows.collect(), self.skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_number_become_one_row() {
        let mut session = Session::new(3, ProgressBar::hidden());
        for sample in [5.0, 1.0, 4.0] {
            session.record("a", "1 thread", "speed", "M/s", sample);
            session.record("a", "2 threads", "speed", "M/s", 2.0 * sample);
        }
        session.record_pages("a", "thp".into());
        session.skip("b", "it is not installed");
        session.skip("b", "it is not installed");
        let (rows, skipped) = session.finish();
        let numbers: Vec<_> =
            rows.iter().map(|row| (row.median, row.minimum, row.maximum, row.runs)).collect();
        assert_eq!(numbers, [(4.0, 1.0, 5.0, 3), (8.0, 2.0, 10.0, 3)]);
        assert!(rows.iter().all(|row| row.pages == "thp"));
        assert_eq!(skipped.len(), 1);
    }
}
