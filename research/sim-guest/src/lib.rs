//! The search translation lookaside table for programs in Rust, on the processor that `research/sim-qemu` simulates.
//!
//! ```
//! use sim_guest::{Hints, Variant};
//!
//! let records = vec![String::from("one"), String::from("two")];
//! let mut hints = Hints::new(1 << 10, 4, Variant::Full)?;
//! hints.insert(77, &records[1]);
//! // The record of the integer, or of another, or nothing: the table forgets.
//! if let Some(record) = hints.get(77) {
//!     assert_eq!(record, "two");
//! }
//! # Ok::<(), sim_guest::Refused>(())
//! ```
//!
//! On any other processor the same calls use STLT-SW, the table kept in software (`research/stlt-sw`): a program that
//! uses the hardware runs anywhere, and may be quicker there, too.
//!
//! A process has one table, and one thread uses it. The simulated core runs the program's first thread and no other, so
//! under the simulator it must be that one: on another, [`Hints::new`] is refused and [`enter`] does nothing. Where
//! there is no simulator, any thread will do. Several indexes can share the table ([`with_table`]).
//!
//! | module | idea |
//! |---|---|
//! | `hardware` | the instructions and the system calls; `research/sim-qemu/src/protocol.rs` has the other half |
//! | `hints` | a safe table over these, or over STLT-SW where there are none: integers to borrowed records |
//! | `several` | integers of several indexes that share it |

#[allow(unsafe_code, reason = "instructions that no compiler knows")]
mod hardware;
#[allow(unsafe_code, reason = "addresses become references again")]
mod hints;

mod several;

pub use hardware::{Phase, Variant, enter, is_simulated};
pub use hints::{Hints, Refused};
pub use several::with_table;
