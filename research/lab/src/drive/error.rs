//! What can go wrong while a server is driven.

use std::io::{self, ErrorKind};
use std::time::Duration;

use protocol::response::Malformed;
use workload::DistributionError;
use workload::trace::TraceError;

use super::contents::WrongValue;
use crate::measure::CoreError;

/// Why driving a server failed. What was measured until then means nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// A server cannot be connected to.
    #[error("cannot connect to {endpoint}: {error}")]
    Connect {
        /// Where it was looked for.
        endpoint: String,
        /// The system's answer.
        error: io::Error,
    },
    /// The server closed a connection that waited for replies.
    #[error("the server closed the connection: has it as many connections (-c) as are asked of it?")]
    Closed,
    /// The server says nothing.
    #[error("the server has not answered within {}", humantime::format_duration(*.0))]
    Silent(Duration),
    /// The server sent more replies than it got requests.
    #[error("the server sent more replies than it was sent requests")]
    Surplus,
    /// The server answered what it should not have.
    #[error(transparent)]
    Reply(#[from] WrongReply),
    /// A thread could not be put on its core.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The load asks for what there is not.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The settings contradict each other.
    #[error("{0}")]
    Settings(String),
    /// A server could not be started.
    #[error("{command}: {reason}")]
    Start {
        /// Its command line.
        command: String,
        /// What happened instead.
        reason: String,
    },
    /// A process cannot be observed.
    #[error("the processor time of process {id} cannot be read: {reason}")]
    Process {
        /// The process.
        id: u32,
        /// The system's answer.
        reason: String,
    },
    /// The system refused something else.
    #[error("{0}")]
    System(io::Error),
}

impl DriveError {
    /// What an error of a blocking connection means, which gives up where nothing comes for `patience`.
    pub(super) fn of_wire(error: io::Error, patience: Duration) -> DriveError {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => DriveError::Silent(patience),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => DriveError::Closed,
            _ => DriveError::System(error),
        }
    }
}

/// What a server answered and should not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrongReply {
    /// It is no reply at all.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is a reply to another question.
    #[error("the server answered '{0}', which is no answer to what it was asked")]
    Unexpected(String),
    /// A value that was not asked for, or not there in the order of the keys.
    #[error("the server sent the value of '{0}', which it was not asked for there")]
    NotAsked(String),
    /// A value is not one that was stored for its key.
    #[error("the value of '{key}' is wrong: {reason}")]
    Value {
        /// The key.
        key: String,
        /// What is wrong with the value.
        reason: WrongValue,
    },
}

impl WrongReply {
    pub(super) fn unexpected(reply: &[u8]) -> WrongReply {
        let line = reply.split(|byte| *byte == b'\r').next().unwrap_or_default();
        WrongReply::Unexpected(String::from_utf8_lossy(line).into_owned())
    }
}
