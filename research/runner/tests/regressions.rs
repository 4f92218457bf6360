//! What went wrong with the command's programs once, each with its story.

use std::io::{BufRead, BufReader, PipeReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::command::{LOOKASIDE, is_refused, lab, repository, said_by};

fn words(said: &[u8]) -> String {
    String::from_utf8_lossy(said).into_owned()
}

#[track_caller]
fn succeeds_in(folder: &Path, arguments: &[&str]) -> String {
    said_by(lab(arguments).current_dir(folder))
}

#[track_caller]
fn fails_in(folder: &Path, arguments: &[&str], reason: &str) {
    is_refused(lab(arguments).current_dir(folder), reason);
}

/// Results that could not be kept, because the disk was full, were not shown either: what had been measured for hours
/// was lost. And the file of the same day was empty by then.
#[test]
fn what_could_not_be_kept_was_not_shown() {
    for arguments in [&["memc3-table1"][..], &["--json", "memc3-table1"]] {
        let asked = [&["run", "--quick", "--out", "/proc/nowhere"], arguments].concat();
        let output = lab(&asked).output().expect("it starts");
        let (shown, said) = (words(&output.stdout), words(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("lookaside-lab: /proc/nowhere/"), "{said}");
        assert!(shown.contains("seven-way, bytes per key"), "{shown}");
    }
}

/// `load --value-sizes 2000000` sent values of 1,000,000 bytes and `--key-size 251` keys of 250, and `replay` stated
/// 191 MiB for 200 values of 5 MB: sizes were cut without a word. What is asked for is sent, or refused.
#[test]
fn sizes_were_cut_without_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let server = format!("{LOOKASIDE} serve -t 1 -m 64 -I 8m");
    let load = ["load", "--spawn", &server, "--preload", "--verify", "--warm-up", "0s", "--json"];
    let sizes = ["--keys", "3", "--value-sizes", "2000000", "--key-size", "250", "--operations", "30"];
    let report: Value =
        serde_json::from_str(&succeeds_in(folder.path(), &[&load[..], &sizes].concat())).unwrap();
    let received = report["report"]["received_bytes"].as_u64().unwrap();
    assert_eq!((&report["filled"]["stored"], &report["report"]["hits"]), (&3.into(), &30.into()), "{report}");
    assert!((30 * 2_000_250..30 * 2_000_300).contains(&received), "{report}");
    let cut = [&load[..], &sizes, &["--cut-values-at", "1000"]].concat();
    let report: Value = serde_json::from_str(&succeeds_in(folder.path(), &cut)).unwrap();
    assert!(report["report"]["received_bytes"].as_u64().unwrap() < 30 * 1300, "{report}");

    for (sizes, reason) in [
        (&["--key-size", "251"][..], "at most 250 bytes, not 251"),
        (&["--key-size", "10-251"], "at most 250 bytes"),
        (&["--key-size", "3", "--keys", "1001"], "ask for 4 bytes"),
        (&["--value-sizes", "1073741825"], "at most 1073741824 bytes"),
        (&["--value-sizes", "600000", "--value-scale", "2000"], "at most 1073741824 bytes"),
        (&["--value-sizes", "1000000000", "--depth", "2"], "values at once"),
    ] {
        fails_in(folder.path(), &[&load[..], sizes].concat(), reason);
    }

    // The server takes 1 MB by default: larger values are refused by it, and that is told.
    let keys = folder.path().join("keys.txt");
    std::fs::write(&keys, "a\nb\na\nc\n").unwrap();
    let replay = ["replay", keys.to_str().unwrap(), "--value-sizes", "5000000", "--value-scale", "1"];
    let server = format!("{LOOKASIDE} serve -t 1 -m 64");
    let said = succeeds_in(folder.path(), &[&replay[..], &["--spawn", &server]].concat());
    assert!(said.contains("4 requests, 3 keys; all items take 14 MiB"), "{said}");
    let json = succeeds_in(folder.path(), &[&replay[..], &["--spawn", &server, "--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["replays"][0]["refused"], &json["replays"][0]["hits"]),
        (&4.into(), &0.into()),
        "{json}"
    );
    fails_in(folder.path(), &[&replay[..], &["--spawn", &server, "--depth", "0"]].concat(), "--depth");
    fails_in(folder.path(), &[&replay[..], &["--spawn", &server, "--runs", "0"]].concat(), "--runs");
}

/// `replay` took recorded traces only, and `advise` what could be read twice. Both read a list of keys, compressed or
/// not, from a file or from standard input; what a server cannot be asked for is refused with its place.
#[test]
fn a_list_of_keys_could_not_be_replayed_and_nothing_be_read_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..3000).map(|at| format!("user:{}\n", at % 50)).collect();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    std::fs::write(folder.path().join("keys.trace"), &gzip).unwrap();
    let server = format!("{LOOKASIDE} serve -t 1 -m 64");
    let replay =
        |trace| ["replay", trace, "--value-sizes", "100", "--spawn", &server, "--json"].map(str::to_owned);
    let advise = |trace| {
        ["advise", trace, "--index-cost", "100", "--sizes", "4K", "--table", "slb", "--json"]
            .map(str::to_owned)
    };
    let read = |arguments: &[String], input: &[u8]| -> Value {
        let mut command = Command::new(LOOKASIDE);
        command.current_dir(folder.path()).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    for (trace, input) in [("keys.trace", &b""[..]), ("-", &gzip), ("-", text.as_bytes())] {
        let replayed = read(&replay(trace), input);
        assert_eq!(replayed["replays"][0]["hits"], 2950, "{replayed}");
        assert_eq!(read(&advise(trace), input)["working_set"]["keys"], 50);
    }
    std::fs::write(folder.path().join("blanks.txt"), "a\nb c\n").unwrap();
    let blanks = ["replay", "blanks.txt", "--value-sizes", "9", "--spawn", &server];
    fails_in(folder.path(), &blanks, "request 2 of the trace");
    std::fs::write(folder.path().join("columns.csv"), "id,n\na,1\nb\n").unwrap();
    let by_column = ["replay", "columns.csv", "--column", "id", "--value-sizes", "9", "--spawn", &server];
    fails_in(folder.path(), &by_column, "line 3");
}

/// A server that accepts connections and answers each get until it has answered `most`; then it says nothing more, and
/// keeps the connections open.
fn falls_silent_after(most: u64) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, answered) = (stream.unwrap(), answered.clone());
            std::thread::spawn(move || {
                let mut requests = BufReader::new(stream.try_clone().unwrap()).split(b'\n');
                while let Some(Ok(_)) = requests.next() {
                    if answered.fetch_add(1, Ordering::Relaxed) < most {
                        (&stream).write_all(b"END\r\n").unwrap();
                    }
                }
            });
        }
    });
    address
}

