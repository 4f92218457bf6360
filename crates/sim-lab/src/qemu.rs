//! Compiled programs under QEMU, with the plugin of `crates/sim-qemu`: C++ containers, the same lookups, and an unmodified
//! redis-server.
//!
//! What is needed is looked for when it is needed: QEMU itself (Debian's package `qemu-user`), the plugin beside
//! this program, a compiler. Whatever is missing is named with what to do; guests in this process need none of it.

use std::path::PathBuf;
use std::process::Stdio;

use sim::{Measurement, MeasurementError};
use sim_qemu::guests::{self, FastHash, GuestError, Index, Tools};

use crate::configuration::Configuration;
use crate::guest::{Container, Distribution, Hash, Variant};

/// Requests with the caches simulated; those of the warm-up before them only fill the table.
const FUNCTIONAL: u64 = 1_000_000;
/// The part of an SLB that is its cache table.
const SLB_PARTS: u64 = 5;

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QemuError {
    /// Something is missing, or does not compile.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// There is no such program.
    #[error("there is no {what} for QEMU: run it with --guest in-process")]
    Unknown {
        /// What is not there.
        what: &'static str,
    },
    /// It ended badly.
    #[error("the guest failed ({status}): {said}")]
    Failed {
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// The plugin's file cannot be read.
    #[error(transparent)]
    Measurement(#[from] MeasurementError),
    /// A file could not be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
}

/// QEMU and what belongs to it.
#[derive(Debug, Clone)]
pub struct Qemu {
    tools: Tools,
}

impl Qemu {
    /// Looks for QEMU and the plugin.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    pub fn find() -> Result<Qemu, QemuError> {
        Ok(Qemu { tools: Tools::find()? })
    }

    /// Runs a configuration.
    ///
    /// # Errors
    /// If its program is not there, does not compile, or fails.
    pub fn run(&self, configuration: &Configuration) -> Result<Measurement, QemuError> {
        let run = translated(configuration)?;
        let folder = tempfile::tempdir().map_err(io_error(std::env::temp_dir()))?;
        // Compiled once for all runs.
        let guest = self.tools.compile(run.index, &compiled())?;
        let requests = folder.path().join("requests");
        run.write_requests(&requests)?;
        let (profile, out) = (folder.path().join("machine.toml"), folder.path().join("measurement.json"));
        let machine = configuration.machine.to_toml();
        let machine = machine.map_err(|error| MeasurementError::Syntax(error.to_string()))?;
        std::fs::write(&profile, machine).map_err(io_error(profile.clone()))?;
        let output = self
            .tools
            .command(&guest, &requests, &run, &profile.display().to_string(), &out)?
            .stdin(Stdio::null())
            .output()
            .map_err(io_error(self.tools.qemu.clone()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(QemuError::Failed { status: output.status.to_string(), said });
        }
        Ok(Measurement::read(&out)?)
    }
}

fn io_error(path: PathBuf) -> impl FnOnce(std::io::Error) -> QemuError {
    |error| QemuError::Io { path, error }
}

/// Where compiled guests are kept: beside this program, which they belong to.
fn compiled() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.with_file_name("simulated-guests")
}

fn translated(configuration: &Configuration) -> Result<guests::Run, QemuError> {
    let index = match configuration.container {
        Container::UnorderedMap => Index::UnorderedMap,
        Container::DenseHashMap => Index::DenseHashMap,
        Container::Map => Index::Map,
        Container::BTree => Index::BtreeMap,
        Container::Redis => Index::Redis,
    };
    let variant = match configuration.variant {
        Variant::Alone => guests::Variant::Alone,
        Variant::Known => return Err(QemuError::Unknown { what: "variant with known addresses" }),
        Variant::Slb => guests::Variant::Slb,
        Variant::StltSw => guests::Variant::StltSw,
        Variant::StltVa => guests::Variant::StltVa,
        Variant::Stlt => guests::Variant::Stlt,
    };
    let mut run = guests::Run::new(index, variant, configuration.keys.into());
    run.distribution = match configuration.distribution {
        Distribution::Zipf => guests::Distribution::Zipf,
        Distribution::Latest => guests::Distribution::Latest,
        Distribution::Uniform => guests::Distribution::Uniform,
    };
    let lengths = configuration.lengths;
    run.value_bytes = configuration.value_bytes;
    run.seed = configuration.seed;
    run.functional = lengths.warm_up.min(FUNCTIONAL);
    run.load = lengths.warm_up - run.functional;
    run.detailed = lengths.settle;
    (run.window, run.windows) = (lengths.window, lengths.windows.into());
    if let Some(table) = configuration.table {
        run.rows = table.bytes / 16;
        run.ways = table.ways.into();
        run.slb_bytes = table.bytes / SLB_PARTS;
        run.slb_paper = true;
        run.hash = match table.hash {
            Hash::Xxh3 => FastHash::Xxh3,
            Hash::Xxh64 => FastHash::Xxh64,
            Hash::Murmur => FastHash::Murmur,
            Hash::Djb2 => FastHash::Djb2,
            Hash::Sip => FastHash::Sip,
        };
    }
    Ok(run)
}
