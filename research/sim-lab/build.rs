//! Tells cargo of the machines that are built in: the compiler minds those that were there, and not that others come.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../profiles");
}
