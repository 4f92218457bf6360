//! Filling a server, and believing what it says only after it has been checked.

use indicatif::ProgressBar;

use super::failed;
use crate::drive::{Amount, Load, LoadReport};
use crate::experiment::ExperimentError;

/// Stores all records of `load`, and checks by so many of its gets that they are there and right.
pub(super) fn fill(server: &str, load: Load, checked: u64) -> Result<(), ExperimentError> {
    let records = load.records;
    let fill = || {
        let filled = load.fill(&ProgressBar::hidden())?;
        let warm_up = Amount::Operations(0);
        let measured = Amount::Operations(checked);
        let report = Load { check: true, warm_up, measured, ..load }.run(&[], &ProgressBar::hidden())?;
        Ok((filled, report))
    };
    let (filled, report) = fill().map_err(|error| failed(server, error))?;
    expect_all(server, &report)?;
    if filled.stored != records {
        return Err(wrong(server, format!("it stored {} of {records} records", filled.stored)));
    }
    Ok(())
}

/// Every key asked for was stored, so every get must hit.
pub(super) fn expect_all(server: &str, report: &LoadReport) -> Result<(), ExperimentError> {
    if report.hits == report.gets && report.refused == 0 {
        return Ok(());
    }
    let LoadReport { gets, hits, refused, .. } = report;
    Err(wrong(server, format!("of {gets} keys that were stored it found {hits}; {refused} were refused")))
}

fn wrong(server: &str, found: String) -> ExperimentError {
    ExperimentError::wrong(server, found)
}
