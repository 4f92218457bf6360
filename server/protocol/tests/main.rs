//! The tests of this crate in one program, which is linked once.

mod against_memcached;
mod properties;
mod requests;
mod responses;

// What they share.
mod differences;
mod lines;
mod model;
mod naive;
mod peer;
mod table;
