//! Set, add, replace, append, prepend.

use protocol::binary::{BinaryMode, BinaryStore, Header, Status, opcode, reply};

use super::refuse;
use crate::conversation::block::Asker;
use crate::conversation::{Conversation, Step};
use crate::executor::{Context, Executor, How, StoreOutcome, Storing};
use crate::output::Output;

impl Conversation {
    /// Serves a frame that stores, which has `length` bytes before its value at the start of `rest`.
    pub(super) fn binary_store(
        &mut self,
        header: &Header,
        request: &BinaryStore<'_>,
        length: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let if_cas = Some(header.cas()).filter(|&cas| cas != 0);
        let extend = |before| How::Extend { before, if_cas, create: false };
        let how = match (request.mode, if_cas) {
            (BinaryMode::Append, _) => extend(false),
            (BinaryMode::Prepend, _) => extend(true),
            (BinaryMode::Set | BinaryMode::Add | BinaryMode::Replace, Some(cas)) => {
                How::Swap { cas, allow_stale: false }
            }
            (BinaryMode::Set, None) => How::Set,
            (BinaryMode::Add, None) => How::Add,
            (BinaryMode::Replace, None) => How::Replace,
        };
        let storing = Storing {
            key: request.key,
            how,
            flags: request.flags,
            expiry: executor.context().binary_expiry(request.exptime),
            own_cas: None,
            length: request.length,
            or_nothing: request.mode == BinaryMode::Set,
        };
        self.take_block(
            &storing,
            length,
            rest,
            || Asker::Binary { header: *header },
            |outcome, context, output| answer(header, outcome, context, output),
            executor,
            output,
        )
    }
}

/// Answers a frame that stores.
pub(in crate::conversation) fn answer(
    header: &Header,
    outcome: StoreOutcome,
    context: Context<'_>,
    output: &mut Output,
) {
    use opcode::*;
    let number = header.opcode();
    let out = output.bytes();
    match outcome {
        StoreOutcome::Stored { cas, .. } => {
            if !matches!(number, SET_Q | ADD_Q | REPLACE_Q | APPEND_Q | PREPEND_Q) {
                reply::success(out, header, context.told(cas));
            }
        }
        StoreOutcome::NotStored => {
            let status = match number {
                ADD | ADD_Q => Status::Exists,
                REPLACE | REPLACE_Q => Status::NotFound,
                _ => Status::NotStored,
            };
            reply::failure(out, header, status);
        }
        StoreOutcome::Exists => reply::failure(out, header, Status::Exists),
        StoreOutcome::NotFound => reply::failure(out, header, Status::NotFound),
        StoreOutcome::Failed(error) => refuse(out, header, error),
    }
}
