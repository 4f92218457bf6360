//! The laboratory: experiments that re-run the papers' tables and figures, and the means to measure honestly.
//!
//! | module | idea |
//! |---|---|
//! | [`experiment`] | definitions as data, kinds of experiment as code, and running the one with the other |
//! | [`index`] | experiments on the hash index, and the tables it is compared with |
//! | [`allocator`] | the pages under the heap, which some experiments choose |
//! | [`advice`] | whether a lookaside table pays for the requests of a trace |
//! | [`mod@lookaside`] | experiments on the Search Lookaside Buffer, and the indexes it is shown on |
//! | [`art`] | experiments on the adaptive radix tree: the paper on TLB misses |
//! | `cache` | experiments on the cache, and the caches it is compared with |
//! | [`drive`] | a load generator and a trace player for cache servers |
//! | [`subject`] | how whatever is measured is asked, and what comes of it |
//! | `servers` | experiments on whole servers, ours, memcached, Redis; [`Constants`], the floor below them |
//! | `traces` | requests replayed on an index: Figure 15 of the SLB paper |
//! | [`measure`] | pinning, taking turns, medians, time that counts |
//! | [`machine`] | where numbers come from |
//! | [`results`] | numbers as CSV |
//! | [`report`] | numbers as text, beside the papers' own |
//! | [`html`] | the same as one page with pictures |

#![deny(unsafe_code)]

pub mod advice;
pub mod allocator;
pub mod art;
mod cache;
pub mod drive;
pub mod experiment;
pub mod html;
pub mod index;
pub mod lookaside;
pub mod machine;
pub mod measure;
pub mod report;
pub mod results;
mod servers;
pub mod subject;
mod traces;

pub use servers::Constants;
