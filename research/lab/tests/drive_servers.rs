//! The load generator and the trace player against real servers: ours in this process, and memcached and Redis where
//! they are installed. What both sides counted must agree.

use std::collections::HashSet;
use std::time::Duration;

use indicatif::ProgressBar;
use lookaside_lab::drive::{
    Amount, Demand, Dialect, DriveError, Endpoint, Items, Load, PATIENCE, RecordedTrace, Replay,
    ServerCommand, ServerProcess, SizesOf, Statistics, sizes,
};
use rand::RngExt;
use server::{Server, Settings, UnixSocket};
use workload::generator::seeded;
use workload::popularity::Popularity;
use workload::stand_in::recorded_or_generated;

/// A server to be driven, which ends with this.
struct Peer {
    name: &'static str,
    endpoint: Endpoint,
    process: Option<ServerProcess>,
    _ours: Option<Server>,
}

fn ours() -> Peer {
    let tcp = vec![([127, 0, 0, 1], 0).into()];
    let server = Server::start(Settings::default().with_tcp(tcp).with_threads(2)).unwrap();
    let endpoint = Endpoint::Tcp(server.addresses()[0]);
    Peer { name: "lookaside", endpoint, process: None, _ours: Some(server) }
}

/// memcached with these arguments.
fn memcached(arguments: &str) -> Option<Peer> {
    let program = std::env::var("LOOKASIDE_MEMCACHED").unwrap_or_else(|_| "memcached".into());
    if std::process::Command::new(&program).arg("-V").output().is_err() {
        outside::skip(format_args!("{program} is not installed"));
        return None;
    }
    let user = if rustix::process::geteuid().is_root() { "-u root" } else { "" };
    let line = format!("{program} {user} {arguments}");
    let process = ServerCommand::parse(&line).unwrap().start(None).unwrap();
    let endpoint = process.endpoint().clone();
    Some(Peer { name: "memcached", endpoint, process: Some(process), _ours: None })
}

fn peers() -> impl Iterator<Item = Peer> {
    std::iter::once(ours()).chain(memcached("-t 2 -m 64"))
}

fn load(endpoint: &Endpoint, demand: Demand) -> Load {
    let etc = |of| sizes("etc", of, 1.0).unwrap();
    Load {
        connections: 5,
        depth: 7,
        keys_per_get: 3,
        threads: 2,
        seed: 3,
        warm_up: Amount::Operations(500),
        measured: Amount::Operations(20_000),
        check: true,
        ..Load::new(vec![endpoint.clone()], 500, Items::new(etc(SizesOf::Keys), etc(SizesOf::Values)), demand)
    }
}

#[test]
fn both_sides_count_the_same() {
    for peer in peers() {
        let demand = Demand { popularity: Popularity::scrambled(500, 0.99).unwrap(), gets: 0.7 };
        let load = load(&peer.endpoint, demand);
        assert_eq!(load.fill(&ProgressBar::hidden()).unwrap().stored, 500);
        let counts = || {
            let statistics = Statistics::of(&peer.endpoint).unwrap();
            ["cmd_get", "get_hits", "cmd_set", "evictions"].map(|name| statistics.number(name).unwrap())
        };
        let before = counts();
        let report = load.run(&[], &ProgressBar::hidden()).unwrap();
        let after = counts();
        assert_eq!((report.operations, report.gets + report.sets), (20_000, 20_000), "{}", peer.name);
        assert_eq!(report.hits, report.gets, "{}: all keys were stored", peer.name);
        // The server counted the warm-up, too.
        let [gets, hits, sets, evictions] = std::array::from_fn(|at| after[at] - before[at]);
        assert_eq!((gets + sets, hits, evictions), (20_500, gets, 0), "{}", peer.name);
        assert!((gets - report.gets) + (sets - report.sets) == 500, "{}", peer.name);
        assert_eq!(Statistics::of(&peer.endpoint).unwrap().number("curr_items"), Some(500));
    }
}

#[test]
fn large_values_come_back_whole() {
    for peer in peers() {
        let demand = Demand { popularity: Popularity::uniform(20).unwrap(), gets: 0.5 };
        let load = Load {
            records: 20,
            items: Items::new(
                sizes("16", SizesOf::Keys, 1.0).unwrap(),
                sizes("1-900000", SizesOf::Values, 1.0).unwrap(),
            ),
            measured: Amount::Operations(400),
            ..load(&peer.endpoint, demand)
        };
        load.fill(&ProgressBar::hidden()).unwrap();
        let report = load.run(&[], &ProgressBar::hidden()).unwrap();
        assert_eq!((report.operations, report.refused), (400, 0), "{}", peer.name);
        assert!(report.received_bytes > 10_000_000, "{}: {report:?}", peer.name);
    }
}

#[test]
fn redis_is_driven_in_its_own_protocol() {
    let program = std::env::var("LOOKASIDE_REDIS").unwrap_or_else(|_| "redis-server".into());
    if std::process::Command::new(&program).arg("--version").output().is_err() {
        outside::skip(format_args!("{program} is not installed"));
        return;
    }
    let command = format!("{program} --save '' --bind 127.0.0.1 --port {{port}}");
    let process = ServerCommand::parse(&command).unwrap().start(None).unwrap();
    let demand = Demand { popularity: Popularity::scrambled(500, 0.99).unwrap(), gets: 0.7 };
    let sizes = |of, words| sizes(words, of, 1.0).unwrap();
    for (values, check) in [("etc", true), ("etc", false), ("1-900000", true), ("1-900000", false)] {
        let items = Items::new(sizes(SizesOf::Keys, "etc"), sizes(SizesOf::Values, values));
        let measured = Amount::Operations(if values == "etc" { 20_000 } else { 400 });
        let load = Load {
            dialect: Dialect::Resp,
            items,
            check,
            measured,
            ..load(process.endpoint(), demand.clone())
        };
        let bar = ProgressBar::hidden();
        assert_eq!(load.fill(&bar).unwrap().stored, 500);
        let report = load.run(&[], &bar).unwrap();
        assert_eq!(measured, Amount::Operations(report.operations), "{values}");
        assert_eq!((report.hits, report.refused), (report.gets, 0), "{values}: all keys were stored");
        assert!(report.sets > 0 && report.gets > report.sets, "{report:?}");
    }
    // memcached's is no language of its.
    let error = load(process.endpoint(), demand).run(&[], &ProgressBar::hidden()).unwrap_err();
    assert!(matches!(error, DriveError::Reply(_)), "{error}");
}

