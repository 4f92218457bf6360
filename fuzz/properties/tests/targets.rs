//! Each fuzz target by its name: how many mutations of its seeds take half a second, and that libFuzzer has it, too.

use std::collections::BTreeSet;
use std::fs;

use crate::{folder, holds, seeds};

macro_rules! targets {
    ($($(#[$condition:meta])* $name:ident: $cases:literal,)*) => {
        $(
            $(#[$condition])*
            #[test]
            fn $name() {
                holds(stringify!($name), properties::$name, $cases);
            }
        )*

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    cache: 2000,
    parser: 4000,
    response: 25_000,
    tree: 8000,
    #[cfg(not(lookaside_no_server))]
    binary: 1500,
    #[cfg(not(lookaside_no_server))]
    connection: 400,
    #[cfg(not(lookaside_no_server))]
    meta: 3000,
    #[cfg(not(lookaside_no_server))]
    options: 15_000,
}

/// The fuzzer's programs are built on nightly toolchains alone. So that they compile there, they say nothing but which
/// property they call.
#[test]
fn the_fuzzer_has_each_and_no_other() {
    let programs = folder().join("fuzz_targets");
    let there: BTreeSet<_> = fs::read_dir(&programs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(there, NAMES.iter().map(|name| format!("{name}.rs")).collect());
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for name in NAMES {
        let program = fs::read_to_string(programs.join(format!("{name}.rs"))).unwrap();
        let call = format!("libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::{name}(data));\n");
        assert_eq!(program, format!("#![no_main]\n{call}"));
        let entry = format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&entry), "{name} is no program of fuzz/Cargo.toml");
        assert!(!seeds(name).is_empty());
    }
}
