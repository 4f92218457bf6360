//! Definitions, where they are found, and results that are kept of them. The command's own tests run all of them.

use std::path::{Path, PathBuf};

use lookaside_lab::experiment::{Catalogue, Scale};
use lookaside_lab::report::Report;
use lookaside_lab::results::Results;

fn catalogue() -> Catalogue {
    Catalogue::find(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The committed results are of experiments that exist, measured what these promise, and are of full size.
#[test]
fn committed_results_fit_their_definitions() {
    let own = catalogue();
    let peers = Catalogue::read(&own.folder().join("peers")).unwrap();
    let simulated = Catalogue::read(&own.folder().join("sim")).unwrap();
    let mut compared = 0;
    for definition in [&own, &peers, &simulated].into_iter().flat_map(Catalogue::definitions) {
        let newest = Results::newest(&own.results_folder(), &definition.name).unwrap();
        let Some(results) = newest else { continue };
        assert_eq!((results.scale, results.provenance.build.as_str()), (Scale::Full, "release"));
        assert_eq!(results.differences(definition), [""; 0], "{}", definition.name);
        Report::of(definition, &results).unwrap();
        compared += 1;
    }
    assert!(compared >= 60, "{compared} experiments have results");
}

#[test]
fn definitions_are_found_from_below_and_from_elsewhere() {
    assert!(catalogue().get("memc3-table2").is_ok());
    assert!(catalogue().get("memc3-table9").unwrap_err().to_string().contains("memc3-table2"));
    let path: PathBuf = catalogue().folder().join("memc3-table2.toml");
    assert_eq!(catalogue().get(path.to_str().unwrap()).unwrap().name, "memc3-table2");
    // Elsewhere those that are built in are found, and a folder of others that is called the same does not disturb.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(elsewhere.path().join("research/experiments")).unwrap();
    std::fs::write(elsewhere.path().join("research/experiments/mine.toml"), "lr = 0.1").unwrap();
    let built_in = Catalogue::find(elsewhere.path()).unwrap();
    assert_eq!(built_in.definitions().len(), catalogue().definitions().len());
    assert_eq!(built_in.others().unwrap().len(), catalogue().others().unwrap().len());
    assert_eq!(built_in.results_folder(), elsewhere.path().join("results"));
}
