//! Programs in C and C++ against the library: each function, threads, exceptions, the wrapper, and the examples.
//!
//! They need a compiler (see `toolchain`), and two examples need Debian's libabsl-dev and
//! libsparsehash-dev. Without them they are skipped, unless LOOKASIDE_REQUIRE_PEERS=1.

use std::process::{Command, Output, Stdio};

use crate::toolchain::{Program, compiler, has, home};

/// The arguments that link what pkg-config knows of these packages; none where it is missing, or knows none of them.
fn packages(names: &[&str]) -> Option<Vec<String>> {
    if names.is_empty() {
        return Some(Vec::new());
    }
    let output = Command::new("pkg-config").arg("--libs").args(names).output().ok()?;
    let arguments = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| arguments.split_whitespace().map(str::to_string).collect())
}

/// Builds a program of tests/c, and runs it once with each of these arguments.
fn run(name: &str, arguments: &[&[&str]]) -> Option<Vec<Output>> {
    let directory = tempfile::tempdir().unwrap();
    let source = home().join("tests/c").join(name);
    if !has(&["stdint.h"], &directory.path().join(name)) {
        outside::skip(format_args!("{name}: there is no compiler for it: install g++"));
        return None;
    }
    let binary = directory.path().join("program");
    Program { source: &source, include: home().join("tests/c"), options: Vec::new() }.build(&binary);
    Some(arguments.iter().map(|argument| Command::new(&binary).args(*argument).output().unwrap()).collect())
}

fn succeeds(name: &str) {
    for output in run(name, &[&[]]).into_iter().flatten() {
        let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {}: {out}{said}", output.status);
    }
}

/// Programs choose their warnings. None comes from these headers, also where the templates are made use of.
#[test]
fn headers_compile_where_much_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["inline_rule.c", "wrapper.cpp"] {
        if !has(&["stdint.h"], &directory.path().join(name)) {
            outside::skip(format_args!("{name}: there is no compiler for it: install g++"));
            return;
        }
        let source = home().join("tests/c").join(name);
        let mut command = compiler(&source);
        command.args([
            "-Wno-error",
            "-Wpedantic",
            "-Wconversion",
            "-Wsign-conversion",
            "-Wshadow",
            "-Wcast-align",
        ]);
        command.args(["-fsyntax-only", "-I"]).arg(home().join("include")).arg(&source);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        // A path in front of a line's number: what is warned of there, and not what was included from there.
        let of_headers =
            said.lines().filter(|line| line.contains("warning:") && line.contains("include/lookaside"));
        assert_eq!(of_headers.collect::<Vec<_>>(), Vec::<&str>::new(), "{name}");
    }
}

/// And an older language is named, in words of ours.
#[test]
fn the_wrapper_says_which_language_it_is_written_in() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("old.cpp");
    if !has(&["cstdint"], &source) {
        outside::skip("there is no compiler for C++: install g++");
        return;
    }
    std::fs::write(&source, "#include \"lookaside.hpp\"\n").unwrap();
    let include = home().join("include");
    let compile = |standard: &str| {
        let mut command = compiler(&source);
        command.args([standard, "-fsyntax-only", "-I"]).arg(&include).arg(&source);
        command.output().unwrap()
    };
    let said = String::from_utf8_lossy(&compile("-std=c++14").stderr).into_owned();
    assert!(said.contains("compile with -std=c++17 or later"), "{said}");
    assert!(compile("-std=c++17").status.success());
}

#[test]
fn every_function_does_what_it_says_also_with_nothing() {
    succeeds("every_function.c");
}

#[test]
fn what_is_inlined_does_the_same_as_the_library() {
    succeeds("inline_rule.c");
}

#[test]
fn without_memory_nothing_is_made_and_nothing_ends() {
    succeeds("no_room.c");
}

#[test]
fn threads_find_nothing_stale_and_lose_nothing() {
    succeeds("threads.c");
}

#[test]
fn threads_touch_no_memory_that_was_freed() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["threads.c", "wrapper.cpp"] {
        let (source, binary) = (home().join("tests/c").join(name), directory.path().join("program"));
        let probe = directory.path().join(name);
        std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
        let sanitized =
            compiler(&probe).arg("-fsanitize=address").arg(&probe).arg("-o").arg(&binary).output();
        if !sanitized.is_ok_and(|output| output.status.success()) {
            outside::skip(format_args!(
                "{name}: there is no compiler with an address sanitizer: install g++"
            ));
            return;
        }
        let options = vec!["-fsanitize=address".to_string()];
        Program { source: &source, include: home().join("tests/c"), options }.build(&binary);
        // What a thread asks for after its destructors is not given back: `late_calls` does.
        let output = Command::new(&binary).env("ASAN_OPTIONS", "detect_leaks=0").output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_wrapper_for_cpp_does_what_it_says() {
    succeeds("wrapper.cpp");
}

#[test]
fn an_exception_that_leaves_a_callback_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    const SIGABRT: i32 = 6;
    let callbacks = ["match", "keyhash", "entryhash", "free", "nobody"];
    for (callback, output) in callbacks
        .iter()
        .zip(run("exception.cpp", &callbacks.each_ref().map(std::slice::from_ref)).into_iter().flatten())
    {
        let out = String::from_utf8_lossy(&output.stdout);
        if *callback == "nobody" {
            assert!(output.status.success() && out == "ready\nnothing was thrown\n", "{out}");
        } else {
            assert_eq!((output.status.signal(), &*out), (Some(SIGABRT), "ready\n"), "{callback}");
        }
    }
}

