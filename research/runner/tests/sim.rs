//! `lookaside-lab sim`, as people and scripts run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use sim_lab::guest::{Container, Hash, Variant};

/// Runs `lookaside-lab` in the repository.
fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lookaside-lab"));
    command.args(arguments).current_dir(repository());
    command
}

/// Runs `lookaside-lab sim` there.
fn sim(arguments: &[&str]) -> Command {
    lab(&[&["sim"], arguments].concat())
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn output(command: &mut Command) -> (bool, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.success(), text(stdout), text(stderr))
}

fn said_by(command: &mut Command) -> String {
    let (succeeded, said, complained) = output(command);
    assert!(succeeded, "{command:?}: {complained}");
    said
}

fn succeeds(arguments: &[&str]) -> String {
    said_by(&mut sim(arguments))
}

const TINY: [&str; 8] = ["--keys", "2000", "--warm-up", "4000", "--windows", "2", "--window", "300"];

fn run(further: &[&str]) -> String {
    succeeds(&[&["run"], &TINY[..], further].concat())
}

#[test]
fn a_run_says_what_it_took_and_repeats_exactly() {
    let text = run(&["--container", "map", "--variant", "slb"]);
    for part in ["map slb, 2000 keys", "cycles", "page walks", "table misses, %", "±", "translation"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let json = || -> Value { serde_json::from_str(&run(&["--json"])).expect("JSON") };
    let (first, second) = (json(), json());
    assert_eq!(first["measurement"], second["measurement"]);
    assert_eq!(first["measurement"]["windows"].as_array().map(Vec::len), Some(2));
    assert!(first["measurement"]["windows"][0]["memory"]["stlt"]["hits"].as_u64() > Some(0));
}

#[test]
fn a_machine_is_changed_by_its_fields() {
    let misses = |change: &str| {
        let size = ["run", "--keys", "20000", "--warm-up", "20000", "--windows", "1", "--window", "500"];
        let text = succeeds(&[&size[..], &["--json", "--variant", "alone", "--change", change]].concat());
        let json: Value = serde_json::from_str(&text).expect("JSON");
        json["measurement"]["windows"][0]["memory"]["data_tlb"]["misses"].as_u64().expect("a number")
    };
    assert!(misses("tlb.second.latency = 9") > 10 * misses("paging.pages = '2MiB'"));
    for (change, reason) in
        [("core.windows = 8", "windows"), ("core.window = 0", "1 to 65536"), ("core", "TOML")]
    {
        let (succeeded, _, said) = output(&mut sim(&["run", "--keys", "2000", "--change", change]));
        assert!(!succeeded && said.contains(reason), "{change}: {said}");
    }
}

#[test]
fn what_is_unknown_is_refused() {
    for (arguments, reason) in [
        (&["run", "--container", "trie"][..], "unknown variant `trie`"),
        (
            &["run", "--machine", "pentium"],
            "current_server, gainestown, sandy_bridge, server, stlt_paper; or",
        ),
        (&["run", "--machine", "pentium.toml"], "pentium.toml"),
        (&["run", "--warm-up", "18446744073709551615"], "2^64 requests or more"),
        (&["run", "--window", "18446744073709551615"], "2^64 requests or more"),
        (&["run", "--window", "0"], "nothing would be measured"),
        (&["run", "--table-bytes", "3000"], "power of two"),
        (&["run", "--ways", "3"], "there are 1, 2, 4 and 8"),
        (&["figure", "2"], "no experiment 'stlt-figure2'"),
        (&["table", "IX"], "there are I and V"),
    ] {
        let (succeeded, _, said) = output(&mut sim(arguments));
        assert!(!succeeded && said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn the_help_names_all_that_is_accepted() {
    let help = succeeds(&["run", "--help"]);
    let words: Vec<&str> =
        help.split(|char: char| !(char.is_alphanumeric() || "_-".contains(char))).collect();
    let names = Container::ALL.map(Container::name).into_iter().chain(Variant::ALL.map(Variant::name));
    let machines = ["gainestown", "server", "sandy_bridge", "stlt_paper", "current_server"];
    let distributions = ["zipf", "plain", "latest", "uniform"];
    for name in names.chain(machines).chain(distributions) {
        assert!(words.contains(&name), "{name} is not in\n{help}");
    }
    for hash in Hash::ALL {
        let name = serde_json::to_value(hash).expect("a name");
        assert!(words.contains(&name.as_str().expect("text")), "{name} is not in\n{help}");
    }
    for name in machines {
        run(&["--machine", name]);
    }
}

/// A folder with machines and some definitions, in which the commands find no others.
fn with_definitions(definitions: &[(&str, String)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (profiles, experiments) =
        (folder.path().join("research/profiles"), folder.path().join("research/experiments/sim"));
    std::fs::create_dir_all(&profiles).expect("made");
    std::fs::create_dir_all(&experiments).expect("made");
    // By this a folder of definitions is known.
    std::fs::create_dir(folder.path().join("research/experiments/papers")).expect("made");
    std::fs::copy(repository().join("research/profiles/gainestown.toml"), profiles.join("gainestown.toml"))
        .expect("copied");
    for (name, text) in definitions {
        let text = format!("name = '{name}'\ntitle = 'Small'\nabout = 'Small.'\nruns = 1\n{text}");
        std::fs::write(experiments.join(name).with_extension("toml"), text).expect("written");
    }
    folder
}

/// A study of one program, which `further` says more of.
fn study(variants: &str, rows: &str, further: &str) -> String {
    format!(
        "kind = 'simulation'\n[parameters]\nkeys = 2_000\n{further}\nvariants = {variants}\n\
         distributions = ['zipf']\nvalue_bytes = [64]\nover = {{ variant = 'alone' }}\n\
         tables = [{{ name = '', stlt_bytes = 65_536, slb_bytes = 65_536 }}]\n\
         machines = [{{ name = '', profile = 'gainestown' }}]\n\
         lengths = {{ warm_up = 4_000, settle = 50, windows = 1, window = 300 }}\n\
         configuration = ['variant']\nmetrics = ['cycles']\n\
         [rows]\nconfigurations = {rows}\nmetrics = ['cycles']\n"
    )
}

/// The files of results below a folder, by name without the day.
fn results(folder: &Path) -> Vec<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(folder).flat_map(|machine| entries(&machine.path()));
    let mut names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy()["2026-11-24-".len()..].to_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_not_measured_whole_is_not_kept_as_the_newest_result() {
    let folder = with_definitions(&[
        ("compiled", study("['stlt']", "['STLT']", "guests = ['qemu']\ncontainers = ['map']")),
        // A server is asked for one key at a time.
        ("half", study("['stlt', 'stlt-batches']", "['STLT', 'STLT in batches']", "containers = ['redis']")),
        ("whole", study("['stlt']", "['STLT']", "containers = ['map']")),
    ]);
    let (kept, out) = (folder.path().join("research/results"), folder.path().join("out"));
    let without_qemu = |arguments: &[&str]| {
        let mut command = lab(arguments);
        command.current_dir(folder.path()).env("LOOKASIDE_QEMU", "/nowhere/qemu-x86_64");
        let (succeeded, _, said) = output(&mut command);
        (succeeded, said)
    };
    // Its guests are named in the definition, and nothing is run.
    let (succeeded, said) = without_qemu(&["run", "compiled"]);
    assert!(!succeeded && said.contains("qemu-user"), "{said}");
    assert!(!folder.path().join("research/simulations").exists() && results(&kept).is_empty(), "{said}");
    let place = out.to_str().expect("text");
    let (succeeded, said) = without_qemu(&["run", "half"]);
    assert!(!succeeded && said.contains("half: not kept, not all of it was measured"), "{said}");
    assert!(said.contains("give --out"), "{said}");
    assert_eq!(results(&kept), [""; 0]);
    // Who says where may have it all the same.
    let (succeeded, said) = without_qemu(&["run", "half", "--out", place]);
    assert!(!succeeded && said.contains("kept in"), "{said}");
    assert_eq!(results(&out), ["half.csv"]);
    // What can be run is, and what cannot is named before.
    let (succeeded, said) = without_qemu(&["run", "--all"]);
    assert!(!succeeded && said.contains("without it, compiled is left out"), "{said}");
    assert!(said.find("qemu-user") < said.find("kept in"), "{said}");
    assert_eq!(results(&kept), ["whole.csv"]);
    let (succeeded, said) = without_qemu(&["run", "whole"]);
    assert!(succeeded && said.contains("kept in"), "{said}");
}

#[test]
fn other_guests_results_are_kept_where_they_are_asked_for_and_only_there() {
    if !has_qemu() {
        return;
    }
    let folder = with_definitions(&[
        ("compiled", study("['stlt']", "['STLT']", "guests = ['qemu']\ncontainers = ['map']")),
        ("whole", study("['stlt']", "['STLT']", "containers = ['map']")),
    ]);
    let (kept, out) = (folder.path().join("research/results"), folder.path().join("out"));
    let under_qemu = |further: &[&str]| {
        let arguments = [&["run", "compiled", "whole", "--guest", "qemu"], further].concat();
        let (succeeded, _, said) = output(lab(&arguments).current_dir(folder.path()));
        assert!(succeeded, "{said}");
        said
    };
    let said = under_qemu(&[]);
    assert!(said.contains("whole: not kept, the experiment's own guests are others: give --out"), "{said}");
    assert_eq!(results(&kept), ["compiled.csv"], "whose own guests these are");
    under_qemu(&["--out", out.to_str().expect("text")]);
    assert_eq!(results(&out), ["compiled.csv", "whole.csv"]);
}

#[test]
fn without_qemu_the_package_is_named_and_the_rest_works() {
    let mut command = sim(&["figure", "13", "--quick", "--guest", "qemu"]);
    let (succeeded, _, said) = output(command.env("LOOKASIDE_QEMU", "/nowhere/qemu-x86_64"));
    assert!(!succeeded && said.contains("qemu-user"), "{said}");
    let mut command = sim(&["run", "--keys", "2000", "--warm-up", "100", "--window", "100"]);
    let (succeeded, said, _) = output(command.env("LOOKASIDE_QEMU", "/nowhere/qemu-x86_64"));
    assert!(succeeded && said.contains("cycles"), "{said}");
}

#[test]
fn a_figure_goes_on_where_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (store, out, page) = (path("store"), path("out"), path("page.html"));
    let figure = ["figure", "18", "--quick", "--store", &store, "--out", &out, "--html", &page, "--json"];
    let json: Value = serde_json::from_str(&succeeds(&figure)).expect("JSON");
    // The server alone, and with five hashes in front.
    let written = || -> Vec<_> {
        let files = std::fs::read_dir(&store).expect("a folder").flatten();
        files.map(|file| file.metadata().and_then(|of| of.modified()).expect("a time")).collect()
    };
    let first = written();
    assert_eq!(first.len(), 6);
    succeeds(&figure);
    assert_eq!(written(), first, "they were finished before");
    assert_eq!(json[0]["experiment"], "stlt-figure18");
    let rows = json[0]["rows"].as_array().expect("rows");
    assert_eq!(rows.iter().filter(|row| row["metric"] == "speed-up").count(), 5);
    assert_eq!(json[0]["beside"][0]["paper"], 19.4);
    assert!(std::fs::read_to_string(&page).expect("a page").contains("<svg"));
    let report = said_by(&mut lab(&["report", "stlt-figure18", "--results", &out]));
    assert!(
        report.contains("Figure 18") && report.contains("sipHash") && report.contains("19.4"),
        "{report}"
    );
    let (succeeded, _, said) = output(&mut lab(&["report", "stlt-figure17", "--results", &out]));
    assert!(!succeeded && said.contains("no results"), "{said}");
}

#[test]
fn a_file_s_configuration_is_run_and_held_to_what_options_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, kept) = (path("run.json"), path("kept"));
    let with = |configuration: &Value, further: &[&str]| {
        std::fs::write(&file, configuration.to_string()).expect("written");
        output(&mut sim(&[&["run", "--configuration", &file, "--store", &kept], further].concat()))
    };
    let run: Value = serde_json::from_str(&run(&["--variant", "alone", "--json"])).expect("JSON");
    let sound = &run["configuration"];
    for (pointer, value, reason) in [
        ("/model", Value::from(1), "version"),
        ("/lengths/windows", Value::from(0), "nothing would be measured"),
        ("/lengths/warm_up", Value::from(u64::MAX), "2^64 requests or more"),
        ("/variant", Value::from("stlt"), "no table in front"),
        ("/machine/core/window", Value::from(0), "1 to 65536"),
    ] {
        let mut wrong = sound.clone();
        *wrong.pointer_mut(pointer).expect("a field") = value;
        let (succeeded, said, complained) = with(&wrong, &[]);
        assert!(!succeeded && complained.contains(reason) && said.is_empty(), "{pointer}: {complained}");
    }
    let (succeeded, said, complained) = with(sound, &["--json"]);
    assert!(succeeded, "{complained}");
    let again: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&again["configuration"], &again["measurement"]), (sound, &run["measurement"]));
    assert_eq!(std::fs::read_dir(&kept).expect("a folder").count(), 1);
}

