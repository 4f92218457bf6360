//! Unmodified programs on the simulated processor: a plugin for QEMU's user mode.
//!
//! ```text
//!   qemu-x86_64 -cpu Nehalem -plugin libsim_qemu.so,profile=stlt_paper,out=run.json ./guest
//!
//!      guest --QEMU translates, runs--> blocks, accesses, system calls --plugin--> sim::Core --> run.json
//! ```
//!
//! QEMU runs the guest and says which instructions it executes and which addresses it touches; the simulator
//! of `research/sim` says what that costs, with hardware that does not exist. The guest can be any program for
//! x86-64 Linux. One that includes `guests/stlt.h` has the two instructions `loadVA` and `insertSTLT`, the
//! system calls of the STLT, and says which part of it is to be measured; on any other processor it runs as
//! well, and nothing is ever found.
//!
//! Debian's QEMU 7.2 is what the plugin is made for and tested with; 8 should take it as well. QEMU 9.0 and later
//! refuse plugins of the interface's version 1. The feature `plugin-v3` builds one of version 3, for 9.1 and later: it
//! compiles, but has never been run, for want of such a QEMU.
//!
//! `-cpu Nehalem` fixes the instruction set that libraries choose their variants by, so counts repeat exactly
//! and fit the machine of the STLT paper.
//!
//! | module | idea |
//! |---|---|
//! | [`protocol`] | what guest and plugin say to each other |
//! | [`decode`] | machine code as the window model wants it |
//! | [`simulation`] | what the machine makes of the guest's events |
//! | [`address_space`] | pages that system calls take away |
//! | [`arguments`] | what the plugin is told |
//! | [`asked`] | programs, variants, distributions and hashes, by their names |
//! | `error` | why a guest cannot be run |
//! | [`guests`] | the guests of this project: compiled when asked for, started under QEMU |
//! | [`run`] | a run of one: what it is told, and the requests that it reads |
//! | `parts` | this project's own files near the program, and whether they are of today |
//! | `api`, `plugin` | QEMU's plugin interface |
//!
//! What is not seen: the kernel, all threads but the first, processes that the guest forks, and software prefetches
//! (their addresses are in registers, which this part of the interface does not show).

pub mod address_space;
mod api;
pub mod arguments;
pub mod asked;
pub mod decode;
mod error;
pub mod guests;
mod parts;
mod plugin;
pub mod protocol;
pub mod run;
pub mod simulation;

pub use error::GuestError;
pub use plugin::{qemu_plugin_install, qemu_plugin_version};
