//! Kinds of experiment by name, and running a definition with the kind that it names.

use serde::de::DeserializeOwned;

use super::definition::{Definition, Scale};
use super::session::{Session, Skip};
use super::{ExperimentError, Promise};
use crate::machine::Provenance;
use crate::results::{Results, Row};

/// A kind of experiment: measures what `P` describes and records it in the session.
pub type RunKind<P> = fn(&P, &mut Session) -> Result<(), ExperimentError>;

/// A kind with its parameters' type forgotten.
type Run = Box<dyn Fn(&Definition, Scale, &mut Session) -> Result<(), ExperimentError>>;

/// The kinds of experiment that a program has.
pub struct Laboratory {
    kinds: Vec<(&'static str, Run)>,
}

impl Laboratory {
    /// A laboratory without any kinds.
    #[must_use]
    pub fn empty() -> Laboratory {
        Laboratory { kinds: Vec::new() }
    }

    /// A laboratory with the kinds of this crate.
    #[must_use]
    pub fn new() -> Laboratory {
        let own = crate::index::add_kinds(Laboratory::empty());
        let own = crate::lookaside::add_kinds(crate::cache::add_kinds(own));
        let own = crate::art::add_kinds(own);
        crate::servers::add_kinds(crate::traces::add_kinds(own))
    }

    /// Adds a kind, whose parameters are read as `P`; or replaces the one of this name, by one with more subjects.
    ///
    /// `P` should refuse unknown fields.
    #[must_use]
    pub fn with_kind<P: DeserializeOwned + 'static>(
        mut self,
        name: &'static str,
        run: RunKind<P>,
    ) -> Laboratory {
        let run: Run = Box::new(move |definition, scale, session| {
            let parameters = definition.parameters_for(scale);
            let parameters = P::deserialize(parameters).map_err(|error| ExperimentError::Parameters {
                experiment: definition.name.clone(),
                reason: error.to_string(),
            })?;
            run(&parameters, session)
        });
        self.kinds.retain(|(known, _)| *known != name);
        self.kinds.push((name, run));
        self
    }

    /// Runs a definition.
    ///
    /// # Errors
    /// [`ExperimentError::UnknownKind`], [`ExperimentError::Parameters`], whatever the kind says, and
    /// [`ExperimentError::Promise`] where it measured other rows than the definition promises.
    pub fn run(
        &self,
        definition: &Definition,
        scale: Scale,
        provenance: Provenance,
        mut session: Session,
    ) -> Result<Results, ExperimentError> {
        let kind = self.kinds.iter().find(|(name, _)| *name == definition.kind);
        let (_, run) = kind.ok_or_else(|| ExperimentError::UnknownKind {
            experiment: definition.name.clone(),
            kind: definition.kind.clone(),
            known: self.kinds.iter().map(|(name, _)| *name).collect(),
        })?;
        run(definition, scale, &mut session)?;
        session.into_results(definition, scale, provenance)
    }
}

impl Session {
    /// What was measured, as the results of `definition`: for those who measure without a [`Laboratory`].
    ///
    /// # Errors
    /// [`ExperimentError::Promise`] where other rows were measured than the definition promises.
    pub fn into_results(
        self,
        definition: &Definition,
        scale: Scale,
        provenance: Provenance,
    ) -> Result<Results, ExperimentError> {
        let (rows, skipped) = self.finish();
        let differences = definition.rows.differences(&rows, &skipped);
        if !differences.is_empty() {
            return Err(ExperimentError::Promise { experiment: definition.name.clone(), differences });
        }
        let skipped =
            skipped.into_iter().map(|skip| format!("{}: {}", skip.configuration, skip.reason)).collect();
        Ok(Results { experiment: definition.name.clone(), scale, skipped, provenance, rows })
    }
}

impl Default for Laboratory {
    fn default() -> Self {
        Laboratory::new()
    }
}

impl Results {
    /// What the definition promises and these do not have, or the other way round.
    #[must_use]
    pub fn differences(&self, definition: &Definition) -> Vec<String> {
        let skipped = self.skipped.iter().filter_map(|skipped| {
            let (configuration, reason) = skipped.split_once(": ")?;
            Some(Skip { configuration: configuration.into(), reason: reason.into() })
        });
        definition.rows.differences(&self.rows, &skipped.collect::<Vec<_>>())
    }
}

