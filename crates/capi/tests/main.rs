//! The tests of this crate in one program, which is linked once.

#[cfg(not(lookaside_no_header))]
mod header;
mod install;
mod locks;
mod programs;
mod regressions;
mod retirement;

// What they share.
mod toolchain;
