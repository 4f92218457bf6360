//! A conversation: what a client has sent so far, turned into requests and replies.
//!
//! It knows bytes in and bytes out, no sockets, so tests and the fuzzer can talk to it directly. The caller offers what
//! was received; the conversation serves as many requests as are complete and says how much of it is done with. The
//! rest, at most [`MOST_LEFT`] bytes if it is more bytes that are needed, is to be offered again with what comes after
//! it.
//!
//! ```text
//!                  +--------------------------- Command <---------------------------+
//!                  | a value that is still      | a data block        | a get whose  |
//!                  | to come, and large         | to be ignored       | line is not  |
//!                  v                            v                     v all here,    |
//!               Value -----> stored          Swallow ----> ...      List  or whose   |
//!                  +----------------------------+---------------------+ replies do   |
//!                                               +-----------------------------------+
//!                                                                       not fit
//! ```
//!
//! Gets that follow each other, in one line or in many, are looked up together ([`crate::gets`]); their replies are
//! written in order. Nothing else is reordered.

use protocol::{
    Connection, ErrorReply, GetRequest, Key, KeyStream, Line, Refusal, Request, StoreRequest, StreamState,
    parse, reply, split_line,
};

use crate::executor::{After, Executor, StoreReply};
use crate::gets::{Group, Unanswered};
use crate::output::Output;

/// A value is waited for in the receive buffer if it and its line are not longer than this; a longer one is written
/// into the cache's memory as it comes.
const MOST_BUFFERED: usize = 16 << 10;
/// What a conversation that needs more leaves of what it was offered, at the most: the receive buffer must be larger.
pub(crate) const MOST_LEFT: usize = MOST_BUFFERED;
/// What the requests of the binary protocol, which is not spoken here, begin with, and no other does: their values are
/// not to be taken for commands.
const BINARY_REQUEST: u8 = 0x80;
/// Bytes copied to change values, by `append` and the like, that count as much as a request does.
const COPIED_FOR_A_REQUEST: u64 = 4096;

/// What the conversation needs to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// More bytes from the client.
    Input,
    /// Its replies to be sent: they are as many as may wait.
    Room,
    /// Another turn, after others have had theirs.
    Turn,
    /// Nothing: what waits is to be sent, then the connection is closed.
    Close,
    /// Nothing: the connection is to be closed at once.
    Abort,
}

/// What a conversation that needs more input waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// A request, or the rest of its line.
    Request,
    /// The rest of a value.
    Value,
    /// The rest of a value that is not wanted.
    UnwantedValue,
}

/// What came of an offer of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Served {
    /// Bytes that are done with.
    pub(crate) consumed: usize,
    pub(crate) needs: Needs,
    /// Requests that were begun, and bytes copied for them, in requests.
    pub(crate) requests: usize,
}

/// Where a conversation stands.
enum State {
    /// Before a request line.
    Command,
    /// In the data block of a storage command.
    Value(Block),
    /// In a data block that is not wanted.
    Swallow(usize),
    /// In the key list of a `get`, or of a `gat`, which has a time.
    List { stream: KeyStream, exptime: Option<i32> },
}

/// How far a step has come: bytes that are done with; and if it cannot go on, what it needs.
type Step = Result<usize, (usize, Needs)>;

/// A data block that comes in pieces.
struct Block {
    verb: protocol::Verb,
    noreply: bool,
    /// Where the value goes; an error if it does not go anywhere.
    reservation: Result<cache::engine::Reservation, ErrorReply>,
    /// Bytes of the value that are still to come.
    missing: usize,
    /// Bytes of the line ending behind it that have come, and whether they were right.
    ending: usize,
    ended_well: bool,
}

/// One client's side of things.
pub(crate) struct Conversation {
    state: State,
    /// Whether the line of a storage command was offered, and not all of its value.
    has_line: bool,
}

impl Default for Conversation {
    fn default() -> Self {
        Conversation { state: State::Command, has_line: false }
    }
}

