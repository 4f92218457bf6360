//! What once went wrong, each under the name of what did, so that it does not again.

use std::collections::BTreeMap;

use crate::client::{Address, Client, settings, wait_until};
use lookaside_server::{InProcess, Server, Settings, UnixSocket, VERSION};

/// A server without sockets, and what it says.
struct Called(InProcess);

impl Called {
    fn new(settings: Settings, second: u64) -> Called {
        Called(InProcess::new(settings, second).expect("a cache"))
    }

    #[track_caller]
    fn ask(&mut self, request: &str, reply: &str) {
        let received = self.0.receive(request.as_bytes());
        assert_eq!(received.escape_ascii().to_string(), reply.as_bytes().escape_ascii().to_string());
    }

    fn stats(&mut self, topic: &str) -> BTreeMap<String, String> {
        let reply = self.0.receive(format!("stats {topic}\r\n").as_bytes());
        let reply = String::from_utf8(reply).expect("statistics are text");
        let lines = reply.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn stat(&mut self, name: &str) -> u64 {
        self.stats("")[name].parse().expect("a number")
    }
}

fn set(key: &str, exptime: i64, len: usize) -> String {
    format!("set {key} 0 {exptime} {len}\r\n{}\r\n", "x".repeat(len))
}

/// `stats reset` left evictions, reclaimed, expired_unfetched and evicted_unfetched as they were, in all and by class,
/// and so it did with connections and with pages that had moved: it knew only of the counters of the workers. memcached
/// sets to zero all that it counts, and dashboards that take differences after a reset went below zero.
#[test]
fn a_reset_left_evictions_and_connections_counted() {
    const NOW: u64 = 1_700_000_000;
    let mut server = Called::new(settings().with_memory(2 << 20).with_largest_item(1 << 20), NOW);
    for number in 0..200 {
        server.ask(&set(&format!("expires{number}"), 10, 1000), "STORED\r\n");
    }
    server.0.set_time(NOW + 10);
    (0..20).for_each(|_| server.0.keep_house());
    for number in 0..4000 {
        server.ask(&set(&format!("stays{number}"), 0, 900), "STORED\r\n");
    }
    let item_counts = ["evicted", "reclaimed", "expired_unfetched", "evicted_unfetched"];
    let counts =
        ["evictions", "reclaimed", "expired_unfetched", "evicted_unfetched", "total_items", "cmd_set"];
    let before = server.stats("");
    for name in counts {
        assert_ne!(before[name], "0", "{name}: nothing to be seen");
    }
    let sum = |stats: &BTreeMap<String, String>, count: &str| -> u64 {
        let of_classes = stats.iter().filter(|(name, _)| name.rsplit(':').next() == Some(count));
        of_classes.map(|(_, value)| value.parse::<u64>().expect("a number")).sum()
    };
    for count in item_counts {
        let name = if count == "evicted" { "evictions" } else { count };
        assert_eq!(sum(&server.stats("items"), count).to_string(), before[name], "{count}");
    }

    server.ask("stats reset\r\n", "RESET\r\n");
    let after = server.stats("");
    for name in counts.iter().chain(&["total_connections", "rejected_connections", "slabs_moved"]) {
        assert_eq!(after[*name], "0", "{name}");
    }
    for name in ["curr_items", "bytes", "limit_maxbytes", "hash_bytes", "threads", "accepting_conns"] {
        assert_eq!(after[name], before[name], "{name} is no counter");
    }
    for count in item_counts {
        assert_eq!(sum(&server.stats("items"), count), 0, "{count}");
    }
    assert_eq!(sum(&server.stats("slabs"), "cmd_set"), 0);
    // And it goes on from there.
    for number in 0..50 {
        server.ask(&set(&format!("more{number}"), 0, 900), "STORED\r\n");
    }
    assert_eq!((server.stat("cmd_set"), server.stat("evictions") > 0), (50, true));
    assert_eq!(sum(&server.stats("items"), "evicted"), server.stat("evictions"));

    let server = Server::start(settings().with_connections(1)).expect("it starts");
    let address = Address::from(server.addresses()[0]);
    let mut client = Client::connect(&address);
    client.expect_open();
    let mut refused = Client::connect(&address);
    refused.expect(b"ERROR Too many open connections\r\n");
    let counted =
        |client: &mut Client| ["total_connections", "rejected_connections"].map(|name| client.stat(name));
    assert_eq!(counted(&mut client), [1, 1]);
    client.ask(b"stats reset\r\n", b"RESET\r\n");
    assert_eq!(counted(&mut client), [0, 0]);
    assert_eq!(client.stat("curr_connections"), 1);
}

/// `stats conns` answered END alone, whoever was connected. memcached says of each socket its ends, what it is doing
/// and for how long it has asked for nothing: what one looks at first when a client hangs.
#[test]
fn nobody_was_connected() {
    let server = Server::start(settings()).expect("it starts");
    let address = server.addresses()[0];
    let mut observer = Client::connect(&address.into());
    let mut others: Vec<Client> = (0..4).map(|_| Client::connect(&address.into())).collect();
    others[0].send(b"set a 0 0 100\r\nabc");
    others[1].send(b"set a 0 0 100000\r\nabc");
    others[2].send(b"set a 0 0 10000000\r\nabc");
    others[2].receive_through(b"too large for cache\r\n");
    let expected = ["conn_nread", "conn_nread", "conn_swallow", "conn_read"];
    let ours = |client: &Client| {
        let name = client.socket.local_addr().expect("connected").as_socket().expect("an address");
        format!("tcp:{name}")
    };
    let mut lines = BTreeMap::new();
    wait_until("all are seen to be where they are", || {
        let stats = observer.stats("conns");
        lines = stats.iter().filter(|(name, _)| name.ends_with(":addr")).fold(
            BTreeMap::new(),
            |mut lines, (name, address)| {
                let number = name.strip_suffix(":addr").expect("just seen");
                let of = |what: &str| stats.get(&format!("{number}:{what}")).cloned();
                lines.insert(address.clone(), [of("state"), of("listen_addr"), of("secs_since_last_cmd")]);
                lines
            },
        );
        let state = |client: &Client| lines.get(&ours(client)).and_then(|line| line[0].clone());
        others.iter().map(state).eq(expected.map(|state| Some(state.to_owned())))
    });
    let listener = Some(format!("tcp:{address}"));
    let line = |name: &str| lines[name].clone().map(|value| value.unwrap_or_default());
    assert_eq!(
        line(listener.as_ref().expect("just made"))[..2],
        ["conn_listening".to_owned(), String::new()]
    );
    assert_eq!(line(&ours(&observer))[0], "conn_parse_cmd");
    assert_eq!(lines.len(), 6);
    for client in &others {
        assert_eq!(lines[&ours(client)][1], listener);
        assert!(line(&ours(client))[2].parse::<u32>().expect("seconds") < 60);
    }
    others.truncate(1);
    wait_until("who has gone is not there", || observer.stats("conns").len() == 4 * 2 + 3);

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let unix = UnixSocket::new(path.clone(), 0o700);
    let server = Server::start(settings().with_tcp(Vec::new()).with_unix(unix)).expect("it starts");
    let mut client = Client::connect(&Address::Unix(path.clone()));
    let stats = client.stats("conns");
    let named = format!("unix:{}", path.display());
    assert_eq!(stats.iter().filter(|(name, value)| name.ends_with("addr") && **value == named).count(), 2);
    server.stop().expect("no thread has failed");
}

/// conn_yields counted whenever a connection was to go on later: ten times for one `set` of a megabyte, which fills the
/// receive buffer as often, and for replies that filled the output. memcached counts the times that -R has ended a
/// turn.
#[test]
fn one_large_set_counted_as_ten_yields() {
    let server = Server::start(settings().with_requests_per_turn(20)).expect("it starts");
    let mut client = Client::connect(&server.addresses()[0].into());
    client.ask(set("large", 0, 1_000_000).as_bytes(), b"STORED\r\n");
    client.send(&b"get large\r\n".repeat(5));
    (0..5).for_each(|_| drop(client.receive(b"VALUE large 0 1000000\r\n".len() + 1_000_000 + 7)));
    assert_eq!(client.stat("conn_yields"), 0);
    // As many as memcached 1.6 with the same -R counts, if they come in one piece.
    let mut server = Called::new(settings().with_requests_per_turn(20), 1_700_000_000);
    for (requests, yields) in [(1, 0), (20, 0), (21, 1), (40, 1), (41, 2), (100, 4)] {
        let before = server.stat("conn_yields");
        server.ask(&"get a\r\n".repeat(requests), &"END\r\n".repeat(requests));
        assert_eq!(server.stat("conn_yields") - before, yields, "{requests} requests");
    }
    // A fourth flush waits for the sweep of the first: that is no matter of -R.
    let before = server.stat("conn_yields");
    server.ask(&"flush_all\r\n".repeat(6), &"OK\r\n".repeat(6));
    assert_eq!(server.stat("conn_yields"), before);
}

/// `stats slabs` did not say what was asked of the items of a class; operators read there which sizes are worth their
/// memory. What the classes say must together be what is said in all, for that is what the exporters add up.
#[test]
fn classes_did_not_say_what_was_asked_of_them() {
    let mut server = Called::new(settings(), 1_700_000_000);
    let (small, middle, large) = ("x".repeat(10), "y".repeat(300), "z".repeat(100_000));
    server.ask(&format!("set n 0 0 1\r\n5\r\nset b 0 0 300\r\n{middle}\r\n"), "STORED\r\nSTORED\r\n");
    server.ask(&format!("set large 0 0 100000\r\n{large}\r\n"), "STORED\r\n");
    server.ask(
        "incr n 1\r\nincr n 1\r\ndecr n 1\r\nincr b 1\r\ndecr none 1\r\n",
        "6\r\n7\r\n6\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nNOT_FOUND\r\n",
    );
    let value = format!("VALUE b 0 300\r\n{middle}\r\n");
    server.ask("get b b none\r\n", &format!("{value}{value}END\r\n"));
    server.ask(
        "gat 0 b none\r\ntouch b 0\r\ntouch none 0\r\n",
        &format!("{value}END\r\nTOUCHED\r\nNOT_FOUND\r\n"),
    );
    server.ask("get large\r\n", &format!("VALUE large 0 100000\r\n{large}\r\nEND\r\n"));
    let reply = String::from_utf8(server.0.receive(b"gets b\r\n")).expect("text");
    let number = reply.split_whitespace().nth(4).expect("a number").to_owned();
    server.ask("cas b 0 0 1 18446744073709551615\r\nx\r\n", "EXISTS\r\n");
    // Of the class of what was there; what comes is one `set` more of its own class.
    server.ask(&format!("cas b 0 0 10 {number}\r\n{small}\r\n"), "STORED\r\n");
    server.ask("set b 0 0 1\r\nxyz", "CLIENT_ERROR bad data chunk\r\nERROR\r\n".split_at(29).0);
    server.0.reconnect();
    server.ask("delete b\r\ndelete none\r\nadd n 0 0 1\r\nx\r\n", "DELETED\r\nNOT_FOUND\r\nNOT_STORED\r\n");

    let slabs = server.stats("slabs");
    // A class by the size of its chunks: 8 bytes of header, the key, the value.
    let class = |bytes: u64| -> &str {
        let sizes = slabs.iter().filter(|(name, _)| name.ends_with(":chunk_size"));
        let fits = sizes.map(|(name, size)| (size.parse::<u64>().expect("a number"), name));
        let (_, name) = fits.filter(|&(size, _)| size >= bytes).min().expect("there is one");
        name.strip_suffix(":chunk_size").expect("just seen")
    };
    let names = [
        "get_hits",
        "cmd_set",
        "delete_hits",
        "incr_hits",
        "decr_hits",
        "cas_hits",
        "cas_badval",
        "touch_hits",
    ];
    let counts =
        |class: &str| names.map(|name| slabs[&format!("{class}:{name}")].parse::<u64>().expect("a number"));
    //                                    get set del inc dec cas bad touch
    assert_eq!(counts(class(8 + 1 + 1)), [0, 4, 0, 2, 1, 0, 0, 0]);
    assert_eq!(counts(class(8 + 1 + 10)), [0, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!(counts(class(8 + 1 + 300)), [3, 1, 0, 0, 0, 1, 1, 2]);
    assert_eq!(counts(class(8192)), [1, 1, 0, 0, 0, 0, 0, 0]);
    let stats = server.stats("");
    for name in names {
        let of_classes = slabs.iter().filter(|(of, _)| of.rsplit(':').next() == Some(name));
        let sum: u64 = of_classes.map(|(_, count)| count.parse::<u64>().expect("a number")).sum();
        assert_eq!(stats[name], sum.to_string(), "{name}");
    }
}

/// In a cache with fewer pages than classes, items lie in chunks of larger classes where their own have no page. The
/// counts of a class without pages were to be seen nowhere, and the classes' sum was less than what was said in all.
#[test]
fn classes_without_pages_kept_their_counts_to_themselves() {
    let mut server = Called::new(settings().with_memory(1 << 20).with_largest_item(1 << 10), 1_700_000_000);
    // All pages are those of one class before the others come.
    for (number, size) in
        (0..3000).map(|number| (number, if number < 2900 { 900 } else { 500 + number % 300 }))
    {
        server.ask(&set(&format!("key{number}"), 0, size), "STORED\r\n");
        assert!(server.0.receive(format!("get key{number}\r\n").as_bytes()).starts_with(b"VALUE"));
    }
    let (stats, slabs) = (server.stats(""), server.stats("slabs"));
    for name in ["get_hits", "cmd_set"] {
        let of_classes = slabs.iter().filter(|(of, _)| of.rsplit(':').next() == Some(name));
        let sum: u64 = of_classes.map(|(_, count)| count.parse::<u64>().expect("a number")).sum();
        assert_eq!((sum, stats[name].as_str()), (3000, "3000"), "{name}");
    }
    let active = slabs.iter().filter(|(name, pages)| name.ends_with(":total_pages") && *pages != "0").count();
    assert_eq!(slabs["active_slabs"], active.to_string());
}

/// A `set` for which there was no memory counted as one whose value was taken, if it was short: cmd_set rose with each.
#[test]
fn what_was_refused_for_want_of_memory_counted_as_stored() {
    for size in [1000, 100_000] {
        let settings = settings().with_memory(2 << 20).with_largest_item(1 << 20).with_evictions(false);
        let mut server = Called::new(settings, 1_700_000_000);
        let mut stored = 0;
        while server.0.receive(set(&format!("key{stored}"), 0, size).as_bytes()) == b"STORED\r\n" {
            stored += 1;
        }
        assert_eq!((server.stat("cmd_set"), server.stat("store_no_memory")), (stored, 1), "{size} bytes");
    }
}

/// From the 7th of February 2106 on, 2^32 seconds after 1970, the cache's clock stood still at the last second that 32
/// bits hold, and an item with any time to live had that second for its last: it was stored, and gone. The clock counts
/// from the server's start now, as memcached's does.
#[test]
fn in_2106_items_with_a_time_to_live_were_gone_at_once() {
    const END: u64 = 1 << 32;
    let month = 30 * 24 * 3600;
    for start in [END - 5, END - 1, END, END + 5, 1 << 40] {
        let mut server = Called::new(settings(), start);
        for second in [start, start + 20] {
            server.0.set_time(second);
            server.ask("set a 0 60 1\r\nx\r\n", "STORED\r\n");
            server.ask(&set("month", month, 3), "STORED\r\n");
            server.ask("set touched 0 0 1\r\nx\r\ntouch touched 60\r\n", "STORED\r\nTOUCHED\r\n");
            server.ask("set got 0 5 1\r\nx\r\ngat 60 got\r\n", "STORED\r\nVALUE got 0 1\r\nx\r\nEND\r\n");
            server.ask("set negative 0 -1 1\r\nx\r\nget negative\r\n", "STORED\r\nEND\r\n");
            // Every Unix time that fits into a request has passed.
            server.ask("set past 0 2147483647 1\r\nx\r\nget past\r\n", "STORED\r\nEND\r\n");
            let shown = |name: &str| format!("VALUE {name} 0 1\r\nx\r\n");
            let all = ["a", "touched", "got"].map(shown).concat();
            server.0.set_time(second + 59);
            (0..20).for_each(|_| server.0.keep_house());
            server.ask("get a touched got\r\n", &format!("{all}END\r\n"));
            server.0.set_time(second + 60);
            server.ask("get a touched got\r\nget month\r\n", "END\r\nVALUE month 0 3\r\nxxx\r\nEND\r\n");
            server.0.set_time(second + 2_592_000);
            server.ask("get month\r\n", "END\r\n");
            (0..20).for_each(|_| server.0.keep_house());
            assert_eq!(server.stat("curr_items"), 0, "what has expired is swept away");
            // A flush that is to come comes, and not before.
            server.ask("set a 0 0 1\r\nx\r\nflush_all 30\r\n", "STORED\r\nOK\r\n");
            server.0.set_time(second + 2_592_028);
            server.0.keep_house();
            server.ask("get a\r\n", &format!("{}END\r\n", shown("a")));
            server.0.set_time(second + 2_592_030);
            server.0.keep_house();
            server.ask("get a\r\n", "END\r\n");
        }
    }
}

/// The clock of the cache has an end, too, 136 years after the start. Items with a time to live live on then.
#[test]
fn at_the_end_of_the_clock_items_stay() {
    let start = 1_700_000_000;
    let mut server = Called::new(settings(), start);
    for second in [start + (1 << 32) - 10, start + (1 << 32) + 10] {
        server.0.set_time(second);
        server.ask("set a 0 60 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
        (0..20).for_each(|_| server.0.keep_house());
        server.ask("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n");
        server.ask("set negative 0 -1 1\r\nx\r\nget negative\r\n", "STORED\r\nEND\r\n");
    }
}

/// The version was 1.6.45-lookaside-0.1.0, and npm's memcached, which takes the last three numbers with dots between
/// them, read 0.1.0. Other clients take what stands before a space, or read three numbers from the beginning.
#[test]
fn a_client_took_our_version_for_memcacheds() {
    let numbers = |text: &str| {
        let parts: Vec<_> = text.split('.').map(str::parse::<u32>).collect();
        parts.len() >= 3 && parts.iter().all(Result::is_ok)
    };
    let triples: Vec<_> =
        VERSION.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|text| numbers(text)).collect();
    assert_eq!(triples, ["1.6.45"], "{VERSION}");
    // A client that reads all of it as three numbers refused `1.6.45 (lookaside 0.1)`.
    assert!(numbers(VERSION), "{VERSION}");
}
