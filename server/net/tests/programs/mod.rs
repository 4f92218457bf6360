//! Programs that are not ours: run to their end with a deadline; absent, they are a reason to skip a test.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{ErrorKind, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What a program said, on both its outputs, and how it ended.
pub(crate) struct Ended {
    pub(crate) said: String,
    pub(crate) status: ExitStatus,
}

/// Runs a program; `None`, with a message, if there is none of that name and there need not be.
pub(crate) fn run(command: &mut Command, patience: Duration) -> Option<Ended> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            outside::skip(format_args!("{name} is not installed"));
            return None;
        }
        outcome => outcome.unwrap_or_else(|error| panic!("{name} does not start: {error}")),
    };
    let outputs: [Box<dyn Read + Send>; 2] =
        [Box::new(child.stdout.take().expect("piped")), Box::new(child.stderr.take().expect("piped"))];
    let readers = outputs.map(|mut output| {
        thread::spawn(move || {
            let mut said = String::new();
            output.read_to_string(&mut said).map(|_| said)
        })
    });
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break Some(status);
        }
        if begun.elapsed() > patience {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let said: String = readers
        .into_iter()
        .map(|reader| reader.join().expect("it does not panic").expect("it speaks UTF-8"))
        .collect();
    let Some(status) = status else { panic!("{name} has not ended after {patience:?}: {said}") };
    Some(Ended { said, status })
}
