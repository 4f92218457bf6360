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
//! Of requests that have come together the memory is asked for together, before the first of them is served ([`run`]).
//! Nothing is reordered.

mod binary;
mod block;
mod meta;
mod run;
mod text;
mod told;

use protocol::binary::REQUEST_MAGIC;
use protocol::meta::MetaRequest;
use protocol::{ErrorReply, KeyStream, Request, reply};

use crate::executor::{Context, Executor, StoreOutcome, Storing};
use crate::output::Output;
use crate::settings::Protocol;
use block::{Asker, Block};

/// A value is waited for in the receive buffer if it and its line are not longer than this; a longer one is written
/// into the cache's memory as it comes.
const MOST_BUFFERED: usize = 16 << 10;
/// What a conversation that needs more leaves of what it was offered, at the most: the receive buffer must be larger.
pub(crate) const MOST_LEFT: usize = MOST_BUFFERED;
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
    /// To be handed over, after what waits is sent: see [`Executor::take_errand`].
    Aside,
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

/// Where a piece of `data` begins in it.
fn offset_in(data: &[u8], piece: &[u8]) -> usize {
    piece.as_ptr() as usize - data.as_ptr() as usize
}

/// How far a step has come: bytes that are done with; and if it cannot go on, what it needs.
type Step = Result<usize, (usize, Needs)>;

/// One client's side of things.
pub(crate) struct Conversation {
    state: State,
    /// Whether the line of a storage command was offered, and not all of its value.
    has_line: bool,
    /// Whether the request that comes next was told already, to those who want to hear of requests.
    is_told: bool,
    /// The protocol that the client speaks; [`Protocol::Auto`] before its first byte.
    protocol: Protocol,
}

impl Conversation {
    /// A conversation that has not begun, in this protocol.
    pub(crate) fn new(protocol: Protocol) -> Self {
        Conversation { state: State::Command, has_line: false, is_told: false, protocol }
    }

    /// Serves what can be served of `data`: what was left of the last offer, followed by what has come since.
    pub(crate) fn serve(&mut self, data: &[u8], executor: &mut Executor, output: &mut Output) -> Served {
        let mut at = 0;
        let whole_turn = executor.requests_per_turn();
        let mut turn = whole_turn;
        self.has_line = false;
        // Whoever heard of it may have gone, and others come.
        self.is_told &= executor.hears_requests();
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
                State::Command if executor.hears_requests() => self.told(rest, &mut turn, executor, output),
                State::Command => self.request(rest, &mut turn, executor, output),
                State::Value(block) => {
                    let before = output.bytes().len();
                    match block.receive(rest, executor) {
                        (consumed, Some(outcome)) => {
                            answer_store(block.asker(), outcome, executor.context(), output);
                            self.state = State::Command;
                            told::tell_reply(before, executor, output);
                            Ok(consumed)
                        }
                        (_, None) => Err((rest.len(), Needs::Input)),
                    }
                }
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

    /// Serves the request at the start of `rest`, which is not empty.
    fn request(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let is_binary = rest.first() == Some(&REQUEST_MAGIC);
        if self.protocol == Protocol::Auto {
            self.protocol = if is_binary { Protocol::Binary } else { Protocol::Ascii };
        }
        match self.protocol {
            Protocol::Binary => self.frame(rest, turn, executor, output),
            // A frame's value is not to be taken for commands.
            _ if is_binary => Err((0, Needs::Abort)),
            _ => self.command(rest, turn, executor, output),
        }
    }

    /// Takes the data block of a request that stores, which has `line` bytes before it at the start of `rest`; or as
    /// much as is there of a large one.
    #[allow(clippy::too_many_arguments, reason = "what is stored, where it is, who asks, and who serves")]
    fn take_block(
        &mut self,
        storing: &Storing<'_>,
        line: usize,
        rest: &[u8],
        asker: impl FnOnce() -> Asker,
        answer: impl FnOnce(StoreOutcome, Context<'_>, &mut Output),
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let ending = if self.protocol == Protocol::Binary { b"".as_slice() } else { reply::CRLF };
        let length = storing.length;
        if executor.refuse_too_large(storing) {
            answer(StoreOutcome::Failed(ErrorReply::TooLarge), executor.context(), output);
            self.state = State::Swallow(length + ending.len());
            return Ok(line);
        }
        let total = line + length + ending.len();
        if let Some(block) = rest.get(line..total) {
            let (value, end) = block.split_at(length);
            let outcome =
                if end == ending { executor.store(storing, value) } else { executor.refuse_data(storing) };
            answer(outcome, executor.context(), output);
            return Ok(total);
        }
        if total <= MOST_BUFFERED {
            self.has_line = true;
            return Err((0, Needs::Input));
        }
        self.state = State::Value(Block::new(asker(), executor.reserve(storing), length));
        Ok(line)
    }
}

/// Tells who stored a value that came in pieces what came of it.
fn answer_store(asker: &Asker, outcome: StoreOutcome, context: Context<'_>, output: &mut Output) {
    match asker {
        Asker::Text { noreply } => text::answer_store(outcome, *noreply, output),
        Asker::Meta { line } => {
            if let Ok(Request::Meta(MetaRequest::Set(request))) = protocol::parse(line) {
                meta::answer_set(&request, outcome, context, output);
            }
        }
        Asker::Binary { header } => binary::answer_store(header, outcome, context, output),
    }
}
