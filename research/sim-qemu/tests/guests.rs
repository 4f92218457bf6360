//! Guests under QEMU with the plugin: what they count repeats, pays, and agrees with an outside oracle.
//!
//! They need Debian's qemu-user, g++ and libxxhash-dev; some also libsparsehash-dev, libabsl-dev with pkg-config,
//! redis-server and valgrind. Without them they are skipped, unless LOOKASIDE_REQUIRE_PEERS=1.

#![allow(clippy::print_stderr, reason = "a test says what it has measured")]

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use sim::{Frames, Inclusion, Measurement, PageSize, Profile, Window};
use sim_qemu::GuestError;
use sim_qemu::asked::{Container, Distribution, Variant};
use sim_qemu::guests::{PROCESSOR, Tools};
use sim_qemu::run::Run;
use tempfile::TempDir;

/// A compiled guest, and a folder for its files.
struct Bench {
    tools: Tools,
    guest: PathBuf,
    folder: TempDir,
}

impl Bench {
    /// None, after a word about it, if something from outside is missing. Our own parts must be there.
    fn of(container: Container) -> Option<Bench> {
        let (tools, folder) = (tools()?, tempfile::tempdir().expect("a folder"));
        if container == Container::Redis && Command::new("redis-server").arg("--version").output().is_err() {
            outside::skip(GuestError::Redis);
            return None;
        }
        match compiled(&tools, container) {
            Err(error @ GuestError::Compile { .. }) => {
                outside::skip(error);
                None
            }
            compiled => Some(Bench { tools, guest: compiled.expect("compiled"), folder }),
        }
    }

    /// As [`Bench::of`], of a program of tests/c.
    fn of_test(name: &str) -> Option<Bench> {
        let (tools, folder) = (tools()?, tempfile::tempdir().expect("a folder"));
        let guest = compile_c(name, folder.path(), |compiler| compiler.args(["-O1", "-Wall", "-Wextra"]))?;
        Some(Bench { tools, guest, folder })
    }

    /// What a program of tests/c counts that has these arguments.
    fn run_test(&self, arguments: &[&str], profile: &str) -> Measurement {
        let out = self.folder.path().join("run.json");
        let mut plugin = self.tools.plugin.clone().into_os_string();
        plugin.push(format!(",profile={profile},out={}", out.display()));
        let mut command = Command::new(&self.tools.qemu);
        command.args(["-cpu", PROCESSOR, "-plugin"]).arg(plugin).arg(&self.guest).args(arguments);
        assert_success(&command.output().expect("started"));
        Measurement::read(&out).expect("a measurement")
    }

    fn requests(&self, run: &Run) -> PathBuf {
        let path = self.folder.path().join("requests");
        run.write_requests(&path).expect("written");
        path
    }

    fn run_on(&self, run: &Run, profile: &str) -> Measurement {
        let out = self.folder.path().join("run.json");
        let requests = self.requests(run);
        let command = self.tools.command(&self.guest, &requests, run, Path::new(profile), &out);
        let mut command = command.expect("its programs were there a moment ago");
        command.env("GLIBC_TUNABLES", PINNED);
        let output = command.output().expect("started");
        assert_success(&output);
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        Measurement::read(&out).expect("a measurement")
    }

    fn run(&self, run: &Run) -> Measurement {
        self.run_on(run, "stlt_paper")
    }
}

/// Each guest is compiled once, whichever test asks first.
fn compiled(tools: &Tools, container: Container) -> Result<PathBuf, GuestError> {
    static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = folder.get_or_insert_with(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests");
        // What an earlier run has left was compiled as guests were then.
        let _ = std::fs::remove_dir_all(&folder);
        folder
    });
    tools.compile(container, folder)
}

/// What guests run with. None, after a word about it, if QEMU is not there; our own parts must be.
pub(crate) fn tools() -> Option<Tools> {
    match Tools::find() {
        Err(error @ GuestError::Qemu) => {
            outside::skip(error);
            None
        }
        found => Some(found.expect("cargo builds the plugin and the library beside this test")),
    }
}

