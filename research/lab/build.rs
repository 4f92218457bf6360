//! Tells the crate which compiler built it: results name it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // They are built in; the compiler minds those that were there, and not that others come.
    println!("cargo::rerun-if-changed=../experiments");
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    println!("cargo::rustc-env=LAB_COMPILER={}", version.unwrap_or_else(|_| "unknown".to_owned()));
}
