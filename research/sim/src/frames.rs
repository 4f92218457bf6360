//! Which physical frame a page gets.
//!
//! Caches behind the first level are indexed by physical addresses, so the choice of frames decides which
//! lines collide:
//!
//! * *identity*: physical address = virtual address; page tables lie far above. For comparison with
//!   simulators that know no translation.
//! * *sequential*: frames in the order of first touch, as from a machine just booted.
//! * *random*: a seeded permutation of the frame numbers, as from a machine that has run for a while. The
//!   permutation is a Feistel network of four rounds over an even number of bits: a bijection whatever the
//!   round function is (Luby and Rackoff, SIAM J. Comput. 17(2), 1988), so no list of free frames is needed.
//!
//! Frames of the three sizes come from three regions of their own, which keeps large ones aligned and
//! contiguous without a buddy allocator. Frames are not reused after an unmapping: physical memory is a
//! number, not a resource.

use serde::{Deserialize, Serialize};

use crate::page::PageSize;

/// How frames are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "lowercase", deny_unknown_fields)]
pub enum Frames {
    /// Physical address = virtual address.
    Identity {},
    /// In the order of first touch.
    Sequential {},
    /// By a permutation.
    Random {
        /// Another seed, another layout.
        seed: u64,
    },
}

/// Page tables of an identity mapping: above every user address of four levels.
const IDENTITY_TABLES: u64 = 1 << 49;
/// Where the frames of each size begin, and the bits of their number.
const REGIONS: [(u64, u32); 3] = [(0, 30), (1 << 43, 20), (1 << 45, 10)];

/// Where the frames of a process begin.
pub(crate) const fn process_base(process: u8) -> u64 {
    (process as u64) << 52
}

/// Gives out frames.
#[derive(Debug, Clone)]
pub(crate) struct FrameAllocator {
    order: Frames,
    /// Added to every frame: another process has another, so that two of them share no frame.
    base: u64,
    next: [u64; 3],
    next_table: u64,
}

impl FrameAllocator {
    pub(crate) fn new(order: Frames, process: u8) -> FrameAllocator {
        FrameAllocator { order, base: process_base(process), next: [0; 3], next_table: 0 }
    }

    /// A frame of `size` for the page of `address`.
    pub(crate) fn page(&mut self, address: u64, size: PageSize) -> u64 {
        if matches!(self.order, Frames::Identity {}) {
            return self.base + size.base(address);
        }
        let (base, bits) = REGIONS[size as usize];
        let number = self.next[size as usize];
        self.next[size as usize] += 1;
        let number = number & ((1 << bits) - 1);
        let number = match self.order {
            Frames::Random { seed } => permute(number, bits, seed ^ size as u64),
            Frames::Identity {} | Frames::Sequential {} => number,
        };
        self.base + base + number * size.bytes()
    }

    /// A small frame for a page table.
    pub(crate) fn table(&mut self) -> u64 {
        if matches!(self.order, Frames::Identity {}) {
            self.next_table += 1;
            return self.base + IDENTITY_TABLES + (self.next_table - 1) * PageSize::Small.bytes();
        }
        self.page(0, PageSize::Small)
    }
}

/// A bijection on the numbers of `bits` bits; `bits` is even.
fn permute(number: u64, bits: u32, seed: u64) -> u64 {
    let half = bits / 2;
    let mask = (1 << half) - 1;
    let (mut left, mut right) = (number >> half, number & mask);
    for round in 1..=4 {
        (left, right) = (right, left ^ mix(right ^ mix(seed.wrapping_add(round))) & mask);
    }
    left << half | right
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every input bit moves every output bit.
pub(crate) fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_meets_every_number_once() {
        let mut seen = vec![false; 1 << 10];
        for number in 0..1 << 10 {
            seen[permute(number, 10, 7) as usize] = true;
        }
        assert!(seen.into_iter().all(|met| met));
    }

    #[test]
    fn frames_of_two_pages_never_overlap() {
        for order in [Frames::Sequential {}, Frames::Random { seed: 3 }] {
            let mut frames = FrameAllocator::new(order, 0);
            let mut taken: Vec<(u64, u64)> = (0..300)
                .map(|n| PageSize::ALL[n % 3])
                .map(|size| (frames.page(0, size), size.bytes()))
                .collect();
            taken.extend((0..50).map(|_| (frames.table(), 4096)));
            taken.sort_unstable();
            assert!(taken.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{order:?}");
        }
    }

    #[test]
    fn identity_is_identity() {
        let mut frames = FrameAllocator::new(Frames::Identity {}, 0);
        assert_eq!(frames.page(0x7fff_1234_5678, PageSize::Small), 0x7fff_1234_5000);
        assert!(frames.table() >= IDENTITY_TABLES);
    }
}
