//! The tests of this crate, but for what needs a program of its own: one program is linked once.

mod faults;
mod leaks;
mod map;
mod model;
mod plots;
mod ranges;
mod regressions;
mod reorganize;
mod retain;
mod stress;

// What they share.
mod unused;
