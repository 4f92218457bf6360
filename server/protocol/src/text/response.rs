//! Reading replies, for clients: the load generator and the tests.
//!
//! [`parse`] takes one reply off the front of the received bytes: a line, or a value with its data. Nothing is kept
//! between calls and nothing is copied. A value's line is read in one pass from left to right, without looking for its
//! end first, and its data is stepped over by its length without being looked at, so that counting replies costs the
//! same for small and large values. If bytes are missing, [`Parsed::Incomplete`] says how many there must be at least,
//! which for a value that has begun is the exact number: a large one is not tried again with every packet.

use std::error::Error;
use std::fmt;

/// One reply, or one of the lines that a reply of several lines is made of. It borrows from the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Response<'a> {
    /// `VALUE`: a value that was asked for. More values or [`Response::End`] follow.
    Value {
        /// The key.
        key: &'a [u8],
        /// The client's own 32 bits.
        flags: u32,
        /// The CAS id, in replies to `gets` and `gats`.
        cas: Option<u64>,
        /// The data.
        data: &'a [u8],
    },
    /// `END`: of values or statistics.
    End,
    /// `STORED`.
    Stored,
    /// `NOT_STORED`.
    NotStored,
    /// `EXISTS`.
    Exists,
    /// `NOT_FOUND`.
    NotFound,
    /// `DELETED`.
    Deleted,
    /// `TOUCHED`.
    Touched,
    /// `OK`.
    Ok,
    /// `RESET`.
    Reset,
    /// The number that `incr` or `decr` came to.
    Number(u64),
    /// `STAT`: more of them or [`Response::End`] follow.
    Stat {
        /// The statistic's name.
        name: &'a [u8],
        /// Its value, which may be empty and may have spaces in it.
        value: &'a [u8],
    },
    /// `VERSION`, and what follows the word.
    Version(&'a [u8]),
    /// `ERROR`, `CLIENT_ERROR ...`, `SERVER_ERROR ...`: the whole line.
    Error(&'a [u8]),
    /// Any other line that starts with a capital letter, as the replies to administrators' commands do.
    Other(&'a [u8]),
}

/// What [`parse`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A reply, and how many bytes it took.
    Complete {
        /// The reply.
        response: Response<'a>,
        /// Its length in bytes.
        consumed: usize,
    },
    /// The reply is not all there: it cannot be parsed before this many bytes have been received, counted from its
    /// start.
    Incomplete {
        /// At least this many bytes.
        needed: usize,
    },
}

/// The bytes are not a reply of a memcached. What follows cannot be understood either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Malformed {
    /// A line that starts with `VALUE` and does not go on as it should.
    ValueLine,
    /// A value's data is not followed by CRLF.
    ValueEnd,
    /// A line that starts with a digit and is not a number of 64 bits.
    Number,
    /// A line that starts with `STAT` and does not go on with a name.
    Stat,
    /// A line that starts like no reply does, or does not end with CRLF.
    Line,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Malformed::ValueLine => "its VALUE line is not right",
            Malformed::ValueEnd => "a value's data is not followed by CRLF",
            Malformed::Number => "its number does not fit 64 bits or is not one",
            Malformed::Stat => "its STAT line has no name",
            Malformed::Line => "it starts like no reply, or does not end with CRLF",
        };
        write!(f, "not a memcached reply: {what}; close the connection")
    }
}

impl Error for Malformed {}

/// Parses the reply at the start of `received`.
///
/// ```
/// # use lookaside_protocol::response::{Parsed, Response, parse};
/// let received = b"VALUE k 0 4\r\nstar\r\nEND\r\n";
/// let Ok(Parsed::Complete { response, consumed }) = parse(received) else { panic!() };
/// assert_eq!(response, Response::Value { key: b"k", flags: 0, cas: None, data: b"star" });
/// assert_eq!(parse(&received[consumed..]), Ok(Parsed::Complete { response: Response::End, consumed: 5 }));
/// assert_eq!(parse(b"VALUE k 0 4\r\nst"), Ok(Parsed::Incomplete { needed: 19 }));
/// ```
///
/// # Errors
/// [`Malformed`] if no more bytes could make this a reply.
#[inline]
pub fn parse(received: &[u8]) -> Result<Parsed<'_>, Malformed> {
    if let Some(after) = received.strip_prefix(b"VALUE ") {
        return value(received, after);
    }
    // The commonest lines, known without looking for their end.
    for (line, response) in [(b"END\r\n".as_slice(), Response::End), (b"STORED\r\n", Response::Stored)] {
        if received.starts_with(line) {
            return Ok(Parsed::Complete { response, consumed: line.len() });
        }
    }
    line(received)
}