/// A program of tests/c, compiled into `folder` with these options. None, after a word about it, if there is no
/// compiler.
pub(crate) fn compile_c(
    name: &str,
    folder: &Path,
    options: impl FnOnce(&mut Command) -> &mut Command,
) -> Option<PathBuf> {
    let (program, here) = (folder.join(name), Path::new(env!("CARGO_MANIFEST_DIR")));
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.arg("-I").arg(here.join("guests")).arg("-o").arg(&program);
    match options(command.arg(here.join("tests/c").join(name).with_extension("c"))).output() {
        Err(error) => {
            outside::skip(format_args!("{}: {error}", compiler.display()));
            None
        }
        Ok(output) => {
            assert_success(&output);
            Some(program)
        }
    }
}

pub(crate) fn assert_success(output: &Output) {
    let said = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&said));
}

/// The C library's plainest variants, whatever the processor: so that a run and its oracle execute the same
/// instructions.
const PINNED: &str =
    "glibc.cpu.hwcaps=-AVX2,-AVX,-BMI2,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSE4_2,-SSE4_1,-SSSE3";

/// Larger than the third cache, small enough for a test.
fn small(container: Container, variant: Variant) -> Run {
    Run {
        load: 60_000,
        functional: 20_000,
        window: 10_000,
        windows: 1,
        ..Run::new(container, variant, 30_000)
    }
}

#[test]
fn counts_repeat_exactly() {
    let Some(bench) = Bench::of(Container::UnorderedMap) else { return };
    for variant in [Variant::Alone, Variant::Slb, Variant::Stlt] {
        let run = Run { windows: 2, window: 2000, ..small(Container::UnorderedMap, variant) };
        let (once, again) = (bench.run(&run), bench.run(&run));
        assert_eq!(once, again);
        assert_eq!(once.machine, "stlt_paper");
        assert_eq!(once.windows.iter().map(|window| window.operations).collect::<Vec<_>>(), [2000, 2000]);
        assert_ne!(once.windows[0], once.windows[1], "other requests");
    }
}

#[test]
fn the_table_pays_on_a_hash_table_and_on_a_tree() {
    for container in [Container::UnorderedMap, Container::Map] {
        let Some(bench) = Bench::of(container) else { continue };
        // More pages than the second TLB has entries.
        let run = |variant| Run { load: 200_000, ..small(container, variant) };
        let run = |variant| Run { records: 80_000, rows: 1 << 18, functional: 40_000, ..run(variant) };
        let alone = bench.run(&run(Variant::Alone));
        let stlt = bench.run(&run(Variant::Stlt));
        let cycles = |measurement: &Measurement| measurement.estimate(Window::cycles).mean;
        assert!(
            cycles(&stlt) < 0.7 * cycles(&alone),
            "{container:?}: {} of {}",
            cycles(&stlt),
            cycles(&alone)
        );
        // What it saves are walks and memory accesses.
        let (alone, stlt) = (&alone.windows[0], &stlt.windows[0]);
        assert_eq!((alone.fast_path, alone.memory.stlt.hits), (None, 0));
        let fast = stlt.fast_path.expect("it has a table");
        assert_eq!(fast.total(), 10_000);
        assert!(fast.hits > 8500, "{fast:?}");
        assert!(
            stlt.memory.stlt.hits >= fast.hits,
            "a loadVA may find another's record, but not miss its own"
        );
        assert_eq!(stlt.memory.stlt.hits + stlt.memory.stlt.absent, 10_000);
        assert!(stlt.walks() < 0.2 * alone.walks(), "{} of {}", stlt.walks(), alone.walks());
        assert!(stlt.instructions() < alone.instructions());
    }
}

/// A container alone has no GETs in its load, but all SETs: without those, the GETs behind them would not find the
/// latest.
#[test]
fn what_is_inserted_before_anybody_looks_on_is_there_afterwards() {
    let Some(bench) = Bench::of(Container::Map) else { return };
    let run = Run { distribution: Distribution::Latest, ..small(Container::Map, Variant::Alone) };
    assert_eq!(bench.run(&run).windows[0].operations, 10_000);
}

