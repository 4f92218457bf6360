//! Every experiment that there is, small, by the command that runs them.
//!
//! In its quick size each must run, measure what its definition promises, and have a number for all that it expects
//! and for all that it sets beside a paper's. All together take minutes: on every change it is those that are measured;
//! those on the simulator have tests in their own crate, and `ci/nightly experiments` runs all.
//!
//! What a definition wants and this machine has not is said and counted, and nothing else may be lacking.

use std::path::Path;
use std::process::Command;

use lab::experiment::{Catalogue, Definition, Outcome, Scale};
use lab::measure;
use lab::report::Report;
use lab::results::Results;
use workload::data;

fn catalogue() -> Catalogue {
    Catalogue::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// An experiment, what it measured, and what of it is not here.
struct Ran {
    definition: Definition,
    results: Option<Results>,
    /// Foreign programs and headers that are not installed.
    not_installed: Vec<String>,
}

/// Runs these by the command, one after the other.
fn run_small(definitions: Vec<Definition>) -> Vec<Ran> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-lab"));
    command.current_dir(catalogue().folder()).args(["run", "--quick", "--json"]);
    command.arg("--out").arg(folder.path()).arg("--store").arg(folder.path().join("simulations"));
    command.args(definitions.iter().map(|definition| &definition.name));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let ran: Vec<_> = definitions
        .into_iter()
        .map(|definition| {
            let results = Results::newest(folder.path(), &definition.name).unwrap();
            let left_out = format!("without it, {} is left out", definition.name);
            let not_installed = match &results {
                Some(results) => what_is_not_installed(&definition, results),
                None if said.contains(&left_out) => vec!["QEMU, or its plugin".to_owned()],
                None => panic!("{} failed:\n{said}", definition.name),
            };
            Ran { definition, results, not_installed }
        })
        .collect();
    let all_ran = ran.iter().all(|ran| ran.results.is_some());
    assert_eq!(output.status.success(), all_ran, "{said}");
    ran
}

/// Of what was skipped, what could be installed. What is recorded has others in its place, which is measured no less.
fn what_is_not_installed(definition: &Definition, results: &Results) -> Vec<String> {
    let mut skipped = results.skipped.clone();
    skipped.retain(|skipped| {
        let stands_in = skipped.contains("in their place") || skipped.contains("in its place");
        assert!(
            !stands_in || std::env::var_os(data::VARIABLE).is_none(),
            "{}: {skipped}, but {} is set",
            definition.name,
            data::VARIABLE
        );
        !stands_in
    });
    skipped
}

/// All that is promised is there, but for what is not installed. Gives the number of experiments that lack something.
fn check(ran: &[Ran]) -> usize {
    // A machine with one core measures nothing of two threads, and says so.
    let all_points = measure::cores().unwrap().len() >= 2;
    for Ran { definition, results, not_installed } in ran {
        let Some(results) = results else { continue };
        let name = &definition.name;
        let report = Report::of(definition, results).unwrap();
        assert!(report.quick && report.verdicts.is_empty(), "{name}");
        assert!(!results.rows.is_empty() || !not_installed.is_empty(), "{name} measured nothing");
        assert!(results.rows.iter().all(|row| row.runs >= 1 && row.minimum <= row.median), "{name}");
        // What was left out is so on purpose, or for want of a core, and has no number.
        if !all_points || !results.skipped.iter().all(|skipped| skipped.contains(" place")) {
            continue;
        }
        for expectation in &definition.expectations {
            let verdict = expectation.judge(&results.rows);
            assert_ne!(verdict.outcome, Outcome::Unmeasured, "{name}: {verdict:?}");
        }
        for beside in &report.beside {
            assert!(!beside.ours.is_empty(), "{name}: {} is not measured", beside.quantity);
        }
    }
    ran.iter().filter(|ran| !ran.not_installed.is_empty()).count()
}

/// The same, and says what is not installed.
fn check_and_say(ran: &[Ran]) -> usize {
    for Ran { definition, not_installed, .. } in ran {
        not_installed
            .iter()
            .for_each(|lacking| outside::skip(format_args!("{}: {lacking}", definition.name)));
    }
    check(ran)
}

fn is_on_servers(definition: &Definition) -> bool {
    definition.kind.starts_with("server-")
}

#[test]
fn experiments_of_the_laboratory_run_small() {
    let definitions = catalogue().definitions().to_vec();
    let own: Vec<_> = definitions.into_iter().filter(|definition| !is_on_servers(definition)).collect();
    assert!(own.len() >= 45, "{} definitions: some are missing", own.len());
    let ran = run_small(own);
    let lacking = check(&ran);
    // They want nothing from outside; only one core is a reason.
    assert!(lacking == 0 || measure::cores().unwrap().len() < 2, "{lacking} lack something");
    assert!(ran.iter().all(|ran| ran.results.as_ref().is_some_and(|results| results.scale == Scale::Quick)));
}

/// Some of those on servers: they start this command as the server, and memcached beside it where that is installed.
fn those_on_servers_run_small(is_meant: impl Fn(&Definition) -> bool, at_least: usize) {
    let definitions = catalogue().definitions().to_vec();
    let servers: Vec<_> = definitions.into_iter().filter(is_on_servers).filter(is_meant).collect();
    assert!(servers.len() >= at_least, "{} definitions: some are missing", servers.len());
    let ran = run_small(servers);
    check_and_say(&ran);
    for ran in &ran {
        let rows = &ran.results.as_ref().expect("nothing else is left out").rows;
        let mut ours = rows.iter().filter(|row| !row.configuration.starts_with("memcached"));
        let metrics =
            ["server CPU per", "hit ratio", "longest request", "request latency", "processor time per item"];
        let is_measured = |metric: &str| metrics.iter().any(|name| metric.starts_with(name));
        assert!(ours.any(|row| is_measured(&row.metric)), "{}", ran.definition.name);
    }
}

/// For the longest part of their time these wait until something happens, and leave a core to the others.
fn waits(definition: &Definition) -> bool {
    ["server-pauses", "server-expiry"].contains(&&definition.kind[..])
}

#[test]
fn experiments_on_servers_run_small() {
    those_on_servers_run_small(|definition| !waits(definition), 4);
}

#[test]
fn experiments_that_wait_for_servers_run_small() {
    those_on_servers_run_small(waits, 3);
}

/// Beside foreign engines, those that are installed.
#[test]
fn experiments_beside_foreign_engines_run_small() {
    let definitions = catalogue().below("peers").unwrap().definitions().to_vec();
    assert!(definitions.len() >= 17, "{} definitions: some are missing", definitions.len());
    check_and_say(&run_small(definitions));
}

/// Each may lack what is not installed; where all has to be there, none does.
#[test]
#[ignore = "takes minutes: ci/nightly experiments"]
fn every_experiment_runs_small() {
    let ran = run_small(catalogue().all().unwrap());
    assert!(ran.len() >= 100, "{} definitions: some are missing", ran.len());
    let lacking = check_and_say(&ran);
    outside::say(format_args!("{lacking} of {} experiments lack what is not installed", ran.len()));
}
