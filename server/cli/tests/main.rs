//! The tests of the program, in one program of their own, which is linked once.

mod manners;
mod scripts;
mod serve;

// What they share.
mod serving;
