//! Numbers as memcached reads them, which it does in two ways, and as it writes them.
//!
//! Lengths, deltas, CAS ids, and the times of `touch`, `gat` and `flush_all` go through a strict reader: decimal digits
//! only, at most 11 bytes for 32 bits and 22 for 64 (so `000000000001` is refused), and a sign only where the number is
//! signed. It has one oddity, kept here: a lone `-` is zero.
//!
//! The flags and the time of the storage commands, and the stored value that `incr` works on, go through C's `strtoul`,
//! `strtol` and `strtoull`: leading white space, a sign, digits; what follows must be white space or a NUL. The number
//! may therefore end before its token does (`5<tab>x` is 5), may begin in the next token (if this one is a tab), and a
//! negative unsigned number wraps (`-18446744073709551615` is 1), but is refused if the result has its top bit set.

/// The longest data block that can be announced: with its CRLF it has to fit a signed 32-bit number.
pub const MAX_VALUE_LENGTH: usize = i32::MAX as usize - 2;

/// The length of a data block, if there can be one so long.
pub(crate) fn value_length(token: &[u8]) -> Option<usize> {
    let length = usize::try_from(strict_i32(token)?).ok()?;
    (length <= MAX_VALUE_LENGTH).then_some(length)
}

/// A strict unsigned number of at most 11 digits that fits 32 bits.
pub(crate) fn strict_u32(token: &[u8]) -> Option<u32> {
    if token.len() > 11 {
        return None;
    }
    let mut number = 0u64;
    for digit in token {
        number = number * 10 + u64::from(decimal(*digit)?);
    }
    u32::try_from(number).ok()
}

/// A space and up to nine digits, if no more of them follow.
#[inline(always)]
pub(crate) fn short_number(text: &[u8]) -> Option<(u32, &[u8])> {
    let [b' ', first @ b'0'..=b'9', rest @ ..] = text else { return None };
    let mut rest = rest;
    let mut number = u32::from(first - b'0');
    let mut more = 8;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        if more == 0 {
            return None;
        }
        number = number * 10 + u32::from(digit - b'0');
        more -= 1;
        rest = after;
    }
    Some((number, rest))
}

/// A strict unsigned number of at most 22 digits that fits 64 bits.
pub(crate) fn strict_u64(token: &[u8]) -> Option<u64> {
    if token.len() > 22 {
        return None;
    }
    let mut number = 0u64;
    for digit in token {
        number = number.checked_mul(10)?.checked_add(u64::from(decimal(*digit)?))?;
    }
    Some(number)
}

/// A strict number of at most 11 bytes, with its sign, that fits 32 bits.
pub(crate) fn strict_i32(token: &[u8]) -> Option<i32> {
    if token.len() > 11 {
        return None;
    }
    let (negative, digits) = match token.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, token),
    };
    let mut number = 0i64;
    for digit in digits {
        number = number * 10 + i64::from(decimal(*digit)?);
    }
    i32::try_from(if negative { -number } else { number }).ok()
}

/// The number at the start of `text` as C's `strtoull` and memcached's checks after it have it.
pub(crate) fn c_u64(text: &[u8]) -> Option<u64> {
    if let Some(number) = digits_only(text) {
        return Some(number);
    }
    let CNumber { negative, magnitude } = c_number(text)?;
    if !negative {
        return Some(magnitude);
    }
    let wrapped = magnitude.wrapping_neg();
    (wrapped >> 63 == 0).then_some(wrapped)
}

/// The number at the start of `text` as C's `strtol` (of 64 bits) and memcached's checks after it have it.
pub(crate) fn c_i64(text: &[u8]) -> Option<i64> {
    let CNumber { negative, magnitude } = c_number(text)?;
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Appends a number in decimal. Most are flags, times, and lengths of small values: of one digit or two.
#[inline]
pub(crate) fn append(out: &mut Vec<u8>, number: u64) {
    match number {
        0..10 => out.push(b'0' + number as u8),
        10..100 => out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]),
        _ => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
    }
}

