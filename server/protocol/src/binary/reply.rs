//! Replies of the binary protocol.

use super::header::{HEADER_LENGTH, Header, RESPONSE_MAGIC};

/// What a reply says of the outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Status {
    /// Done.
    Success,
    /// There is no such item.
    NotFound,
    /// There is one already, or with another CAS id.
    Exists,
    /// The item is larger than an item may be.
    TooLarge,
    /// The frame is not right.
    InvalidArguments,
    /// There is nothing to append or prepend to.
    NotStored,
    /// The value is not a number.
    NonNumeric,
    /// It is not allowed.
    AuthFailure,
    /// There is no such command.
    UnknownCommand,
    /// There is no memory for it.
    OutOfMemory,
}

impl Status {
    /// Its number.
    pub fn number(self) -> u16 {
        match self {
            Status::Success => 0x00,
            Status::NotFound => 0x01,
            Status::Exists => 0x02,
            Status::TooLarge => 0x03,
            Status::InvalidArguments => 0x04,
            Status::NotStored => 0x05,
            Status::NonNumeric => 0x06,
            Status::AuthFailure => 0x20,
            Status::UnknownCommand => 0x81,
            Status::OutOfMemory => 0x82,
        }
    }

    /// The text that stands in the reply as its value.
    pub fn text(self) -> &'static str {
        match self {
            Status::Success => "",
            Status::NotFound => "Not found",
            Status::Exists => "Data exists for key.",
            Status::TooLarge => "Too large.",
            Status::InvalidArguments => "Invalid arguments",
            Status::NotStored => "Not stored.",
            Status::NonNumeric => "Non-numeric server-side value for incr or decr",
            Status::AuthFailure => "Auth failure.",
            Status::UnknownCommand => "Unknown command",
            Status::OutOfMemory => "Out of memory",
        }
    }
}

/// The header of a reply and its extras; key and value, of these lengths, are to follow.
#[inline]
pub fn begin(
    out: &mut Vec<u8>,
    to: &Header,
    status: Status,
    extras: &[u8],
    [key, value]: [usize; 2],
    cas: u64,
) {
    let mut header = [0; HEADER_LENGTH];
    header[0] = RESPONSE_MAGIC;
    header[1] = to.opcode();
    header[2..4].copy_from_slice(&(key as u16).to_be_bytes());
    header[4] = extras.len() as u8;
    header[6..8].copy_from_slice(&status.number().to_be_bytes());
    header[8..12].copy_from_slice(&((extras.len() + key + value) as u32).to_be_bytes());
    header[12..16].copy_from_slice(&to.opaque());
    header[16..].copy_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(extras);
}

/// A reply that says that it is done, and the CAS id of what has come of it.
pub fn success(out: &mut Vec<u8>, to: &Header, cas: u64) {
    begin(out, to, Status::Success, &[], [0; 2], cas);
}

/// A reply that says why not.
pub fn failure(out: &mut Vec<u8>, to: &Header, status: Status) {
    begin(out, to, status, &[], [0, status.text().len()], 0);
    out.extend_from_slice(status.text().as_bytes());
}

/// The answer to a key that is not there: its status is the text, or the key is, where it was asked for.
pub fn miss(out: &mut Vec<u8>, to: &Header, key: Option<&[u8]>) {
    match key {
        Some(key) => {
            begin(out, to, Status::NotFound, &[], [key.len(), 0], 0);
            out.extend_from_slice(key);
        }
        None => failure(out, to, Status::NotFound),
    }
}

/// The number that arithmetic came to.
pub fn number(out: &mut Vec<u8>, to: &Header, number: u64, cas: u64) {
    begin(out, to, Status::Success, &[], [0, 8], cas);
    out.extend_from_slice(&number.to_be_bytes());
}

/// A value without a key: the version.
pub fn text(out: &mut Vec<u8>, to: &Header, text: &[u8]) {
    begin(out, to, Status::Success, &[], [0, text.len()], 0);
    out.extend_from_slice(text);
}

/// A statistic. After the last of them comes one without name and value.
pub fn stat(out: &mut Vec<u8>, to: &Header, name: &[u8], value: &[u8]) {
    begin(out, to, Status::Success, &[], [name.len(), value.len()], 0);
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}
