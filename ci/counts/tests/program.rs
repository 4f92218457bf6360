//! The programs that are counted, built as they are released.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{said}");
    out.into_owned()
}

/// Builds the programs optimised as a whole: how the compiler shares out a crate among several units, and so what it
/// inlines, depends on the folder that the sources are in.
pub(crate) fn build() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("counts");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--release", "--bin", "lookaside-counts", "--manifest-path"])
        .arg(manifest);
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "fat").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    // Symbols are enough: valgrind reads lines anew for each program that it starts.
    cargo.env("CARGO_PROFILE_RELEASE_DEBUG", "false");
    // What a sanitizer or another processor would have is not what is counted.
    output_of(
        cargo.env("CARGO_TARGET_DIR", &folder).env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS"),
    );
    folder.join("release/lookaside-counts")
}

/// Whether valgrind is there; if not, the test is told to have been skipped.
pub(crate) fn has_valgrind() -> bool {
    let has = Command::new("valgrind").arg("--version").output().is_ok();
    if !has {
        outside::skip("valgrind: install Debian's package valgrind");
    }
    has
}
