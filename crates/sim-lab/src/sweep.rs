//! Many runs, side by side, in processes of their own: memory is given back, and one that dies takes no other with it.
//! What is finished is kept at once ([`crate::store`]).
//!
//! Runs that look the same keys up in the same records go to one process, some at a time, which loads the records for all
//! of them ([`run::run_all`]). If it ends before it has made them, the one it was at has failed, and those behind it go to
//! another.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use indicatif::ProgressBar;

use crate::configuration::Configuration;
use crate::run::{self, RunError};
use crate::store::Store;

/// How glibc's allocator is told to ask for large pages; others do not know it.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Runs that one process makes at most: so many share what one load takes, and the last processes of a sweep end at
/// about the same time.
const TOGETHER: usize = 8;

/// Where runs take place.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process, on threads.
    Here,
    /// In processes of this program, which is `lookaside`: `PROGRAM sim run --configurations FILE --store FOLDER`, which
    /// prints a line when it has kept one.
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
    let queue = Mutex::new(together(missing));
    let swept = Mutex::new(swept);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let next = locked(&queue).pop_front();
                    let Some(mut configurations) = next else { return };
                    let describe = |of: Option<&Configuration>| {
                        progress.set_message(of.map_or_else(String::new, Configuration::describe));
                        progress.tick();
                    };
                    describe(configurations.first());
                    let mut made = 0;
                    let kept = || {
                        made += 1;
                        progress.inc(1);
                        describe(configurations.get(made));
                    };
                    let outcome = match place {
                        Place::Here => here(&configurations, store, kept),
                        Place::Program(program) => in_process(program, &configurations, store, kept),
                    };
                    let mut swept = locked(&swept);
                    swept.made += made;
                    if let Err(reason) = outcome {
                        let mut rest = configurations.split_off(made).into_iter();
                        // If there is none, it has ended badly after its last one, which is kept.
                        if let Some(failed) = rest.next() {
                            swept.failed.push((failed, reason));
                            progress.inc(1);
                        }
                        if rest.len() > 0 {
                            locked(&queue).push_front(rest.collect());
                        }
                    }
                }
            });
        }
    });
    swept.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Those that share a load together, in the order in which the first of them are wanted.
fn together(missing: Vec<&Configuration>) -> VecDeque<Vec<Configuration>> {
    let mut groups: VecDeque<Vec<Configuration>> = VecDeque::new();
    for configuration in missing {
        let has_room = |group: &&mut Vec<Configuration>| {
            group.len() < TOGETHER && group.iter().any(|other| other.shares_load_with(configuration))
        };
        match groups.iter_mut().find(has_room) {
            Some(group) => group.push(configuration.clone()),
            None => groups.push_back(vec![configuration.clone()]),
        }
    }
    groups
}

fn here(configurations: &[Configuration], store: &Store, mut kept: impl FnMut()) -> Result<(), String> {
    let made = run::run_all(configurations, |run| {
        store.put(&run)?;
        kept();
        Ok(())
    });
    made.map_err(|error| error.to_string())
}

/// Nothing is left half done behind these locks.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn in_process(
    program: &Path,
    configurations: &[Configuration],
    store: &Store,
    mut kept: impl FnMut(),
) -> Result<(), String> {
    let file = write_order(configurations, store).map_err(|error| error.to_string())?;
    let failed = |error: std::io::Error| format!("{}: {error}", program.display());
    let mut child = Command::new(program)
        .args(["sim", "run", "--configurations"])
        .arg(file.path())
        .arg("--store")
        .arg(store.folder())
        // A run jumps about in gigabytes: where the kernel gives large pages to who asks, it takes half the time.
        .envs(std::env::var_os(TUNABLES).is_none().then_some((TUNABLES, "glibc.malloc.hugetlb=1")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It says little, and that at its end: the pipe for errors does not fill meanwhile.
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        line.map_err(failed)?;
        kept();
    }
    let mut said = String::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_string(&mut said).map_err(failed)?;
    }
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        let said = said.trim();
        return Err(if said.is_empty() { status.to_string() } else { said.to_owned() });
    }
    Ok(())
}

fn write_order(configurations: &[Configuration], store: &Store) -> Result<tempfile::NamedTempFile, RunError> {
    let io = |error| RunError::Io { path: store.folder().to_owned(), error };
    let file = tempfile::NamedTempFile::new_in(store.folder()).map_err(io)?;
    serde_json::to_writer(&file, configurations).map_err(|error| io(error.into()))?;
    Ok(file)
}
