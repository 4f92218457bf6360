//! What the command `lookaside` does, for it and for the laboratory's own command, which starts servers of the same
//! build.

#![forbid(unsafe_code)]

pub mod output;
pub mod serve;
