//! A server in a process of its own, so that what it costs can be told from what its clients cost.
//!
//! It is the test program itself, started again to run the one test that calls [`serve`]; that one serves until its
//! standard input ends, and the process that started it sees to that.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io};

use lookaside_server::Server;
use nix::sys::resource::{Resource, setrlimit};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

use crate::client::{Address, PATIENCE, settings, wait_until};

/// The variables by which the one process tells the other what is wanted.
const PORT_FILE: &str = "LOOKASIDE_TEST_PORT_FILE";
const CONNECTIONS: &str = "LOOKASIDE_TEST_CONNECTIONS";
const DESCRIPTORS: &str = "LOOKASIDE_TEST_DESCRIPTORS";
const MEMORY: &str = "LOOKASIDE_TEST_MEMORY";
const BUFFERS: &str = "LOOKASIDE_TEST_BUFFERS";
const IDLE: &str = "LOOKASIDE_TEST_IDLE";

/// A running server process. Dropped, it is ended and must have ended well.
pub(crate) struct ServerProcess {
    child: Child,
    /// Closed, it tells the server to stop.
    input: Option<ChildStdin>,
    pub(crate) address: Address,
}

/// What is asked of a server process.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) connections: usize,
    /// File descriptors that it may open beyond those that it needs when it starts.
    pub(crate) descriptors: Option<usize>,
    /// Bytes for items and index, and for what all connections hold; seconds that one may be silent. What is not said
    /// is as in all tests.
    pub(crate) memory: Option<usize>,
    pub(crate) buffers: Option<usize>,
    pub(crate) idle_timeout: Option<usize>,
}

impl ServerProcess {
    /// Starts one; `test` is the name of the test that calls [`serve`].
    pub(crate) fn start(test: &str, wanted: &Wanted) -> ServerProcess {
        let directory = tempfile::tempdir().expect("a directory");
        let port_file = directory.path().join("port");
        let mut command = Command::new(env::current_exe().expect("this program"));
        command
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(PORT_FILE, &port_file)
            .env(CONNECTIONS, wanted.connections.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        for (name, number) in [
            (DESCRIPTORS, wanted.descriptors),
            (MEMORY, wanted.memory),
            (BUFFERS, wanted.buffers),
            (IDLE, wanted.idle_timeout),
        ] {
            if let Some(number) = number {
                command.env(name, number.to_string());
            }
        }
        let mut child = command.spawn().expect("this program starts again");
        let input = child.stdin.take();
        let mut port = None;
        wait_until("the server says its port", || {
            assert_eq!(child.try_wait().expect("it is our child"), None, "the server has ended");
            port = read_port(&port_file);
            port.is_some()
        });
        let address = Address::from(std::net::SocketAddr::from(([127, 0, 0, 1], port.expect("just read"))));
        ServerProcess { child, input, address }
    }

    fn proc(&self, name: &str) -> std::path::PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(name)
    }

    /// Bytes of memory that are resident, without those of files.
    pub(crate) fn resident(&self) -> usize {
        let status = fs::read_to_string(self.proc("status")).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux says so");
        let kilobytes: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    /// The time that it has had on processors, in all its threads. What others on the machine take is not in it.
    pub(crate) fn processor_time(&self) -> Duration {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("the number of a process"));
        let clock = clock_getcpuclockid(pid).expect("it runs");
        Duration::from(clock.now().expect("it runs"))
    }

    /// Open file descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(self.proc("fd")).expect("it runs").count()
    }

    /// Threads.
    pub(crate) fn threads(&self) -> usize {
        fs::read_dir(self.proc("task")).expect("it runs").count()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        let begun = Instant::now();
        let status = loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => break Some(status),
                None if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(2)),
                None => break None,
            }
        };
        if status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if !std::thread::panicking() {
            assert!(
                status.is_some_and(|status| status.success()),
                "the server has not ended well: {status:?}"
            );
        }
    }
}

fn read_port(file: &Path) -> Option<u16> {
    match fs::read_to_string(file) {
        Ok(ports) => ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.parse().ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

/// Serves until standard input ends; returns at once if nobody has asked for it.
pub(crate) fn serve() {
    let Some(port_file) = env::var_os(PORT_FILE) else { return };
    let number = |name: &str| env::var(name).ok().map(|number| number.parse::<usize>().expect("a number"));
    let connections = number(CONNECTIONS).expect("given with the port file");
    let mut wanted = settings().with_connections(connections);
    if let Some(bytes) = number(MEMORY) {
        wanted = wanted.with_memory(bytes);
    }
    if let Some(bytes) = number(BUFFERS) {
        wanted = wanted.with_read_buffers(bytes);
    }
    if let Some(seconds) = number(IDLE) {
        wanted = wanted.with_idle_timeout(u32::try_from(seconds).expect("a few"));
    }
    let server = Server::start(wanted).expect("it starts");
    if let Some(more) = number(DESCRIPTORS) {
        let mut open: Vec<u64> = fs::read_dir("/proc/self/fd")
            .expect("Linux")
            .map(|entry| entry.expect("Linux").file_name().to_string_lossy().parse().expect("a number"))
            .collect();
        // Without the one that the directory took itself.
        open.retain(|number| fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
        // The first number that is not to be had.
        let limit = (0..).filter(|number| !open.contains(number)).nth(more).expect("numbers do not end");
        setrlimit(Resource::RLIMIT_NOFILE, limit, limit).expect("less is always allowed");
    }
    // Last: nobody can connect without the port.
    let text = format!("TCP INET: {}\n", server.addresses()[0].port());
    write_whole(Path::new(&port_file), &text).expect("a descriptor is free");
    let mut end = Vec::new();
    io::stdin().read_to_end(&mut end).expect("standard input is open");
    server.stop().expect("no thread has failed");
}

fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, file)
}
