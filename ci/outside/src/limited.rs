//! A test in a process of its own that may have only so much more than it begins with: what a limit (`ulimit`) leaves.

use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Set for a process that does the work of one test alone.
const CHILD: &str = "LOOKASIDE_TEST_CHILD";

/// Does the work of the test of this name in a process of its own, which may have so many bytes of `resource` (all
/// addresses, or what may be written of them) more than it has when it begins. The test does nothing else. Where a
/// sanitizer needs more addresses than any limit allows it is skipped.
///
/// # Panics
/// If the work does, or there is no test of this name. That is how the test fails.
pub fn limited(test: &str, resource: Resource, bytes: usize, work: impl FnOnce()) {
    let [addresses, writable] = [0, 5].map(bytes_of);
    if std::env::var_os(CHILD).is_some() {
        let has = if resource == Resource::As { addresses } else { writable };
        let current = Some((has + bytes) as u64);
        setrlimit(resource, Rlimit { current, ..getrlimit(resource) }).expect("less is always allowed");
        work();
        return;
    }
    // A sanitizer has taken terabytes for its own.
    if cfg!(miri) || addresses > 1 << 40 {
        return crate::say("a sanitizer needs more addresses than this allows");
    }
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    let child = again.args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().expect("it starts");
    let words = [child.stdout, child.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    assert!(child.status.success() && words.contains("1 passed"), "{words}");
}

/// What one of the numbers of Linux's `statm` says of this process, which counts in pages.
fn bytes_of(field: usize) -> usize {
    let sizes = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = sizes.split(' ').nth(field).expect("seven numbers").parse().expect("a number");
    pages * rustix::param::page_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_no_more_than_it_may() {
        limited("limited::tests::a_process_has_no_more_than_it_may", Resource::As, 64 << 20, || {
            let reserve = |bytes| Vec::<u8>::new().try_reserve_exact(bytes);
            assert!(reserve(32 << 20).is_ok());
            assert!(reserve(65 << 20).is_err());
        });
    }

    #[test]
    #[should_panic(expected = "0 passed")]
    fn a_name_that_no_test_has_is_no_test() {
        limited("limited::tests::absent", Resource::As, 0, || {});
    }
}
