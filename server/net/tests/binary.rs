//! The binary protocol, to the byte, however it is cut.

use crate::client::{Address, Client, settings};
use lookaside_server::{InProcess, Protocol, Server};
use protocol::binary::{Header, Status, opcode::*};

/// A frame of a request.
#[derive(Clone)]
struct Request {
    opcode: u8,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    cas: u64,
}

fn request(opcode: u8, key: &str) -> Request {
    Request { opcode, extras: vec![], key: key.into(), value: vec![], cas: 0 }
}

/// One that stores.
fn store(opcode: u8, key: &str, flags: u32, exptime: i32, value: &[u8]) -> Request {
    let extras = [flags.to_be_bytes(), exptime.to_be_bytes()].concat();
    Request { extras, value: value.into(), ..request(opcode, key) }
}

fn arithmetic(opcode: u8, key: &str, delta: u64, initial: u64, exptime: u32) -> Request {
    let extras = [delta.to_be_bytes().as_slice(), &initial.to_be_bytes(), &exptime.to_be_bytes()].concat();
    Request { extras, ..request(opcode, key) }
}

fn timed(opcode: u8, key: &str, time: i32) -> Request {
    Request { extras: time.to_be_bytes().into(), ..request(opcode, key) }
}

/// What a request has in front of its body; the opaque bytes are the opcode's, in all four places.
fn opaque(opcode: u8) -> u32 {
    u32::from(opcode) * 0x0101_0101
}

impl Request {
    fn bytes(&self) -> Vec<u8> {
        let lengths = [self.extras.len(), self.key.len(), self.value.len()];
        let mut out = Vec::new();
        Header::write_request(&mut out, self.opcode, lengths, opaque(self.opcode), self.cas);
        [out.as_slice(), &self.extras, &self.key, &self.value].concat()
    }
}

/// What a reply is to be; its number may be any but 0 unless it is said to be one.
struct Reply {
    opcode: u8,
    status: u16,
    extras: Vec<u8>,
    key: Vec<u8>,
    value: Vec<u8>,
    has_cas: bool,
}

fn done(opcode: u8) -> Reply {
    Reply { opcode, status: 0, extras: vec![], key: vec![], value: vec![], has_cas: false }
}

fn stored(opcode: u8) -> Reply {
    Reply { has_cas: true, ..done(opcode) }
}

fn failed(opcode: u8, status: Status) -> Reply {
    Reply { status: status.number(), value: status.text().into(), ..done(opcode) }
}

fn value(opcode: u8, flags: u32, key: &str, value: &[u8]) -> Reply {
    Reply { extras: flags.to_be_bytes().into(), key: key.into(), value: value.into(), ..stored(opcode) }
}

fn number(opcode: u8, number: u64) -> Reply {
    Reply { value: number.to_be_bytes().into(), ..stored(opcode) }
}

impl Reply {
    /// Checks that it stands at the start of what was received, and returns what follows it.
    fn check<'a>(&self, received: &'a [u8], what: &str) -> &'a [u8] {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut head = vec![0x81, self.opcode];
        head.extend_from_slice(&(self.key.len() as u16).to_be_bytes());
        head.extend_from_slice(&[self.extras.len() as u8, 0]);
        head.extend_from_slice(&self.status.to_be_bytes());
        head.extend_from_slice(&(body as u32).to_be_bytes());
        head.extend_from_slice(&opaque(self.opcode).to_be_bytes());
        let shown = |bytes: &[u8]| bytes[..bytes.len().min(200)].escape_ascii().to_string();
        assert_eq!(shown(received.get(..16).unwrap_or(received)), shown(&head), "{what}");
        assert_eq!(received[16..24] != [0; 8], self.has_cas, "{what}");
        let rest = &received[24..];
        let expected = [self.extras.as_slice(), &self.key, &self.value].concat();
        assert!(rest.starts_with(&expected), "{what}: {} instead of {}", shown(rest), shown(&expected));
        &rest[body..]
    }
}

/// What is sent together, and what comes back.
type Exchange = (Vec<Request>, Vec<Reply>);

