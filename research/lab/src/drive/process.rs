//! Servers as processes: starting them, ending them, and the processor time that they take.
//!
//! Processor time is the process's own clock (`clock_getcpuclockid`): user and system time of all its threads, living
//! and dead, the sum that `/proc/<id>/stat` shows as `utime` and `stime`, but in nanoseconds where that counts
//! hundredths of a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use rustix::process::Signal;

use super::DriveError;
use super::endpoint::Endpoint;
use crate::measure::{CoreError, pin};

/// How long a server may take to start, or to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(2);

/// The clock that counts a process's time on processors.
#[derive(Debug, Clone, Copy)]
pub struct ProcessClock {
    id: u32,
    clock: ClockId,
}

impl ProcessClock {
    /// The clock of the process number `id`.
    ///
    /// # Errors
    /// [`DriveError::Process`] where there is no such process.
    pub fn of(id: u32) -> Result<ProcessClock, DriveError> {
        let missing = |reason: String| DriveError::Process { id, reason };
        let pid = i32::try_from(id).map_err(|_| missing("no process has this number".into()))?;
        let clock =
            clock_getcpuclockid(Pid::from_raw(pid)).map_err(|error| missing(error.desc().to_owned()))?;
        Ok(ProcessClock { id, clock })
    }

    /// The time the process has had so far.
    ///
    /// # Errors
    /// [`DriveError::Process`] where it has ended.
    pub fn now(&self) -> Result<Duration, DriveError> {
        let time = self.clock.now();
        let time =
            time.map_err(|error| DriveError::Process { id: self.id, reason: error.desc().to_owned() })?;
        Ok(Duration::from(time))
    }
}

/// How to start a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments. Where one is `{port}` or has it inside, a free port is put in its place; otherwise `-p -1` is
    /// added, which asks memcached and its kin for a port of their choice.
    pub arguments: Vec<String>,
}

impl ServerCommand {
    /// The command in `line`, split into words as a shell does.
    ///
    /// # Errors
    /// [`DriveError::Settings`] where a quotation does not end, or there is nothing.
    pub fn parse(line: &str) -> Result<ServerCommand, DriveError> {
        let mut words = shlex::split(line).unwrap_or_default().into_iter();
        let program = words.next().ok_or_else(|| {
            DriveError::Settings(format!("'{line}' is no command line: is a quotation mark missing?"))
        })?;
        Ok(ServerCommand { program: program.into(), arguments: words.collect() })
    }

    /// The same with more arguments.
    #[must_use]
    pub fn with(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> ServerCommand {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The command as a line.
    #[must_use]
    pub fn line(&self) -> String {
        let words = std::iter::once(self.program.to_string_lossy().into_owned());
        words.chain(self.arguments.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    /// Starts it, on `core` alone if one is named, and waits until it can be connected to.
    ///
    /// # Errors
    /// [`DriveError::Start`] where it ends or does not listen, [`DriveError::Core`].
    pub fn start(&self, core: Option<usize>) -> Result<ServerProcess, DriveError> {
        let failed = |reason: String| DriveError::Start { command: self.line(), reason };
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let port_file = folder.path().join("port");
        // A file, because a pipe that nobody empties would stop a server that has much to say.
        let words = folder.path().join("words");
        let words_file = fs::File::create(&words).map_err(|error| failed(error.to_string()))?;
        let mut arguments = self.arguments.clone();
        let mut port = None;
        if arguments.iter().any(|argument| argument.contains(PORT)) {
            let free = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
            let free = free.map_err(|error| failed(error.to_string()))?.port();
            arguments.iter_mut().for_each(|argument| *argument = argument.replace(PORT, &free.to_string()));
            port = Some(free);
        } else {
            arguments.extend(["-p", "-1"].map(str::to_owned));
        }
        let mut command = Command::new(&self.program);
        command
            .args(&arguments)
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words_file);
        let child = spawn_on(&mut command, core)?.map_err(|error| failed(error.to_string()))?;
        let mut server = ServerProcess { child, endpoint: Endpoint::Tcp(([127, 0, 0, 1], 0).into()) };
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(port) = port.or_else(|| written_port(&port_file)) {
                server.endpoint = Endpoint::Tcp(([127, 0, 0, 1], port).into());
                if server.endpoint.connect(PATIENCE).is_ok() {
                    return Ok(server);
                }
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                // What it said is a help; that it ended is the matter.
                let words = fs::read_to_string(&words).unwrap_or_default();
                return Err(failed(format!("it ended at once ({status}): {}", words.trim())));
            }
            if Instant::now() > deadline {
                return Err(failed(format!("it does not listen after {} s", PATIENCE.as_secs())));
            }
            thread::sleep(LOOK);
        }
    }
}

/// What stands for a free port.
const PORT: &str = "{port}";

/// The port in a file as memcached writes it; none while it is not there.
fn written_port(file: &Path) -> Option<u16> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("TCP INET:")?.trim().parse().ok())
}

/// A process inherits the cores of the thread that starts it, so that all its threads are there from the beginning.
fn spawn_on(command: &mut Command, core: Option<usize>) -> Result<std::io::Result<Child>, CoreError> {
    let Some(core) = core else { return Ok(command.spawn()) };
    thread::scope(|scope| {
        let starter = scope.spawn(|| pin(core).map(|()| command.spawn()));
        starter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A server that was started, and is ended when this is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    endpoint: Endpoint,
}

impl ServerProcess {
    /// Where it listens.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The clock of its time on processors.
    ///
    /// # Errors
    /// [`DriveError::Process`] where it has ended.
    pub fn clock(&self) -> Result<ProcessClock, DriveError> {
        ProcessClock::of(self.id())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Asked first, so that it can tidy up; it is our own child, so its number cannot be another's by now.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::processor_time;

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        let command = ServerCommand::parse("memcached -p {port} -o 'a b'").unwrap().with(["-t", "1"]);
        assert_eq!(command.program, Path::new("memcached"));
        assert_eq!(command.arguments, ["-p", "{port}", "-o", "a b", "-t", "1"]);
        assert!(ServerCommand::parse("").is_err() && ServerCommand::parse("'half").is_err());
    }

    #[test]
    fn a_server_that_ends_at_once_is_an_error_with_its_words() {
        let command = ServerCommand::parse("sh -c 'echo cannot >&2; exit 3'").unwrap();
        let error = command.start(None).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("cannot"), "{error}");
        let absent = ServerCommand::parse("/nowhere/at/all").unwrap();
        assert!(matches!(absent.start(None), Err(DriveError::Start { .. })));
    }

    #[test]
    fn the_clock_of_a_process_counts_its_work() {
        let own = ProcessClock::of(std::process::id()).unwrap();
        let (before, start) = (own.now().unwrap(), Instant::now());
        let thread_before = processor_time();
        while processor_time() - thread_before < Duration::from_millis(30) {
            std::hint::spin_loop();
        }
        let spent = own.now().unwrap() - before;
        assert!(spent >= Duration::from_millis(30), "{spent:?} in {:?}", start.elapsed());
        // A process that was waited for is no more.
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(ProcessClock::of(child.id()).and_then(|clock| clock.now()).is_err());
    }
}
