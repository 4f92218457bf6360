//! Kind `slb-yardstick-cpp`: what the header for C++ and the calls of C are of a table of twenty lines, which a
//! programmer would write instead.
//!
//! The program is `cpp/yardstick.cpp`: all faces take turns in it, before one index, over the same draws. A header is
//! compiled with its user's options, of which nobody asks us: so it is compiled when this is run, for every x86-64
//! (plain) and for the processor that it runs on (native), and linked with the library that cargo has built beside this
//! program. The faces of Rust are the laboratory's kind `slb-yardstick`.
//!
//! Rejected: variants compiled by build.rs and linked into this program. Templates and inline functions of one name are
//! one for the linker, so that all but the first would be measured in vain.

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::experiment::{ExperimentError, Session};
use lab::lookaside::yardstick::{BATCHES, Size, metrics};
use lab::measure::in_parallel;
use lookaside_capi::HEADERS;
use serde::Deserialize;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The compiler, by its command.
    compiler: String,
    /// Its level of optimisation.
    level: String,
    /// The indexes, by name.
    indexes: Vec<String>,
    /// What is asked for.
    sizes: Vec<Size>,
    /// Bytes of the table: a power of two.
    bytes: usize,
    /// Draws that warm the tables for each range.
    warm_up: usize,
    /// Lookups of one timed part.
    operations: usize,
}

/// The headers of the library, which are written out for the compilers.
const INTERFACE: [(&str, &str); 3] = [
    ("lookaside.h", include_str!("../../../crates/capi/include/lookaside.h")),
    ("lookaside_inline.h", include_str!("../../../crates/capi/include/lookaside_inline.h")),
    ("lookaside.hpp", include_str!("../../../crates/capi/include/lookaside.hpp")),
];

/// Plain and native.
const VARIANTS: [(&str, &[&str]); 2] = [("plain", &[]), ("native", &["-march=native"])];

/// The indexes, and what the program calls them.
const INDEXES: [(&str, &str); 2] = [("std::unordered_map", "hash"), ("std::map", "tree")];

/// The faces: the first is what the others are compared with.
const FACES: [&str; 5] =
    ["twenty lines", "OwnedBuffer", "OwnedBuffer, not monitored", "Buffer under a Pin", "calls of C"];

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the library is not there, or the program does not compile, does not run, or finds something
/// else than it should.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { compiler, indexes, sizes, .. } = parameters;
    session.announce(VARIANTS.len() * indexes.len() * sizes.len());
    let folder = tempfile::tempdir().map_err(|error| machine(&format!("a folder for programs: {error}")))?;
    let sources = [
        ("yardstick.cpp", include_str!("../cpp/yardstick.cpp")),
        ("twenty_lines.hpp", include_str!("../cpp/twenty_lines.hpp")),
    ];
    for (name, text) in sources.into_iter().chain(INTERFACE) {
        let path = folder.path().join(name);
        std::fs::write(&path, text).map_err(|error| ExperimentError::Io { path, error })?;
    }
    let is_there = Command::new(compiler).arg("--version").output().is_ok();
    for (variant, options) in VARIANTS {
        let binary =
            if is_there { Some(compile(parameters, folder.path(), variant, options)?) } else { None };
        for index in indexes {
            let Some((_, called)) = INDEXES.iter().find(|(name, _)| name == index) else {
                return Err(machine(&format!("no index '{index}'")));
            };
            let name = |face: &str| format!("{index}, {face}, {variant}");
            for size in sizes {
                session.begin(format!("{index}, {variant}"));
                match &binary {
                    Some(binary) => measure(parameters, session, &name, binary, called, size)?,
                    None => FACES.iter().for_each(|face| {
                        session.skip(&name(face), "a C++ compiler is not installed");
                    }),
                }
                session.end();
            }
        }
    }
    Ok(())
}

fn compile(
    parameters: &Parameters,
    folder: &Path,
    variant: &str,
    options: &[&str],
) -> Result<PathBuf, ExperimentError> {
    let binary = folder.join(variant);
    let mut command = Command::new(&parameters.compiler);
    command.args(["-std=c++17", &parameters.level]).args(options).arg("-I").arg(folder);
    command.arg(folder.join("yardstick.cpp")).arg("-o").arg(&binary).arg(library()?);
    let output = command.args(["-lpthread", "-ldl", "-lm"]).output();
    let output = output.map_err(|error| machine(&format!("{}: {error}", parameters.compiler)))?;
    if !output.status.success() {
        return Err(machine(&format!("yardstick.cpp: {}", String::from_utf8_lossy(&output.stderr))));
    }
    Ok(binary)
}

/// Runs the program before one index, on one core, and records what it prints.
fn measure(
    parameters: &Parameters,
    session: &mut Session,
    name: &impl Fn(&str) -> String,
    binary: &Path,
    index: &str,
    size: &Size,
) -> Result<(), ExperimentError> {
    let numbers = [parameters.bytes, parameters.warm_up, parameters.operations, session.runs()];
    let run = |_| {
        let mut command = Command::new(binary);
        command.arg(index).arg(size.records.to_string()).args(numbers.map(|number| number.to_string()));
        command.args(size.points.iter().map(|point| point.range.to_string())).output()
    };
    // A program inherits the core of the thread that starts it.
    let output = in_parallel(1, run)?.remove(0).map_err(|error| machine(&format!("yardstick: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let answered_wrongly = || ExperimentError::WrongAnswer {
        what: "yardstick".into(),
        found: format!("{} {text}", output.status),
    };
    if !output.status.success() {
        return Err(answered_wrongly());
    }
    let lines = text.lines().map(Line::read).collect::<Option<Vec<_>>>().ok_or_else(answered_wrongly)?;
    if lines.len() != session.runs() * size.points.len() * BATCHES.len() * FACES.len() {
        return Err(answered_wrongly());
    }
    // A turn of all of them, and then the next.
    for turn in lines.chunks(FACES.len()) {
        let first = turn.iter().find(|line| line.face == FACES[0]).ok_or_else(answered_wrongly)?;
        for line in turn {
            let configuration = name(line.face);
            let point =
                size.points.iter().find(|point| point.range == line.range).ok_or_else(answered_wrongly)?;
            let [speed, ratio] = metrics(line.batch);
            session.record(&configuration, &point.name, speed, "M/s", line.speed);
            session.record(&configuration, &point.name, ratio, "ratio", line.speed / first.speed);
            session.record(
                &configuration,
                &point.name,
                "hit ratio",
                "ratio",
                line.hits / (line.hits + line.misses),
            );
        }
    }
    Ok(())
}

/// What the program says of a face in its turn.
struct Line<'t> {
    range: u64,
    face: &'t str,
    batch: usize,
    speed: f64,
    hits: f64,
    misses: f64,
}

impl<'t> Line<'t> {
    fn read(text: &'t str) -> Option<Line<'t>> {
        let fields: Vec<_> = text.split('\t').collect();
        let [range, face, batch, speed, hits, misses] = fields[..] else { return None };
        Some(Line {
            range: range.parse().ok()?,
            face,
            batch: batch.parse().ok()?,
            speed: speed.parse().ok()?,
            hits: hits.parse().ok()?,
            misses: misses.parse().ok()?,
        })
    }
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

fn machine(reason: &str) -> ExperimentError {
    ExperimentError::Machine(reason.to_owned())
}
