//! The order in which the ways of each set were used, without moving the ways.
//!
//! For up to sixteen ways the order is one word: four bits name a way, the lowest four the one used last.
//! Using a way takes its four bits out and puts them in at the bottom; where they are is found for all
//! sixteen places at once:
//!
//! ```text
//!   order ^ way * 0x1111...   has zero bits exactly where the way is named
//!   (x - 0x1111...) & !x & 0x8888...   marks the lowest such place          (Mycroft's trick, for half bytes)
//! ```
//!
//! A dozen operations and no branch, whatever the depth; a set's order is eight bytes. Wider sets (small
//! fully associative buffers) keep a list that is searched.
//!
//! Rejected: a time stamp per way. Using is cheaper still, but each miss must look at every stamp, and misses
//! are what a simulation of large tables is made of. Also rejected: keeping the ways themselves in order. It
//! needs no order at all, and it spends most of its time in `memmove`.

/// Ways that fit into a word.
const PACKED: usize = 16;
const ONES: u64 = 0x1111_1111_1111_1111;

/// The orders of all sets.
#[derive(Debug, Clone)]
pub(crate) enum Recency {
    /// A word for each set.
    Packed {
        /// The orders.
        orders: Vec<u64>,
        /// Where the way used longest ago is named: four bits for each way but it.
        last: u32,
    },
    /// `ways` numbers for each set, the way used last first.
    Listed {
        /// The orders, one after the other.
        orders: Vec<u32>,
        /// Of a set.
        ways: usize,
    },
}

impl Recency {
    pub(crate) fn new(sets: usize, ways: usize) -> Recency {
        if ways <= PACKED {
            let order = (0..PACKED as u64).rev().fold(0, |order, way| order << 4 | way);
            Recency::Packed { orders: vec![order; sets], last: 4 * (ways as u32 - 1) }
        } else {
            Recency::Listed { orders: (0..sets).flat_map(|_| 0..ways as u32).collect(), ways }
        }
    }

    /// Makes `way` the one used last.
    #[inline(always)]
    pub(crate) fn touch(&mut self, set: usize, way: usize) {
        match self {
            Recency::Packed { orders, .. } => {
                let order = &mut orders[set];
                // Very often it is already.
                if *order & 0xf == way as u64 {
                    return;
                }
                let shift = place(*order, way);
                // The ways used later than this one move up by one place.
                let below = (1_u64 << shift) - 1;
                let above = !(below << 4 | 0xf);
                *order = *order & above | (*order & below) << 4 | way as u64;
            }
            Recency::Listed { orders, ways } => touch_listed(&mut orders[set * *ways..][..*ways], way),
        }
    }

    /// The way used last.
    #[inline(always)]
    pub(crate) fn latest(&self, set: usize) -> usize {
        match self {
            Recency::Packed { orders, .. } => (orders[set] & 0xf) as usize,
            Recency::Listed { orders, ways } => orders[set * ways] as usize,
        }
    }

    /// Makes the way used longest ago the one used last, and says which it is.
    #[inline(always)]
    pub(crate) fn renew(&mut self, set: usize) -> usize {
        match self {
            Recency::Packed { orders, last } => {
                let order = &mut orders[set];
                let named = u64::MAX >> (60 - *last);
                let way = *order >> *last & 0xf;
                *order = *order & !named | (*order << 4 | way) & named;
                way as usize
            }
            Recency::Listed { orders, ways } => renew_listed(&mut orders[set * *ways..][..*ways]),
        }
    }

    /// Makes `way` the one used longest ago.
    pub(crate) fn expire(&mut self, set: usize, way: usize) {
        match self {
            Recency::Packed { orders, last } => {
                let order = &mut orders[set];
                let shift = place(*order, way);
                let below = (1_u64 << shift) - 1;
                // Those between its place and the last move down by one.
                let between = (0xf_u64 << *last | ((1_u64 << *last) - 1)) & !below;
                let moved = (*order & between) >> 4 & !below;
                *order = *order & !between | moved & between | (way as u64) << *last;
            }
            Recency::Listed { orders, ways } => {
                let list = &mut orders[set * *ways..][..*ways];
                let depth = list.iter().position(|&other| other as usize == way).unwrap_or_default();
                list[depth..].rotate_left(1);
            }
        }
    }

    /// The way used longest ago.
    #[cfg(test)]
    pub(crate) fn oldest(&self, set: usize) -> usize {
        match self {
            Recency::Packed { orders, last } => (orders[set] >> last) as usize & 0xf,
            Recency::Listed { orders, ways } => orders[set * ways + ways - 1] as usize,
        }
    }
}

// Lists are of few and small arrays: apart, so that the code for words stays short where it is inlined.

#[inline(never)]
fn touch_listed(list: &mut [u32], way: usize) {
    let depth = list.iter().position(|&other| other as usize == way).unwrap_or_default();
    list[..=depth].rotate_right(1);
}

#[inline(never)]
fn renew_listed(list: &mut [u32]) -> usize {
    list.rotate_right(1);
    list[0] as usize
}

/// Where an order names a way: the number of bits below.
#[inline(always)]
fn place(order: u64, way: usize) -> u32 {
    let differences = order ^ (ONES * way as u64);
    let zeros = differences.wrapping_sub(ONES) & !differences & (ONES << 3);
    zeros.trailing_zeros() & !3
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_forms_are_a_list(
            ways in 1..40_usize,
            operations in prop::collection::vec((0..3_usize, 0..40_usize, any::<bool>()), 0..200),
        ) {
            let mut recency = Recency::new(3, ways);
            let mut lists = vec![(0..ways).collect::<Vec<_>>(); 3];
            for (set, way, expire) in operations {
                let way = way % ways;
                let list = &mut lists[set];
                list.retain(|&other| other != way);
                if expire {
                    recency.expire(set, way);
                    list.push(way);
                } else {
                    recency.touch(set, way);
                    list.insert(0, way);
                }
                prop_assert_eq!(recency.oldest(set), list[ways - 1]);
            }
            // Taking the oldest again and again gives the whole order.
            for (set, list) in lists.iter().enumerate() {
                for &expected in list.iter().rev() {
                    prop_assert_eq!(recency.oldest(set), expected);
                    prop_assert_eq!(recency.renew(set), expected);
                }
            }
        }
    }
}
