//! What is measured, recorded for ChampSim: every instruction of every window, with its accesses.
//!
//! `loadVA` and `insertSTLT` are left out: the other simulator does not know them. So a trace is of use for a guest
//! without the table, or as the program's own share of one with it.

use std::fs::File;
use std::io::{self, BufWriter};
use std::mem;
use std::path::Path;

use sim::champsim::{Branch, TraceWriter};
use sim::{BranchOutcome, Instruction, MemoryAccess};

/// What the plugin says, among other things, if it could not write all of a trace.
pub const INCOMPLETE: &str = "the trace for ChampSim is not complete";

/// A file that is being written. After the first failure nothing more is.
#[derive(Debug)]
pub struct Trace {
    to: TraceWriter<BufWriter<File>>,
    failed: Option<io::Error>,
    own: Vec<MemoryAccess>,
}

impl Trace {
    /// Begins a file.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn create(path: &Path) -> io::Result<Trace> {
        let to = TraceWriter::new(BufWriter::new(File::create(path)?));
        Ok(Trace { to, failed: None, own: Vec::new() })
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

    /// Leaves the file as it is: another process goes on with it. What is still to be written is the other's to write,
    /// so the writer is not even dropped; it would.
    pub(crate) fn abandon(self) {
        mem::forget(self.to);
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
