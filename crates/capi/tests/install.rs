//! What `crates/capi/install` puts into a prefix is enough to build programs with: shared, and static. And what cargo-c is told
//! for `cargo cinstall` is the same: names, version, headers.

use std::path::Path;
use std::process::Command;

fn output_of(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {said}");
    out.trim().to_string()
}

/// Read as cargo-c reads it. Its own run would fetch and build it first, which takes longer than all else here.
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
    let capi = &package["metadata"]["capi"];
    assert_eq!(capi["library"]["name"], "lookaside");
    assert_eq!(capi["library"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&capi["pkgconfig"]["name"], &capi["pkgconfig"]["filename"]),
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
    // In a build folder of its own: built for itself, the library is of other features than in the workspace, and would lie where
    // the workspace's is, which other crates are built with.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    output_of(
        Command::new(home.join("install")).arg(&prefix).env("PROFILE", "dev").env("CARGO_TARGET_DIR", target),
    );
    let source = directory.path().join("program.c");
    std::fs::write(
        &source,
        r#"
        #include <lookaside_inline.h>
        static bool match(void *entry, void *key) { return entry == key; }
        static uint64_t hash(void *opaque) { return (uintptr_t)opaque; }
        int main(void) {
            int record;
            SLB *b = SLB_create(4096, match, hash, hash);
            if (!b || !lookaside_inline_attach(b)) return 1;
            SLB_emit(b, &record);
            int found = SLB_get(b, &record) == &record;
            SLB_destroy(b);
            return found ? 0 : 2;
        }"#,
    )
    .unwrap();
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
