//! What the process asks of the kernel before and while it serves: file descriptors, core files, memory that stays in
//! RAM, another user, the background, a file with its number, and signals.

use std::error::Error;
use std::ffi::CString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use nix::unistd::{
    AccessFlags, Gid, Uid, User, access, chdir, chown, daemon, initgroups, setgid, setgroups, setuid,
};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Pid, test_kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::{Handle, Signals};
use tracing::warn;

/// File descriptors beside those of connections: the standard ones, each thread's epoll and waker, sockets to listen
/// on.
const DESCRIPTORS_ASIDE: u64 = 64;
const DESCRIPTORS_PER_THREAD: u64 = 3;

/// What the kernel refused.
#[derive(Debug)]
pub(super) enum ProcessError {
    OpenFiles { connections: usize, wanted: u64, error: io::Error },
    CoreFiles(io::Error),
    NoSuchUser(String),
    User { user: String, error: io::Error },
    Daemon(io::Error),
    PidFile { path: PathBuf, error: io::Error },
    Signals(io::Error),
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProcessError::OpenFiles { connections, wanted, error } => write!(
                f,
                "{connections} connections (-c) need {wanted} open files, which the system refuses ({error}): ask for \
                 fewer, or start as root"
            ),
            ProcessError::CoreFiles(error) => write!(f, "core files are not allowed (-r): {error}"),
            ProcessError::NoSuchUser(user) => write!(f, "there is no user '{user}' (-u)"),
            ProcessError::User { user, error } => write!(f, "cannot become the user '{user}' (-u): {error}"),
            ProcessError::Daemon(error) => write!(f, "cannot go into the background (-d): {error}"),
            ProcessError::PidFile { path, error } => {
                write!(f, "cannot write the process id to {} (-P): {error}", path.display())
            }
            ProcessError::Signals(error) => write!(f, "cannot wait for signals: {error}"),
        }
    }
}

impl Error for ProcessError {}

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

/// Lets a crash leave as large a core file as it needs, or as large as may be.
pub(super) fn allow_core_files() -> Result<(), ProcessError> {
    let raise = || {
        if setrlimit(Resource::RLIMIT_CORE, RLIM_INFINITY, RLIM_INFINITY).is_ok() {
            return Ok(());
        }
        let (_, hard) = getrlimit(Resource::RLIMIT_CORE)?;
        setrlimit(Resource::RLIMIT_CORE, hard, hard)
    };
    raise().map_err(|error: nix::Error| ProcessError::CoreFiles(error.into()))
}

/// Takes back that who has become another user leaves no core file.
pub(super) fn stay_dumpable() {
    if let Err(error) = prctl::set_dumpable(true) {
        warn!(%error, "a crash will leave no core file (-r)");
    }
}

/// Asks for as much locked memory as is wanted, while there is still a right to.
pub(super) fn allow_locked_memory() {
    // Where that is refused, and too little allowed, locking is, and says so.
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY);
}

/// Keeps in RAM what is there and what will be, each page from when it is first touched: most of what is mapped is only
/// claimed, and is touched when items come. Must come after the process has gone into the background, which locks do
/// not survive. Where that is refused the server serves all the same, as memcached does.
pub(super) fn lock_memory() {
    if let Err(error) = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        warn!(%error, "memory could not be locked (-k): raise the limit of locked memory (ulimit -l)");
    }
}

/// Whom to become.
pub(super) struct Account {
    /// As it was given.
    given: String,
    /// What the system's groups are listed under; a number that no user has is in none of them.
    name: Option<CString>,
    user: Uid,
    group: Gid,
}

/// The user to become, by name or by number, if root started this; anybody else stays what he is, as with memcached.
pub(super) fn find_user(given: &str) -> Result<Option<Account>, ProcessError> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    let refused = |error: nix::Error| ProcessError::User { user: given.to_owned(), error: error.into() };
    let number = given.parse().ok().map(Uid::from_raw);
    let found = match (User::from_name(given).map_err(refused)?, number) {
        (None, Some(number)) => User::from_uid(number).map_err(refused)?,
        (named, _) => named,
    };
    let given = given.to_owned();
    match (found, number) {
        (Some(User { name, uid: user, gid: group, .. }), _) => {
            let name = CString::new(name).map_err(|_| ProcessError::NoSuchUser(given.clone()))?;
            Ok(Some(Account { given, name: Some(name), user, group }))
        }
        (None, Some(user)) => {
            Ok(Some(Account { given, name: None, user, group: Gid::from_raw(user.as_raw()) }))
        }
        (None, None) => Err(ProcessError::NoSuchUser(given)),
    }
}

/// Whether this process may make a file at this path. Root need not: systemd's units take its right to write in the
/// folders of others.
pub(super) fn may_create(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok()
}