/// An example with its added lines, and without: the answers are the same, and most come from the table.
fn example(name: &str, headers: &[&str], link: &[&str]) {
    const MOST_ADDED: usize = 12;
    let directory = tempfile::tempdir().unwrap();
    let examples = home().join("examples/cpp");
    let source = examples.join(name).with_extension("cpp");
    let text = std::fs::read_to_string(&source).unwrap();
    let is_added = |line: &&str| line.ends_with("// +");
    let added = text.lines().filter(is_added).count();
    assert!((1..=MOST_ADDED).contains(&added), "{name}: {added} lines were added");
    let alone: Vec<&str> = text.lines().filter(|line| !is_added(line)).collect();
    assert!(
        !alone.join("\n").contains("slb"),
        "{name}: lines that belong to the buffer are not marked as added"
    );

    let linked = packages(link).filter(|_| has(headers, &directory.path().join("probe.cpp")));
    let Some(link) = linked else {
        outside::skip(format_args!("{name}: install g++, libabsl-dev, libsparsehash-dev and pkg-config"));
        return;
    };
    let without = directory.path().join("alone.cpp");
    std::fs::write(&without, alone.join("\n") + "\n").unwrap();
    let outputs = [&source, &without].map(|source| {
        let binary = source.file_stem().map(|stem| directory.path().join(stem)).unwrap();
        Program { source, include: examples.clone(), options: link.clone() }.build(&binary);
        let output = Command::new(binary).output().unwrap();
        assert!(output.status.success(), "{}: {}", source.display(), output.status);
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    });
    let [(with, said), (without, _)] = outputs;
    assert_eq!(with, without, "{name}");
    assert!(with.starts_with("answers ") && !with.contains("0000000000000000"), "{with}");
    let hits = said.lines().find_map(|line| line.strip_prefix("hits ")?.parse::<u64>().ok());
    // Of 1.9 million lookups; the monitor, which is on, may not find that all of them pay.
    assert!(hits.is_some_and(|hits| hits > 100_000), "{name}: {said}");
}

/// Builds an example that is a program to begin with, and runs it; what it printed.
fn program(name: &str, argument: Option<&str>, input: &str) -> Option<String> {
    use std::io::Write;
    let (directory, source) = (tempfile::tempdir().unwrap(), home().join("examples").join(name));
    if !has(&["stdint.h"], &directory.path().join(source.file_name().unwrap())) {
        outside::skip(format_args!("{name}: there is no compiler for it: install g++"));
        return None;
    }
    let binary = directory.path().join("program");
    Program { source: &source, include: home().join("examples"), options: Vec::new() }.build(&binary);
    let mut command = Command::new(binary);
    command.args(argument).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{name}: {}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_example_counts_words() {
    let input = "The sun, the moon; THE stars. ".repeat(100) + "moon";
    if let Some(said) = program("c/words.c", None, &input) {
        let [the, moon, rest @ ..] = &*said.lines().map(str::trim).collect::<Vec<_>>() else {
            panic!("{said}")
        };
        assert_eq!((*the, *moon, rest.len()), ("300 the", "101 moon", 2));
    }
}

#[test]
fn an_example_reads_accounts_while_they_are_replaced() {
    if let Some(said) = program("c/accounts.c", Some("3"), "") {
        assert_eq!(said, "20000 paid in, 0 wrong answers\n");
    }
}

#[test]
fn an_example_keeps_sessions() {
    if let Some(said) = program("cpp/sessions.cpp", Some("2"), "") {
        let all = "200000 of 200000 found\n";
        assert_eq!(said, format!("{all}{all}then: somebody else\nat last: nobody\n"));
    }
}

#[test]
fn an_example_std_map() {
    example("std_map", &["map"], &[]);
}

#[test]
fn an_example_std_unordered_map() {
    example("std_unordered_map", &["unordered_map"], &[]);
}

#[test]
fn an_example_absl_btree_map() {
    example("absl_btree_map", &["absl/container/btree_map.h"], &["absl_throw_delegate"]);
}

#[test]
fn an_example_dense_hash_map() {
    example("dense_hash_map", &["google/dense_hash_map"], &[]);
}
