//! The load generator and the trace player against servers that do wrong: each fault is noticed, and none is seen where
//! there is none.

use std::time::Duration;

use crate::fake::{Fake, Fault};
use indicatif::ProgressBar;
use lookaside_lab::drive::{
    Amount, Demand, DriveError, Endpoint, Items, Load, LoadReport, RecordedTrace, Replay, WrongReply,
};
use workload::popularity::Popularity;

const RECORDS: u64 = 200;

fn load(endpoint: Endpoint, check: bool) -> Load {
    let demand = Demand { popularity: Popularity::uniform(RECORDS).unwrap(), gets: 1.0 };
    Load {
        connections: 3,
        depth: 4,
        keys_per_get: 2,
        seed: 7,
        measured: Amount::Operations(4000),
        check,
        ..Load::new(vec![endpoint], RECORDS, Items::fixed(16, 40), demand)
    }
}

fn drive(fault: Fault, check: bool) -> Result<LoadReport, DriveError> {
    let fake = Fake::start(fault);
    let load = load(fake.endpoint(), check);
    let filled = load.fill(&ProgressBar::hidden()).unwrap();
    let expected = if fault == Fault::Full { (0, RECORDS) } else { (RECORDS, 0) };
    assert_eq!((filled.stored, filled.refused), expected);
    load.run(&[], &ProgressBar::hidden())
}

#[test]
fn a_sound_server_passes_every_check() {
    let report = drive(Fault::None, true).unwrap();
    assert_eq!((report.operations, report.gets, report.hits, report.sets), (4000, 4000, 4000, 0));
    assert_eq!(report.latency.requests, 2000);
    assert!(report.checked && report.refused == 0 && report.rounds == 1.0);
}

#[test]
fn a_wrong_value_is_noticed_where_values_are_checked() {
    for fault in [Fault::Corrupt(1234), Fault::WrongKey(777)] {
        let error = drive(fault, true).unwrap_err();
        assert!(matches!(error, DriveError::Reply(WrongReply::Value { .. })), "{fault:?}: {error}");
        // Who only counts does not see it: it is the check that does.
        assert_eq!(drive(fault, false).unwrap().hits, 4000, "{fault:?}");
    }
}

#[test]
fn a_lost_value_is_a_miss_and_one_reply_too_many_is_an_error() {
    for check in [true, false] {
        assert_eq!(drive(Fault::Forget(99), check).unwrap().hits, 3999);
        let error = drive(Fault::Twice(2000), check).unwrap_err();
        assert!(matches!(error, DriveError::Reply(_) | DriveError::Surplus), "{error}");
        let error = drive(Fault::Close(2000), check).unwrap_err();
        assert!(matches!(error, DriveError::Closed), "{error}");
    }
}

#[test]
fn refused_sets_are_counted() {
    let report = drive(Fault::Full, true).unwrap();
    assert_eq!((report.gets, report.hits), (4000, 0));
}

#[test]
fn a_replay_notices_a_wrong_value() {
    let play = |fault| {
        let fake = Fake::start(fault);
        let items = Items::fixed(0, 100);
        let trace = RecordedTrace::of_gets((0..1000).map(|at| ["a", "b", "c", "d", "e"][at % 5]));
        Replay::new(&trace, &items, 8).play("fake", &fake.endpoint(), None, &ProgressBar::hidden())
    };
    let report = play(Fault::None).unwrap();
    assert_eq!((report.gets, report.hits, report.sets, report.evictions), (1000, 995, 5, Some(0)));
    for fault in [Fault::Corrupt(500), Fault::WrongKey(500)] {
        let outcome = play(fault);
        // Of five keys, the one stored last is sometimes the one asked for.
        let is_own = matches!(fault, Fault::WrongKey(_)) && outcome.is_ok();
        let noticed = matches!(outcome, Err(DriveError::Reply(WrongReply::Value { .. })));
        assert!(noticed || is_own, "{fault:?}: {outcome:?}");
    }
    assert_eq!(play(Fault::Forget(500)).unwrap().hits, 994);
    assert!(matches!(play(Fault::Close(500)), Err(DriveError::Closed)));
}

