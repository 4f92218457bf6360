//! Finding and parsing request lines, and writing the header of a value.
//!
//! `cargo bench -p lookaside-protocol`. For a first impression: callgrind counts.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lookaside_protocol::{Line, Request, parse, reply, split_line};

/// Parses a whole line; of a get, all keys are walked over.
fn parsed(received: &[u8]) -> usize {
    let Line::Complete(line) = split_line(received) else { panic!("a whole line") };
    match parse(line) {
        Ok(Request::Get(get)) => get.keys.map(|key| key.as_bytes().len()).sum(),
        Ok(_) => 1,
        Err(refusal) => panic!("{refusal:?}"),
    }
}

fn parsing(criterion: &mut Criterion) {
    let many = [b"get".to_vec(), b" key:0123456789ab".repeat(100), b"\r\n".to_vec()].concat();
    let lines: [(&str, &[u8]); 5] = [
        ("get", b"get key:0123456789ab\r\n"),
        ("get of 100", &many),
        ("set", b"set key:0123456789ab 0 0 32\r\n"),
        ("delete", b"delete key:0123456789ab\r\n"),
        ("incr", b"incr key:0123456789ab 17\r\n"),
    ];
    let mut group = criterion.benchmark_group("protocol");
    for (name, line) in lines {
        group.bench_function(name, |bencher| bencher.iter(|| parsed(black_box(line))));
    }
    let mut out = Vec::with_capacity(256);
    group.bench_function("header of a value", |bencher| {
        bencher.iter(|| {
            out.clear();
            reply::value_header(&mut out, black_box(b"key:0123456789ab"), 0, black_box(32), None);
            out.len()
        });
    });
    group.finish();
}

criterion_group!(benches, parsing);
criterion_main!(benches);
