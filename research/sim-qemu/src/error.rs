//! Why a guest cannot be run, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use workload::DistributionError;

use crate::api;

/// Why a guest cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// QEMU is not there.
    #[error(
        "qemu-x86_64 is not there: install Debian's package qemu-user (7.2), or name it in LOOKASIDE_QEMU"
    )]
    Qemu,
    /// Redis is not there.
    #[error(
        "redis-server is not there: install Debian's package redis-server (7.0.15), or name it in LOOKASIDE_REDIS"
    )]
    Redis,
    /// One of our own files is not there.
    #[error("{name} is not beside {}: build the workspace (cargo build --release --workspace)", beside.display())]
    Part {
        /// Which.
        name: &'static str,
        /// Where it was looked for.
        beside: PathBuf,
    },
    /// One of our own files was made of sources that have changed since.
    #[error(
        "{} is older than {}, which it is made of: build the workspace (cargo build --release --workspace)",
        path.display(), newer.display()
    )]
    Stale {
        /// Which.
        path: PathBuf,
        /// The source.
        newer: PathBuf,
    },
    /// The library would be linked with a guest that has other headers.
    #[error(
        "{} was built with other headers than this program has for its guests: build the workspace \
         (cargo build --release --workspace)",
        .0.display()
    )]
    Headers(PathBuf),
    /// A guest did not compile.
    #[error(
        "{container} does not compile: install g++, libxxhash-dev, and for dense_hash_map libsparsehash-dev, \
         for btree libabsl-dev and pkg-config\n{said}"
    )]
    Compile {
        /// Which.
        container: &'static str,
        /// What the compiler said.
        said: String,
    },
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        error: io::Error,
    },
    /// The distribution cannot be.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
    /// QEMU takes plugins of other versions than this one.
    #[error(
        "{} refuses the plugin, which is for {}; {}\n{said}",
        qemu.display(), api::RELEASES, api::OTHER_RELEASES
    )]
    Refused {
        /// Which QEMU.
        qemu: PathBuf,
        /// What it said.
        said: String,
    },
    /// QEMU cuts the plugin's arguments at commas.
    #[error("{}: QEMU takes no path with a comma for its plugin", .0.display())]
    Comma(PathBuf),
    /// A request is 31 bits.
    #[error("{0} records are too many for a guest: 2^31 at most, with those that are inserted")]
    Records(u64),
}

pub(crate) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> GuestError {
    let path = path.to_owned();
    |error| GuestError::Io { path, error }
}
