//! Which system calls take pages away from the guest, or ask for huge ones.
//!
//! | call | pages that go |
//! |---|---|
//! | `munmap` | its range |
//! | `mremap` | the old range if it moved, what was cut off if it shrank |
//! | `madvise` with `DONTNEED`, `FREE` or `REMOVE` | its range: what is touched next is another frame |
//! | `mmap` with `FIXED` | its range: whatever was there |
//! | `brk` | from the new end to the old one |
//!
//! `madvise` with `HUGEPAGE`, and `mmap` with `HUGETLB`, ask for pages of 2 MiB. Whether the simulated machine gives them is
//! the run's choice.
//!
//! A call is judged when it returns: one that failed took nothing. `mprotect` changes rights, not frames, and
//! the simulated page table has no rights.

use std::collections::HashMap;
use std::ops::Range;

const MMAP: i64 = 9;
const MUNMAP: i64 = 11;
const BRK: i64 = 12;
const MREMAP: i64 = 25;
const MADVISE: i64 = 28;
const FIXED: u64 = 0x10;
const DONT_NEED: u64 = 4;
const FREE: u64 = 8;
const REMOVE: u64 = 9;
const HUGE_PAGE: u64 = 14;
const HUGE_TLB: u64 = 0x4_0000;

/// What happened to pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// They went.
    Gone(Range<u64>),
    /// What is mapped there from now on is to be huge.
    Huge(Range<u64>),
}

/// Calls under way, by thread, and where the heap ends.
#[derive(Debug, Default)]
pub struct AddressSpace {
    calls: HashMap<u32, (i64, [u64; 4])>,
    heap_end: u64,
}

impl AddressSpace {
    /// A thread makes a call.
    pub fn called(&mut self, thread: u32, number: i64, arguments: [u64; 4]) {
        if matches!(number, MMAP | MUNMAP | BRK | MREMAP | MADVISE) {
            self.calls.insert(thread, (number, arguments));
        }
    }

    /// Its call returns: what it did to pages. A huge mapping at a fixed place is taken for a new one: what was there
    /// stays known until it is touched anew.
    pub fn returned(&mut self, thread: u32, number: i64, result: i64) -> Option<Change> {
        let (called, [address, length, third, fourth]) = self.calls.remove(&thread)?;
        if called != number || (-4095..0).contains(&result) {
            return None;
        }
        let to = result as u64;
        let range = match number {
            MADVISE if third == HUGE_PAGE => {
                return Some(Change::Huge(address..address.saturating_add(length)));
            }
            MMAP if fourth & HUGE_TLB != 0 => return Some(Change::Huge(to..to.saturating_add(length))),
            MUNMAP => address..address.saturating_add(length),
            MADVISE if matches!(third, DONT_NEED | FREE | REMOVE) => address..address.saturating_add(length),
            MMAP if fourth & FIXED != 0 => to..to.saturating_add(length),
            MREMAP if to != address => address..address.saturating_add(length),
            MREMAP => address.saturating_add(third)..address.saturating_add(length),
            BRK => {
                let before = std::mem::replace(&mut self.heap_end, to);
                to..before
            }
            _ => return None,
        };
        (!range.is_empty()).then_some(Change::Gone(range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(space: &mut AddressSpace, number: i64, arguments: [u64; 4], result: i64) -> Option<Change> {
        space.called(0, number, arguments);
        space.returned(0, number, result)
    }

    #[test]
    fn what_goes_is_what_the_call_says() {
        let mut space = AddressSpace::default();
        for (number, arguments, result, expected) in [
            (MUNMAP, [0x1000, 0x2000, 0, 0], 0, Some(0x1000..0x3000)),
            (MUNMAP, [0x1001, 0x2000, 0, 0], -22, None),
            (MADVISE, [0x1000, 0x1000, DONT_NEED, 0], 0, Some(0x1000..0x2000)),
            (MADVISE, [0x1000, 0x1000, 3, 0], 0, None),
            (MMAP, [0x1000, 0x1000, 3, 0x22], 0x7000, None),
            (MMAP, [0x1000, 0x1000, 3, 0x32], 0x1000, Some(0x1000..0x2000)),
            (MREMAP, [0x1000, 0x2000, 0x4000, 1], 0x9000, Some(0x1000..0x3000)),
            (MREMAP, [0x1000, 0x4000, 0x2000, 1], 0x1000, Some(0x3000..0x5000)),
            (MREMAP, [0x1000, 0x2000, 0x4000, 1], 0x1000, None),
            (BRK, [0, 0, 0, 0], 0x8000, None),
            (BRK, [0xa000, 0, 0, 0], 0xa000, None),
            (BRK, [0x9000, 0, 0, 0], 0x9000, Some(0x9000..0xa000)),
            (1, [0x1000, 0x2000, 0, 0], 0, None),
        ] {
            let expected = expected.map(Change::Gone);
            assert_eq!(call(&mut space, number, arguments, result), expected, "{number} {arguments:x?}");
        }
    }

    #[test]
    fn huge_pages_are_asked_for_in_two_ways() {
        let mut space = AddressSpace::default();
        let advised = call(&mut space, MADVISE, [0x20_0000, 0x20_0000, HUGE_PAGE, 0], 0);
        assert_eq!(advised, Some(Change::Huge(0x20_0000..0x40_0000)));
        let mapped = call(&mut space, MMAP, [0, 0x20_0000, 3, 0x22 | HUGE_TLB], 0x60_0000);
        assert_eq!(mapped, Some(Change::Huge(0x60_0000..0x80_0000)));
        assert_eq!(call(&mut space, MMAP, [0, 0x20_0000, 3, 0x22 | HUGE_TLB], -12), None, "none to be had");
    }

    #[test]
    fn threads_do_not_answer_for_each_other() {
        let mut space = AddressSpace::default();
        space.called(1, MUNMAP, [0x1000, 0x1000, 0, 0]);
        assert_eq!(space.returned(2, MUNMAP, 0), None);
        assert_eq!(space.returned(1, MUNMAP, 0), Some(Change::Gone(0x1000..0x2000)));
        assert_eq!(space.returned(1, MUNMAP, 0), None, "once");
    }
}
