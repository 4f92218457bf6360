//! The monitor, told of costs by a clock of each test's own.

use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::random::Random;
use crate::thread_state::ThreadState;

static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    /// The nanoseconds that have passed for this thread's test: they are not the machine's, on which others work, too.
    static PASSED: Cell<u64> = const { Cell::new(0) };
}

pub(super) fn moment() -> Instant {
    *BEGINNING + Duration::from_nanos(PASSED.get())
}

/// What a thread keeps.
fn thread() -> ThreadState {
    ThreadState::new(Random::new(5))
}

/// Lookups that asked, and those that did not.
fn counts(thread: &ThreadState) -> [u64; 2] {
    [thread.tally.asked.get(), thread.tally.passed.get()]
}

const ONE: Lookups = Lookups { number: 1, call: Call::Single };
const BATCH: Lookups = Lookups { number: 16, call: Call::Batch };

/// Lets so many lookups pass, or a few more, each call of them as many as `calls` says. They take so many nanoseconds,
/// in such a call, with the table or without. How many were with it.
fn run_calls(
    monitor: &Monitor,
    thread: &ThreadState,
    lookups: u32,
    mut calls: impl FnMut() -> Lookups,
    cost: impl Fn(Call, bool) -> u32,
) -> u64 {
    let (mut with, mut done, before) = (0, 0, counts(thread));
    while done < lookups {
        let asked = calls();
        let Lookups { number: together, call } = asked;
        let uses_table = thread.asks(asked, monitor, || 1000);
        with += u64::from(uses_table) * u64::from(together);
        done += together;
        PASSED.set(PASSED.get() + u64::from(cost(call, uses_table)) * u64::from(together));
    }
    // Each is counted, the way that it went.
    let counted = [0, 1].map(|way| counts(thread)[way] - before[way]);
    assert_eq!(counted, [with, u64::from(done) - with]);
    with
}

/// As [`run_calls`], one at a time.
fn run(monitor: &Monitor, thread: &ThreadState, lookups: u32, cost: impl Fn(bool) -> u32) -> u64 {
    run_calls(monitor, thread, lookups, || ONE, |_, with| cost(with))
}

#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn a_table_that_costs_more_than_it_saves_is_switched_off_and_on_again_when_it_pays() {
    let (monitor, thread) = (Monitor::new(true), thread());
    let lookups = 400_000;
    run(&monitor, &thread, lookups, |with| if with { 300 } else { 100 });
    let verdict = monitor.verdict();
    assert!(!verdict.on && verdict.switches == 1, "{verdict:?}");
    let with = run(&monitor, &thread, lookups, |with| if with { 300 } else { 100 });
    assert!(with < u64::from(lookups) / 20, "used in {with} lookups although off");
    // The interval has grown meanwhile.
    for _ in 0..100 {
        run(&monitor, &thread, lookups, |with| if with { 100 } else { 300 });
        if monitor.verdict().on {
            return;
        }
    }
    panic!("never switched on again: {:?}", monitor.verdict());
}

#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn a_table_that_pays_stays_on_and_is_tried_ever_more_rarely() {
    let (monitor, thread) = (Monitor::new(true), thread());
    run(&monitor, &thread, 2_000_000, |with| if with { 20 } else { 200 });
    let verdict = monitor.verdict();
    assert!(verdict.on && verdict.switches == 0 && verdict.gain > Some(2.0), "{verdict:?}");
    assert!((4..20).contains(&verdict.trials), "{verdict:?}");
}

/// What is asked for in one way only is cold in the caches for the other, at first.
#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn a_table_that_costs_a_tenth_is_switched_off_although_the_index_is_cold_at_first() {
    let cold_for = 4 * BLOCK;
    for (with_table, without, stays_on) in [(110_u32, 100_u32, false), (100, 110, true), (100, 1000, true)] {
        let (monitor, thread) = (Monitor::new(true), thread());
        let (last, same_way) = (Cell::new(true), Cell::new(cold_for));
        let cost = |with: bool| {
            same_way.set(if last.replace(with) == with { same_way.get() + 1 } else { 0 });
            let cold = if same_way.get() < cold_for { 30 } else { 0 };
            cold + if with { with_table } else { without }
        };
        let lookups = 10_000_000;
        let with = run(&monitor, &thread, lookups, cost);
        assert_eq!(monitor.verdict().on, stays_on, "{with_table}, {without}: {:?}", monitor.verdict());
        // What that costs while it stays on: hardly a trial's blocks.
        let without_table = f64::from(lookups) - with as f64;
        let dearer = without_table * (f64::from(without) / f64::from(with_table) - 1.0) / f64::from(lookups);
        assert!(!stays_on || dearer < 0.02, "{with_table}, {without}: {dearer}");
    }
}

