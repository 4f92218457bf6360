//! `incr` and `decr` on a stored value, which is text.
//!
//! The value is read as C's `strtoull` reads it: white space, a sign, digits, and then its end, white space or a NUL,
//! so `" +5"` and `"5 apples"` are five, and `"5x"` is not a number. An increment wraps at 64 bits, a decrement stops
//! at 0. The new value is the plain number if that is longer than the old value; otherwise the number is written over
//! the old value, which keeps its length and is filled up with spaces behind: 10 decremented is `"9 "`. The reply is
//! the plain number in both cases. Flags and time to live stay, the CAS id changes.
//!
//! (memcached writes in place only if nobody else holds the item at that moment; if someone does, as a reply half sent
//! would, a new item of the plain number's length takes its place. Which of the two it is cannot be told from the
//! request, so this crate always does the first.)

use crate::number::c_u64;
use std::error::Error;
use std::fmt;

/// The longest value in bytes that is looked at. memcached keeps larger items in pieces and does not count with them;
/// its limit is this for a key of one byte and no flags, and a little less for a longer key.
pub const LONGEST_NUMBER: usize = 512 * 1024 - 60;

/// The value is not a number, or its number does not fit 64 bits.
///
/// Answered with [`ErrorReply::NonNumeric`](crate::ErrorReply::NonNumeric); the value stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NotNumeric;

impl fmt::Display for NotNumeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is not a decimal number of 64 bits")
    }
}

impl Error for NotNumeric {}

/// The two directions of arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `incr`: wraps at 64 bits.
    Increment,
    /// `decr`: stops at 0.
    Decrement,
}

/// The outcome of an `incr` or `decr`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArithmeticResult {
    number: u64,
    length: usize,
}

impl ArithmeticResult {
    /// The number, for the reply.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The length of the new value in bytes: that of the old value, or more if the number needs it.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Writes the new value over `value`, which is to have [`length`](Self::length) bytes: the number, then spaces.
    /// What a shorter `value` has no room for is left out.
    pub fn fill(&self, value: &mut [u8]) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(self.number).as_bytes();
        let (number, spaces) = value.split_at_mut(digits.len().min(value.len()));
        number.copy_from_slice(&digits[..number.len()]);
        spaces.fill(b' ');
    }
}

/// Adds to or subtracts from a stored value (without the CRLF of its data block).
///
/// ```
/// # use lookaside_protocol::{Operation, apply};
/// let result = apply(b"10", 1, Operation::Decrement).unwrap();
/// let mut value = vec![0; result.length()];
/// result.fill(&mut value);
/// assert_eq!((result.number(), value.as_slice()), (9, b"9 ".as_slice()));
/// ```
///
/// # Errors
/// [`NotNumeric`] if there is no number in the value, or it is longer than [`LONGEST_NUMBER`].
#[inline]
pub fn apply(value: &[u8], delta: u64, operation: Operation) -> Result<ArithmeticResult, NotNumeric> {
    if value.len() > LONGEST_NUMBER {
        return Err(NotNumeric);
    }
    let old = c_u64(value).ok_or(NotNumeric)?;
    let number = match operation {
        Operation::Increment => old.wrapping_add(delta),
        Operation::Decrement => old.saturating_sub(delta),
    };
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    Ok(ArithmeticResult { number, length: value.len().max(digits) })
}
