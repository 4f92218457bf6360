//! Stride prefetching of lines.
//!
//! Chen and Baer, "Effective Hardware-Based Data Prefetching for High-Performance Processors" (IEEE Trans.
//! Computers 44(5), 1995) keep, for each load instruction, its last address, its last stride and a state that
//! says whether to trust it. A cache far from the core sees no instructions, so here the page takes the
//! instruction's place: a stream is what happens in one page.
//!
//! ```text
//!   on an access to line l of page p:
//!     s = l - last[p]
//!     the same stride as before: fetch l + s, l + 2s, ... up to the degree, within the page
//!     otherwise: remember s
//! ```

use serde::{Deserialize, Serialize};

use super::LINES_OF_A_PAGE;
use crate::lru::LruSets;

/// The shape of a [`Stride`] prefetcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrideShape {
    /// Pages followed at a time, fully associative.
    pub streams: u32,
    /// Lines fetched ahead.
    pub degree: u32,
}

impl Default for StrideShape {
    fn default() -> StrideShape {
        StrideShape { streams: 16, degree: 2 }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    last: i8,
    stride: i8,
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct Stride {
    streams: LruSets<Stream>,
    degree: u32,
}

impl Stride {
    /// No streams yet.
    #[must_use]
    pub fn new(shape: &StrideShape) -> Stride {
        Stride { streams: LruSets::new(1, shape.streams as usize), degree: shape.degree }
    }

    /// An access to a physical line: adds the lines to fetch to `fetch`.
    pub fn accessed(&mut self, line: u64, fetch: &mut Vec<u64>) {
        let (page, offset) = (line / LINES_OF_A_PAGE, (line % LINES_OF_A_PAGE) as i8);
        let Some(stream) = self.streams.get(page) else {
            self.streams.fill(page, Stream { last: offset, stride: 0 });
            return;
        };
        let stride = offset - stream.last;
        let steady = stride != 0 && stride == stream.stride;
        *stream = Stream { last: offset, stride: if stride == 0 { stream.stride } else { stride } };
        if steady {
            let ahead = (1..=i64::from(self.degree)).map(|step| i64::from(offset) + step * i64::from(stride));
            let inside = ahead.take_while(|line| (0..LINES_OF_A_PAGE as i64).contains(line));
            fetch.extend(inside.map(|offset| page * LINES_OF_A_PAGE + offset as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(lines: &[u64]) -> Vec<u64> {
        let mut stride = Stride::new(&StrideShape::default());
        let mut fetch = Vec::new();
        lines.iter().for_each(|&line| stride.accessed(line, &mut fetch));
        fetch
    }

    #[test]
    fn a_stride_must_repeat() {
        assert_eq!(fetched(&[0, 3]), [0_u64; 0]);
        assert_eq!(fetched(&[0, 3, 6]), [9, 12]);
        assert_eq!(fetched(&[0, 3, 5]), [0_u64; 0]);
        assert_eq!(fetched(&[40, 30, 20]), [10, 0]);
    }

    #[test]
    fn the_page_is_the_limit() {
        assert_eq!(fetched(&[60, 61, 62]), [63]);
        assert_eq!(fetched(&[62, 63, 64]), [0_u64; 0]);
    }
}
