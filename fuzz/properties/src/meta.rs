//! A line of a meta command to the parser, and then to a server: it is taken apart without a panic, what is read from
//! it stays within it, its data never becomes commands, and the server's answer is a whole one.
//!
//! The first byte picks the command, so that no byte is lost on finding it.

use protocol::meta::{MAX_DECODED_LENGTH, MetaKey, MetaRequest};
use protocol::{Connection, MAX_KEY_LENGTH, Request, parse};
use server::{InProcess, Settings};

use crate::parser::check_plain;

const COMMANDS: [&[u8]; 6] = [b"mg ", b"ms ", b"md ", b"ma ", b"me ", b"mn "];

/// What the parser and a server make of a line of a meta command.
pub fn meta(data: &[u8]) {
    let Some((&command, data)) = data.split_first() else { return };
    let command = COMMANDS[usize::from(command) % COMMANDS.len()];
    let text = data.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = [command, text, b"\r\n"].concat();
    check_plain(&line, &line);
    let mut block = 0;
    let mut closes = false;
    match parse(&line) {
        Ok(request) => {
            let mut written = Vec::new();
            request.write(&mut written);
            assert_eq!(parse(&written).as_ref(), Ok(&request), "{}", written.escape_ascii());
            let Request::Meta(request) = request else { panic!("{command:?} became {request:?}") };
            block = check(&request);
        }
        Err(refusal) => {
            let reply = refusal.reply.expect("meta commands are never refused in silence");
            assert!(reply.bytes().ends_with(b"\r\n"));
            block = block.max(refusal.swallow);
            closes = refusal.connection == Connection::Close;
        }
    }
    // Its data, as far as it may be, and what would close the connection if it were a command.
    let block = block.min(100_000);
    let mut data: Vec<u8> = b"quit\r\n".iter().copied().cycle().take(block.saturating_sub(2)).collect();
    data.extend_from_slice(if block > 0 { b"\r\n" } else { b"" });
    let mut server =
        InProcess::new(Settings::default().with_memory(4 << 20), 1_700_000_000).expect("a cache");
    server.receive(b"set a 5 100 2\r\n10\r\n");
    let answer = server.receive(&[line.as_slice(), &data].concat());
    assert!(answer.is_empty() || answer.ends_with(b"\r\n"), "{}", answer.escape_ascii());
    assert_eq!(server.is_open(), !closes, "{}", line.escape_ascii());
    if server.is_open() && block < 100_000 {
        assert_eq!(server.receive(b"mn\r\n"), b"MN\r\n");
    }
}

/// Looks at all there is to a request; how long its data is, with its end.
fn check(request: &MetaRequest<'_>) -> usize {
    let (key, flags) = match request {
        MetaRequest::Get(request) => (request.key, request.flags),
        MetaRequest::Set(request) => (request.key, request.flags),
        MetaRequest::Delete(request) => (request.key, request.flags),
        MetaRequest::Arithmetic(request) => (request.key, request.flags),
        MetaRequest::Debug(request) => return check_key(&request.key),
        MetaRequest::Noop => return 0,
    };
    check_key(&key);
    let letters: Vec<u8> = flags.iter().map(|flag| flag.letter).collect();
    for (at, &letter) in letters.iter().enumerate() {
        assert!(flags.has(letter) && !letters[..at].contains(&letter));
        assert!(flags.argument(letter).is_some());
    }
    assert!(letters.len() <= 18);
    match request {
        MetaRequest::Set(request) => request.length + 2,
        _ => 0,
    }
}

fn check_key(key: &MetaKey<'_>) -> usize {
    let mut place = [0; MAX_DECODED_LENGTH];
    let length = key.decode(&mut place).len();
    assert!((1..=MAX_KEY_LENGTH).contains(&length), "a key of {length} bytes");
    assert_eq!(key.plain().is_none(), key.is_base64());
    0
}
