//! Which system calls take pages away from the guest, or give them other rights.
//!
//! | call | pages that go |
//! |---|---|
//! | `munmap` | its range |
//! | `mremap` | the old range if it moved, and what was at the place that it asked for; what was cut off if it shrank |
//! | `madvise` with `DONTNEED`, `FREE` or `REMOVE` | its range: what is touched next is another frame |
//! | `mmap` with `FIXED` | its range: whatever was there |
//! | `brk` | from the new end to the old one |
//!
//! The kernel counts in pages: a length is rounded up to whole ones, and a page of which a byte remains stays.
//! (Of a huge page that is cut, the rest stays in small ones; the machine sees to that.)
//!
//! `mprotect` leaves the pages where they are, but no old translation may outlive the new rights: TLBs and IPB
//! hear of it as of pages that go.
//!
//! A call is judged when it returns: one that failed took nothing.

use std::collections::HashMap;
use std::ops::Range;

use sim::PageSize;

const MMAP: i64 = 9;
const MPROTECT: i64 = 10;
const MUNMAP: i64 = 11;
const BRK: i64 = 12;
const MREMAP: i64 = 25;
const MADVISE: i64 = 28;
const FIXED: u64 = 0x10;
/// Of `mremap`.
const TO_FIXED: u64 = 2;
const DONT_NEED: u64 = 4;
const FREE: u64 = 8;
const REMOVE: u64 = 9;

/// What happened to pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// They went.
    Gone(Range<u64>),
    /// They are where they were, with other rights.
    Protected(Range<u64>),
}

/// Calls under way, by thread, and where the heap ends.
#[derive(Debug, Default)]
pub struct AddressSpace {
    calls: HashMap<u32, (i64, [u64; 4])>,
    heap_end: u64,
}

/// The first page's beginning that is not below `address`.
fn rounded(address: u64) -> u64 {
    address.checked_next_multiple_of(PageSize::Small.bytes()).unwrap_or(u64::MAX)
}

/// The whole pages of so many bytes.
fn pages(address: u64, length: u64) -> Range<u64> {
    address..address.saturating_add(rounded(length))
}

impl AddressSpace {
    /// A thread makes a call.
    pub fn called(&mut self, thread: u32, number: i64, arguments: [u64; 4]) {
        if matches!(number, MMAP | MPROTECT | MUNMAP | BRK | MREMAP | MADVISE) {
            self.calls.insert(thread, (number, arguments));
        }
    }

    /// Its call returns: what it did to pages, one thing after the other.
    pub fn returned(&mut self, thread: u32, number: i64, result: i64) -> Vec<Change> {
        let Some((called, [address, length, third, fourth])) = self.calls.remove(&thread) else {
            return Vec::new();
        };
        if called != number || (-4095..0).contains(&result) {
            return Vec::new();
        }
        let to = result as u64;
        let changes = match number {
            MPROTECT => vec![Change::Protected(pages(address, length))],
            MUNMAP => vec![Change::Gone(pages(address, length))],
            MADVISE if matches!(third, DONT_NEED | FREE | REMOVE) => {
                vec![Change::Gone(pages(address, length))]
            }
            MMAP if fourth & FIXED != 0 => vec![Change::Gone(pages(to, length))],
            MREMAP if to != address => {
                let there = if fourth & TO_FIXED != 0 { pages(to, third) } else { to..to };
                vec![Change::Gone(there), Change::Gone(pages(address, length))]
            }
            MREMAP => vec![Change::Gone(pages(address, third).end..pages(address, length).end)],
            BRK => {
                let before = std::mem::replace(&mut self.heap_end, to);
                vec![Change::Gone(rounded(to)..rounded(before))]
            }
            _ => Vec::new(),
        };
        changes.into_iter().filter(|change| !change.range().is_empty()).collect()
    }
}

impl Change {
    fn range(&self) -> &Range<u64> {
        match self {
            Change::Gone(range) | Change::Protected(range) => range,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(space: &mut AddressSpace, number: i64, arguments: [u64; 4], result: i64) -> Vec<Change> {
        space.called(0, number, arguments);
        space.returned(0, number, result)
    }

    #[test]
    fn what_goes_is_what_the_call_says_in_whole_pages() {
        let mut space = AddressSpace::default();
        for (number, arguments, result, expected) in [
            (MUNMAP, [0x1000, 0x2000, 0, 0], 0, Some(0x1000..0x3000)),
            (MUNMAP, [0x1000, 0x1001, 0, 0], 0, Some(0x1000..0x3000)),
            (MUNMAP, [0x1001, 0x2000, 0, 0], -22, None),
            (MADVISE, [0x1000, 0x1000, DONT_NEED, 0], 0, Some(0x1000..0x2000)),
            (MADVISE, [0x1000, 1, DONT_NEED, 0], 0, Some(0x1000..0x2000)),
            (MADVISE, [0x1000, 0x1000, 3, 0], 0, None),
            (MMAP, [0x1000, 0x1000, 3, 0x22], 0x7000, None),
            (MMAP, [0x1000, 0x0800, 3, 0x32], 0x1000, Some(0x1000..0x2000)),
            (MREMAP, [0x1000, 0x1fff, 0x4000, 1], 0x9000, Some(0x1000..0x3000)),
            (MREMAP, [0x1000, 0x4000, 0x2000, 1], 0x1000, Some(0x3000..0x5000)),
            // The page with the last byte that is kept stays.
            (MREMAP, [0x1000, 0x3801, 0x1801, 1], 0x1000, Some(0x3000..0x5000)),
            (MREMAP, [0x1000, 0x1900, 0x1801, 1], 0x1000, None),
            (MREMAP, [0x1000, 0x2000, 0x4000, 1], 0x1000, None),
            (BRK, [0, 0, 0, 0], 0x8000, None),
            (BRK, [0xa000, 0, 0, 0], 0xa000, None),
            (BRK, [0x9000, 0, 0, 0], 0x9000, Some(0x9000..0xa000)),
            (BRK, [0xa801, 0, 0, 0], 0xa801, None),
            (BRK, [0x9801, 0, 0, 0], 0x9801, Some(0xa000..0xb000)),
            (BRK, [0x9800, 0, 0, 0], 0x9800, None),
            (1, [0x1000, 0x2000, 0, 0], 0, None),
        ] {
            let expected: Vec<_> = expected.map(Change::Gone).into_iter().collect();
            assert_eq!(call(&mut space, number, arguments, result), expected, "{number} {arguments:x?}");
        }
        let both = call(&mut space, MREMAP, [0x1000, 0x1000, 0x1800, 1 | TO_FIXED], 0x9000);
        assert_eq!(both, [Change::Gone(0x9000..0xb000), Change::Gone(0x1000..0x2000)], "what was there, too");
        let rights = call(&mut space, MPROTECT, [0x1000, 0x1001, 1, 0], 0);
        assert_eq!(rights, [Change::Protected(0x1000..0x3000)]);
    }

    #[test]
    fn threads_do_not_answer_for_each_other() {
        let mut space = AddressSpace::default();
        space.called(1, MUNMAP, [0x1000, 0x1000, 0, 0]);
        assert_eq!(space.returned(2, MUNMAP, 0), []);
        assert_eq!(space.returned(1, MUNMAP, 0), [Change::Gone(0x1000..0x2000)]);
        assert_eq!(space.returned(1, MUNMAP, 0), [], "once");
    }
}