fn exchanges() -> Vec<Exchange> {
    use Status::*;
    let large: Vec<u8> = (0..300_000).map(|at| (at / 7) as u8).collect();
    let too_large = vec![0x80; 1 << 20];
    vec![
        (
            vec![request(GET, "a"), request(GET_K, "a"), request(GET_Q, "a"), request(GET_KQ, "a")],
            vec![failed(GET, NotFound), Reply { key: "a".into(), status: 1, ..done(GET_K) }],
        ),
        (
            vec![
                store(SET, "a", 7, 0, b"hello"),
                request(GET, "a"),
                request(GET_Q, "a"),
                request(GET_Q, "b"),
                request(GET_K, "a"),
                request(GET_KQ, "b"),
                request(GET_KQ, "a"),
                request(NOOP, ""),
            ],
            vec![
                stored(SET),
                value(GET, 7, "", b"hello"),
                value(GET_Q, 7, "", b"hello"),
                value(GET_K, 7, "a", b"hello"),
                value(GET_KQ, 7, "a", b"hello"),
                done(NOOP),
            ],
        ),
        (
            vec![
                store(SET, "a", 0, 0, b"x"),
                Request { cas: 1, ..store(SET, "a", 0, 0, b"y") },
                Request { cas: 1, ..store(SET, "b", 0, 0, b"y") },
                store(ADD, "a", 0, 0, b"y"),
                Request { cas: 5, ..store(ADD, "b", 0, 0, b"y") },
                store(REPLACE, "b", 0, 0, b"y"),
                store(REPLACE, "a", 0, 0, b"y"),
                Request { value: b"zz".to_vec(), ..request(APPEND, "a") },
                Request { value: b"pp".to_vec(), ..request(PREPEND, "a") },
                Request { value: b"pp".to_vec(), ..request(APPEND, "b") },
                Request { value: b"pp".to_vec(), cas: 1, ..request(APPEND, "a") },
                request(GET, "a"),
            ],
            vec![
                stored(SET),
                failed(SET, Exists),
                failed(SET, NotFound),
                failed(ADD, Exists),
                failed(ADD, NotFound),
                failed(REPLACE, NotFound),
                stored(REPLACE),
                stored(APPEND),
                stored(PREPEND),
                failed(APPEND, NotStored),
                failed(APPEND, Exists),
                value(GET, 0, "", b"ppyzz"),
            ],
        ),
        // Quiet: what succeeds is not answered.
        (
            vec![
                store(SET_Q, "a", 0, 0, b"1"),
                store(ADD_Q, "a", 0, 0, b"1"),
                store(ADD_Q, "b", 0, 0, b"1"),
                store(REPLACE_Q, "a", 0, 0, b"2"),
                store(REPLACE_Q, "c", 0, 0, b"2"),
                Request { value: b"3".to_vec(), ..request(APPEND_Q, "a") },
                Request { value: b"3".to_vec(), ..request(APPEND_Q, "c") },
                Request { value: b"1".to_vec(), ..request(PREPEND_Q, "a") },
                arithmetic(INCREMENT_Q, "a", 1, 0, 0),
                arithmetic(DECREMENT_Q, "a", 1, 0, 0),
                arithmetic(INCREMENT_Q, "c", 1, 0, u32::MAX),
                request(DELETE_Q, "b"),
                request(DELETE_Q, "b"),
                request(GET, "a"),
                request(FLUSH_Q, ""),
                request(GET, "a"),
            ],
            vec![
                failed(ADD_Q, Exists),
                failed(REPLACE_Q, NotFound),
                failed(APPEND_Q, NotStored),
                failed(INCREMENT_Q, NotFound),
                failed(DELETE_Q, NotFound),
                value(GET, 0, "", b"123"),
                failed(GET, NotFound),
            ],
        ),
        (
            vec![
                arithmetic(INCREMENT, "n", 1, 5, u32::MAX),
                arithmetic(INCREMENT, "n", 1, 5, 0),
                arithmetic(INCREMENT, "n", 2, 5, 0),
                arithmetic(DECREMENT, "n", 100, 5, 0),
                Request { cas: 1, ..arithmetic(INCREMENT, "n", 1, 5, 0) },
                Request { cas: 1, ..arithmetic(DECREMENT, "m", 1, 50, 100) },
                store(SET, "s", 0, 0, b"x"),
                arithmetic(INCREMENT, "s", 1, 5, 0),
                request(GET, "n"),
                request(GET, "m"),
            ],
            vec![
                failed(INCREMENT, NotFound),
                number(INCREMENT, 5),
                number(INCREMENT, 7),
                number(DECREMENT, 0),
                failed(INCREMENT, Exists),
                number(DECREMENT, 50),
                stored(SET),
                failed(INCREMENT, NonNumeric),
                value(GET, 0, "", b"0"),
                value(GET, 0, "", b"50"),
            ],
        ),
        (
            vec![
                request(DELETE, "a"),
                store(SET, "a", 0, 0, b"x"),
                Request { cas: 1, ..request(DELETE, "a") },
                request(DELETE, "a"),
            ],
            vec![failed(DELETE, NotFound), stored(SET), failed(DELETE, Exists), done(DELETE)],
        ),
        (
            vec![
                timed(TOUCH, "t", 10),
                timed(GAT, "t", 10),
                timed(GAT_Q, "t", 10),
                timed(GAT_K, "t", 10),
                timed(GAT_KQ, "t", 10),
                store(SET, "t", 3, 0, b"tt"),
                timed(TOUCH, "t", 100),
                timed(GAT, "t", 100),
                timed(GAT_Q, "t", 100),
                timed(GAT_K, "t", 100),
                timed(GAT_KQ, "t", 2_592_001),
                request(GET, "t"),
            ],
            vec![
                failed(TOUCH, NotFound),
                failed(GAT, NotFound),
                Reply { key: "t".into(), status: 1, ..done(GAT_K) },
                stored(SET),
                value(TOUCH, 3, "", b""),
                value(GAT, 3, "", b"tt"),
                value(GAT_Q, 3, "", b"tt"),
                value(GAT_K, 3, "t", b"tt"),
                value(GAT_KQ, 3, "t", b"tt"),
                failed(GET, NotFound),
            ],
        ),
        // Flushes, now and later.
        (
            vec![
                store(SET, "a", 0, 0, b"x"),
                timed(FLUSH, "", 1000),
                request(GET, "a"),
                timed(FLUSH, "", 0),
                request(GET, "a"),
                timed(FLUSH_Q, "", 1000),
                request(FLUSH, ""),
            ],
            vec![
                stored(SET),
                done(FLUSH),
                value(GET, 0, "", b"x"),
                done(FLUSH),
                failed(GET, NotFound),
                done(FLUSH),
            ],
        ),
        (
            vec![
                request(NOOP, ""),
                request(VERSION, ""),
                request(0x1f, ""),
                request(0x50, "key"),
                request(NOOP, ""),
            ],
            vec![
                done(NOOP),
                Reply { value: lookaside_server::VERSION.into(), ..done(VERSION) },
                failed(0x1f, UnknownCommand),
                failed(0x50, UnknownCommand),
                done(NOOP),
            ],
        ),
        // No SASL.
        (
            vec![
                request(0x20, ""),
                Request { value: b"\0user\0password".to_vec(), ..request(0x21, "PLAIN") },
                request(NOOP, ""),
            ],
            vec![failed(0x20, UnknownCommand), failed(0x21, UnknownCommand), done(NOOP)],
        ),
        // Keys of any bytes, and values, of none and of many.
        (
            vec![store(SET, "a b\r\n", 0, 0, b""), request(GET_K, "a b\r\n"), request(GET, &"k".repeat(250))],
            vec![stored(SET), value(GET_K, 0, "a b\r\n", b""), failed(GET, NotFound)],
        ),
        (
            vec![
                store(SET, "large", 9, 0, &large),
                request(GET, "large"),
                Request { value: large.clone(), ..request(APPEND, "large") },
                request(GET_K, "large"),
            ],
            vec![
                stored(SET),
                value(GET, 9, "", &large),
                stored(APPEND),
                value(GET_K, 9, "large", &[large.as_slice(), &large].concat()),
            ],
        ),
        // What is too large is skipped, and takes away what a set was to replace.
        (
            vec![
                store(SET, "a", 0, 0, b"x"),
                store(ADD, "a", 0, 0, &too_large),
                request(GET, "a"),
                store(SET_Q, "a", 0, 0, &too_large),
                request(GET, "a"),
            ],
            vec![
                stored(SET),
                failed(ADD, TooLarge),
                value(GET, 0, "", b"x"),
                failed(SET_Q, TooLarge),
                failed(GET, NotFound),
            ],
        ),
        (vec![request(STAT, "nothing"), request(STAT, "reset")], vec![failed(STAT, NotFound), done(STAT)]),
    ]
}

