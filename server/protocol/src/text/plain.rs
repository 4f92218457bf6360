//! Lines as clients write them, read once from left to right: one space before each part, and nothing else.

/// A space and up to nine digits, if no more of them follow.
#[inline]
pub(super) fn short_number(text: &[u8]) -> Option<(u32, &[u8])> {
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

/// Whether a line ends here but for `noreply`, and says it: `None` if anything else follows.
#[inline]
pub(super) fn ends_in_noreply(rest: &[u8]) -> Option<bool> {
    match rest {
        b"" => Some(false),
        b" noreply" => Some(true),
        _ => None,
    }
}
