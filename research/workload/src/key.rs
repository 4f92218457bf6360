//! Keys as traces spell them, and keys made from a record's number.
//!
//! A recorded key is a number or a text, whatever its trace holds, and is kept as it is: hashing it to a number
//! would let two keys become one. A drawn record has only a number; [`spell`] makes a key of a wanted size from it.

use std::fmt;

/// The longest key that memcached's protocol carries, in bytes.
pub const LONGEST_KEY: usize = 250;

/// A key as a trace holds it. To a cache it goes as the bytes that [`write`](Key::write) appends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The trace names its keys by numbers. A cache sees the decimal digits.
    Number(i32),
    /// The trace holds the key itself, or a text that stands for it.
    Text(Box<[u8]>),
}

impl Key {
    /// Appends the key, as a cache sees it, to `out`.
    ///
    /// ```
    /// use lookaside_workload::key::Key;
    ///
    /// let mut command = b"get ".to_vec();
    /// Key::Number(-12).write(&mut command);
    /// assert_eq!(command, b"get -12");
    /// ```
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Key::Number(number) => out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
            Key::Text(text) => out.extend_from_slice(text),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(number) => write!(f, "{number}"),
            Key::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
        }
    }
}

/// Appends a key of `size` bytes for the record `record`: its decimal digits after as many zeros as are needed.
///
/// Different records have different keys, also where their sizes differ. Where the digits alone are longer than
/// `size`, the key is the digits: a key is rather too long than shared by two records. Keys of one size sort as
/// their records do.
///
/// ```
/// use lookaside_workload::key::spell;
///
/// let mut key = Vec::new();
/// spell(1042, 16, &mut key);
/// assert_eq!(key, b"0000000000001042");
/// ```
pub fn spell(record: u64, size: usize, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(record).as_bytes();
    out.resize(out.len() + size.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Reading the digits back gives the record, so no two records share a key, whatever their sizes.
        #[test]
        fn a_spelled_key_gives_its_record_back(record: u64, size in 0usize..250) {
            let mut key = b"kept:".to_vec();
            spell(record, size, &mut key);
            let text = std::str::from_utf8(&key).unwrap().strip_prefix("kept:").unwrap();
            prop_assert_eq!(text.parse::<u64>().unwrap(), record);
            prop_assert_eq!(text.len(), size.max(record.to_string().len()));
        }

        #[test]
        fn a_key_is_written_as_it_is_shown(number: i32, text in "[!-~]{0,80}") {
            for key in [Key::Number(number), Key::Text(text.as_bytes().into())] {
                let mut written = Vec::new();
                key.write(&mut written);
                prop_assert_eq!(String::from_utf8(written).unwrap(), key.to_string());
            }
        }
    }
}
