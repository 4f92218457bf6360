//! Serving the text protocol: lines, among them those of meta commands.

use cache::engine::Hit;
use protocol::meta::MetaRequest;
use protocol::{
    Connection, ErrorReply, GetRequest, Key, KeyStream, Line, Refusal, Request, StoreRequest, StreamState,
    Verb, parse, parse_plain, reply, split_line,
};

use super::block::Asker as Storer;
use super::writes::Written;
use super::{Conversation, MOST_BUFFERED, Needs, State, Step};
use crate::executor::{After, Context, Executor, How, StoreOutcome, Storing};
use crate::gets::{self, Asker, Group, Unanswered};
use crate::output::Output;

/// Where a piece of `data` begins in it.
fn offset_in(data: &[u8], piece: &[u8]) -> usize {
    piece.as_ptr() as usize - data.as_ptr() as usize
}

/// Who asks for a key by `get` or `gets`.
#[derive(Clone, Copy, Default)]
struct Getter {
    /// Whether its number is wanted beside its value.
    with_cas: bool,
    /// Whether it is the last of its line: `END` is to follow it.
    is_last: bool,
}

impl Asker for Getter {
    #[inline]
    fn answer(&self, _: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output) {
        if let Some(hit) = hit {
            write_value(hit, self.with_cas, context, output);
        }
        if self.is_last {
            output.bytes().extend_from_slice(reply::END);
        }
    }
}

impl Conversation {
    /// Serves the request at the start of `rest`, or, if it is a get, the run of gets that begins there.
    pub(super) fn command(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
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
            Ok(Request::GetAndTouch { exptime, mut keys, with_cas }) => {
                let first = keys.next().map_or(line.len(), |key| offset_in(line, &key));
                self.state = State::List { stream: KeyStream::resume(with_cas), exptime: Some(exptime) };
                Ok(first)
            }
            Ok(Request::Meta(MetaRequest::Get(request))) => {
                self.meta_get(&request, line.len(), rest, turn, executor, output)
            }
            Ok(request) => match written(&request) {
                None => self.carry_out(&request, line.len(), rest, executor, output),
                Some((key, block)) => {
                    let (line, total) = (line.len(), line.len() + block);
                    let first = Written { request, key, line, total };
                    self.writes(first, rest, turn, parse_written, Self::carry_out, executor, output)
                }
            },
            Err(refusal) => self.refuse(refusal, line.len(), output),
        }
    }

    /// Carries out a request that is no get, whose line has `line` bytes at the start of `rest`.
    fn carry_out(
        &mut self,
        request: &Request<'_>,
        line: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        match request {
            Request::Store(store) => self.store(store, line, rest, executor, output),
            Request::Meta(request) => self.meta(request, line, rest, executor, output),
            request => match executor.execute(request, output) {
                After::GoOn => Ok(line),
                After::Later => Err((0, Needs::Turn)),
                After::Aside => Err((line, Needs::Aside)),
                After::Close => Err((line, Needs::Close)),
            },
        }
    }

    fn refuse(&mut self, refusal: Refusal, line: usize, output: &mut Output) -> Step {
        if let Some(error) = refusal.reply {
            output.bytes().extend_from_slice(error.bytes());
        }
        match (refusal.connection, refusal.reply) {
            (Connection::Close, None) => return Err((line, Needs::Abort)),
            (Connection::Close, Some(_)) => return Err((line, Needs::Close)),
            (Connection::Keep, _) => {}
        }
        if refusal.swallow > 0 {
            self.state = State::Swallow(refusal.swallow);
        }
        Ok(line)
    }

    /// Serves a get, whose line has `line` bytes at the start of `rest`, and those that follow it at once.
    fn gets<'d>(
        &mut self,
        get: GetRequest<'d>,
        line: usize,
        rest: &'d [u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let next = |rest| match split_line(rest) {
            Line::Complete(line) => match parse(line) {
                Ok(Request::Get(next)) => Some((next, line.len())),
                _ => None,
            },
            _ => None,
        };
        gets::serve((get, line), rest, turn, executor, output, next, |get, _, group, executor, output| {
            gather(group, get.keys, get.with_cas, executor, output)?;
            if let Some(getter) = group.last() {
                getter.is_last = true;
            }
            Ok(())
        })
        .map_err(|Unanswered { key, asker }| {
            self.state = State::List { stream: KeyStream::resume(asker.with_cas), exptime: None };
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
                gather(&mut group, step.keys, with_cas, executor, output)
                    .and_then(|()| group.answer(executor, output))
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
        let how = match request.verb {
            Verb::Set => How::Set,
            Verb::Add => How::Add,
            Verb::Replace => How::Replace,
            Verb::Append => How::Extend { before: false, if_cas: None, create: false },
            Verb::Prepend => How::Extend { before: true, if_cas: None, create: false },
            Verb::Cas(cas) => How::Swap { cas, allow_stale: false },
        };
        let storing = Storing {
            key: request.key.as_bytes(),
            how,
            flags: request.flags,
            expiry: executor.context().expiry(request.exptime),
            own_cas: None,
            length: request.length,
            or_nothing: how == How::Set,
        };
        let noreply = request.noreply;
        self.take_block(
            &storing,
            line,
            rest,
            || Storer::Text { noreply },
            |outcome, _, output| answer_store(outcome, noreply, output),
            executor,
            output,
        )
    }
}

