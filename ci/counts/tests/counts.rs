//! Instructions an operation, beside those that are committed: `counts.toml`.
//!
//! Time on a shared machine moves by tens of per cent, and a slower lookup hides in that. Instructions do not move, so
//! they are a gate. They are not the cost, though: a change that takes more instructions and less time is welcome, and
//! says so by a new number, which is committed with it.
//!
//! The counts are of optimised programs, so this test builds them, into a folder of their own. They are of one
//! compiler: with another one they are not compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A count may differ by so much from the one that is committed. Tables are seeded anew in every process.
const TOLERANCE: f64 = 0.02;
/// By so many instructions it may always differ.
const ALWAYS: f64 = 0.5;
/// Set to 1 it makes this test write the counts anew.
const BLESS: &str = "LOOKASIDE_BLESS";

/// The committed file.
#[derive(Debug, PartialEq)]
struct Counts {
    compiler: String,
    instructions: BTreeMap<String, f64>,
}

impl Counts {
    fn read(text: &str) -> Counts {
        let table: toml::Table = text.parse().expect("TOML");
        let compiler = table["compiler"].as_str().expect("a version of rustc").to_owned();
        let instructions = table["instructions"].as_table().expect("a table");
        let number = |value: &toml::Value| value.as_float().expect("a number with a point");
        let instructions = instructions.iter().map(|(name, value)| (name.clone(), number(value))).collect();
        Counts { compiler, instructions }
    }

    fn write(&self) -> String {
        let mut text = String::from(
            "# Instructions an operation (a key, in batches), counted under callgrind: see tests/counts.rs.\n\
             # LOOKASIDE_BLESS=1 cargo test -p lookaside-counts writes them anew.\n",
        );
        write!(text, "compiler = \"{}\"\n\n[instructions]\n", self.compiler).expect("a string");
        for (name, instructions) in &self.instructions {
            writeln!(text, "{name} = {instructions:.1}").expect("a string");
        }
        text
    }

    /// How `now` differs from these, a line for each difference.
    fn differences(&self, now: &Counts) -> Vec<String> {
        let names = self
            .instructions
            .keys()
            .chain(now.instructions.keys())
            .collect::<std::collections::BTreeSet<_>>();
        let mut differences = Vec::new();
        for name in names {
            match (self.instructions.get(name), now.instructions.get(name)) {
                (Some(was), Some(is)) if (is - was).abs() > (TOLERANCE * was).max(ALWAYS) => {
                    differences.push(format!("{name}: {is:.1} instructions, {was:.1} are committed"));
                }
                (Some(_), Some(_)) => {}
                (Some(_), None) => differences.push(format!("{name}: committed, but no program")),
                (None, _) => differences.push(format!("{name}: a program, but not committed")),
            }
        }
        differences
    }
}

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{said}");
    out.into_owned()
}

/// Builds the programs optimised as a whole: how the compiler shares out a crate among several units, and so what it
/// inlines, depends on the folder that the sources are in.
fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counts");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--release", "--bin", "lookaside-counts", "--manifest-path"])
        .arg(manifest);
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "fat").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    // What a sanitizer or another processor would have is not what is counted.
    output_of(
        cargo.env("CARGO_TARGET_DIR", &folder).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"),
    );
    folder.join("release/lookaside-counts")
}

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
    if Command::new("valgrind").arg("--version").output().is_err() {
        return outside::skip("valgrind: install Debian's package valgrind");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.toml");
    let compiler = output_of(Command::new("rustc").arg("--version")).trim().to_owned();
    let bless = std::env::var_os(BLESS).is_some_and(|bless| bless == "1");
    let committed = (!bless).then(|| Counts::read(&fs::read_to_string(&path).expect("counts.toml")));
    if let Some(committed) = &committed
        && committed.compiler != compiler
    {
        let why = format!("the counts are those of {}, and this is {compiler}", committed.compiler);
        return outside::say(why);
    }
    let program = build();
    let mut instructions = BTreeMap::new();
    for line in output_of(&mut Command::new(&program)).lines() {
        let (name, operations) = line.split_once(' ').expect("a name and a number");
        let operations: u64 = operations.parse().expect("a number");
        instructions.insert(name.to_owned(), count(&program, name) as f64 / operations as f64);
    }
    let now = Counts { compiler, instructions };
    let Some(committed) = committed else {
        return fs::write(&path, now.write()).unwrap();
    };
    let differences = committed.differences(&now);
    assert!(
        differences.is_empty(),
        "{}\nIf that is meant, {BLESS}=1 writes the counts anew: commit them with what changed them.",
        differences.join("\n")
    );
}

#[test]
fn counts_that_differ_are_named_and_others_are_not() {
    let counts = |instructions: &[(&str, f64)]| Counts {
        compiler: "rustc 1".into(),
        instructions: instructions.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
    };
    let was = counts(&[("few", 10.0), ("many", 100.0), ("gone", 1.0)]);
    assert_eq!(Counts::read(&was.write()), was);
    let now = counts(&[("few", 10.5), ("many", 97.9), ("new", 1.0)]);
    let differences = was.differences(&now);
    assert_eq!(
        differences,
        [
            "gone: committed, but no program",
            "many: 97.9 instructions, 100.0 are committed",
            "new: a program, but not committed",
        ]
    );
    assert!(was.differences(&counts(&[("few", 9.5), ("many", 102.0), ("gone", 1.0)])).is_empty());
}
