//! What went wrong once in the interface for C and C++, each with its story.

#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

mod toolchain;

use std::path::Path;
use std::process::Command;

use toolchain::{Program, compiler, has, home, is_c, skip, standard};

/// The compilers of C and of C++ that the header is for.
const COMPILERS: [(&str, &str); 2] = [("gcc", "g++"), ("clang", "clang++")];

/// What each of these compilers makes of a source of tests/c.
fn assembly(name: &str, options: &[&str]) -> Vec<String> {
    let source = home().join("tests/c").join(name);
    let made = COMPILERS.iter().filter_map(|(c, cpp)| {
        let compiler = if is_c(&source) { c } else { cpp };
        if Command::new(compiler).arg("--version").output().is_err() {
            skip(name, "install g++ and clang");
            return None;
        }
        let output = Command::new(compiler)
            .args([standard(&source), "-S", "-o", "-", "-I"])
            .arg(home().join("include"))
            .args(options)
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    });
    made.collect()
}

/// The instructions on vector registers: those that AVX encodes, and those that it does not.
fn of_vectors(assembly: &str) -> (Vec<&str>, Vec<&str>) {
    let instructions = assembly.lines().map(str::trim).filter(|line| !line.starts_with(['.', '#', '/']));
    instructions
        .filter(|line| line.contains("%xmm") || line.contains("%ymm"))
        .partition(|line| line.starts_with('v'))
}

/// The header loaded a line by inline assembly, which has one encoding: SSE's. In code compiled for AVX, where the upper halves of
/// the vector registers are in use, each such instruction waits for them: batches fell from 70 million lookups a second to 5.6
/// with -march=native, and single ones to a tenth with some compilers. Nobody had compiled a program so.
#[test]
fn code_for_avx_has_no_instruction_of_the_encoding_before_it() {
    for level in ["-O1", "-O2", "-O3"] {
        for assembly in assembly("lookups.cpp", &[level, "-mavx2"]) {
            let (vex, legacy) = of_vectors(&assembly);
            assert!(
                vex.iter().any(|line| line.starts_with("vpmovmskb")),
                "{level}: no lookup is compiled in"
            );
            assert_eq!(legacy, Vec::<&str>::new(), "{level}");
        }
        // Where one function has AVX, no macro says so.
        for assembly in assembly("target.c", &[level]) {
            let (vex, legacy) = of_vectors(&assembly);
            assert!(
                vex.iter().any(|line| line.starts_with("vpmovmskb")),
                "{level}: no lookup is compiled in"
            );
            assert_eq!(legacy, Vec::<&str>::new(), "{level}, one function");
        }
    }
}

/// What other processors do instead of SSE2 was in the header from the start, and nothing had ever compiled it: they were promised
/// what nobody had seen run.
#[test]
fn the_portable_lookups_do_the_same_as_the_library() {
    let directory = tempfile::tempdir().unwrap();
    for level in ["-O1", "-O2"] {
        for assembly in assembly("lookups.cpp", &[level, "-DLOOKASIDE_PORTABLE"]) {
            assert!(!assembly.contains("pmovmskb") && !assembly.contains("pcmpeqw"), "it is not portable");
        }
    }
    for name in ["inline_rule.c", "every_function.c", "wrapper.cpp"] {
        if !has(&["stdint.h"], &directory.path().join(name)) {
            skip(name, "there is no compiler for it: install g++");
            return;
        }
        let (source, binary) = (home().join("tests/c").join(name), directory.path().join("program"));
        let options = vec!["-DLOOKASIDE_PORTABLE".to_string()];
        Program { source: &source, include: home().join("tests/c"), options }.build(&binary);
        let output = Command::new(&binary).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Every program that made a buffer ended under valgrind: the library that asks for memory read the vector of the kernel's
/// parameters by a system call, which valgrind does not know, and gave up at what it shows programs instead. Users debug with it;
/// we had only run it on programs without a buffer.
#[test]
fn programs_that_make_a_buffer_run_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip("valgrind", "install Debian's package valgrind");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let examples = home().join("../../examples/cpp");
    for source in [home().join("tests/c/smallest.c"), examples.join("std_unordered_map.cpp")] {
        let name = source.file_name().unwrap();
        if !has(&["stdint.h"], &directory.path().join(name)) {
            skip("valgrind", "there is no compiler for C++: install g++");
            return;
        }
        let binary = directory.path().join("program");
        let options = vec!["-DWORKLOAD_OPERATIONS=20000".to_string()];
        Program { source: &source, include: examples.clone(), options }.build(&binary);
        let output = Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"])
            .arg(&binary)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}: {said}", Path::new(name).display(), output.status);
    }
}
