//! What went wrong once.

use std::fs;
use std::path::Path;

/// Commands of the README and of the documentation ended with "no workload data" in a fresh clone: the default of
/// several was a file that is not part of the repository, in a folder beside it that nobody else has. The figures are
/// built in now, and traces are generated; no source, definition or script may name such a folder again.
#[test]
fn no_default_lies_beside_the_clone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // In two parts, or this file would name it.
    let folder = concat!("../", "shared");
    let mut looked_at = 0;
    let mut folders: Vec<_> = [
        "crates",
        "server",
        "research",
        "docs",
        "ci/counts",
        "ci/outside",
        "fuzz/fuzz_targets",
        "fuzz/properties",
    ]
    .map(|name| root.join(name))
    .into();
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(next) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                looked_at += 1;
                assert!(!text.contains(folder), "{} names {folder}", path.display());
            }
        }
    }
    for name in ["README.md", "CONTRIBUTING.md"] {
        assert!(!fs::read_to_string(root.join(name)).unwrap().contains(folder), "{name} names {folder}");
    }
    assert!(looked_at > 300, "{looked_at} files");
}
