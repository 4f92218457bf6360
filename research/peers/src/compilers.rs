//! Kind `slb-cpp-compilers`: programs in C++ with the header compiled in, for the processor that they run on
//! (`-march=native`) beside what every x86-64 has.
//!
//! A header is compiled with its user's options, of which nobody asks us. So the programs are compiled here, when it is
//! run, by each compiler at each level, plain and native; the two take turns, and a ratio is of neighbouring runs. The
//! library that they are linked with is the one that cargo has built beside this program, and the same for all.
//!
//! Rejected: variants compiled by build.rs and linked into this program. Templates and inline functions of one name are
//! one for the linker, so that all but the first would be measured in vain.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::experiment::{ExperimentError, Session};
use lab::measure::turns;
use lookaside_capi::HEADERS;
use serde::Deserialize;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Compilers of C++, by their commands.
    compilers: Vec<String>,
    /// Levels of optimisation: `-O2` and so on.
    levels: Vec<String>,
    /// Levels that only a full run compiles.
    levels_left_out: Vec<String>,
    /// Hot keys.
    keys: usize,
    /// Lookups of a timed slice.
    lookups: usize,
    /// Slices, of which the quickest counts.
    slices: usize,
    /// Programs of `crates/capi/examples/cpp` that are measured too, as their users have them.
    examples: Vec<String>,
}

/// What is written out for the compilers: the programs, and what they include.
const SOURCES: [(&str, &str); 9] = [
    ("compiled.cpp", include_str!("../cpp/compiled.cpp")),
    ("lookaside.h", include_str!("../../../crates/capi/include/lookaside.h")),
    ("lookaside_inline.h", include_str!("../../../crates/capi/include/lookaside_inline.h")),
    ("lookaside.hpp", include_str!("../../../crates/capi/include/lookaside.hpp")),
    ("workload.hpp", include_str!("../../../crates/capi/examples/cpp/workload.hpp")),
    ("std_map.cpp", include_str!("../../../crates/capi/examples/cpp/std_map.cpp")),
    ("std_unordered_map.cpp", include_str!("../../../crates/capi/examples/cpp/std_unordered_map.cpp")),
    ("absl_btree_map.cpp", include_str!("../../../crates/capi/examples/cpp/absl_btree_map.cpp")),
    ("dense_hash_map.cpp", include_str!("../../../crates/capi/examples/cpp/dense_hash_map.cpp")),
];

/// What a program asks for beside the library.
fn packages(program: &str) -> &'static [&'static str] {
    if program == "absl_btree_map" { &["absl_throw_delegate"] } else { &[] }
}

/// The name of the program that measures each form; the others are examples.
const FORMS: &str = "compiled";

/// Plain and native.
const VARIANTS: [(&str, &[&str]); 2] = [("plain", &[]), ("native", &["-march=native"])];

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the library is not there, or a program does not compile, does not run, or finds something else
/// than it should.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let library = library()?;
    let folder = tempfile::tempdir().map_err(|error| machine(&format!("a folder for programs: {error}")))?;
    for (name, text) in SOURCES {
        let path = folder.path().join(name);
        std::fs::write(&path, text).map_err(|error| ExperimentError::Io { path, error })?;
    }
    for level in &parameters.levels_left_out {
        session.skip(level, "a quick run does not compile it");
    }
    let mut programs = vec![FORMS];
    programs.extend(parameters.examples.iter().map(String::as_str));
    let there = |compiler: &&String| Command::new(compiler).arg("--version").output().is_ok();
    let (there, missing): (Vec<_>, Vec<_>) = parameters.compilers.iter().partition(there);
    for compiler in missing {
        session.skip(compiler, "it is not installed");
    }
    if there.is_empty() {
        parameters.levels.iter().for_each(|level| session.skip(level, "no compiler is installed"));
    }
    session.announce(there.len() * parameters.levels.len() * programs.len());
    for compiler in there {
        for level in &parameters.levels {
            for &program in &programs {
                session.begin(format!("{program} by {compiler} {level}"));
                let build = Build { folder: folder.path(), library: &library, compiler, level, program };
                match build.variants()? {
                    Some(binaries) => measure(parameters, session, &build, &binaries)?,
                    None => session.skip(program, "a header that it includes is not installed"),
                }
                session.end();
            }
        }
    }
    Ok(())
}

/// One program, by one compiler, at one level.
struct Build<'a> {
    folder: &'a Path,
    library: &'a Path,
    compiler: &'a str,
    level: &'a str,
    program: &'a str,
}

