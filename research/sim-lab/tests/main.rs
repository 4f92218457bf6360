//! The tests of this crate in one program, which is linked once.

mod in_use;
mod qemu;
mod signs;
mod study;
mod sweep;

// What they share.
mod shared;
