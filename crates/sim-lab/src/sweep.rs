//! Many runs, side by side, each in a process of its own: its memory is its own and given back, and one that dies
//! takes no other with it. What is finished is kept at once ([`crate::store`]).

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use indicatif::ProgressBar;

use crate::configuration::Configuration;
use crate::run::{self, RunError};
use crate::store::Store;

/// How glibc's allocator is told to ask for large pages; others do not know it.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Where runs take place.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process, on threads.
    Here,
    /// In processes of this program, which is `lookaside`: `PROGRAM sim run --configuration FILE --store FOLDER`.
    Program(PathBuf),
}

/// What came of a sweep.
#[derive(Debug, Default)]
pub struct Swept {
    /// Runs that were finished before.
    pub kept: usize,
    /// Runs that were made now.
    pub made: usize,
    /// Runs that failed, and why.
    pub failed: Vec<(Configuration, String)>,
}

/// Makes the runs that are not finished yet, `jobs` at a time.
pub fn sweep(
    configurations: &[Configuration],
    store: &Store,
    place: &Place,
    jobs: usize,
    progress: &ProgressBar,
) -> Swept {
    let mut missing: Vec<&Configuration> = Vec::new();
    for configuration in configurations {
        if store.get(configuration).is_none() && !missing.contains(&configuration) {
            missing.push(configuration);
        }
    }
    let swept = Swept { kept: configurations.len() - missing.len(), ..Swept::default() };
    progress.inc_length(missing.len() as u64);
    let queue = Mutex::new(missing.into_iter());
    let swept = Mutex::new(swept);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = locked(&queue).next();
                    let Some(configuration) = next else { return };
                    progress.set_message(configuration.describe());
                    progress.tick();
                    let outcome = match place {
                        Place::Here => run::run(configuration)
                            .and_then(|run| store.put(&run))
                            .map_err(|error| error.to_string()),
                        Place::Program(program) => in_process(program, configuration, store),
                    };
                    let mut swept = locked(&swept);
                    match outcome {
                        Ok(_) => swept.made += 1,
                        Err(reason) => swept.failed.push((configuration.clone(), reason)),
                    }
                    drop(swept);
                    progress.inc(1);
                }
            });
        }
    });
    swept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Nothing is left half done behind these locks.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn in_process(program: &PathBuf, configuration: &Configuration, store: &Store) -> Result<PathBuf, String> {
    let file = write_order(configuration, store).map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(["sim", "run", "--configuration"])
        .arg(file.path())
        .arg("--store")
        .arg(store.folder())
        // A run jumps about in gigabytes: where the kernel gives large pages to who asks, it takes half the time.
        .envs(std::env::var_os(TUNABLES).is_none().then_some((TUNABLES, "glibc.malloc.hugetlb=1")))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(if said.is_empty() { output.status.to_string() } else { said.to_owned() });
    }
    Ok(store.path(configuration))
}

fn write_order(configuration: &Configuration, store: &Store) -> Result<tempfile::NamedTempFile, RunError> {
    let io = |error| RunError::Io { path: store.folder().to_owned(), error };
    let file = tempfile::NamedTempFile::new_in(store.folder()).map_err(io)?;
    serde_json::to_writer(&file, configuration).map_err(|error| io(error.into()))?;
    Ok(file)
}
