//! The examples do what they say: each checks its own answers, and is run here with few keys.
//!
//! `cargo test` builds them where it is not told to build only some of the tests.

use std::path::PathBuf;
use std::process::Command;

/// An example that was built with this test.
fn example(name: &str) -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples").join(name);
    if !path.exists() {
        outside::say(format!("{name} is not built: cargo test without --test or --lib builds it"));
        return None;
    }
    Some(path)
}

/// What it says, where it ends well.
fn said(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(example(name)?).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaint}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_sorted_store_is_read() {
    if let Some(said) = said("sorted_store", &["10000"]) {
        assert!(said.contains("of 10000 records"), "{said}");
    }
}

#[test]
fn a_frozen_tree_is_read() {
    if let Some(said) = said("frozen_tree", &["10000"]) {
        assert!(said.contains("two threads"), "{said}");
    }
}

#[test]
fn orders_are_joined() {
    if let Some(said) = said("batched_join", &["5000"]) {
        assert!(said.contains("in batches"), "{said}");
    }
}

#[test]
fn pages_are_made_once() {
    if let Some(said) = said("web_cache", &[]) {
        assert!(said.contains("100 pages are kept; the table answered"), "{said}");
        assert!(!said.contains("answered 0 lookups"), "{said}");
    }
}

#[test]
fn tasks_load_each_page_once() {
    if let Some(said) = said("async_handler", &[]) {
        for loaded in ["none kept: 100 loaded", "all kept: 0 loaded", "one forgotten: 1 loaded"] {
            assert!(said.contains(loaded), "{said}");
        }
    }
}
