//! The tests of this crate, as one program.

mod committed;
mod instructions;
mod lines;
mod program;
