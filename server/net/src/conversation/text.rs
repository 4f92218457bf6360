//! Serving the text protocol.

use protocol::{
    Connection, ErrorReply, GetRequest, Key, KeyStream, Line, Refusal, Request, StoreRequest, StreamState,
    parse, reply, split_line,
};

use super::block::Block;
use super::{BINARY_REQUEST, Conversation, MOST_BUFFERED, Needs, State, Step, answer};
use crate::executor::{After, Executor};
use crate::gets::{Group, Unanswered};
use crate::output::Output;

/// Where a piece of `data` begins in it.
fn offset_in(data: &[u8], piece: &[u8]) -> usize {
    piece.as_ptr() as usize - data.as_ptr() as usize
}

impl Conversation {
    /// Serves the request at `at`, or, if it is a get, the run of gets that begins there.
    pub(super) fn command(
        &mut self,
        data: &[u8],
        at: usize,
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let rest = &data[at..];
        if rest.starts_with(&[BINARY_REQUEST]) {
            return Err((0, Needs::Abort));
        }
        let line = match split_line(rest) {
            Line::Complete(line) => line,
            Line::Incomplete => return Err((0, Needs::Input)),
            Line::LongGet if rest.len() < MOST_BUFFERED => return Err((0, Needs::Input)),
            Line::LongGet => {
                let (stream, consumed) = KeyStream::begin(rest).expect("split_line has found one");
                self.state = State::List { stream, exptime: None };
                return Ok(consumed);
            }
            Line::TooLong => return Err((0, Needs::Abort)),
        };
        *turn -= 1;
        match parse(line) {
            Ok(Request::Get(get)) => self.gets(get, line.len(), rest, turn, executor, output),
            Ok(Request::Store(store)) => self.store(&store, line.len(), rest, executor, output),
            Ok(Request::GetAndTouch { exptime, mut keys, with_cas }) => {
                let first = keys.next().map_or(line.len(), |key| offset_in(line, &key));
                self.state = State::List { stream: KeyStream::resume(with_cas), exptime: Some(exptime) };
                Ok(first)
            }
            Ok(request) => match executor.execute(&request, output) {
                After::GoOn => Ok(line.len()),
                After::Later => Err((0, Needs::Turn)),
                After::Aside => Err((line.len(), Needs::Aside)),
                After::Close => Err((line.len(), Needs::Close)),
            },
            Err(refusal) => self.refuse(refusal, line.len(), output),
        }
    }

    fn refuse(&mut self, refusal: Refusal, line: usize, output: &mut Output) -> Step {
        if refusal.connection == Connection::Close {
            return Err((line, Needs::Abort));
        }
        if let Some(error) = refusal.reply {
            output.bytes().extend_from_slice(error.bytes());
        }
        if refusal.swallow > 0 {
            self.state = State::Swallow(refusal.swallow);
        }
        Ok(line)
    }

    /// Serves a get, whose line has `line` bytes at the start of `rest`, and those that follow it at once.
    fn gets<'d>(
        &mut self,
        mut get: GetRequest<'d>,
        line: usize,
        rest: &'d [u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let mut group = Group::new();
        let mut end = line;
        let mut answered;
        loop {
            answered = group.add(get.keys, get.with_cas, executor, output);
            if answered.is_err() {
                break;
            }
            group.end_line();
            if *turn > 0
                && let Line::Complete(line) = split_line(&rest[end..])
                && let Ok(Request::Get(next)) = parse(line)
            {
                *turn -= 1;
                end += line.len();
                get = next;
            } else {
                answered = group.answer(executor, output);
                break;
            }
        }
        answered.map(|()| end).map_err(|Unanswered { key, with_cas }| {
            self.state = State::List { stream: KeyStream::resume(with_cas), exptime: None };
            (offset_in(rest, key), Needs::Room)
        })
    }

    /// Goes on with a key list.
    pub(super) fn list(&mut self, rest: &[u8], executor: &mut Executor, output: &mut Output) -> Step {
        let State::List { stream, exptime } = &mut self.state else { unreachable!("called in this state") };
        // A step back to here is possible at any key: the stream itself remembers only what kind of line it is.
        let before = stream.clone();
        let step = stream.feed(rest);
        let with_cas = stream.with_cas();
        let answered = match *exptime {
            Some(exptime) => touch(step.keys, exptime, with_cas, executor, output),
            None => {
                let mut group = Group::new();
                group.add(step.keys, with_cas, executor, output).and_then(|()| group.answer(executor, output))
            }
        };
        if let Err(Unanswered { key, .. }) = answered {
            *stream = before;
            return Err((offset_in(rest, key), Needs::Room));
        }
        match step.state {
            StreamState::More => Err((step.consumed, Needs::Input)),
            StreamState::End => {
                output.bytes().extend_from_slice(reply::END);
                self.state = State::Command;
                Ok(step.consumed)
            }
            StreamState::Refused(refusal) => {
                self.state = State::Command;
                self.refuse(refusal, step.consumed, output)
            }
        }
    }

    /// Serves a storage command, whose line has `line` bytes at the start of `rest`.
    fn store(
        &mut self,
        request: &StoreRequest<'_>,
        line: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        if executor.refuse_too_large(request) {
            answer(Err(ErrorReply::TooLarge), request.noreply, output);
            self.state = State::Swallow(request.length + reply::CRLF.len());
            return Ok(line);
        }
        let total = line + request.length + reply::CRLF.len();
        if let Some(block) = rest.get(line..total) {
            let (value, ending) = block.split_at(request.length);
            let outcome = if ending == reply::CRLF {
                executor.store(request, value)
            } else {
                executor.refuse_data(request)
            };
            answer(outcome, request.noreply, output);
            return Ok(total);
        }
        if total <= MOST_BUFFERED {
            self.has_line = true;
            return Err((0, Needs::Input));
        }
        self.state = State::Value(Block {
            verb: request.verb,
            noreply: request.noreply,
            reservation: executor.reserve(request),
            missing: request.length,
            ending: 0,
            ended_well: true,
        });
        Ok(line)
    }
}

/// Answers the keys of a list and gives each item another expiry: one after the other, for the second of two equal keys
/// is not there if its time has passed.
fn touch<'d>(
    keys: impl Iterator<Item = Key<'d>>,
    exptime: i32,
    with_cas: bool,
    executor: &mut Executor,
    output: &mut Output,
) -> Result<(), Unanswered<'d>> {
    for key in keys {
        if output.is_full() {
            return Err(Unanswered { key: key.as_bytes(), with_cas });
        }
        executor.get_and_touch(&key, exptime, with_cas, output);
    }
    Ok(())
}
