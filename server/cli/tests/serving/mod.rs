//! The program as it is started, and a client of it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a busy machine may take for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_lookaside");

/// A server on a free port, killed when this is dropped.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) port: u16,
    /// What it says on standard error.
    log: PathBuf,
    _directory: tempfile::TempDir,
}

impl Serving {
    /// Starts it by this command, whose last words are the program and its options.
    pub(crate) fn start(command: &mut Command) -> Serving {
        let directory = tempfile::tempdir().expect("a directory");
        let log = directory.path().join("log");
        command.stderr(File::create(&log).expect("a file"));
        Self::start_with_its_own_log(command, directory, log)
    }

    pub(crate) fn start_with_its_own_log(
        command: &mut Command,
        directory: tempfile::TempDir,
        log: PathBuf,
    ) -> Serving {
        let port_file = directory.path().join("port");
        command
            .args(["-p", "-1", "-t", "1"])
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .stdout(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let port = wait_for("the port", || {
            if let Some(status) = child.try_wait().expect("it is our child") {
                panic!("it has ended: {status}: {}", fs::read_to_string(&log).unwrap_or_default());
            }
            let ports = fs::read_to_string(&port_file).unwrap_or_default();
            ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.parse().ok())
        });
        Serving { child, port, log, _directory: directory }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a file")
    }

    pub(crate) fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        BufReader::new(stream)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn ask(client: &mut BufReader<TcpStream>, request: &str) -> String {
    client.get_mut().write_all(request.as_bytes()).expect("the connection is open");
    let mut line = String::new();
    client.read_line(&mut line).expect("it answers");
    line
}

pub(crate) fn stat(client: &mut BufReader<TcpStream>, name: &str) -> u64 {
    client.get_mut().write_all(b"stats\r\n").expect("the connection is open");
    let mut value = None;
    loop {
        let mut line = String::new();
        assert_ne!(client.read_line(&mut line).expect("it answers"), 0, "it has closed the connection");
        match line.trim_end().split(' ').collect::<Vec<_>>()[..] {
            ["END"] => return value.unwrap_or_else(|| panic!("no statistic {name}")),
            ["STAT", found, number] if found == name => value = Some(number.parse().expect("a number")),
            _ => {}
        }
    }
}

/// The first bytes that come back of a binary `noop`; none where the connection is closed.
pub(crate) fn answer_to_a_noop(port: u16) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut request = [0; 24];
    (request[0], request[1]) = (0x80, 0x0a);
    stream.write_all(&request).expect("the connection is open");
    let mut reply = [0; 2];
    match stream.read_exact(&mut reply) {
        Ok(()) => reply.to_vec(),
        Err(_) => Vec::new(),
    }
}