/// A server that stops for a while delays all that was due meanwhile. At a fixed rate that shows; clients that wait for
/// their replies hide it, because they ask for nothing while they wait.
#[test]
fn latency_counts_from_when_a_request_was_due() {
    const STALL: Duration = Duration::from_millis(400);
    let run = |rate: Option<f64>| {
        let fake = Fake::start(Fault::Stall(300, STALL));
        let load = Load {
            connections: 2,
            depth: 1,
            keys_per_get: 1,
            measured: Amount::Operations(1000),
            rate,
            ..load(fake.endpoint(), true)
        };
        load.run(&[], &ProgressBar::hidden()).unwrap()
    };
    let open = run(Some(1000.0));
    assert_eq!((open.operations, open.overdue), (1000, 0));
    assert!(open.seconds >= 0.99, "a thousand at a thousand a second: {} s", open.seconds);
    // 400 of the 1000 were due during the stall, 300 of them a tenth of a second or more before its end.
    assert!(open.latency.p90 > 100_000.0, "{:?}", open.latency);
    assert!(open.latency.max > 300_000.0, "{:?}", open.latency);
    let closed = run(None);
    assert!(closed.latency.max > 300_000.0, "{:?}", closed.latency);
    assert!(
        closed.latency.p99 < 100_000.0,
        "only those that were under way were delayed: {:?}",
        closed.latency
    );
}

/// What is due and cannot be sent in time is not forgotten.
#[test]
fn what_a_server_does_not_keep_up_with_is_told() {
    let fake = Fake::start(Fault::Stall(50, Duration::from_millis(600)));
    let load = Load {
        connections: 2,
        depth: 1,
        keys_per_get: 1,
        measured: Amount::Time(Duration::from_millis(500)),
        rate: Some(1000.0),
        ..load(fake.endpoint(), false)
    };
    let report = load.run(&[], &ProgressBar::hidden()).unwrap();
    // About 50 were answered before the stall, which ends when the time is over.
    assert!(report.overdue > 300 && report.operations + report.overdue >= 499, "{report:?}");
}

#[test]
fn the_server_is_asked_for_what_the_distribution_says() {
    let fake = Fake::start(Fault::None);
    let popularity = Popularity::zipfian(RECORDS, 0.99).unwrap();
    let Popularity::Zipfian(zipfian) = &popularity else { panic!() };
    let hottest = zipfian.share_of_hottest(1);
    let demand = Demand { popularity: popularity.clone(), gets: 0.8 };
    let warm_up = Amount::Operations(1000);
    let measured = Amount::Operations(20_000);
    let report = Load { demand, warm_up, measured, threads: 3, ..load(fake.endpoint(), true) };
    let report = report.run(&[], &ProgressBar::hidden()).unwrap();
    assert_eq!(report.operations, 20_000);
    assert!((15_700..16_300).contains(&report.gets), "{}", report.gets);
    let asked = fake.asked();
    let all: u64 = asked.values().sum();
    assert_eq!(all + fake.sets(), 21_000);
    let share = asked[b"0000000000000000".as_slice()] as f64 / all as f64;
    assert!((share / hottest - 1.0).abs() < 0.1, "{share} instead of {hottest}");
}

#[test]
fn several_servers_share_the_keys() {
    let fakes: Vec<_> = (0..3).map(|_| Fake::start(Fault::None)).collect();
    let load = Load {
        servers: fakes.iter().map(Fake::endpoint).collect(),
        keys_per_get: 50,
        ..load(fakes[0].endpoint(), true)
    };
    assert_eq!(load.fill(&ProgressBar::hidden()).unwrap().stored, RECORDS);
    let items: Vec<_> = fakes.iter().map(Fake::items).collect();
    assert_eq!(items.iter().sum::<usize>() as u64, RECORDS);
    assert!(items.iter().all(|items| *items > 40), "{items:?}");
    let report = load.run(&[], &ProgressBar::hidden()).unwrap();
    assert_eq!((report.gets, report.hits), (4000, 4000));
    let asked: u64 = fakes.iter().flat_map(|fake| fake.asked().into_values()).sum();
    assert_eq!(asked, 4000);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let fake = Fake::start(Fault::None);
    let refused = |load: Load| matches!(load.run(&[], &ProgressBar::hidden()), Err(DriveError::Settings(_)));
    let load = || load(fake.endpoint(), false);
    assert!(refused(Load { threads: 4, ..load() }));
    assert!(refused(Load { depth: 0, ..load() }));
    assert!(refused(Load { rate: Some(0.0), ..load() }));
    assert!(refused(Load { servers: Vec::new(), ..load() }));
    let nobody = Endpoint::Tcp(([127, 0, 0, 1], 1).into());
    let error = Load { servers: vec![nobody], ..load() }.run(&[], &ProgressBar::hidden()).unwrap_err();
    assert!(matches!(error, DriveError::Connect { .. }), "{error}");
}
