//! What the process asks of the kernel before and while it serves: file descriptors, another user, the background, a file
//! with its number, and signals.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Uid, User, chdir, chown, daemon, initgroups, setgid, setuid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};
use tracing::warn;

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

/// The user to become, if root started this; anybody else stays what he is, as with memcached.
pub(super) fn find_user(name: &str) -> Result<Option<User>, ProcessError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    match User::from_name(name) {
        Ok(Some(user)) => Ok(Some(user)),
        Ok(None) => Err(ProcessError::NoSuchUser(name.to_owned())),
        Err(error) => Err(ProcessError::User { user: name.to_owned(), error: error.into() }),
    }
}

/// Becomes this user, who gets `files`: he is to be able to use them, and to remove them at the end.
pub(super) fn become_user(user: &User, files: &[&Path]) -> Result<(), ProcessError> {
    let refused = |error: nix::Error| ProcessError::User { user: user.name.clone(), error: error.into() };
    let name = CString::new(user.name.as_str()).map_err(|_| ProcessError::NoSuchUser(user.name.clone()))?;
    for &file in files {
        chown(file, Some(user.uid), Some(user.gid)).map_err(refused)?;
    }
    // The groups go first: afterwards there is no right to.
    match initgroups(&name, user.gid) {
        // Nobody may in a user name space whose groups are not mapped, as in containers without root: little can be
        // given up there, and memcached goes on as well.
        Err(Errno::EPERM) => warn!(user = user.name, "cannot give up supplementary groups: they stay (-u)"),
        outcome => outcome.map_err(refused)?,
    }
    setgid(user.gid).and_then(|()| setuid(user.uid)).map_err(refused)
}

/// Goes on in the background. Must come before any thread is started: threads do not survive it.
pub(super) fn go_into_background(keep_output: bool) -> Result<(), ProcessError> {
    daemon(true, keep_output).and_then(|()| chdir("/")).map_err(|error| ProcessError::Daemon(error.into()))
}

/// A file with the process id, which is removed at the end.
pub(super) struct PidFile {
    path: PathBuf,
    file: File,
}

impl PidFile {
    /// Makes the file, empty yet: in the background the process will have another number.
    pub(super) fn create(path: &Path) -> Result<PidFile, ProcessError> {
        let refused = |error| ProcessError::PidFile { path: path.to_owned(), error };
        let path = std::path::absolute(path).map_err(refused)?;
        let file = File::create(&path).map_err(refused)?;
        Ok(PidFile { path, file })
    }

    pub(super) fn write(&mut self) -> Result<(), ProcessError> {
        writeln!(self.file, "{}", std::process::id())
            .map_err(|error| ProcessError::PidFile { path: self.path.clone(), error })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The signals that end the server. Registered before it starts, so that none is missed.
pub(super) struct Ending(Signals);

impl Ending {
    pub(super) fn register() -> Result<Ending, ProcessError> {
        // SIGHUP: a terminal that closes is no reason to lose a cache; memcached does not mind it either.
        Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).map(Ending).map_err(ProcessError::Signals)
    }

    /// Blocks until one comes, or the handle is closed.
    pub(super) fn wait(&mut self) {
        self.0.forever().find(|&signal| signal != SIGHUP);
    }

    pub(super) fn handle(&self) -> Handle {
        self.0.handle()
    }
}
