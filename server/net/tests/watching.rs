//! `watch`: what is told, to whom, and that it disturbs nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::client::{Address, Client, settings, wait_until};
use crate::peer::Memcached;
use lookaside_server::{Server, UnixSocket};

struct Watched {
    server: Server,
    place: Address,
    client: Client,
}

fn start(threads: usize, memory: usize) -> Watched {
    let server = Server::start(settings().with_threads(threads).with_memory(memory)).expect("it starts");
    let place = Address::from(server.addresses()[0]);
    let client = Client::connect(&place);
    Watched { server, place, client }
}

/// A client that watches, and what it has received of a line.
struct Watcher {
    client: Client,
    received: Vec<u8>,
}

impl Watcher {
    fn new(place: &Address, streams: &str) -> Watcher {
        let mut client = Client::connect(place);
        client.ask(format!("watch {streams}\r\n").as_bytes(), b"OK\r\n");
        Watcher { client, received: Vec::new() }
    }

    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.received.iter().position(|&byte| byte == b'\n') {
                let line = self.received.drain(..=end).collect();
                return String::from_utf8(line).expect("text").trim_end().to_owned();
            }
            let byte = self.client.receive(1);
            assert!(!byte.is_empty(), "the end instead of a line");
            self.received.extend_from_slice(&byte);
        }
    }

    /// The parts of the next line that are the same every time: without time, number and socket.
    fn event(&mut self) -> String {
        let line = self.line();
        let parts: BTreeMap<&str, &str> = line.split(' ').filter_map(|part| part.split_once('=')).collect();
        let (seconds, fraction) = parts["ts"].split_once('.').expect("a time");
        assert!(seconds.len() == 10 && fraction.len() == 6 && parts["gid"].parse::<u64>().is_ok(), "{line}");
        lasting(&line)
    }
}

