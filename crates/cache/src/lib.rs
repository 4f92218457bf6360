//! cache
mod epoch;
#[cfg(all(loom, test))]
mod epoch_loom_tests;
