//! Standard output, for every command: what cannot be written is an error, and ends the command.
//!
//! A disk that is full is told and makes the exit status 1. A reader that has seen enough (`| head`) is no reason for
//! words: the status is then that of a Unix tool which the signal for it ended, 128 and the signal's number. Rejected:
//! the signal itself, because a command has servers and files to put in order before it ends.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::{self, Arguments};
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

/// 128 + SIGPIPE.
const CLOSED: u8 = 141;

/// What a command comes to.
pub type Outcome = Result<ExitCode, Box<dyn Error>>;

/// What could not be written.
#[derive(Debug)]
pub struct OutputError(io::Error);

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output: {}", self.0)
    }
}

impl Error for OutputError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

impl From<io::Error> for OutputError {
    fn from(error: io::Error) -> Self {
        OutputError(error)
    }
}

/// Reads the command line; None where it asked for help or the version: they are output as any other. What it cannot be
/// is said, and ends the program.
///
/// # Errors
/// [`OutputError`], where help cannot be written.
pub fn parse<P: Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<P>, OutputError> {
    match P::try_parse_from(arguments) {
        Ok(parsed) => Ok(Some(parsed)),
        Err(asked) if !asked.use_stderr() => {
            asked.print()?;
            Ok(None)
        }
        Err(refused) => refused.exit(),
    }
}

/// Writes to standard output.
///
/// # Errors
/// [`OutputError`], where that cannot be done.
pub fn print(text: Arguments<'_>) -> Result<(), OutputError> {
    Ok(io::stdout().lock().write_fmt(text)?)
}

/// Writes what standard output holds back, and says what went wrong, if something did, in the program's name.
pub fn finish(program: &str, outcome: Outcome) -> ExitCode {
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
                let _ = writeln!(io::stderr(), "{program}: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Says something beside the command's output.
pub fn tell(text: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{text}");
}
