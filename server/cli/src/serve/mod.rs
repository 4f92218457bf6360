//! `lookaside serve`: from the command line to a server that runs, and to its end.
//!
//! The order matters. Signals are minded first, so that none kills it raw: until there are sockets and files to remove,
//! one ends it at once. Everything that can be refused comes while there is still a terminal to say so on: options,
//! open files, memory, sockets (the ports may need root), the file for the process id, becoming another user. Then the
//! process goes into the background, and only then are threads started.

mod command_line;
pub mod extended;
mod file;
mod later;
mod limits;
mod listen;
mod log;
mod manner;
mod meaning;
mod options;
mod process;
mod values;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use server::{Furnished, Prepared, Settings};
use tracing::warn;

pub use later::Later;

use crate::output::{Outcome, OutputError, tell};
use command_line::Instead;
use extended::ListError;
use log::Log;
use manner::Manner;
use meaning::{Meaning, OptionError};
use options::Options;
use process::{Ending, PidFile, ProcessError};

/// The licence that the binary may be used under, of the two that there are.
const LICENCE: &str = include_str!("../../LICENSE-MIT");

/// What a program that was started as `program` calls itself when it speaks.
#[must_use]
pub fn name_of(program: &OsStr) -> &'static str {
    Manner::of(program).program()
}

