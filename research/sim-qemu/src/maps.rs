//! What this process has mapped, as the system tells it in `/proc/self/maps`.

use std::fs;
use std::ops::Range;

/// Memory that can be read and written, is this process's alone, and of no file. None where the system does not tell.
pub(crate) fn own_memory() -> Vec<Range<usize>> {
    own_of(&fs::read("/proc/self/maps").unwrap_or_default())
}

/// Names of files may be of any bytes.
fn own_of(maps: &[u8]) -> Vec<Range<usize>> {
    String::from_utf8_lossy(maps).lines().filter_map(own).collect()
}

/// The range of a line, if it is such memory.
fn own(line: &str) -> Option<Range<usize>> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, inode) = (words.next()?, words.next()?, words.nth(2)?);
    let (start, end) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let private = rights.starts_with("rw") && rights.ends_with('p');
    (private && inode == "0").then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_its_own_is_named() {
        for (line, expected) in [
            ("7f0000100000-7f0000700000 rw-p 00000000 00:00 0", Some(0x7f00_0010_0000..0x7f00_0070_0000)),
            ("53540000-53541000 rwxp 00000000 00:00 0  [heap]", Some(0x5354_0000..0x5354_1000)),
            ("7f0000200000-7f0000400000 r--p 00000000 00:00 0", None),
            ("7f0000200000-7f0000400000 ---p 00000000 00:00 0", None),
            ("7f0000200000-7f0000400000 rw-s 00000000 00:00 0", None),
            ("7f0000200000-7f0000400000 rw-p 00000000 fe:00 1234  /usr/lib/a.so", None),
            ("nothing", None),
        ] {
            assert_eq!(own(line), expected, "{line}");
        }
        let named = b"7f0000200000-7f0000400000 r-xp 00000000 fe:00 12 /caf\xe9.so\n1000-2000 rw-p 00000000 00:00 0\n";
        assert!(own_of(named).into_iter().eq(std::iter::once(0x1000..0x2000)), "names of other bytes");
        let here = Box::new(0_u64);
        let address = (&raw const *here).addr();
        assert!(own_memory().iter().any(|range| range.contains(&address)));
    }
}
