//! The guests of this project: compiled when they are asked for, started under QEMU with the plugin.
//!
//! ```text
//!   Tools::find()                 qemu-x86_64, the plugin and the library beside this program: or what to install
//!   tools.program(index, folder)  c++ kv.cpp ...                      once an index; our own are programs already
//!   run.write_requests(path)        what research/workload draws          once a distribution
//!   tools.command(...)            qemu-x86_64 -cpu Nehalem -plugin libsim_qemu.so,... kv requests ...
//! ```
//!
//! The sources are part of this library, so a program that is installed without the repository can compile
//! them, too. What is run of them, and on which requests, is a [`Run`].
//!
//! What a guest needs on Debian: `qemu-user`, `g++`, `libxxhash-dev`; for `dense_hash_map` also
//! `libsparsehash-dev`, for `btree_map` also `libabsl-dev` and `pkg-config`, for `redis` also `redis-server`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use lookaside_capi::HEADERS;

use crate::asked::Container;
use crate::error::{GuestError, io_error};
use crate::parts::part;
use crate::run::Run;

const SOURCES: [(&str, &str); 11] = [
    ("kv.cpp", include_str!("../guests/kv.cpp")),
    ("redis.cpp", include_str!("../guests/redis.cpp")),
    ("driver.hpp", include_str!("../guests/driver.hpp")),
    ("index.hpp", include_str!("../guests/index.hpp")),
    ("record.hpp", include_str!("../guests/record.hpp")),
    ("fast_path.hpp", include_str!("../guests/fast_path.hpp")),
    ("stlt.h", include_str!("../guests/stlt.h")),
    ("stlt_anywhere.h", include_str!("../guests/stlt_anywhere.h")),
    ("stlt_software.h", include_str!("../guests/stlt_software.h")),
    ("lookaside.h", include_str!("../../../crates/capi/include/lookaside.h")),
    ("lookaside_inline.h", include_str!("../../../crates/capi/include/lookaside_inline.h")),
];

/// The program of our own indexes.
const OWN_INDEX: &str = "lookaside-own-index";

/// The processor that QEMU shows the guest: the instruction set of the STLT paper's machine.
pub const PROCESSOR: &str = "Nehalem";

/// What it takes to compile and run guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// `qemu-x86_64`.
    pub qemu: PathBuf,
    /// `libsim_qemu.so`.
    pub plugin: PathBuf,
    /// `liblookaside_capi.a`.
    pub library: PathBuf,
}

impl Tools {
    /// Looks for QEMU on the path (or where LOOKASIDE_QEMU says), and for our own parts beside the running
    /// program.
    ///
    /// # Errors
    /// What is missing, or older than its sources, and what to do about it.
    pub fn find() -> Result<Tools, GuestError> {
        let qemu = program("LOOKASIDE_QEMU", "qemu-x86_64").ok_or(GuestError::Qemu)?;
        Ok(Tools { qemu, plugin: part("libsim_qemu.so")?, library: part("liblookaside_capi.a")? })
    }

    /// The program of an index: compiled into `folder` if it is not there already, or beside this one.
    ///
    /// # Errors
    /// As [`Tools::compile`], and if our own program is not there, or older than its sources.
    pub fn program(&self, container: Container, folder: &Path) -> Result<PathBuf, GuestError> {
        if container.is_own() { part(OWN_INDEX) } else { self.compile(container, folder) }
    }

    /// What makes a run's numbers besides its configuration: a hash of QEMU, of the plugin, of the guest's `program`,
    /// and of the server that it is preloaded into. Another build of any of them is another name.
    ///
    /// # Errors
    /// If one of them cannot be read, or is not there.
    pub fn identity(&self, container: Container, program: &Path) -> Result<String, GuestError> {
        let mut files = vec![self.qemu.clone(), self.plugin.clone(), program.to_owned()];
        if container == Container::Redis {
            files.push(redis_server()?);
        }
        let mut hashes = Vec::new();
        for file in files {
            let bytes = std::fs::read(&file).map_err(io_error(&file))?;
            hashes.extend(xxh3(&bytes).to_le_bytes());
        }
        Ok(format!("{:016x}", xxh3(&hashes)))
    }

