//! Many runs, side by side, each in a process of its own: memory is given back, and one that dies takes no other with
//! it. What is finished is kept at once ([`crate::store`]).

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

use crate::configuration::Configuration;
use crate::run::run;
use crate::store::Store;

/// How glibc's allocator is told to ask for large pages; others do not know it.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Where runs take place.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process, on threads.
    Here,
    /// In processes of this program, which is `lookaside-lab`: `PROGRAM sim run --configuration FILE --store FOLDER`.
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
    let mut swept = Swept { kept: configurations.len() - missing.len(), ..Swept::default() };
    progress.inc_length(missing.len() as u64);
    let outcomes = side_by_side(&missing, jobs, |configuration| {
        progress.set_message(configuration.describe());
        let outcome = match place {
            Place::Here => run(configuration).and_then(|run| store.put(&run)).map_err(|why| why.to_string()),
            Place::Program(program) => in_process(program, configuration, store),
        };
        progress.inc(1);
        outcome
    });
    for (configuration, outcome) in missing.into_iter().zip(outcomes) {
        match outcome {
            Ok(_) => swept.made += 1,
            Err(reason) => swept.failed.push((configuration.clone(), reason)),
        }
    }
    swept
}

/// Makes a run in another process: where it is kept, or what that process said.
fn in_process(program: &Path, configuration: &Configuration, store: &Store) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("{}: {error}", program.display());
    let order = tempfile::NamedTempFile::new_in(store.folder()).map_err(failed)?;
    serde_json::to_writer(&order, configuration).map_err(|error| failed(error.into()))?;
    let output = Command::new(program)
        .args(["sim", "run", "--configuration"])
        .arg(order.path())
        .arg("--store")
        .arg(store.folder())
        // A run jumps about in gigabytes: where the kernel gives large pages to who asks, it takes half the time.
        .envs(std::env::var_os(TUNABLES).is_none().then_some((TUNABLES, "glibc.malloc.hugetlb=1")))
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    if output.status.success() {
        return Ok(store.path(configuration));
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(if said.is_empty() { output.status.to_string() } else { said })
}

/// What comes of each, in their order, so many at a time.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    at_a_time: usize,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.clamp(1, all.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(place) else { return };
                    let result = act(one);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|of| of.0);
    done.into_iter().map(|of| of.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_side_by_side_comes_back_in_order() {
        for at_a_time in [0, 1, 3, 100] {
            assert_eq!(side_by_side(&[3, 1, 2], at_a_time, |number| 10 * number), [30, 10, 20]);
            assert_eq!(side_by_side(&[], at_a_time, |number: &u64| *number), [0; 0]);
        }
    }
}
