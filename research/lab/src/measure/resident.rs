//! Resident memory of a process, as the kernel tells it.
//!
//! What something takes is told as the growth while it was made ([`Resident::since`]), so that what the program had
//! before is not counted; what it frees elsewhere meanwhile would be taken for a gain.

use std::fs;

/// Resident memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// Bytes, of all pages.
    pub bytes: u64,
    /// Of these, bytes in transparent huge pages.
    pub huge: u64,
}

impl Resident {
    /// That of this process now; zero where the kernel does not tell.
    #[must_use]
    pub fn now() -> Resident {
        Resident::of(std::process::id())
    }

    /// That of the process number `id` now; zero where the kernel does not tell.
    #[must_use]
    pub fn of(id: u32) -> Resident {
        let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).unwrap_or_default();
        let field = |name: &str| {
            let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        };
        let bytes = |name| field(name).unwrap_or_default() << 10;
        Resident {
            bytes: bytes("Rss") + bytes("Private_Hugetlb") + bytes("Shared_Hugetlb"),
            huge: bytes("AnonHugePages"),
        }
    }

    /// What has come since `before`.
    #[must_use]
    pub fn since(self, before: Resident) -> Resident {
        Resident {
            bytes: self.bytes.saturating_sub(before.bytes),
            huge: self.huge.saturating_sub(before.huge),
        }
    }

    /// Words for the pages of a result: the share that is huge; nothing where nothing is known.
    #[must_use]
    pub fn pages(self) -> String {
        if self.bytes == 0 {
            return String::new();
        }
        format!("{:.0} % huge", 100.0 * self.huge.min(self.bytes) as f64 / self.bytes as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_touched_is_resident() {
        let before = Resident::now();
        let memory = vec![1u8; 256 << 20];
        let grown = Resident::now().since(before).bytes;
        // Other tests of this process may take or free a little meanwhile.
        assert!((200 << 20..400 << 20).contains(&grown), "{grown}");
        assert!(memory.iter().all(|&byte| byte == 1));
    }

    #[test]
    fn pages_are_told_where_they_are_known() {
        assert_eq!(Resident { bytes: 200, huge: 50 }.pages(), "25 % huge");
        assert_eq!(Resident::default().pages(), "");
    }
}