#[test]
fn every_guest_runs_every_variant_and_finds_all() {
    // Our own indexes are programs of another crate, which tests them.
    for container in Container::ALL.into_iter().filter(|container| !container.is_own()) {
        let Some(bench) = Bench::of(container) else { continue };
        for (variant, distribution) in
            Variant::COMPILED.into_iter().zip(Distribution::ALL.into_iter().cycle())
        {
            let run = Run {
                distribution,
                load: 2000,
                functional: 500,
                detailed: 100,
                window: 1000,
                ..small(container, variant)
            };
            let run = Run { records: 2000, ..run };
            let measurement = bench.run(&run);
            let window = &measurement.windows[0];
            assert_eq!(window.operations, 1000);
            assert!(
                window.core.instructions > 50_000 && window.core.cycles > 20_000,
                "{container:?} {variant:?}"
            );
            assert_eq!(window.core.stack.total(), window.core.cycles, "every cycle has its account");
            assert_eq!(window.fast_path.is_some(), variant != Variant::Alone, "{container:?} {variant:?}");
            let hardware = matches!(variant, Variant::Stlt | Variant::StltVa);
            assert_eq!(window.memory.stlt.hits > 0, hardware, "{container:?} {variant:?}");
        }
    }
}

#[test]
fn children_of_a_guest_are_not_measured() {
    let Some(bench) = Bench::of_test("forks") else { return };
    let measurement = bench.run_test(&[], "stlt_paper");
    assert_eq!(measurement.windows.len(), 1);
    let executed = measurement.windows[0].core.instructions;
    // Three times its work, and not the children's.
    assert!((9_000..30_000).contains(&executed), "{executed}");
}

/// A program that exports what a redis-server does, its two functions beginning with these bytes.
fn imitation(folder: &Path, dict_find: &str, ae_main: &str) -> PathBuf {
    let (source, program) = (folder.join("imitation.c"), folder.join("imitation"));
    let text = format!(
        "__asm__(\".globl dictFind, aeMain\\n.type dictFind, @function\\n.type aeMain, @function\\n\"\n\
         \"dictFind: .byte {dict_find}\\n ret\\n .skip 64, 0x90\\n\"\n\
         \"aeMain: .byte {ae_main}\\n ret\\n .skip 64, 0x90\\n\");\n\
         long dbDictType[16];\n\
         int main(void) {{ return 0; }}\n"
    );
    std::fs::write(&source, text).expect("written");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler).args(["-rdynamic", "-o"]).arg(&program).arg(&source).output();
    assert_success(&output.expect("the compiler that made the guest is there"));
    program
}

#[test]
fn another_redis_is_refused() {
    let Some(bench) = Bench::of(Container::Redis) else { return };
    let run = small(Container::Redis, Variant::Stlt);
    let arguments = run.arguments(&bench.requests(&run));
    let preloaded_into = |program: &Path| {
        Command::new(program)
            .env("LD_PRELOAD", &bench.guest)
            .env("GUEST", arguments.join(OsStr::new(" ")))
            .output()
            .expect("started")
    };
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    // Any program whose functions have other names is another build.
    let output = preloaded_into(Path::new("/bin/true"));
    assert!(
        !output.status.success() && said(&output).contains("does not export dictFind"),
        "{}",
        said(&output)
    );
    // One whose functions begin otherwise, too: a byte is enough, the first or the last of those that are compared.
    const FIND: &str = "0x41,0x56,0x41,0x55,0x41,0x54,0x55,0x53,0x48,0x8b,0x47,0x20,0x48,0x03,0x47,0x18";
    const MAIN: &str = "0x53,0x48,0x89,0xfb,0xc7,0x47,0x28,0,0,0,0,0x0f,0x1f,0x44,0,0";
    let (first, last) = (FIND.replacen("0x41", "0x40", 1), FIND.replace("0x47,0x18", "0x47,0x19"));
    let main = MAIN.replace("0x44,0,0", "0x44,0,1");
    for (find, main, name) in
        [(first.as_str(), MAIN, "dictFind"), (&last, MAIN, "dictFind"), (FIND, &main, "aeMain")]
    {
        let output = preloaded_into(&imitation(bench.folder.path(), find, main));
        let expected = format!("{name} of this redis-server does not begin as that of Debian's 7.0.15 does");
        assert!(!output.status.success() && said(&output).contains(&expected), "{name}: {}", said(&output));
    }
    // The same bytes in all places are taken for it: it was they that were refused.
    let output = preloaded_into(&imitation(bench.folder.path(), FIND, MAIN));
    assert_success(&output);
}

