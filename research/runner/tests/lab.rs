//! `lookaside-lab` as a user runs it: against the command itself as the server, and memcached where it is installed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{LOOKASIDE, is_refused, json, lab, output, said_by};

/// The words of a command line, and further ones.
fn words<'a>(line: &'a str, further: &[&'a str]) -> Vec<&'a str> {
    line.split(' ').chain(further.iter().copied()).collect()
}

fn our_server() -> String {
    format!("{LOOKASIDE} serve -t 1 -m 64")
}

#[test]
fn load_fills_drives_and_checks() {
    let server = our_server();
    let load = "load --preload --keys 1000 --operations 20000 --get-share 0.9 --depth 8 --threads 2 --verify";
    let result = json(&mut lab(&words(load, &["--warm-up", "50ms", "--json", "--spawn", &server])));
    assert_eq!(result["filled"]["stored"], 1000);
    let report = &result["report"];
    assert_eq!(report["operations"], 20_000);
    assert_eq!(report["gets"].as_u64().unwrap() + report["sets"].as_u64().unwrap(), 20_000);
    assert_eq!(report["hit_ratio"], 1.0);
    assert!(report["server_cpu"].as_f64().unwrap() > 0.0 && report["latency"]["p99"].as_f64().unwrap() > 0.0);
    // In words as well.
    let load = ["load", "--spawn", &server, "--keys", "10", "--duration", "100ms", "--warm-up", "0s"];
    let text = said_by(&mut lab(&load));
    for part in ["operations in", "0 hits", "p99.9", "client / server"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn load_refuses_what_makes_no_sense() {
    for (arguments, reason) in [
        (&["load", "--server", "127.0.0.1:1"][..], "cannot connect"),
        (&["load", "--get-share", "2"], "from 0 to 1"),
        (&["load", "--value-sizes", "many"], "many"),
        (&["load", "--spawn", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["load", "--distribution", "latest"], "invalid value"),
        (&["load", "--duration", "soon"], "duration"),
        (&["replay", "--memory-share", "1/0", "--spawn", "x"], "1/8"),
        (&["replay", "no-such-trace", "--value-sizes", "10"], "no-such-trace"),
    ] {
        is_refused(&mut lab(arguments), reason);
    }
}

/// The default of `lab replay`, and sizes that the help names, ended in a fresh clone with "no workload data at" a
/// folder that is not part of it. Published figures are built in, and a trace of a recorded one's shape is generated.
#[test]
fn defaults_need_no_data_that_is_not_in_the_clone() {
    let nowhere = tempfile::tempdir().unwrap();
    let server = format!("{LOOKASIDE} serve -t 1 -m 64");
    let commands = [
        words("replay --most 2000", &["--spawn", &server]),
        words(
            "load --keys 500 --value-sizes kvcache_reg --operations 1000 --warm-up 10ms",
            &["--spawn", &server],
        ),
        words("advise generated/web07 --most 5000 --index-cost 100 --sizes 4K", &[]),
    ];
    for arguments in commands {
        said_by(lab(&arguments).current_dir(nowhere.path()).env_remove("LOOKASIDE_DATA"));
    }
    // What is asked for by name is not replaced.
    let mut command = lab(&["replay", "traces/web07.trace.xz", "--spawn", &server]);
    is_refused(command.current_dir(nowhere.path()).env_remove("LOOKASIDE_DATA"), "set LOOKASIDE_DATA");
}

#[test]
fn replay_plays_a_trace_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.trace");
    let keys = (0..20_000i32).map(|at| at * 7919 % 3000);
    std::fs::write(&path, keys.flat_map(i32::to_be_bytes).collect::<Vec<u8>>()).unwrap();
    let server = format!("{LOOKASIDE} serve -t 1");
    let replay = "replay --format be32 --value-sizes 10000 --value-scale 1 --memory-share 1/2,2 --runs 2";
    let arguments = words(replay, &["--spawn", &server, path.to_str().unwrap()]);
    let result = json(&mut lab(&[&arguments[..], &["--json"]].concat()));
    let replays = result["replays"].as_array().unwrap();
    assert_eq!(replays.len(), 4);
    for (replay, (memory, is_small)) in replays.iter().zip([(15, true), (58, false), (15, true), (58, false)])
    {
        assert_eq!((replay["requests"].as_u64(), replay["mebibytes"].as_u64()), (Some(20_000), Some(memory)));
        assert_eq!(replay["evictions"].as_u64().unwrap() > 0, is_small, "{replay}");
        assert_eq!(replay["hits"].as_u64().unwrap() < 17_000, is_small, "{replay}");
    }
    let text = said_by(&mut lab(&arguments));
    assert!(text.contains("evictions") && text.contains("was checked"), "{text}");
}

/// There were three programs for experiments, and each refused the others': what runs one was to be read where all are
/// listed.
#[test]
fn one_command_runs_experiments_of_every_kind() {
    let list = said_by(&mut lab(&["run", "--list"]));
    let listed = |name: &str| list.lines().any(|line| line.split(' ').next() == Some(name));
    for folder in ["", "peers", "sim"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments").join(folder);
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_definition = path.extension().is_some_and(|extension| extension == "toml");
            assert_eq!(listed(name), is_definition, "{name} in\n{list}");
        }
    }
    // The laboratory's, one beside foreign engines, a simulation; by name, and by path.
    let names = ["memc3-table1", "peers-index-small", "research/experiments/sim/stlt-table1.toml"];
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let (page, out) = (page.to_str().unwrap(), folder.path().to_str().unwrap());
    let reports =
        json(&mut lab(&[&["run", "--quick", "--json", "--out", out, "--html", page], &names[..]].concat()));
    let ran: Vec<_> = reports.as_array().unwrap().iter().map(|report| &report["experiment"]).collect();
    assert_eq!(ran, ["memc3-table1", "peers-index-small", "stlt-table1"]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(ran.iter().all(|name| page.contains(&format!("page-pages/{}.html", name.as_str().unwrap()))));
    // Which foreign engine is missing is said, and the others are measured.
    let skipped = reports[1]["skipped"].to_string();
    let rows = reports[1]["rows"].to_string();
    assert!(rows.contains("libcuckoo") || skipped.contains("libcuckoo-dev is not installed"), "{skipped}");
    assert!(rows.contains("papaya"), "{rows}");
    // What was started anew left its results in a file, and without one they are on no page.
    let lost = folder.path().join("lost.html");
    let lost = ["run", "--quick", "--html", lost.to_str().unwrap(), "peers-index-small"];
    let (_, _, said) = output(&mut lab(&lost));
    assert!(said.contains("peers-index-small: not on the page: give --out"), "{said}");
    for part in ["no experiment 'absent'", "memc3-table1", "peers-index-small", "stlt-table1"] {
        is_refused(&mut lab(&["run", "absent"]), part);
    }
}

/// Which pages the allocator takes is said when a program starts: a definition that asks for huge ones has the command
/// started anew, by whatever it was told else. What the definitions do not agree about, one command runs all the same.
#[test]
fn a_definition_chooses_the_pages_of_the_heap() {
    let reports = json(&mut lab(&["run", "--quick", "--json", "slb-bars", "slb-warm-up"]));
    let heap = |report: &Value| report["provenance"]["allocator"].as_str().unwrap().to_owned();
    assert_eq!(reports.as_array().unwrap().len(), 2);
    assert_eq!(reports[0]["experiment"], "slb-bars");
    assert!(heap(&reports[0]).contains("glibc.malloc.hugetlb=1"), "{reports}");
    assert!(reports[0]["quick"].as_bool().unwrap() && !reports[0]["rows"].as_array().unwrap().is_empty());
    assert_eq!(
        (reports[1]["experiment"].as_str(), heap(&reports[1]).as_str()),
        (Some("slb-warm-up"), "system")
    );
    let plain = json(&mut lab(&["run", "--quick", "--json", "--malloc", "plain", "slb-bars"]));
    assert!(!heap(&plain[0]).contains("hugetlb") && heap(&plain[0]).contains("GLIBC_TUNABLES"), "{plain}");
    let kept = tempfile::tempdir().unwrap();
    is_refused(&mut lab(&["run", "--quick", "--runs", "1", "slb-bars"]), "cannot be used with");
    let (_, text, _) =
        output(&mut lab(&["run", "--quick", "--out", kept.path().to_str().unwrap(), "slb-bars"]));
    assert!(text.contains("glibc.malloc.hugetlb=1"));
    assert_eq!(std::fs::read_dir(kept.path()).unwrap().count(), 1);
    is_refused(&mut lab(&["run", "--quick", "--malloc", "large", "slb-bars"]), "there are 'huge'");
}

/// Whoever ends the command that he started ends the one that was started anew for it.
#[cfg(target_os = "linux")]
#[test]
fn who_was_started_anew_ends_with_who_started_it() {
    let mut first = lab(&["run", "--malloc", "huge", "--out", "/nonexistent", "slb-bars"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    const SOON: Duration = Duration::from_millis(5);
    let children = format!("/proc/{0}/task/{0}/children", first.id());
    // By then it fills an index, which takes it seconds.
    let fills = |second: u32| {
        let pages = read(format!("/proc/{second}/statm"));
        pages.split(' ').nth(1).and_then(|resident| resident.parse::<u64>().ok()) > Some(16_384)
    };
    let second = loop {
        assert_eq!(first.try_wait().unwrap(), None, "it ran to its end");
        match read(children.clone()).trim().parse() {
            Ok(second) if fills(second) => break second,
            _ => thread::sleep(SOON),
        }
    };
    first.kill().unwrap();
    first.wait().unwrap();
    // By itself it would go on for minutes.
    let ended = Instant::now();
    while fills(second) {
        if ended.elapsed() > Duration::from_secs(30) {
            Command::new("kill").arg(second.to_string()).status().unwrap();
            panic!("it goes on");
        }
        thread::sleep(SOON);
    }
}
