//! `peers index`: the hash index beside foreign engines, and the largest one that fits 4 GB. `peers lookaside`: indexes that
//! people use, alone and with a lookaside table in front. `peers art`: the adaptive radix tree beside other ordered maps.

#![forbid(unsafe_code)]
// A program of its own, which talks to people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lab::experiment::{Catalogue, ExperimentError, Scale, Session};
use lab::machine::Provenance;
use lab::report::{Report, to_json};
use lookaside_peers::allocator::Malloc;

/// Compare the parts of this project with foreign engines
#[derive(Parser)]
#[command(name = "peers", version)]
enum Arguments {
    /// The hash index: the largest table that fits 4 GB, then lookups beside libcuckoo, dashmap, papaya and the standard
    /// library's map
    Index(Options),
    /// Indexes that people use, alone and with a lookaside table in front: scc's tree, a skip list, hashbrown, papaya, dashmap,
    /// LMDB, and containers of C++
    Lookaside(Options),
    /// The adaptive radix tree, shared and owned: lookups, insertions and range scans beside congee, blart and BTreeMap, all
    /// in regular pages
    Art(Options),
}

#[derive(clap::Args)]
struct Options {
    /// Only these: names of experiments, or paths of their definitions
    #[arg(value_name = "NAME|PATH")]
    names: Vec<String>,
    /// The pages under the C library's allocator: plain, as it takes them by itself, or huge. If not said, huge for `index`,
    /// whose own engine lies in huge ones; plain for the others, whose entries or nodes lie in the same heap or pages
    #[arg(long, value_name = "PAGES")]
    malloc: Option<Malloc>,
    /// Run small, once: shows that it works; the numbers mean nothing and are kept only where --out says
    #[arg(long)]
    quick: bool,
    /// Measure everything this often, instead of as often as the definitions say
    #[arg(long, value_name = "NUM", conflicts_with = "quick", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Keep the results below this folder instead of the repository's results/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The definitions that are run where none is named.
const INDEX: [&str; 3] = ["index-largest", "peers-index", "peers-index-small"];
const INDEX_IN_PLAIN_MEMORY: [&str; 2] = ["index-largest", "peers-index-plain-malloc"];
const LOOKASIDE: [&str; 8] = [
    "slb-peers-bars",
    "slb-cpp-bars",
    "slb-side-by-side",
    "slb-peers-figure7",
    "slb-peers-figure12a",
    "slb-peers-loses",
    "slb-peers-stlt",
    "slb-cpp-stlt",
];

const ART: [&str; 2] = ["art-peers", "art-peers-large"];

fn main() -> ExitCode {
    let (all, usual, options): (&[&str], Malloc, Options) = match Arguments::parse() {
        Arguments::Index(options) if options.malloc == Some(Malloc::Plain) => {
            (&INDEX_IN_PLAIN_MEMORY, Malloc::Plain, options)
        }
        Arguments::Index(options) => (&INDEX, Malloc::Huge, options),
        Arguments::Lookaside(options) => (&LOOKASIDE, Malloc::Plain, options),
        Arguments::Art(options) => (&ART, Malloc::Plain, options),
    };
    let Options { names, malloc, quick, runs, out, json } = options;
    let malloc = malloc.unwrap_or(usual);
    match malloc.restart() {
        Ok(None) => {}
        Ok(Some(mut command)) => {
            eprintln!("peers: {}", command.exec());
            return ExitCode::FAILURE;
        }
        Err(error) => {
            eprintln!("peers: {error}");
            return ExitCode::FAILURE;
        }
    }
    let scale = if quick { Scale::Quick } else { Scale::Full };
    let names = if names.is_empty() { all.iter().map(ToString::to_string).collect() } else { names };
    match run(&names, malloc, scale, runs.map(usize::from), out, json) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(
    names: &[String],
    malloc: Malloc,
    scale: Scale,
    runs: Option<usize>,
    out: Option<PathBuf>,
    json: bool,
) -> Result<ExitCode, ExperimentError> {
    let catalogue = Catalogue::find(&std::env::current_dir().unwrap_or_default())?;
    let own = Catalogue::read(&catalogue.folder().join("peers"))?;
    // What is compared with foreign indexes is this program's; what is not may be the laboratory's.
    let definitions = names.iter().map(|name| match catalogue.definition(name) {
        Some(definition) => Ok(definition.clone()),
        None => own.get(name),
    });
    let definitions = definitions.collect::<Result<Vec<_>, _>>()?;
    let out = out.or_else(|| (scale == Scale::Full).then(|| catalogue.results_folder()));
    let mut done = Vec::new();
    for definition in &definitions {
        let provenance = Provenance::collect(catalogue.folder(), &malloc.describe());
        let session = Session::new(
            runs.unwrap_or_else(|| definition.runs_for(scale)),
            Session::progress_bar(&definition.name),
        );
        let results = lookaside_peers::laboratory().run(definition, scale, provenance, session)?;
        if let Some(folder) = &out {
            eprintln!("kept in {}", results.write(folder)?.display());
        }
        done.push(results);
    }
    let reports = definitions.iter().zip(&done).map(|(definition, results)| Report::of(definition, results));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    if json {
        println!("{}", to_json(&reports));
    } else {
        reports.iter().for_each(|report| println!("{report}"));
    }
    let all_met = reports.iter().all(Report::all_met);
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