impl Promise {
    /// What was promised and not measured, or measured and not promised. Each configuration and each metric must occur;
    /// which metric of which configuration is the kind's affair. What was skipped, and said so, need not occur.
    fn differences(&self, rows: &[Row], skipped: &[Skip]) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, promised: &[String], of: fn(&Row) -> &String, excused: &[&String]| {
            for name in promised.iter().filter(|name| !excused.contains(name)) {
                if !rows.iter().any(|row| of(row) == name) {
                    differences.push(format!("{what} '{name}' was not measured"));
                }
            }
            let mut surplus: Vec<_> = rows.iter().map(of).filter(|name| !promised.contains(name)).collect();
            surplus.sort();
            surplus.dedup();
            differences.extend(surplus.iter().map(|name| format!("{what} '{name}' is not promised")));
        };
        let excused: Vec<_> = skipped.iter().map(|skip| &skip.configuration).collect();
        compare("configuration", &self.configurations, |row| &row.configuration, &excused);
        // Of nothing but configurations that were skipped, nothing was measured.
        let all_excused = rows.is_empty() && self.configurations.iter().all(|name| excused.contains(&name));
        let excused = if all_excused { self.metrics.iter().collect() } else { Vec::new() };
        compare("metric", &self.metrics, |row| &row.metric, &excused);
        for row in rows.iter().filter(|row| !row.is_finite()) {
            differences.push(format!("{} of {} is not a number", row.metric, row.configuration));
        }
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressBar;
    use serde::Deserialize;
    use std::path::Path;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        samples: Vec<f64>,
        #[serde(default)]
        absent: bool,
    }

    fn measure(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
        for &sample in &parameters.samples {
            session.record("a", "", "speed", "M/s", sample);
        }
        if parameters.absent {
            session.skip("b", "it is not installed");
        }
        Ok(())
    }

    fn run(parameters: &str, rows: &str) -> Result<Results, ExperimentError> {
        let text = format!(
            "name = 'x'\ntitle = 't'\nkind = 'test'\nabout = 'a'\nruns = 2\n[parameters]\n{parameters}\n[rows]\n{rows}"
        );
        let definition = Definition::parse(&text, Path::new("x.toml")).unwrap();
        Laboratory::empty().with_kind("test", measure).run(
            &definition,
            Scale::Full,
            Provenance::default(),
            Session::new(2, ProgressBar::hidden()),
        )
    }

    #[test]
    fn what_was_promised_is_measured() {
        let results = run("samples = [1.0, 3.0]", "configurations = ['a']\nmetrics = ['speed']").unwrap();
        assert_eq!(results.rows.len(), 1);
        assert_eq!(results.rows[0].median, 2.0);
    }

    #[test]
    fn a_broken_promise_is_an_error() {
        for (parameters, rows, reason) in [
            (
                "samples = [1.0]",
                "configurations = ['a', 'b']\nmetrics = ['speed']",
                "configuration 'b' was not measured",
            ),
            (
                "samples = [1.0]",
                "configurations = []\nmetrics = ['speed']",
                "configuration 'a' is not promised",
            ),
            (
                "samples = [1.0]",
                "configurations = ['a']\nmetrics = ['speed', 'space']",
                "metric 'space' was not",
            ),
            ("samples = [nan]", "configurations = ['a']\nmetrics = ['speed']", "not a number"),
        ] {
            let error = run(parameters, rows).unwrap_err();
            assert!(matches!(error, ExperimentError::Promise { .. }));
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn what_was_skipped_is_said_and_excused() {
        let results =
            run("samples = [1.0]\nabsent = true", "configurations = ['a', 'b']\nmetrics = ['speed']")
                .unwrap();
        assert_eq!(results.skipped, ["b: it is not installed"]);
        let nothing =
            run("samples = []\nabsent = true", "configurations = ['b']\nmetrics = ['speed']").unwrap();
        assert!(nothing.rows.is_empty());
    }

    #[test]
    fn parameters_must_fit() {
        for parameters in ["samples = [1.0]\nfurther = 2", "", "samples = 'many'"] {
            let error = run(parameters, "configurations = ['a']\nmetrics = ['speed']").unwrap_err();
            assert!(matches!(error, ExperimentError::Parameters { .. }), "{error}");
        }
    }
}
