//! Numbers that are committed, and how those of now differ from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::output_of;

/// A number may differ by so much from the one that is committed. Tables are seeded anew in every process.
const TOLERANCE: f64 = 0.02;
/// Set to 1 it makes a test write its numbers anew.
const BLESS: &str = "LOOKASIDE_BLESS";

/// A file of numbers.
pub(crate) struct Committed {
    pub(crate) file: &'static str,
    /// What they are: the first lines of the file.
    pub(crate) head: &'static str,
    pub(crate) decimals: usize,
    /// By so much a number may always differ.
    pub(crate) always: f64,
}

/// What such a file says.
#[derive(Debug, PartialEq)]
pub(crate) struct Numbers {
    pub(crate) compiler: String,
    pub(crate) numbers: BTreeMap<String, f64>,
}

impl Committed {
    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.file)
    }

    /// Compares what `count` finds with what is committed, or writes it.
    pub(crate) fn compare(&self, count: impl FnOnce() -> BTreeMap<String, f64>) {
        let compiler = output_of(Command::new("rustc").arg("--version")).trim().to_owned();
        let bless = std::env::var_os(BLESS).is_some_and(|bless| bless == "1");
        let committed = (!bless).then(|| Self::read(&fs::read_to_string(self.path()).expect(self.file)));
        if let Some(committed) = &committed
            && committed.compiler != compiler
        {
            let why = format!("the numbers are those of {}, and this is {compiler}", committed.compiler);
            return outside::say(why);
        }
        let now = Numbers { compiler, numbers: count() };
        let Some(committed) = committed else {
            return fs::write(self.path(), self.write(&now)).unwrap();
        };
        let differences = self.differences(&committed, &now);
        assert!(
            differences.is_empty(),
            "{}\nIf that is meant, {BLESS}=1 writes the numbers anew: commit them with what changed them.",
            differences.join("\n")
        );
    }

    pub(crate) fn read(text: &str) -> Numbers {
        let table: toml::Table = text.parse().expect("TOML");
        let compiler = table["compiler"].as_str().expect("a version of rustc").to_owned();
        let numbers = table["numbers"].as_table().expect("a table");
        let number = |value: &toml::Value| value.as_float().expect("a number with a point");
        let numbers = numbers.iter().map(|(name, value)| (name.clone(), number(value))).collect();
        Numbers { compiler, numbers }
    }

    pub(crate) fn write(&self, now: &Numbers) -> String {
        let mut text = String::from(self.head);
        write!(text, "compiler = \"{}\"\n\n[numbers]\n", now.compiler).expect("a string");
        for (name, number) in &now.numbers {
            writeln!(text, "{name} = {number:.*}", self.decimals).expect("a string");
        }
        text
    }

    /// How `now` differs from what was, a line for each difference.
    pub(crate) fn differences(&self, was: &Numbers, now: &Numbers) -> Vec<String> {
        let names = was.numbers.keys().chain(now.numbers.keys()).collect::<BTreeSet<_>>();
        let mut differences = Vec::new();
        for name in names {
            let (was, is) = (was.numbers.get(name), now.numbers.get(name));
            // What happens in one run of many by chance is in one of the two only, and is next to nothing there.
            let (before, after) = (was.copied().unwrap_or(0.0), is.copied().unwrap_or(0.0));
            if (after - before).abs() <= (TOLERANCE * before).max(self.always) {
                continue;
            }
            let decimals = self.decimals;
            differences.push(match (was, is) {
                (Some(was), Some(is)) => {
                    format!("{name}: {is:.decimals$} now, {was:.decimals$} is committed")
                }
                (Some(was), None) => format!("{name}: {was:.decimals$} is committed, but not counted"),
                (None, _) => format!("{name}: {after:.decimals$} now, but none is committed"),
            });
        }
        differences
    }
}

#[test]
fn numbers_that_differ_are_named_and_others_are_not() {
    let committed = Committed { file: "", head: "# What they are.\n", decimals: 1, always: 0.5 };
    let numbers = |numbers: &[(&str, f64)]| Numbers {
        compiler: "rustc 1".into(),
        numbers: numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
    };
    let was = numbers(&[("few", 10.0), ("many", 100.0), ("gone", 1.0)]);
    assert_eq!(Committed::read(&committed.write(&was)), was);
    let now = numbers(&[("few", 10.5), ("many", 97.9), ("new", 1.0)]);
    let differences = committed.differences(&was, &now);
    assert_eq!(
        differences,
        [
            "gone: 1.0 is committed, but not counted",
            "many: 97.9 now, 100.0 is committed",
            "new: 1.0 now, but none is committed",
        ]
    );
    let near = numbers(&[("few", 9.5), ("many", 102.0), ("gone", 1.0), ("rare", 0.5)]);
    assert!(committed.differences(&was, &near).is_empty());
    assert!(committed.differences(&near, &was).is_empty());
}
