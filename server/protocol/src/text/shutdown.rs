//! `shutdown`: stop the server.

use super::arguments::Arguments;
use super::format::RequestLine;

/// How a server is to stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shutdown {
    /// At once, as an interrupt stops it.
    Now,
    /// `graceful`: as SIGUSR1 stops it.
    Graceful,
    /// In a way that there is not: [`ErrorReply::InvalidShutdownMode`](crate::ErrorReply::InvalidShutdownMode), where
    /// it is allowed at all.
    Unknown,
}

/// `[graceful] [noreply]`.
pub(super) fn parse(arguments: &Arguments<'_>) -> Shutdown {
    match (arguments.count() - usize::from(arguments.noreply), arguments.first()) {
        (0, _) => Shutdown::Now,
        (1, Some(b"graceful")) => Shutdown::Graceful,
        _ => Shutdown::Unknown,
    }
}

pub(super) fn write(line: &mut RequestLine<'_>, how: Shutdown, noreply: bool) {
    line.name("shutdown");
    match how {
        Shutdown::Now => {}
        Shutdown::Graceful => line.bytes(b"graceful"),
        Shutdown::Unknown => line.bytes(b"unknown"),
    }
    line.noreply(noreply);
}
