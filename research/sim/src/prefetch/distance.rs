//! Distance prefetching of translations.
//!
//! Kandiraju and Sivasubramaniam, "Going the Distance for TLB Prefetching" (ISCA 2002). The distance is the
//! difference between the pages of two misses in a row. A table says which distances followed each distance
//! lately:
//!
//! ```text
//!   on a miss of page p, with q the page of the last miss and d' the last distance:
//!     d = p - q
//!     table[d'] takes d among its slots, the least recently used leaving
//!     fetch the translations of p + s for every s in table[d]
//! ```
//!
//! What was fetched goes into a small buffer beside the TLB and moves into the TLB when it is asked for, so
//! wrong guesses push nothing out.

use serde::{Deserialize, Serialize};

use crate::lru::LruSets;

/// Slots of a row: the most distances predicted at a time.
const SLOTS: usize = 4;

/// The shape of a [`Distance`] prefetcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistanceShape {
    /// Rows of the table, fully associative; the paper's is 256.
    pub rows: u32,
    /// Slots of a row, at most 4; the paper's is 2.
    pub slots: u32,
    /// Translations in the prefetch buffer; the paper's is 16.
    pub buffer: u32,
}

impl Default for DistanceShape {
    fn default() -> DistanceShape {
        DistanceShape { rows: 256, slots: 2, buffer: 16 }
    }
}

/// The predictor.
#[derive(Debug, Clone)]
pub struct Distance {
    /// From a distance to those that followed it, the latest first; zero is none.
    table: LruSets<[i64; SLOTS]>,
    slots: usize,
    last_page: Option<u64>,
    last_distance: Option<i64>,
}

impl Distance {
    /// An empty table.
    #[must_use]
    pub fn new(shape: &DistanceShape) -> Distance {
        Distance {
            table: LruSets::new(1, shape.rows as usize),
            slots: (shape.slots as usize).min(SLOTS),
            last_page: None,
            last_distance: None,
        }
    }

    /// A TLB miss of `page`: the pages whose translations should be fetched.
    pub fn missed(&mut self, page: u64) -> impl Iterator<Item = u64> + use<> {
        let mut predicted = [0; SLOTS];
        if let Some(last_page) = self.last_page.replace(page) {
            let distance = page.wrapping_sub(last_page) as i64;
            if let Some(before) = self.last_distance.replace(distance) {
                self.learn(before, distance);
            }
            if let Some(slots) = self.table.get(Distance::key(distance)) {
                predicted = *slots;
            }
        }
        predicted
            .into_iter()
            .filter(|&distance| distance != 0)
            .filter_map(move |distance| page.checked_add_signed(distance))
    }

    /// Keys have no sign, and all ones is not a key.
    fn key(distance: i64) -> u64 {
        ((distance << 1) ^ (distance >> 63)) as u64 & (u64::MAX >> 1)
    }

    fn learn(&mut self, before: i64, distance: i64) {
        let mut slots = self.table.get(Distance::key(before)).map_or([0; SLOTS], |slots| *slots);
        let used = &mut slots[..self.slots];
        let place = used.iter().position(|&slot| slot == distance).unwrap_or(used.len() - 1);
        used[..=place].rotate_right(1);
        used[0] = distance;
        self.table.put(Distance::key(before), slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_learnt_after_three_misses() {
        let mut distance = Distance::new(&DistanceShape::default());
        let predicted: Vec<Vec<u64>> = [10, 13, 16, 19].map(|page| distance.missed(page).collect()).to_vec();
        assert_eq!(predicted, [vec![], vec![], vec![19], vec![22]]);
    }

    #[test]
    fn two_distances_that_alternate_predict_each_other() {
        let mut distance = Distance::new(&DistanceShape::default());
        // +1, +5, +1, +5: each distance is followed by the other.
        let predicted: Vec<Vec<u64>> =
            [100, 101, 106, 107, 112, 113].map(|page| distance.missed(page).collect()).to_vec();
        assert_eq!(predicted, [vec![], vec![], vec![], vec![112], vec![113], vec![118]]);
    }

    #[test]
    fn a_row_keeps_the_latest_distances() {
        let mut distance = Distance::new(&DistanceShape { rows: 8, slots: 2, buffer: 16 });
        for next in [7, 8, 9] {
            distance.learn(1, next);
        }
        assert_eq!(distance.table.peek(Distance::key(1)), Some(&[9, 8, 0, 0]));
        distance.learn(1, 8);
        assert_eq!(distance.table.peek(Distance::key(1)), Some(&[8, 9, 0, 0]));
    }
}
