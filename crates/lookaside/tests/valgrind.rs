//! A program in Rust runs under valgrind: this one, started anew there. Without valgrind the test is skipped, unless
//! LOOKASIDE_REQUIRE_PEERS=1.
//!
//! Every program that made a table ended there: the library that asks for memory read the vector of the kernel's
//! parameters by a system call, which valgrind does not know, and gave up at what it shows programs instead. The same
//! in C and C++ is in `crates/capi/tests/regressions.rs`.

use std::collections::BTreeSet;
use std::process::Command;

use lookaside::{Config, Front, Map, RwLock};

/// Set for the program that runs there.
const THERE: &str = "LOOKASIDE_TEST_UNDER_VALGRIND";

#[test]
fn a_program_that_makes_tables_runs_under_valgrind() {
    if std::env::var_os(THERE).is_some() {
        use_a_map();
        return use_a_front();
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return outside::skip("valgrind: install Debian's package valgrind");
    }
    let output = Command::new("valgrind")
        .args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "valgrind::a_program_that_makes_tables_runs_under_valgrind", "--nocapture"])
        .env(THERE, "1")
        .output()
        .unwrap();
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(out.contains("1 passed"), "{out}");
}

fn use_a_map() {
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(1 << 20)).unwrap();
    for number in 0..1000u64 {
        map.insert(number, vec![number; 4]);
    }
    let mut reader = map.pin();
    for number in (0..1000).chain(0..1000) {
        assert_eq!(reader.get(&number).map(|value| value[3]), Some(number));
        if number % 3 == 0 {
            reader.remove(&number);
            map.insert(number, vec![number; 4]);
        }
        reader.refresh();
    }
}

/// What one borrow lent is freed before the next begins, and a front is forgotten.
fn use_a_front() {
    let mut kept: Front<&'static str> = Front::new(&Config::with_size(1 << 16)).unwrap();
    for round in 0..3 {
        let texts: Vec<String> = (0..1000).map(|number| format!("{number} {round}")).collect();
        let front = kept.recycle();
        for number in (0..1000usize).chain(0..1000) {
            let is = |text: &str, number: &usize| {
                text.split_once(' ').is_some_and(|(first, _)| first == number.to_string())
            };
            assert_eq!(
                front.get(&number, is, |&number| texts.get(number).map(String::as_str)),
                Some(&*texts[number])
            );
        }
        kept = front.recycle();
    }
    std::mem::forget(kept);
}
