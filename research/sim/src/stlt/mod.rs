//! The search translation lookaside table of "Hardware-Based Address-Centric Acceleration of Key-Value Store"
//! (HPCA 2021).
//!
//! A key is hashed to an integer; `loadVA` turns the integer into the virtual address of the key's record and
//! leaves the translation of that address in the STB, where the access that follows finds it; `insertSTLT`
//! puts in what a miss has found out the slow way. The table lies in memory that the kernel owns and goes
//! through the data caches like anything else.
//!
//! | module | idea |
//! |---|---|
//! | `table` | rows, sets, sub-integers, probabilistic counters, replacement |
//! | `unit` | the two instructions and the system calls, on a [`Machine`](crate::Machine) |
//! | `replay` | what a long warm-up leaves in the table, quickly |
//! | `monitor` | switching it off where it does not pay |
//!
//! # Where the paper leaves room
//! * `insertSTLT` replaces the row with the same sub-integer if there is one, so no set ever has two that
//!   match, and the random choice of section III-C among several is never made.
//! * The counter overflows after 65 535 updates on average, the sum of 2^0 to 2^15; the paper says 2^17.
//! * The STB must also forget a page that is invalidated between `loadVA` and the access: only the IPB is
//!   mentioned. Here it does.
//! * A deleted record is not mentioned either. `insertSTLT` with the address 0 takes the integer's row out:
//!   our addition.
//! * A row has room for 48 bits of address. Addresses beyond (five levels of page table) are not inserted.
//! * A page that is mapped again stays in the IPB until that overflows, and its records are answered with 0
//!   however often they are inserted. One invalidated page of 2 MiB so switches off 512 times as many records
//!   as one of 4 KiB.
//! * `insertSTLT` takes its place in the insertion buffer before its walk begins, and retires then: the buffer holds
//!   outstanding stores (section III-D2), and nobody waits for a hint. In its evaluation the paper charged the
//!   walk to the instruction, as an upper bound.
//! * Bringing the table up to date when the IPB is full is called more expensive, without a number. Here it
//!   is a scan of the whole table by the kernel.
//! * What `STLTresize` takes is not said either. Here the kernel clears the new table past the caches, as fast as
//!   memory's channel takes lines.
//! * Of the program's own loads and stores, `loadVA` and `insertSTLT` wait only for those whose results they read
//!   (registers), and for each other if the integer is the same. A store to a record that overlaps with the
//!   `insertSTLT` of its address, or with the `loadVA` that finds it, is kept in no order with them (section III-D),
//!   and holds up neither.
//! * An entry of the IPB holds a page number; for a large page it is compared in the size that the row's own
//!   entry gives.

mod monitor;
mod replay;
mod table;
mod unit;

pub use monitor::{Monitor, MonitorShape};
pub use table::{Found, Inserted, Row, Table, TableError, Variant};
pub(crate) use unit::StltUnit;
pub use unit::{InsertStlt, LoadVa, LoadVaOutcome, StltCounts, TableAccesses};
