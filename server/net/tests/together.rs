//! Connections whose requests are there at the same time: a worker receives from several of them before it serves the
//! first (`ahead`), and each gets its own replies, whatever the others send, and however it is cut.

use std::time::Duration;

use crate::client::{Address, Client, settings};
use lookaside_server::Server;
use protocol::binary::{Header, opcode};

/// Bytes that are received ahead from a connection.
const PIECE: usize = 4096;
/// Connections of each kind; with all kinds, more than one group of them.
const OF_A_KIND: usize = 4;

/// What a connection sends, piece by piece, and what it is to receive for all of it.
struct Script {
    pieces: Vec<Vec<u8>>,
    replies: Vec<u8>,
    /// How the connection is left.
    left: Left,
}

/// How a connection is left.
#[derive(Clone, Copy)]
enum Left {
    /// Open, for more requests of the text protocol.
    Open,
    /// Open, for more frames.
    Binary,
    Closed,
}

impl Script {
    /// All of `requests`, cut at these places.
    fn new(requests: &[u8], cuts: &[usize], replies: Vec<u8>) -> Script {
        let ends = cuts.iter().copied().chain([requests.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let pieces = starts.zip(ends).map(|(start, end)| requests[start..end].to_vec()).collect();
        Script { pieces, replies, left: Left::Open }
    }
}

fn set(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("set {key} 0 0 {}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

fn found(key: &str, value: &[u8]) -> Vec<u8> {
    [format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat()
}

/// Gets of one key, so many bytes of them, and their replies.
fn gets(key: &str, value: &[u8], bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let get = format!("get {key}\r\n").into_bytes();
    let times = bytes / get.len();
    // A line of its own fills up what is left.
    let rest = bytes - times * get.len();
    let last = if rest >= 2 { [b"x".repeat(rest - 2), b"\r\n".to_vec()].concat() } else { Vec::new() };
    let error = if rest >= 2 { b"ERROR\r\n".to_vec() } else { Vec::new() };
    ([get.repeat(times), last].concat(), [found(key, value).repeat(times), error].concat())
}

/// A script of each kind, for a connection that has this key to itself.
fn scripts(key: &str) -> Vec<Script> {
    let small = key.as_bytes();
    let large: Vec<u8> = (0..40_000).map(|at: usize| (at / 7 + at) as u8 | 1).collect();
    let pair = |value: &[u8]| [set(key, value), format!("get {key}\r\n").into_bytes()].concat();
    let replies = |value: &[u8]| [b"STORED\r\n".to_vec(), found(key, value)].concat();
    let whole = pair(small);
    let mut scripts = vec![
        Script::new(&whole, &[set(key, small).len()], replies(small)),
        Script::new(&whole, &(1..whole.len()).collect::<Vec<_>>(), replies(small)),
        Script::new(&pair(&large), &[10, PIECE, 2 * PIECE, 30_000], replies(&large)),
        Script { left: Left::Closed, ..Script::new(b"version\r\nquit\r\nget k\r\n", &[9], version()) },
        Script { left: Left::Closed, ..Script::new(b"version\r\n\x80", &[9], version()) },
    ];
    for bytes in [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE] {
        let (requests, answers) = gets(key, small, bytes);
        let stored = set(key, small);
        let all = [stored.as_slice(), &requests].concat();
        scripts.push(Script::new(&all, &[stored.len()], [b"STORED\r\n".as_slice(), &answers].concat()));
    }
    let mut frame = Vec::new();
    Header::write_request(&mut frame, opcode::GET_K, [0, 6, 0], 0, 0);
    frame.extend_from_slice(b"absent");
    let mut answer = vec![0x81, opcode::GET_K, 0, 6, 0, 0, 0, 1, 0, 0, 0, 6];
    answer.extend([0; 12]);
    answer.extend_from_slice(b"absent");
    let frames = Script::new(&frame.repeat(2), &[7, 24, 30], answer.repeat(2));
    scripts.push(Script { left: Left::Binary, ..frames });
    scripts
}

fn version() -> Vec<u8> {
    format!("VERSION {}\r\n", lookaside_server::VERSION).into_bytes()
}

#[test]
fn each_gets_its_own_replies() {
    for poll in [Duration::ZERO, Duration::from_micros(50)] {
        let server = Server::start(settings().with_threads(1).with_poll(poll)).expect("it starts");
        let address = Address::from(server.addresses()[0]);
        let scripts: Vec<Script> =
            (0..OF_A_KIND).flat_map(|number| scripts(&format!("key{number}"))).collect();
        let mut clients: Vec<Client> = scripts.iter().map(|_| Client::connect(&address)).collect();
        let mut busy = Client::connect(&address);
        // Long enough for the others to send meanwhile.
        let many = b"get nothing\r\n".repeat(2000);
        let longest = scripts.iter().map(|script| script.pieces.len()).max().expect("there are scripts");
        for round in 0..longest {
            busy.send(&many);
            for (client, script) in clients.iter_mut().zip(&scripts) {
                if let Some(piece) = script.pieces.get(round) {
                    client.send(piece);
                }
            }
            busy.expect(&b"END\r\n".repeat(2000));
        }
        for (client, script) in clients.iter_mut().zip(&scripts) {
            client.expect(&script.replies);
            match script.left {
                Left::Open => client.expect_open(),
                Left::Binary => client.ask(&script.pieces.concat(), &script.replies),
                Left::Closed => client.expect_closed(),
            }
        }
        server.stop().expect("no thread has failed");
    }
}