#[test]
fn a_unix_socket_is_as_good() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let unix = UnixSocket::new(path.clone(), 0o700);
    let _server = Server::start(Settings::default().with_tcp(Vec::new()).with_unix(unix)).unwrap();
    let demand = Demand { popularity: Popularity::uniform(500).unwrap(), gets: 0.9 };
    let load = load(&Endpoint::unix(&path), demand);
    load.fill(&ProgressBar::hidden()).unwrap();
    let report = load.run(&[], &ProgressBar::hidden()).unwrap();
    assert_eq!((report.operations, report.hits), (20_000, report.gets));
}

#[test]
fn a_process_that_serves_takes_time_and_one_that_does_not_takes_none() {
    let Some(peer) = memcached("-t 2 -m 64") else { return };
    let process = peer.process.as_ref().unwrap();
    let clock = process.clock().unwrap();
    let demand = Demand { popularity: Popularity::uniform(500).unwrap(), gets: 1.0 };
    let load = Load {
        measured: Amount::Time(Duration::from_millis(300)),
        warm_up: Amount::Time(Duration::from_millis(50)),
        check: false,
        patience: PATIENCE,
        ..load(&peer.endpoint, demand)
    };
    let report = load.run(&[clock], &ProgressBar::hidden()).unwrap();
    let server = report.server_cpu.unwrap();
    assert!(server > 0.01 && report.client_cpu > 0.01, "{report:?}");
    assert!((0.29..5.0).contains(&report.seconds), "{report:?}");
    let id = process.id();
    drop(peer);
    assert!(
        lookaside_lab::drive::ProcessClock::of(id).and_then(|clock| clock.now()).is_err(),
        "it has ended"
    );
}

#[test]
fn a_replay_hits_as_a_cache_that_holds_everything_would() {
    let mut random = seeded(11);
    // Few keys and many repetitions close to each other: windows end early all the time.
    let names: Vec<String> = (0..400).map(|number| format!("user:{number}")).collect();
    let order: Vec<usize> =
        (0..20_000).map(|_| (random.random::<f64>().powi(3) * names.len() as f64) as usize).collect();
    let mut seen = HashSet::new();
    let hits = order.iter().filter(|key| !seen.insert(**key)).count() as u64;
    let trace = RecordedTrace::of_gets(order.iter().map(|key| names[*key].as_str()));
    let items =
        Items::new(sizes("1", SizesOf::Keys, 1.0).unwrap(), sizes("1-3000", SizesOf::Values, 1.0).unwrap());
    for depth in [1, 2, 16, 300] {
        let replay = Replay::new(&trace, &items, depth);
        assert_eq!(replay.working_set().keys, seen.len() as u64);
        for peer in peers() {
            let report = replay.play(peer.name, &peer.endpoint, None, &ProgressBar::hidden()).unwrap();
            assert_eq!((report.requests, report.hits), (20_000, hits), "{} at depth {depth}", peer.name);
            assert_eq!((report.sets, report.evictions), (seen.len() as u64, Some(0)), "{}", peer.name);
        }
    }
}

#[test]
fn a_real_trace_hits_as_a_cache_that_holds_everything_would() {
    // As recorded, or generated: both have so many requests and keys.
    let open = || recorded_or_generated("traces/web07.trace.xz").unwrap().unwrap().0;
    let mut seen = HashSet::new();
    let hits = open().filter(|record| !seen.insert(record.as_ref().unwrap().key.clone())).count();
    let trace = RecordedTrace::of(open(), usize::MAX).unwrap();
    let items = Items::fixed(0, 100);
    let peer = ours();
    let replay = Replay::new(&trace, &items, 16);
    let report = replay.play(peer.name, &peer.endpoint, None, &ProgressBar::hidden()).unwrap();
    assert_eq!((report.requests, report.hits), (76_118, hits as u64));
    assert_eq!(report.working_set.keys, 20_484);
    assert_eq!(Statistics::of(&peer.endpoint).unwrap().number("curr_items"), Some(20_484));
}

/// With less memory than the trace needs there are evictions.
#[test]
fn a_replay_in_little_memory_evicts() {
    let names: Vec<String> = (0..3000).map(|number| format!("key{number}")).collect();
    let trace = RecordedTrace::of_gets((0..9000).map(|at| names[at * 7 % 3000].as_str()));
    let items = Items::fixed(0, 20_000);
    let replay = Replay::new(&trace, &items, 16);
    assert_eq!(replay.working_set().mebibytes(1, 1), 58);
    let Some(peer) = memcached("-t 1 -m 16") else { return };
    let clock = peer.process.as_ref().unwrap().clock().unwrap();
    let report = replay.play(peer.name, &peer.endpoint, Some(clock), &ProgressBar::hidden()).unwrap();
    assert!(report.evictions.unwrap() > 1000, "{report:?}");
    assert!(report.hit_ratio < 0.9 && report.server_cpu.unwrap() > 0.0, "{report:?}");
}
