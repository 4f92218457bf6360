//! Compiles the shims to foreign code in C++, where its headers and a C++ compiler are.
//!
//! | cfg | what it takes on Debian |
//! |---|---|
//! | `libcuckoo` | libcuckoo-dev |
//! | `containers` | a C++ compiler |
//! | `abseil` | libabsl-dev and pkg-config |
//! | `sparsehash` | libsparsehash-dev and pkg-config |
//!
//! Without one of them the crate builds all the same, without that cfg, and its runs say what they skipped. So it does
//! for a sanitizer, which would see nothing of what is compiled here.

use std::path::Path;

const LIBCUCKOO: &str = "cpp/libcuckoo.cpp";
const STANDARD: &str = "cpp/containers/standard.cpp";
const ABSEIL: &str = "cpp/containers/abseil.cpp";
const DENSE: &str = "cpp/containers/dense.cpp";
/// The headers of the C interface, which the containers are compiled with.
const INTERFACE: &str = "../../crates/capi/include";

fn main() {
    for shim in ["libcuckoo", "containers", "abseil", "sparsehash"] {
        println!("cargo::rustc-check-cfg=cfg({shim})");
    }
    let system = Path::new("/usr/include");
    let foreign = ["libcuckoo/cuckoohash_map.hh", "absl/container/flat_hash_map.h", "google/dense_hash_map"];
    let own = ["build.rs", LIBCUCKOO, "cpp/containers", INTERFACE];
    own.iter().for_each(|path| println!("cargo::rerun-if-changed={path}"));
    for header in foreign {
        let path = system.join(header);
        // Packages bring headers that are older than this run, so that a file which was not there is no change. The
        // folder that it is put into is.
        let watched = if path.exists() { &path } else { system };
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    // Whoever will not do without has them looked for anew.
    println!("cargo::rerun-if-env-changed=LOOKASIDE_REQUIRE_PEERS");
    if std::env::var_os("CARGO_CFG_SANITIZE").is_some() {
        return;
    }
    shim("libcuckoo", LIBCUCKOO, &[]);
    if shim("containers", STANDARD, &[]) {
        shim("abseil", ABSEIL, &["absl_flat_hash_map", "absl_btree"]);
        shim("sparsehash", DENSE, &["libsparsehash"]);
    }
}

/// Compiles one, with what pkg-config knows of these packages; whether that could be done.
fn shim(name: &str, source: &str, packages: &[&str]) -> bool {
    let quiet = |package: &&str| pkg_config::Config::new().cargo_metadata(false).probe(package);
    let found = packages.iter().map(quiet).collect::<Result<Vec<_>, _>>();
    let compiled = found.ok().filter(|found| {
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            // Also in debug builds: their tests take them through many keys.
            .opt_level(3)
            .define("NDEBUG", None)
            .include(INTERFACE)
            .includes(found.iter().flat_map(|package| &package.include_paths))
            .file(source)
            .cargo_warnings(false)
            .try_compile(&format!("lookaside_peers_{name}"))
            .is_ok()
    });
    let Some(found) = compiled else {
        println!("cargo::warning=without {name}: install what build.rs names to compare with it");
        return false;
    };
    // After the shim, which asks for them.
    for package in &found {
        package.link_paths.iter().for_each(|path| println!("cargo::rustc-link-search={}", path.display()));
        package.libs.iter().for_each(|library| println!("cargo::rustc-link-lib={library}"));
    }
    println!("cargo::rustc-cfg={name}");
    true
}