fn hold(exchange: &Exchange, mut serve: impl FnMut(&[u8]) -> Vec<u8>, size: usize) {
    let (requests, replies) = exchange;
    let sent: Vec<u8> = requests.iter().flat_map(Request::bytes).collect();
    let mut received = Vec::new();
    for piece in sent.chunks(size.max(sent.len() / 5000)) {
        received.extend(serve(piece));
    }
    let mut rest = received.as_slice();
    for (at, reply) in replies.iter().enumerate() {
        rest =
            reply.check(rest, &format!("reply {at} of those to {:02x}, cut at {size}", requests[0].opcode));
    }
    assert!(rest.is_empty(), "too much: {}", rest[..rest.len().min(100)].escape_ascii());
}

fn in_process() -> InProcess {
    InProcess::new(settings().with_requests_per_turn(3), 1_700_000_000).expect("a cache")
}

#[test]
fn cut_anywhere() {
    for exchange in exchanges() {
        for size in [1, 2, 3, 7, 23, 24, 25, 100, 1000, usize::MAX] {
            let mut server = in_process();
            hold(&exchange, |piece| server.receive(piece), size);
            assert!(server.is_open());
        }
    }
}

/// As in the text protocol: each frame sees what those before it have done to its key, and nothing of those behind it,
/// wherever a group of them ends.
#[test]
fn a_get_among_writes_sees_those_before_it() {
    use Status::NotFound;
    let writes = [
        (store(SET, "k", 0, 0, b"8"), stored(SET), Some(&b"8"[..])),
        (request(DELETE, "k"), done(DELETE), None),
        (arithmetic(INCREMENT, "k", 20, 0, 0), number(INCREMENT, 27), Some(b"27")),
        (timed(TOUCH, "k", 1_000_000_000), Reply { extras: vec![0; 4], ..stored(TOUCH) }, None),
        (Request { value: b"8".to_vec(), ..request(APPEND, "k") }, stored(APPEND), Some(b"78")),
    ];
    let mut server = InProcess::new(settings(), 1_700_000_000).expect("a cache");
    for before in 0..34 {
        for (write, reply, then) in &writes {
            let mut requests: Vec<Request> = (0..before).map(|_| request(GET_Q, "other")).collect();
            requests.extend([
                request(DELETE_Q, "k"),
                request(GET, "k"),
                store(SET, "k", 0, 0, b"7"),
                request(GET, "k"),
                write.clone(),
                request(GET, "k"),
                request(NOOP, ""),
            ]);
            let seen = then.map_or_else(|| failed(GET, NotFound), |then| value(GET, 0, "", then));
            let reply =
                Reply { extras: reply.extras.clone(), key: vec![], value: reply.value.clone(), ..*reply };
            let replies =
                [failed(GET, NotFound), stored(SET), value(GET, 0, "", b"7"), reply, seen, done(NOOP)];
            // The item is not there the first time, and behind what took it away.
            let sent: Vec<u8> = requests.iter().flat_map(Request::bytes).collect();
            let received = server.receive(&sent);
            let mut rest = received.as_slice();
            if rest.starts_with(&[0x81, DELETE_Q]) {
                rest = failed(DELETE_Q, NotFound).check(rest, "nothing to delete");
            }
            for (at, reply) in replies.iter().enumerate() {
                rest = reply.check(rest, &format!("reply {at} around {:02x}, behind {before}", write.opcode));
            }
            assert!(rest.is_empty());
        }
    }
}

