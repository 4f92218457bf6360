//! What parsing and formatting cost: the best of several runs of each loop, in nanoseconds a request or reply.
//!
//! Pin it to one core: `taskset -c 1 cargo run --release -p lookaside-protocol --example timing`.

use lookaside_protocol::response::{self, Parsed};
use lookaside_protocol::{Line, Request, parse, reply, split_line};
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

fn main() -> io::Result<()> {
    let lines: Vec<(&str, Vec<u8>)> = vec![
        ("get, one key of 16 bytes", b"get user:00000001234\r\n".to_vec()),
        ("gets, one key of 16 bytes", b"gets user:00000001234\r\n".to_vec()),
        (
            "get, 100 keys of 16 bytes, a key",
            [b"get ".to_vec(), b"user:00000001234 ".repeat(100), b"\r\n".to_vec()].concat(),
        ),
        ("set", b"set user:00000001234 0 0 32\r\n".to_vec()),
        ("set noreply", b"set user:00000001234 0 3600 1024 noreply\r\n".to_vec()),
        ("add", b"add user:00000001234 0 0 32\r\n".to_vec()),
        ("delete", b"delete user:00000001234\r\n".to_vec()),
        ("incr", b"incr user:00000001234 17\r\n".to_vec()),
    ];
    let mut out = io::stdout().lock();
    writeln!(out, "requests: split_line, parse, and a walk over the keys")?;
    for (name, line) in &lines {
        // As many of the line as a read buffer would hold, so that it is not always the same bytes.
        let received = line.repeat((16_384 / line.len()).max(1));
        let per_line = if name.ends_with("a key") { 100.0 } else { 1.0 };
        let requests = received.len() / line.len();
        let time = best(|| consume(&received)) / requests as f64 / per_line;
        writeln!(out, "{time:8.1} ns  {name}")?;
    }
    writeln!(out, "replies: formatting")?;
    let mut reply = Vec::with_capacity(1 << 20);
    for (name, flags, length, cas) in [
        ("VALUE, no flags, 2 digits", 0, 32, None),
        ("VALUE, flags, 4 digits", 123_456, 1024, None),
        ("VALUE with cas", 0, 32, Some(1_234_567)),
    ] {
        let time = best(|| {
            reply.clear();
            for _ in 0..1000 {
                reply::value_header(
                    &mut reply,
                    black_box(b"user:00000001234"),
                    flags,
                    black_box(length),
                    cas,
                );
            }
            reply.len()
        });
        writeln!(out, "{:8.1} ns  {name}", time / 1000.0)?;
    }
    writeln!(out, "replies: parsing")?;
    for (name, length) in [("VALUE of 32 bytes, END", 32), ("VALUE of 4096 bytes, END", 4096)] {
        reply.clear();
        for _ in 0..200 {
            reply::value_header(&mut reply, b"user:00000001234", 0, length, None);
            reply.resize(reply.len() + length, b'x');
            reply.extend_from_slice(b"\r\nEND\r\n");
        }
        let time = best(|| consume_replies(&reply));
        writeln!(out, "{:8.1} ns  {name}", time / 200.0)?;
    }
    let stored = reply::STORED.repeat(1000);
    writeln!(out, "{:8.1} ns  STORED", best(|| consume_replies(&stored)) / 1000.0)
}

/// The shortest time that `work` took, in nanoseconds.
fn best(mut work: impl FnMut() -> usize) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        let begun = Instant::now();
        for _ in 0..20 {
            black_box(work());
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / 20.0);
    }
    best
}

fn consume(received: &[u8]) -> usize {
    let mut rest = black_box(received);
    let mut seen = 0;
    while let Line::Complete(line) = split_line(rest) {
        rest = &rest[line.len()..];
        match parse(line) {
            Ok(Request::Get(get)) => seen += get.keys.map(|key| key.len()).sum::<usize>(),
            Ok(Request::Store(store)) => seen += store.key.len() + store.length,
            other => seen += usize::from(black_box(other).is_ok()),
        }
    }
    seen
}

fn consume_replies(received: &[u8]) -> usize {
    let mut rest = black_box(received);
    let mut seen = 0;
    while let Ok(Parsed::Complete { response, consumed }) = response::parse(rest) {
        rest = &rest[consumed..];
        seen += match response {
            response::Response::Value { data, .. } => data.len(),
            other => usize::from(other == response::Response::End),
        };
    }
    seen
}
