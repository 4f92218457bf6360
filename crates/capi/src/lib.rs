//! The Search Lookaside Buffer for C and C++: `include/lookaside.h` is made from this crate.
//!
//! The paper's interface (Wu, Ni and Jiang, SoCC 2017, Figure 4) by name and type, and what it lacks under
//! `lookaside_`. Everything here is documented for its C user; the protocol is on one page, in the header's head
//! (`cbindgen.toml`).
//!
//! | module | idea |
//! |---|---|
//! | `refusal` | errors in words |
//! | `layout` | what C code may read by itself: frozen |
//! | `session` | what each thread keeps, and how it is found and given back |
//! | `handle` | a buffer, its callbacks, and the operations on both |
//! | [`figure4`] | the eight functions of the paper |
//! | [`extended`] | tickets, writes, pins, retirement, batches |
//! | [`options`] | making a buffer: sizes, admission, counters; several indexes |
//! | [`stats`] | counts, the monitor's verdict, the hottest entries |
//! | [`owned`] | the form for one owner |
//! | `headers` | which headers the library was built with |
//!
//! A module uses those of the floors below it:
//!
//! ```text
//!   figure4   extended   owned
//!              stats
//!             options
//!             handle
//!             session
//!             layout
//!             refusal            headers
//! ```
//!
//! # What crosses the border
//!
//! Nothing unwinds into C: a panic in a function that C calls ends the process, as Rust has it for `extern "C"`. No
//! function is meant to panic. Callbacks are declared as functions that may unwind, and are called from functions that
//! may not: so an exception that a C++ callback lets out ends the process too, for certain. (Were they declared as
//! functions that cannot unwind, an exception would be undefined behaviour, and indeed would pass through.)
//!
//! Pointers are the caller's: each function says what null means to it. Addresses of more than 48 bits are refused,
//! never cut.

// Every function here is called by C with pointers: that is what the crate is for.
#![allow(unsafe_code)]
#![allow(non_camel_case_types)]

pub mod extended;
pub mod figure4;
mod handle;
mod headers;
mod layout;
pub mod options;
pub mod owned;
mod refusal;
mod session;
pub mod stats;

pub use extended::*;
pub use figure4::*;
pub use handle::{SLB, hashfunc, lookaside_ticket, matchfunc};
pub use headers::HEADERS;
pub use layout::{LOOKASIDE_LAYOUT, LOOKASIDE_OFF, lookaside_session};
pub use options::*;
pub use owned::*;
pub use stats::*;
