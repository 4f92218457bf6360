//! Prefetchers, as section IV-F of the STLT paper tries them: one for translations, two for lines.
//!
//! A prefetcher is a pure predictor: it is told what was missed and answers with what to fetch. The machine
//! fetches, and counts what was of use.

mod distance;
mod stride;
mod vldp;

pub use distance::{Distance, DistanceShape};
pub use stride::{Stride, StrideShape};
pub use vldp::{Vldp, VldpShape};

/// Lines of a small page: no line prefetcher looks beyond, because the next physical page is another virtual one.
const LINES_OF_A_PAGE: u64 = 64;
