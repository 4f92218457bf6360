//! What the process asks of the kernel before and while it serves: file descriptors, another user, the background, a file
//! with its number, and signals.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User, chdir, daemon, initgroups, setgid, setuid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

/// File descriptors beside those of connections: the standard ones, each thread's epoll and waker, sockets to listen on.
const DESCRIPTORS_ASIDE: u64 = 64;
const DESCRIPTORS_PER_THREAD: u64 = 3;

/// What the kernel refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProcessError {
    #[error(
        "{connections} connections (-c) need {wanted} open files, which the system refuses ({error}): ask for fewer, or start as root"
    )]
    OpenFiles { connections: usize, wanted: u64, error: io::Error },
    #[error("there is no user '{0}' (-u)")]
    NoSuchUser(String),
    #[error("cannot become the user '{user}' (-u): {error}")]
    User { user: String, error: io::Error },
    #[error("cannot go into the background (-d): {0}")]
    Daemon(io::Error),
    #[error("cannot write the process id to {path} (-P): {error}")]
    PidFile { path: PathBuf, error: io::Error },
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
}

/// Makes room for as many open files as there may be connections.
pub(super) fn allow_connections(connections: usize, threads: usize) -> Result<(), ProcessError> {
    let wanted = connections as u64 + threads as u64 * DESCRIPTORS_PER_THREAD + DESCRIPTORS_ASIDE;
    let raise = || {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
        // Beyond the hard limit only root may go.
        if soft < wanted { setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)) } else { Ok(()) }
    };
    raise().map_err(|error: nix::Error| ProcessError::OpenFiles { connections, wanted, error: error.into() })
}

/// Becomes another user, if root started this; anybody else stays what he is, as with memcached.
pub(super) fn become_user(name: &str) -> Result<(), ProcessError> {
    if !Uid::effective().is_root() {
        return Ok(());
    }
    let refused = |error: nix::Error| ProcessError::User { user: name.to_owned(), error: error.into() };
    let user =
        User::from_name(name).map_err(refused)?.ok_or_else(|| ProcessError::NoSuchUser(name.to_owned()))?;
    let c_name = std::ffi::CString::new(name).map_err(|_| ProcessError::NoSuchUser(name.to_owned()))?;
    // The groups go first: afterwards there is no right to.
    initgroups(&c_name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(refused)
}

/// Goes on in the background. Must come before any thread is started: threads do not survive it.
pub(super) fn go_into_background(keep_output: bool) -> Result<(), ProcessError> {
    daemon(true, keep_output).and_then(|()| chdir("/")).map_err(|error| ProcessError::Daemon(error.into()))
}

/// A file with the process id, which is removed at the end.
pub(super) struct PidFile(PathBuf);

impl PidFile {
    pub(super) fn write(path: &Path) -> Result<PidFile, ProcessError> {
        fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|error| ProcessError::PidFile { path: path.to_owned(), error })?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The signals that end the server. Registered before it starts, so that none is missed.
pub(super) struct Ending(Signals);

impl Ending {
    pub(super) fn register() -> Result<Ending, ProcessError> {
        // SIGHUP: a terminal that closes is no reason to lose a cache; memcached does not mind it either.
        Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).map(Ending).map_err(ProcessError::Signals)
    }

    /// Blocks until one comes.
    pub(super) fn wait(&mut self) {
        self.0.forever().find(|&signal| signal != SIGHUP);
    }
}