    /// Compiles the guest of an index that is not our own into `folder`, unless it is there already; its path. A
    /// compiler other than `c++` is named in CXX.
    ///
    /// # Errors
    /// If the compiler or a package is missing, the library is of other headers, or the folder cannot be written.
    pub fn compile(&self, container: Container, folder: &Path) -> Result<PathBuf, GuestError> {
        let sources = folder.join("sources");
        std::fs::create_dir_all(&sources).map_err(io_error(&sources))?;
        let mut text = Vec::new();
        for (name, source) in SOURCES {
            text.extend_from_slice(source.as_bytes());
            let path = sources.join(name);
            // Others may compile from them at this moment.
            if std::fs::read(&path).is_ok_and(|there| there == source.as_bytes()) {
                continue;
            }
            let beside = sources.join(format!("{name}.{}", own_number()));
            std::fs::write(&beside, source).map_err(io_error(&beside))?;
            std::fs::rename(&beside, &path).map_err(io_error(&path))?;
        }
        let library = std::fs::read(&self.library).map_err(io_error(&self.library))?;
        text.extend_from_slice(&library);
        let program = folder.join(format!("{}-{:016x}", container.name(), xxh3(&text)));
        if program.is_file() {
            return Ok(program);
        }
        // A program of that name was made of these very headers and this library.
        if !library.windows(HEADERS.len()).any(|bytes| bytes == HEADERS) {
            return Err(GuestError::Headers(self.library.clone()));
        }
        let beside = folder.join(format!("{}.{}", container.name(), own_number()));
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
        let mut command = Command::new(compiler);
        // The guest is what an average distribution would ship: no instructions beyond the baseline.
        command.args(["-std=c++17", "-O2", "-g", "-Wall", "-Wextra"]).arg("-I").arg(&sources);
        if container == Container::Redis {
            command.args(["-shared", "-fPIC"]).arg(sources.join("redis.cpp"));
        } else {
            let index = if container == Container::BTree { "btree_map" } else { container.name() };
            command.arg(format!("-DINDEX={index}")).arg(sources.join("kv.cpp"));
        }
        command.arg("-o").arg(&beside).arg(&self.library);
        if container == Container::BTree {
            let libraries = Command::new("pkg-config").args(["--libs", "absl_btree"]).output();
            let libraries = libraries.map(|output| output.stdout).unwrap_or_default();
            command.args(String::from_utf8_lossy(&libraries).split_whitespace());
        }
        command.args(["-lpthread", "-ldl", "-lm"]);
        let compile_error = |said| GuestError::Compile { container: container.name(), said };
        let output = command.output().map_err(|error| compile_error(error.to_string()))?;
        if !output.status.success() {
            return Err(compile_error(String::from_utf8_lossy(&output.stderr).into_owned()));
        }
        std::fs::rename(&beside, &program).map_err(io_error(&program))?;
        Ok(program)
    }

    /// A guest under QEMU with the plugin, on a machine (a file, or the name of a built-in one). The measurement goes
    /// to `out`. For Redis, the paths may hold no spaces.
    ///
    /// # Errors
    /// If `profile` or `out` has a comma; if Redis is to run, and is not there.
    pub fn command(
        &self,
        guest: &Path,
        requests: &Path,
        run: &Run,
        profile: &Path,
        out: &Path,
    ) -> Result<Command, GuestError> {
        let mut plugin = self.plugin.as_os_str().to_owned();
        for (name, path) in [("profile", profile), ("out", out)] {
            if path.as_os_str().as_encoded_bytes().contains(&b',') {
                return Err(GuestError::Comma(path.to_owned()));
            }
            plugin.push(format!(",{name}="));
            plugin.push(path);
        }
        let mut command = Command::new(&self.qemu);
        // What the kernel gives a program as random is drawn from the seed.
        command.args(["-cpu", PROCESSOR, "-seed", &run.seed.to_string(), "-plugin"]).arg(plugin);
        command.env_clear();
        let arguments = run.arguments(requests);
        if run.container == Container::Redis {
            redis(&mut command, guest, &arguments)?;
        } else {
            command.arg(guest).args(arguments);
        }
        Ok(command)
    }

    /// What `said`, on standard error, means if QEMU did not even begin: it takes plugins of other versions.
    #[must_use]
    pub fn refusal(&self, said: &str) -> Option<GuestError> {
        let refused = said.contains("plugin requires API version");
        refused.then(|| GuestError::Refused { qemu: self.qemu.clone(), said: said.to_owned() })
    }
}

