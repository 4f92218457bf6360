//! Serving the binary protocol: a command, or a family of them that are answered alike, is a file.

mod arithmetic;
mod get;
mod remove;
mod stats;
mod store;

use protocol::ErrorReply;
use protocol::binary::{BinaryRequest, Frame, HEADER_LENGTH, Header, Status, parse, reply};

pub(super) use store::answer as answer_store;

use super::run::{Reader, Run, Written};
use super::{Conversation, Needs, State, Step};
use crate::executor::{Executor, Flushed};
use crate::output::Output;
use crate::version::VERSION;

/// A request of a frame.
type Framed<'d> = (Header, BinaryRequest<'d>);

/// Reads frames of gets and of what writes.
struct Frames;

impl<'d> Reader<'d> for Frames {
    type Asker = get::Getter<'d>;
    type Write = Framed<'d>;

    #[inline]
    fn read(&mut self, run: &mut Run<'d, Self::Asker, Framed<'d>>, turn: &mut usize) {
        while run.has_room() && *turn > 0 {
            let Frame::Request { header, request, length } = parse(run.unread()) else { return };
            if let BinaryRequest::Get(get) = request {
                run.begin(length, get.key, get::Getter(Some((header, get))));
            } else if !run.write(|place| {
                *place = written(&request).map(|(key, value)| Written {
                    request: (header, request),
                    key,
                    line: length,
                    total: length + value,
                });
            }) {
                return;
            }
            *turn -= 1;
        }
    }

    #[inline]
    fn write(
        conversation: &mut Conversation,
        request: &Framed<'d>,
        length: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        conversation.carry_out_frame(request, length, rest, executor, output)
    }

    fn goes_on(_: &Self::Asker) -> State {
        unreachable!("a frame has one key")
    }
}

impl Conversation {
    /// Serves the frames at the start of `rest` that go together, or the one that does not.
    pub(super) fn frame(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        if let Some(step) = self.run(Frames, rest, turn, executor, output) {
            return step;
        }
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
        self.carry_out_frame(&(header, request), length, rest, executor, output)
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