/// A line without time, number, socket and class.
fn lasting(line: &str) -> String {
    let volatile = ["ts", "gid", "cfd", "rport", "clsid"];
    let stays = |part: &&str| !volatile.contains(&part.split('=').next().unwrap_or_default());
    line.split(' ').filter(stays).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_stream_has_its_events() {
    let Watched { server, place, mut client } = start(2, 64 << 20);
    let mut fetchers = Watcher::new(&place, "");
    let mut mutations = Watcher::new(&place, "mutations");
    let mut deletions = Watcher::new(&place, "deletions");
    let mut both = Watcher::new(&place, "fetchers deletions");
    let mut script = |request: &str, reply: &str| client.ask(request.as_bytes(), reply.as_bytes());
    script("set foo 5 0 3\r\nabc\r\n", "STORED\r\n");
    script("set bar%x 0 100 4 noreply\r\nabcd\r\nget foo nope\r\n", "VALUE foo 5 3\r\nabc\r\nEND\r\n");
    script("touch foo 100\r\ntouch none 1\r\n", "TOUCHED\r\nNOT_FOUND\r\n");
    script("gat 10 foo\r\n", "VALUE foo 5 3\r\nabc\r\nEND\r\n");
    script("add foo 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    script("cas foo 0 0 1 99\r\nx\r\ncas none 0 0 1 1\r\nx\r\n", "EXISTS\r\nNOT_FOUND\r\n");
    script("set n 0 0 1\r\n5\r\nincr n 1\r\n", "STORED\r\n6\r\n");
    script("delete foo\r\ndelete foo\r\n", "DELETED\r\nNOT_FOUND\r\n");
    script("set gone 0 -1 1\r\nx\r\nget gone\r\n", "STORED\r\nEND\r\n");
    let large = "x".repeat(2_000_000);
    script(&format!("set big 0 0 2000000\r\n{large}\r\n"), "SERVER_ERROR object too large for cache\r\n");
    let large = "x".repeat(100_000);
    script(&format!("set large 0 0 100000\r\n{large}\r\n"), "STORED\r\n");

    let found = |key: &str, size: usize| format!("type=item_get key={key} status=found size={size}");
    let missed = |key: &str| format!("type=item_get key={key} status=not_found size=0");
    // A key that is to be stored, or deleted, is looked up first.
    let expected = [
        missed("foo"),
        missed("bar%25x"),
        found("foo", 3),
        missed("nope"),
        found("foo", 3),
        missed("none"),
        found("foo", 3),
        found("foo", 3),
        found("foo", 3),
        missed("none"),
        missed("n"),
        found("n", 1),
        found("foo", 3),
        missed("foo"),
        missed("gone"),
        "type=item_get key=gone status=expired size=0".to_owned(),
        missed("large"),
    ];
    for line in &expected {
        assert_eq!(fetchers.event(), *line);
    }
    let stored = |key: &str, status: &str, cmd: &str, ttl: u32, size: usize| {
        format!("type=item_store key={key} status={status} cmd={cmd} ttl={ttl} size={size}")
    };
    assert_eq!(mutations.event(), stored("foo", "stored", "set", 0, 3));
    let line = mutations.event();
    assert!(
        ["100", "99", "101"]
            .iter()
            .any(|ttl| line == stored("bar%25x", "stored", "set", ttl.parse().expect("a number"), 4)),
        "{line}"
    );
    for (key, status, cmd, size) in [
        ("foo", "not_stored", "add", 1),
        ("foo", "exists", "cas", 1),
        ("none", "not_found", "cas", 1),
        ("n", "stored", "set", 1),
    ] {
        assert_eq!(mutations.event(), stored(key, status, cmd, 0, size));
    }
    assert!(mutations.event().starts_with("type=item_store key=gone status=stored cmd=set ttl="));
    assert_eq!(mutations.event(), stored("big", "too_large", "set", 0, 0));
    assert_eq!(mutations.event(), stored("large", "stored", "set", 0, 100_000));
    let deleted = "type=deleted key=foo cmd=delete size=3";
    assert_eq!(deletions.event(), deleted);
    let lines: Vec<String> = (0..expected.len() + 1).map(|_| both.event()).collect();
    assert_eq!(lines[..13], expected[..13]);
    assert_eq!((lines[13].as_str(), &lines[14..]), (deleted, &expected[13..]));
    let stats = client.stats("");
    assert_eq!((stats["log_watchers"].as_str(), stats["log_worker_dropped"].as_str()), ("4", "0"));
    assert!(stats["log_watcher_sent"].parse::<u64>().expect("a number") >= 25);
    drop((fetchers, mutations, deletions, both));
    wait_until("nobody watches", || client.stat("log_watchers") == 0);
    client.ask(b"get n\r\n", b"VALUE n 0 1\r\n6\r\nEND\r\n");
    let written = client.stat("log_worker_written");
    client.ask(b"get n\r\n", b"VALUE n 0 1\r\n6\r\nEND\r\n");
    assert_eq!(client.stat("log_worker_written"), written);
    server.stop().expect("no thread has failed");
}

#[test]
fn those_who_come_and_go_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let unix = UnixSocket::new(path.clone(), 0o700);
    let server = Server::start(settings().with_unix(unix).with_idle_timeout(1)).expect("it starts");
    let place = Address::from(server.addresses()[0]);
    let mut watcher = Watcher::new(&place, "connevents");
    let mut client = Client::connect(&place);
    client.ask(b"get a\r\n", b"END\r\n");
    assert_eq!(watcher.event(), "type=conn_new rip=127.0.0.1 transport=tcp");
    client.send(b"quit\r\n");
    client.expect_closed();
    assert_eq!(watcher.event(), "type=conn_close rip=127.0.0.1 transport=tcp reason=normal");
    let mut local = Client::connect(&Address::Unix(path));
    local.ask(b"get a\r\n", b"END\r\n");
    assert_eq!(watcher.event(), "type=conn_new rip=unix transport=local");
    local.expect_closed();
    assert_eq!(watcher.event(), "type=conn_close rip=unix transport=local reason=idle_timeout");
    server.stop().expect("no thread has failed");
}

#[test]
fn what_makes_way_is_told() {
    let Watched { server, place, mut client } = start(2, 4 << 20);
    let mut watcher = Watcher::new(&place, "evictions");
    let value = "x".repeat(4000);
    for number in 0..2000 {
        client.ask(format!("set key-{number} 0 1000 4000\r\n{value}\r\n").as_bytes(), b"STORED\r\n");
    }
    let evicted = client.stat("evictions");
    assert!(evicted > 500, "{evicted}");
    for _ in 0..100 {
        let line = watcher.event();
        assert!(line.starts_with("type=eviction key=key-") && line.contains(" fetch=no ttl="), "{line}");
        assert!(line.contains(" la=") && line.ends_with("size=4000"), "{line}");
    }
    server.stop().expect("no thread has failed");
}

/// One who watches and does not read costs a buffer, is told what it has missed, and slows nobody.
#[test]
fn a_watcher_that_does_not_read() {
    let Watched { server, place, mut client } = start(2, 64 << 20);
    let mut slow = Client::with_buffers(&place, Some(4096)).expect("there is room");
    slow.ask(b"watch fetchers\r\n", b"OK\r\n");
    let mut quick = Watcher::new(&place, "mutations");
    let key = "k".repeat(200);
    let request = format!("get {key}\r\n").repeat(100);
    wait_until("lines are skipped", || {
        for _ in 0..50 {
            client.send(request.as_bytes());
            client.expect(&b"END\r\n".repeat(100));
        }
        std::thread::sleep(Duration::from_millis(2));
        client.stat("log_watcher_skipped") > 1000
    });
    // The other one is told all the same. As long as the log of their worker is full of what was asked before, events
    // are dropped, and that is counted.
    wait_until("there is room for an event", || {
        let dropped = client.stat("log_worker_dropped");
        client.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
        client.stat("log_worker_dropped") == dropped
    });
    assert!(quick.line().contains("key=a"));
    let stats = client.stats("");
    assert!(stats["log_watcher_sent"].parse::<u64>().expect("a number") > 1000);
    // When it reads at last, it is told how many lines are missing, in one line or in several: the kernel takes more of
    // its buffer now and then, and there is room for some lines before it is full again.
    let mut watcher = Watcher { client: slow, received: Vec::new() };
    let (mut lines, mut skipped) = (0u64, 0u64);
    while skipped <= 1000 {
        let line = watcher.line();
        match line.strip_prefix("skipped=") {
            Some(count) => skipped += count.parse::<u64>().expect("a number"),
            None => {
                assert!(line.contains(&key), "{line}");
                lines += 1;
            }
        }
        // What is missing is told before the next line that there is room for.
        if lines.is_multiple_of(10) {
            client.ask(format!("get {key}\r\n").as_bytes(), b"END\r\n");
        }
    }
    assert!(lines >= 1000, "{skipped} after {lines}");
    let told = client.stat("log_watcher_skipped");
    assert!(skipped <= told, "{skipped} of {told}");
    server.stop().expect("no thread has failed");
}

#[test]
fn twenty_may_watch() {
    let Watched { server, place, mut client } = start(2, 64 << 20);
    let mut watchers: Vec<Watcher> = (0..20).map(|_| Watcher::new(&place, "fetchers")).collect();
    client.ask(b"watch\r\n", b"WATCHER_TOO_MANY log watcher limit reached\r\n");
    client.ask(b"watch nothing\r\n", b"ERROR\r\n");
    // What a watcher says is not listened to.
    watchers[7].client.send(b"get x\r\nquit\r\n");
    client.ask(b"get a\r\n", b"END\r\n");
    for watcher in &mut watchers {
        assert!(watcher.line().contains("key=a"));
    }
    watchers.pop();
    wait_until("there is room again", || {
        client.send(b"stats conns\r\n");
        client.receive_through(b"END\r\n");
        client.stat("log_watchers") == 19
    });
    let last = Watcher::new(&place, "fetchers");
    assert_eq!(client.stat("log_watchers"), 20);
    drop((last, watchers));
    wait_until("they are gone", || client.stat("curr_connections") == 1);
    server.stop().expect("no thread has failed");
}

/// Whatever protocol is spoken.
#[test]
fn what_is_asked_in_the_meta_protocol_is_told_too() {
    let Watched { server, place, mut client } = start(1, 64 << 20);
    let mut watcher = Watcher::new(&place, "fetchers mutations deletions");
    client.ask(b"ms m 2\r\nhi\r\nmg m v\r\nmg none v\r\n", b"HD\r\nVA 2\r\nhi\r\nEN\r\n");
    client.ask(b"ma n N0 J5\r\nma n\r\nmd m\r\nmd m\r\n", b"HD\r\nHD\r\nHD\r\nNF\r\n");
    for line in [
        "type=item_get key=m status=not_found size=0",
        "type=item_store key=m status=stored cmd=set ttl=0 size=2",
        "type=item_get key=m status=found size=2",
        "type=item_get key=none status=not_found size=0",
        "type=item_get key=n status=not_found size=0",
        "type=item_get key=n status=found size=1",
        "type=item_get key=m status=found size=2",
        "type=deleted key=m cmd=md size=2",
        "type=item_get key=m status=not_found size=0",
    ] {
        assert_eq!(watcher.event(), line);
    }
    server.stop().expect("no thread has failed");
}

/// Each line as it came, once, however its bytes came; of a frame the command and the key.
#[test]
fn raw_commands() {
    let Watched { server, place, mut client } = start(1, 64 << 20);
    let mut watcher = Watcher::new(&place, "rawcmds");
    client.ask(
        b"get a b\r\nget c\r\nbogus\x07\r\n\r\n",
        b"END\r\nEND\r\nERROR\r\nCLIENT_ERROR bad command line format\r\n",
    );
    // What of a request is here already is told once, when its line is whole.
    for piece in ["set a 0", " 0 10\r\nget b\r\n", "abc"] {
        client.send(piece.as_bytes());
        std::thread::sleep(Duration::from_millis(20));
    }
    client.ask(b"\r\nmg a s\r\n", b"STORED\r\nHD s10\r\n");
    let large = "x".repeat(100_000);
    client.ask(format!("set large 0 0 100000\r\n{large}\r\n").as_bytes(), b"STORED\r\n");
    client.ask(b"set a 0 0 3000000 noreply\r\n", b"");
    client.send("y".repeat(3_000_002).as_bytes());
    client.ask(b"version\r\n", b"VERSION 1.6.45\r\n");
    let mut binary = Client::connect(&place);
    let mut frame = vec![0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
    frame.extend_from_slice(&[0; 12]);
    frame.push(b'q');
    binary.send(&frame[..20]);
    std::thread::sleep(Duration::from_millis(20));
    binary.send(&frame[20..]);
    for wanted in [
        "get a b",
        "get c",
        "bogus\\x07",
        "",
        "set a 0 0 10",
        "mg a s",
        "set large 0 0 100000",
        "set a 0 0 3000000 noreply",
        "version",
        "GET q",
    ] {
        let line = watcher.line();
        let (_, text) = line.split_once(" <").expect("a command");
        let (descriptor, text) = text.split_once(' ').unwrap_or((text, ""));
        assert!(descriptor.parse::<u32>().is_ok() && text == wanted, "{line}");
    }
    server.stop().expect("no thread has failed");
}

/// What memcached accepts without a proxy.
#[test]
fn streams_that_tell_nothing_are_accepted() {
    let Watched { server, place, mut client } = start(1, 64 << 20);
    for stream in ["sysevents", "proxyreqs", "proxyevents", "proxyuser"] {
        Watcher::new(&place, stream);
    }
    client.ask(b"watch proxycmds\r\n", b"ERROR\r\n");
    server.stop().expect("no thread has failed");
}

/// The same lines in the same order, those of the lookups before a change among them.
#[test]
fn the_installed_memcached_tells_the_same() {
    let Some(memcached) = Memcached::start_with(&[]) else { return };
    let Watched { server, place, .. } = start(1, 64 << 20);
    let script = "set a 0 0 1\r\n1\r\nget a\r\nget a b a\r\ngets b\r\nset a 0 0 2\r\n10\r\nadd a 0 0 1\r\nx\r\n\
                  add b 0 0 1\r\nx\r\nreplace c 0 0 1\r\nx\r\nreplace b 0 0 2\r\nxy\r\nappend b 0 0 1\r\nz\r\n\
                  prepend c 0 0 1\r\nz\r\ncas c 0 0 1 1\r\nx\r\nincr a 1\r\nincr c 1\r\ndecr b 1\r\ntouch a 0\r\n\
                  touch c 0\r\ngat 0 a c\r\nms m 2\r\nab\r\nmg m v\r\nmg c v\r\nms m 1\r\nx\r\nmd m\r\nmd m\r\n\
                  delete a\r\ndelete a\r\nget last\r\nmn\r\n";
    let told = |place: &Address| {
        let mut watcher = Watcher::new(place, "fetchers mutations");
        let mut client = Client::connect(place);
        client.send(script.as_bytes());
        client.receive_through(b"MN\r\n");
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| line.contains("key=last ")) {
            lines.push(lasting(&watcher.line()));
        }
        lines
    };
    assert_eq!(told(&place), told(&Address::from(memcached.address())));
    server.stop().expect("no thread has failed");
}
