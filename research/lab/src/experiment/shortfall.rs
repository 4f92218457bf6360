//! What kept results have less of than their definition asks for.
//!
//! A long experiment may have been kept with fewer runs, or before its definition had all the points that it has now.
//! Such results are no less true, and whoever reads them is told.

use super::Definition;
use crate::measure::name_threads;
use crate::results::{Results, Row};

/// Parameters that list where on the axis of a figure something is measured: each with a name, which its rows' points
/// begin with.
const AXES: [&str; 6] = ["points", "sizes", "sources", "stand_ins", "recorded", "patterns"];

impl Results {
    /// Runs and points that the definition asks for and these do not have, in words.
    #[must_use]
    pub fn shortfalls(&self, definition: &Definition) -> Vec<String> {
        let asked = definition.runs_for(self.scale);
        let fewer = self.runs().filter(|&runs| runs < asked);
        let fewer = fewer.map(|runs| format!("kept with {runs} of {asked} runs"));
        let lacking = self.lacking_points(definition);
        let lacking = (!lacking.is_empty()).then(|| format!("lacks the points {}", lacking.join("; ")));
        fewer.into_iter().chain(lacking).collect()
    }

    /// How often what is measured in every run was measured: what is measured once, as memory is, does not tell, and
    /// what is measured beside several contestants is so several times a run.
    fn runs(&self) -> Option<usize> {
        let runs = self.rows.iter().map(|row| row.runs);
        runs.clone().filter(|&runs| runs > 1).min().or_else(|| runs.max())
    }

    fn lacking_points(&self, definition: &Definition) -> Vec<String> {
        let parameters = definition.parameters_for(self.scale);
        let listed = |axis: &str| parameters.get(axis).and_then(toml::Value::as_array).into_iter().flatten();
        let names = AXES.into_iter().flat_map(listed).filter_map(|point| point.get("name")?.as_str());
        let begins = |row: &Row, name: &str| {
            let rest = row.point.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
        };
        let lacking = names.filter(|name| !self.rows.iter().any(|row| begins(row, name))).map(str::to_owned);
        let threads = listed("threads").filter_map(toml::Value::as_integer);
        let threads = threads.filter_map(|threads| usize::try_from(threads).ok()).map(name_threads);
        let at = |row: &Row, threads: &str| row.point.split(", ").any(|part| part == threads);
        let lacking_threads = threads.filter(|threads| !self.rows.iter().any(|row| at(row, threads)));
        lacking.chain(lacking_threads).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::Scale;
    use crate::machine::Provenance;
    use crate::results::row;

    fn shortfalls(rows: &[(&str, usize)], scale: Scale) -> Vec<String> {
        let definition = "name = 'x'\ntitle = 't'\nkind = 'none'\nabout = 'a'\nruns = 5\n\
            [parameters]\npoints = [{ name = 'few' }, { name = 'few, large' }, { name = 'many' }]\nthreads = [1, 2]\n\
            [quick]\npoints = [{ name = 'few' }]\nthreads = [1]\n\
            [rows]\nconfigurations = ['a']\nmetrics = ['speed']";
        let definition = Definition::parse(definition, Path::new("x.toml")).unwrap();
        let rows = rows.iter().map(|&(point, runs)| Row { runs, ..row("a", point, "speed", 1.0) });
        let provenance = Provenance::default();
        let results =
            Results { experiment: "x".into(), scale, skipped: vec![], provenance, rows: rows.collect() };
        results.shortfalls(&definition)
    }

    #[test]
    fn all_that_is_asked_for_falls_short_of_nothing() {
        let all = [("", 1), ("few, 1 thread", 5), ("few, large, 2 threads", 15), ("many, 2 threads", 5)];
        assert_eq!(shortfalls(&all, Scale::Full), [""; 0]);
        assert_eq!(shortfalls(&[("few, 1 thread", 1)], Scale::Quick), [""; 0]);
    }

    #[test]
    fn fewer_runs_and_points_are_said() {
        let some = [("", 1), ("few, large, 1 thread", 6), ("fewer, 1 thread", 2)];
        assert_eq!(
            shortfalls(&some, Scale::Full),
            ["kept with 2 of 5 runs", "lacks the points many; 2 threads"]
        );
        let one = [("few, 1 thread", 1), ("few, large, 2 threads", 1), ("many, 2 threads", 1)];
        assert_eq!(shortfalls(&one, Scale::Full), ["kept with 1 of 5 runs"]);
        assert_eq!(
            shortfalls(&[], Scale::Full),
            ["lacks the points few; few, large; many; 1 thread; 2 threads"]
        );
    }
}
