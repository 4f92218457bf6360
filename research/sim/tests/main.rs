//! The tests of this crate in one program, which is linked once.

mod closed_form;
mod golden;
mod naive_model;
mod stlt;
mod table_instructions;
mod window;

// What they share.
mod by_hand;
