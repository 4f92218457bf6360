//! The meta commands, as plainly as it can be said.

use super::Outcome::{self, Ended, Refused, Request};
use super::{c_signed, c_unsigned, strict_i32};
use lookaside_protocol::ErrorReply::{self, *};

/// The bytes of a key in base64: what is not of the alphabet does not count.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits: Vec<Option<usize>> = text
        .iter()
        .filter(|byte| **byte == b'=' || alphabet.contains(byte))
        .map(|byte| alphabet.iter().position(|digit| digit == byte))
        .collect();
    if digits.is_empty() || !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::new();
    for block in digits.chunks(4) {
        let sum = block.iter().fold(0, |sum, digit| sum * 64 + digit.unwrap_or(0));
        bytes.extend([(sum >> 16) as u8, (sum >> 8) as u8, sum as u8]);
        match block.iter().filter(|digit| digit.is_none()).count() {
            0 => {}
            padding @ 1..=2 => {
                bytes.truncate(bytes.len() - padding);
                return Some(bytes);
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// What is wrong with the flags.
fn check(key: &[u8], flags: &[&[u8]], before: usize) -> Option<ErrorReply> {
    if key.len() > 250 {
        return Some(BadFormat);
    }
    if flags.len() + before > 20 {
        return Some(TooManyFlags);
    }
    let mut error = None;
    for (at, flag) in flags.iter().enumerate() {
        if flag[0] > 126 || flags[..at].iter().any(|earlier| earlier[0] == flag[0]) {
            return Some(DuplicateFlag);
        }
        let rest = &flag[1..];
        let wrong = match flag[0] {
            b'b' if base64(key).is_none() => Some(DecodingKey),
            b'N' | b'T' | b'R' if c_signed(rest).is_none() => Some(BadToken),
            b'C' | b'E' if c_unsigned(rest).is_none() => Some(BadToken),
            b'J' if c_unsigned(rest).is_none() => Some(InvalidInitial),
            b'D' if c_unsigned(rest).is_none() => Some(InvalidDeltaValue),
            b'F' if c_unsigned(rest).is_none() => error.or(Some(BadFormat)),
            letter if b"bNTRCEJDFlOPLkstcfvhuqxMI".contains(&letter) => None,
            _ => return Some(InvalidFlag),
        };
        error = wrong.or(error);
    }
    error
}

/// A line of a meta command: its tokens, the name among them.
pub(super) fn parse(tokens: &[&[u8]]) -> Option<Outcome> {
    let (name, rest) = tokens.split_first()?;
    let refuse = |error| Refused(Some(error), 0);
    let flags_of =
        |flags: &[&[u8]]| flags.iter().map(|flag| [b" ", *flag].concat()).collect::<Vec<_>>().concat();
    let mode = |flags: &[&[u8]]| {
        flags.iter().find(|flag| flag[0] == b'M').map(|flag| flag.get(1).copied().unwrap_or(b' '))
    };
    let too_long = |flags: &[&[u8]]| flags.iter().any(|flag| flag[0] == b'O' && flag.len() > 32);
    let outcome = match (*name, rest) {
        (b"mn", _) => Request(b"mn\r\n".to_vec()),
        (b"ms", [key, length, flags @ ..]) => {
            let length = strict_i32(length).filter(|length| (0..=2_147_483_645).contains(length));
            let Some(length) = length else { return Some(Ended(BadFormat)) };
            let refuse = |error| Refused(Some(error), length as usize + 2);
            match check(key, flags, 3) {
                Some(error) => refuse(error),
                None if mode(flags).is_some_and(|mode| !b"SEAPR".contains(&mode)) => refuse(InvalidSetMode),
                None if too_long(flags) => refuse(OpaqueTooLong),
                None => {
                    let length = format!(" {length}");
                    Request([b"ms ", *key, length.as_bytes(), &flags_of(flags), b"\r\n"].concat())
                }
            }
        }
        (b"ms", _) => Ended(BadFormat),
        (b"mg" | b"md" | b"ma" | b"me", []) => refuse(BadFormat),
        (b"me", [key, flags @ ..]) => {
            let is_base64 = flags.first() == Some(&b"b".as_slice());
            if key.len() > 250 || (is_base64 && base64(key).is_none()) {
                return Some(refuse(BadFormat));
            }
            let end = if is_base64 { b" b\r\n".as_slice() } else { b"\r\n" };
            Request([b"me ", *key, end].concat())
        }
        (b"mg" | b"md" | b"ma", [key, flags @ ..]) => match check(key, flags, 2) {
            Some(_) if *name == b"ma" && key.len() <= 250 => refuse(InvalidOrDuplicateFlag),
            Some(error) => refuse(error),
            None if *name == b"ma" && mode(flags).is_some_and(|mode| !b"I+D-".contains(&mode)) => {
                refuse(InvalidArithmeticMode)
            }
            None if too_long(flags) => refuse(OpaqueTooLong),
            None => Request([*name, b" ", *key, &flags_of(flags), b"\r\n"].concat()),
        },
        _ => return None,
    };
    Some(outcome)
}
