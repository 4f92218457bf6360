//! `ms`.

use protocol::meta::{MetaMode, MetaSet, reply};
use protocol::reply::CRLF;

use super::decoded;
use crate::conversation::block::Asker;
use crate::conversation::{Conversation, Step};
use crate::executor::{Context, Executor, How, StoreOutcome, Storing};
use crate::output::Output;

impl Conversation {
    /// Serves an `ms`, whose line has `line` bytes at the start of `rest`.
    pub(super) fn meta_set(
        &mut self,
        request: &MetaSet<'_>,
        line: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let place = &mut None;
        let storing = storing(request, decoded(&request.key, place), executor.context());
        self.take_block(
            &storing,
            line,
            rest,
            || Asker::Meta { line: request.line_to_answer().into() },
            |outcome, context, output| answer(request, outcome, context, output),
            executor,
            output,
        )
    }
}

fn storing<'a>(request: &MetaSet<'_>, key: &'a [u8], context: Context<'_>) -> Storing<'a> {
    let flags = &request.flags;
    let cas = flags.number(b'C');
    let extend =
        |before| How::Extend { before, if_cas: cas.filter(|&cas| cas != 0), create: flags.has(b'N') };
    let swap = cas.map(|cas| How::Swap { cas, allow_stale: flags.has(b'I') });
    let how = match request.mode {
        MetaMode::Set => swap.unwrap_or(How::Set),
        MetaMode::Replace => swap.unwrap_or(How::Replace),
        MetaMode::Add => How::Add,
        MetaMode::Append => extend(false),
        MetaMode::Prepend => extend(true),
    };
    let time = if let How::Extend { create: true, .. } = how { b'N' } else { b'T' };
    Storing {
        key,
        how,
        flags: flags.client_flags(),
        expiry: context.expiry(flags.time(time).unwrap_or(0)),
        own_cas: flags.number(b'E'),
        length: request.length,
        // Whatever the mode, as in memcached.
        or_nothing: true,
    }
}

/// Answers an `ms`.
pub(in crate::conversation) fn answer(
    request: &MetaSet<'_>,
    outcome: StoreOutcome,
    context: Context<'_>,
    output: &mut Output,
) {
    let flags = &request.flags;
    let out = output.bytes();
    let (code, cas, length) = match outcome {
        StoreOutcome::Failed(error) => {
            out.extend_from_slice(error.bytes());
            return;
        }
        StoreOutcome::Stored { .. } if flags.has(b'q') => return,
        StoreOutcome::Stored { cas, length } => (reply::DONE, context.told(cas), length),
        StoreOutcome::NotStored => (reply::NOT_STORED, 0, request.length),
        StoreOutcome::Exists => (reply::EXISTS, 0, request.length),
        StoreOutcome::NotFound => (reply::NOT_FOUND, 0, request.length),
    };
    out.extend_from_slice(code);
    for flag in flags.iter() {
        match flag.letter {
            b'c' => reply::number(out, b'c', cas),
            b's' => reply::number(out, b's', length as u64),
            _ => {
                reply::echo(out, flag, &request.key);
            }
        }
    }
    out.extend_from_slice(CRLF);
}
