//! Measuring on a machine that has other things to do.
//!
//! 1. *Alternatives take turns within one process* ([`turns`]): a neighbour that slows the machine down slows all of
//!    them, and none is always the first or the last.
//! 2. *Time that a thread waited for a core is not counted* ([`Stopwatch`]): the kernel keeps that sum for every
//!    thread. Time that it slept by its own choice, on a lock say, is.
//! 3. *Threads are pinned* ([`pin`]), each to its own core.
//! 4. Numbers are medians, and stand beside their extremes ([`Summary`]).
//! 5. *An index is built on a heap that no other has left its traces in* ([`release_freed_memory`]).
//! 6. *What was retired is freed while threads stay pinned* ([`epochs`]): memory is used again, as in a program.
//! 7. What is asked is drawn before the clock starts, and never asked twice: see `workload::advance`.
//!
//! Rejected: the processor time of the thread, which leaves out the time slept on a lock, so that a lock looks free;
//! wall time alone, which on a shared machine measures the neighbours.

pub mod epochs;
mod heap;
mod resident;
mod stopwatch;
mod summary;
mod threads;

pub use heap::release_freed_memory;
pub use resident::Resident;
pub use stopwatch::{Stopwatch, process_waited_for_core, processor_time, waited_for_core};
pub use summary::Summary;
pub use threads::{CoreError, cores, in_parallel, name_threads, on_core, pin, turns};
