//! The tests of this crate, but for what needs a program of its own: one program is linked once.

mod definitions;
mod drive_faults;
mod drive_servers;
mod entrants;

// What they share.
mod fake;