/// The key that a request writes, if it is one, and the bytes that follow its line; of a key in base64 nobody knows
/// where it lies.
#[inline(always)]
fn written<'d>(request: &Request<'d>) -> Option<(&'d [u8], usize)> {
    Some(match request {
        Request::Store(store) => (store.key.as_bytes(), store.length + reply::CRLF.len()),
        Request::Delete { key, .. } | Request::Arithmetic { key, .. } | Request::Touch { key, .. } => {
            (key.as_bytes(), 0)
        }
        Request::Meta(MetaRequest::Set(set)) => (set.key.plain()?, set.length + reply::CRLF.len()),
        Request::Meta(MetaRequest::Delete(delete)) => (delete.key.plain()?, 0),
        Request::Meta(MetaRequest::Arithmetic(arithmetic)) => (arithmetic.key.plain()?, 0),
        _ => return None,
    })
}

/// The request that begins here, if it writes.
#[inline(always)]
fn parse_written<'d>(rest: &'d [u8], found: &mut Option<Written<'d, Request<'d>>>) {
    // Mostly a get, in a load of gets and sets: it is parsed when its turn comes.
    if rest.starts_with(b"g") {
        return;
    }
    let Line::Complete(line) = split_line(rest) else { return };
    *found = parse_plain(line).and_then(|request| Written::of(request, line));
    if found.is_none() {
        parse_unusual(line, found);
    }
}

/// The same of a line that is not as most clients write it.
#[inline(never)]
fn parse_unusual<'d>(line: &'d [u8], found: &mut Option<Written<'d, Request<'d>>>) {
    *found = parse(line).ok().and_then(|request| Written::of(request, line));
}

impl<'d> Written<'d, Request<'d>> {
    /// The request of a line, if it writes.
    #[inline(always)]
    fn of(request: Request<'d>, line: &[u8]) -> Option<Self> {
        let (key, block) = written(&request)?;
        Some(Written { request, key, line: line.len(), total: line.len() + block })
    }
}

/// Adds the keys of a list to a group.
#[inline]
fn gather<'d>(
    group: &mut Group<'d, Getter>,
    keys: impl Iterator<Item = Key<'d>>,
    with_cas: bool,
    executor: &mut Executor,
    output: &mut Output,
) -> Result<(), Unanswered<'d, Getter>> {
    for key in keys {
        group.add(key.as_bytes(), Getter { with_cas, is_last: false }, executor, output)?;
    }
    Ok(())
}

/// Answers the keys of a list and gives each item another expiry: one after the other, for the second of two equal keys
/// is not there if its time has passed.
fn touch<'d>(
    keys: impl Iterator<Item = Key<'d>>,
    exptime: i32,
    with_cas: bool,
    executor: &mut Executor,
    output: &mut Output,
) -> Result<(), Unanswered<'d, Getter>> {
    for key in keys {
        let getter = Getter { with_cas, is_last: false };
        if output.is_full() {
            return Err(Unanswered { key: key.as_bytes(), asker: getter });
        }
        let expiry = executor.context().expiry(exptime);
        executor.get_and_touch(&key, expiry, |hit, context| getter.answer(&key, hit, context, output));
    }
    Ok(())
}

pub(super) fn answer_store(outcome: StoreOutcome, noreply: bool, output: &mut Output) {
    if !noreply {
        output.bytes().extend_from_slice(match outcome {
            StoreOutcome::Stored { .. } => reply::STORED,
            StoreOutcome::NotStored => reply::NOT_STORED,
            StoreOutcome::Exists => reply::EXISTS,
            StoreOutcome::NotFound => reply::NOT_FOUND,
            StoreOutcome::Failed(error) => ErrorReply::bytes(error),
        });
    }
}

// Always: the class of what is written, which its callers count, takes what is read here.
#[inline(always)]
fn write_value(hit: &Hit<'_>, with_cas: bool, context: Context<'_>, output: &mut Output) {
    // All that is read of the item is read before anything is written: it would be read, and worked out, again after.
    let cas = with_cas.then(|| context.cas(hit));
    let value = hit.contiguous();
    reply::value_header(output.bytes(), hit.key(), hit.flags(), hit.value_len(), cas);
    gets::write_value(value, hit, output);
    output.bytes().extend_from_slice(reply::CRLF);
}
