//! The tests of this crate, but for what needs a program of its own: one program is linked once.

mod borrowed_parts;
mod bounds;
mod compounds;
mod destructors;
mod ending_threads;
mod examples;
mod front;
mod lies;
mod model;
mod monitor;
mod ranges;
mod reclamation;
mod regressions;
mod regressions_use;
mod serialized;
mod short_visits;
mod succession;
mod twisted_keys;
mod valgrind;

// What they share.
mod ledger;
