//! Simulated runs: guests, configurations, sweeps, and the figures of the STLT paper.
//!
//! "Hardware-Based Address-Centric Acceleration of Key-Value Store" (HPCA 2021) is about hardware that nobody can
//! buy. `research/sim` is a machine that has it; here stand the programs that run on it, and the experiments.
//!
//! | module | idea |
//! |---|---|
//! | [`guest`] | programs that are made in this process |
//! | [`qemu`] | compiled programs under QEMU |
//! | [`configuration`] | what one run is |
//! | [`machine`] | machines by name |
//! | [`run`] | running it |
//! | [`error`] | why a run failed |
//! | [`store`] | finished runs are kept |
//! | [`sweep`] | many runs, side by side |
//! | `metric` | what is shown of a run |
//! | `options` | what is said of a study beside its definition |
//! | [`study`] | an experiment's definition: which runs, and what is shown of them |
//! | [`in_use`] | experiments that do something to a table while it is measured |
//! | [`storage`] | the hardware's size, Table I |

#![forbid(unsafe_code)]

pub mod configuration;
pub mod error;
pub mod guest;
pub mod in_use;
pub mod machine;
mod metric;
mod options;
pub mod qemu;
pub mod run;
pub mod storage;
pub mod store;
pub mod study;
pub mod sweep;

pub use metric::{Metric, STACK, StackPart};
pub use options::Options;
