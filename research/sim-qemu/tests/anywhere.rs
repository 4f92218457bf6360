//! `stlt_anywhere.h`: one program in C, with a table of its own on a real processor, and with the hardware under QEMU.
//!
//! Needs a C compiler (`cc`, or what CC names), and for the hardware Debian's qemu-user. Without them it is skipped, unless
//! LOOKASIDE_REQUIRE_PEERS=1.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use sim_qemu::guests::{GuestError, PROCESSOR, Tools};

/// The program in `folder`. None, after a word about it, if there is no compiler.
fn compiled(folder: &Path) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("anywhere");
    let mut compiler = Command::new(std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc")));
    compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]);
    compiler.arg("-I").arg(home.join("guests"));
    let Ok(built) = compiler.arg(home.join("tests/c/anywhere.c")).arg("-o").arg(&program).output() else {
        outside::skip("no C compiler");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(program)
}

fn succeeds(command: &mut Command) {
    let ran = command.output().expect("it is there");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn on_a_real_processor_the_table_is_kept_by_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path()) else { return };
    succeeds(Command::new(program).arg("software"));
}

#[test]
fn under_the_simulator_the_same_program_uses_the_hardware() {
    let tools = match Tools::find() {
        Err(error @ GuestError::Qemu) => return outside::skip(error),
        found => found.expect("cargo builds the plugin beside this test"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path()) else { return };
    let mut plugin = tools.plugin.clone().into_os_string();
    plugin.push(format!(",profile=stlt_paper,out={}", folder.path().join("run.json").display()));
    let mut command = Command::new(&tools.qemu);
    command.args(["-cpu", PROCESSOR, "-plugin"]).arg(plugin).arg(program).arg("hardware");
    succeeds(&mut command);
}