#[test]
fn pages_that_the_kernel_takes_back_are_answered_no_more() {
    let Some(bench) = Bench::of_test("withdrawn") else { return };
    assert_eq!(Profile::stlt_paper().stlt.ipb, 32);
    // The program itself looks at the answers.
    let measurement = bench.run_test(&[], "stlt_paper");
    let counted = measurement.windows.iter().map(|window| {
        let counts = window.memory.stlt;
        (
            [counts.hits, counts.invalid, counts.absent],
            [counts.invalidations, counts.overflows, counts.scrubbed],
        )
    });
    // Four times 8 pages fill the IPB. The next one clears it, and takes out or corrects the rows of all pages that
    // have no or another frame now and were not inserted anew: those of madvise, of the last munmap, and its own.
    let expected = [
        ("munmap", ([8, 24, 0], [8, 0, 0])),
        ("mremap", ([16, 8, 0], [8, 0, 0])),
        ("madvise", ([8, 16, 0], [8, 0, 0])),
        ("munmap, the 32nd page", ([8, 8, 0], [8, 0, 0])),
        ("munmap, the 33rd", ([25, 0, 9], [1, 1, 17])),
    ];
    assert_eq!(measurement.windows.len(), expected.len());
    for ((call, expected), counted) in expected.into_iter().zip(counted) {
        assert_eq!(counted, expected, "{call}: hits, invalid, absent; pages into the IPB, overflows, rows");
    }
}

#[test]
fn a_machine_is_a_file_too_and_its_memory_matters() {
    let Some(bench) = Bench::of(Container::UnorderedMap) else { return };
    let path = bench.folder.path().join("slow.toml");
    let mut machine = Profile { name: "slow".into(), ..Profile::stlt_paper() };
    machine.memory.latency *= 3;
    std::fs::write(&path, machine.to_toml().expect("a machine")).expect("written");
    let run = small(Container::UnorderedMap, Variant::Alone);
    let slow = bench.run_on(&run, path.to_str().expect("a plain path"));
    assert_eq!(slow.machine, "slow");
    let (slow, paper) = (&slow.windows[0], &bench.run(&run).windows[0]);
    assert_eq!(slow.core.instructions, paper.core.instructions, "the program is the same");
    assert!(slow.cycles() > 1.5 * paper.cycles(), "{} {}", slow.cycles(), paper.cycles());
}

#[test]
fn what_is_wrong_is_said_before_the_guest_runs() {
    let Some(bench) = Bench::of(Container::UnorderedMap) else { return };
    let run = small(Container::UnorderedMap, Variant::Alone);
    let out = bench.folder.path().join("run.json");
    let requests = bench.requests(&run);
    let said = |command: &mut Command| {
        let output = command.output().expect("started");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let command = |run: &Run, profile: &str| {
        let command = bench.tools.command(&bench.guest, &requests, run, Path::new(profile), &out);
        command.expect("no Redis is concerned")
    };
    let error = said(&mut command(&run, "/nowhere.toml"));
    assert!(error.contains("profile=/nowhere.toml is no built-in machine"), "{error}");
    // A shape that no STLT has.
    let run = Run { rows: 1000, ..small(Container::UnorderedMap, Variant::Stlt) };
    let error = said(&mut command(&run, "stlt_paper"));
    assert!(error.contains("power of two") && error.contains("no STLT of this shape"), "{error}");
}

#[test]
fn an_instrumented_guest_runs_without_a_simulator() {
    let Some(bench) = Bench::of(Container::UnorderedMap) else { return };
    let run = small(Container::UnorderedMap, Variant::Stlt);
    let output =
        Command::new(&bench.guest).args(run.arguments(&bench.requests(&run))).output().expect("started");
    assert_success(&output);
    assert!(String::from_utf8_lossy(&output.stdout).contains(", 0 not found"));
}

/// What cachegrind counts of a program: the numbers that stand behind these words.
fn cachegrind<const N: usize>(program: &Path, arguments: &[OsString], words: [&str; N]) -> [f64; N] {
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"])
        // The caches of the machine that is compared.
        .args(["--I1=32768,4,64", "--D1=32768,8,64", "--LL=2097152,8,64"])
        .arg(program)
        .args(arguments)
        .env("GLIBC_TUNABLES", PINNED)
        .output()
        .expect("valgrind was there a moment ago");
    assert_success(&output);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    words.map(|word| {
        let line =
            said.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word} in {said}"));
        let number = line.split(word).nth(1).and_then(|rest| rest.split_whitespace().next());
        number.and_then(|number| number.replace(',', "").parse::<f64>().ok()).expect("a number")
    })
}

