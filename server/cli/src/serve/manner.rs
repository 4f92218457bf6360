//! Whose manners the server starts with: its own, or memcached's, for whose start scripts and test suites it stands in.
//!
//! memcached listens on all addresses by itself, writes nothing unless `-v` is given, and its name and its version are
//! what scripts look for in `-h` and `-V`.

use std::ffi::OsStr;
use std::path::Path;

/// Whose manners the server starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Lookaside,
    /// By the program's name, or by `--compat`.
    Memcached,
}

impl Manner {
    /// By what the program was started as: a path of a file or of a link.
    pub(super) fn of(program: &OsStr) -> Manner {
        match Path::new(program).file_name() {
            Some(name) if name == "memcached" => Manner::Memcached,
            _ => Manner::Lookaside,
        }
    }

    /// What it calls itself.
    pub(super) fn program(self) -> &'static str {
        match self {
            Manner::Lookaside => "lookaside",
            Manner::Memcached => "memcached",
        }
    }

    /// What it says its version is: as memcached, the release whose behaviour it has.
    pub(super) fn version(self) -> &'static str {
        match self {
            Manner::Lookaside => env!("CARGO_PKG_VERSION"),
            Manner::Memcached => server::VERSION,
        }
    }

    /// The exit status for a command line that cannot be.
    pub(super) fn misuse(self) -> u8 {
        match self {
            Manner::Lookaside => 2,
            Manner::Memcached => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_counts_and_not_the_folder() {
        for program in ["memcached", "/usr/bin/memcached", "./memcached"] {
            assert_eq!(Manner::of(program.as_ref()), Manner::Memcached, "{program}");
        }
        for program in ["lookaside", "/memcached/lookaside", "memcached-tool", ""] {
            assert_eq!(Manner::of(program.as_ref()), Manner::Lookaside, "{program}");
        }
        assert_eq!(Manner::Memcached.version(), "1.6.45");
    }
}
