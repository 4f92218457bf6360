//! Gives the shared library the name that programs which are linked with it ask for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liblookaside.so.0");
}
