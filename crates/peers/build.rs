//! Compiles the shim to libcuckoo, where its header and a C++ compiler are.
//!
//! libcuckoo is C++ and all header (Debian: libcuckoo-dev). Without it the crate builds all the same, without the cfg
//! `libcuckoo`, and its runs say that they skipped it.

const SHIM: &str = "cpp/libcuckoo.cpp";
const HEADER: &str = "/usr/include/libcuckoo/cuckoohash_map.hh";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(libcuckoo)");
    for path in ["build.rs", SHIM, HEADER] {
        // A header that is not there counts as changed: when it is installed, this is run again.
        println!("cargo::rerun-if-changed={path}");
    }
    let compiled = cc::Build::new()
        .cpp(true)
        .std("c++17")
        // Also in debug builds: its tests take it through many keys.
        .opt_level(3)
        .file(SHIM)
        .cargo_warnings(false)
        .try_compile("lookaside_peers_libcuckoo");
    match compiled {
        Ok(()) => println!("cargo::rustc-cfg=libcuckoo"),
        Err(_) => println!(
            "cargo::warning=without libcuckoo: install a C++ compiler and libcuckoo-dev to compare with it"
        ),
    }
}