/// Becomes this user, who gets `files`: he is to be able to use them, and to remove them at the end.
pub(super) fn become_user(account: &Account, files: &[&Path]) -> Result<(), ProcessError> {
    let Account { given, name, user, group } = account;
    let refused = |error: nix::Error| ProcessError::User { user: given.clone(), error: error.into() };
    for &file in files {
        match chown(file, Some(*user), Some(*group)) {
            // Nor need root be allowed to give a file away.
            Err(error @ Errno::EPERM) => {
                warn!(%error, user = given, "{} stays another user's (-u)", file.display());
            }
            outcome => outcome.map_err(refused)?,
        }
    }
    // The groups go first: afterwards there is no right to.
    let groups = match name {
        Some(name) => initgroups(name, *group),
        None => setgroups(&[]),
    };
    match groups {
        // Nobody may in a user name space whose groups are not mapped, as in containers without root: little can be
        // given up there, and memcached goes on as well.
        Err(Errno::EPERM) => warn!(user = given, "cannot give up supplementary groups: they stay (-u)"),
        outcome => outcome.map_err(refused)?,
    }
    setgid(*group).and_then(|()| setuid(*user)).map_err(refused)
}

/// Goes on in the background. Must come before any thread is started: threads do not survive it.
pub(super) fn go_into_background(keep_output: bool) -> Result<(), ProcessError> {
    daemon(true, keep_output).and_then(|()| chdir("/")).map_err(|error| ProcessError::Daemon(error.into()))
}

/// A file with the process id, which is removed at the end.
pub(super) struct PidFile {
    path: PathBuf,
    file: File,
    is_regular: bool,
    /// What this process has written there.
    line: String,
}

impl PidFile {
    /// Makes the file, with an empty line yet: in the background the process will have another number, but that the
    /// disk is full is to be known before. That another process is in it and runs is told, as by memcached: it may be a
    /// server whose file this takes, or a stranger who got the number of one that was killed.
    pub(super) fn create(path: &Path) -> Result<PidFile, ProcessError> {
        let refused = |error| ProcessError::PidFile { path: path.to_owned(), error };
        let path = std::path::absolute(path).map_err(refused)?;
        let was_regular = fs::metadata(&path).is_ok_and(|found| found.is_file());
        if was_regular && let Some(other) = running_in(&path) {
            warn!("{} has the process id of another one, which runs: {other}", path.display());
        }
        let file = File::create(&path).map_err(refused)?;
        let is_regular = file.metadata().map_err(refused)?.is_file();
        // Dropped, it is removed again.
        let mut made = PidFile { path, file, is_regular, line: String::new() };
        if is_regular {
            made.file.write_all(b"\n").map_err(refused)?;
            made.line.push('\n');
        }
        Ok(made)
    }

    pub(super) fn write(&mut self) -> Result<(), ProcessError> {
        let line = format!("{}\n", std::process::id());
        let written = if self.is_regular {
            self.file.write_all_at(line.as_bytes(), 0)
        } else {
            self.file.write_all(line.as_bytes())
        };
        written.map_err(|error| ProcessError::PidFile { path: self.path.clone(), error })?;
        self.line = line;
        Ok(())
    }

    /// Where it is, if it is the server's own: a device or a pipe is not.
    pub(super) fn own_path(&self) -> Option<&Path> {
        self.is_regular.then_some(&self.path)
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // What another server has written there since is that one's.
        if let Some(path) = self.own_path()
            && fs::read_to_string(path).map_or(true, |found| found == self.line)
        {
            let _ = fs::remove_file(path);
        }
    }
}

/// The process that a file names, if it runs and is not this one.
fn running_in(path: &Path) -> Option<i32> {
    let number: i32 = fs::read_to_string(path).ok()?.trim().parse().ok()?;
    if number <= 0 || number.unsigned_abs() == std::process::id() {
        return None;
    }
    let other = Pid::from_raw(number)?;
    // Of another user's process it is only told that it is there.
    let runs = matches!(test_kill_process(other), Ok(()) | Err(rustix::io::Errno::PERM));
    runs.then_some(number)
}

/// The signals that end the server. Registered before it starts, so that none is missed.
pub(super) struct Ending {
    signals: Signals,
    /// Whether one ends the process where it stands.
    at_once: Arc<AtomicBool>,
}

impl Ending {
    /// Minds signals. Until [`Ending::in_order`] each ends the process at once, as a success: memory may take long to
    /// claim, and there is nothing to put in order yet.
    pub(super) fn register() -> Result<Ending, ProcessError> {
        let at_once = Arc::new(AtomicBool::new(true));
        for signal in [SIGINT, SIGTERM, SIGUSR1] {
            flag::register_conditional_shutdown(signal, 0, at_once.clone()).map_err(ProcessError::Signals)?;
        }
        // A log that reaches the limit of files (ulimit -f) is no reason either: it fails, as on a full disk.
        flag::register(SIGXFSZ, Arc::default()).map_err(ProcessError::Signals)?;
        // SIGHUP: a terminal that closes is no reason to lose a cache; memcached does not mind it either.
        let signals = Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).map_err(ProcessError::Signals)?;
        Ok(Ending { signals, at_once })
    }

    /// From now on a signal waits until it is asked for: there will be something to put in order.
    pub(super) fn in_order(&self) {
        // Relaxed: the handler that looks at it runs in this thread, the only one yet.
        self.at_once.store(false, Ordering::Relaxed);
    }

    /// Blocks until one comes, or the handle is closed.
    pub(super) fn wait(&mut self) {
        self.signals.forever().find(|&signal| signal != SIGHUP);
    }

    pub(super) fn handle(&self) -> Handle {
        self.signals.handle()
    }
}