fn redis_server() -> Result<PathBuf, GuestError> {
    program("LOOKASIDE_REDIS", "redis-server").ok_or(GuestError::Redis)
}

/// The program that a variable of the environment names; without it, one on the path.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(named) => Some(PathBuf::from(named)).filter(|path| path.is_file()),
        None => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(name))
            .find(|path| path.is_file()),
    }
}

/// What makes a guest of a redis-server: it is preloaded, and told what to do, in the environment. The server insists
/// on listening somewhere until then.
fn redis(command: &mut Command, guest: &Path, arguments: &[OsString]) -> Result<(), GuestError> {
    let server = redis_server()?;
    let socket = std::env::temp_dir().join(format!("lookaside-redis-{}", own_number()));
    let variable = |name: &str, value: &OsStr| {
        let mut variable = OsString::from(name);
        variable.push("=");
        variable.push(value);
        variable
    };
    command.arg("-E").arg(variable("LD_PRELOAD", guest.as_os_str()));
    command.arg("-E").arg(variable("GUEST", &arguments.join(OsStr::new(" "))));
    command.arg("-E").arg(variable("GUEST_SOCKET", socket.as_os_str()));
    command.arg(server).args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(socket);
    Ok(())
}

/// A number for a file that no other thread or process has. Always as long: where a program's stack begins depends on
/// the lengths of its arguments, and so does what it costs.
fn own_number() -> String {
    static NUMBERS: AtomicU64 = AtomicU64::new(0);
    format!("{:010}-{:06}", std::process::id(), NUMBERS.fetch_add(1, Ordering::Relaxed))
}

fn xxh3(bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked::Variant;

    #[test]
    fn another_build_has_another_identity() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).expect("written");
            path
        };
        let identity = |qemu: &str, plugin: &str, guest: &str| {
            let (qemu, plugin) = (file("qemu", qemu), file("plugin", plugin));
            let tools = Tools { qemu, plugin, library: PathBuf::from("/nowhere") };
            tools.identity(Container::Map, &file("guest", guest)).expect("all are there")
        };
        let first = identity("a", "b", "c");
        assert_eq!(first.len(), 16);
        assert_eq!(first, identity("a", "b", "c"));
        for other in [
            identity("x", "b", "c"),
            identity("a", "x", "c"),
            identity("a", "b", "x"),
            identity("b", "a", "c"),
        ] {
            assert_ne!(first, other);
        }
        let absent = Tools { qemu: file("qemu", "a"), plugin: "/nowhere".into(), library: "/nowhere".into() };
        let error = absent.identity(Container::Map, &file("guest", "c")).expect_err("no plugin");
        assert!(matches!(error, GuestError::Io { .. }), "{error}");
    }

    #[test]
    fn a_library_of_other_headers_is_not_linked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("liblookaside_capi.a");
        let tools = Tools { qemu: "qemu".into(), plugin: "plugin.so".into(), library: path.clone() };
        std::fs::write(&path, b"!<arch>\nan object of other days: lookaside.h is: 01234567")
            .expect("written");
        let error = tools.compile(Container::Map, folder.path()).expect_err("not this");
        assert!(matches!(&error, GuestError::Headers(which) if *which == path), "{error}");
        let said = error.to_string();
        for part in ["liblookaside_capi.a", "cargo build --release --workspace"] {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }

    #[test]
    fn the_plugin_is_told_where_to_write_and_no_path_is_cut() {
        let tools = Tools { qemu: "qemu".into(), plugin: "plugin.so".into(), library: "/nowhere".into() };
        let run = Run::new(Container::Map, Variant::Alone, 1000);
        let told = |profile, out| {
            let (guest, requests) = (Path::new("guest"), Path::new("requests"));
            let command = tools.command(guest, requests, &run, Path::new(profile), Path::new(out))?;
            let after = command.get_args().skip_while(|argument| *argument != "-plugin").nth(1);
            Ok::<_, GuestError>(after.expect("a plugin").to_string_lossy().into_owned())
        };
        assert_eq!(told("a.toml", "b.json").expect("no commas"), "plugin.so,profile=a.toml,out=b.json");
        for (profile, out) in [("a,b", "out.json"), ("machine.toml", "a,b")] {
            assert!(matches!(told(profile, out), Err(GuestError::Comma(path)) if path == Path::new("a,b")));
        }
    }
}
