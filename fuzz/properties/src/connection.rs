//! Bytes to a whole connection: no panic, whole replies, and the same replies however the bytes are cut.
//!
//! The first byte decides how they are cut. Time stands still, so both servers see the same second.

use protocol::LINE_LIMIT;
use protocol::binary::REQUEST_MAGIC;
use server::{InProcess, Settings};

const SECOND: u64 = 1_700_000_000;

/// What a connection makes of bytes.
pub fn connection(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else { return };
    let (whole, open) = converse(data, data.len().max(1));
    let is_binary = data.first() == Some(&REQUEST_MAGIC);
    assert!(
        is_binary || whole.is_empty() || whole.ends_with(b"\r\n"),
        "a reply without its end: {}",
        whole.escape_ascii()
    );
    let cut = 1 + usize::from(cut) % 67;
    let (pieces, still_open) = converse(data, cut);
    if is_repeatable(data) {
        assert_eq!(pieces.escape_ascii().to_string(), whole.escape_ascii().to_string());
        assert_eq!(still_open, open);
    }
}

/// Whether the replies depend on nothing but the bytes. Statistics tell of memory and traffic, the numbers of items
/// come from a hash with a random seed; and of a line that is longer than a line may be it matters whether its end was
/// seen.
fn is_repeatable(data: &[u8]) -> bool {
    let tells = |word: &[u8]| data.windows(word.len()).any(|window| window == word);
    data.first() != Some(&REQUEST_MAGIC)
        && !tells(b"stats")
        && !tells(b"gets")
        && !tells(b"gats")
        && !tells(b"cas ")
        && !tells(b" c")
        && !tells(b"me ")
        && !tells(b" C")
        && !tells(b" I")
        && data.split(|&byte| byte == b'\n').all(|line| line.len() < LINE_LIMIT)
}

fn converse(data: &[u8], cut: usize) -> (Vec<u8>, bool) {
    let settings = Settings::default().with_memory(4 << 20);
    let mut server = InProcess::new(settings, SECOND).expect("four megabytes are enough");
    let mut replies = Vec::new();
    for piece in data.chunks(cut) {
        replies.extend(server.receive(piece));
    }
    (replies, server.is_open())
}
