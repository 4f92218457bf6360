//! What operators ask for: how much is logged, how much memory there is.

use protocol::{ErrorReply, reply};

use super::{Executor, answer};
use crate::output::Output;

impl Executor {
    /// Notes how much is to be logged.
    pub(super) fn verbosity(&mut self, level: u32, noreply: bool, output: &mut Output) {
        self.shared.set_verbosity(level);
        answer(output, noreply, reply::OK);
    }

    /// Sets the limit of memory, which cannot be done.
    pub(super) fn memory_limit(&mut self, noreply: bool, output: &mut Output) {
        answer(output, noreply, ErrorReply::MemlimitUnable.bytes());
    }
}
