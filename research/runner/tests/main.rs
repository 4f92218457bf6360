//! The tests of this crate in one program, which is linked once.

mod advise;
mod command;
mod documents;
mod lab;
mod quick;
mod regressions;
mod report;
mod sim;
