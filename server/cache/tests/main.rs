//! The tests of this crate, but for what needs a program of its own: one program is linked once.

mod changes;
mod eviction;
mod face;
mod lookaside;
mod model;
mod policies;
mod regressions;
mod resizing;
mod sizes;
mod walks;
