//! Replies of meta commands: a code of two letters, and the flags that were asked for, in the order of the request.

use super::base64::encode as encode_base64;
use super::flags::{Flag, Flags};
use super::key::MetaKey;
use crate::number::append;
use crate::reply::CRLF;

/// What `me` says of an item.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Seconds until it expires, if it does.
    pub ttl: Option<u64>,
    /// Seconds since it was last used.
    pub idle: u64,
    /// Its CAS id.
    pub cas: u64,
    /// Whether it has been used since it was stored.
    pub is_fetched: bool,
    /// The number of its slab class.
    pub class: u64,
    /// The bytes it takes, all in all.
    pub size: u64,
}

/// Done, or there.
pub const DONE: &[u8] = b"HD";
/// `mg`, `me`: not there.
pub const MISS: &[u8] = b"EN";
/// The key was not there to be changed.
pub const NOT_FOUND: &[u8] = b"NF";
/// The condition of the mode was not met.
pub const NOT_STORED: &[u8] = b"NS";
/// The item has another CAS id.
pub const EXISTS: &[u8] = b"EX";
/// `mn`: all before it has been answered.
pub const NOOP: &[u8] = b"MN\r\n";
/// This asker is to make the value anew.
pub const WON: &[u8] = b" W";
/// The item is stale.
pub const STALE: &[u8] = b" X";
/// Somebody else is making the value anew.
pub const TAKEN: &[u8] = b" Z";

/// The start of a reply with a value: the code and the length.
#[inline(always)]
pub fn value(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(b"VA ");
    append(out, length as u64);
}

/// A number, behind the letter of the flag that asked for it.
#[inline]
pub fn number(out: &mut Vec<u8>, letter: u8, number: u64) {
    // Not in line: what has one digit or two is most of what is asked for, and there are many who ask.
    #[inline(never)]
    fn long_number(out: &mut Vec<u8>, letter: u8, number: u64) {
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number).as_bytes();
        out.reserve(2 + digits.len());
        out.extend_from_slice(&[b' ', letter]);
        out.extend_from_slice(digits);
    }
    match number {
        0..10 => out.extend_from_slice(&[b' ', letter, b'0' + number as u8]),
        10..100 => {
            let [tens, ones] = [number / 10, number % 10].map(|digit| b'0' + digit as u8);
            out.extend_from_slice(&[b' ', letter, tens, ones]);
        }
        _ => long_number(out, letter, number),
    }
}

/// The time to live, behind the letter of the flag that asked for it: `-1` for one that does not end.
#[inline]
pub fn ttl(out: &mut Vec<u8>, seconds: Option<u64>) {
    match seconds {
        Some(seconds) => number(out, b't', seconds),
        None => out.extend_from_slice(b" t-1"),
    }
}

/// The key, as it was asked for.
#[inline]
pub fn key(out: &mut Vec<u8>, key: &MetaKey<'_>) {
    out.extend_from_slice(b" k");
    match key.plain() {
        Some(key) => out.extend_from_slice(key),
        None => {
            // What was understood, and not what was sent, of which parts may have been skipped.
            encode_base64(out, key.decode(&mut [0; super::MAX_DECODED_LENGTH]));
            out.extend_from_slice(b" b");
        }
    }
}

/// The opaque token.
#[inline]
pub fn opaque(out: &mut Vec<u8>, token: &[u8]) {
    out.extend_from_slice(b" O");
    out.extend_from_slice(token);
}

/// What every command echoes, if this flag asks for it: the key, the opaque token. Says whether it did.
#[inline]
pub fn echo(out: &mut Vec<u8>, flag: Flag<'_>, key: &MetaKey<'_>) -> bool {
    match flag.letter {
        b'k' => {
            self::key(out, key);
            true
        }
        b'O' => {
            opaque(out, flag.argument);
            true
        }
        _ => false,
    }
}

/// A whole line of a code and what every command echoes.
pub fn line(out: &mut Vec<u8>, code: &[u8], key: &MetaKey<'_>, flags: &Flags<'_>) {
    out.extend_from_slice(code);
    for flag in flags.iter() {
        echo(out, flag, key);
    }
    out.extend_from_slice(CRLF);
}
