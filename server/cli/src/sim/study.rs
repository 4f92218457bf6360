//! `lookaside sim figure`, `table`, `study` and `sweep`: experiments of simulated runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::experiment::{Catalogue, Definition, Scale, Session};
use lab::machine::Provenance;
use lab::report::Report;
use lab::results::Results;
use sim_lab::configuration::Guest;
use sim_lab::qemu::Qemu;
use sim_lab::study::{self, Options};
use sim_lab::sweep::{Place, Swept};
use sim_lab::{in_use, speed, storage, sweep as sweeps};

use super::{catalogue, error, family, named, store};
use crate::definitions::Definitions;
use crate::lab::finish as finish_reports;
use crate::output::{Outcome, print, tell};

// How runs are made.
#[derive(clap::Args)]
pub(crate) struct Making {
    /// Run them small, once: shows that they work, and the signs of what the paper says; the numbers mean little and are
    /// kept only where --out says
    #[arg(long)]
    quick: bool,
    /// Who runs the programs, where the experiment does not say: in-process or qemu; other guests' results than its own are kept
    /// only where --out says
    #[arg(long, value_name = "NAME", default_value = "in-process", value_parser = named::<Guest>)]
    guest: Guest,
    /// Runs at a time; as many as there are processors if not given
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Seeds, instead of as many as the definitions say
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u16).range(1..))]
    seeds: Option<u16>,
    /// Keep finished runs in this folder instead of the repository's research/simulations/, or outside of it the
    /// current directory's
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
}

// How results are shown.
#[derive(clap::Args)]
pub(crate) struct Showing {
    #[command(flatten)]
    making: Making,
    /// Keep the results (CSV) below this folder, whatever they are, instead of the repository's research/results/,
    /// which takes those that are in full, of the experiment's own guests, and lack nothing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with pictures as well; of several experiments it is an overview, and each has a page of its own in a folder
    /// beside it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct Figure {
    /// The figure's number: 1, 11 to 19
    number: u16,
    #[command(flatten)]
    showing: Showing,
}

#[derive(clap::Args)]
pub(crate) struct Table {
    /// The table's number: I or V
    number: String,
    #[command(flatten)]
    showing: Showing,
}

#[derive(clap::Args)]
pub(crate) struct Study {
    /// Names of experiments, or paths of their definitions
    #[arg(value_name = "NAME|PATH", required_unless_present_any = ["list", "all"], conflicts_with_all = ["list", "all"])]
    experiments: Vec<String>,
    /// List the experiments there are
    #[arg(long, conflicts_with = "all")]
    list: bool,
    /// All of them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    showing: Showing,
}

#[derive(clap::Args)]
pub(crate) struct Sweep {
    /// Names of experiments, or paths of their definitions; all, if none is named
    #[arg(value_name = "NAME|PATH")]
    experiments: Vec<String>,
    #[command(flatten)]
    making: Making,
}

pub(crate) fn figure(arguments: &Figure, definitions: &Definitions) -> Outcome {
    exhibit(&format!("stlt-figure{}", arguments.number), &arguments.showing, definitions)
}

pub(crate) fn table(arguments: &Table, definitions: &Definitions) -> Outcome {
    let number = match arguments.number.to_uppercase().as_str() {
        "1" | "I" => 1,
        "5" | "V" => 5,
        other => return Err(error(format!("there is no experiment for Table {other}: there are I and V"))),
    };
    exhibit(&format!("stlt-table{number}"), &arguments.showing, definitions)
}

fn exhibit(name: &str, showing: &Showing, definitions: &Definitions) -> Outcome {
    let catalogue = catalogue(definitions)?;
    let definitions: Vec<Definition> = family(&catalogue, name).into_iter().cloned().collect();
    if definitions.is_empty() {
        let known: Vec<_> = catalogue.definitions().iter().map(|known| known.name.as_str()).collect();
        return Err(error(format!("there is no experiment '{name}': there are {}", known.join(", "))));
    }
    show(&catalogue, definitions, showing)
}

