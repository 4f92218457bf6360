//! Every conversation of the table, over every transport, for several numbers of threads, and however it is cut.

use std::cell::RefCell;
use std::io::Write;
use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::client::{Address, Client, LOCALHOST, LOCALHOST_6, settings, shorten, switched_off, wait_until};
use crate::conversations::{self, Conversation, End};
use lookaside_server::{InProcess, Server, UnixSocket};

/// The two ways to a server, as a conversation needs them.
trait Connection {
    fn send(&mut self, bytes: &[u8]);
    /// So many bytes, or fewer if there is no more to come.
    fn receive(&mut self, count: usize) -> Vec<u8>;
    /// Nothing more is under way, and this is how the connection ended.
    fn expect_end(&mut self, end: End);
}

impl Connection for Client {
    fn send(&mut self, bytes: &[u8]) {
        // It may be closed before the last piece, which will be seen, as too few replies or as the end.
        let _ = self.socket.write_all(bytes);
    }

    fn receive(&mut self, count: usize) -> Vec<u8> {
        Client::receive(self, count)
    }

    fn expect_end(&mut self, end: End) {
        match end {
            End::Open => self.expect_open(),
            End::Closed => self.expect_closed(),
        }
    }
}

/// A server that is called, and the replies that have not been taken.
struct Called<'s> {
    server: &'s RefCell<InProcess>,
    replies: Vec<u8>,
}

impl Connection for Called<'_> {
    fn send(&mut self, bytes: &[u8]) {
        self.replies.extend_from_slice(&self.server.borrow_mut().receive(bytes));
    }

    fn receive(&mut self, count: usize) -> Vec<u8> {
        self.replies.drain(..count.min(self.replies.len())).collect()
    }

    fn expect_end(&mut self, end: End) {
        assert!(self.replies.is_empty(), "{} too much", shorten(&self.replies));
        assert_eq!(self.server.borrow().is_open(), end == End::Open);
    }
}

/// Where the bytes of a conversation are cut.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Nowhere,
    /// At one place, or not at all if the bytes end before it.
    At(usize),
    /// Into pieces of so many bytes.
    Pieces(usize),
}

impl Cut {
    fn pieces(self, bytes: &[u8]) -> Vec<&[u8]> {
        match self {
            Cut::Nowhere => vec![bytes],
            Cut::At(place) => {
                let (first, rest) = bytes.split_at(place.min(bytes.len()));
                [first, rest].into_iter().filter(|piece| !piece.is_empty()).collect()
            }
            Cut::Pieces(size) => bytes.chunks(size).collect(),
        }
    }
}

/// Holds a conversation.
fn hold(conversation: &Conversation, connection: &mut dyn Connection, cut: Cut) {
    connection.send(b"flush_all noreply\r\n");
    let mut numbers = Vec::new();
    for (sent, reply) in &conversation.exchanges {
        for piece in cut.pieces(&with_numbers(sent, &numbers)) {
            connection.send(piece);
        }
        expect_reply(reply, connection, &mut numbers);
    }
    connection.expect_end(conversation.end);
}

/// Puts the numbers seen so far in the place of `$1` and so on.
fn with_numbers(sent: &[u8], numbers: &[u64]) -> Vec<u8> {
    let mut text = sent.to_vec();
    for (at, number) in numbers.iter().enumerate() {
        let name = [b'$', b'1' + at as u8];
        while let Some(place) = text.windows(2).position(|window| window == name) {
            text.splice(place..place + 2, number.to_string().into_bytes());
        }
    }
    text
}

