//! Many runs, side by side, in processes of their own: memory is given back, and one that dies takes no other with it.
//! What is finished is kept at once ([`crate::store`]).
//!
//! Runs that look the same keys up in the same records go to one process, some at a time, which loads the records for
//! all of them ([`run::run_all`]). If it ends before it has made them, the one it was at has failed, and those behind
//! it go to another.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use indicatif::ProgressBar;

use crate::configuration::Configuration;
use crate::error::RunError;
use crate::run;
use crate::store::Store;

/// How glibc's allocator is told to ask for large pages; others do not know it.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Runs that one process makes at most: so many share what one load takes, and the last processes of a sweep end at
/// about the same time.
const TOGETHER: usize = 8;

/// Of what a process says on its standard error, so many bytes are kept, the last ones: why it failed stands at the
/// end.
const LAST_WORDS: usize = 16 << 10;

/// Where runs take place.
#[derive(Debug, Clone)]
pub enum Place {
    /// In this process, on threads.
    Here,
    /// In processes of this program, which is `lookaside-lab`: `PROGRAM sim run --configurations FILE --store FOLDER`,
    /// which prints a line when it has kept one.
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
    let failed = |error: io::Error| format!("{}: {error}", program.display());
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
    let (lines, errors) = (child.stdout.take(), child.stderr.take());
    // Both pipes are emptied as they fill: who finds one full waits, and a process that waits for us here, while we
    // wait for its next line, would do so for ever.
    let (read, said) = std::thread::scope(|scope| {
        let said = scope.spawn(|| errors.map_or_else(|| Ok(String::new()), last_words));
        let read = lines
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufReader::lines)
            .try_for_each(|line| line.map(|_| kept()));
        (read, said.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let status = child.wait().map_err(failed)?;
    read.map_err(failed)?;
    let said = said.map_err(failed)?;
    if !status.success() {
        let said = said.trim();
        return Err(if said.is_empty() { status.to_string() } else { said.to_owned() });
    }
    Ok(())
}

/// The end of what can be read, at most [`LAST_WORDS`] bytes of it.
fn last_words(mut from: impl Read) -> io::Result<String> {
    let (mut words, mut chunk, mut all) = (Vec::new(), [0; LAST_WORDS], true);
    loop {
        match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => words.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let surplus = words.len().saturating_sub(LAST_WORDS);
        words.drain(..surplus);
        all &= surplus == 0;
    }
    let words = String::from_utf8_lossy(&words);
    Ok(if all { words.into_owned() } else { format!("... {words}") })
}

fn write_order(configurations: &[Configuration], store: &Store) -> Result<tempfile::NamedTempFile, RunError> {
    let folder = store.folder();
    let file = tempfile::NamedTempFile::new_in(folder).map_err(RunError::io(folder))?;
    serde_json::to_writer(&file, configurations).map_err(|error| RunError::io(folder)(error.into()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_words_the_last_are_kept() {
        let said = |text: &str| last_words(text.as_bytes()).expect("memory can be read");
        assert_eq!(said(""), "");
        let most = "x".repeat(LAST_WORDS);
        assert_eq!(said(&most), most);
        let cut = said(&format!("the beginning{}é, the end", "x".repeat(10 * LAST_WORDS)));
        assert!(cut.starts_with("... x") && cut.ends_with("xé, the end"), "{}", cut.len());
        assert_eq!(cut.len(), "... ".len() + LAST_WORDS);
        // Cut in the middle of a character.
        let cut = said(&format!("éé{}", "x".repeat(LAST_WORDS - 1)));
        assert_eq!(cut, format!("... \u{fffd}{}", "x".repeat(LAST_WORDS - 1)));
    }
}
