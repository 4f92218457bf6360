//! What operators ask a server for: statistics, lists of keys, numbers to set, and that it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::client::{Address, Client, settings, shorten, switched_off, wait_until};
use lookaside_server::{InProcess, Server, Settings};
use protocol::binary::{Header, opcode};

fn start(settings: Settings) -> (Server, Client) {
    let server = Server::start(settings).expect("it starts");
    let client = Client::connect(&Address::from(server.addresses()[0]));
    (server, client)
}

fn names(lines: &[(String, String)]) -> Vec<&str> {
    lines.iter().map(|(name, _)| name.as_str()).collect()
}

/// Whether these stand in that order among those.
fn in_order(wanted: &[&str], among: &[&str]) -> Result<(), String> {
    let mut rest = among.iter();
    for name in wanted {
        rest.find(|other| *other == name).ok_or_else(|| format!("{name} is missing, or not in its place"))?;
    }
    Ok(())
}

/// All names of memcached 1.6.45, in its order, as it is started by default.
const GENERAL: &str = "pid uptime time version libevent pointer_size rusage_user rusage_system max_connections \
    curr_connections total_connections rejected_connections connection_structures response_obj_oom \
    response_obj_count response_obj_bytes read_buf_count read_buf_bytes read_buf_bytes_free read_buf_oom \
    reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired get_flushed \
    delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval \
    touch_hits touch_misses store_too_large store_no_memory auth_cmds auth_errors bytes_read bytes_written \
    limit_maxbytes accepting_conns listen_disabled_num time_in_listen_disabled_us threads conn_yields \
    hash_power_level hash_bytes hash_is_expanding slab_reassign_rescues slab_reassign_chunk_rescues \
    slab_reassign_inline_reclaim slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_busy_nomem \
    slab_reassign_last_busy_status slab_reassign_running slabs_moved lru_crawler_running lru_crawler_starts \
    lru_maintainer_juggles malloc_fails log_worker_dropped log_worker_written log_watcher_skipped \
    log_watcher_sent log_watchers unexpected_napi_ids round_robin_fallback bytes curr_items total_items \
    slab_global_page_pool expired_unfetched evicted_unfetched evicted_active evictions reclaimed \
    crawler_reclaimed crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru \
    direct_reclaims lru_bumps_dropped";

#[test]
fn statistics_have_all_names_of_memcached_in_its_order() {
    let (server, mut client) = start(settings().with_idle_timeout(1000));
    client.ask(b"set a 0 0 1\r\nx\r\n", b"STORED\r\n");
    let lines = client.stat_lines("");
    let wanted: Vec<&str> = GENERAL.split_whitespace().collect();
    assert_eq!(wanted.len(), 93);
    in_order(&wanted, &names(&lines)).expect("statistics");
    let without: Vec<&str> = names(&lines).into_iter().filter(|name| !wanted.contains(name)).collect();
    assert_eq!(without, ["idle_kicks", "lookaside_version"]);
    // A number each, but for the versions.
    for (name, value) in &lines {
        assert!(name.ends_with("version") || value.parse::<f64>().is_ok(), "{name} is {value}");
    }
    server.stop().expect("no thread has failed");
}