fn expect_reply(reply: &[u8], connection: &mut dyn Connection, numbers: &mut Vec<u64>) {
    // Only what was written out has numbers in it.
    let is_name = |pair: &[u8]| reply.len() < 1000 && pair[0] == b'$' && (b'1'..=b'9').contains(&pair[1]);
    let mut rest = reply;
    loop {
        let text = rest.windows(2).position(is_name).unwrap_or(rest.len());
        let received = connection.receive(text);
        assert!(
            received == rest[..text],
            "{}\ninstead of\n{}\nin\n{}",
            shorten(&received),
            shorten(&rest[..text]),
            shorten(reply)
        );
        if text == rest.len() {
            return;
        }
        let name = usize::from(rest[text + 1] - b'1');
        rest = &rest[text + 2..];
        let mut digits = connection.receive(1);
        while rest.first() != digits.last() {
            let digit = connection.receive(1);
            assert!(!digit.is_empty(), "{} instead of a number", shorten(&digits));
            digits.extend_from_slice(&digit);
        }
        rest = &rest[1..];
        digits.pop();
        let number: u64 = String::from_utf8(digits).expect("digits").parse().expect("a number");
        match numbers.get(name) {
            Some(seen) => assert_eq!(number, *seen, "in {}", shorten(reply)),
            None => {
                assert!(number != 0 && !numbers.contains(&number), "{number} again in {}", shorten(reply));
                assert_eq!(name, numbers.len(), "the numbers of a conversation are named in order");
                numbers.push(number);
            }
        }
    }
}

/// Says which conversation it was that failed.
fn hold_all<C: Connection>(
    label: &str,
    clock_stands: bool,
    connect: impl Fn() -> C,
    cut: impl Fn(usize, usize) -> Vec<Cut>,
) {
    let all = conversations::all();
    assert!(all.len() > 300, "{} conversations", all.len());
    for (number, conversation) in all.iter().enumerate() {
        if conversation.is_timed() && !clock_stands {
            continue;
        }
        let longest = conversation.exchanges.iter().map(|(sent, _)| sent.len()).max().unwrap_or(0);
        for cut in cut(number, longest) {
            let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                hold(conversation, &mut connect(), cut);
            }));
            // What was wrong has been said by then.
            if held.is_err() {
                let sent: Vec<String> =
                    conversation.exchanges.iter().map(|(sent, _)| shorten(sent)).collect();
                panic!("{label}, cut {cut:?}: {sent:#?}");
            }
        }
    }
}

/// A server with as many threads that listens wherever it can, and the places.
fn server(threads: usize) -> (Server, Vec<Address>, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let mut tcp = vec![LOCALHOST];
    if TcpListener::bind(LOCALHOST_6).is_ok() {
        tcp.push(LOCALHOST_6);
    } else {
        outside::say("this machine has no IPv6");
    }
    // A number of requests in a turn that the table goes beyond.
    let server = Server::start(
        switched_off(settings())
            .with_tcp(tcp)
            .with_unix(UnixSocket::new(path.clone(), 0o700))
            .with_threads(threads)
            .with_requests_per_turn(50),
    )
    .expect("it starts");
    let mut places: Vec<Address> = server.addresses().iter().copied().map(Address::from).collect();
    places.push(Address::Unix(path));
    (server, places, directory)
}

#[test]
fn over_every_transport_with_any_number_of_threads() {
    for threads in [1, 2, 4] {
        let (server, places, _directory) = server(threads);
        for place in &places {
            hold_all(
                &format!("{place}, {threads} threads"),
                false,
                || Client::connect(place),
                // Whole, and in so small pieces that the server wakes up for some of them alone.
                |number, longest| vec![Cut::Nowhere, Cut::Pieces((1 + number % 7).max(longest / 100))],
            );
        }
        server.stop().expect("no thread has failed");
    }
}

#[test]
fn cut_anywhere() {
    let settings = switched_off(settings()).with_requests_per_turn(3);
    let server = RefCell::new(InProcess::new(settings, 1_700_000_000).expect("a cache"));
    let connect = || {
        server.borrow_mut().reconnect();
        Called { server: &server, replies: Vec::new() }
    };
    hold_all("in the process", true, connect, |_, longest| {
        let mut cuts = vec![Cut::Nowhere, Cut::Pieces(1 + longest / 5000)];
        if longest < 400 {
            cuts.extend((1..longest).map(Cut::At));
        } else {
            // The ends, where line limits and buffers are full, and some places in between.
            let edges = [1, 20, 2047, 2048, 2049, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537];
            let last = (1..4).map(|back| longest - back);
            cuts.extend(edges.into_iter().chain(last).map(Cut::At));
            cuts.extend([1000, 4096, 16_384, 65_536].map(Cut::Pieces));
        }
        cuts
    });
}

