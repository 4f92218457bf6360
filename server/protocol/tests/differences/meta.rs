//! What memcached answers otherwise to meta commands. They need a server to show, and are compared where there is one.

use super::{Difference, Outcome, Seen, Who};

/// The flags of a line, with their letters first.
fn flags<'a>(line: &Seen<'a>) -> Vec<&'a [u8]> {
    let before = if line.is(&["ms"]) { 3 } else { 2 };
    line.tokens.iter().skip(before).copied().collect()
}

fn has(line: &Seen<'_>, letters: &str) -> bool {
    flags(line).iter().any(|flag| letters.as_bytes().contains(&flag[0]))
}

pub(crate) const META_DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "where the length of the data cannot be told, the connection goes on, and data becomes commands",
        who: Who::All,
        applies: |line| matches!(line.outcome, Outcome::Ended(_)),
        example: "ms a S2\r\nmn\r\n",
        theirs: "CLIENT_ERROR bad command line format\r\nMN\r\n",
    },
    Difference {
        reason: "a key comes back in base64 if it was stored so, and not if it was asked for so: what a client asks \
                 in, it can read, and an item need not remember",
        who: Who::All,
        applies: |line| {
            (line.is_meta() && has(line, "b") && has(line, "k")) || line.is(&["me"]) && has(line, "b")
        },
        example: "ms a 1\r\nx\r\nmg YQ== b k\r\n",
        theirs: "HD\r\nHD ka\r\n",
    },
    Difference {
        reason: "a time to live that has passed is told as 32 bits without a sign: here it is 0",
        who: Who::All,
        applies: |line| line.is(&["mg", "ma"]) && has(line, "TN") && has(line, "t"),
        example: "ms a 1\r\nx\r\nmg a T-1 t\r\n",
        theirs: "HD\r\nHD t42949",
    },
    Difference {
        reason: "a meta command with too few tokens was an unknown command",
        who: Who::Older,
        applies: |line| line.is_meta() && line.tokens.len() < 2,
        example: "mg\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "lengths were read by C's functions, which know signs",
        who: Who::Older,
        applies: |line| line.is(&["ms"]) && matches!(line.outcome, Outcome::Ended(_)),
        example: "ms a +2\r\nhi\r\n",
        theirs: "HD\r\n",
    },
    Difference {
        reason: "there were no flags E and x",
        who: Who::Older,
        applies: |line| line.is_meta() && has(line, "Ex"),
        example: "md a x\r\n",
        theirs: "CLIENT_ERROR invalid or duplicate flag\r\n",
    },
    Difference {
        reason: "there could be one flag less",
        who: Who::Older,
        applies: |line| line.is_meta() && line.tokens.len() > 19,
        example: "mg a k v s f c t l h u q N0 R0 T0 O1 P L I J0\r\n",
        theirs: "CLIENT_ERROR options flags are too long\r\n",
    },
    Difference {
        reason: "a mode of another length than one had an error of its own",
        who: Who::Older,
        applies: |line| line.is_meta() && flags(line).iter().any(|flag| flag[0] == b'M' && flag.len() != 2),
        example: "mg a M\r\n",
        theirs: "CLIENT_ERROR incorrect length for M token\r\n",
    },
    Difference {
        reason: "whatever was wrong with a flag of md had the same answer, as it still has for ma",
        who: Who::Older,
        applies: |line| line.is(&["md"]) && line.is_refused(),
        example: "md a z\r\n",
        theirs: "CLIENT_ERROR invalid or duplicate flag\r\n",
    },
    Difference {
        reason: "ms did not append to what is not there, nor say how long what it stored is",
        who: Who::Older,
        applies: |line| line.is(&["ms"]) && has(line, "Ns"),
        example: "ms a 1 s\r\nx\r\n",
        theirs: "HD\r\n",
    },
    Difference {
        reason: "ma with q was answered where it created",
        who: Who::Older,
        applies: |line| line.is(&["ma"]) && has(line, "N") && has(line, "q"),
        example: "ma a N0 q\r\n",
        theirs: "HD\r\n",
    },
];

/// What of meta commands goes by the clock, or by how an item lies in memory, and is not to be compared as text.
pub(crate) fn is_incomparable(line: &[u8]) -> bool {
    let seen = Seen::new(line);
    seen.is(&["me"]) || seen.is(&["mg", "ma"]) && has(&seen, "lt")
}
