//! Translation look-aside buffers: a first level for data, one for instructions, and a second level for both.
//!
//! A level is several arrays, each for the page sizes it was built for: Sandy Bridge has 64, 32 and 4 entries
//! for pages of 4 KiB, 2 MiB and 1 GiB in its first level, and 512 entries in its second, for 4 KiB only
//! (Table 1 of "Adaptive Radix Tree and the TLB"; Intel 64 manual, volume 3, chapter on caching translation
//! information). A page whose size no array of a level holds always misses there.
//!
//! The size of a page is unknown before its translation is found, so a lookup asks for every size. In
//! hardware at once; here one after the other, but only for sizes that were ever put in: a program in small
//! pages pays for no other.
//!
//! There are no address-space numbers: a switch of contexts empties everything.

use serde::{Deserialize, Serialize};

use crate::cache::HitsAndMisses;
use crate::lru::LruSets;
use crate::page::{PageSize, Pte};

/// The shape of an array of translations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbArrayShape {
    /// Translations.
    pub entries: u32,
    /// Translations of a set; `entries` if it is fully associative.
    pub ways: u32,
    /// The sizes of page that it holds.
    pub pages: Vec<PageSize>,
}

impl TlbArrayShape {
    /// A shape.
    #[must_use]
    pub fn new(entries: u32, ways: u32, pages: &[PageSize]) -> TlbArrayShape {
        TlbArrayShape { entries, ways, pages: pages.to_vec() }
    }
}

/// The shape of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbShape {
    /// Cycles from the beginning of the access until this level has answered, hit or miss. Zero for a first
    /// level that works while the cache does.
    pub latency: u32,
    /// Its arrays.
    pub arrays: Vec<TlbArrayShape>,
}

/// The shapes of all levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbShapes {
    /// First level, data.
    pub data: TlbShape,
    /// First level, instructions.
    pub instructions: TlbShape,
    /// Second level, if there is one.
    pub second: Option<TlbShape>,
}

/// A level.
#[derive(Debug, Clone)]
pub struct Tlb {
    arrays: Vec<LruSets<Pte>>,
    /// For each array, how far apart the keys of its sizes lie: a multiple of its sets.
    apart: Vec<u64>,
    /// For each size, the array that holds it.
    array_of: [Option<usize>; 3],
    /// Sizes that were ever put in.
    used: [bool; 3],
    counts: HitsAndMisses,
}

impl Tlb {
    /// An empty level.
    #[must_use]
    pub fn new(shape: &TlbShape) -> Tlb {
        let arrays = shape
            .arrays
            .iter()
            .map(|array| LruSets::new((array.entries / array.ways) as usize, array.ways as usize))
            .collect();
        let apart = shape
            .arrays
            .iter()
            .map(|array| {
                ((1_u64 << 46) / u64::from(array.entries / array.ways) + 1)
                    * u64::from(array.entries / array.ways)
            })
            .collect();
        let holder = |size| shape.arrays.iter().position(|array| array.pages.contains(&size));
        Tlb {
            arrays,
            apart,
            array_of: PageSize::ALL.map(holder),
            used: [false; 3],
            counts: HitsAndMisses::default(),
        }
    }

    /// Pages of several sizes share an array, so the size is part of the key; yet the set is chosen by the
    /// page's number alone.
    #[inline(always)]
    fn key(&self, array: usize, address: u64, size: PageSize) -> u64 {
        size.number(address) + self.apart[array] * size as u64
    }

    /// The translation of `address`, or nothing.
    #[inline(always)]
    pub fn get(&mut self, address: u64) -> Option<Pte> {
        for size in PageSize::ALL {
            if self.used[size as usize]
                && let Some(array) = self.array_of[size as usize]
                && let key = self.key(array, address, size)
                && let Some(pte) = self.arrays[array].get(key)
            {
                self.counts.hits += 1;
                return Some(*pte);
            }
        }
        self.counts.misses += 1;
        None
    }

    /// Puts in the translation of the page of `address`, if there is an array for its size.
    pub fn put(&mut self, address: u64, pte: Pte) {
        if let Some(array) = self.array_of[pte.size() as usize] {
            self.used[pte.size() as usize] = true;
            let key = self.key(array, address, pte.size());
            self.arrays[array].put(key, pte);
        }
    }

    /// As [`put`](Self::put), after [`get`](Self::get) has just found nothing.
    pub(crate) fn fill(&mut self, address: u64, pte: Pte) {
        if let Some(array) = self.array_of[pte.size() as usize] {
            self.used[pte.size() as usize] = true;
            let key = self.key(array, address, pte.size());
            self.arrays[array].fill(key, pte);
        }
    }

    /// Takes out whatever translates `address`.
    pub fn remove(&mut self, address: u64) {
        for size in PageSize::ALL {
            if let Some(array) = self.array_of[size as usize] {
                let key = self.key(array, address, size);
                self.arrays[array].remove(key);
            }
        }
    }

    /// Empties the level.
    pub fn clear(&mut self) {
        self.arrays.iter_mut().for_each(LruSets::clear);
    }

    /// Hits and misses so far.
    #[must_use]
    pub fn counts(&self) -> HitsAndMisses {
        self.counts
    }
}