/// The same over a socket, where each piece is known to have been received before the next one is sent.
#[test]
fn pipelined_requests_split_at_every_byte() {
    let pipeline =
        b"set a 5 0 9\r\nabc\r\ndefg\r\nget a b\r\nadd b 0 0 2 noreply\r\n17\r\nincr b 8\r\nget a b\r\n\
                     foo\r\nset c 0 0 1\r\nxyz\r\ngat 0 b\r\ndelete a noreply\r\ndelete b\r\nget a b c\r\n";
    let replies = b"STORED\r\nVALUE a 5 9\r\nabc\r\ndefg\r\nEND\r\n25\r\n\
                    VALUE a 5 9\r\nabc\r\ndefg\r\nVALUE b 0 2\r\n25\r\nEND\r\nERROR\r\n\
                    CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n\
                    VALUE b 0 2\r\n25\r\nEND\r\nDELETED\r\nEND\r\n";
    for threads in [1, 2, 4] {
        let (server, places, _directory) = server(threads);
        for place in &places {
            let mut observer = Client::connect(place);
            let mut client = Client::connect(place);
            for split in 1..pipeline.len() {
                // Asking costs bytes too.
                let mut expected = observer.stat("bytes_read") + split as u64;
                client.send(&pipeline[..split]);
                wait_until("the first piece is received", || {
                    expected += b"stats \r\n".len() as u64;
                    observer.stat("bytes_read") >= expected
                });
                client.ask(&pipeline[split..], replies);
            }
            client.expect_open();
        }
        server.stop().expect("no thread has failed");
    }
}

/// Times that come while the test waits for them.
#[test]
fn the_clock_goes() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_secs();
    let server = Server::start(settings()).expect("it starts");
    let mut client = Client::connect(&server.addresses()[0].into());
    let start = now();
    client.ask(b"set a 0 1 1\r\nx\r\nset b 0 0 1\r\nx\r\ntouch b 2\r\n", b"STORED\r\nSTORED\r\nTOUCHED\r\n");
    client.ask(b"set c 0 0 1\r\nx\r\nflush_all 3\r\n", b"STORED\r\nOK\r\n");
    let absolute = start + 2;
    client.ask(format!("set d 0 {absolute} 1\r\nx\r\n").as_bytes(), b"STORED\r\n");
    // The server's clock may be a tick behind the one looked at here. (flush_all acts at the end of the second before.)
    for (key, earliest) in [("a", start), ("b", start + 1), ("d", absolute), ("c", start + 1)] {
        let value = format!("VALUE {key} 0 1\r\nx\r\nEND\r\n");
        wait_until("it is gone", || {
            client.send(format!("get {key}\r\n").as_bytes());
            let reply = client.receive_through(b"END\r\n");
            if reply == b"END\r\n" {
                assert!(now() >= earliest, "{key} is gone too early");
                return true;
            }
            assert_eq!(reply, value.as_bytes());
            assert!(now() <= start + 10, "{key} stays too long");
            false
        });
    }
    // As long as the second lasts in which c went, what is stored goes with it.
    wait_until("what is stored stays", || {
        client.ask(b"set c 0 0 1\r\ny\r\n", b"STORED\r\n");
        client.send(b"get c\r\n");
        client.receive_through(b"END\r\n") == b"VALUE c 0 1\r\ny\r\nEND\r\n"
    });
    server.stop().expect("no thread has failed");
}

