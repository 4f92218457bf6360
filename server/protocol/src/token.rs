//! The tokens of a request line: what stands between spaces, and only spaces.
//!
//! memcached looks at the first 23 tokens of a line; the rest of the line is as good as absent. That matters for
//! `noreply`, which counts wherever it is the last token, and is not noticed as the 24th.

/// As many tokens as memcached notices on a line.
pub(crate) const MAX_TOKENS: usize = 23;

/// The tokens of a line, from first to last, at most [`MAX_TOKENS`].
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    /// What follows the tokens already taken; starts with a token, never with a space.
    rest: &'a [u8],
    left: usize,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: skip_spaces(text), left: MAX_TOKENS }
    }

    /// The tokens behind the command's name, which counts as one of them.
    pub(crate) fn after_name(rest: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: skip_spaces(rest), left: MAX_TOKENS - 1 }
    }

    /// The line from the start of the next token to its end: C's number readers do not stop where a token does.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether the last of the tokens still to come is `noreply`.
    pub(crate) fn end_in_noreply(self) -> bool {
        self.last() == Some(b"noreply".as_slice())
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() || self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (token, after) = split_token(self.rest);
        self.rest = after;
        Some(token)
    }
}

/// Splits `text`, which starts with a token, after it, and drops the spaces in between.
#[inline]
pub(crate) fn split_token(text: &[u8]) -> (&[u8], &[u8]) {
    let (token, after) = text.split_at(token_length(text));
    (token, skip_spaces(after))
}

/// Bytes before the first space, eight at a time: tokens are short, and a call of a search for long ones takes as long
/// as the search of a whole key here.
#[inline]
pub(crate) fn token_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let (words, rest) = text.as_chunks::<8>();
    for (number, &word) in words.iter().enumerate() {
        let without = u64::from_le_bytes(word) ^ (ONES * b' ' as u64);
        // The lowest byte that is zero has its top bit set here; those above it may, too.
        let spaces = without.wrapping_sub(ONES) & !without & (ONES << 7);
        if spaces != 0 {
            return number * 8 + (spaces.trailing_zeros() / 8) as usize;
        }
    }
    let in_rest = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    text.len() - rest.len() + in_rest
}

/// Bytes before the first that is a space or less, as those that end a line are.
#[inline]
pub(crate) fn word_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const ABOVE: u8 = b' ' + 1;
    let (words, rest) = text.as_chunks::<8>();
    for (number, &word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(word);
        // The lowest byte that is less has its top bit set here; those above it may, too.
        let less = word.wrapping_sub(ONES * ABOVE as u64) & !word & (ONES << 7);
        if less != 0 {
            return number * 8 + (less.trailing_zeros() / 8) as usize;
        }
    }
    let in_rest = rest.iter().position(|&byte| byte < ABOVE).unwrap_or(rest.len());
    text.len() - rest.len() + in_rest
}

#[inline]
pub(crate) fn skip_spaces(mut text: &[u8]) -> &[u8] {
    while let [b' ', after @ ..] = text {
        text = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_end_is_found(
            text in prop::collection::vec(
                prop_oneof![Just(b' '), Just(0x21), Just(0x1f), Just(0xA0), Just(0), any::<u8>()],
                0..40,
            )
        ) {
            let expected = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
            prop_assert_eq!(token_length(&text), expected);
            let expected = text.iter().position(|&byte| byte <= b' ').unwrap_or(text.len());
            prop_assert_eq!(word_length(&text), expected);
        }
    }
}