/// `VALUE <key> <flags> <length>[ <cas>]\r\n<data>\r\n`; `after` begins with the key.
#[inline]
fn value<'a>(received: &'a [u8], after: &'a [u8]) -> Result<Parsed<'a>, Malformed> {
    match value_line(after) {
        Err(Stop::Malformed) => Err(Malformed::ValueLine),
        Err(Stop::Incomplete) if after.len() > LONGEST_VALUE_LINE => Err(Malformed::ValueLine),
        Err(Stop::Incomplete) => Ok(Parsed::Incomplete { needed: received.len() + 1 }),
        Ok(ValueLine { key, flags, length, cas, rest }) => {
            let Some(data_end) = usize::try_from(length).ok().and_then(|length| length.checked_add(2)) else {
                return Err(Malformed::ValueLine);
            };
            let Some((data, _)) = rest.split_at_checked(data_end) else {
                let header = received.len() - rest.len();
                return Ok(Parsed::Incomplete {
                    needed: header.checked_add(data_end).ok_or(Malformed::ValueLine)?,
                });
            };
            let data = data.strip_suffix(b"\r\n").ok_or(Malformed::ValueEnd)?;
            let consumed = received.len() - rest.len() + data_end;
            Ok(Parsed::Complete { response: Response::Value { key, flags, cas, data }, consumed })
        }
    }
}

/// A `VALUE` line without an end within so many bytes is none: a key and three numbers are shorter.
const LONGEST_VALUE_LINE: usize = 512;

struct ValueLine<'a> {
    key: &'a [u8],
    flags: u32,
    length: u64,
    cas: Option<u64>,
    /// What follows the line.
    rest: &'a [u8],
}

enum Stop {
    Incomplete,
    Malformed,
}

#[inline]
fn value_line(after: &[u8]) -> Result<ValueLine<'_>, Stop> {
    let key_end = memchr::memchr2(b' ', b'\n', after).ok_or(Stop::Incomplete)?;
    let (key, rest) = after.split_at(key_end);
    if key.is_empty() {
        return Err(Stop::Malformed);
    }
    let (flags, rest) = digits(expect(rest, b' ')?)?;
    let flags = u32::try_from(flags).map_err(|_| Stop::Malformed)?;
    let rest = expect(rest, b' ')?;
    let (length, mut rest) = digits(rest)?;
    let mut cas = None;
    if let [b' ', after @ ..] = rest {
        let (id, after) = digits(after)?;
        cas = Some(id);
        rest = after;
    }
    let rest = expect(expect(rest, b'\r')?, b'\n')?;
    Ok(ValueLine { key, flags, length, cas, rest })
}

/// One or more digits, and a byte behind them that is none.
#[inline]
fn digits(text: &[u8]) -> Result<(u64, &[u8]), Stop> {
    let mut number = 0u64;
    for (at, byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return if at == 0 { Err(Stop::Malformed) } else { Ok((number, &text[at..])) };
        }
        number = number
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit)))
            .ok_or(Stop::Malformed)?;
    }
    Err(Stop::Incomplete)
}

#[inline]
fn expect(text: &[u8], byte: u8) -> Result<&[u8], Stop> {
    match text.split_first() {
        Some((first, rest)) if *first == byte => Ok(rest),
        Some(_) => Err(Stop::Malformed),
        None => Err(Stop::Incomplete),
    }
}

/// Every reply that is just a line.
fn line(received: &[u8]) -> Result<Parsed<'_>, Malformed> {
    let Some(first) = received.first() else { return Ok(Parsed::Incomplete { needed: 1 }) };
    if !first.is_ascii_uppercase() && !first.is_ascii_digit() {
        return Err(Malformed::Line);
    }
    let Some(end) = memchr::memchr(b'\n', received) else {
        return Ok(Parsed::Incomplete { needed: received.len() + 1 });
    };
    let text = received[..end].strip_suffix(b"\r").ok_or(Malformed::Line)?;
    let response = match text {
        b"END" => Response::End,
        b"STORED" => Response::Stored,
        b"NOT_STORED" => Response::NotStored,
        b"EXISTS" => Response::Exists,
        b"NOT_FOUND" => Response::NotFound,
        b"DELETED" => Response::Deleted,
        b"TOUCHED" => Response::Touched,
        b"OK" => Response::Ok,
        b"RESET" => Response::Reset,
        [b'0'..=b'9', ..] => match digits(&received[..=end]) {
            Ok((number, b"\r\n")) => Response::Number(number),
            _ => return Err(Malformed::Number),
        },
        _ => worded(text)?,
    };
    Ok(Parsed::Complete { response, consumed: end + 1 })
}

/// The lines whose first word says what they are.
fn worded(text: &[u8]) -> Result<Response<'_>, Malformed> {
    let (word, rest) = match memchr::memchr(b' ', text) {
        Some(space) => (&text[..space], &text[space + 1..]),
        None => (text, b"".as_slice()),
    };
    match word {
        b"STAT" => {
            let name_end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
            let (name, value) = rest.split_at(name_end);
            if name.is_empty() {
                return Err(Malformed::Stat);
            }
            Ok(Response::Stat { name, value: value.strip_prefix(b" ").unwrap_or(value) })
        }
        b"VERSION" => Ok(Response::Version(rest)),
        b"VALUE" => Err(Malformed::ValueLine),
        // With a colon in the one reply that has it: `SERVER_ERROR: shutdown not enabled`.
        b"ERROR" | b"ERROR:" | b"CLIENT_ERROR" | b"SERVER_ERROR" | b"SERVER_ERROR:" => {
            Ok(Response::Error(text))
        }
        _ => Ok(Response::Other(text)),
    }
}