/// What `stats` says after things that are known.
#[test]
fn statistics_say_what_was_done() {
    let (server, places, _directory) = server(4);
    // Spread over all threads.
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&places[0])).collect();
    let mut next = 0;
    let mut ask = |request: &str, reply: &str| {
        next += 1;
        clients[next % 8].ask(request.as_bytes(), reply.as_bytes());
    };
    let stored = "STORED\r\n";
    let script = [
        ("set a 0 0 1\r\nx\r\n", stored),
        ("set b 0 0 2\r\n10\r\n", stored),
        ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("get a b c d\r\n", "VALUE a 0 1\r\nx\r\nVALUE b 0 2\r\n10\r\nEND\r\n"),
        ("get c\r\n", "END\r\n"),
        ("touch a 0\r\n", "TOUCHED\r\n"),
        ("touch c 0\r\n", "NOT_FOUND\r\n"),
        ("gat 0 a c\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
        ("incr b 1\r\n", "11\r\n"),
        ("incr c 1\r\n", "NOT_FOUND\r\n"),
        ("decr b 1\r\n", "10\r\n"),
        ("decr b 1\r\n", "9\r\n"),
        ("decr c 1\r\n", "NOT_FOUND\r\n"),
        ("cas c 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas a 0 0 1 18446744073709551615\r\nx\r\n", "EXISTS\r\n"),
        ("delete c\r\n", "NOT_FOUND\r\n"),
        ("delete a\r\n", "DELETED\r\n"),
        ("set a 0 -1 1\r\nx\r\n", stored),
        ("get a\r\n", "END\r\n"),
    ];
    for (request, reply) in script {
        ask(request, reply);
    }
    ask(
        &format!("set a 0 0 2000000\r\n{}\r\n", "x".repeat(2_000_000)),
        "SERVER_ERROR object too large for cache\r\n",
    );
    // One that does compare and swap.
    clients[0].send(b"gets b\r\n");
    let reply = clients[0].receive_through(b"END\r\n");
    let line = String::from_utf8(reply).expect("text");
    let number = line.split_whitespace().nth(4).expect("a number");
    clients[0].ask(format!("cas b 0 0 1 {number}\r\n5\r\n").as_bytes(), stored.as_bytes());
    clients[1].ask(b"flush_all\r\nget b\r\n", b"OK\r\nEND\r\n");
    clients[2].ask(b"set big 7 0 0\r\n\r\nget big\r\n", b"STORED\r\nVALUE big 7 0\r\n\r\nEND\r\n");

    // What was flushed is swept away.
    wait_until("one item is left", || clients[3].stat("curr_items") == 1);
    let stats = clients[3].stats("");
    let expected = [
        ("cmd_get", 9),
        ("get_hits", 4),
        ("get_misses", 5),
        ("cmd_set", 8),
        ("cmd_touch", 4),
        ("touch_hits", 2),
        ("touch_misses", 2),
        ("cmd_flush", 1),
        ("incr_hits", 1),
        ("incr_misses", 1),
        ("decr_hits", 2),
        ("decr_misses", 1),
        ("cas_hits", 1),
        ("cas_misses", 1),
        ("cas_badval", 1),
        ("delete_hits", 1),
        ("delete_misses", 1),
        ("store_too_large", 1),
        ("store_no_memory", 0),
        ("evictions", 0),
        ("curr_connections", 8),
        ("total_connections", 8),
        ("rejected_connections", 0),
        ("max_connections", 1024),
        ("threads", 4),
        ("limit_maxbytes", 64 << 20),
        ("pid", u64::from(std::process::id())),
    ];
    for (name, value) in expected {
        assert_eq!(stats.get(name), Some(&value.to_string()), "{name}");
    }
    assert_eq!(stats["version"], lookaside_server::VERSION);
    // What was too large is refused when it is announced, and read after that.
    wait_until("the value that was refused has been read", || clients[3].stat("bytes_read") > 2_000_000);
    assert!(stats["bytes_written"].parse::<usize>().unwrap() > 500);

    let settings = clients[4].stats("settings");
    for (name, value) in [
        ("maxbytes", "67108864"),
        ("maxconns", "1024"),
        ("num_threads", "4"),
        ("item_size_max", "1048576"),
        ("evictions", "on"),
        ("cas_enabled", "yes"),
        ("binding_protocol", "auto-negotiate"),
        ("verbosity", "0"),
    ] {
        assert_eq!(settings[name], value, "{name}");
    }
    clients[5].ask(b"verbosity 7\r\n", b"OK\r\n");
    assert_eq!(clients[4].stats("settings")["verbosity"], "2");
    let slabs = clients[4].stats("slabs");
    assert!(slabs.keys().any(|name| name.ends_with(":chunk_size")) && slabs.contains_key("active_slabs"));
    assert!(clients[4].stats("items").keys().all(|name| name.starts_with("items:")));

    clients[6].ask(b"stats reset\r\n", b"RESET\r\n");
    let stats = clients[7].stats("");
    for name in ["cmd_get", "cmd_set", "get_hits", "get_misses", "cmd_touch", "cas_hits", "store_too_large"] {
        assert_eq!(stats[name], "0", "{name}");
    }
    assert_eq!(stats["curr_items"], "1");
    server.stop().expect("no thread has failed");
}

