//! Finding the next request line in what has been received.
//!
//! A line ends with a line feed; a carriage return before it belongs to the ending too. A connection whose peer sends
//! more than 2048 bytes without one is closed, and gets no answer: with one exception, because the number of keys of
//! `get` and `gets` is not limited. (memcached decides when it has read more than 2048 bytes and there is no line feed
//! among them, so a longer line of any command passes if it arrives in one piece. So it does here.)

/// How many bytes without a line feed are suffered from anything but `get` and `gets`.
pub const LINE_LIMIT: usize = 2048;

/// How many spaces a long `get` may start with and still be taken for one.
const MOST_LEADING_SPACES: usize = 100;

/// What [`split_line`] found at the start of the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line<'a> {
    /// A whole line, its line feed included: the slice's length is the number of bytes to consume. For
    /// [`parse`](crate::parse).
    Complete(&'a [u8]),
    /// No whole line yet: read more.
    Incomplete,
    /// More than [`LINE_LIMIT`] bytes of a `get` or `gets` without its end: read more while the buffer has room, and
    /// hand over to a [`KeyStream`](crate::KeyStream) when it has none.
    LongGet,
    /// More than [`LINE_LIMIT`] bytes of anything else: close the connection, without an answer.
    TooLong,
}

/// Finds the first line of `received`.
///
/// ```
/// # use lookaside_protocol::{Line, split_line};
/// assert_eq!(split_line(b"version\r\nget a"), Line::Complete(b"version\r\n"));
/// assert_eq!(split_line(b"get a"), Line::Incomplete);
/// ```
#[inline]
pub fn split_line(received: &[u8]) -> Line<'_> {
    match memchr::memchr(b'\n', received) {
        Some(end) => Line::Complete(&received[..=end]),
        None if received.len() <= LINE_LIMIT => Line::Incomplete,
        None if long_get(received).is_some() => Line::LongGet,
        None => Line::TooLong,
    }
}

/// The line without its ending.
#[inline]
pub(crate) fn strip_ending(line: &[u8]) -> &[u8] {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    text.strip_suffix(b"\r").unwrap_or(text)
}

/// The start of a `get` or `gets` line of any length.
pub(crate) struct LongGet {
    pub(crate) leading_spaces: usize,
    pub(crate) with_cas: bool,
    /// The bytes before the list of keys.
    pub(crate) length: usize,
}

pub(crate) fn long_get(received: &[u8]) -> Option<LongGet> {
    let leading_spaces =
        received.iter().take(MOST_LEADING_SPACES + 1).take_while(|byte| **byte == b' ').count();
    if leading_spaces > MOST_LEADING_SPACES {
        return None;
    }
    let command = &received[leading_spaces..];
    let with_cas = command.starts_with(b"gets ");
    let name = if with_cas {
        5
    } else if command.starts_with(b"get ") {
        4
    } else {
        return None;
    };
    Some(LongGet { leading_spaces, with_cas, length: leading_spaces + name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(start: &[u8], length: usize) -> Vec<u8> {
        let mut bytes = start.to_vec();
        bytes.resize(length, b'k');
        bytes
    }

    #[test]
    fn lines_and_their_endings() {
        assert_eq!(split_line(b""), Line::Incomplete);
        assert_eq!(split_line(b"\n"), Line::Complete(b"\n"));
        assert_eq!(split_line(b"a\r\nb\n"), Line::Complete(b"a\r\n"));
        assert_eq!(split_line(b"a\r"), Line::Incomplete);
        assert_eq!(strip_ending(b"a\r\n"), b"a");
        assert_eq!(strip_ending(b"a\r\r\n"), b"a\r");
        assert_eq!(strip_ending(b"a\n"), b"a");
        assert_eq!(strip_ending(b"\n"), b"");
        assert_eq!(strip_ending(b""), b"");
    }

    #[test]
    fn the_limit_and_its_exception() {
        assert_eq!(split_line(&long(b"set ", 2048)), Line::Incomplete);
        assert_eq!(split_line(&long(b"set ", 2049)), Line::TooLong);
        assert_eq!(split_line(&long(b"get ", 2048)), Line::Incomplete);
        assert_eq!(split_line(&long(b"get ", 2049)), Line::LongGet);
        assert_eq!(split_line(&long(b"gets ", 1 << 20)), Line::LongGet);
        assert_eq!(split_line(&long(b"get", 2049)), Line::TooLong);
        assert_eq!(split_line(&long(b"gat 0 ", 2049)), Line::TooLong);
        assert_eq!(split_line(&long(&[[b' '; 100].as_slice(), b"get "].concat(), 2049)), Line::LongGet);
        assert_eq!(split_line(&long(&[[b' '; 101].as_slice(), b"get "].concat(), 2049)), Line::TooLong);
        assert_eq!(split_line(&[b' '; 3000]), Line::TooLong);
        let whole = [long(b"set ", 4000), b"\r\n".to_vec()].concat();
        assert_eq!(split_line(&whole), Line::Complete(&whole));
    }
}