/// Where a piece of `data` begins in it.
fn offset_in(data: &[u8], piece: &[u8]) -> usize {
    piece.as_ptr() as usize - data.as_ptr() as usize
}

impl Conversation {
    /// Serves what can be served of `data`: what was left of the last offer, followed by what has come since.
    pub(crate) fn serve(&mut self, data: &[u8], executor: &mut Executor, output: &mut Output) -> Served {
        let mut at = 0;
        let whole_turn = executor.requests_per_turn();
        let mut turn = whole_turn;
        self.has_line = false;
        let mut copied = executor.copied();
        let needs = loop {
            let copied_before = std::mem::replace(&mut copied, executor.copied());
            turn = turn.saturating_sub(((copied - copied_before) / COPIED_FOR_A_REQUEST) as usize);
            if output.is_full() {
                break Needs::Room;
            }
            let rest = &data[at..];
            let step = match &mut self.state {
                State::Command if rest.is_empty() => break Needs::Input,
                State::Command if turn == 0 => {
                    executor.metrics().yields(1);
                    break Needs::Turn;
                }
                State::Command => self.command(data, at, &mut turn, executor, output),
                State::Value(block) => match block.receive(rest, executor, output) {
                    (consumed, true) => {
                        self.state = State::Command;
                        Ok(consumed)
                    }
                    (_, false) => Err((rest.len(), Needs::Input)),
                },
                State::Swallow(left) => {
                    let swallowed = rest.len().min(*left);
                    *left -= swallowed;
                    if *left == 0 {
                        self.state = State::Command;
                        Ok(swallowed)
                    } else {
                        Err((swallowed, Needs::Input))
                    }
                }
                State::List { .. } => self.list(rest, executor, output),
            };
            match step {
                Ok(consumed) => at += consumed,
                Err((consumed, needs)) => {
                    at += consumed;
                    break needs;
                }
            }
        };
        Served { consumed: at, needs, requests: whole_turn - turn }
    }

    /// What it waits for, if the last offer was not enough.
    pub(crate) fn awaits(&self) -> Awaits {
        match self.state {
            State::Command if self.has_line => Awaits::Value,
            State::Value(_) => Awaits::Value,
            State::Swallow(_) => Awaits::UnwantedValue,
            State::Command | State::List { .. } => Awaits::Request,
        }
    }

    /// Serves the request at `at`, or, if it is a get, the run of gets that begins there.
    fn command(
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
    fn list(&mut self, rest: &[u8], executor: &mut Executor, output: &mut Output) -> Step {
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

impl Block {
    /// Takes what has come of the block; says how much that was, and whether the block is complete and has been
    /// answered.
    fn receive(&mut self, rest: &[u8], executor: &mut Executor, output: &mut Output) -> (usize, bool) {
        let of_value = rest.len().min(self.missing);
        if let Ok(reservation) = &mut self.reservation
            && let Err(error) = executor.fill(reservation, &rest[..of_value])
        {
            self.reservation = Err(error);
        }
        self.missing -= of_value;
        let of_ending = (rest.len() - of_value).min(reply::CRLF.len() - self.ending);
        let ending = &rest[of_value..of_value + of_ending];
        self.ended_well &= reply::CRLF[self.ending..].starts_with(ending);
        self.ending += of_ending;
        let complete = self.ending == reply::CRLF.len();
        if complete {
            let reservation = std::mem::replace(&mut self.reservation, Err(ErrorReply::BadDataChunk));
            let outcome = match reservation {
                Ok(reservation) if self.ended_well => executor.commit(self.verb, reservation),
                Ok(reservation) => executor.abandon(&reservation),
                Err(error) => Err(error),
            };
            answer(outcome, self.noreply, output);
        }
        (of_value + of_ending, complete)
    }
}

fn answer(outcome: StoreReply, noreply: bool, output: &mut Output) {
    if !noreply {
        output.bytes().extend_from_slice(outcome.unwrap_or_else(ErrorReply::bytes));
    }
}
