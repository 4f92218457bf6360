//! Serving the text protocol: lines, among them those of meta commands.

use cache::engine::Hit;
use protocol::meta::{Flags, MetaLookups, MetaRequest};
use protocol::{
    Connection, ErrorReply, GetRequest, Key, KeyStream, Line, Refusal, Request, StoreRequest, StreamState,
    Verb, parse, parse_plain, parse_plain_get, reply, split_line,
};

use super::block::Asker as Storer;
use super::run::{Reader, Run, Written};
use super::{Conversation, MOST_BUFFERED, Needs, State, Step, meta, offset_in};
use crate::executor::{After, Asker, Context, Executor, How, StoreOutcome, Storing};
use crate::output::Output;

/// Who asks for a key, and how.
#[derive(Clone, Copy)]
pub(super) enum Getter<'d> {
    /// By `get` or `gets`.
    Classic {
        /// Whether its number is wanted beside its value.
        with_cas: bool,
        /// Whether it is the last of its line: `END` is to follow it.
        is_last: bool,
    },
    /// By `mg`, with these flags.
    Meta(Flags<'d>),
}

impl Default for Getter<'_> {
    fn default() -> Self {
        Getter::Classic { with_cas: false, is_last: false }
    }
}

impl Asker for Getter<'_> {
    #[inline(always)]
    fn answer(&self, key: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output) {
        match *self {
            Getter::Classic { with_cas, is_last } => {
                if let Some(hit) = hit {
                    write_value(hit, with_cas, context, output);
                    if is_last {
                        output.bytes().extend_from_slice(b"\r\nEND\r\n");
                    } else {
                        output.bytes().extend_from_slice(reply::CRLF);
                    }
                } else if is_last {
                    output.bytes().extend_from_slice(reply::END);
                }
            }
            Getter::Meta(flags) => meta::answer_get(key, flags, hit, context, output),
        }
    }
}

/// Reads lines of gets and of what writes.
#[derive(Default)]
struct Lines<'d> {
    /// What is left of a line of gets.
    list: Option<GetRequest<'d>>,
    lookups: MetaLookups,
}

impl<'d> Lines<'d> {
    /// Reads one more request; false if there is none that goes this way.
    #[inline(always)]
    fn next(&mut self, run: &mut Run<'d, Getter<'d>, Request<'d>>) -> bool {
        let rest = run.unread();
        if rest.is_empty() {
            return false;
        }
        if let Some((key, with_cas, length)) = parse_plain_get(rest) {
            run.begin(length, key.as_bytes(), Getter::Classic { with_cas, is_last: true });
            return true;
        }
        if let Some((request, length)) = self.lookups.next(rest) {
            let key = request.key.plain().unwrap_or_default();
            run.begin(length, key, Getter::Meta(request.flags));
            return true;
        }
        if run.write(|place| *place = plain(rest)) {
            return true;
        }
        let Line::Complete(line) = split_line(rest) else { return false };
        match parse(line) {
            Ok(Request::Get(GetRequest { mut keys, with_cas })) => {
                let Some(key) = keys.next() else { return false };
                let is_last = keys.is_empty();
                run.begin(line.len(), key.as_bytes(), Getter::Classic { with_cas, is_last });
                if !is_last {
                    self.list = Some(GetRequest { keys, with_cas });
                }
                true
            }
            Ok(request) => run.write(|place| *place = Written::of(request, line.len())),
            Err(_) => false,
        }
    }

    /// Reads on in a line of gets.
    #[inline(always)]
    fn go_on(&mut self, run: &mut Run<'d, Getter<'d>, Request<'d>>) {
        if self.list.is_some() {
            self.go_on_in_list(run);
        }
    }

    fn go_on_in_list(&mut self, run: &mut Run<'d, Getter<'d>, Request<'d>>) {
        let Some(GetRequest { keys, with_cas }) = &mut self.list else { return };
        while run.has_room() {
            let Some(key) = keys.next() else {
                self.list = None;
                return;
            };
            run.ask(key.as_bytes(), Getter::Classic { with_cas: *with_cas, is_last: keys.is_empty() });
        }
    }
}

