#![forbid(unsafe_code)]
//! What a test wants from outside this repository: a foreign program, its headers, recorded data. Where it is not
//! there, the test is skipped with a word; where [`REQUIRED`] says that all has to be there, it fails.
//!
//! The word is a line on standard error, `skipped: TEST: WHY`. `ci/test` reads the tests' names from it and has them
//! run again where everything is installed. It goes past the test harness, which keeps to itself what a test that
//! passes prints.
//!
//! And what it may have from outside: [`limited`]; how much of it is wanted: [`cases`]. And what stress tests draw
//! from: [`Random`].

mod cases;
mod limited;
mod random;

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

pub use cases::cases;
pub use limited::limited;
pub use random::Random;
pub use rustix::process::Resource;

/// The environment variable that, set to 1, makes what is missing a failure.
pub const REQUIRED: &str = "LOOKASIDE_REQUIRE_PEERS";

/// Says that this test, or a part of it, is skipped, and `why`.
///
/// # Panics
/// With `why`, where everything has to be there. That is how the test fails.
pub fn skip(why: impl fmt::Display) {
    let required = std::env::var_os(REQUIRED).is_some_and(|required| required == "1");
    assert!(!required, "{why} ({REQUIRED}=1)");
    say(why);
}

/// Says the same of what nobody can install, and never fails.
///
/// # Panics
/// If standard error is closed.
pub fn say(why: impl fmt::Display) {
    // A test that finds out in every of its cases says so once.
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = std::thread::current();
    // The harness names a test's thread after the test. If it runs them one by one, there is only the program's main
    // thread.
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or("main"));
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&line) {
        // In one piece, for others write there at the same time.
        io::stderr().write_all(line.as_bytes()).expect("standard error is open");
        said.insert(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Which of the two this process is asked to be: the harness runs the test below in a program of its own.
    const ASKED: &str = "LOOKASIDE_OUTSIDE_TEST";

    #[test]
    fn asked_by_the_test_below() {
        if std::env::var_os(ASKED).is_some() {
            skip("nothing is installed");
            skip("nothing is installed");
        }
    }

    #[test]
    fn who_is_missing_is_named_once_with_the_test_and_fails_it_where_it_has_to_be_there() {
        for (required, succeeds) in [("0", true), ("1", false)] {
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", "tests::asked_by_the_test_below", "--test-threads=2"]);
            let ended = again.env(ASKED, "1").env(REQUIRED, required).output().unwrap();
            let said = String::from_utf8(ended.stderr).unwrap();
            assert_eq!(ended.status.success(), succeeds, "{said}");
            let line = "skipped: tests::asked_by_the_test_below: nothing is installed\n";
            assert_eq!(said.matches(line).count(), usize::from(succeeds), "{said}");
        }
    }
}
