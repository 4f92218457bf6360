//! Serving the meta commands: a command is a file, which says what its flags do and writes its reply.

mod arithmetic;
mod debug;
mod delete;
mod get;
mod set;

use protocol::meta::{MAX_DECODED_LENGTH, MetaKey, MetaRequest, reply};

pub(super) use get::answer as answer_get;
pub(super) use set::answer as answer_set;

use super::{Conversation, Step};
use crate::executor::Executor;
use crate::output::Output;

impl Conversation {
    /// Serves a meta command, whose line has `line` bytes at the start of `rest`.
    pub(super) fn meta<'d>(
        &mut self,
        request: &MetaRequest<'d>,
        line: usize,
        rest: &'d [u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let place = &mut None;
        match request {
            MetaRequest::Get(request) => {
                get::get(request, decoded(&request.key, place), executor, output);
            }
            MetaRequest::Set(request) => return self.meta_set(request, line, rest, executor, output),
            MetaRequest::Delete(request) => {
                delete::delete(request, decoded(&request.key, place), executor, output);
            }
            MetaRequest::Arithmetic(request) => {
                arithmetic::count(request, decoded(&request.key, place), executor, output);
            }
            MetaRequest::Debug(request) => {
                debug::inspect(request, decoded(&request.key, place), executor, output);
            }
            MetaRequest::Noop => output.bytes().extend_from_slice(reply::NOOP),
        }
        Ok(line)
    }
}

/// A key's bytes. Of the place for one in base64 nothing is cleared before such a one comes.
#[inline]
fn decoded<'k>(key: &MetaKey<'k>, place: &'k mut Option<[u8; MAX_DECODED_LENGTH]>) -> &'k [u8] {
    match key.plain() {
        Some(key) => key,
        None => key.decode(place.insert([0; MAX_DECODED_LENGTH])),
    }
}
