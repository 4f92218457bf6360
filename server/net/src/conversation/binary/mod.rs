//! Serving the binary protocol: a command, or a family of them that are answered alike, is a file.

mod arithmetic;
mod get;
mod remove;
mod stats;
mod store;

use protocol::ErrorReply;
use protocol::binary::{BinaryRequest, Frame, HEADER_LENGTH, Header, Status, parse, reply};

pub(super) use store::answer as answer_store;

use super::writes::Written;
use super::{Conversation, Needs, State, Step};
use crate::executor::{Executor, Flushed};
use crate::output::Output;
use crate::version::VERSION;

impl Conversation {
    /// Serves the frame at the start of `rest`, or, if it is a get, the run of gets that begins there.
    pub(super) fn frame(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let (header, request, length) = match parse(rest) {
            Frame::Incomplete(_) => return Err((0, Needs::Input)),
            Frame::Request { header, request, length } => (header, request, length),
            Frame::Refused { header, status, swallow } => {
                *turn -= 1;
                reply::failure(output.bytes(), &header, status);
                return match swallow {
                    None => Err((HEADER_LENGTH, Needs::Close)),
                    Some(swallow) => {
                        self.state = State::Swallow(swallow);
                        Ok(0)
                    }
                };
            }
            Frame::Foreign => return Err((0, Needs::Abort)),
        };
        *turn -= 1;
        if let BinaryRequest::Get(request) = request {
            return get::gather((header, request), length, rest, turn, executor, output)
                .map_err(|unanswered| (unanswered, Needs::Room));
        }
        let request = (header, request);
        match written(&request.1) {
            None => self.carry_out_frame(&request, length, rest, executor, output),
            Some((key, value)) => {
                let first = Written { request, key, line: length, total: length + value };
                self.writes(first, rest, turn, parse_written, Self::carry_out_frame, executor, output)
            }
        }
    }

    /// Carries out the frame at the start of `rest`, of so many bytes but for a value.
    fn carry_out_frame(
        &mut self,
        (header, request): &(Header, BinaryRequest<'_>),
        length: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let out = output.bytes();
        match *request {
            BinaryRequest::Get(_) => unreachable!("looked up with those that follow it"),
            BinaryRequest::Touch { get, exptime, with_value } => {
                get::touch(header, &get, exptime, with_value, executor, output);
            }
            BinaryRequest::Store(request) => {
                return self.binary_store(header, &request, length, rest, executor, output);
            }
            BinaryRequest::Delete { key, quiet } => {
                remove::remove(header, key, quiet, executor, out);
            }
            BinaryRequest::Arithmetic(request) => arithmetic::count(header, &request, executor, out),
            BinaryRequest::Flush { delay, quiet } => match executor.flush_all(delay) {
                Flushed::Done if quiet => {}
                Flushed::Done => reply::success(out, header, 0),
                Flushed::NotAllowed => reply::failure(out, header, Status::AuthFailure),
                Flushed::Later => return Err((0, Needs::Turn)),
            },
            BinaryRequest::Stat { topic: b"sizes" } if executor.sizes_in_frames(*header) => {
                return Err((length, Needs::Aside));
            }
            BinaryRequest::Stat { topic } => stats::stats(header, topic, executor, out),
            BinaryRequest::Noop => reply::success(out, header, 0),
            BinaryRequest::Version => reply::text(out, header, VERSION.as_bytes()),
            BinaryRequest::Quit { quiet } => {
                if !quiet {
                    reply::success(out, header, 0);
                }
                return Err((length, Needs::Close));
            }
        }
        Ok(length)
    }
}

/// The key that a request writes, if it is one, and the bytes of its value.
#[inline(always)]
fn written<'d>(request: &BinaryRequest<'d>) -> Option<(&'d [u8], usize)> {
    match request {
        BinaryRequest::Store(store) => Some((store.key, store.length)),
        BinaryRequest::Delete { key, .. } => Some((key, 0)),
        BinaryRequest::Arithmetic(arithmetic) => Some((arithmetic.key, 0)),
        BinaryRequest::Touch { get, .. } => Some((get.key, 0)),
        _ => None,
    }
}

/// The frame that begins here, if it writes.
#[inline(always)]
fn parse_written<'d>(rest: &'d [u8], found: &mut Option<Written<'d, (Header, BinaryRequest<'d>)>>) {
    let Frame::Request { header, request, length } = parse(rest) else { return };
    if let Some((key, value)) = written(&request) {
        *found = Some(Written { request: (header, request), key, line: length, total: length + value });
    }
}

/// What an error is called here.
fn status(error: ErrorReply) -> Status {
    match error {
        ErrorReply::TooLarge => Status::TooLarge,
        ErrorReply::NonNumeric => Status::NonNumeric,
        _ => Status::OutOfMemory,
    }
}

/// Answers a request that failed.
fn refuse(out: &mut Vec<u8>, header: &Header, error: ErrorReply) {
    reply::failure(out, header, status(error));
}
