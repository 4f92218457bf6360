//! Naming a server in a definition, and starting it.
//!
//! Ours is the program that runs the experiment, started again as `lookaside-lab serve`, so that what is measured is
//! what was built; another binary can be named by `LOOKASIDE_BINARY`. The program that answers a constant is this one,
//! too, started as `lookaside-lab constant`. memcached is the one on the path, or the one that
//! `LOOKASIDE_MEMCACHED` names, and so is Redis with `LOOKASIDE_REDIS`. Redis is a cache here: it evicts the least
//! recently used of all keys and writes nothing to disk. Where a program is absent its configurations are skipped and
//! said to be; with `LOOKASIDE_REQUIRE_PEERS=1`, as in continuous integration, absence is an error.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Deserialize;

use super::failed;
use crate::drive::{Dialect, DriveError, Endpoint, Load, LoadReport, ServerCommand, ServerProcess};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{Resident, process_waited_for_core};

/// A server in a definition.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Contender {
    /// The configuration's name.
    pub(super) name: String,
    program: Program,
    #[serde(default)]
    arguments: Vec<String>,
    /// One process with one thread for each thread asked for, and the client spreads the keys; instead of one process.
    #[serde(default)]
    sharded: bool,
}

/// A server that was started.
pub(super) struct Running {
    /// The configuration's name.
    pub(super) name: String,
    pub(super) processes: Vec<ServerProcess>,
    /// What it is spoken to in.
    pub(super) dialect: Dialect,
    /// Resident memory when it had started.
    pub(super) empty: u64,
}

impl Running {
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        self.processes.iter().map(|process| process.endpoint().clone()).collect()
    }

    /// Bytes of resident memory that have come since it started.
    pub(super) fn grown(&self) -> u64 {
        resident(&self.processes).saturating_sub(self.empty)
    }

    /// How long its threads have waited for a core, in sum.
    pub(super) fn waited_for_core(&self) -> Duration {
        self.processes.iter().map(|process| process_waited_for_core(process.id())).sum()
    }

    /// Drives it, with an eye on its processor time.
    pub(super) fn run(&self, load: &Load) -> Result<LoadReport, DriveError> {
        let clocks: Vec<_> = self.processes.iter().map(ServerProcess::clock).collect::<Result<_, _>>()?;
        load.run(&clocks, &ProgressBar::hidden())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Program {
    Lookaside,
    Memcached,
    /// Answers a constant: see [`super::constant`].
    Constant,
    Redis,
}

impl Program {
    fn command(self) -> Result<ServerCommand, String> {
        match self {
            Program::Lookaside => ours(),
            Program::Memcached => memcached(),
            Program::Redis => redis(),
            Program::Constant => constant(),
        }
    }

    /// The option that names a number of threads.
    fn threads(self) -> &'static str {
        match self {
            Program::Lookaside | Program::Memcached | Program::Constant => "-t",
            Program::Redis => "--io-threads",
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Program::Lookaside | Program::Memcached | Program::Constant => Dialect::Classic,
            Program::Redis => Dialect::Resp,
        }
    }
}

fn ours() -> Result<ServerCommand, String> {
    let named = env::var_os("LOOKASIDE_BINARY").map(PathBuf::from);
    let program = named.or_else(own).ok_or(
        "this program is not lookaside-lab, and serves nothing: name one that does in LOOKASIDE_BINARY",
    )?;
    Ok(ServerCommand { program, arguments: vec!["serve".into()] })
}

/// The program that runs the experiment, if it can serve.
fn own() -> Option<PathBuf> {
    env::current_exe().ok().filter(|own| own.file_stem() == Some(OsStr::new("lookaside-lab")))
}

fn constant() -> Result<ServerCommand, String> {
    let program = own().ok_or("this program is not lookaside-lab, and answers nothing")?;
    Ok(ServerCommand { program, arguments: ["constant", "-p", "{port}"].map(String::from).to_vec() })
}

fn memcached() -> Result<ServerCommand, String> {
    let program = env::var_os("LOOKASIDE_MEMCACHED").unwrap_or_else(|| "memcached".into());
    can_run(&program, "-V")?;
    // memcached refuses to be root without being told so.
    let user = if rustix::process::geteuid().is_root() { &["-u", "root"][..] } else { &[] };
    Ok(ServerCommand { program: program.into(), arguments: Vec::new() }.with(user.iter().copied()))
}

fn redis() -> Result<ServerCommand, String> {
    let program = env::var_os("LOOKASIDE_REDIS").unwrap_or_else(|| "redis-server".into());
    can_run(&program, "--version")?;
    let as_a_cache = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "allkeys-lru"];
    let command = ServerCommand { program: program.into(), arguments: Vec::new() };
    Ok(command.with(["--bind", "127.0.0.1", "--port", "{port}"]).with(as_a_cache))
}

fn can_run(program: &OsStr, question: &str) -> Result<(), String> {
    let asked = std::process::Command::new(program).arg(question).output();
    asked.map(drop).map_err(|error| format!("{} cannot be run: {error}", program.display()))
}

/// Bytes of all of them.
fn resident(processes: &[ServerProcess]) -> u64 {
    processes.iter().map(|process| Resident::of(process.id()).bytes).sum()
}

impl Contender {
    /// Whether it has what was stored, and answers any request.
    pub(super) fn stores(&self) -> bool {
        self.program != Program::Constant
    }

    /// Processes that the server is with so many threads.
    pub(super) fn processes(&self, threads: usize) -> usize {
        if self.sharded { threads } else { 1 }
    }

    /// Starts the server with so many threads and `arguments` more, on `core` if one is named: one process, or as many
    /// as threads where it is sharded. None where the program is absent, which the session is told.
    pub(super) fn start(
        &self,
        threads: usize,
        arguments: &[String],
        core: Option<usize>,
        session: &mut Session,
    ) -> Result<Option<Running>, ExperimentError> {
        let command = match self.program.command() {
            Ok(command) => command,
            Err(reason) if env::var_os("LOOKASIDE_REQUIRE_PEERS").is_some_and(|value| value == "1") => {
                return Err(ExperimentError::Machine(format!("{}: {reason}", self.name)));
            }
            Err(reason) => {
                session.skip(&self.name, reason);
                return Ok(None);
            }
        };
        let processes = self.processes(threads);
        let command = command
            .with([self.program.threads().to_owned(), (threads / processes).to_string()])
            .with(self.arguments.iter().cloned())
            .with(arguments.iter().cloned());
        let started = (0..processes).map(|_| command.start(core)).collect::<Result<Vec<_>, DriveError>>();
        let processes = started.map_err(|error| failed(&self.name, error))?;
        let (dialect, empty) = (self.program.dialect(), resident(&processes));
        Ok(Some(Running { name: self.name.clone(), processes, dialect, empty }))
    }
}
