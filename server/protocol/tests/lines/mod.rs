//! Request lines to try: nearly right ones, odd ones, and rubbish.
#![allow(dead_code, reason = "each test file uses a part of this")]

use lookaside_protocol::meta::MetaRequest;
use lookaside_protocol::{Request, parse};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const COMMON: &[&str] = &[
    "get",
    "gets",
    "gat",
    "gats",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "incr",
    "decr",
    "delete",
    "touch",
    "flush_all",
    "stats",
    "verbosity",
    "version",
    "quit",
];

const OTHERS: &[&str] = &[
    "shutdown",
    "cache_memlimit",
    "slabs",
    "lru",
    "lru_crawler",
    "watch",
    "mg",
    "ms",
    "md",
    "ma",
    "me",
    "mn",
    "GET",
    "sets",
    "foo",
    "x",
    "",
];

const TOKENS: &[&str] = &[
    "a",
    "b",
    "c",
    "noreply",
    "NOREPLY",
    "noreplyx",
    "HTTP/1.1",
    "a\tb",
    "\u{1}",
    "\t",
    "\r",
    "\u{7f}",
    "é",
    "s",
    "reset",
    "items",
    "slabs",
    "conns",
    "settings",
    "detail",
    "reassign",
    "metadump",
    "all",
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "-",
    "-0",
    "+1",
    "+",
    "00000000001",
    "000000000001",
    "2147483646",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "4294967301",
    "18446744073709551615",
    "18446744073709551616",
    "-18446744073709551615",
    "9223372036854775807",
    "9223372036854775808",
    "0000000000000000000001",
    "00000000000000000000001",
    "1x",
    "x1",
    "5\t",
    "\t5",
    "5\u{b}x",
    "1\u{0}",
    "5\r",
];

/// Flags of meta commands, right ones and wrong ones.
const FLAGS: &[&str] = &[
    "b",
    "c",
    "f",
    "h",
    "k",
    "l",
    "q",
    "s",
    "t",
    "u",
    "v",
    "x",
    "I",
    "P",
    "L",
    "Oabc",
    "O",
    "T0",
    "T100",
    "T-1",
    "Tx",
    "T",
    "N0",
    "N100",
    "Nx",
    "R30",
    "R",
    "C1",
    "Cx",
    "E7",
    "E",
    "F5",
    "Fx",
    "J1",
    "Jx",
    "D2",
    "D",
    "MS",
    "MA",
    "ME",
    "MI",
    "M-",
    "M",
    "Mx",
    "z",
    "5",
    "noreply",
    "Oooooooooooooooooooooooooooooooooo",
];

fn command() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![6 => select(COMMON), 2 => select(OTHERS)].prop_map(Vec::from)
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => select(TOKENS).prop_map(Vec::from),
        1 => select(vec![249usize, 250, 251, 252]).prop_map(|length| vec![b'k'; length]),
        1 => vec(any::<u8>().prop_filter("ends a token", |byte| !b" \n".contains(byte)), 1..6),
    ]
}

/// Bytes of data that a line announces, their end included.
pub(crate) fn data_of(line: &[u8]) -> usize {
    match parse(line) {
        Ok(Request::Store(store)) => store.length + 2,
        Ok(Request::Meta(MetaRequest::Set(set))) => set.length + 2,
        Ok(_) => 0,
        Err(refusal) => refusal.swallow,
    }
}

fn flags() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop_oneof![4 => vec(select(FLAGS), 0..5), 1 => vec(select(FLAGS), 15..20)]
        .prop_map(|flags| flags.into_iter().map(Vec::from).collect())
}

