//! `lookaside serve`: from the command line to a server that runs, and to its end.
//!
//! The order matters. Signals are minded first, so that none kills it raw: until there are sockets and files to remove,
//! one ends it at once. Everything that can be refused comes while there is still a terminal to say so on: options,
//! open files, memory, sockets (the ports may need root), the file for the process id, becoming another user. Then the
//! process goes into the background, and only then are threads started.

mod limits;
mod options;
mod process;

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use server::{Furnished, Prepared, Settings};
use tracing::level_filters::LevelFilter;
use tracing::warn;

pub use options::Arguments;
use process::{Ending, PidFile};

use crate::output::Outcome;

/// Serves until a signal comes.
///
/// # Errors
/// Whatever keeps it from serving: options that make no sense, ports and files that cannot be had.
pub fn run(arguments: &Arguments) -> Outcome {
    log(arguments.verbose);
    let mut ending = Ending::register()?;
    let settings = arguments.settings()?;
    if let Some(warning) = limits::memory(Path::new("/")).and_then(|limit| too_much(&settings, &limit)) {
        warn!("{warning}");
    }
    process::allow_connections(settings.connections, settings.threads)?;
    let user = arguments.user.as_deref().map(process::find_user).transpose()?.flatten();
    let furnished = Furnished::new(settings)?;
    ending.in_order();
    let prepared = furnished.listen()?;
    let mut pidfile = arguments.pidfile.as_deref().map(PidFile::create).transpose()?;
    if let Some(user) = &user {
        let socket = prepared.settings().unix.iter().map(|socket| socket.path.as_path());
        let files: Vec<_> = socket.chain(pidfile.as_ref().map(PidFile::path)).collect();
        process::become_user(user, &files)?;
    }
    announce(&prepared, arguments.daemon);
    if arguments.daemon {
        process::go_into_background(arguments.verbose > 0)?;
    }
    if let Some(pidfile) = &mut pidfile {
        pidfile.write()?;
    }
    let server = prepared.start()?;
    let handle = ending.handle();
    server.when_broken(move || handle.close());
    ending.wait();
    server.stop()?;
    Ok(ExitCode::SUCCESS)
}

fn log(verbosity: u8) {
    let level = match verbosity {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(std::io::stderr().is_terminal() && !no_color)
        // A line that cannot be written, because a disk is full or a reader gone, is lost. Saying so in its place, as
        // is the default, cannot work either, and panics: the server would end for want of a log.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .init();
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

/// Says on one line where it listens and how to stop it.
fn announce(prepared: &Prepared, daemon: bool) {
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
