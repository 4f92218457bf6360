//! The search translation lookaside table for programs in Rust, on the processor that `crates/sim-qemu` simulates.
//!
//! ```
//! use sim_guest::{Hints, Variant};
//!
//! let records = vec![String::from("one"), String::from("two")];
//! let mut hints = Hints::new(1 << 10, 4, Variant::Full)?;
//! hints.insert(77, &records[1]);
//! // On the simulated processor, the record of the integer, or of another; elsewhere nothing, ever.
//! if let Some(record) = hints.get(77) {
//!     assert_eq!(record, "two");
//! }
//! # Ok::<(), sim_guest::Refused>(())
//! ```
//!
//! On any other processor the two instructions are a NOP and two moves, and nothing is found: a program that looks into
//! its index then, as it must anyway, runs there as well.
//!
//! | module | idea |
//! |---|---|
//! | `hardware` | the instructions and the system calls; `crates/sim-qemu/src/protocol.rs` has the other half |
//! | `hints` | a safe table over them: integers to borrowed records |

#[allow(unsafe_code, reason = "instructions that no compiler knows")]
mod hardware;
#[allow(unsafe_code, reason = "addresses become references again")]
mod hints;

pub use hardware::{Phase, Variant, enter, is_simulated};
pub use hints::{Hints, Refused};
