//! Pages: the three sizes of x86-64, and the entry that translates one.
//!
//! A page-table entry is one word, as in hardware: the page's physical address with the bits below 4 KiB free
//! for flags. The flags here are the simulator's own, because nothing outside reads them: bit 0 says that the
//! entry is present, bits 1 and 2 which size its page has. Zero is no entry. The same word lies in the TLBs,
//! in the STB and in the rows of the STLT, which is what makes a row 16 bytes.

use serde::{Deserialize, Serialize};

/// The size of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    #[serde(rename = "4KiB")]
    Small,
    /// 2 MiB.
    #[serde(rename = "2MiB")]
    Large,
    /// 1 GiB.
    #[serde(rename = "1GiB")]
    Giant,
}

impl PageSize {
    /// From the smallest to the largest.
    pub const ALL: [PageSize; 3] = [PageSize::Small, PageSize::Large, PageSize::Giant];

    /// The number of address bits inside a page: 12, 21 or 30.
    #[must_use]
    #[inline]
    pub const fn shift(self) -> u32 {
        12 + 9 * self as u32
    }

    /// Bytes of a page.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.shift()
    }

    /// The level of the page table whose entries are leaves of this size: 1, 2 or 3.
    #[must_use]
    pub const fn leaf_level(self) -> u32 {
        self as u32 + 1
    }

    /// The number of the page in which `address` lies.
    #[must_use]
    #[inline]
    pub const fn number(self, address: u64) -> u64 {
        address >> self.shift()
    }

    /// The address at which the page of `address` begins.
    #[must_use]
    #[inline]
    pub const fn base(self, address: u64) -> u64 {
        address & !(self.bytes() - 1)
    }
}

/// A page-table entry; [`Pte::NONE`] translates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Pte(u64);

impl Pte {
    /// No entry: what the walker finds where nothing is mapped.
    pub const NONE: Pte = Pte(0);
    const PRESENT: u64 = 1;

    /// The entry of a page of `size` whose frame begins at `physical`, rounded down to the page's size.
    #[must_use]
    pub const fn new(physical: u64, size: PageSize) -> Pte {
        Pte(size.base(physical) | (size as u64) << 1 | Pte::PRESENT)
    }

    /// Whether it translates anything.
    #[must_use]
    pub const fn is_present(self) -> bool {
        self.0 & Pte::PRESENT != 0
    }

    /// The size of the page.
    #[must_use]
    #[inline]
    pub const fn size(self) -> PageSize {
        match self.0 >> 1 & 3 {
            0 => PageSize::Small,
            1 => PageSize::Large,
            _ => PageSize::Giant,
        }
    }

    /// Where the frame begins.
    #[must_use]
    pub const fn frame(self) -> u64 {
        self.size().base(self.0)
    }

    /// The physical address of `address`, which must lie in the page that this entry translates.
    #[must_use]
    #[inline]
    pub const fn translate(self, address: u64) -> u64 {
        // The shift of the size whose number stands there, without asking which it is.
        let inside = (1 << (12 + 9 * (self.0 >> 1 & 3))) - 1;
        self.0 & !inside | address & inside
    }

    /// The word as it stands in memory.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The entry that [`Pte::bits`] gave.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Pte {
        Pte(bits)
    }
}

const _: () = assert!(size_of::<Pte>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_its_frame_and_its_size() {
        for size in PageSize::ALL {
            let pte = Pte::new(0x7_4000_0000 + 0x123, size);
            assert_eq!(pte.size(), size);
            assert_eq!(pte.frame(), 0x7_4000_0000);
            assert_eq!(pte.translate(0x1_2345_6789), 0x7_4000_0000 | 0x1_2345_6789 & (size.bytes() - 1));
            assert_eq!(Pte::from_bits(pte.bits()), pte);
        }
        assert!(!Pte::NONE.is_present());
    }
}