/// Statistics are frames of their own, and the last is empty.
#[test]
fn statistics() {
    let mut server = in_process();
    server.receive(&store(SET, "a", 0, 0, b"x").bytes());
    for (topic, wanted) in
        [("", "curr_items"), ("settings", "maxbytes"), ("items", "number"), ("slabs", "chunk_size")]
    {
        let received = server.receive(&request(STAT, topic).bytes());
        let mut rest = received.as_slice();
        let mut names = Vec::new();
        while !rest.is_empty() {
            let key = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            let body = u32::from_be_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
            assert_eq!((rest[..2].to_vec(), rest[6..8].to_vec()), (vec![0x81, STAT], vec![0, 0]));
            names.push(String::from_utf8(rest[24..24 + key].to_vec()).expect("a name"));
            assert_eq!(key > 0, body > key, "a name and a value, or neither");
            rest = &rest[24 + body..];
        }
        assert_eq!(names.iter().position(String::is_empty), Some(names.len() - 1), "{topic}");
        assert!(names.iter().any(|name| name.ends_with(wanted)), "{topic}: {names:?}");
    }
}

/// Counts by prefix are the value of one statistic.
#[test]
fn details() {
    let mut server = in_process();
    let ask = |server: &mut InProcess, topic: &str| server.receive(&request(STAT, topic).bytes());
    assert!(done(STAT).check(&ask(&mut server, "detail on"), "on").is_empty());
    server.receive(&store(SET_Q, "user:1", 0, 0, b"x").bytes());
    server.receive(&request(GET_Q, "user:1").bytes());
    let dump = "PREFIX user get 1 hit 1 set 1 del 0\r\nEND\r\n";
    let received = ask(&mut server, "detail dump");
    let detailed = Reply { key: "detailed".into(), value: dump.into(), ..done(STAT) };
    assert!(done(STAT).check(detailed.check(&received, "dump"), "dump").is_empty());
    assert!(done(STAT).check(&ask(&mut server, "detail off"), "off").is_empty());
    assert!(failed(STAT, Status::NotFound).check(&ask(&mut server, "detail"), "what").is_empty());
    let settings = settings().with_dumps_allowed(false);
    let mut server = InProcess::new(settings, 1_700_000_000).expect("a cache");
    assert!(failed(STAT, Status::NotFound).check(&ask(&mut server, "detail on"), "not allowed").is_empty());
}

