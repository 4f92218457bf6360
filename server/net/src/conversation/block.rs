//! A data block that comes in pieces: it is written into the cache's memory as it comes.

use protocol::{ErrorReply, reply};

use super::answer;
use crate::executor::Executor;
use crate::output::Output;

/// A data block that comes in pieces.
pub(super) struct Block {
    pub(super) verb: protocol::Verb,
    pub(super) noreply: bool,
    /// Where the value goes; an error if it does not go anywhere.
    pub(super) reservation: Result<cache::engine::Reservation, ErrorReply>,
    /// Bytes of the value that are still to come.
    pub(super) missing: usize,
    /// Bytes of the line ending behind it that have come, and whether they were right.
    pub(super) ending: usize,
    pub(super) ended_well: bool,
}

impl Block {
    /// Takes what has come of the block; says how much that was, and whether the block is complete and has been
    /// answered.
    pub(super) fn receive(
        &mut self,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> (usize, bool) {
        let of_value = rest.len().min(self.missing);
        if let Ok(reservation) = &mut self.reservation
            && let Err(error) = executor.fill(reservation, &rest[..of_value])
        {
            self.reservation = Err(error);
        }
        self.missing -= of_value;
        let of_ending = (rest.len() - of_value).min(reply::CRLF.len() - self.ending);
        let ending = &rest[of_value..of_value + of_ending];
        self.ended_well &= reply::CRLF[self.ending..].starts_with(ending);
        self.ending += of_ending;
        let complete = self.ending == reply::CRLF.len();
        if complete {
            let reservation = std::mem::replace(&mut self.reservation, Err(ErrorReply::BadDataChunk));
            let outcome = match reservation {
                Ok(reservation) if self.ended_well => executor.commit(self.verb, reservation),
                Ok(reservation) => executor.abandon(&reservation),
                Err(error) => Err(error),
            };
            answer(outcome, self.noreply, output);
        }
        (of_value + of_ending, complete)
    }
}