/// Whether the oracle is there.
fn has_valgrind() -> bool {
    let there = Command::new("valgrind").arg("--version").output().is_ok();
    if !there {
        outside::skip("valgrind is not there: install Debian's package valgrind");
    }
    there
}

#[test]
fn misses_of_the_caches_are_those_of_cachegrind() {
    if !has_valgrind() {
        return;
    }
    let Some(bench) = Bench::of_test("misses") else { return };
    let (program, folder) = (&bench.guest, &bench.folder);
    // The oracle has two levels of caches, and no translation: here no second level, and pages so large that walks are
    // few.
    let mut machine = Profile { name: "oracle".into(), ..Profile::stlt_paper() };
    machine.caches.l2 = None;
    machine.caches.inclusion = Inclusion::Neither;
    machine.paging.pages = PageSize::Giant;
    machine.paging.frames = Frames::Identity {};
    assert_eq!((machine.caches.l1d.kib, machine.caches.l1d.ways), (32, 8));
    assert_eq!(machine.caches.l3.map(|shape| (shape.kib, shape.ways)), Some((2048, 8)));
    let profile = folder.path().join("oracle.toml");
    std::fs::write(&profile, machine.to_toml().expect("a machine")).expect("written");

    for (pattern, known) in [
        // Every line once; every word another line, a thousand of them in turn in one set of the first cache and in 64
        // of the third.
        ("rows", Some(1024.0 * 1024.0 / 16.0)),
        ("columns", Some(1024.0 * 1024.0)),
        ("reads", None),
        ("writes", None),
    ] {
        let memory = bench.run_test(&[pattern, "1"], &profile.display().to_string()).windows[0].memory;
        let misses = |counts: sim::CacheCounts| (counts.load.misses + counts.store.misses) as f64;
        let counted = [misses(memory.l1d), misses(memory.l3)];
        // The oracle knows no windows: with one, less without.
        let oracle = |rounds: &str| {
            cachegrind(program, &[pattern.into(), rounds.into()], ["D1  misses:", "LLd misses:"])
        };
        let (with, without) = (oracle("1"), oracle("0"));
        for (level, cache) in ["first", "last"].into_iter().enumerate() {
            let (counted, expected) = (counted[level], with[level] - without[level]);
            let off = (counted / expected - 1.0).abs();
            assert!(off < 0.05, "{pattern}, {cache} cache: {counted} misses, the oracle's {expected}");
            if let Some(known) = known {
                assert!(
                    (counted / known - 1.0).abs() < 0.01,
                    "{pattern}, {cache} cache: {counted} of {known}"
                );
            }
            eprintln!("{pattern}, {cache} cache: {counted} misses, the oracle's {expected}");
        }
    }
}

#[test]
fn instructions_and_accesses_are_those_of_cachegrind() {
    if !has_valgrind() {
        return;
    }
    for container in [Container::UnorderedMap, Container::DenseHashMap, Container::Map, Container::BTree] {
        let Some(bench) = Bench::of(container) else { continue };
        let run = Run { load: 0, functional: 100, detailed: 100, ..small(container, Variant::Alone) };
        let run = Run { records: 5000, ..run };
        let window = bench.run(&run).windows[0];
        // The oracle knows no windows: with one, less without.
        let oracle = |run: &Run| {
            cachegrind(&bench.guest, &run.arguments(&bench.requests(run)), ["I   refs:", "D   refs:"])
        };
        let (with, without) = (oracle(&run), oracle(&Run { functional: 200, windows: 0, ..run }));
        let (instructions, accesses) = (with[0] - without[0], with[1] - without[1]);
        let counted = window.core.instructions as f64;
        assert!(
            (counted / instructions - 1.0).abs() < 0.01,
            "{container:?}: {counted} of {instructions} instructions"
        );
        let counted = (window.memory.accesses.loads + window.memory.accesses.stores) as f64;
        assert!((counted / accesses - 1.0).abs() < 0.01, "{container:?}: {counted} of {accesses} accesses");
    }
}
