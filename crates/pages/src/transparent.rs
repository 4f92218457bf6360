//! Whether the kernel assembles huge pages where it is advised to.
//!
//! `/proc/self/smaps` tells this for each mapping (`THPeligible`), but counts the pages of all mappings on the way: in
//! a process with four gigabytes on the heap a table of one megabyte took 87 ms to make, most of it there, and takes
//! 0.04 ms without. So the settings that decide are asked instead: those of the machine, for huge pages in general and
//! for those of 2 MiB (Linux, `admin-guide/mm/transhuge.rst`), and whether the process was told to do without
//! (`PR_SET_THP_DISABLE`). Where the settings leave it open, smaps is asked.
//!
//! The two differ where huge pages of another size alone are granted: smaps calls such a mapping eligible, and here it
//! is not. A kernel that takes the advice and forgets it is believed.

use std::fs;
use std::io::ErrorKind;

use rustix::io::Errno;
use rustix::thread::transparent_huge_pages_are_disabled;

const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// Whether a mapping with `MADV_HUGEPAGE` gets huge pages, as far as memory has any; `None` where only the kernel's
/// report on the mapping can tell.
pub(crate) fn are_granted() -> Option<bool> {
    match transparent_huge_pages_are_disabled() {
        // Or it cannot be told: before Linux 3.15, and under QEMU's user mode.
        Ok(false) | Err(Errno::INVAL) => {}
        // Newer kernels also say yes where they are disabled for all mappings but advised ones; smaps tells the two
        // apart.
        Ok(true) | Err(_) => return None,
    }
    let general = fs::read_to_string(format!("{SETTINGS}/enabled")).ok()?;
    let of_size = match fs::read_to_string(format!("{SETTINGS}/hugepages-2048kB/enabled")) {
        Ok(choices) => Some(choices),
        // Kernels before 6.8 know one setting for all sizes.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => return None,
    };
    decide(&general, of_size.as_deref())
}

fn decide(general: &str, of_size: Option<&str>) -> Option<bool> {
    match of_size.map_or(Some("inherit"), chosen)? {
        "inherit" => granted(chosen(general)?),
        own => granted(own),
    }
}

fn granted(setting: &str) -> Option<bool> {
    match setting {
        "always" | "madvise" => Some(true),
        "never" => Some(false),
        _ => None,
    }
}

/// What stands in brackets among the choices.
fn chosen(choices: &str) -> Option<&str> {
    choices.split_ascii_whitespace().find_map(|choice| choice.strip_prefix('[')?.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_a_size_comes_before_the_general_one() {
        assert_eq!(decide("always [madvise] never", None), Some(true));
        assert_eq!(decide("[always] madvise never", Some("always [inherit] madvise never")), Some(true));
        assert_eq!(decide("always madvise [never]", Some("always [inherit] madvise never")), Some(false));
        assert_eq!(decide("always madvise [never]", Some("always inherit [madvise] never\n")), Some(true));
        assert_eq!(decide("[always] madvise never", Some("always inherit madvise [never]")), Some(false));
    }

    #[test]
    fn what_is_not_understood_is_not_decided() {
        assert_eq!(decide("", None), None);
        assert_eq!(decide("always [sometimes] never", None), None);
        assert_eq!(decide("[always] madvise never", Some("always")), None);
    }
}