/// `load --duration 3s` went on for ever when the server stopped answering: at a fixed rate it waited for its last
/// replies without an end. It ends with an error after a grace that is stated.
#[test]
fn a_load_never_ended_when_the_server_fell_silent() {
    for (answers, further) in [
        (0, &[][..]),
        // One of eight clients has its answer.
        (1, &[]),
        (0, &["--rate", "500"]),
        (0, &["--rate", "2"]),
        (20, &["--operations", "1000"]),
        (0, &["--preload"]),
    ] {
        let server = falls_silent_after(answers).to_string();
        let mut command = Command::new(LOOKASIDE);
        command.args(["load", "--server", &server, "--warm-up", "0s", "--patience", "300ms"]).args(further);
        if !further.contains(&"--operations") {
            command.args(["--duration", "400ms"]);
        }
        let child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let id = child.id();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
        let Ok(output) = end.recv_timeout(Duration::from_secs(60)) else {
            Command::new("kill").arg(id.to_string()).status().unwrap();
            panic!("{answers} answers, {further:?}: it goes on");
        };
        let said = words(&output.stderr);
        assert!(
            !output.status.success() && said.contains("has not answered within 300ms"),
            "{answers} answers, {further:?}: {said}"
        );
    }
    let help = said_by(&mut lab(&["load", "--help"]));
    assert!(help.contains("--patience") && help.contains("[default: 10s]"), "{help}");
}

