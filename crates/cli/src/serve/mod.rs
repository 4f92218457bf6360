//! `lookaside serve`: from the command line to a server that runs, and to its end.
//!
//! The order matters. Signals are minded first, so that none kills it raw. Everything that can be refused comes while there
//! is still a terminal to say so on: options, open files, memory, sockets (the ports may need root), the file for the process
//! id, becoming another user. Then the process goes into the background, and only then are threads started.

mod options;
mod process;

use std::io::Write;
use std::process::ExitCode;

use server::{Prepared, Settings};
use tracing::level_filters::LevelFilter;

pub(crate) use options::Arguments;
use process::{Ending, PidFile};

use crate::output::Outcome;

/// Serves until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> Outcome {
    log(arguments.verbose);
    let mut ending = Ending::register()?;
    let settings = arguments.settings()?;
    process::allow_connections(settings.connections, settings.threads)?;
    let user = arguments.user.as_deref().map(process::find_user).transpose()?.flatten();
    let prepared = Prepared::new(settings)?;
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
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
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
