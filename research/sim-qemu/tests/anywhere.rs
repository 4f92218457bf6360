//! `stlt_anywhere.h`: one program in C, with a table of its own on a real processor, and with the hardware under QEMU.
//!
//! Needs a C compiler (`cc`, or what CC names), and for the hardware Debian's qemu-user. Without them it is skipped,
//! unless LOOKASIDE_REQUIRE_PEERS=1.

use std::path::{Path, PathBuf};
use std::process::Command;

use sim_qemu::guests::PROCESSOR;

use crate::guests::{assert_success, compile_c, tools};

/// The program in `folder`. None, after a word about it, if there is no compiler.
fn compiled(folder: &Path) -> Option<PathBuf> {
    compile_c("anywhere", folder, |compiler| {
        compiler.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"])
    })
}

fn succeeds(command: &mut Command) {
    assert_success(&command.output().expect("it is there"));
}

#[test]
fn on_a_real_processor_the_table_is_kept_by_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path()) else { return };
    succeeds(Command::new(program).arg("software"));
}

#[test]
fn under_the_simulator_the_same_program_uses_the_hardware() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(program) = compiled(folder.path()) else { return };
    let mut plugin = tools.plugin.clone().into_os_string();
    plugin.push(format!(",profile=stlt_paper,out={}", folder.path().join("run.json").display()));
    let mut command = Command::new(&tools.qemu);
    command.args(["-cpu", PROCESSOR, "-plugin"]).arg(plugin).arg(program).arg("hardware");
    succeeds(&mut command);
}