/// Gets before a write are looked up together, whatever their number: nothing of what comes later is seen earlier.
#[test]
fn a_write_behind_gets_counts_as_no_get() {
    let mut server = InProcess::new(settings(), 1_700_000_000).expect("a cache");
    let mut gets = 0;
    // Around the number of keys that are looked up at once.
    for before in 1..=35 {
        assert_eq!(
            server.receive(b"delete k\r\n"),
            if before == 1 { b"NOT_FOUND\r\n".as_slice() } else { b"DELETED\r\n" }
        );
        let sent = format!("{}set k 0 0 1\r\nx\r\nget k\r\n", "get k\r\n".repeat(before));
        let due = format!("{}STORED\r\nVALUE k 0 1\r\nx\r\nEND\r\n", "END\r\n".repeat(before));
        assert_eq!(
            server.receive(sent.as_bytes()).escape_ascii().to_string(),
            due.escape_default().to_string()
        );
        gets += before + 1;
        let others = format!("{}set k 0 0 1\r\ny\r\nmg k h v\r\n", "get other\r\n".repeat(before));
        let due = format!("{}STORED\r\nVA 1 h0\r\ny\r\n", "END\r\n".repeat(before));
        assert_eq!(
            server.receive(others.as_bytes()).escape_ascii().to_string(),
            due.escape_default().to_string()
        );
        gets += before + 1;
    }
    let stats = String::from_utf8(server.receive(b"stats\r\n")).expect("text");
    assert!(stats.contains(&format!("STAT cmd_get {gets}\r\n")), "{gets} in {stats}");
    assert!(stats.contains("STAT get_hits 70\r\n"), "{stats}");
}

/// Requests that come together are read, and their memory is asked for, before the first is served: each sees what
/// those before it have done to its key, and nothing of those behind it, wherever a group of them ends.
#[test]
fn a_get_among_writes_sees_those_before_it() {
    let value = |value: &str| format!("VALUE k 0 {}\r\n{value}\r\nEND\r\n", value.len());
    let meta = |value: &str| format!("VA {}\r\n{value}\r\n", value.len());
    let (none, no_item) = ("END\r\n".to_string(), "EN\r\n".to_string());
    // What is written, the reply, and what a `get` and an `mg` see of a value of 7 then.
    let writes = [
        ("set k 0 0 1\r\n8\r\n", "STORED\r\n", Some("8")),
        ("add k 0 0 1\r\n8\r\n", "NOT_STORED\r\n", Some("7")),
        ("replace k 0 0 2\r\n88\r\n", "STORED\r\n", Some("88")),
        ("append k 0 0 1\r\n8\r\n", "STORED\r\n", Some("78")),
        ("set k 0 -1 1\r\n8\r\n", "STORED\r\n", None),
        ("delete k\r\n", "DELETED\r\n", None),
        ("incr k 2\r\n", "9\r\n", Some("9")),
        ("incr k 20\r\n", "27\r\n", Some("27")),
        ("touch k -1\r\n", "TOUCHED\r\n", None),
        ("touch k 100\r\n", "TOUCHED\r\n", Some("7")),
        ("ms k 1\r\n8\r\n", "HD\r\n", Some("8")),
        ("md k\r\n", "HD\r\n", None),
        ("ma k\r\n", "HD\r\n", Some("8")),
    ];
    for lookaside in [0, 1 << 16] {
        let settings = || settings().with_lookaside(lookaside);
        let mut server = InProcess::new(settings(), 1_700_000_000).expect("a cache");
        // More than two groups of keys, so that each request is the first and the last of one.
        for before in 0..34 {
            for (write, reply, then) in writes {
                let mut sent = "get other\r\n".repeat(before);
                let mut due = none.repeat(before);
                let mut add = |request: &str, reply: &str| {
                    sent.push_str(request);
                    due.push_str(reply);
                };
                add("delete k noreply\r\n", "");
                add("get k\r\n", &none);
                add("mg k v\r\n", &no_item);
                add("set k 0 0 1\r\n7\r\n", "STORED\r\n");
                add("get k\r\n", &value("7"));
                add("mg k v\r\n", &meta("7"));
                add(write, reply);
                add("mg k v\r\n", &then.map_or(no_item.clone(), meta));
                add("get k\r\n", &then.map_or(none.clone(), value));
                add("get other k\r\n", &then.map_or(none.clone(), value));
                assert_eq!(
                    server.receive(sent.as_bytes()).escape_ascii().to_string(),
                    due.as_bytes().escape_ascii().to_string(),
                    "{write:?} behind {before} gets, with {lookaside} bytes before the index"
                );
            }
        }
    }
}