/// Another thread switches while this one compares: blocks with the table are taken for blocks without, or the other
/// way.
#[test]
fn a_trial_in_which_the_table_is_switched_counts_for_nothing() {
    for interrupted in [Phase::Before, Phase::Warming, Phase::Other, Phase::Returning, Phase::After] {
        let (monitor, thread) = (Monitor::new(true), thread());
        thread.sampler.is_near.set([true; 2]);
        let cost = |with| if with { 300 } else { 100 };
        while thread.sampler.phase.get() != interrupted {
            run(&monitor, &thread, 1, cost);
        }
        monitor.off[Call::Single as usize].store(true, Ordering::Relaxed);
        while thread.sampler.phase.get() != Phase::Decided {
            run(&monitor, &thread, 1, cost);
        }
        assert_eq!(monitor.verdict().trials, 0, "{interrupted:?}: {:?}", monitor.verdict());
    }
}

/// It fills, and so looks worse than it is.
#[test]
fn an_empty_table_in_the_place_of_another_is_not_tried_before_it_has_filled() {
    let (monitor, thread) = (Monitor::new(true), thread());
    let capacity = 100_000;
    let mut lookups = 0;
    let mut run = |cost: &dyn Fn(bool) -> u32, fills: u64, most: u64, until: &dyn Fn() -> bool| {
        for _ in 0..most {
            if until() {
                return;
            }
            let with = thread.asks(ONE, &monitor, || capacity);
            PASSED.set(PASSED.get() + u64::from(cost(with)));
            lookups += 1;
            thread.filled.set(thread.filled.get() + if lookups % 2 == 0 { fills } else { 0 });
        }
    };
    let lost = |with: bool| if with { 300 } else { 100 };
    // One that does not pay is switched off.
    run(&lost, 0, 5 * capacity as u64, &|| false);
    run(&lost, 0, 10_000_000, &|| !monitor.verdict().on);
    assert!(!monitor.verdict().on);
    // And is tried ever more rarely.
    run(&lost, 0, 5_000_000, &|| false);
    let before = monitor.verdict();
    monitor.begins_anew();
    let after = monitor.verdict();
    assert!(after.on && after.gain.is_none() && after.switches == before.switches + 1, "{after:?}");
    // Whoever was in the middle of passing it by takes note.
    run(&lost, 0, u64::from(BLOCK), &|| false);
    assert!(thread.sampler.asks.get());
    // Each second lookup fills a slot: two lookups for each that there is, and no trial.
    run(&lost, 1, 2 * capacity as u64, &|| false);
    let filling = monitor.verdict();
    assert!(filling.on && filling.trials == before.trials, "{filling:?}");
    // Then it is judged as any.
    run(&lost, 0, 10_000_000, &|| !monitor.verdict().on);
    assert!(!monitor.verdict().on && monitor.verdict().trials > before.trials);
}

/// An index that looks up many keys together gains by that what a table would have saved.
#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn lookups_one_at_a_time_and_in_batches_have_a_verdict_each() {
    let (monitor, thread) = (Monitor::new(true), thread());
    let cost = |call, with| match (call, with) {
        (Call::Single, true) | (Call::Batch, false) => 100,
        (Call::Single, false) | (Call::Batch, true) => 300,
    };
    let lookups = 400_000;
    // So many that they are tried rarely: the others soon nevertheless.
    run_calls(&monitor, &thread, 20_000_000, || ONE, cost);
    run_calls(&monitor, &thread, lookups, || BATCH, cost);
    let verdict = monitor.verdict();
    assert!(verdict.on && !verdict.on_in_batches, "{verdict:?}");
    assert!(verdict.gain > Some(2.0), "{verdict:?}");
    // Each time that they change, the verdict of theirs holds at once, but for what is left of a part.
    for _ in 0..10 {
        let single = run_calls(&monitor, &thread, lookups, || ONE, cost);
        let batches = run_calls(&monitor, &thread, lookups, || BATCH, cost);
        assert!(single > u64::from(lookups) * 9 / 10, "{single} with the table, which pays");
        let left = u64::from(PART * BLOCK);
        assert!(batches < left + u64::from(lookups) / 20, "{batches} with the table, which does not");
    }
    assert_eq!(monitor.verdict().switches, 1);
    assert_eq!((monitor.verdict().on, monitor.verdict().on_in_batches), (true, false));
}

/// Calls of both kinds: at random, batches one call in so many; or by turns, so many lookups of each.
fn mixtures() -> Vec<(String, Box<dyn FnMut() -> Lookups>)> {
    let mut mixtures: Vec<(String, Box<dyn FnMut() -> Lookups>)> = Vec::new();
    for one_in in [17, 2] {
        let random = Random::new(7);
        let calls = move || if random.below(one_in) == 0 { BATCH } else { ONE };
        mixtures.push((format!("one call in {one_in} a batch"), Box::new(calls)));
    }
    for run in [500, 1000, 2000, 3000, 20_000] {
        let mut done = 0;
        let calls = move || {
            let call = if done % (2 * run) < run { ONE } else { BATCH };
            done += call.number;
            call
        };
        mixtures.push((format!("{run} lookups of each by turns"), Box::new(calls)));
    }
    for blocks in [1, 3] {
        let mut done = 0;
        let calls = move || {
            done += 1;
            Lookups::of_block(if done % (2 * blocks) < blocks { 1 } else { 16 })
        };
        mixtures.push((format!("{blocks} blocks of C's sessions of each by turns"), Box::new(calls)));
    }
    mixtures
}