/// What is wrong with a frame is answered, and ends the connection.
#[test]
fn frames_that_are_wrong() {
    let long = "k".repeat(251);
    let with_value = |request: Request| Request { value: b"v".to_vec(), ..request };
    let wrong = [
        request(GET, &long),
        store(SET, &long, 0, 0, b"x"),
        request(GET, ""),
        timed(GET, "a", 0),
        with_value(request(GET, "a")),
        request(GET_Q, ""),
        with_value(request(SET, "a")),
        store(SET, "", 0, 0, b"x"),
        timed(SET, "a", 0),
        store(APPEND, "a", 0, 0, b"x"),
        with_value(request(APPEND, "")),
        timed(DELETE, "a", 0),
        request(DELETE, ""),
        with_value(request(DELETE, "a")),
        timed(INCREMENT, "a", 0),
        arithmetic(INCREMENT, "", 1, 1, 0),
        request(NOOP, "k"),
        timed(NOOP, "", 0),
        request(VERSION, "k"),
        request(QUIT, "k"),
        Request { extras: vec![1, 2, 3], ..request(FLUSH, "") },
        request(FLUSH, "k"),
        timed(STAT, "", 0),
        request(TOUCH, "a"),
        timed(TOUCH, "", 0),
        request(GAT, "a"),
    ];
    for request in wrong {
        // And no further than the first.
        let sent = [request.bytes(), crate::binary::request(NOOP, "").bytes()].concat();
        for size in [1, usize::MAX] {
            let mut server = in_process();
            let received: Vec<u8> = sent.chunks(size).flat_map(|piece| server.receive(piece)).collect();
            let rest =
                failed(request.opcode, Status::InvalidArguments).check(&received, "a frame that is wrong");
            assert!(rest.is_empty() && !server.is_open(), "{:02x}", request.opcode);
        }
    }
    // Lengths that do not fit, or are too large.
    let lengths = |key: u16, extras: u8, body: u32| {
        let mut bytes = request(SET, "").bytes();
        bytes[2..4].copy_from_slice(&key.to_be_bytes());
        bytes[4] = extras;
        bytes[8..12].copy_from_slice(&body.to_be_bytes());
        bytes
    };
    for (sent, status) in [
        (lengths(1, 8, 8), Status::UnknownCommand),
        (lengths(50, 0, 8), Status::UnknownCommand),
        (lengths(0, 9, 8), Status::UnknownCommand),
        (lengths(1, 8, (1 << 30) + 1), Status::InvalidArguments),
        (lengths(1, 8, u32::MAX), Status::InvalidArguments),
        (lengths(u16::MAX, 8, u32::MAX), Status::InvalidArguments),
    ] {
        let mut server = in_process();
        let received = server.receive(&sent);
        assert!(failed(SET, status).check(&received, "lengths").is_empty());
        assert!(!server.is_open());
    }
}

