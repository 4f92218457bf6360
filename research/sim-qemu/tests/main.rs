//! The tests of this crate in one program, which is linked once.

mod anywhere;
mod guests;