/// The arguments that the command wants, of the right kind.
fn right_arguments(command: &[u8]) -> BoxedStrategy<Vec<Vec<u8>>> {
    let key = || select(vec!["a", "b", "c"]).prop_map(Vec::from);
    let small = || select(vec!["0", "0", "1", "7", "100"]).prop_map(Vec::from);
    let time =
        || select(vec!["0", "0", "-1", "1000", "2592000", "2592001", "2000000000"]).prop_map(Vec::from);
    let data = || select(vec!["0", "1", "5", "20"]).prop_map(Vec::from);
    match command {
        b"get" | b"gets" => vec(key(), 1..30).boxed(),
        b"gat" | b"gats" => {
            (time(), vec(key(), 1..30)).prop_map(|(time, keys)| [vec![time], keys].concat()).boxed()
        }
        b"cas" => (key(), small(), time(), data(), small())
            .prop_map(|(key, flags, time, length, id)| vec![key, flags, time, length, id])
            .boxed(),
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => (key(), small(), time(), data())
            .prop_map(|(key, flags, time, length)| vec![key, flags, time, length])
            .boxed(),
        b"incr" | b"decr" => (key(), small()).prop_map(|(key, delta)| vec![key, delta]).boxed(),
        b"touch" => (key(), time()).prop_map(|(key, time)| vec![key, time]).boxed(),
        b"mg" | b"md" | b"ma" | b"me" => {
            let key = select(vec!["a", "b", "c", "YQ==", "Yg=="]).prop_map(Vec::from);
            (key, flags()).prop_map(|(key, flags)| [vec![key], flags].concat()).boxed()
        }
        b"ms" => (key(), data(), flags())
            .prop_map(|(key, length, flags)| [vec![key, length], flags].concat())
            .boxed(),
        b"delete" => key().prop_map(|key| vec![key]).boxed(),
        b"flush_all" => vec(select(vec!["0", "-1"]).prop_map(Vec::from), 0..2).boxed(),
        _ => vec(token(), 0..3).boxed(),
    }
}

/// A line with its ending, and no other line feed in it. Most have the right number of arguments, some of them spoilt.
pub(crate) fn line() -> impl Strategy<Value = Vec<u8>> {
    let pieces = command().prop_flat_map(|name| {
        let spoilt = (right_arguments(&name), any::<prop::sample::Index>(), token(), 0..10u8).prop_map(
            |(mut arguments, at, with, how)| {
                if !arguments.is_empty() {
                    let at = at.index(arguments.len());
                    match how {
                        0..4 => {}
                        4..8 => arguments[at] = with,
                        8 => arguments.insert(at, with),
                        _ => drop(arguments.remove(at)),
                    }
                }
                arguments
            },
        );
        let arguments = prop_oneof![10 => spoilt, 2 => vec(token(), 0..8), 1 => vec(token(), 18..28)];
        let more = prop_oneof![
            5 => Just(vec![]),
            3 => Just(vec![b"noreply".to_vec()]),
            1 => vec(token(), 1..3),
        ];
        (Just(name), arguments, more)
            .prop_map(|(name, arguments, more)| [vec![name], arguments, more].concat())
    });
    let spaces = || prop_oneof![12 => Just(1usize), 1 => Just(2), 1 => Just(5)];
    let edge = || prop_oneof![15 => Just(0usize), 1 => Just(1), 1 => Just(3)];
    let ending = select(vec!["\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r\r\n"]);
    (edge(), pieces, vec(spaces(), 30), edge(), ending).prop_map(|(before, pieces, spaces, after, ending)| {
        let mut line = vec![b' '; before];
        for (at, piece) in pieces.iter().enumerate() {
            if at > 0 {
                line.resize(line.len() + spaces.get(at).copied().unwrap_or(1), b' ');
            }
            line.extend_from_slice(piece);
        }
        line.resize(line.len() + after, b' ');
        line.extend_from_slice(ending.as_bytes());
        line
    })
}

/// Bytes in which line feeds, spaces and command names are far from rare.
pub(crate) fn rubbish() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        command(),
        select(TOKENS).prop_map(Vec::from),
        select(vec![" ", " ", "  ", "\r\n", "\n", "\r", "VALUE ", "END\r\n", "STAT "]).prop_map(Vec::from),
        vec(any::<u8>(), 0..8),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}