/// The same with the end of a line behind it, which goes with the digits of a short one.
#[inline(always)]
pub(crate) fn append_line(out: &mut Vec<u8>, number: u64) {
    match number {
        0..10 => out.extend_from_slice(&[b'0' + number as u8, b'\r', b'\n']),
        10..100 => {
            out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8, b'\r', b'\n']);
        }
        _ => {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// A number of digits and nothing else, as a counter has it, that fits 64 bits however large its digits are.
#[inline]
fn digits_only(text: &[u8]) -> Option<u64> {
    if !(1..=19).contains(&text.len()) {
        return None;
    }
    text.iter().try_fold(0, |number, &digit| Some(number * 10 + u64::from(decimal(digit)?)))
}

struct CNumber {
    negative: bool,
    magnitude: u64,
}

fn c_number(text: &[u8]) -> Option<CNumber> {
    let mut bytes = text.iter().copied().peekable();
    while bytes.next_if(|byte| is_c_space(*byte)).is_some() {}
    let negative = bytes.next_if(|byte| matches!(byte, b'-' | b'+')) == Some(b'-');
    let mut magnitude = u64::from(decimal(bytes.next()?)?);
    while let Some(digit) = bytes.peek().copied().and_then(decimal) {
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
        bytes.next();
    }
    match bytes.next() {
        Some(byte) if byte != 0 && !is_c_space(byte) => None,
        _ => Some(CNumber { negative, magnitude }),
    }
}

#[inline]
fn decimal(byte: u8) -> Option<u8> {
    let digit = byte.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

/// C's `isspace` in the C locale; vertical tab and form feed are among them, unlike in `u8::is_ascii_whitespace`.
fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_numbers() {
        assert_eq!(strict_u32(b"0"), Some(0));
        assert_eq!(strict_u32(b"4294967295"), Some(u32::MAX));
        assert_eq!(strict_u32(b"4294967296"), None);
        assert_eq!(strict_u32(b"00000000001"), Some(1));
        assert_eq!(strict_u32(b"000000000001"), None);
        assert_eq!(strict_u32(b"-1"), None);
        assert_eq!(strict_u32(b"1x"), None);
        assert_eq!(strict_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(strict_u64(b"18446744073709551616"), None);
        assert_eq!(strict_u64(b"0000000000000000000001"), Some(1));
        assert_eq!(strict_u64(b"00000000000000000000001"), None);
        assert_eq!(strict_u64(b"+1"), None);
        assert_eq!(strict_i32(b"2147483647"), Some(i32::MAX));
        assert_eq!(strict_i32(b"2147483648"), None);
        assert_eq!(strict_i32(b"-2147483648"), Some(i32::MIN));
        assert_eq!(strict_i32(b"-2147483649"), None);
        assert_eq!(strict_i32(b"-"), Some(0));
        assert_eq!(strict_i32(b"-0"), Some(0));
        assert_eq!(strict_i32(b"--1"), None);
        assert_eq!(strict_i32(b"+1"), None);
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for number in (0..2000).chain([u64::MAX]) {
            let mut text = b"x".to_vec();
            append(&mut text, number);
            append_line(&mut text, number);
            assert_eq!(text, format!("x{number}{number}\r\n").as_bytes());
        }
    }

    #[test]
    fn numbers_of_c() {
        assert_eq!(c_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(c_u64(b"18446744073709551616"), None);
        assert_eq!(c_u64(b" \t\x0b\x0c\r\n+5\x00x"), Some(5));
        assert_eq!(c_u64(b"5 x"), Some(5));
        assert_eq!(c_u64(b"5x"), None);
        assert_eq!(c_u64(b"-1"), None);
        assert_eq!(c_u64(b"-9223372036854775809"), Some(i64::MAX as u64));
        assert_eq!(c_u64(b"-9223372036854775808"), None);
        assert_eq!(c_u64(b"-18446744073709551615"), Some(1));
        assert_eq!(c_u64(b"-0"), Some(0));
        for nothing in [b"".as_slice(), b" ", b"-", b"+", b"- 5", b"+-5", b"\x005", b"x", b"\xa05"] {
            assert_eq!(c_u64(nothing), None);
            assert_eq!(c_i64(nothing), None);
        }
        assert_eq!(c_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(c_i64(b"-9223372036854775809"), None);
        assert_eq!(c_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(c_i64(b"9223372036854775808"), None);
        assert_eq!(c_i64(b"\t-7\t9"), Some(-7));
    }
}
