//! What the kernel says it gave: `/proc/self/smaps`, read for one mapping.
//!
//! `madvise` succeeds where transparent huge pages are switched off, and a huge page that was promised may still be
//! handed out in small pieces when memory is fragmented. Here the kind of a mapping comes from its `KernelPageSize` and
//! `THPeligible` lines, and the share of huge pages from `AnonHugePages`. To answer, the kernel counts the pages of
//! every mapping before ours as well; so it is asked for shares when somebody wants to know them, and for the kind
//! where nothing else tells it (`transparent`).

use std::fs::File;
use std::io::{BufRead, BufReader};

/// How much of a region is resident, and in which pages: all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Census {
    /// Resident bytes, of any page size.
    pub resident: usize,
    /// Of these, bytes in transparent huge pages.
    pub transparent_huge: usize,
    /// Of these, bytes in hugetlb pages.
    pub hugetlb: usize,
    /// Bytes of one page of this mapping as the kernel manages it (2 MiB for hugetlb, 4 KiB else).
    pub kernel_page: usize,
    /// Whether the kernel would assemble transparent huge pages here.
    pub transparent_eligible: bool,
}

/// Reads the census of the mapping that starts at `start`; `None` where the kernel offers no smaps or the mapping
/// is not in it.
pub(crate) fn read(start: usize) -> Option<Census> {
    parse(BufReader::new(File::open("/proc/self/smaps").ok()?), start)
}

fn parse(smaps: impl BufRead, start: usize) -> Option<Census> {
    let mut census: Option<Census> = None;
    // The name of another's mapped file may be no text.
    for line in smaps.split(b'\n') {
        let line = line.ok()?;
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split_ascii_whitespace();
        let head = words.next()?;
        if let Some(name) = head.strip_suffix(':') {
            let Some(census) = &mut census else { continue };
            let number = words.next().and_then(|word| word.parse::<usize>().ok());
            match (name, number) {
                ("Rss", Some(kib)) => census.resident += kib << 10,
                ("AnonHugePages", Some(kib)) => census.transparent_huge = kib << 10,
                ("Private_Hugetlb" | "Shared_Hugetlb", Some(kib)) => {
                    census.hugetlb += kib << 10;
                    census.resident += kib << 10;
                }
                ("KernelPageSize", Some(kib)) => census.kernel_page = kib << 10,
                ("THPeligible", Some(yes)) => census.transparent_eligible = yes != 0,
                _ => {}
            }
        } else if census.is_some() {
            break; // the head line of the next mapping
        } else if head.split_once('-').is_some_and(|(from, _)| usize::from_str_radix(from, 16) == Ok(start)) {
            census = Some(Census::default());
        }
    }
    census
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_MAPPINGS: &str = "\
1000-2000 rw-p 00000000 00:00 0 \n\
Size:                  4 kB\n\
KernelPageSize:        4 kB\n\
Rss:                   4 kB\n\
AnonHugePages:         0 kB\n\
THPeligible:           0\n\
VmFlags: rd wr mr mw me ac sd \n\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n\
Size:               4096 kB\n\
KernelPageSize:        4 kB\n\
Rss:                2052 kB\n\
AnonHugePages:      2048 kB\n\
Private_Hugetlb:       0 kB\n\
THPeligible:           1\n\
VmFlags: rd wr mr mw me ac sd hg \n";

    #[test]
    fn the_right_mapping_is_read_and_only_it() {
        let second = parse(TWO_MAPPINGS.as_bytes(), 0x7f00_0000_0000).unwrap();
        assert_eq!(
            second,
            Census {
                resident: 2052 << 10,
                transparent_huge: 2048 << 10,
                hugetlb: 0,
                kernel_page: 4096,
                transparent_eligible: true,
            }
        );
        let first = parse(TWO_MAPPINGS.as_bytes(), 0x1000).unwrap();
        assert_eq!((first.resident, first.transparent_eligible), (4096, false));
        assert_eq!(parse(TWO_MAPPINGS.as_bytes(), 0x3000), None);
    }
}
