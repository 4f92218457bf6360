//! Experiments on whole servers: our own, memcached and Redis, each as a process of its own, driven over loopback TCP.
//!
//! | module | idea |
//! |---|---|
//! | `constant` | the least that a server can cost: a constant is answered |
//! | `contender` | naming a server in a definition, and starting it |
//! | `cores` | which core servers and client get |
//! | `cpu` | kind `server-cpu`: what requests cost a server |
//! | `drift` | kind `server-drift`: hit ratios while the values change their sizes |
//! | `expiry` | kind `server-expiry`: what it costs that expired items go by themselves |
//! | `filling` | filling a server, and checking what it has |
//! | `latency` | kind `server-latency`: how long requests take at rates that a server can keep |
//! | `lookaside` | kind `server-lookaside`: ours with and without a lookaside buffer, in large batches |
//! | `pauses` | kind `server-pauses`: the longest request while something large happens |
//! | `replay` | kind `server-replay`: hit ratios on a real trace |
//! | `throughput` | kind `server-throughput`: the paper's section 5.4, Figure 9 |
//! | `writes` | kind `server-writes`: what writes that come together cost a server |

mod constant;
mod contender;
mod cores;
mod cpu;
mod drift;
mod expiry;
mod filling;
mod latency;
mod lookaside;
mod pauses;
mod replay;
mod throughput;
mod writes;

pub use constant::Constants;

use crate::drive::DriveError;
use crate::experiment::{ExperimentError, Laboratory};

/// Adds the kinds of experiment on servers.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory
        .with_kind("server-cpu", cpu::run)
        .with_kind("server-drift", drift::run)
        .with_kind("server-expiry", expiry::run)
        .with_kind("server-latency", latency::run)
        .with_kind("server-lookaside", lookaside::run)
        .with_kind("server-pauses", pauses::run)
        .with_kind("server-replay", replay::run)
        .with_kind("server-throughput", throughput::run)
        .with_kind("server-writes", writes::run)
}

/// What went wrong while `server` was driven, as an experiment tells it.
fn failed(server: &str, error: DriveError) -> ExperimentError {
    match error {
        DriveError::Reply(reply) => ExperimentError::wrong(server, reply.to_string()),
        other => ExperimentError::Machine(format!("{server}: {other}")),
    }
}
