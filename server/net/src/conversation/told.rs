//! Requests while they are told: to those who watch `rawcmds`, and to the server's own log with `-vv`.
//!
//! They are served one by one then, gets as well, so that each stands before what comes of it. Nobody else has to ask
//! whether that is wanted: it is one more state before a request.

use protocol::binary::{HEADER_LENGTH, REQUEST_MAGIC, RESPONSE_MAGIC, opcode};
use protocol::{Line, split_line};

use super::{Conversation, Step};
use crate::executor::Executor;
use crate::output::Output;
use crate::settings::Protocol;

impl Conversation {
    /// Serves the request at the start of `rest`, and tells it and what is answered.
    #[cold]
    pub(super) fn told(
        &mut self,
        rest: &[u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        // What is offered again, because there was too little of it, or no room, is the same request.
        if !self.is_told
            && let Some(text) = self.text_of(rest)
        {
            executor.observe_request(&text);
            self.is_told = true;
        }
        let before = output.bytes().len();
        let mut one = 1;
        let step = self.request(rest, &mut one, executor, output);
        *turn -= 1 - one;
        let is_done = !matches!(step, Err((0, _)));
        if is_done {
            self.is_told = false;
        }
        tell_reply(before, executor, output);
        step
    }

    /// What is told of the request at the start of `rest`; nothing before it can be.
    fn text_of(&self, rest: &[u8]) -> Option<Vec<u8>> {
        let is_binary = match self.protocol {
            Protocol::Auto => rest.first() == Some(&REQUEST_MAGIC),
            Protocol::Ascii => false,
            Protocol::Binary => true,
        };
        if is_binary {
            return frame(rest);
        }
        let line = match split_line(rest) {
            Line::Complete(line) => line,
            Line::Incomplete => return None,
            // As much as is there: its end may be far.
            Line::LongGet | Line::TooLong => rest,
        };
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        Some(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
    }
}

/// Tells the reply that begins there in what waits to be sent, if replies are told.
pub(super) fn tell_reply(before: usize, executor: &Executor, output: &mut Output) {
    if executor.hears_requests()
        && let Some(text) = reply_of(&output.bytes()[before..])
    {
        executor.observe_reply(&text);
    }
}

/// A frame's command and key.
fn frame(rest: &[u8]) -> Option<Vec<u8>> {
    let header = rest.get(..HEADER_LENGTH)?;
    let number = |at: usize| usize::from(header[at]) << 8 | usize::from(header[at + 1]);
    let key = HEADER_LENGTH + usize::from(header[4])..HEADER_LENGTH + usize::from(header[4]) + number(2);
    let mut text = match NAMES.iter().find(|&&(code, _)| code == header[1]) {
        Some(&(_, name)) => name.as_bytes().to_vec(),
        None => format!("0x{:02x}", header[1]).into_bytes(),
    };
    let key = rest.get(key)?;
    if !key.is_empty() {
        text.push(b' ');
        text.extend_from_slice(key);
    }
    Some(text)
}

/// What is told of a reply: its first line, or the last one behind values and statistics; a frame's status.
fn reply_of(reply: &[u8]) -> Option<Vec<u8>> {
    if let [RESPONSE_MAGIC, _, _, _, _, _, high, low, ..] = reply {
        return Some(format!("status 0x{high:02x}{low:02x}").into_bytes());
    }
    let is_list = reply.starts_with(b"VALUE ") || reply.starts_with(b"STAT ");
    let mut lines = reply.split(|&byte| byte == b'\n');
    // Behind the last line feed there is nothing.
    let line = if is_list { lines.rev().nth(1) } else { lines.next() }?;
    let line = line.strip_suffix(b"\r")?;
    Some(line.to_vec())
}

/// Commands by their names.
const NAMES: [(u8, &str); 31] = [
    (opcode::GET, "GET"),
    (opcode::SET, "SET"),
    (opcode::ADD, "ADD"),
    (opcode::REPLACE, "REPLACE"),
    (opcode::DELETE, "DELETE"),
    (opcode::INCREMENT, "INCR"),
    (opcode::DECREMENT, "DECR"),
    (opcode::QUIT, "QUIT"),
    (opcode::FLUSH, "FLUSH"),
    (opcode::GET_Q, "GETQ"),
    (opcode::NOOP, "NOOP"),
    (opcode::VERSION, "VERSION"),
    (opcode::GET_K, "GETK"),
    (opcode::GET_KQ, "GETKQ"),
    (opcode::APPEND, "APPEND"),
    (opcode::PREPEND, "PREPEND"),
    (opcode::STAT, "STAT"),
    (opcode::SET_Q, "SETQ"),
    (opcode::ADD_Q, "ADDQ"),
    (opcode::REPLACE_Q, "REPLACEQ"),
    (opcode::DELETE_Q, "DELETEQ"),
    (opcode::INCREMENT_Q, "INCRQ"),
    (opcode::DECREMENT_Q, "DECRQ"),
    (opcode::FLUSH_Q, "FLUSHQ"),
    (opcode::APPEND_Q, "APPENDQ"),
    (opcode::PREPEND_Q, "PREPENDQ"),
    (opcode::TOUCH, "TOUCH"),
    (opcode::GAT, "GAT"),
    (opcode::GAT_Q, "GATQ"),
    (opcode::GAT_K, "GATK"),
    (opcode::GAT_KQ, "GATKQ"),
];
