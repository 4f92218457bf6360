//! What can go wrong while a server is driven.

use std::io::{self, ErrorKind};
use std::time::Duration;

use workload::DistributionError;
use workload::trace::TraceError;

use super::checker::WrongReply;
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
