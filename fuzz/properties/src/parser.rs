//! Bytes to the parser: it takes them apart without a panic, what it finds stays within them, and a request that is
//! written out again means the same.

use protocol::{
    KeyStream, LINE_LIMIT, Line, MAX_KEY_LENGTH, Request, StreamState, parse, parse_plain, parse_plain_get,
    split_line,
};

/// What the parser makes of bytes.
pub fn parser(data: &[u8]) {
    let mut rest = data;
    while !rest.is_empty() {
        match split_line(rest) {
            Line::Complete(line) => {
                assert!(line.ends_with(b"\n") && rest.starts_with(line));
                check_plain(rest, line);
                check_line(line);
                rest = &rest[line.len()..];
            }
            Line::Incomplete => {
                assert!(parse_plain(rest).is_none() && parse_plain_get(rest).is_none());
                assert!(!rest.contains(&b'\n'), "a whole line was called incomplete");
                break;
            }
            Line::TooLong => {
                assert!(rest.len() > LINE_LIMIT && !rest[..LINE_LIMIT].contains(&b'\n'));
                break;
            }
            Line::LongGet => {
                check_stream(rest);
                break;
            }
        }
    }
}

/// What is read at once of what was received is what is read of its first line.
pub(crate) fn check_plain(received: &[u8], line: &[u8]) {
    if let Some((request, length)) = parse_plain(received) {
        assert_eq!((Ok(request), length), (parse(line), line.len()), "{}", line.escape_ascii());
    }
    if let Some((key, with_cas, length)) = parse_plain_get(received) {
        let Ok(Request::Get(get)) = parse(line) else { panic!("no get: {}", line.escape_ascii()) };
        assert!(get.with_cas == with_cas && get.keys.eq([key]), "{}", line.escape_ascii());
        assert_eq!(length, line.len());
    }
}

fn check_line(line: &[u8]) {
    match parse(line) {
        Ok(request) => {
            let mut written = Vec::new();
            request.write(&mut written);
            let again = parse(&written).expect("what was written is a request");
            assert_eq!(again, request, "{}", written.escape_ascii());
            if let Request::Get(get) = request {
                let keys: Vec<_> = get.keys.collect();
                assert!(!keys.is_empty());
                assert!(keys.iter().all(|key| (1..=MAX_KEY_LENGTH).contains(&key.as_bytes().len())));
            }
        }
        Err(refusal) => {
            if let Some(reply) = refusal.reply {
                assert!(reply.bytes().ends_with(b"\r\n"));
            }
        }
    }
}

/// A long key list gives the same keys however it is cut.
fn check_stream(line: &[u8]) {
    let keys = |cut: usize| {
        let (mut stream, begun) = KeyStream::begin(line).expect("split_line has found one");
        let (mut keys, mut at, mut end) = (Vec::new(), begun, begun.saturating_add(cut).min(line.len()));
        loop {
            let step = stream.feed(&line[at..end]);
            keys.extend(step.keys.map(|key| key.as_bytes().to_vec()));
            at += step.consumed;
            if step.state != StreamState::More {
                return (keys, Some(step.state), at);
            }
            if end == line.len() && step.consumed == 0 {
                return (keys, None, 0);
            }
            end = end.saturating_add(cut).min(line.len());
        }
    };
    let whole = keys(line.len());
    // The keys before one that is too long are answered if they had come before it was seen, so these depend on the
    // cut.
    let good = line.split(|&byte| matches!(byte, b' ' | b'\n')).all(|token| token.len() <= MAX_KEY_LENGTH);
    for cut in [1, 7, 251] {
        let pieces = keys(cut);
        assert_eq!((pieces.1, pieces.2), (whole.1, whole.2));
        assert!(!good || pieces.0 == whole.0, "{:?} in pieces of {cut}, {:?} in one", pieces.0, whole.0);
    }
}