/// Commands that write, each in a way of its own. The first of them need nothing.
fn commands_that_write(keys: &str) -> Vec<Vec<&str>> {
    let run = ["sim", "run", "--keys", "2000", "--warm-up", "2000", "--windows", "2", "--window", "100"];
    let advise = ["advise", keys, "--index-cost", "100", "--sizes", "4K", "--table", "slb"];
    let load = ["load", "--spawn", SERVER, "--keys", "10", "--operations", "10", "--warm-up", "0s"];
    vec![
        vec!["--help"],
        vec!["--version"],
        vec!["load", "--help"],
        vec!["run", "--list"],
        vec!["report", "memc3-table3"],
        vec!["report", "memc3-table3", "--json"],
        vec!["report", "stlt-figure13"],
        vec!["report", "stlt-figure13", "--json"],
        vec!["run", "--quick", "memc3-table2"],
        vec!["run", "--quick", "memc3-table2", "--json"],
        run.to_vec(),
        [&run[..], &["--json"]].concat(),
        advise.to_vec(),
        [&advise[..], &["--json"]].concat(),
        load.to_vec(),
        [&load[..], &["--json"]].concat(),
    ]
}

const SERVER: &str = concat!(env!("CARGO_BIN_EXE_lookaside-lab"), " serve -t 1 -m 64");

fn keys_in(folder: &Path) -> String {
    let path = folder.join("keys.txt");
    std::fs::write(&path, (0..300).map(|at| format!("k{}\n", at % 20)).collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Output to a full disk was lost, and the exit status said that all was well: `report > report.txt` left nothing, or a
/// half.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_was_not_noticed() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in commands_that_write(&keys_in(folder.path())) {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = lab(&arguments).stdout(full).output().unwrap();
        let said = words(&output.stderr);
        assert!(
            output.status.code() == Some(1) && said.contains("standard output: No space left"),
            "{arguments:?}: {:?}, {said}",
            output.status
        );
    }
}

/// A reader that has seen enough ends the command quietly, as it ends other Unix tools: without words, and with their
/// status. What would be a wrong status ended in silence as well, and an experiment went on for nobody.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_pipe_was_not_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let into_closed = |arguments: &[&str]| -> (ExitStatus, String) {
        let (reader, writer): (PipeReader, _) = std::io::pipe().unwrap();
        drop(reader);
        let output = lab(arguments).stdout(writer).output().unwrap();
        (output.status, words(&output.stderr))
    };
    for arguments in commands_that_write(&keys_in(folder.path())) {
        let (status, said) = into_closed(&arguments);
        assert!(status.code() == Some(141) && said.is_empty(), "{arguments:?}: {status:?}, {said}");
    }
}

