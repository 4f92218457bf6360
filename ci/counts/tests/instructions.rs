//! Instructions an operation, beside those that are committed: `counts.toml`.
//!
//! Time on a shared machine moves by tens of per cent, and a slower lookup hides in that. Instructions do not move, so
//! they are a gate. They are not the cost, though: a change that takes more instructions and less time is welcome, and
//! says so by a new number, which is committed with it.
//!
//! The counts are of optimised programs, so this test builds them, into a folder of their own. They are of one
//! compiler: with another one they are not compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::committed::Committed;
use crate::program::{build, has_valgrind, output_of};

const COMMITTED: Committed = Committed {
    file: "counts.toml",
    head: "# Instructions an operation (a key, in batches), counted under callgrind: see tests/instructions.rs.\n\
           # LOOKASIDE_BLESS=1 cargo test -p lookaside-counts writes them anew.\n",
    decimals: 1,
    always: 0.5,
};

/// The instructions of a program's section.
fn count(program: &Path, name: &str) -> u64 {
    let out = program.with_file_name(format!("{name}.callgrind"));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--toggle-collect=*counted_section*"]);
    output_of(valgrind.arg(format!("--callgrind-out-file={}", out.display())).arg(program).arg(name));
    let text = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    let total = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("callgrind writes totals");
    total.trim().parse().expect("one kind of event")
}

#[test]
fn instructions_are_those_that_are_committed() {
    if !has_valgrind() {
        return;
    }
    COMMITTED.compare(|| {
        let program = build();
        let programs = output_of(&mut Command::new(&program));
        let counted = programs.lines().map(|line| {
            let (name, operations) = line.split_once(' ').expect("a name and a number");
            let operations: u64 = operations.parse().expect("a number");
            (name.to_owned(), count(&program, name) as f64 / operations as f64)
        });
        counted.collect::<BTreeMap<_, _>>()
    });
}
