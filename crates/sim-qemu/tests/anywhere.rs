//! `stlt_anywhere.h` on a processor without the hardware. Needs a C compiler (`cc`, or what CC names).

#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

#[test]
fn a_guest_in_c_runs_without_the_simulator() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("anywhere");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc")));
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(home.join("guests"));
    let Ok(built) = compiler.arg(home.join("tests/c/anywhere.c")).arg("-o").arg(&program).output() else {
        let required = std::env::var_os("LOOKASIDE_REQUIRE_PEERS").is_some_and(|require| require == "1");
        assert!(!required, "no C compiler");
        eprintln!("skipped: no C compiler");
        return;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(program).output().expect("it was built");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
