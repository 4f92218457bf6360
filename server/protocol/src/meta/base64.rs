//! Keys in base64, as memcached reads them: bytes that are not of the alphabet are skipped, padding ends the key
//! wherever it stands in its block of four, and what then follows is not looked at. What is skipped does not count, but
//! all the others must come to whole blocks.

use crate::key::MAX_KEY_LENGTH;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING: u8 = b'=';
/// The longest key that can be written in base64: the limit of a key's length is one of what is on the line.
pub const MAX_DECODED_LENGTH: usize = MAX_KEY_LENGTH / 4 * 3;

/// Decodes a key of up to [`MAX_KEY_LENGTH`] bytes, and returns its length. `None` if it is not base64.
pub(super) fn decode(text: &[u8], out: &mut [u8; MAX_DECODED_LENGTH]) -> Option<usize> {
    let digits = || text.iter().filter_map(|&byte| digit(byte));
    let count = digits().count();
    if count == 0 || !count.is_multiple_of(4) {
        return None;
    }
    let mut length = 0;
    let mut block = 0u32;
    let mut padding = 0;
    for (place, digit) in digits().enumerate() {
        padding += usize::from(digit.is_none());
        block = block << 6 | u32::from(digit.unwrap_or(0));
        if place % 4 == 3 {
            let [_, bytes @ ..] = block.to_be_bytes();
            out.get_mut(length..length + 3)?.copy_from_slice(&bytes);
            length += 3;
            block = 0;
            if padding > 0 {
                return if padding <= 2 { Some(length - padding) } else { None };
            }
        }
    }
    Some(length)
}

/// The value of a byte of the alphabet; `Some(None)` for padding, `None` for what is skipped.
fn digit(byte: u8) -> Option<Option<u8>> {
    match byte {
        b'A'..=b'Z' => Some(Some(byte - b'A')),
        b'a'..=b'z' => Some(Some(byte - b'a' + 26)),
        b'0'..=b'9' => Some(Some(byte - b'0' + 52)),
        b'+' => Some(Some(62)),
        b'/' => Some(Some(63)),
        PADDING => Some(None),
        _ => None,
    }
}

/// Appends bytes in base64, with padding.
pub fn encode(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let mut block = [0; 4];
        block[1..=chunk.len()].copy_from_slice(chunk);
        let block = u32::from_be_bytes(block);
        for place in 0..4 {
            let digit = block >> (18 - 6 * place) & 63;
            out.push(if place <= chunk.len() { ALPHABET[digit as usize] } else { PADDING });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &[u8]) -> Option<Vec<u8>> {
        let mut out = [0; MAX_DECODED_LENGTH];
        decode(text, &mut out).map(|length| out[..length].to_vec())
    }

    #[test]
    fn what_memcached_takes_for_base64() {
        let table: [(&[u8], Option<&[u8]>); 17] = [
            (b"YQ==", Some(b"a")),
            (b"YWI=", Some(b"ab")),
            (b"YWJj", Some(b"abc")),
            (b"IA==", Some(b" ")),
            (b"YR==", Some(b"a")),
            (b"Y!Q==", Some(b"a")),
            (b"YQ=!=", Some(b"a")),
            (b"Y\tQ==", Some(b"a")),
            (b"Y=Q=", Some(b"`")),
            (b"=YQ=", Some(b"\x01")),
            (b"YQ=a", Some(b"a\0")),
            (b"YQ==YQ==", Some(b"a")),
            (b"YQ", None),
            (b"YQ===", None),
            (b"====", None),
            (b"!!!!", None),
            (b"-_-_", None),
        ];
        for (text, key) in table {
            assert_eq!(decoded(text).as_deref(), key, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for length in 1..=MAX_DECODED_LENGTH {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 37 + length) as u8).collect();
            let mut text = Vec::new();
            encode(&mut text, &bytes);
            assert_eq!(decoded(&text), Some(bytes));
        }
        assert_eq!(decoded(&[b'A'; MAX_KEY_LENGTH]), None);
        assert_eq!(decoded(&[b'A'; 248]).map(|key| key.len()), Some(186));
    }
}