pub(crate) fn study(arguments: &Study, definitions: &Definitions) -> Outcome {
    let catalogue = catalogue(definitions)?;
    if arguments.list {
        for definition in catalogue.definitions() {
            print(format_args!("{:<24} {}\n", definition.name, definition.title))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let definitions = chosen(&catalogue, &arguments.experiments)?;
    if let Some(other) = definitions.iter().find(|definition| definition.heap.is_some()) {
        let path = other.path.display();
        return Err(error(format!(
            "{path}: 'heap' is for what is measured on this machine; a profile says the pages"
        )));
    }
    show(&catalogue, definitions, &arguments.showing)
}

fn chosen(catalogue: &Catalogue, names: &[String]) -> Result<Vec<Definition>, Box<dyn std::error::Error>> {
    if names.is_empty() {
        return Ok(catalogue.definitions().to_vec());
    }
    Ok(names.iter().map(|name| catalogue.get(name)).collect::<Result<_, _>>()?)
}

impl Making {
    fn scale(&self) -> Scale {
        if self.quick { Scale::Quick } else { Scale::Full }
    }

    fn options(&self) -> Result<Options, std::io::Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Options {
            guest: self.guest,
            scale: self.scale(),
            seeds: self.seeds.map(usize::from),
            jobs: self.jobs.map_or(processors, usize::from),
            place: Place::Program(std::env::current_exe()?),
        })
    }

    /// Who runs the programs of a definition. One that cannot be read has nobody: it says why itself, when it is its turn.
    fn guests(&self, definition: &Definition) -> Vec<Guest> {
        study::guests(definition, self.guest, self.scale()).unwrap_or_default()
    }

    /// Leaves out the definitions whose guests cannot run here, and says once, before anything runs, what is missing for them;
    /// whether all are left. Who is asked for may not matter: there are definitions that name their own guests.
    ///
    /// # Errors
    /// If none is left.
    fn leave_out_impossible(
        &self,
        definitions: &mut Vec<Definition>,
    ) -> Result<bool, Box<dyn std::error::Error>> {
        if !definitions.iter().any(|definition| self.guests(definition).contains(&Guest::Qemu)) {
            return Ok(true);
        }
        let Err(missing) = Qemu::find() else { return Ok(true) };
        let needs_it = |definition: &Definition| {
            let guests = self.guests(definition);
            !guests.is_empty() && guests.iter().all(|&guest| guest == Guest::Qemu)
        };
        let left_out: Vec<Definition> =
            definitions.extract_if(.., |definition| needs_it(definition)).collect();
        if definitions.is_empty() {
            return Err(missing.into());
        }
        tell(format_args!("lookaside: {missing}"));
        for definition in &left_out {
            tell(format_args!("lookaside: without it, {} is left out", definition.name));
        }
        Ok(left_out.is_empty())
    }

    /// Why results do not go where the newest ones count, if they should not.
    fn objection(&self, definition: &Definition, results: &Results, swept: &Swept) -> Option<&'static str> {
        let own = study::guests(definition, Guest::default(), self.scale()).unwrap_or_default();
        if results.rows.is_empty() || !results.skipped.is_empty() || !swept.failed.is_empty() {
            Some("not all of it was measured")
        } else if self.guests(definition) != own {
            Some("the experiment's own guests are others")
        } else {
            None
        }
    }
}

pub(crate) fn sweep(arguments: &Sweep, definitions: &Definitions) -> Outcome {
    let making = &arguments.making;
    let catalogue = catalogue(definitions)?;
    let mut definitions = chosen(&catalogue, &arguments.experiments)?;
    definitions.retain(|definition| {
        ![storage::KIND, speed::KIND].contains(&definition.kind.as_str()) && !in_use::is(&definition.kind)
    });
    let all_possible = making.leave_out_impossible(&mut definitions)?;
    let store = store(making.store.as_deref(), &catalogue)?;
    let options = making.options()?;
    let mut configurations = Vec::new();
    for definition in &definitions {
        let study = study::Study::new(definition, options.scale)?;
        let seeds = options.seeds.unwrap_or_else(|| definition.runs_for(options.scale));
        configurations.extend(study.configurations(options.guest, seeds)?);
    }
    let progress = Session::progress_bar("sweep");
    let swept = sweeps::sweep(&configurations, &store, &options.place, options.jobs, &progress);
    progress.finish_and_clear();
    for (configuration, reason) in &swept.failed {
        tell(format_args!("lookaside: {}: {reason}", configuration.describe()));
    }
    print(format_args!(
        "{} runs made, {} were finished before, {} failed; kept in {}\n",
        swept.made,
        swept.kept,
        swept.failed.len(),
        store.folder().display()
    ))?;
    Ok(if all_possible && swept.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(catalogue: &Catalogue, mut definitions: Vec<Definition>, showing: &Showing) -> Outcome {
    let making = &showing.making;
    let mut all_ran = making.leave_out_impossible(&mut definitions)?;
    let store = store(making.store.as_deref(), catalogue)?;
    let options = making.options()?;
    let mut done: Vec<(&Definition, Results)> = Vec::new();
    for definition in &definitions {
        let provenance = Provenance::collect(catalogue.folder(), "system");
        let progress = Session::progress_bar(&definition.name);
        // The others may still work.
        let (results, swept) = match study::results(definition, &store, &options, provenance, progress) {
            Ok(results) => results,
            Err(error) => {
                tell(format_args!("lookaside: {error}"));
                all_ran = false;
                continue;
            }
        };
        all_ran &= swept.failed.is_empty();
        match (&showing.out, making.objection(definition, &results, &swept)) {
            (Some(folder), _) => tell(format_args!("kept in {}", results.write(folder)?.display())),
            // As its help says.
            (None, _) if making.quick => {}
            (None, None) => {
                let path = results.write(&catalogue.results_folder())?;
                tell(format_args!("kept in {}", path.display()));
            }
            (None, Some(reason)) => {
                let name = &definition.name;
                tell(format_args!("{name}: not kept, {reason}: give --out to keep it"));
            }
        }
        if !showing.json {
            print(format_args!("{}\n", Report::of(definition, &results)?))?;
        }
        done.push((definition, results));
    }
    let all_met = finish(&done, showing.json, showing.html.as_deref())?;
    Ok(if all_ran && all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// JSON and the page of some results; whether every expectation was met.
pub(crate) fn finish(
    done: &[(&Definition, Results)],
    json: bool,
    page: Option<&Path>,
) -> Result<bool, Box<dyn std::error::Error>> {
    let reports =
        done.iter().map(|(definition, results)| Ok((*definition, Report::of(definition, results)?)));
    let reports = reports.collect::<Result<Vec<_>, lab::experiment::ExperimentError>>()?;
    finish_reports(&reports, json, page)?;
    Ok(reports.iter().all(|(_, report)| report.all_met()))
}
