//! Why a server does not start.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use cache::CreateError;

/// Why a server did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// Neither a TCP address nor a Unix socket was given.
    NowhereToListen,
    /// A socket could not be bound.
    Bind {
        /// The address or path.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The ports could not be written to the file they were wanted in.
    PortFile {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A thread could not be started.
    Thread {
        /// What it is called.
        name: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No threads were asked for.
    NoThreads,
    /// The cache could not be made.
    Cache(CreateError),
    /// The kernel refused something that a server needs.
    System(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::NowhereToListen => {
                f.write_str("nowhere to listen: give a TCP port (-p) or a Unix socket (-s)")
            }
            StartError::Bind { what, source } => write!(f, "cannot listen on {what}: {source}"),
            StartError::PortFile { path, source } => {
                write!(f, "cannot write the ports to {}: {source}", path.display())
            }
            StartError::Thread { name, source } => write!(
                f,
                "cannot start the thread {name}: {source}: raise the limit of processes (ulimit -u, or the control \
                 group's pids.max), or ask for fewer threads (-t)"
            ),
            StartError::NoThreads => f.write_str("a server needs at least one thread (-t)"),
            StartError::Cache(error) => write!(f, "cannot make the cache: {error}"),
            StartError::System(error) => write!(f, "cannot start: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::NowhereToListen | StartError::NoThreads => None,
            StartError::Bind { source, .. }
            | StartError::PortFile { source, .. }
            | StartError::Thread { source, .. } => Some(source),
            StartError::Cache(error) => Some(error),
            StartError::System(error) => Some(error),
        }
    }
}

impl From<CreateError> for StartError {
    fn from(error: CreateError) -> Self {
        StartError::Cache(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        StartError::System(error)
    }
}
