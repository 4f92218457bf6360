//! The bodies of the fuzz targets, without a fuzzer: they hold for each seed as it is, and for mutations of the seeds.
//!
//! The mutations are the same in each run: case 17 is case 17, however many are tried. `LOOKASIDE_FUZZ_CASES` says how
//! many for each target; by default as many as take about half a second. `LOOKASIDE_FUZZ_INPUT=FILE` tries the bytes of
//! a file and nothing else; an artifact of libFuzzer is such a file.
//!
//! What is tried lies in a file until it has passed, so that it is there even if the process ended with it.

mod dictionary;
mod mutation;
mod targets;

use std::fs;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::mutation::Mutations;

/// Seeds, and of mutations as many as the environment asks for, or `cases`.
fn holds(name: &str, property: fn(&[u8]), cases: u64) {
    let mut inputs = Inputs::new(name, property);
    if let Some(file) = std::env::var_os("LOOKASIDE_FUZZ_INPUT") {
        let data = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return inputs.check(&data, &file.display());
    }
    let seeds = seeds(name);
    for (path, data) in &seeds {
        inputs.check(data, &path.display());
    }
    let cases = std::env::var("LOOKASIDE_FUZZ_CASES").map_or(cases, |text| text.parse().expect("a number"));
    let seeds: Vec<_> = seeds.into_iter().map(|(_, data)| data).collect();
    let words = dictionary::words(&folder().join("protocol.dict"));
    let mutations = Mutations::new(name, &seeds, &words);
    for case in 0..cases {
        inputs.check(&mutations.make(case), &format_args!("case {case}"));
    }
}

/// The repository's `fuzz`.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it lies in there")
}

/// In the order of their names: what a case is made of does not depend on the file system.
fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder().join("seeds").join(name)).expect("each target has seeds");
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<_> = paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    assert!(!seeds.is_empty(), "{name} has no seed");
    seeds
}

/// What goes through a property, one after the other, each first written to a file.
struct Inputs<'a> {
    name: &'a str,
    property: fn(&[u8]),
    tried: tempfile::NamedTempFile,
}

impl<'a> Inputs<'a> {
    fn new(name: &'a str, property: fn(&[u8])) -> Self {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // What removes old files in there takes the folder as well.
        fs::create_dir_all(place).unwrap();
        let tried = tempfile::Builder::new().prefix(&format!("fuzz-{name}-")).tempfile_in(place).unwrap();
        Self { name, property, tried }
    }

    /// # Panics
    /// With the bytes and how to try them again, if the property does not hold for them.
    fn check(&mut self, data: &[u8], which: &dyn std::fmt::Display) {
        let file = self.tried.as_file();
        file.write_all_at(data, 0).unwrap();
        file.set_len(data.len() as u64).unwrap();
        let property = self.property;
        if catch_unwind(AssertUnwindSafe(|| property(data))).is_err() {
            self.tried.disable_cleanup(true);
            panic!(
                "{which} of {name} fails: \"{}\"\n\
                again: LOOKASIDE_FUZZ_INPUT={} cargo test -p lookaside-fuzz --test main -- --exact targets::{name}",
                data.escape_ascii(),
                self.tried.path().display(),
                name = self.name,
            );
        }
    }
}
