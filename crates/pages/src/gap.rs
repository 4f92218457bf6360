//! Addresses that a region can grow into.
//!
//! A region that began with less than it may come to ([`Region::growing`](crate::Region::growing)) grows in place,
//! because everything in it is found from its first byte. So it begins in the middle of the largest gap between
//! mappings. What the kernel places by itself it places next to what is there already: it comes nearer from the gap's
//! ends, and all of it together is within the very limit for which the region had to begin small, a few thousandths of
//! such a gap. The next region that grows begins in the middle of what is then the largest gap.
//!
//! Rejected: *just below the place that the kernel would choose*: the next region would begin there, too; *a random
//! place*: as good where nearly all addresses are free, and worse where a sanitizer's shadow has most of them.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Addresses of no process on x86-64 and aarch64 lie beyond this one; what is listed there is the kernel's.
const END: usize = 1 << 56;

/// The middle of the largest gap, if `bytes` are free from there on; `None` as well where the kernel does not tell.
pub(crate) fn middle_of_largest(bytes: usize) -> Option<usize> {
    middle(BufReader::new(File::open("/proc/self/maps").ok()?), bytes)
}

fn middle(maps: impl BufRead, bytes: usize) -> Option<usize> {
    let mut largest = 0..0;
    let mut end = None;
    // The name of another's mapped file may be no text.
    for line in maps.split(b'\n') {
        let line = line.ok()?;
        let line = String::from_utf8_lossy(&line);
        let (from, to) = line.split_ascii_whitespace().next()?.split_once('-')?;
        let [from, to] = [from, to].map(|address| usize::from_str_radix(address, 16).ok());
        let (from, to) = (from?, to?);
        if from > END {
            break;
        }
        let gap = end.unwrap_or(from)..from;
        if gap.len() > largest.len() {
            largest = gap;
        }
        end = Some(to);
    }
    let middle = largest.start + largest.len() / 2;
    (largest.end - middle > bytes).then_some(middle)
}

#[cfg(test)]
mod tests {
    const MAPS: &str = "\
555000000000-555000002000 r--p 00000000 fe:00 247026                     /usr/bin/cat
555000002000-555000004000 rw-p 00000000 00:00 0                          [heap]
7ff000000000-7ff000001000 r--p 00000000 fe:00 326269                     /usr/lib/libc.so.6
7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn the_gap_before_the_stack_is_not_the_largest_nor_is_that_behind_it() {
        let (from, to) = (0x5550_0000_4000, 0x7ff0_0000_0000);
        let middle = from + (to - from) / 2;
        assert_eq!(super::middle(MAPS.as_bytes(), 1 << 40), Some(middle));
        assert_eq!(super::middle(MAPS.as_bytes(), to - middle), None);
    }

    #[test]
    fn what_is_no_list_of_mappings_tells_nothing() {
        assert_eq!(super::middle(&b""[..], 1), None);
        assert_eq!(super::middle(&b"no mappings here"[..], 1), None);
    }
}