#[test]
fn table_i_needs_no_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let text = succeeds(&["table", "I", "--store", &path, "--out", &path]);
    assert!(text.contains("837") && text.contains("IPB"), "{text}");
}

/// Whether QEMU is there.
fn has_qemu() -> bool {
    match sim_lab::qemu::Qemu::find() {
        Ok(_) => true,
        Err(error) => {
            outside::skip(error);
            false
        }
    }
}

#[test]
fn a_compiled_program_has_the_pages_that_the_machine_says() {
    if !has_qemu() {
        return;
    }
    let misses = |further: &[&str]| {
        let asked = ["run", "--guest", "qemu", "--variant", "slb", "--table-bytes", "20971520", "--json"];
        let size = ["--keys", "20000", "--warm-up", "40000", "--windows", "1", "--window", "2000"];
        let text = succeeds(&[&asked[..], &size, &["--distribution", "uniform"], further].concat());
        let json: Value = serde_json::from_str(&text).expect("JSON");
        json["measurement"]["windows"][0]["memory"]["data_tlb"]["misses"].as_u64().expect("a number")
    };
    let small = misses(&[]);
    let all = misses(&["--change", "paging.pages = '2MiB'"]);
    assert!(all < small / 4, "{all} of {small}");
}

#[test]
fn the_experiments_are_listed() {
    let list = said_by(&mut lab(&["run", "--list"]));
    for name in ["stlt-figure1 ", "stlt-figure19-right", "stlt-table5", "stlt-pages", "stlt-walks"] {
        assert!(list.contains(name), "{name} is not in\n{list}");
    }
}
