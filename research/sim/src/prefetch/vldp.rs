//! The variable length delta prefetcher.
//!
//! Shevgoor, Koladiya, Balasubramonian, Wilkerson, Pugsley and Chishti, "Efficiently Prefetching Complex
//! Address Patterns" (MICRO 2015). A delta is the difference between two accesses in a row to one page. What
//! comes next is looked up by the last one, two and three deltas, and the longest history that is known wins:
//!
//! ```text
//!   delta history, one per page (16):    page, last offset, last 4 deltas, who predicted last, how many accesses
//!   offset prediction (64):              first offset in a page        -> first delta, 1-bit accuracy
//!   delta prediction 1, 2, 3 (64 each):  the last 1, 2, 3 deltas       -> next delta, 2-bit accuracy
//! ```
//!
//! * Update: the table that made the last prediction is rewarded if it was right; if it was wrong its
//!   accuracy falls, at zero the delta is replaced, and the table of the next longer history learns the
//!   pattern. So simple patterns stay in the first table and only those that need it go further.
//! * Degree: a prediction is taken as if it had come true and the tables are asked again, up to four deep,
//!   with at least two deltas of history for all but the first.
//!
//! The tables are fully associative with LRU here; the paper gives them not-most-recently-used replacement.

use serde::{Deserialize, Serialize};

use super::LINES_OF_A_PAGE;
use crate::lru::LruSets;

/// The shape of a [`Vldp`] prefetcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VldpShape {
    /// Pages with a history.
    pub pages: u32,
    /// Rows of each prediction table.
    pub rows: u32,
    /// Predictions in a row.
    pub degree: u32,
}

impl Default for VldpShape {
    fn default() -> VldpShape {
        VldpShape { pages: 16, rows: 64, degree: 4 }
    }
}

/// Histories that a table is asked with.
const LONGEST: usize = 3;

#[derive(Debug, Clone, Copy, Default)]
struct History {
    last_offset: i8,
    /// The latest first.
    deltas: [i8; LONGEST],
    /// How many of them are known.
    known: usize,
    /// The history length that the last prediction was made with; zero is none.
    predicted_with: usize,
    first_offset: i8,
}

#[derive(Debug, Clone, Copy, Default)]
struct Prediction {
    delta: i8,
    accuracy: u8,
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct Vldp {
    pages: LruSets<History>,
    /// By the first offset in a page.
    offsets: [Prediction; LINES_OF_A_PAGE as usize],
    /// By the last one, two and three deltas.
    tables: [LruSets<Prediction>; LONGEST],
    degree: u32,
}

impl Vldp {
    /// Empty tables.
    #[must_use]
    pub fn new(shape: &VldpShape) -> Vldp {
        let table = || LruSets::new(1, shape.rows as usize);
        Vldp {
            pages: LruSets::new(1, shape.pages as usize),
            offsets: [Prediction::default(); LINES_OF_A_PAGE as usize],
            tables: [table(), table(), table()],
            degree: shape.degree,
        }
    }

    fn key(deltas: &[i8]) -> u64 {
        deltas.iter().fold(0, |key, &delta| key << 8 | u64::from(delta as u8))
    }

    /// The next delta by the longest history that a table knows, and its length. Histories shorter than
    /// `least` are not asked.
    fn predict(&mut self, deltas: &[i8; LONGEST], known: usize, least: usize) -> Option<(i8, usize)> {
        (least..=known.min(LONGEST)).rev().find_map(|length| {
            let prediction = self.tables[length - 1].get(Vldp::key(&deltas[..length]))?;
            Some((prediction.delta, length))
        })
    }

    /// What came after a history, told to the tables.
    fn learn(&mut self, history: &History, delta: i8) {
        if history.known == 0 {
            let first = &mut self.offsets[history.first_offset as usize];
            match (first.delta == delta, first.accuracy) {
                (true, _) => first.accuracy = 1,
                (false, 0) => *first = Prediction { delta, accuracy: 0 },
                (false, _) => first.accuracy = 0,
            }
            return;
        }
        let length = history.predicted_with.max(1);
        let key = Vldp::key(&history.deltas[..length]);
        let right = match self.tables[length - 1].get(key) {
            None => {
                self.tables[length - 1].fill(key, Prediction { delta, accuracy: 0 });
                return;
            }
            Some(prediction) if prediction.delta == delta => {
                prediction.accuracy = (prediction.accuracy + 1).min(3);
                true
            }
            Some(prediction) if prediction.accuracy == 0 => {
                *prediction = Prediction { delta, accuracy: 0 };
                false
            }
            Some(prediction) => {
                prediction.accuracy -= 1;
                false
            }
        };
        if !right && length < LONGEST && history.known > length {
            let key = Vldp::key(&history.deltas[..length + 1]);
            self.tables[length].put(key, Prediction { delta, accuracy: 0 });
        }
    }

