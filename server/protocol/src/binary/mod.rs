//! The binary protocol: frames of a header of 24 bytes, extras, a key and a value, in this order.
//!
//! A connection speaks it from its first byte on ([`REQUEST_MAGIC`]) or not at all. [`parse`] takes the first frame of
//! what has been received; of a frame that stores, all but its value. Each command is a file here, which says what its
//! frame consists of; replies are written by [`reply`].
//!
//! What a frame may be is checked as memcached checks it: a key that is too long, extras or a value where there are
//! none, and lengths that do not fit each other are answered and end the connection, for what follows may be anything.
//! One thing is done better: the body of a command that does not exist is skipped, where memcached 1.6.18 takes what
//! follows it for the body.

mod arithmetic;
mod delete;
mod flush;
mod get;
mod header;
pub mod opcode;
mod parts;
mod plain;
pub mod reply;
mod request;
mod stats;
mod store;
mod touch;

pub use header::{HEADER_LENGTH, Header, REQUEST_MAGIC, RESPONSE_MAGIC};
pub use reply::Status;
pub use request::{BinaryArithmetic, BinaryGet, BinaryMode, BinaryRequest, BinaryStore, NO_INITIAL};

use self::parts::Parts;
use crate::key::MAX_KEY_LENGTH;

/// The longest body in bytes; a frame that announces more is refused.
pub const MAX_BODY_LENGTH: usize = 1 << 30;

/// What [`parse`] found at the start of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Read more: at least so many bytes are needed in all.
    Incomplete(usize),
    /// A request, and the bytes that it takes, without the value of a [`BinaryRequest::Store`].
    Request {
        /// Its header, which the reply refers to.
        header: Header,
        /// What is asked for.
        request: BinaryRequest<'a>,
        /// Bytes before the value.
        length: usize,
    },
    /// No request: it is to be answered with this status.
    Refused {
        /// Its header.
        header: Header,
        /// The status to answer with.
        status: Status,
        /// Bytes to throw away, the header among them; `None`: the connection is to be closed after the answer.
        swallow: Option<usize>,
    },
    /// Not this protocol: the connection is to be closed, without an answer.
    Foreign,
}

/// Finds the first frame of `received`.
///
/// ```
/// # use lookaside_protocol::binary::{BinaryRequest, Frame, parse};
/// let mut received = [0; 24];
/// received[..2].copy_from_slice(&[0x80, 0x0a]);
/// let Frame::Request { request: BinaryRequest::Noop, length: 24, .. } = parse(&received) else { panic!() };
/// assert_eq!(parse(&received[..3]), Frame::Incomplete(24));
/// ```
// Always, and the reading of each command with it: a request is long, and moved it is waited for.
#[inline(always)]
pub fn parse(received: &[u8]) -> Frame<'_> {
    if received.first().is_some_and(|&magic| magic != REQUEST_MAGIC) {
        return Frame::Foreign;
    }
    let Some((header, body)) = received.split_first_chunk() else { return Frame::Incomplete(HEADER_LENGTH) };
    let header = Header::read(header);
    let refuse = |status| Frame::Refused { header, status, swallow: None };
    let (key, extras, total) = (header.key_length(), header.extras_length(), header.body_length());
    if key > MAX_KEY_LENGTH || total > MAX_BODY_LENGTH {
        return refuse(Status::InvalidArguments);
    }
    let Some(value_length) = total.checked_sub(key + extras) else { return refuse(Status::UnknownCommand) };
    let command = match body.get(..key + extras) {
        Some(before_value) => {
            let (extras, key) = before_value.split_at(extras);
            read(&Parts { header, extras, key, value_length })
        }
        // What it consists of is known before it has come, and what is wrong needs not be waited for.
        None => match may_come(header, value_length) {
            Command::Right(()) => return Frame::Incomplete(HEADER_LENGTH + key + extras),
            Command::Wrong => Command::Wrong,
            Command::Unknown => Command::Unknown,
        },
    };
    match command {
        Command::Right(request) => Frame::Request { header, request, length: HEADER_LENGTH + key + extras },
        Command::Wrong => refuse(Status::InvalidArguments),
        Command::Unknown => {
            let swallow = Some(HEADER_LENGTH + total);
            Frame::Refused { header, status: Status::UnknownCommand, swallow }
        }
    }
}

/// What a frame asks for.
enum Command<R> {
    Right(R),
    /// Its parts are not those of the command.
    Wrong,
    /// There is no such command.
    Unknown,
}

/// The same of a frame that is not all here, but for what it asks for.
#[inline(never)]
fn may_come(header: Header, value_length: usize) -> Command<()> {
    let (key, extras) = (header.key_length(), header.extras_length());
    match read(&Parts { header, extras: &[0; 255][..extras], key: &[0; 255][..key], value_length }) {
        Command::Right(_) => Command::Right(()),
        Command::Wrong => Command::Wrong,
        Command::Unknown => Command::Unknown,
    }
}

/// Reads a frame as its command has it.
#[inline(always)]
fn read<'a>(parts: &Parts<'a>) -> Command<BinaryRequest<'a>> {
    use opcode::*;
    let request = match parts.opcode() {
        GET | GET_Q | GET_K | GET_KQ => get::read(parts),
        SET | SET_Q | ADD | ADD_Q | REPLACE | REPLACE_Q => store::read(parts),
        APPEND | APPEND_Q | PREPEND | PREPEND_Q => store::read_extension(parts),
        DELETE | DELETE_Q => delete::read(parts),
        INCREMENT | INCREMENT_Q | DECREMENT | DECREMENT_Q => arithmetic::read(parts),
        TOUCH | GAT | GAT_Q | GAT_K | GAT_KQ => touch::read(parts),
        FLUSH | FLUSH_Q => flush::read(parts),
        STAT => stats::read(parts),
        NOOP | VERSION | QUIT | QUIT_Q => plain::read(parts),
        _ => return Command::Unknown,
    };
    request.map_or(Command::Wrong, Command::Right)
}
