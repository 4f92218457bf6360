//! The definitions of this crate are run once, in their quick size.

use std::path::Path;

use indicatif::ProgressBar;
use lab::experiment::{Catalogue, Definition, FOLDER, Outcome, Scale, Session};
use lab::machine::Provenance;
use lab::report::Report;
use lab::results::Results;

fn definitions() -> Catalogue {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    Catalogue::read(&workspace.join(FOLDER).join("peers")).unwrap()
}

fn quick(definition: &Definition) -> Results {
    let session = Session::new(1, ProgressBar::hidden());
    let provenance = Provenance::collect(definitions().folder(), "system");
    lookaside_peers::laboratory().run(definition, Scale::Quick, provenance, session).unwrap()
}

#[test]
fn every_definition_measures_what_it_promises() {
    assert!(definitions().definitions().len() >= 18, "definitions are missing");
    for definition in definitions().definitions() {
        let results = quick(definition);
        let report = Report::of(definition, &results).unwrap();
        // What is not installed is said, in the results and in the report.
        let installed = cfg!(libcuckoo);
        for skipped in &results.skipped {
            let say = if skipped.contains("not installed") { outside::skip } else { outside::say };
            // The reason alone, once for all rows.
            let (_, reason) = skipped.split_once(": ").expect("a row and a reason");
            say(format!("{}: {reason}", definition.name));
        }
        let with_libcuckoo = definition.kind == "peers-index";
        let said = report.to_string().contains("libcuckoo-dev is not installed");
        assert_eq!(said, with_libcuckoo && !installed, "{}", definition.name);
        let missing = lookaside_peers::lookaside::missing();
        // A machine with one core measures nothing of two threads, and says so.
        if lab::measure::cores().unwrap().len() < 2 {
            continue;
        }
        for expectation in &definition.expectations {
            let verdict = expectation.judge(&results.rows);
            let quantity = &expectation.quantity;
            let is_missing = |configuration: &String| {
                (configuration == "libcuckoo" && !installed)
                    || missing.iter().any(|missing| configuration.starts_with(missing.name))
            };
            // Put in relation to what is not there, it is not measured either.
            let has_nothing_beside = !quantity.over.is_empty()
                && quantity.over.iter().all(|other| other.configuration.as_ref().is_some_and(is_missing));
            // A quick run compiles programs at one level only.
            let is_left_out = definition.kind == "slb-cpp-compilers"
                && (quantity.configuration != "-O2" || !cfg!(containers));
            let expected = is_missing(&quantity.configuration) || has_nothing_beside || is_left_out;
            assert_eq!(verdict.outcome == Outcome::Unmeasured, expected, "{verdict:?}");
        }
    }
}
