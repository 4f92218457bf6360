//! Writes on their way: those that have come together are parsed first, and the memory that they will touch is asked
//! for while the first one is served.
//!
//! ```text
//!   parse        as many as are complete, at most a group
//!   prefetch     the index lines of all keys, then the items that are there
//!   serve        one after the other, in order, as if each had come by itself
//! ```
//!
//! A write waits for an index line and for the item that it replaces. What is asked for beforehand is only asked for:
//! each write looks again, so that writes of one key, and of other connections, need no care.
//!
//! Requests are parsed where they stay until they are served, those that are as most clients write them in line. A
//! request that a call has written piece by piece, and that is moved as a whole at once, waits for the pieces: that was
//! a twelfth of what an `incr` took of the server's own time.
//!
//! Rejected: *to look everything up first and then to change it*, as gets are. What was found is to be looked at again
//! when its turn comes, for an earlier write of the run may have changed it, so nothing is saved.

use cache::engine::GROUP;

use super::{COPIED_FOR_A_REQUEST, Conversation, State, Step};
use crate::executor::Executor;
use crate::output::Output;

/// A request that writes.
pub(super) struct Written<'d, R> {
    pub(super) request: R,
    pub(super) key: &'d [u8],
    /// Bytes of the request, but for its value.
    pub(super) line: usize,
    /// Bytes of the request.
    pub(super) total: usize,
}

impl Conversation {
    /// Serves a request that writes, at the start of `rest`, and those that follow it at once: as `parse` finds them,
    /// which writes them where they stay (a request is long, and moved it is waited for), by `serve`.
    #[allow(clippy::too_many_arguments, reason = "what is served, how the next is found, and who serves")]
    pub(super) fn writes<'d, R>(
        &mut self,
        first: Written<'d, R>,
        rest: &'d [u8],
        turn: &mut usize,
        parse: impl Fn(&'d [u8], &mut Option<Written<'d, R>>),
        serve: impl Fn(&mut Self, &R, usize, &'d [u8], &mut Executor, &mut Output) -> Step,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        // Mostly one that comes alone, where nobody pipelines.
        if first.total >= rest.len() {
            return serve(self, &first.request, first.line, rest, executor, output);
        }
        let (mut len, mut end) = (1, first.total);
        let mut run = [const { None }; GROUP];
        run[0] = Some(first);
        let most = GROUP.min(*turn + 1);
        while len < most
            && let Some(after) = rest.get(end..).filter(|after| !after.is_empty())
        {
            parse(after, &mut run[len]);
            match &run[len] {
                Some(next) if next.total <= after.len() => {
                    end += next.total;
                    len += 1;
                }
                _ => break,
            }
        }
        let run = &run[..len];
        if let [Some(only)] = run {
            return serve(self, &only.request, only.line, rest, executor, output);
        }
        let mut keys: [&[u8]; GROUP] = [&[]; GROUP];
        for (key, written) in keys.iter_mut().zip(run.iter().flatten()) {
            *key = written.key;
        }
        executor.begin_batch(&keys[..len]);
        let step = self.in_order(run, rest, turn, serve, executor, output);
        executor.end_batch();
        step
    }

    /// Serves requests one after the other, as far as they can be.
    fn in_order<'d, R>(
        &mut self,
        run: &[Option<Written<'d, R>>],
        rest: &'d [u8],
        turn: &mut usize,
        serve: impl Fn(&mut Self, &R, usize, &'d [u8], &mut Executor, &mut Output) -> Step,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let copied = executor.copied();
        let mut at = 0;
        for (i, written) in run.iter().flatten().enumerate() {
            if i > 0 {
                // What the caller looks at between two requests.
                if output.is_full()
                    || !matches!(self.state, State::Command)
                    || executor.copied() - copied >= COPIED_FOR_A_REQUEST
                {
                    break;
                }
                *turn -= 1;
            }
            match serve(self, &written.request, written.line, &rest[at..], executor, output) {
                Ok(consumed) => at += consumed,
                Err((consumed, needs)) => return Err((at + consumed, needs)),
            }
        }
        Ok(at)
    }
}
