//! The pages under engines that take their memory from the C library.
//!
//! Our tables ask the kernel for huge pages. The foreign ones call the allocator, which by default does not; a comparison
//! of engines would then be one of page sizes, which on a virtual machine is a factor of two. The GNU C library asks for
//! transparent huge pages too where `glibc.malloc.hugetlb=1` is set when the program starts. Where one heap holds the
//! entries of all that is compared, as with a table in front of an index and without, it stays as programs have it.
//!
//! Either setting lets it give every large allocation back to the kernel when it is freed, so that the memory of one engine is
//! not counted as the next one's.

use std::env;
use std::process::Command;

/// The variable that the GNU C library reads when a program starts.
const VARIABLE: &str = "GLIBC_TUNABLES";

/// The pages that the allocator takes memory in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Malloc {
    /// Transparent huge pages.
    Huge,
    /// As the library does by itself.
    Plain,
}

impl Malloc {
    fn tunables(self) -> &'static str {
        match self {
            Malloc::Huge => {
                "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072"
            }
            Malloc::Plain => "glibc.malloc.mmap_threshold=131072:glibc.malloc.trim_threshold=131072",
        }
    }

    /// The words for a result's provenance.
    #[must_use]
    pub fn describe(self) -> String {
        format!("system ({VARIABLE}={})", self.tunables())
    }

    /// This program again, with the same arguments and the allocator so set; `None` if it already is.
    ///
    /// # Errors
    /// Where the program's own path cannot be found.
    pub fn restart(self) -> std::io::Result<Option<Command>> {
        if env::var(VARIABLE).as_deref() == Ok(self.tunables()) {
            return Ok(None);
        }
        let mut command = Command::new(env::current_exe()?);
        command.args(env::args_os().skip(1)).env(VARIABLE, self.tunables());
        Ok(Some(command))
    }
}
