//! Gives the shared library the name that programs which are linked with it ask for: with the major version, as
//! `install` and cargo-c (Cargo.toml) have it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblookaside.so.{major}");
}
