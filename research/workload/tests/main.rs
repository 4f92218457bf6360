//! The tests of this crate in one program, which is linked once.

mod distributions;
mod generated;
mod malformed;
mod models;
mod published_data;
mod regressions;
mod traces_regressions;

// What they share.
mod restate;