impl Build<'_> {
    /// Compiles both variants, at the same time; `None` where the plain one does not compile because a header is
    /// missing.
    fn variants(&self) -> Result<Option<[PathBuf; 2]>, ExperimentError> {
        let compile = |(variant, options): (&str, &[&str])| {
            let binary = self.folder.join(format!("{}-{variant}", self.program));
            let mut command = Command::new(self.compiler);
            command.args(["-std=c++17", self.level]).args(options).arg("-I").arg(self.folder);
            command.arg(self.folder.join(self.program).with_extension("cpp")).arg("-o").arg(&binary);
            command.arg(self.library).args(libraries_of(packages(self.program)));
            let output = command.args(["-lpthread", "-ldl", "-lm"]).output();
            let output = output.map_err(|error| machine(&format!("{}: {error}", self.compiler)))?;
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.success() {
                true => Ok(Some(binary)),
                false if said.contains("file not found") || said.contains("No such file") => Ok(None),
                false => Err(machine(&format!("{} {}: {said}", self.compiler, self.program))),
            }
        };
        let [plain, native] = VARIANTS;
        let (plain, native) = std::thread::scope(|scope| {
            let native = scope.spawn(move || compile(native));
            (compile(plain), native.join())
        });
        let native = native.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(plain?.zip(native?).map(|(plain, native)| [plain, native]))
    }
}

/// Runs both in turn, and records each form's speed and their ratio.
fn measure(
    parameters: &Parameters,
    session: &mut Session,
    build: &Build<'_>,
    binaries: &[PathBuf; 2],
) -> Result<(), ExperimentError> {
    for run in 0..session.runs() {
        let mut speeds = [Vec::new(), Vec::new()];
        for variant in turns(VARIANTS.len(), run) {
            speeds[variant] = speeds_of(parameters, build.program, &binaries[variant])?;
        }
        let [plain, native] = speeds;
        for ((form, plain), (_, native)) in plain.into_iter().zip(native) {
            let point = format!("{}, {form}", build.compiler);
            session.record(build.level, &point, "plain", "M/s", plain);
            session.record(build.level, &point, "native", "M/s", native);
            session.record(build.level, &point, "native by plain", "ratio", native / plain);
        }
    }
    Ok(())
}

/// What a program says: forms, and millions of operations a second.
fn speeds_of(
    parameters: &Parameters,
    program: &str,
    binary: &Path,
) -> Result<Vec<(String, f64)>, ExperimentError> {
    let arguments = [parameters.keys, parameters.lookups, parameters.slices].map(|number| number.to_string());
    let output = Command::new(binary).args(arguments).output();
    let output = output.map_err(|error| machine(&format!("{program}: {error}")))?;
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let answered_wrongly = || ExperimentError::WrongAnswer {
        what: program.into(),
        found: format!("{} {out}{said}", output.status),
    };
    if !output.status.success() {
        return Err(answered_wrongly());
    }
    let speeds: Vec<(String, f64)> = if program == FORMS {
        out.lines()
            .filter_map(|line| line.split_once('\t'))
            .filter_map(|(form, speed)| Some((form.to_owned(), speed.parse().ok()?)))
            .collect()
    } else {
        let speed = said.lines().find_map(|line| line.split_once(" million operations per second"));
        speed.and_then(|(speed, _)| Some((program.to_owned(), speed.parse().ok()?))).into_iter().collect()
    };
    if speeds.is_empty() { Err(answered_wrongly()) } else { Ok(speeds) }
}

/// The library, static, which cargo builds whenever it builds this.
fn library() -> Result<PathBuf, ExperimentError> {
    const NAME: &str = "liblookaside_capi.a";
    let program = std::env::current_exe().map_err(|error| machine(&format!("this program: {error}")))?;
    let places = [program.with_file_name(NAME), program.with_file_name("deps").join(NAME)];
    let is_of_these_headers = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|library| library.windows(HEADERS.len()).any(|bytes| bytes == HEADERS))
    };
    places.into_iter().find(is_of_these_headers).ok_or_else(|| {
        machine(&format!("{NAME} of these headers is not beside {}: start this by cargo", program.display()))
    })
}

/// What the linker is told for packages that pkg-config knows.
fn libraries_of(packages: &[&str]) -> Vec<String> {
    let quiet = |package: &&str| pkg_config::Config::new().cargo_metadata(false).probe(package).ok();
    let found = packages.iter().filter_map(quiet);
    found.flat_map(|package| package.libs).map(|library| format!("-l{library}")).collect()
}

fn machine(reason: &str) -> ExperimentError {
    ExperimentError::Machine(reason.to_owned())
}
