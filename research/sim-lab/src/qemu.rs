//! Compiled programs under QEMU, with the plugin of `research/sim-qemu`: C++ containers, the same lookups, and an
//! unmodified redis-server.
//!
//! What is needed is looked for when it is needed: QEMU itself (Debian's package `qemu-user`), the plugin beside
//! this program, a compiler. Whatever is missing is named with what to do; guests in this process need none of it.

use std::path::PathBuf;
use std::process::Stdio;

use sim::Measurement;
use sim_qemu::guests::Tools;
use sim_qemu::run::Run as GuestRun;

use crate::configuration::Configuration;
use crate::error::RunError;
use crate::guest::{Container, Hash, Variant};

/// The part of an SLB that is its cache table.
const SLB_PARTS: u64 = 5;

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
    pub fn find() -> Result<Qemu, RunError> {
        Ok(Qemu { tools: Tools::find()? })
    }

    /// What a run's numbers depend on besides its configuration: the builds of QEMU, plugin and guest, as a name.
    ///
    /// # Errors
    /// If the guest is not there, or does not compile.
    pub fn identity(&self, container: Container) -> Result<String, RunError> {
        let program = self.tools.program(container, &compiled())?;
        Ok(self.tools.identity(container, &program)?)
    }

    /// Runs a configuration: what was measured.
    ///
    /// # Errors
    /// If its program is not there, does not compile, or fails.
    pub fn run(&self, configuration: &Configuration) -> Result<Measurement, RunError> {
        let run = translated(configuration)?;
        let folder = tempfile::tempdir().map_err(RunError::io(std::env::temp_dir()))?;
        // Compiled once for all runs.
        let guest = self.tools.program(run.container, &compiled())?;
        let requests = folder.path().join("requests");
        run.write_requests(&requests)?;
        let [profile, out] = ["machine.toml", "measurement.json"].map(|name| folder.path().join(name));
        std::fs::write(&profile, configuration.machine.to_toml()?).map_err(RunError::io(&profile))?;
        let output = self
            .tools
            .command(&guest, &requests, &run, &profile, &out)?
            .stdin(Stdio::null())
            .output()
            .map_err(RunError::io(&self.tools.qemu))?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if !output.status.success() {
            return Err(match self.tools.refusal(&said) {
                Some(refused) => refused.into(),
                None => RunError::Failed { status: output.status.to_string(), said },
            });
        }
        Ok(Measurement {
            guest: run.container.name().into(),
            variant: run.variant.name().into(),
            seed: run.seed,
            ..Measurement::read(&out)?
        })
    }
}

/// Where compiled guests are kept: beside this program, which they belong to.
fn compiled() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.with_file_name("simulated-guests")
}

fn translated(configuration: &Configuration) -> Result<GuestRun, RunError> {
    let (container, variant) = (configuration.container, configuration.variant);
    if !Variant::COMPILED.contains(&variant) {
        return Err(RunError::Unknown(variant.name()));
    }
    let mut run = GuestRun::new(container, variant, configuration.keys.into());
    run.distribution = configuration.distribution;
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
        run.slb_bytes = table.bytes / SLB_PARTS;
        run.slb_paper = true;
        run.hash = table.hash;
    }
    let fixed = run.value_bytes == 64 && (run.hash == Hash::Xxh3 || configuration.table.is_none());
    if container.is_own() && !fixed {
        return Err(RunError::Fixed(container.name()));
    }
    Ok(run)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use sim::Profile;
    use sim_qemu::GuestError;

    use super::*;
    use crate::configuration::{Guest, Lengths, Table};
    use crate::guest::Distribution;

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
        if compiled.is_err() || matches!(found, Err(RunError::Compiled(GuestError::Qemu))) {
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
        assert!(matches!(error, RunError::Compiled(GuestError::Refused { .. })), "{error}");
        let error = error.to_string();
        for part in ["QEMU 7.2 to 8.2", "QEMU 9.1 or later", "plugin-v3", "requires API version 1000"] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }
}