#[test]
fn settings_show_what_was_set_at_the_start_and_since() {
    let set = settings()
        .with_shutdown_allowed(true)
        .with_flush_allowed(false)
        .with_detail_by(b'/')
        .with_idle_timeout(600)
        .with_track_sizes(true)
        .with_maxconns_fast(false)
        .with_read_buffers(1 << 20);
    let (server, mut client) = start(set);
    let shown = client.stats("settings");
    for (name, value) in [
        ("shutdown_command", "yes"),
        ("flush_enabled", "no"),
        ("stat_key_prefix", "/"),
        ("detail_enabled", "yes"),
        ("idle_timeout", "600"),
        ("track_sizes", "yes"),
        ("maxconns_fast", "no"),
        ("read_buf_mem_limit", "1048576"),
        ("lru_crawler", "yes"),
        ("lru_segmented", "yes"),
        ("temp_lru", "no"),
        ("slab_automove", "1"),
        ("slab_automove_ratio", "0.80"),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    let script: &[(&[u8], &[u8])] = &[
        (b"lru tune 10 25 0.1 2.5\r\n", b"OK\r\n"),
        (b"lru mode flat\r\n", b"OK\r\n"),
        (b"lru temp_ttl 50\r\n", b"OK\r\n"),
        (b"lru tune 50 40 1 1\r\n", b"ERROR hot and warm pcts must not exceed 80\r\n"),
        (b"slabs automove 2\r\n", b"OK\r\n"),
        (b"slabs automove ratio 0.5\r\n", b"OK\r\n"),
        (b"slabs automove window 7\r\n", b"OK\r\n"),
        (b"slabs automove window 0\r\n", b"CLIENT_ERROR automove window too low or too high\r\n"),
        (b"slabs automove freeratio 0.02\r\n", b"OK\r\n"),
        (b"lru_crawler sleep 200\r\n", b"OK\r\n"),
        (b"lru_crawler sleep 1000001\r\n", b"CLIENT_ERROR sleep must be one second or less\r\n"),
        (b"lru_crawler tocrawl 9\r\n", b"OK\r\n"),
        (b"lru_crawler enable\r\n", b"ERROR failed to start lru crawler thread\r\n"),
        (b"lru_crawler disable\r\n", b"OK\r\n"),
        (b"lru_crawler metadump all\r\n", b"CLIENT_ERROR lru crawler disabled\r\n"),
        (b"verbosity 1\r\n", b"OK\r\n"),
        (b"stats detail off\r\n", b"OK\r\n"),
    ];
    for (request, reply) in script {
        client.ask(request, reply);
    }
    let shown = client.stats("settings");
    for (name, value) in [
        ("hot_lru_pct", "10"),
        ("warm_lru_pct", "25"),
        ("hot_max_factor", "0.10"),
        ("warm_max_factor", "2.50"),
        ("lru_segmented", "no"),
        ("temp_lru", "yes"),
        ("temporary_ttl", "50"),
        ("slab_automove", "2"),
        ("slab_automove_ratio", "0.50"),
        ("slab_automove_window", "7"),
        ("slab_automove_freeratio", "0.020"),
        ("lru_crawler_sleep", "200"),
        ("lru_crawler_tocrawl", "9"),
        ("lru_crawler", "no"),
        ("verbosity", "1"),
        ("detail_enabled", "no"),
    ] {
        assert_eq!(shown[name], value, "{name}");
    }
    client.ask(b"lru_crawler enable\r\n", b"OK\r\n");
    server.stop().expect("no thread has failed");
}

#[test]
fn detail_counts_by_prefix() {
    let (server, mut client) = start(settings().with_threads(3).with_detail_by(b'/'));
    let mut other = Client::connect(&Address::from(server.addresses()[0]));
    client.ask(b"set user/1 0 0 1\r\nx\r\n", b"STORED\r\n");
    other.ask(b"get user/1 user/2 none\r\nget page/1/2\r\n", b"VALUE user/1 0 1\r\nx\r\nEND\r\nEND\r\n");
    client.ask(b"delete user/1\r\ndelete page/1\r\n", b"DELETED\r\nNOT_FOUND\r\n");
    other.ask(
        b"stats detail dump\r\n",
        b"PREFIX page get 1 hit 0 set 0 del 1\r\nPREFIX user get 2 hit 1 set 1 del 1\r\nEND\r\n",
    );
    other.ask(b"stats detail off\r\n", b"OK\r\n");
    wait_until("it has been noticed", || {
        client.ask(b"get gone/1\r\n", b"END\r\n");
        other.ask(b"stats reset\r\n", b"RESET\r\n");
        client.ask(b"get gone/1\r\n", b"END\r\n");
        other.send(b"stats detail dump\r\n");
        other.receive_through(b"END\r\n") == b"END\r\n"
    });
    other.ask(
        b"stats detail on\r\nstats detail x\r\n",
        b"OK\r\nCLIENT_ERROR usage: stats detail on|off|dump\r\n",
    );
    client.ask(b"get back/1\r\n", b"END\r\n");
    other.ask(b"stats detail dump\r\n", b"PREFIX back get 1 hit 0 set 0 del 0\r\nEND\r\n");
    server.stop().expect("no thread has failed");
}

/// A line of `lru_crawler metadump`, in its parts.
fn parts(line: &str) -> BTreeMap<&str, &str> {
    line.split(' ').map(|part| part.split_once('=').unwrap_or_else(|| panic!("no part: {line}"))).collect()
}

/// The lines of a listing, without what begins and ends it.
fn listing(client: &mut Client, request: &str, end: &str) -> Vec<String> {
    client.send(format!("{request}\r\n").as_bytes());
    client.expect(b"OK\r\n");
    let reply = client.receive_through(format!("{end}\r\n").as_bytes());
    let text = String::from_utf8(reply).expect("text");
    let lines = text.strip_suffix(&format!("{end}\r\n")).expect("just received");
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn all_keys_are_listed() {
    let (server, mut client) = start(settings());
    let second = |client: &mut Client| -> i64 { client.stats("")["time"].parse().expect("a number") };
    let before = second(&mut client);
    // Several classes, among them that of values in pieces.
    let mut keys = BTreeSet::new();
    for number in 0..20_000 {
        let key = format!("key-{number}");
        let length = [1, 50, 400, 3000][number % 4];
        let value = "x".repeat(length);
        client.send(
            format!("set {key} 0 {} {length} noreply\r\n{value}\r\n", [0, 1000][number % 2]).as_bytes(),
        );
        keys.insert(key);
    }
    for number in 0..20 {
        let (key, value) = (format!("large%{number}"), "x".repeat(100_000));
        client.ask(format!("set {key} 0 0 100000\r\n{value}\r\n").as_bytes(), b"STORED\r\n");
        keys.insert(key);
    }
    client.ask(b"get key-5\r\n", format!("VALUE key-5 0 50\r\n{}\r\nEND\r\n", "x".repeat(50)).as_bytes());
    // Each was stored in one of these seconds, however many they are.
    let stored = before..=second(&mut client);

    for all in ["all", "hash"] {
        let lines = listing(&mut client, &format!("lru_crawler metadump {all}"), "END");
        let mut seen = BTreeSet::new();
        for line in &lines {
            let parts = parts(line);
            assert_eq!(
                parts.keys().copied().collect::<Vec<_>>(),
                ["cas", "cls", "exp", "fetch", "flags", "key", "la", "size"]
            );
            let key = parts["key"].replace("%25", "%");
            let expected = if key.starts_with("key") && key.ends_with(['1', '3', '5', '7', '9']) {
                stored.contains(&(parts["exp"].parse::<i64>().expect("a number") - 1000))
            } else {
                parts["exp"] == "-1"
            };
            assert!(expected, "{line}");
            // Told to within four seconds.
            let used = parts["la"].parse::<i64>().expect("a number");
            assert!((before - 4..=stored.end() + 4).contains(&used), "{line}");
            assert_eq!(parts["fetch"] == "yes", key == "key-5", "{line}");
            assert!(parts["size"].parse::<usize>().expect("a number") > key.len(), "{line}");
            seen.insert(key);
        }
        assert!(seen == keys, "{} of {} were listed", seen.len(), keys.len());
        assert_eq!(lines.len(), keys.len(), "each once");
    }
    let lines = listing(&mut client, "lru_crawler mgdump all", "EN");
    assert_eq!(
        lines.iter().map(|line| line.strip_prefix("mg ").expect("a get").to_owned()).collect::<BTreeSet<_>>(),
        keys
    );

    // By class: together they are all, and each lists its own.
    let classes: BTreeSet<String> = client
        .stats("items")
        .keys()
        .map(|name| name.split(':').nth(1).expect("a class").to_owned())
        .collect();
    let mut seen = 0;
    for class in &classes {
        let lines = listing(&mut client, &format!("lru_crawler metadump {class}"), "END");
        assert!(lines.iter().all(|line| parts(line)["cls"] == class), "class {class}");
        seen += lines.len();
    }
    assert_eq!(seen, keys.len());
    let list: Vec<&str> = classes.iter().map(String::as_str).collect();
    assert_eq!(
        listing(&mut client, &format!("lru_crawler metadump {}", list.join(",")), "END").len(),
        keys.len()
    );

    for class in ["x", "0", "200", "1,x"] {
        let refused = b"BADCLASS invalid class id\r\n";
        client.ask(format!("lru_crawler metadump {class}\r\n").as_bytes(), refused);
    }
    client.ask(b"lru_crawler crawl hash\r\n", b"ERROR an unknown error happened\r\n");
    client.ask(
        b"lru_crawler crawl all\r\nlru_crawler metadump ,\r\n",
        b"OK\r\nNOTSTARTED no items to crawl\r\n",
    );
    assert_eq!(client.stat("lru_crawler_running"), 0);
    assert!(client.stat("lru_crawler_starts") > 5);

    // What is sent before, and what is sent after without waiting, is answered in order.
    client.send(b"get none\r\nlru_crawler mgdump all\r\nget none\r\nversion\r\n");
    client.expect(b"END\r\nOK\r\n");
    let reply =
        client.receive_through(format!("EN\r\nEND\r\nVERSION {}\r\n", lookaside_server::VERSION).as_bytes());
    assert_eq!(reply.split(|&byte| byte == b'\n').count(), keys.len() + 4);
    client.expect_open();
    server.stop().expect("no thread has failed");
}

#[test]
fn one_listing_at_a_time_however_slow_its_client_is() {
    let (server, mut client) = start(settings());
    let place = Address::from(server.addresses()[0]);
    for number in 0..100_000 {
        client.send(format!("set key-{number} 0 0 1 noreply\r\nx\r\n").as_bytes());
    }
    client.expect_open();
    let mut slow = Client::with_buffers(&place, Some(4096)).expect("there is room");
    slow.send(b"lru_crawler metadump all\r\n");
    slow.expect(b"OK\r\n");
    wait_until("it is under way", || client.stat("lru_crawler_running") == 1);
    client.ask(b"lru_crawler metadump all\r\n", b"BUSY currently processing crawler request\r\n");
    client.ask(b"lru_crawler crawl all\r\n", b"BUSY currently processing crawler request\r\n");
    wait_until("it is shown", || client.stats("conns").values().any(|state| state == "conn_watch"));
    // Others are served meanwhile, this kind of listing included.
    client.ask(b"get key-7\r\n", b"VALUE key-7 0 1\r\nx\r\nEND\r\n");
    client.send(b"stats cachedump 1 5\r\n");
    client.receive_through(b"END\r\n");
    // It goes without having read all.
    drop(slow);
    wait_until("it has gone", || client.stat("lru_crawler_running") == 0);
    assert_eq!(listing(&mut client, "lru_crawler metadump all", "END").len(), 100_000);
    // And one who reads slowly gets all.
    let mut slow = Client::with_buffers(&place, Some(4096)).expect("there is room");
    assert_eq!(listing(&mut slow, "lru_crawler mgdump hash", "EN").len(), 100_000);
    slow.expect_open();
    server.stop().expect("no thread has failed");
}

#[test]
fn some_items_of_a_class() {
    let (server, mut client) = start(settings());
    for number in 0..100 {
        client.ask(
            format!("set key-{number:03} 0 {} 3\r\nabc\r\n", number % 2 * 1000).as_bytes(),
            b"STORED\r\n",
        );
    }
    let line = listing(&mut client, "lru_crawler metadump all", "END").remove(0);
    let class = parts(&line)["cls"].to_owned();
    let mut dump = |request: &str| {
        client.send(format!("stats cachedump {request}\r\n").as_bytes());
        String::from_utf8(client.receive_through(b"END\r\n")).expect("text")
    };
    let all = dump(&format!("{class} 0"));
    assert_eq!(all.lines().count(), 101, "{}", shorten(all.as_bytes()));
    assert!(all.contains("ITEM key-000 [3 b; 0 s]\r\n"), "{}", shorten(all.as_bytes()));
    assert_eq!(dump(&format!("{class} 7")).lines().count(), 8);
    let empty = if class == "1" { "2" } else { "1" };
    assert_eq!(dump(&format!("{empty} 0")), "END\r\n");
    assert_eq!(dump("0 0"), "END\r\n");
    for (request, reply) in [
        ("", "CLIENT_ERROR bad command line\r\n"),
        ("1", "CLIENT_ERROR bad command line\r\n"),
        ("x 1", "CLIENT_ERROR bad command line format\r\n"),
        ("250 1", "CLIENT_ERROR Illegal slab id\r\n"),
    ] {
        client.ask(format!("stats cachedump {request}\r\n").as_bytes(), reply.as_bytes());
    }
    // No more than two megabytes.
    let key = "k".repeat(200);
    for number in 0..20_000 {
        client.send(format!("set {key}-{number} 0 0 1 noreply\r\nx\r\n").as_bytes());
    }
    let line = listing(&mut client, "lru_crawler metadump all", "END").pop().expect("some");
    client.send(format!("stats cachedump {} 0\r\n", parts(&line)["cls"]).as_bytes());
    let length = client.receive_through(b"END\r\n").len();
    assert!((2_000_000..=(2 << 20) + 5).contains(&length), "{length}");
    server.stop().expect("no thread has failed");
}

#[test]
fn items_are_counted_by_size() {
    let (server, mut client) = start(settings());
    client.ask(b"stats sizes\r\n", b"STAT sizes_status disabled\r\nEND\r\n");
    server.stop().expect("no thread has failed");
    let (server, mut client) = start(settings().with_track_sizes(true));
    client.ask(b"stats sizes\r\n", b"END\r\n");
    for number in 0..30 {
        let length = [10, 500][usize::from(number % 3 == 0)];
        let value = "x".repeat(length);
        client.ask(format!("set k{number:02} 0 0 {length}\r\n{value}\r\n").as_bytes(), b"STORED\r\n");
    }
    assert_eq!(client.stat_lines("sizes"), [("32".into(), "20".into()), ("512".into(), "10".into())]);
    client.ask(b"delete k00\r\n", b"DELETED\r\n");
    assert_eq!(client.stats("sizes")["512"], "9");
    // The same in frames, and what follows is answered behind them.
    let mut binary = Client::connect(&Address::from(server.addresses()[0]));
    let frame = |opcode: u8, key: &str| {
        let mut frame = Vec::new();
        Header::write_request(&mut frame, opcode, [0, key.len(), 0], 7, 0);
        [frame, key.as_bytes().to_vec()].concat()
    };
    binary.send(&[frame(opcode::STAT, "sizes"), frame(opcode::NOOP, "")].concat());
    for (opcode, name, value) in [
        (opcode::STAT, "32", "20"),
        (opcode::STAT, "512", "9"),
        (opcode::STAT, "", ""),
        (opcode::NOOP, "", ""),
    ] {
        let reply = binary.receive(24 + name.len() + value.len());
        assert_eq!((reply[1], usize::from(reply[3]), reply[15]), (opcode, name.len(), 7));
        assert_eq!(&reply[24..], format!("{name}{value}").as_bytes());
    }
    server.stop().expect("no thread has failed");
}

#[test]
fn what_is_switched_off_says_so() {
    let (server, mut client) = start(settings().with_watch_allowed(false).with_dumps_allowed(false));
    for (request, reply) in [
        ("watch", "CLIENT_ERROR watch commands not allowed"),
        ("watch fetchers", "CLIENT_ERROR watch commands not allowed"),
        ("watch nothing", "CLIENT_ERROR watch commands not allowed"),
        ("stats cachedump", "CLIENT_ERROR stats cachedump not allowed"),
        ("stats cachedump 1 1", "CLIENT_ERROR stats cachedump not allowed"),
        ("stats detail on", "CLIENT_ERROR stats detail not allowed"),
        ("lru_crawler metadump all", "ERROR metadump not allowed"),
        ("lru_crawler metadump x", "ERROR metadump not allowed"),
        ("lru_crawler mgdump all", "ERROR key dump not allowed"),
        ("shutdown", "SERVER_ERROR: shutdown not enabled"),
        ("shutdown slowly", "SERVER_ERROR: shutdown not enabled"),
    ] {
        client.ask(format!("{request}\r\n").as_bytes(), format!("{reply}\r\n").as_bytes());
    }
    assert_eq!(client.stats("settings")["dump_enabled"], "no");
    server.stop().expect("no thread has failed");
    let (server, mut client) = start(switched_off(settings()));
    client.ask(b"lru_crawler metadump all\r\n", b"CLIENT_ERROR lru crawler disabled\r\n");
    client
        .ask(b"lru_crawler enable\r\nlru_crawler metadump all\r\n", b"OK\r\nERROR metadump not allowed\r\n");
    client.ask(b"slabs reassign x y\r\n", b"CLIENT_ERROR slab reassignment disabled\r\n");
    server.stop().expect("no thread has failed");
}

#[test]
fn a_page_moves_when_it_is_told_to() {
    let (server, mut client) = start(settings().with_memory(16 << 20));
    for (request, reply) in [
        ("1 1", "SAME src and dst class are identical"),
        ("250 1", "BADCLASS invalid src or dst class id"),
        ("1 250", "BADCLASS invalid src or dst class id"),
        ("-2 1", "BADCLASS invalid src or dst class id"),
        ("1 2", "NOSPARE source class has no spare pages"),
        ("x 2", "CLIENT_ERROR bad command line format"),
    ] {
        client.ask(format!("slabs reassign {request}\r\n").as_bytes(), format!("{reply}\r\n").as_bytes());
    }
    let value = "x".repeat(1000);
    for number in 0..1000 {
        client.ask(format!("set key-{number} 0 0 1000\r\n{value}\r\n").as_bytes(), b"STORED\r\n");
    }
    let line = listing(&mut client, "lru_crawler metadump all", "END").remove(0);
    let class = parts(&line)["cls"].to_owned();
    let pages = |client: &mut Client| {
        client.stats("slabs")[&format!("{class}:total_pages")].parse::<u32>().expect("a number")
    };
    let before = (pages(&mut client), client.stat("curr_items"));
    client.ask(format!("slabs reassign {class} 1\r\n").as_bytes(), b"OK\r\n");
    wait_until("the page is gone", || pages(&mut client) == before.0 - 1);
    assert!(client.stat("curr_items") < before.1);
    client.ask(b"slabs reassign -1 0\r\n", b"OK\r\n");
    wait_until("another one is gone", || pages(&mut client) == before.0 - 2);
    server.stop().expect("no thread has failed");
}

#[test]
fn a_client_stops_the_server_where_it_may() {
    for how in ["shutdown\r\n", "shutdown graceful\r\n"] {
        let (server, mut client) = start(settings().with_shutdown_allowed(true));
        let (told, heard) = mpsc::channel();
        server.when_broken(move || told.send(()).expect("somebody listens"));
        client.ask(b"shutdown slowly\r\n", b"CLIENT_ERROR invalid shutdown mode\r\n");
        client.send(how.as_bytes());
        client.expect_closed();
        heard.recv_timeout(crate::client::PATIENCE).expect("whoever has started it is told");
        server.stop().expect("no thread has failed");
    }
}

/// Where there are no threads, listings come at once, and who watches is told nothing.
#[test]
fn in_the_process() {
    let mut server = InProcess::new(settings().with_track_sizes(true), 1_700_000_000).expect("a cache");
    assert_eq!(
        server.receive(b"set a 0 0 1\r\nx\r\nlru_crawler mgdump all\r\n"),
        b"STORED\r\nOK\r\nmg a\r\nEN\r\n"
    );
    assert_eq!(server.receive(b"stats sizes\r\nget b\r\n"), b"STAT 32 1\r\nEND\r\nEND\r\n");
    let line = server.receive(b"lru_crawler metadump all\r\n");
    let line = String::from_utf8(line).expect("text");
    assert!(line.starts_with("OK\r\nkey=a exp=-1 la=1700000000 ") && line.ends_with("\nEND\r\n"), "{line}");
    assert_eq!(server.receive(b"watch\r\nget a\r\n"), b"OK\r\n");
    assert!(server.is_open() && server.receive(b"get a\r\n").is_empty());
    server.reconnect();
    assert_eq!(server.receive(b"get a\r\n"), b"VALUE a 0 1\r\nx\r\nEND\r\n");
}

/// What a request of another client waits at the 99th percentile.
fn waits(client: &mut Client) -> Duration {
    let mut waits: Vec<Duration> = (0..10_000)
        .map(|number| {
            let begun = Instant::now();
            let request = format!("get key-{number}\r\n");
            client.ask(request.as_bytes(), format!("VALUE key-{number} 0 1\r\nx\r\nEND\r\n").as_bytes());
            begun.elapsed()
        })
        .collect();
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

/// A million keys are listed over and over, and others wait no longer than otherwise, or little.
#[test]
#[ignore = "ci/nightly attacks: it measures time"]
fn others_hardly_notice_a_listing() {
    const KEYS: usize = 1_000_000;
    let (server, mut client) = start(settings().with_memory(256 << 20));
    for number in 0..KEYS {
        client.send(format!("set key-{number} 0 0 1 noreply\r\nx\r\n").as_bytes());
    }
    client.expect_open();
    let address = Address::from(server.addresses()[0]);
    let mut times = Vec::new();
    for _ in 0..15 {
        let alone = waits(&mut client);
        let mut lister = Client::connect(&address);
        lister.send(b"lru_crawler metadump all\r\n");
        let reading = std::thread::spawn(move || lister.receive_through(b"\nEND\r\n").len());
        let meanwhile = waits(&mut client);
        let under_way = client.stat("lru_crawler_running");
        assert!(reading.join().expect("it does not panic") > KEYS * 40);
        assert_eq!(under_way, 1, "the listing was over before the measurement was");
        times.push(meanwhile.as_secs_f64() / alone.as_secs_f64());
    }
    times.sort_unstable_by(f64::total_cmp);
    let median = times[times.len() / 2];
    assert!(median < 1.2, "others wait {median:.2} times as long: {times:.2?}");
    server.stop().expect("no thread has failed");
}

#[test]
fn the_limit_of_memory_is_changed_in_use() {
    let (server, mut client) = start(settings().with_memory(64 << 20));
    let value = "x".repeat(1000);
    let fill = |client: &mut Client| {
        for number in 0..150_000 {
            client.send(format!("set key-{number} 0 0 1000 noreply\r\n{value}\r\n").as_bytes());
        }
        client.expect_open();
    };
    fill(&mut client);
    let full = client.stat("bytes");
    assert!((48 << 20..=64 << 20).contains(&full), "{full}");
    client.ask(b"cache_memlimit 16\r\n", b"OK\r\n");
    assert_eq!(
        (client.stat("limit_maxbytes"), client.stats("settings")["maxbytes"].as_str()),
        (16 << 20, "16777216")
    );
    wait_until("it has shrunk", || client.stat("bytes") < 16 << 20);
    // What was stored last is there, and more can be stored.
    client.ask(b"get key-149999\r\n", format!("VALUE key-149999 0 1000\r\n{value}\r\nEND\r\n").as_bytes());
    client.ask(b"set more 0 0 1\r\nx\r\nget more\r\n", b"STORED\r\nVALUE more 0 1\r\nx\r\nEND\r\n");
    client.ask(b"cache_memlimit 128\r\n", b"OK\r\n");
    fill(&mut client);
    let more = client.stat("bytes");
    assert!((full..=128 << 20).contains(&more), "{more}");
    client.ask(b"cache_memlimit 7\r\n", b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n");
    let failed = b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
    client.ask(b"cache_memlimit 1000000000\r\n", failed);
    assert_eq!(client.stat("limit_maxbytes"), 128 << 20);
    server.stop().expect("no thread has failed");
}

/// A list that nobody takes would keep all others from theirs: who has asked for it is closed as any other that is
/// silent.
#[test]
fn a_list_that_nobody_takes() {
    let (server, mut client) = start(settings().with_memory(64 << 20).with_idle_timeout(1));
    let long = "k".repeat(200);
    for first in (0..40_000).step_by(1000) {
        let sets = (first..first + 1000).map(|number| format!("set {long}{number} 0 0 1 noreply\r\nx\r\n"));
        client.send(sets.collect::<String>().as_bytes());
        client.ask(b"mn\r\n", b"MN\r\n");
    }
    let place = Address::from(server.addresses()[0]);
    let mut silent = Client::with_buffers(&place, Some(4096)).expect("there is room");
    silent.send(b"lru_crawler metadump all\r\n");
    wait_until("the list begins", || client.stat("lru_crawler_running") == 1);
    client.ask(b"lru_crawler metadump all\r\n", b"BUSY currently processing crawler request\r\n");
    // Asked anew each time: who asks may be silent, too, where the machine is busy.
    drop(client);
    wait_until("it is closed", || {
        let mut client = Client::connect(&place);
        client.stat("idle_kicks") >= 1 && client.stat("lru_crawler_running") == 0
    });
    let mut taken = Vec::new();
    let _ = silent.socket.read_to_end(&mut taken);
    assert!(!taken.ends_with(b"END\r\n"), "it was told all");
    server.stop().expect("no thread has failed");
}