    /// An access to a physical line: adds the lines to fetch to `fetch`.
    pub fn accessed(&mut self, line: u64, fetch: &mut Vec<u64>) {
        let (page, offset) = (line / LINES_OF_A_PAGE, (line % LINES_OF_A_PAGE) as i8);
        let Some(mut history) = self.pages.get(page).copied() else {
            self.pages
                .fill(page, History { last_offset: offset, first_offset: offset, ..History::default() });
            let first = self.offsets[offset as usize];
            if first.accuracy > 0 {
                push_inside(page, i64::from(offset) + i64::from(first.delta), fetch);
            }
            return;
        };
        let delta = offset - history.last_offset;
        if delta == 0 {
            return;
        }
        self.learn(&history, delta);
        history.deltas.rotate_right(1);
        history.deltas[0] = delta;
        history.known = (history.known + 1).min(LONGEST);
        history.last_offset = offset;
        history.predicted_with = 0;

        let (mut deltas, mut known, mut ahead) = (history.deltas, history.known, i64::from(offset));
        for step in 0..self.degree {
            let least = if step == 0 { 1 } else { 2 };
            let Some((next, length)) = self.predict(&deltas, known, least) else { break };
            if step == 0 {
                history.predicted_with = length;
            }
            ahead += i64::from(next);
            if !push_inside(page, ahead, fetch) {
                break;
            }
            deltas.rotate_right(1);
            deltas[0] = next;
            known = (known + 1).min(LONGEST);
        }
        self.pages.put(page, history);
    }
}

/// Adds the line at `offset` of `page`, if it is in the page; whether it is.
fn push_inside(page: u64, offset: i64, fetch: &mut Vec<u64>) -> bool {
    let inside = (0..LINES_OF_A_PAGE as i64).contains(&offset);
    if inside {
        fetch.push(page * LINES_OF_A_PAGE + offset as u64);
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(vldp: &mut Vldp, lines: impl IntoIterator<Item = u64>) -> Vec<Vec<u64>> {
        lines
            .into_iter()
            .map(|line| {
                let mut fetch = Vec::new();
                vldp.accessed(line, &mut fetch);
                fetch
            })
            .collect()
    }

    #[test]
    fn a_stride_is_predicted_by_the_last_delta() {
        let mut vldp = Vldp::new(&VldpShape::default());
        assert_eq!(access(&mut vldp, [0, 2, 4, 6]), [vec![], vec![], vec![6], vec![8]]);
    }

    #[test]
    fn a_pattern_of_three_deltas_is_learnt_and_used_in_other_pages() {
        let pattern = |page: u64| {
            let mut offset = 0;
            let deltas = [1, 2, 1, 3].into_iter().cycle().take(24);
            let offsets = std::iter::once(0).chain(deltas.map(move |delta| {
                offset += delta;
                offset
            }));
            offsets.map(move |offset| page * LINES_OF_A_PAGE + offset).collect::<Vec<_>>()
        };
        let mut vldp = Vldp::new(&VldpShape::default());
        for page in 0..8 {
            access(&mut vldp, pattern(page));
        }
        // By now every next line of a new page but the first few has been foretold.
        let lines = pattern(100);
        let fetched = access(&mut vldp, lines.clone());
        let foretold = (4..lines.len()).filter(|&n| fetched[n - 1].contains(&lines[n])).count();
        assert_eq!(foretold, lines.len() - 4);
    }

    #[test]
    fn the_first_delta_of_a_page_is_predicted_from_its_offset() {
        let mut vldp = Vldp::new(&VldpShape::default());
        for page in 0..3 {
            access(&mut vldp, [page * 64 + 5, page * 64 + 9]);
        }
        assert_eq!(access(&mut vldp, [10 * 64 + 5]), [vec![10 * 64 + 9]]);
    }
}
