//! What holds whatever the bytes are: each function takes any, and panics where it does not hold. libFuzzer calls them
//! (`fuzz/fuzz_targets`), on a nightly toolchain; the test of this crate does so with mutations of the seeds, on the
//! stable one, and is what every change waits for.
//!
//! Where operations or text are wanted, they are made of the bytes as libFuzzer would make them, by `arbitrary`.
#![forbid(unsafe_code)]

mod cache;
mod parser;
mod response;
mod tree;

#[cfg(not(lookaside_no_server))]
mod binary;
#[cfg(not(lookaside_no_server))]
mod connection;
#[cfg(not(lookaside_no_server))]
mod meta;
#[cfg(not(lookaside_no_server))]
mod options;

use std::fmt::Debug;

pub use self::cache::cache;
pub use self::parser::parser;
pub use self::response::response;
pub use self::tree::tree;
#[cfg(not(lookaside_no_server))]
pub use self::{binary::binary, connection::connection, meta::meta, options::options};

/// What was made of the bytes, told where something does not hold for it: from the bytes, nobody sees it.
struct Shown<'a, T: Debug>(&'a T);

impl<T: Debug> Drop for Shown<'_, T> {
    #[allow(clippy::print_stderr, reason = "for whoever looks at the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("made of the bytes: {:?}", self.0);
        }
    }
}
