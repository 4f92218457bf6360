//! The tests of this crate, but for what needs a program of its own: one program is linked once.

mod bounds;
mod map;
mod model;
mod regressions;
mod users_code;
