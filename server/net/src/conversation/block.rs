//! A data block that comes in pieces: it is written into the cache's memory as it comes.

use protocol::binary::Header;
use protocol::{ErrorReply, reply};

use crate::executor::{Executor, Reserved, StoreOutcome};

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

impl Block {
    /// A value of `length` bytes that goes where it was reserved, behind it what a line ends with, unless it is binary.
    pub(super) fn new(asker: Asker, reserved: Result<Reserved, ErrorReply>, length: usize) -> Self {
        let ending = if let Asker::Binary { .. } = asker { b"".as_slice() } else { reply::CRLF };
        Block { asker, reserved, missing: length, ending, ended_well: true }
    }

    /// Who is to be told what came of it.
    pub(super) fn asker(&self) -> &Asker {
        &self.asker
    }

    /// Takes what has come of the block; says how much that was, and what came of it if it is complete.
    pub(super) fn receive(&mut self, rest: &[u8], executor: &mut Executor) -> (usize, Option<StoreOutcome>) {
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
        let is_complete = self.missing == 0 && self.ending.is_empty();
        let outcome =
            is_complete.then(|| match std::mem::replace(&mut self.reserved, Err(ErrorReply::BadDataChunk)) {
                Ok(reserved) if self.ended_well => executor.commit(reserved),
                Ok(reserved) => executor.abandon(&reserved),
                Err(error) => StoreOutcome::Failed(error),
            });
        (of_value + of_ending, outcome)
    }
}
