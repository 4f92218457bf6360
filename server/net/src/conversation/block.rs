//! A data block that comes in pieces: it is written into the cache's memory as it comes.

use protocol::binary::Header;
use protocol::meta::MetaRequest;
use protocol::{ErrorReply, Request, reply};

use super::{binary, meta, text};
use crate::executor::{Executor, Reserved, StoreOutcome};
use crate::output::Output;

/// A data block that comes in pieces.
pub(super) struct Block {
    asker: Asker,
    /// Where the value goes; an error if it does not go anywhere.
    reserved: Result<Reserved, ErrorReply>,
    /// Bytes of the value that are still to come.
    missing: usize,
    /// What is still to come of the line ending behind it.
    ending: &'static [u8],
    ended_well: bool,
}

/// Who stores a value: how it is answered.
pub(super) enum Asker {
    Text {
        noreply: bool,
    },
    /// A line that is answered like that of the request.
    Meta {
        line: Box<[u8]>,
    },
    Binary {
        header: Header,
    },
}

impl Asker {
    fn answer(&self, outcome: StoreOutcome, executor: &Executor, output: &mut Output) {
        match self {
            Asker::Text { noreply } => text::answer_store(outcome, *noreply, output),
            Asker::Meta { line } => {
                if let Ok(Request::Meta(MetaRequest::Set(request))) = protocol::parse(line) {
                    meta::answer_set(&request, outcome, executor.context(), output);
                }
            }
            Asker::Binary { header } => {
                binary::answer_store(header, outcome, executor.context(), output);
            }
        }
    }
}

impl Block {
    /// A value of `length` bytes that goes where it was reserved, behind it what a line ends with, unless it is binary.
    pub(super) fn new(asker: Asker, reserved: Result<Reserved, ErrorReply>, length: usize) -> Self {
        let ending = if let Asker::Binary { .. } = asker { b"".as_slice() } else { reply::CRLF };
        Block { asker, reserved, missing: length, ending, ended_well: true }
    }

    /// Takes what has come of the block; says how much that was, and whether the block is complete and has been
    /// answered.
    pub(super) fn receive(
        &mut self,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> (usize, bool) {
        let of_value = rest.len().min(self.missing);
        if let Ok(reserved) = &mut self.reserved
            && let Err(error) = executor.fill(reserved, &rest[..of_value])
        {
            self.reserved = Err(error);
        }
        self.missing -= of_value;
        let of_ending = (rest.len() - of_value).min(self.ending.len());
        let (due, still_due) = self.ending.split_at(of_ending);
        self.ended_well &= due == &rest[of_value..of_value + of_ending];
        self.ending = still_due;
        let complete = self.missing == 0 && self.ending.is_empty();
        if complete {
            let reserved = std::mem::replace(&mut self.reserved, Err(ErrorReply::BadDataChunk));
            let outcome = match reserved {
                Ok(reserved) if self.ended_well => executor.commit(reserved),
                Ok(reserved) => executor.abandon(&reserved),
                Err(error) => StoreOutcome::Failed(error),
            };
            self.asker.answer(outcome, executor, output);
        }
        (of_value + of_ending, complete)
    }
}
