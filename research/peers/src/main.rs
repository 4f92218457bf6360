//! `peers index`: the hash index beside foreign engines, and the largest one that fits 4 GB. `peers lookaside`: indexes that
//! people use, alone and with a lookaside table in front. `peers art`: the adaptive radix tree beside other ordered maps.

#![forbid(unsafe_code)]
// A program of its own, which talks to people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use lab::allocator::{self, Again, Flags, Malloc, end_with_who_started_anew};
use lab::experiment::{Catalogue, Definition, ExperimentError, Scale, Session};
use lab::machine::Provenance;
use lab::report::{Report, to_json};

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
    /// The pages under the C library's allocator: plain, as it takes them by itself, or huge. If not said, as the definitions
    /// say; and where they do not, huge for `index`, whose own engine lies in huge ones, and plain for the others, whose
    /// entries or nodes lie in the same heap or pages
    #[arg(long, value_name = "PAGES")]
    malloc: Option<Malloc>,
    /// Run small, once: shows that it works; the numbers mean nothing and are kept only where --out says
    #[arg(long)]
    quick: bool,
    /// Measure everything this often, instead of as often as the definitions say
    #[arg(long, value_name = "NUM", conflicts_with = "quick", value_parser = clap::value_parser!(u16).range(1..))]
    runs: Option<u16>,
    /// Keep the results below this folder instead of the repository's research/results/
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The definitions that are run where none is named.
const INDEX: [&str; 3] = ["index-largest", "peers-index", "peers-index-small"];
const INDEX_IN_PLAIN_MEMORY: [&str; 2] = ["index-largest", "peers-index-plain-malloc"];
const LOOKASIDE: [&str; 11] = [
    "slb-peers-bars",
    "slb-cpp-bars",
    "slb-side-by-side",
    "slb-regular-pages",
    "slb-peers-figure7",
    "slb-peers-figure12a",
    "slb-peers-loses",
    "slb-monitored",
    "slb-peers-stlt",
    "slb-cpp-stlt",
    "slb-cpp-compilers",
];

const ART: [&str; 2] = ["art-peers", "art-peers-large"];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let command = arguments.command();
    let (all, usual, options): (&[&str], Malloc, Options) = match arguments {
        Arguments::Index(options) if options.malloc == Some(Malloc::Plain) => {
            (&INDEX_IN_PLAIN_MEMORY, Malloc::Plain, options)
        }
        Arguments::Index(options) => (&INDEX, Malloc::Huge, options),
        Arguments::Lookaside(options) => (&LOOKASIDE, Malloc::Plain, options),
        Arguments::Art(options) => (&ART, Malloc::Plain, options),
    };
    let names = if options.names.is_empty() {
        all.iter().map(ToString::to_string).collect()
    } else {
        options.names.clone()
    };
    match run(command, &names, usual, &options) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    fn command(&self) -> &'static str {
        match self {
            Arguments::Index(_) => "index",
            Arguments::Lookaside(_) => "lookaside",
            Arguments::Art(_) => "art",
        }
    }
}

fn run(
    command: &str,
    names: &[String],
    usual: Malloc,
    options: &Options,
) -> Result<ExitCode, ExperimentError> {
    let catalogue = Catalogue::find(&std::env::current_dir().unwrap_or_default())?;
    let own = Catalogue::read(&catalogue.folder().join("peers"))?;
    // What is compared with foreign indexes is this program's; what is not may be the laboratory's.
    let definitions = names.iter().map(|name| match catalogue.definition(name) {
        Some(definition) => Ok(definition.clone()),
        None => own.get(name),
    });
    let definitions = definitions.collect::<Result<Vec<_>, _>>()?;
    let scale = if options.quick { Scale::Quick } else { Scale::Full };
    let out = options.out.clone().or_else(|| (scale == Scale::Full).then(|| catalogue.results_folder()));
    let flags =
        Flags { quick: options.quick, runs: options.runs, out: options.out.as_deref(), json: options.json };
    end_with_who_started_anew();
    let mut all_met = true;
    let mut reports = Vec::new();
    for definition in &definitions {
        let malloc = options.malloc.or(definition.heap).unwrap_or(usual);
        // So each is also measured in memory that no other has used.
        let ran = if malloc.is_here() {
            measure(definition, scale, options, catalogue.folder(), out.as_deref())
        } else {
            malloc.run_again(&[command], &definition.path, &flags)
        };
        match ran {
            Ok(ran) => {
                all_met &= ran.all_met;
                reports.extend(ran.reports);
            }
            // The others may still work.
            Err(error) => {
                eprintln!("peers: {error}");
                all_met = false;
            }
        }
    }
    if options.json {
        println!("{}", to_json(&reports));
    }
    Ok(if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(
    definition: &Definition,
    scale: Scale,
    options: &Options,
    definitions: &Path,
    out: Option<&Path>,
) -> Result<Again, ExperimentError> {
    let provenance = Provenance::collect(definitions, &allocator::describe());
    let runs = options.runs.map_or_else(|| definition.runs_for(scale), usize::from);
    let session = Session::new(runs, Session::progress_bar(&definition.name));
    let results = lookaside_peers::laboratory().run(definition, scale, provenance, session)?;
    if let Some(folder) = out {
        eprintln!("kept in {}", results.write(folder)?.display());
    }
    let report = Report::of(definition, &results)?;
    if !options.json {
        println!("{report}");
    }
    Ok(Again { all_met: report.all_met(), reports: vec![report.to_value()] })
}