impl<'d> Reader<'d> for Lines<'d> {
    type Asker = Getter<'d>;
    type Write = Request<'d>;

    #[inline]
    fn read(&mut self, run: &mut Run<'d, Getter<'d>, Request<'d>>, turn: &mut usize) {
        self.go_on(run);
        while run.has_room() && *turn > 0 && self.next(run) {
            *turn -= 1;
            self.go_on(run);
        }
    }

    #[inline]
    fn write(
        conversation: &mut Conversation,
        request: &Request<'d>,
        line: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        conversation.carry_out(request, line, rest, executor, output)
    }

    fn goes_on(asker: &Getter<'d>) -> State {
        let with_cas = matches!(asker, Getter::Classic { with_cas: true, .. });
        State::List { stream: KeyStream::resume(with_cas), exptime: None }
    }
}

impl Conversation {
    /// Serves the requests at the start of `rest` that go together, or the one that does not.
    pub(super) fn command(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        if let Some(step) = self.run(Lines::default(), rest, turn, executor, output) {
            return step;
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
            Ok(Request::GetAndTouch { exptime, mut keys, with_cas }) => {
                let first = keys.next().map_or(line.len(), |key| offset_in(line, &key));
                self.state = State::List { stream: KeyStream::resume(with_cas), exptime: Some(exptime) };
                Ok(first)
            }
            Ok(request) => self.carry_out(&request, line.len(), rest, executor, output),
            Err(refusal) => self.refuse(refusal, line.len(), output),
        }
    }

    /// Carries out a request that is no `get`, whose line has `line` bytes at the start of `rest`.
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

    /// Goes on with a key list.
    pub(super) fn list(&mut self, rest: &[u8], executor: &mut Executor, output: &mut Output) -> Step {
        let State::List { stream, exptime } = &mut self.state else { unreachable!("called in this state") };
        let step = stream.feed(rest);
        let (with_cas, exptime) = (stream.with_cas(), *exptime);
        match exptime {
            None => self.get_list(step.keys, with_cas, rest, executor, output)?,
            Some(exptime) => {
                if let Some(key) = touch(step.keys, exptime, with_cas, executor, output) {
                    // The stream remembers only what kind of line it is.
                    let stream = KeyStream::resume(with_cas);
                    self.state = State::List { stream, exptime: Some(exptime) };
                    return Err((offset_in(rest, key), Needs::Room));
                }
            }
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

    /// Answers the keys of a list that is not all here.
    fn get_list<'d>(
        &mut self,
        mut keys: impl Iterator<Item = Key<'d>>,
        with_cas: bool,
        rest: &'d [u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Result<(), (usize, Needs)> {
        let mut run = Run::new(rest);
        loop {
            run.clear();
            while run.has_room()
                && let Some(key) = keys.next()
            {
                run.ask(key.as_bytes(), Getter::Classic { with_cas, is_last: false });
            }
            if run.is_empty() {
                return Ok(());
            }
            self.serve_run::<Lines<'_>>(&run, &mut 0, executor, output)?;
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

/// The request at the start of what was received, if it writes and is as most clients write it.
#[inline(always)]
fn plain<'d>(received: &'d [u8]) -> Option<Written<'d, Request<'d>>> {
    parse_plain(received).and_then(|(request, line)| Written::of(request, line))
}

impl<'d> Written<'d, Request<'d>> {
    /// A request whose line has so many bytes, if it writes.
    #[inline(always)]
    fn of(request: Request<'d>, line: usize) -> Option<Self> {
        let (key, block) = written(&request)?;
        Some(Written { request, key, line, total: line + block })
    }
}

/// Answers the keys of a list and gives each item another expiry: one after the other, for the second of two equal keys
/// is not there if its time has passed. The first that was not answered, for the output is full.
fn touch<'d>(
    keys: impl Iterator<Item = Key<'d>>,
    exptime: i32,
    with_cas: bool,
    executor: &mut Executor,
    output: &mut Output,
) -> Option<&'d [u8]> {
    for key in keys {
        if output.is_full() {
            return Some(key.as_bytes());
        }
        let expiry = executor.context().expiry(exptime);
        executor.get_and_touch(&key, expiry, |hit, context| {
            if let Some(hit) = hit {
                write_value(hit, with_cas, context, output);
                output.bytes().extend_from_slice(reply::CRLF);
            }
        });
    }
    None
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
    output.value_of(value, hit);
}