/// Whether all cases of a test are wanted, or some of them, as of models: `.ci/run` asks for fewer.
fn all_cases() -> bool {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse::<u32>().ok());
    asked.is_none_or(|cases| cases >= 256)
}

/// Blocks of both, as they come. What was found once is found otherwise when it is. Where not all cases are wanted,
/// each mixture has one of the costs, by turns: with each of them the table pays once and once does not.
#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn calls_that_come_by_turns_are_judged_as_the_mixture() {
    for (costs, (first, then)) in [(300, 30), (30, 300), (130, 60), (70, 140)].into_iter().enumerate() {
        for (number, (mixture, mut calls)) in mixtures().into_iter().enumerate() {
            if !all_cases() && number % 4 != costs {
                continue;
            }
            let (monitor, thread) = (Monitor::new(true), thread());
            for with_table in [first, then] {
                let pays = with_table < 100;
                // One at a time all is three times as dear.
                let cost = |call, with| {
                    (if with { with_table } else { 100 }) * if call == Call::Single { 3 } else { 1 }
                };
                let verdict = || monitor.verdict();
                let name = || format!("{mixture}, {first} then {then}: {:?}", monitor.verdict());
                // Until it is found; the longest interval may have to pass for each trial that it takes.
                let most = 16 * LONGEST;
                let found = (0..most).any(|_| {
                    run_calls(&monitor, &thread, 8 * BLOCK, &mut calls, cost);
                    verdict().trials > 20 && (verdict().on, verdict().on_in_batches) == (pays, pays)
                });
                assert!(found, "{}", name());
                let lookups = 8_000_000;
                let with = run_calls(&monitor, &thread, lookups, &mut calls, cost);
                let astray = if pays { u64::from(lookups).saturating_sub(with) } else { with };
                assert!(astray < u64::from(lookups) / 10, "{}, {astray} the wrong way", name());
            }
        }
    }
}

/// And if they come in runs of some blocks, each goes the way of its own.
#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn runs_of_some_blocks_go_the_way_of_their_kind() {
    for run in [20_000, 100_000] {
        runs_go_the_way_of_their_kind(run);
    }
}

fn runs_go_the_way_of_their_kind(run: u32) {
    let (monitor, thread) = (Monitor::new(true), thread());
    let (astray, done) = (Cell::new(0), Cell::new(0));
    let calls = || if done.get() % (2 * run) < run { ONE } else { BATCH };
    let cost = |call, with| {
        let together = if call == Call::Single { 1 } else { 16 };
        done.set(done.get() + together);
        let is_right = with == (call == Call::Single);
        astray.set(astray.get() + if is_right { 0 } else { together });
        if is_right { 100 } else { 300 }
    };
    run_calls(&monitor, &thread, 40_000_000, calls, cost);
    let verdict = monitor.verdict();
    assert_eq!((verdict.on, verdict.on_in_batches), (true, false), "{verdict:?}");
    astray.set(0);
    run_calls(&monitor, &thread, 8_000_000, calls, cost);
    assert!(astray.get() < 800_000, "{} the wrong way: {:?}", astray.get(), monitor.verdict());
}

/// Whoever ends the watching and lets it begin anew has both kinds tried soon, when they come.
#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn both_kinds_are_tried_soon_when_the_watching_begins_anew() {
    let (monitor, thread) = (Monitor::new(true), thread());
    let pays = |_, with| if with { 100 } else { 300 };
    run_calls(&monitor, &thread, 10_000_000, || BATCH, pays);
    monitor.watch(false);
    run_calls(&monitor, &thread, 200_000, || ONE, pays);
    monitor.watch(true);
    run_calls(&monitor, &thread, 20_000_000, || ONE, pays);
    let loses = |_, with| if with { 300 } else { 100 };
    run_calls(&monitor, &thread, 500_000, || BATCH, loses);
    assert!(monitor.verdict().on && !monitor.verdict().on_in_batches, "{:?}", monitor.verdict());
    monitor.watch(false);
    run_calls(&monitor, &thread, 200_000, || BATCH, pays);
    monitor.watch(true);
    run_calls(&monitor, &thread, 500_000, || ONE, loses);
    assert!(!monitor.verdict().on, "{:?}", monitor.verdict());
}

#[test]
#[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
fn who_does_not_watch_always_uses_the_table() {
    let (monitor, thread) = (Monitor::new(false), thread());
    assert_eq!(run(&monitor, &thread, 100_000, |_| 1), 100_000);
    assert_eq!(monitor.verdict().trials, 0);
}
