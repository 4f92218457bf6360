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
    let install = std::fs::read_to_string(home.join("install")).unwrap();
    for header in std::fs::read_dir(home.join("include")).unwrap() {
        let header = header.unwrap().file_name().into_string().unwrap();
        assert!(install.contains(&format!("crates/capi/include/{header}")), "{header} is not installed");
    }
}

#[test]
fn programs_are_built_with_what_pkg_config_says() {
    if Command::new("pkg-config").arg("--version").output().is_err()
        || Command::new("cc").arg("-v").output().is_err()
    {
        outside::skip("there is no pkg-config or no cc");
        return;
    }
    let (home, directory) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir().unwrap());
    let prefix = directory.path().join("prefix");
    // In a build folder of its own: built for itself, the library is of other features than in the workspace, and would
    // lie where the workspace's is, which other crates are built with.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    output_of(
        Command::new(home.join("install")).arg(&prefix).env("PROFILE", "dev").env("CARGO_TARGET_DIR", target),
    );
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

    let fixed = directory.path().join("static");
    let mut link = Command::new("cc");
    link.args(pkg_config(&["--cflags"])).arg(&source).arg("-o").arg(&fixed).arg("-l:liblookaside.a");
    link.args(pkg_config(&["--libs-only-L"])).args(["-lpthread", "-ldl", "-lm"]);
    output_of(&mut link);
    output_of(Command::new(&fixed).env_remove("LD_LIBRARY_PATH"));
}
