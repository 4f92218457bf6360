//! Compiling programs in C and C++ against the library, by `cc` and `c++` or what CC and CXX name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The static library, which cargo has built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let library = test.with_file_name("liblookaside_capi.a");
    assert!(library.exists(), "{} is missing", library.display());
    library
}

pub(crate) fn compiler(source: &Path) -> Command {
    let (variable, default) = if is_c(source) { ("CC", "cc") } else { ("CXX", "c++") };
    let mut command = Command::new(std::env::var_os(variable).unwrap_or_else(|| OsString::from(default)));
    // Lines for what a sanitizer or valgrind says. All that a debugger wants takes as long again to write.
    command.args([standard(source), "-O2", "-g1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]);
    command
}

pub(crate) fn is_c(source: &Path) -> bool {
    source.extension().is_some_and(|extension| extension == "c")
}

pub(crate) fn standard(source: &Path) -> &'static str {
    if is_c(source) { "-std=c11" } else { "-std=c++17" }
}

/// Whether a source with nothing but these headers compiles.
pub(crate) fn has(headers: &[&str], probe: &Path) -> bool {
    let includes: String = headers.iter().map(|header| format!("#include <{header}>\n")).collect();
    std::fs::write(probe, includes).unwrap();
    compiler(probe).arg("-fsyntax-only").arg(probe).output().is_ok_and(|output| output.status.success())
}

pub(crate) struct Program<'a> {
    pub(crate) source: &'a Path,
    pub(crate) include: PathBuf,
    /// For the compiler, and for the linker after the library.
    pub(crate) options: Vec<String>,
}

impl Program<'_> {
    pub(crate) fn build(&self, to: &Path) {
        let mut command = compiler(self.source);
        command.arg(self.source).arg("-o").arg(to);
        command.arg("-I").arg(home().join("include")).arg("-I").arg(&self.include);
        let output =
            command.arg(library()).args(&self.options).args(["-lpthread", "-ldl", "-lm"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}:\n{said}", self.source.display());
    }
}