/// A connection speaks one protocol, by its first byte or as it was told to.
#[test]
fn which_protocol() {
    let noop = request(NOOP, "").bytes();
    let protocol =
        |protocol| InProcess::new(settings().with_protocol(protocol), 1_700_000_000).expect("a cache");
    let mut server = protocol(Protocol::Auto);
    assert_eq!(server.receive(&noop).len(), 24);
    assert_eq!((server.receive(b"mn\r\n"), server.is_open()), (vec![], false));
    server.reconnect();
    assert_eq!(server.receive(b"mn\r\n"), b"MN\r\n");
    assert_eq!((server.receive(&noop), server.is_open()), (vec![], false));

    let mut server = protocol(Protocol::Binary);
    assert_eq!(server.receive(&noop).len(), 24);
    server.reconnect();
    assert_eq!((server.receive(b"mn\r\n"), server.is_open()), (vec![], false));

    let mut server = protocol(Protocol::Ascii);
    assert_eq!(server.receive(b"mn\r\n"), b"MN\r\n");
    server.reconnect();
    assert_eq!((server.receive(&noop), server.is_open()), (vec![], false));
}

#[test]
fn quitting() {
    let mut server = in_process();
    let received = server.receive(&[request(QUIT, "").bytes(), request(NOOP, "").bytes()].concat());
    assert!(done(QUIT).check(&received, "quit").is_empty() && !server.is_open());
    server.reconnect();
    assert_eq!((server.receive(&request(QUIT_Q, "").bytes()), server.is_open()), (vec![], false));
}

#[test]
fn flushes_that_are_not_allowed() {
    let settings = settings().with_flush_allowed(false);
    let mut server = InProcess::new(settings, 1_700_000_000).expect("a cache");
    server.receive(&store(SET_Q, "a", 0, 0, b"x").bytes());
    let received = server.receive(&[request(FLUSH, "").bytes(), request(GET, "a").bytes()].concat());
    let rest = failed(FLUSH, Status::AuthFailure).check(&received, "flush");
    assert!(value(GET, 0, "", b"x").check(rest, "get").is_empty());
    server.reconnect();
    let received = server.receive(b"flush_all\r\nmg a v\r\n");
    assert_eq!(received, b"CLIENT_ERROR flush_all not allowed\r\nVA 1\r\nx\r\n");
}

/// Numbers that are not told are not compared either.
#[test]
fn without_numbers() {
    let settings = settings().with_cas_disabled(true);
    let mut server = InProcess::new(settings, 1_700_000_000).expect("a cache");
    let received =
        server.receive(b"set a 0 0 1\r\nx\r\ngets a\r\nmg a c\r\nms a 1 c\r\ny\r\ncas a 0 0 1 5\r\nz\r\n");
    assert_eq!(
        received.escape_ascii().to_string(),
        b"STORED\r\nVALUE a 0 1 0\r\nx\r\nEND\r\nHD c0\r\nHD c0\r\nSTORED\r\n".escape_ascii().to_string()
    );
    server.reconnect();
    let received = server.receive(&[store(SET, "a", 0, 0, b"x").bytes(), request(GET, "a").bytes()].concat());
    let rest = done(SET).check(&received, "set");
    let value = Reply { has_cas: false, ..value(GET, 0, "", b"x") };
    assert!(value.check(rest, "get").is_empty());
}

#[test]
fn over_sockets() {
    let server = Server::start(settings().with_requests_per_turn(50)).expect("it starts");
    let address = Address::from(server.addresses()[0]);
    for exchange in exchanges() {
        let mut client = Client::connect(&address);
        let (requests, replies) = &exchange;
        client.send(&request(FLUSH_Q, "").bytes());
        client.send(&requests.iter().flat_map(Request::bytes).collect::<Vec<_>>());
        for reply in replies {
            let body = reply.extras.len() + reply.key.len() + reply.value.len();
            let received = client.receive(24 + body);
            assert!(reply.check(&received, "over a socket").is_empty());
        }
        client.send(&request(NOOP, "").bytes());
        assert!(done(NOOP).check(&client.receive(24), "the end").is_empty());
    }
    server.stop().expect("no thread has failed");
}
