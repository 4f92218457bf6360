//! Standard output, for every command: what cannot be written is an error, and ends the command.
//!
//! A disk that is full is told and makes the exit status 1. A reader that has seen enough (`| head`) is no reason for words:
//! the status is then that of a Unix tool which the signal for it ended, 128 and the signal's number. Rejected: the signal
//! itself, because a command has servers and files to put in order before it ends.

use std::error::Error;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// 128 + SIGPIPE.
const CLOSED: u8 = 141;

/// What a command comes to.
pub(crate) type Outcome = Result<ExitCode, Box<dyn Error>>;

/// What could not be written.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub(crate) struct OutputError(#[from] io::Error);

/// Writes to standard output.
pub(crate) fn print(text: Arguments<'_>) -> Result<(), OutputError> {
    Ok(io::stdout().lock().write_fmt(text)?)
}

/// Writes what standard output holds back, and says what went wrong, if something did.
pub(crate) fn finish(outcome: Outcome) -> ExitCode {
    let outcome = outcome.and_then(|code| {
        io::stdout().lock().flush().map_err(OutputError)?;
        Ok(code)
    });
    match outcome {
        Ok(code) => code,
        Err(error) => match error.downcast_ref() {
            Some(OutputError(why)) if why.kind() == ErrorKind::BrokenPipe => ExitCode::from(CLOSED),
            _ => {
                // Where nobody listens, the status says it.
                let _ = writeln!(io::stderr(), "lookaside: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Says something beside the command's output.
pub(crate) fn tell(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
