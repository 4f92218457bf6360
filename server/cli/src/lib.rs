//! What the command `lookaside` does, for it and for the laboratory's own command, which starts servers of the same
//! build. Each file stands on some of those below it, and on none above:
//!
//! ```text
//!   main
//!   serve                from the command line to a server that runs, and to its end
//!   serve/command_line   serve/meaning     serve/log          serve/process
//!   serve/file           serve/listen
//!   serve/options        serve/extended
//!   serve/manner         serve/later      serve/values        serve/limits
//!   output
//! ```

#![forbid(unsafe_code)]

pub mod output;
pub mod serve;