/// Serves as `words` say, which stand behind the program's name, until a signal comes. Started as `memcached`, it has
/// that one's manners.
///
/// # Errors
/// Whatever keeps it from serving: options that make no sense together, ports and files that cannot be had. What is
/// wrong with the command line itself is said here, and the exit status tells it.
pub fn run(program: &OsStr, words: &[OsString]) -> Outcome {
    let manner = command_line::manner(program, words);
    let options = match command_line::read(manner, words) {
        Ok(options) => options,
        Err(Instead::Answer(answer)) => {
            answer.print().map_err(OutputError::from)?;
            return Ok(if answer.use_stderr() { ExitCode::from(manner.misuse()) } else { ExitCode::SUCCESS });
        }
        Err(refusal) => return Err(refusal.into()),
    };
    if options.license {
        crate::output::print(format_args!("{} {}\n\n{LICENCE}", manner.program(), manner.version()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let manner = if options.compat { Manner::Memcached } else { manner };
    match meaning::of(&options, manner) {
        // In memcached's words, and nothing else: scripts look for them.
        Err(OptionError::List(error @ ListError::Unknown(_))) => {
            tell(format_args!("{error}"));
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error.into()),
        Ok(meaning) => serve(&options, manner, meaning),
    }
}

fn serve(options: &Options, manner: Manner, meaning: Meaning) -> Outcome {
    let log = Log::begin(options.verbose, manner);
    let mut ending = Ending::register()?;
    let Meaning { settings, moot, is_local_by_default } = meaning;
    if !moot.is_empty() {
        warn!("accepted, and without a meaning here: {}", moot.join(", "));
    }
    if let Some(warning) = limits::memory(Path::new("/")).and_then(|limit| too_much(&settings, &limit)) {
        warn!("{warning}");
    }
    if options.enable_coredumps {
        process::allow_core_files()?;
    }
    if options.lock_memory {
        process::allow_locked_memory();
    }
    process::allow_connections(settings.connections, settings.threads)?;
    let mut account = options.user.as_deref().map(process::find_user).transpose()?.flatten();
    // What only the user may make that it becomes, it makes afterwards, as memcached makes all of it.
    let is_for_later = |path: &Path| account.is_some() && !process::may_create(path);
    let is_socket_later = settings.unix.as_ref().is_some_and(|socket| is_for_later(&socket.path));
    let is_pidfile_later = options.pidfile.as_deref().is_some_and(is_for_later);
    let furnished = Furnished::new(settings)?;
    ending.in_order();
    if is_socket_later && let Some(account) = account.take() {
        process::become_user(&account, &[])?;
    }
    let prepared = furnished.listen()?;
    let mut pidfile =
        if is_pidfile_later && account.is_some() { None } else { create_pidfile(options, manner)? };
    if let Some(account) = account {
        let socket = prepared.settings().unix.iter().map(|socket| socket.path.as_path());
        let files: Vec<_> = socket.chain(pidfile.as_ref().and_then(PidFile::own_path)).collect();
        process::become_user(&account, &files)?;
        if is_pidfile_later {
            pidfile = create_pidfile(options, manner)?;
        }
    }
    if options.enable_coredumps {
        process::stay_dumpable();
    }
    if manner == Manner::Lookaside {
        announce(&prepared, options.daemon, is_local_by_default);
    }
    if options.daemon {
        process::go_into_background(options.verbose > 0)?;
    }
    if options.lock_memory {
        process::lock_memory();
    }
    if let Some(pidfile) = &mut pidfile {
        or_told(pidfile.write(), manner)?;
    }
    log.start()?;
    let server = prepared.start()?;
    let handle = ending.handle();
    server.when_broken(move || handle.close());
    ending.wait();
    let outcome = server.stop();
    log.finish();
    outcome?;
    Ok(ExitCode::SUCCESS)
}

/// The file for the process id, if one is wanted.
fn create_pidfile(options: &Options, manner: Manner) -> Result<Option<PidFile>, ProcessError> {
    match options.pidfile.as_deref().map(|path| or_told(PidFile::create(path), manner)) {
        Some(outcome) => outcome,
        None => Ok(None),
    }
}

/// What came of the file for the process id; without one memcached serves all the same, and says so.
fn or_told<T>(outcome: Result<T, ProcessError>, manner: Manner) -> Result<Option<T>, ProcessError> {
    match outcome {
        Err(error) if manner == Manner::Memcached => {
            tell(format_args!("{}: {error}", manner.program()));
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

/// What to say if more memory is asked for than there is.
fn too_much(settings: &Settings, limit: &limits::Limit) -> Option<String> {
    let asked = settings.memory as u64 + settings.lookaside as u64;
    let options = if settings.lookaside == 0 { "-m" } else { "-m and --lookaside" };
    (asked > limit.bytes).then(|| {
        format!(
            "{} MB are asked for ({options}), but {limit}: the kernel may kill the server once it has filled that. \
             Ask for less, or raise the limit",
            asked.div_ceil(1 << 20),
        )
    })
}

/// Says on one line where it listens and how to stop it, and on another one that it listens to this machine alone, if
/// nobody has asked for that.
fn announce(prepared: &Prepared, daemon: bool, is_local_by_default: bool) {
    let settings = prepared.settings();
    let stop = if daemon { "SIGTERM stops it" } else { "Ctrl-C or SIGTERM stops it" };
    // Whoever started it need not be listening.
    let _ = writeln!(
        std::io::stdout(),
        "lookaside {} listens on {} ({} MB, {} threads); {stop}",
        env!("CARGO_PKG_VERSION"),
        places(prepared, settings),
        settings.memory >> 20,
        settings.threads,
    );
    if is_local_by_default {
        let _ = writeln!(
            std::io::stdout(),
            "only this machine can connect, unlike memcached's default: -l names other addresses, -l '*' all"
        );
    }
}

fn places(prepared: &Prepared, settings: &Settings) -> String {
    let tcp = prepared.addresses().iter().map(ToString::to_string);
    let unix = settings.unix.iter().map(|socket| socket.path.display().to_string());
    tcp.chain(unix).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use limits::{Limit, Source};

    #[test]
    fn more_memory_than_there_is_is_told_with_both_numbers() {
        let limit = |bytes| Limit { bytes, source: Source::ControlGroup("/sys/fs/cgroup/memory.max".into()) };
        let settings = Settings::default().with_memory(512 << 20);
        assert_eq!(too_much(&settings, &limit(512 << 20)), None);
        let warning = too_much(&settings, &limit((512 << 20) - 1)).expect("a byte too much");
        assert!(warning.contains("512 MB are asked for (-m)"), "{warning}");
        assert!(warning.contains("may use 511 MB (/sys/fs/cgroup/memory.max)"), "{warning}");
        let settings = settings.with_lookaside(1);
        let warning =
            too_much(&settings, &Limit { bytes: 512 << 20, source: Source::Machine }).expect("too much");
        assert!(warning.contains("513 MB are asked for (-m and --lookaside)"), "{warning}");
        assert!(warning.contains("this machine has 512 MB"), "{warning}");
    }
}
