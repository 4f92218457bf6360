//! A dictionary as libFuzzer reads it: a word a line, in quotes, `\xNN` for a byte.

use std::fs;
use std::path::Path;

/// # Panics
/// If a line is none of a dictionary: half a word would be no word of the protocol.
pub(crate) fn words(path: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words: Vec<_> =
        lines.map(|line| word(line).unwrap_or_else(|| panic!("{}: {line}", path.display()))).collect();
    assert!(!words.is_empty(), "{} has no word", path.display());
    words
}

/// The bytes of a line, if it is a word in quotes.
fn word(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut word = Vec::new();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            word.push(byte);
        } else if let Some(digits) = rest.strip_prefix(b"x") {
            let (digits, after) = digits.split_at_checked(2)?;
            word.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            let (&byte, after) = rest.split_first()?;
            word.push(byte);
            rest = after;
        }
    }
    Some(word)
}

#[test]
fn a_word_is_what_stands_in_quotes() {
    assert_eq!(word(r#""get ""#), Some(b"get ".to_vec()));
    assert_eq!(word(r#""\x0d\x0A""#), Some(b"\r\n".to_vec()));
    assert_eq!(word(r#""a\\\"b""#), Some(b"a\\\"b".to_vec()));
    for wrong in ["get", "\"get", r#""\x0""#, r#""\xgg""#, r#""\""#] {
        assert_eq!(word(wrong), None, "{wrong}");
    }
}