/// They were counted for the first of several lines only.
#[test]
fn too_many_flags_are_refused_in_every_line() {
    let mut server = InProcess::new(settings(), 1_700_000_000).expect("a cache");
    assert_eq!(server.receive(b"set k 0 0 1\r\n1\r\n"), b"STORED\r\n");
    let too_many = "CLIENT_ERROR options flags are too long\r\n";
    let invalid = "CLIENT_ERROR invalid or duplicate flag\r\n";
    for (line, after, due) in
        [("mg", "EN\r\n", too_many), ("md", "NF\r\n", too_many), ("ma", "NF\r\n", invalid)]
    {
        let refused = format!("{line} k c f h k l s t v x C1 D1 E1 F1 I J1 L O P R1\r\n");
        assert_eq!(
            server.receive(refused.as_bytes()).escape_ascii().to_string(),
            due.escape_default().to_string()
        );
        let both = format!("{line} none\r\n{refused}");
        let due = format!("{after}{due}");
        assert_eq!(
            server.receive(both.as_bytes()).escape_ascii().to_string(),
            due.escape_default().to_string()
        );
    }
    let refused = "ms k 1 c f h k l s t v x C1 D1 E1 F1 I J1 L O P\r\ny\r\n";
    let both = format!("ms a 1\r\nx\r\n{refused}");
    let due = format!("HD\r\n{too_many}");
    assert_eq!(server.receive(both.as_bytes()).escape_ascii().to_string(), due.escape_default().to_string());
    assert_eq!(server.receive(b"get k\r\n"), b"VALUE k 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn statistics_tell_of_a_lookaside_buffer_only_where_there_is_one() {
    let bare = Server::start(settings()).expect("it starts");
    let stats = Client::connect(&Address::from(bare.addresses()[0])).stats("");
    for name in ["lookaside_bytes", "lookaside_hits", "lookaside_misses"] {
        assert!(!stats.contains_key(name), "{stats:?}");
    }

    let server = Server::start(settings().with_lookaside(1 << 16)).expect("it starts");
    let mut client = Client::connect(&Address::from(server.addresses()[0]));
    client.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    // From the index, from the table, and one of each.
    client.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    client.ask(b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    client.ask(b"get a b\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n");
    let told = |client: &mut Client| {
        ["lookaside_bytes", "lookaside_hits", "lookaside_misses"].map(|name| client.stat(name))
    };
    assert_eq!(told(&mut client), [1 << 16, 2, 2]);
    client.ask(b"stats reset\r\n", b"RESET\r\n");
    assert_eq!(told(&mut client), [1 << 16, 0, 0]);
}