/// Outside of the repository `sim run` ended with "no machine 'gainestown'" and `run` with "no folder 'experiments'".
/// What the program needs is part of it; a folder that is given comes before it, and one of that name that is somebody
/// else's does not count.
#[test]
fn experiments_needed_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::create_dir_all(here.join("research/experiments")).unwrap();
    std::fs::write(here.join("research/experiments/mine.toml"), "learning_rate = 0.1").unwrap();
    let small = ["sim", "run", "--keys", "2000", "--warm-up", "2000", "--windows", "2", "--window", "100"];
    assert!(succeeds_in(here, &small).contains("cycles"));
    assert!(succeeds_in(here, &[&small[..], &["--machine", "server"]].concat()).contains("cycles"));
    assert_eq!(succeeds_in(here, &["run", "--list"]), succeeds_in(&repository(), &["run", "--list"]));
    assert!(succeeds_in(here, &["run", "--list"]).contains("stlt-figure13"));
    // With the paper's numbers, and started anew for other pages of the heap.
    let out = here.join("out");
    let out = out.to_str().unwrap();
    let ran = succeeds_in(here, &["run", "--quick", "--out", out, "memc3-table2"]);
    assert!(ran.contains("13.33"), "{ran}");
    let anew = succeeds_in(here, &["run", "--quick", "--malloc", "huge", "memc3-table2"]);
    assert!(anew.contains("13.33") && anew.contains("hugetlb=1"), "{anew}");
    assert!(succeeds_in(here, &["report", "--results", out]).contains("memc3-table2: "));
    let results = here.join("results");
    fails_in(here, &["report"], &format!("no results in {}", results.display()));
    fails_in(here, &["run", "absent"], "memc3-table2");

    let given = here.join("given");
    std::fs::create_dir_all(given.join("sim")).unwrap();
    std::fs::copy(
        repository().join("research/experiments/memc3-table3.toml"),
        given.join("memc3-table3.toml"),
    )
    .unwrap();
    let given = given.to_str().unwrap();
    let list = succeeds_in(&repository(), &["run", "--list", "--definitions", given]);
    assert!(list.lines().count() == 1 && list.contains("memc3-table3"), "{list}");
    assert_eq!(succeeds_in(here, &["run", "--list", "--definitions", given]), list);
}

/// The page of all results had 10 MB with 1,028 pictures, and took a browser seconds. Of several experiments it is an
/// overview, from which each is reached, and no page is large.
#[test]
fn one_page_had_a_thousand_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all of them.html");
    succeeds_in(&repository(), &["report", "--html", path.to_str().unwrap()]);
    let overview = std::fs::read_to_string(&path).unwrap();
    assert!(overview.len() < 100_000 && !overview.contains("<svg"), "{} bytes", overview.len());
    let links: Vec<_> = overview.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() > 60, "{} experiments", links.len());
    for link in links {
        let page = std::fs::read_to_string(folder.path().join(link.replace("%20", " "))).unwrap();
        assert!(
            page.len() < 1_000_000 && page.matches("<figure>").count() <= 80,
            "{link}: {} bytes",
            page.len()
        );
        assert!(page.contains("<section id="), "{link}");
    }
}

/// Results of `--quick`, of a few thousand keys, were labelled "10 M keys", and "2 GB" of a cache of a megabyte. They
/// say that they are quick, and what was run.
#[test]
fn quick_results_were_labelled_with_full_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let ran = succeeds_in(&repository(), &["run", "--quick", "--out", out, "--json", "slb-warm-up"]);
    let page = folder.path().join("quick.html");
    let report = ["report", "--results", out, "slb-warm-up", "--html", page.to_str().unwrap()];
    let text = succeeds_in(&repository(), &report);
    let json = succeeds_in(&repository(), &[&report[..], &["--json"]].concat());
    let page = std::fs::read_to_string(page).unwrap();
    for json in [&ran, &json] {
        let json: Value = serde_json::from_str(json).unwrap();
        assert!(json[0]["title"].as_str().unwrap().ends_with("a quick run"), "{json}");
        let points = json[0]["rows"].as_array().unwrap().iter().map(|row| row["point"].as_str().unwrap());
        let points: Vec<_> = points.filter(|point| !point.is_empty()).collect();
        assert!(!points.is_empty() && points.iter().all(|point| point.contains("range ")), "{points:?}");
    }
    let full = ["10 M keys, 64 MB", "10 M keys, 16 MB", "1 M keys, 4 MB"];
    for (words, what) in [(&ran, "JSON"), (&text, "text"), (&page, "page")] {
        assert!(words.contains("quick run") && words.contains("range = 1000"), "{what}: {words}");
        for name in full {
            assert!(!words.contains(name), "{what} has {name}: {words}");
        }
    }
}
