//! The product's one binary, `lookaside`: a cache server that memcached's clients can talk to.
//!
//! `lookaside -p 11211 -m 64` means what it means to memcached; `serve` may stand before the options. By the name
//! `memcached`, as a link for example, it takes that one's place in start scripts. What measures and simulates is
//! another program, `lookaside-lab`, of which this one has nothing.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

use lookaside_cli::{output, serve};

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    // A program may be started without even its name.
    let program = if words.is_empty() { OsString::new() } else { words.remove(0) };
    if words.first().is_some_and(|word| word == "serve") {
        words.remove(0);
    }
    output::finish(serve::name_of(&program), serve::run(&program, &words))
}
