//! Bytes to a connection that speaks the binary protocol: no panic, whole frames that answer what was asked, and the
//! same whatever the bytes are cut into.
//!
//! The first byte says how they are cut. Every frame that is whole is mended a little, its magic and its length, so
//! that more than the first is looked at.

use protocol::binary::{BinaryRequest, Frame, HEADER_LENGTH, REQUEST_MAGIC, RESPONSE_MAGIC, parse};
use server::{InProcess, Settings};

/// What a connection makes of bytes in the binary protocol.
pub fn binary(data: &[u8]) {
    let Some((&cut, data)) = data.split_first() else { return };
    let data = mend(data);
    check_frames(&data);
    let (whole, open) = converse(&data, data.len().max(1));
    let (pieces, still_open) = converse(&data, 1 + usize::from(cut) % 67);
    assert_eq!(pieces, whole);
    assert_eq!(still_open, open);
}

fn mend(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    // The first byte says which protocol is spoken, however little follows it.
    if let Some(first) = data.first_mut() {
        *first = REQUEST_MAGIC;
    }
    let mut at = 0;
    while let Some(header) = data.get_mut(at..at + HEADER_LENGTH) {
        header[0] = REQUEST_MAGIC;
        // Bodies of up to 64 KB, of which some may be larger than what is there.
        header[8] = 0;
        header[9] = 0;
        at += HEADER_LENGTH + usize::from(u16::from_be_bytes([header[10], header[11]]));
    }
    data
}

/// What is read from frames stays within them.
fn check_frames(mut rest: &[u8]) {
    loop {
        let value = match parse(rest) {
            Frame::Incomplete(needed) => {
                assert!(needed > rest.len());
                return;
            }
            Frame::Foreign | Frame::Refused { swallow: None, .. } => return,
            Frame::Refused { swallow: Some(swallow), .. } => {
                assert!(swallow >= HEADER_LENGTH);
                rest = rest.get(swallow..).unwrap_or_default();
                continue;
            }
            Frame::Request { request, length, .. } => {
                assert!((HEADER_LENGTH..=rest.len()).contains(&length));
                rest = &rest[length..];
                if let BinaryRequest::Store(store) = request { store.length } else { 0 }
            }
        };
        rest = rest.get(value..).unwrap_or_default();
    }
}

/// The frames of the answer, without their numbers, which come from a hash with a random seed, and whether the
/// connection is open. Statistics tell of memory and traffic: of them, only that they are frames.
fn converse(data: &[u8], cut: usize) -> (Vec<Vec<u8>>, bool) {
    let mut server =
        InProcess::new(Settings::default().with_memory(4 << 20), 1_700_000_000).expect("a cache");
    let mut replies = Vec::new();
    for piece in data.chunks(cut) {
        replies.extend(server.receive(piece));
    }
    let mut frames = Vec::new();
    let mut rest = replies.as_slice();
    while !rest.is_empty() {
        assert_eq!(rest[0], RESPONSE_MAGIC, "{}", rest.escape_ascii());
        let body = u32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        let (frame, after) = rest.split_at(HEADER_LENGTH + body);
        let mut frame = frame.to_vec();
        frame[16..24].fill(0);
        if frame[1] == protocol::binary::opcode::STAT {
            frame.truncate(2);
        }
        frames.push(frame);
        rest = after;
    }
    frames.dedup_by(|a, b| a.len() == 2 && a == b);
    (frames, server.is_open())
}
