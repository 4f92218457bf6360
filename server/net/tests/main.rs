//! The tests of this crate in one program, which is linked once.

// The protocol's tests call their crate by its own name.
extern crate protocol as lookaside_protocol;

mod against_memcached;
mod attacks;
mod binary;
mod clients;
mod concurrency;
mod flushes;
mod model;
mod operators;
mod regressions;
mod requests;
mod slow_clients;
mod three_protocols;
mod together;
mod watching;

// What they share.
mod client;
mod conversations;
#[path = "../../protocol/tests/differences/mod.rs"]
mod differences;
mod history;
#[path = "../../protocol/tests/table/mod.rs"]
mod lines;
mod map;
#[allow(dead_code)]
#[path = "../../protocol/tests/model/mod.rs"]
mod memcached_model;
#[path = "../../protocol/tests/naive/mod.rs"]
mod naive;
#[allow(dead_code)]
#[path = "../../protocol/tests/peer/mod.rs"]
mod peer;
mod process;
mod programs;
#[path = "../../protocol/tests/lines/mod.rs"]
mod random;
