//! What `crates/capi/install` puts into a prefix is enough to build programs with: shared, and static. And what cargo-c
//! is told for `cargo cinstall` is the same: names, version, headers.

use std::path::Path;
use std::process::Command;

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    out.trim().to_string()
}

/// What cargo-c 0.10 reads below `package.metadata.capi`, by its `load_manifest_capi_config`. Other keys it passes
/// over.
const READ_BY_CARGO_C: [(&str, &[&str]); 4] = [
    ("header", &["name", "subdirectory", "generation", "enabled", "emit_version_constants"]),
    (
        "pkg_config",
        &[
            "name",
            "filename",
            "description",
            "version",
            "requires",
            "requires_private",
            "strip_include_path_components",
        ],
    ),
    (
        "library",
        &[
            "name",
            "version",
            "install_subdir",
            "versioning",
            "version_suffix_components",
            "import_library",
            "rustflags",
            "target",
        ],
    ),
    ("install", &["include", "data"]),
];

/// `ci/nightly cinstall` runs it, which takes longer to be built than all else here. What a quick test can see is that
/// cargo-c is told by the names that it knows. Once it was told `pkgconfig`, which it is not, and had no feature to
/// know the package by; and the test asked for just that.
#[test]
fn cargo_c_is_told_what_install_does() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let metadata = output_of(Command::new(env!("CARGO")).current_dir(home).args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]));
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == env!("CARGO_PKG_NAME")).unwrap();
    assert!(package["features"]["capi"].is_array(), "cargo-c takes packages with this feature only");
    let capi = &package["metadata"]["capi"];
    for (section, told) in capi.as_object().unwrap() {
        let read = READ_BY_CARGO_C.iter().find(|(known, _)| known == section);
        let (_, read) = read.unwrap_or_else(|| panic!("cargo-c does not read {section}"));
        for key in told.as_object().unwrap().keys() {
            assert!(read.contains(&&**key), "cargo-c does not read {section}.{key}");
        }
    }
    assert_eq!(capi["library"]["name"], "lookaside");
    // The library's name ends in the major version alone, as build.rs and `install` have it.
    assert_eq!(capi["library"]["version_suffix_components"], 1);
    assert_eq!(
        (&capi["pkg_config"]["name"], &capi["pkg_config"]["filename"]),
        (&"lookaside".into(), &"lookaside".into())
    );
    // Headers are those that lie there: none is generated, and none goes into a folder of its own.
    assert_eq!(
        (&capi["header"]["generation"], &capi["header"]["subdirectory"]),
        (&false.into(), &false.into())
    );
    let asset = &capi["install"]["include"]["asset"][0];
    assert_eq!((&asset["from"], &asset["to"]), (&"include/*".into(), &"".into()));
    let asset = &capi["install"]["data"]["asset"][0];
    assert_eq!((&asset["from"], &asset["to"]), (&"cmake/*".into(), &"cmake/lookaside".into()));
}

/// What `install` leaves below a prefix, built as tests are, and not optimised: what is asked is whether it is there.
///
/// In a build folder of its own: built for itself, the library is of other features than in the workspace, and would
/// lie where the workspace's is, which other crates are built with.
fn install(command: &mut Command) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    command.env("PROFILE", "dev").env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    output_of(command.env("CARGO_TARGET_DIR", target));
}

fn runs(program: &str, question: &str) -> bool {
    Command::new(program).arg(question).output().is_ok_and(|output| output.status.success())
}

/// Whether a prefix has the files of a folder of this package, below this folder of its own.
fn assert_installed(prefix: &Path, folder: &str, below: &str) {
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let file = file.unwrap();
        let installed = std::fs::read(prefix.join(below).join(file.file_name())).unwrap_or_default();
        assert_eq!(installed, std::fs::read(file.path()).unwrap(), "{}", file.path().display());
    }
}

/// The shared library takes no names but its own: those that the header says.
fn exports_the_interface(prefix: &Path) {
    if !runs("nm", "--version") {
        outside::skip("there is no nm");
        return;
    }
    let library = prefix.join("lib/liblookaside.so");
    let names = output_of(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library));
    let header = std::fs::read_to_string(prefix.join("include/lookaside.h")).unwrap();
    for line in names.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        assert!(name.starts_with("SLB_") || name.starts_with("lookaside_"), "{name} is exported");
        // That is what the library was built with: src/headers.rs.
        let is_declared = name == "lookaside_headers" || header.contains(&format!("{name}("));
        assert!(is_declared, "{name} is exported, and not in the header");
    }
    // Figure 4's eight, and what it lacks.
    assert!(names.lines().count() > 8, "{names}");
}

