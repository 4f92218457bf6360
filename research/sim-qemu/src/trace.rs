//! What is measured, recorded for ChampSim: every instruction of every window, with its accesses.
//!
//! `loadVA` and `insertSTLT` are left out: the other simulator does not know them. So a trace is of use for a guest
//! without the table, or as the program's own share of one with it.
//!
//! A process that the guest forks shares the open file, and has a copy of what is still to be written. So only the
//! process that created the file writes to it; what a copy writes comes to nothing.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process;

use sim::champsim::{Branch, TraceWriter};
use sim::{BranchOutcome, Instruction, MemoryAccess};

/// What the plugin says, among other things, if it could not write all of a trace.
pub const INCOMPLETE: &str = "the trace for ChampSim is not complete";

/// A file that only one process writes.
#[derive(Debug)]
struct OwnFile {
    file: File,
    process: u32,
}

impl Write for OwnFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if process::id() == self.process { self.file.write(bytes) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A file that is being written. After the first failure nothing more is.
#[derive(Debug)]
pub struct Trace {
    to: TraceWriter<BufWriter<OwnFile>>,
    failed: Option<io::Error>,
    own: Vec<MemoryAccess>,
}

impl Trace {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> io::Result<Trace> {
        Trace::of_process(path, process::id())
    }

    fn of_process(path: &Path, process: u32) -> io::Result<Trace> {
        let file = OwnFile { file: File::create(path)?, process };
        Ok(Trace { to: TraceWriter::new(BufWriter::new(file)), failed: None, own: Vec::new() })
    }

    /// Adds instructions that were run one after the other: arguments as for `Core::run_instructions`.
    pub fn add(
        &mut self,
        instructions: &[Instruction],
        accesses: &[(usize, MemoryAccess)],
        exit: Option<BranchOutcome>,
    ) {
        if self.failed.is_some() {
            return;
        }
        let mut rest = accesses.iter().peekable();
        for (place, instruction) in instructions.iter().enumerate() {
            self.own.clear();
            while let Some((_, access)) = rest.next_if(|access| access.0 <= place) {
                self.own.push(*access);
            }
            // A branch within a part does not exist: blocks end with theirs.
            let taken = exit.is_some_and(|exit| exit.taken);
            let branch = instruction.branch.map(|kind| Branch { kind, taken });
            if let Err(error) = self.to.push(instruction, &self.own, branch) {
                self.failed = Some(error);
                return;
            }
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first that there was.
    pub fn finish(self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.to.finish().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use sim::champsim::RECORD;

    use super::*;

    #[test]
    fn another_process_leaves_the_file_alone() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (process, written) in [(process::id(), 1000 * RECORD as u64), (process::id() + 1, 0)] {
            let mut trace = Trace::of_process(file.path(), process).expect("writable");
            // More than a buffer, and not a whole number of them.
            trace.add(&[Instruction::default(); 1000], &[], None);
            trace.finish().expect("nothing fails");
            assert_eq!(file.path().metadata().expect("there").len(), written);
        }
    }
}
