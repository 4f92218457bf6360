//! Compiled programs under QEMU, with the plugin of `research/sim-qemu`: C++ containers, the same lookups, and an
//! unmodified redis-server.
//!
//! What is needed is looked for when it is needed: QEMU itself (Debian's package `qemu-user`), the plugin beside
//! this program, a compiler. Whatever is missing is named with what to do; guests in this process need none of it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sim::{Measurement, MeasurementError};
use sim_qemu::cost::Cost;
use sim_qemu::guests::{self, FastHash, GuestError, Index, Simulated, Tools};
use sim_qemu::run::Run as GuestRun;
use sim_qemu::trace;

use crate::configuration::Configuration;
use crate::guest::{Container, Distribution, Hash, Variant};

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
    /// A program cannot have such a table in front.
    #[error(
        "{container} has no variant {variant}: its items may move, so there are alone and slb, its own buffer"
    )]
    Variant {
        /// The program.
        container: &'static str,
        /// What it cannot have.
        variant: &'static str,
    },
    /// Its program does only this.
    #[error("{container} has values of 64 bytes, and xxh3 for the table in front")]
    Fixed {
        /// The program.
        container: &'static str,
    },
    /// It ended badly.
    #[error("the guest failed ({status}): {said}")]
    Failed {
        /// How it ended.
        status: String,
        /// What it said.
        said: String,
    },
    /// It ended well, but not all that it did was written to the trace.
    #[error("{said}")]
    Trace {
        /// What the plugin said.
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

    /// What a run's numbers depend on besides its configuration: the builds of QEMU, plugin and guest, as a name.
    ///
    /// # Errors
    /// If the guest is not there, or does not compile.
    pub fn identity(&self, container: Container) -> Result<String, QemuError> {
        let index = index_of(container);
        let program = self.tools.program(index, &compiled())?;
        Ok(self.tools.identity(index, &program)?)
    }

    /// Runs a configuration: what was measured, and what that took.
    ///
    /// # Errors
    /// If its program is not there, does not compile, or fails.
    pub fn run(&self, configuration: &Configuration) -> Result<(Measurement, Cost), QemuError> {
        self.launch(configuration, None)
    }

    /// The same, with a trace of every window, written to `champsim`: 64 bytes an instruction.
    ///
    /// # Errors
    /// As [`Qemu::run`], and if the trace cannot be written.
    pub fn record(
        &self,
        configuration: &Configuration,
        champsim: &Path,
    ) -> Result<(Measurement, Cost), QemuError> {
        self.launch(configuration, Some(champsim))
    }

    fn launch(
        &self,
        configuration: &Configuration,
        champsim: Option<&Path>,
    ) -> Result<(Measurement, Cost), QemuError> {
        let run = translated(configuration)?;
        let folder = tempfile::tempdir().map_err(io_error(std::env::temp_dir()))?;
        // Compiled once for all runs.
        let guest = self.tools.program(run.index, &compiled())?;
        let requests = folder.path().join("requests");
        run.write_requests(&requests)?;
        let [profile, out, cost] =
            ["machine.toml", "measurement.json", "cost.json"].map(|name| folder.path().join(name));
        let machine = configuration.machine.to_toml();
        let machine = machine.map_err(|error| MeasurementError::Syntax(error.to_string()))?;
        std::fs::write(&profile, machine).map_err(io_error(profile.clone()))?;
        let huge_pages = configuration.huge_pages;
        let simulated =
            Simulated { huge_pages, cost: Some(&cost), champsim, ..Simulated::new(&profile, &out) };
        let output = self
            .tools
            .command(&guest, &requests, &run, &simulated)?
            .stdin(Stdio::null())
            .output()
            .map_err(io_error(self.tools.qemu.clone()))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Err(match self.tools.refusal(&said) {
                Some(refused) => refused.into(),
                None => QemuError::Failed { status: output.status.to_string(), said },
            });
        }
        // The guest has ended well, and does not know of the trace.
        if said.contains(trace::INCOMPLETE) {
            return Err(QemuError::Trace { said });
        }
        Ok((Measurement::read(&out)?, Cost::read(&cost).map_err(io_error(cost.clone()))?))
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

fn index_of(container: Container) -> Index {
    match container {
        Container::UnorderedMap => Index::UnorderedMap,
        Container::DenseHashMap => Index::DenseHashMap,
        Container::Map => Index::Map,
        Container::BTree => Index::BtreeMap,
        Container::Redis => Index::Redis,
        Container::Cuckoo => Index::Cuckoo,
        Container::Art => Index::Art,
        Container::ArtReorganised => Index::ArtReorganised,
        Container::Cache => Index::Cache,
    }
}

fn translated(configuration: &Configuration) -> Result<GuestRun, QemuError> {
    let index = index_of(configuration.container);
    let variant = match configuration.variant {
        Variant::Alone => guests::Variant::Alone,
        Variant::Known => return Err(QemuError::Unknown { what: "variant with known addresses" }),
        // Its addresses are in registers, which a plugin does not see.
        Variant::SlbBatches | Variant::StltBatches => {
            return Err(QemuError::Unknown { what: "variant that prefetches" });
        }
        Variant::Slb => guests::Variant::Slb,
        Variant::StltSw => guests::Variant::StltSw,
        Variant::StltVa => guests::Variant::StltVa,
        Variant::Stlt => guests::Variant::Stlt,
    };
    if !index.has(variant) {
        return Err(QemuError::Variant {
            container: configuration.container.name(),
            variant: variant.name(),
        });
    }
    let mut run = GuestRun::new(index, variant, configuration.keys.into());
    run.distribution = match configuration.distribution {
        Distribution::Zipf => guests::Distribution::Zipf,
        Distribution::Plain => return Err(QemuError::Unknown { what: "plain zipf" }),
        Distribution::Latest => guests::Distribution::Latest,
        Distribution::Uniform => guests::Distribution::Uniform,
    };
    let lengths = configuration.lengths;
    run.value_bytes = configuration.value_bytes;
    run.seed = configuration.seed;
    run.load = lengths.replayed();
    run.functional = lengths.warm_up - run.load;
    run.detailed = lengths.settle;
    (run.window, run.windows) = (lengths.window, lengths.windows.into());
    if let Some(table) = configuration.table {
        run.rows = table.bytes / 16;
        run.ways = table.ways.into();
        // A cache has this project's table in front, which is one; the paper's are two.
        let is_cache = configuration.container == Container::Cache;
        run.slb_bytes = if is_cache { table.bytes } else { table.bytes / SLB_PARTS };
        run.slb_paper = !is_cache;
        run.hash = match table.hash {
            Hash::Xxh3 => FastHash::Xxh3,
            Hash::Xxh64 => FastHash::Xxh64,
            Hash::Murmur => FastHash::Murmur,
            Hash::Djb2 => FastHash::Djb2,
            Hash::Sip => FastHash::Sip,
        };
    }
    let fixed = run.value_bytes == 64 && (run.hash == FastHash::Xxh3 || configuration.table.is_none());
    if index.is_own() && !fixed {
        return Err(QemuError::Fixed { container: configuration.container.name() });
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use sim::Profile;

    use super::*;
    use crate::configuration::{Guest, Lengths, Table};

    #[test]
    fn where_qemu_refuses_the_plugin_the_error_says_which_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, plugin) = (folder.path().join("plugin.c"), folder.path().join("plugin.so"));
        // No QEMU takes it.
        let text = "int qemu_plugin_version = 1000;\nint qemu_plugin_install(void) { return 0; }\n";
        std::fs::write(&source, text).expect("written");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut compile = Command::new(compiler);
        let compiled = compile.args(["-shared", "-fPIC", "-o"]).arg(&plugin).arg(&source).output();
        let found = Qemu::find();
        if compiled.is_err() || matches!(found, Err(QemuError::Guest(GuestError::Qemu))) {
            outside::skip("no C compiler, or no QEMU");
            return;
        }
        let mut qemu = found.expect("cargo builds the plugin beside this test");
        qemu.tools.plugin = plugin;
        let (asked, table) =
            ((100, 64, Distribution::Zipf), Table { bytes: 1 << 14, ways: 4, hash: Hash::Xxh3 });
        let lengths = Lengths { warm_up: 10, functional: 10, settle: 1, windows: 1, window: 10 };
        let (container, machine) = (Container::UnorderedMap, Profile::stlt_paper());
        let configuration =
            Configuration::new(Guest::Qemu, container, Variant::Alone, asked, table, lengths, 1, &machine);
        let error = qemu.run(&configuration.expect("legal")).expect_err("it takes none of these");
        assert!(matches!(error, QemuError::Guest(GuestError::Refused { .. })), "{error}");
        let error = error.to_string();
        for part in ["QEMU 7.2 to 8.2", "QEMU 9.1 or later", "plugin-v3", "requires API version 1000"] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}