#[test]
fn programs_are_built_with_what_pkg_config_says() {
    if !runs("pkg-config", "--version") || !runs("cc", "-v") {
        outside::skip("there is no pkg-config or no cc");
        return;
    }
    let (home, directory) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    let prefix = directory.path().join("prefix");
    install(Command::new(home.join("install")).arg(&prefix));
    assert_installed(&prefix, "include", "include");
    assert_installed(&prefix, "cmake", "share/cmake/lookaside");
    let source = home.join("tests/c/smallest.c");
    let pkg_config = |arguments: &[&str]| -> Vec<String> {
        let mut command = Command::new("pkg-config");
        command.args(arguments).arg("lookaside").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        output_of(&mut command).split_whitespace().map(str::to_string).collect()
    };
    assert_eq!(pkg_config(&["--modversion"]), [env!("CARGO_PKG_VERSION")]);

    let shared = directory.path().join("shared");
    output_of(
        Command::new("cc")
            .args(pkg_config(&["--cflags"]))
            .arg(&source)
            .arg("-o")
            .arg(&shared)
            .args(pkg_config(&["--libs"])),
    );
    output_of(Command::new(&shared).env("LD_LIBRARY_PATH", prefix.join("lib")));
    // It asks for the library by its major version, and does not run without.
    let major = format!("liblookaside.so.{}", env!("CARGO_PKG_VERSION_MAJOR"));
    let needed = std::fs::read(&shared).unwrap();
    assert!(needed.windows(major.len()).any(|window| window == major.as_bytes()));
    assert!(!Command::new(&shared).env_remove("LD_LIBRARY_PATH").output().unwrap().status.success());

    exports_the_interface(&prefix);

    let fixed = directory.path().join("static");
    let mut link = Command::new("cc");
    link.args(pkg_config(&["--cflags"])).arg(&source).arg("-o").arg(&fixed).arg("-l:liblookaside.a");
    link.args(pkg_config(&["--libs-only-L"])).args(["-lpthread", "-ldl", "-lm"]);
    output_of(&mut link);
    output_of(Command::new(&fixed).env_remove("LD_LIBRARY_PATH"));
}

/// As the examples' project has it: a project of this kind finds what is installed, also after the folder was moved,
/// and takes the version that it asks for.
#[test]
fn a_project_of_cmake_finds_what_is_installed() {
    if !runs("cmake", "--version") || !runs("cc", "-v") || !runs("c++", "-v") {
        outside::skip("there is no cmake or no compiler");
        return;
    }
    let (home, directory) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    let [first, prefix] = ["first", "moved"].map(|name| directory.path().join(name));
    install(Command::new(home.join("install")).arg(&first));
    std::fs::rename(first, &prefix).unwrap();
    let build = directory.path().join("build");
    let prefixes = format!("-DCMAKE_PREFIX_PATH={}", prefix.display());
    output_of(
        Command::new("cmake").arg("-S").arg(home.join("examples")).arg("-B").arg(&build).arg(&prefixes),
    );
    output_of(Command::new("cmake").arg("--build").arg(&build).arg("--parallel"));
    for example in ["accounts", "sessions", "std_map", "std_unordered_map"] {
        output_of(&mut Command::new(build.join(example)));
    }

    let asks_for = |version: &str| {
        let project = directory.path().join(version);
        std::fs::create_dir(&project).unwrap();
        let text = format!(
            "cmake_minimum_required(VERSION 3.21)\nproject(asks LANGUAGES C)\n\
             find_package(lookaside {version} CONFIG REQUIRED)\n"
        );
        std::fs::write(project.join("CMakeLists.txt"), text).unwrap();
        let mut command = Command::new("cmake");
        command.arg("-S").arg(&project).arg("-B").arg(project.join("build")).arg(&prefixes);
        command.output().unwrap().status.success()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert!(asks_for(version), "cmake/lookaside-config-version.cmake does not say {version}");
    assert!(!asks_for("0.0.1") && !asks_for("99.0.0"));
    // No newer one than this.
    let newer = format!(
        "{}.{}.{}",
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
        env!("CARGO_PKG_VERSION_PATCH").parse::<u64>().unwrap() + 1
    );
    assert!(!asks_for(&newer), "{newer}");
}

/// The page "C and C++: the library" does what it says to one who follows it: a file is a block whose first line names
/// it, and what is to be typed are blocks of `sh`. The first of those is typed in the clone, the others in an empty
/// folder.
#[test]
fn the_page_on_getting_started_can_be_followed() {
    if !runs("pkg-config", "--version") || !runs("cmake", "--version") || !runs("c++", "-v") {
        outside::skip("there is no pkg-config, no cmake or no c++");
        return;
    }
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(clone.join("docs/start/c-and-cpp.md")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [home, folder] = ["home", "folder"].map(|name| directory.path().join(name));
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(&folder).unwrap();

    let (mut files, mut typed) = (0, Vec::new());
    for block in page.split("\n```").skip(1).step_by(2) {
        let (language, text) = block.split_once('\n').unwrap();
        let first = text.lines().next().unwrap();
        let named = first.trim_start_matches(['/', '*', '#', ' ']).trim_end_matches(" */");
        if language == "sh" {
            typed.push(text);
        } else if matches!(
            Path::new(named).extension().and_then(|ending| ending.to_str()),
            Some("c" | "cpp" | "txt")
        ) {
            std::fs::write(folder.join(named), format!("{text}\n")).unwrap();
            files += 1;
        }
    }
    assert_eq!(files, 3, "a program in C, one in C++, and a project");
    // `$HOME` of the page is a folder of ours; cargo is where it was.
    let follow = |within: &Path, typed: &[&str]| -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-euc", &typed.join("\n")]).current_dir(within).env("HOME", &home);
        for (variable, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let of_user = std::env::home_dir().unwrap().join(default);
            shell.env(variable, std::env::var_os(variable).unwrap_or(of_user.into()));
        }
        shell
    };
    install(&mut follow(&clone, &typed[..1]));
    let said = output_of(&mut follow(&folder, &typed[1..]));
    let expected = page.split("\n```text\n").nth(1).unwrap().split_once("\n```").unwrap().0;
    let said: Vec<&str> = said.lines().filter(|line| line.starts_with("found ")).collect();
    assert_eq!(said, [expected; 4], "each of the programs, by pkg-config and by CMake");
}
