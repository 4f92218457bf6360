//! A real memcached, for the time of a test, and conversations with it.
//!
//! The program is `memcached` on the search path, or what `LOOKASIDE_MEMCACHED` names. Where there is none the test
//! says on standard error that it was skipped, and passes; with `LOOKASIDE_REQUIRE_PEERS=1` it fails instead.

use lookaside_protocol::{ErrorReply, reply};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

const PATIENCE: Duration = Duration::from_secs(10);

/// A running memcached; it is killed when this is dropped.
pub(crate) struct Memcached {
    child: Child,
    port: u16,
    /// `1.6.18` as three numbers.
    pub(crate) version: [u32; 3],
    /// For the file with the port's number.
    _directory: tempfile::TempDir,
}

impl Memcached {
    /// Starts it with everything switched off that this crate answers for as switched off, or says why there is none.
    pub(crate) fn start() -> Option<Memcached> {
        Self::start_with(&["-W", "-X"])
    }

    /// Starts it with these options.
    pub(crate) fn start_with(options: &[&str]) -> Option<Memcached> {
        let program = env::var("LOOKASIDE_MEMCACHED").unwrap_or_else(|_| "memcached".into());
        match Self::try_start(&program, options) {
            Ok(memcached) => Some(memcached),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                outside::skip(format_args!("{program} is not installed"));
                None
            }
            Err(error) => panic!("{program} does not start: {error}"),
        }
    }

    fn try_start(program: &str, options: &[&str]) -> io::Result<Memcached> {
        let directory = tempfile::tempdir()?;
        let mut command = Command::new(program);
        if fs::metadata(directory.path())?.uid() == 0 {
            // It refuses to run as root, and has to be able to write the port's number.
            command.args(["-u", "nobody"]);
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777))?;
        }
        let port_file = directory.path().join("port");
        let child = command
            .args(["-l", "127.0.0.1", "-p", "-1", "-U", "0", "-t", "1"])
            .args(options)
            .args(["-o", "no_slab_reassign,no_lru_crawler,no_lru_maintainer"])
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .stderr(Stdio::null())
            .spawn()?;
        let mut memcached = Memcached { child, port: 0, version: [0; 3], _directory: directory };
        memcached.port = memcached.wait_for_port(&port_file);
        memcached.version = memcached.ask_version();
        Ok(memcached)
    }

    fn wait_for_port(&mut self, file: &std::path::Path) -> u16 {
        let begun = Instant::now();
        loop {
            let ports = fs::read_to_string(file).unwrap_or_default();
            let port = ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.trim().parse().ok());
            if let Some(port) = port {
                return port;
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!("memcached ended as it started: {status}");
            }
            assert!(begun.elapsed() < PATIENCE, "memcached does not say its port");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn ask_version(&self) -> [u32; 3] {
        let (reply, _) = self.connect().ask(b"version\r\n");
        let text = String::from_utf8_lossy(&reply);
        let mut numbers =
            text.trim_end().trim_start_matches("VERSION ").split('.').map_while(|part| part.parse().ok());
        std::array::from_fn(|_| numbers.next().unwrap_or(0))
    }

    pub(crate) fn connect(&self) -> Conversation {
        Conversation::with(self.address())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a connection has ended, if it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It has not.
    Open,
    /// The other side has closed it.
    Closed,
    /// It has been closed with replies still waiting to be sent.
    Dropped,
}

/// A connection to it.
pub(crate) struct Conversation {
    stream: TcpStream,
}

fn before_the_questions(answer: &[u8]) -> Option<&[u8]> {
    let delta = ErrorReply::InvalidDelta.bytes();
    let version = answer.strip_suffix(delta)?.strip_suffix(reply::CRLF)?;
    let line = version.iter().rposition(|byte| *byte == b'\n')? + 1;
    version[line..].strip_prefix(b"VERSION ")?;
    version[..line].strip_suffix(delta)?.strip_suffix(reply::OK)
}

impl Conversation {
    /// Connects to a server.
    pub(crate) fn with(address: SocketAddr) -> Conversation {
        let stream = TcpStream::connect(address).expect("it accepts connections");
        stream.set_nodelay(true).expect("a socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Conversation { stream }
    }

    /// Sends `bytes` and a few questions more, all in one piece, and returns what was answered before these.
    ///
    /// The questions' answers are known, leave nothing behind, and in this order nobody else asks for them.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> (Vec<u8>, End) {
        let mut sent = bytes.to_vec();
        sent.extend_from_slice(b"verbosity 0\r\nincr end x\r\nversion\r\nincr end x\r\n");
        let mut answer = Vec::new();
        if self.stream.write_all(&sent).is_err() {
            return (answer, End::Closed);
        }
        while self.receive(&mut answer) {
            if let Some(reply) = before_the_questions(&answer) {
                return (reply.to_vec(), End::Open);
            }
        }
        (answer, End::Closed)
    }

    /// Sends bytes that are not answered yet.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the connection is open");
    }

    /// Whether the connection is still open some time after the last bytes were sent. Being open cannot be observed
    /// but by waiting; being closed is noticed at once.
    pub(crate) fn end_within(&mut self, time: Duration) -> End {
        self.stream.set_read_timeout(Some(time)).expect("a socket");
        let read = self.read(&mut [0; 1]);
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        match read {
            Ok(0) => End::Closed,
            Ok(_) => panic!("an answer, and not the end"),
            Err(error) if error.kind() == ErrorKind::WouldBlock => End::Open,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => End::Closed,
            Err(error) => panic!("{error}"),
        }
    }

    /// Receives what there is; goes on if the process was stopped meanwhile, which ends a wait with a time limit.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn receive(&mut self, answer: &mut Vec<u8>) -> bool {
        let mut buffer = [0; 16384];
        match self.read(&mut buffer) {
            Ok(length) => {
                answer.extend_from_slice(&buffer[..length]);
                length > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer after {}: {error}", answer.escape_ascii()),
        }
    }
}
