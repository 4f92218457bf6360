//! `lookaside-lab advise` as a user runs it, on small traces with known answers.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::{is_refused, json, lab, output, said_by};

fn advise(arguments: &[&str]) -> Command {
    lab(&[&["advise"], arguments].concat())
}

/// As JSON.
fn advised(arguments: &[&str]) -> Value {
    json(&mut advise(&[arguments, &["--json"]].concat()))
}

/// 200 keys, over and over.
fn loop_of_keys(path: &Path) {
    let lines: Vec<_> = (0..20_000).map(|at| format!("user:{}\n", at % 200)).collect();
    std::fs::write(path, lines.concat()).unwrap();
}

#[test]
fn a_loop_of_keys_is_answered_by_a_table_that_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.txt");
    loop_of_keys(&path);
    let path = path.to_str().unwrap();
    let advice = advised(&[path, "--sizes", "1K,16K", "--table", "slb", "--index-cost", "100000,0.01"]);
    assert_eq!(advice["working_set"]["keys"], 200);
    assert_eq!(advice["working_set"]["lookups"], 20_000);
    let offers = advice["offers"].as_array().unwrap();
    // 16 lines of seven slots: Belady's cache of 112 entries answers a little more than half of a loop of 200.
    assert_eq!((&offers[0]["entries"], &offers[1]["entries"]), (&112.into(), &1792.into()));
    let ideal = offers[0]["ideal_hit_ratio"].as_f64().unwrap();
    assert!((0.55..0.565).contains(&ideal), "{ideal}");
    assert!(offers[0]["hit_ratio"].as_f64().unwrap() < ideal);
    assert_eq!(offers[1]["hit_ratio"], 1.0);
    assert_eq!(advice["verdicts"][0]["use"]["offer"], 1);
    assert!(advice["verdicts"][1]["leave_out"]["gain"].as_f64().unwrap() < 1.0);

    let (succeeded, text, said) = output(&mut advise(&[path]));
    for part in
        ["200 keys", "BTreeMap alone", "HashMap alone", "break-even", "Before BTreeMap, ", "slb-paper"]
    {
        assert!(succeeded && text.contains(part), "{part} is not in\n{text}");
    }
    assert!(said.is_empty(), "no progress bar where there is no terminal");
}

#[test]
fn a_recorded_trace_is_read_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.trace");
    let keys = (0..5000i32).map(|at| at * 7919 % 300);
    std::fs::write(&path, keys.flat_map(i32::to_be_bytes).collect::<Vec<u8>>()).unwrap();
    let path = path.to_str().unwrap();
    let advice = advised(&[
        path,
        "--format",
        "be32",
        "--most",
        "4000",
        "--index-cost",
        "200",
        "--table",
        "slb",
        "--warm-up",
        "0",
    ]);
    assert_eq!(
        (&advice["working_set"]["keys"], &advice["working_set"]["lookups"]),
        (&300.into(), &4000.into())
    );
    let largest = advice["offers"].as_array().unwrap().last().unwrap();
    // From empty: each key misses once.
    assert_eq!(largest["ideal_hit_ratio"], 3700.0 / 4000.0);
}

#[test]
fn what_is_wrong_is_said_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.csv");
    std::fs::write(&path, "time,key\n1,a\n2\n").unwrap();
    let path = path.to_str().unwrap();
    let lines = folder.path().join("keys.txt");
    loop_of_keys(&lines);
    let lines = lines.to_str().unwrap();
    for (arguments, reason) in [
        (&["no-such-trace"][..], "there is no trace 'no-such-trace'"),
        (&[path], "line 1: it has 2 columns"),
        (&[path, "--column", "user"], "it has time, key"),
        (&[path, "--column", "key"], "line 3: it has 1 columns"),
        (&[lines, "--sizes", "1"], "at least 64"),
        (&[lines, "--sizes", "many"], "64K"),
        (&[lines, "--warm-up", "1"], "below 1"),
        (&[lines, "--index-cost", "0"], "more than 0"),
        (&[lines, "--index", "list"], "btree"),
        (&[], "TRACE"),
    ] {
        is_refused(&mut advise(arguments), reason);
    }
    let help = said_by(&mut advise(&["--help"]));
    for part in ["break-even", "Examples:", "--index-cost", "Leave the table out"] {
        assert!(help.contains(part), "{part} is not in\n{help}");
    }
}
