//! What the tests share: runs and experiments, and what they leave as it is.

use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use lab::experiment::{Catalogue, Definition, Scale};
use lab::machine::Provenance;
use lab::results::Results;
use sim::Profile;
use sim_lab::configuration::{Configuration, Guest, Lengths, Table};
use sim_lab::error::StudyError;
use sim_lab::guest::{Container, Distribution, Hash, Variant};
use sim_lab::qemu::Qemu;
use sim_lab::store::Store;
use sim_lab::sweep::{Place, Swept};
use sim_lab::{Options, study};

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The simulator's experiments.
pub(crate) fn catalogue() -> Catalogue {
    Catalogue::read(&repository().join("research/experiments/sim")).expect("every definition can be read")
}

/// A definition that lies beside the repository's own, so that its machines are found.
pub(crate) fn parse(name: &str, text: &str) -> Definition {
    let path = repository().join("research/experiments/sim").join(name).with_extension("toml");
    Definition::parse(text, &path).expect("a definition")
}

/// YCSB's zipf on the STLT paper's machine: values of 64 bytes, and sets of four in front.
pub(crate) fn configuration(
    guest: Guest,
    (container, variant): (Container, Variant),
    (keys, bytes): (u32, u64),
    lengths: Lengths,
) -> Configuration {
    let table = Table { bytes, ways: 4, hash: Hash::Xxh3 };
    let (asked, machine) = ((keys, 64, Distribution::Zipf), Profile::stlt_paper());
    Configuration::new(guest, container, variant, asked, table, lengths, 1, &machine).expect("legal")
}

/// Runs in this process, two at a time.
pub(crate) fn options(scale: Scale) -> Options {
    Options { guest: Guest::InProcess, scale, seeds: None, jobs: 2, place: Place::Here }
}

/// What an experiment measures, with its runs kept in `store`.
pub(crate) fn results(
    definition: &Definition,
    store: &Store,
    options: &Options,
) -> Result<(Results, Swept), StudyError> {
    study::results(definition, store, options, Provenance::default(), ProgressBar::hidden())
}

/// The same; nothing of it is to be kept.
pub(crate) fn unkept(definition: &Definition, options: &Options) -> Result<Results, StudyError> {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let (results, swept) = results(definition, &store, options)?;
    assert_eq!((swept.made, swept.kept), (0, 0));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing of it is kept");
    Ok(results)
}

/// A number that was measured.
pub(crate) fn value(results: &Results, configuration: &str, point: &str, metric: &str) -> f64 {
    let row = results.rows.iter().find(|row| row.is(configuration, point, metric));
    row.unwrap_or_else(|| panic!("{configuration}, {point}, {metric} is not in {:?}", results.rows)).median
}

/// QEMU and the plugin; none, after a word about it, where they are not and need not be.
pub(crate) fn qemu() -> Option<Qemu> {
    Qemu::find().map_err(outside::skip).ok()
}
