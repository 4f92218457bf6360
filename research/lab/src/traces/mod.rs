//! Kind `slb-traces`: Figure 15 of the SLB paper, the five Facebook traces, and recorded requests.
//!
//! The traces that the paper replays are not public. In their place are *stand-ins*: requests drawn from the properties
//! that the paper and the study behind it print (the skew, the mix of operations, the size of the table), each named
//! so. What a definition had to choose beyond them, it says. Beside them, requests as they were recorded elsewhere.
//!
//! The first fifth of a trace warms up; the rest falls into seven segments, each of which is timed (section 4.5).
//! Requests are dealt out to the threads in turn, as in the paper.
//!
//! | module | idea |
//! |---|---|
//! | `requests` | drawing or reading the requests |
//! | `index` | the index, alone and with a table beside it |

mod index;
mod requests;

use serde::Deserialize;

use crate::experiment::{ExperimentError, Laboratory, Session};
use crate::measure::{in_parallel, name_threads, release_freed_memory, turns};
use index::Player;
use requests::{Recorded, Request, StandIn, Trace};

/// Segments that are timed.
const SEGMENTS: usize = 7;
/// One request of so many only warms up.
const WARM_UP: usize = 5;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Bytes of the table beside the index.
    size: usize,
    /// Threads.
    threads: Vec<usize>,
    /// Requests of a stand-in, and of a recorded trace at most.
    requests: usize,
    /// What is drawn.
    stand_ins: Vec<StandIn>,
    /// What was recorded.
    recorded: Vec<Recorded>,
}

/// Adds the kind.
pub(crate) fn add_kinds(laboratory: Laboratory) -> Laboratory {
    laboratory.with_kind("slb-traces", run)
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let threads = session.threads(&parameters.threads)?;
    let traces = parameters.stand_ins.len() + parameters.recorded.len();
    session.announce(traces * session.runs() * Player::NAMES.len());
    for stand_in in &parameters.stand_ins {
        session.begin(format!("drawing {}", stand_in.name));
        let trace = stand_in.draw(parameters.requests)?;
        measure(&trace, parameters, &threads, session)?;
    }
    for recorded in &parameters.recorded {
        session.begin(format!("reading {}", recorded.file));
        match recorded.read(parameters.requests)? {
            Ok((trace, instead)) => {
                if let Some(stand_in) = instead {
                    session.skip(&recorded.name, stand_in.to_string());
                }
                measure(&trace, parameters, &threads, session)?;
            }
            // The data is not part of this repository.
            Err(absent) => session.skip(&recorded.name, absent.to_string()),
        }
    }
    Ok(())
}

fn measure(
    trace: &Trace,
    parameters: &Parameters,
    threads: &[usize],
    session: &mut Session,
) -> Result<(), ExperimentError> {
    for run in 0..session.runs() {
        let names = Player::NAMES;
        let mut speeds = vec![Vec::new(); names.len()];
        for at in turns(names.len(), run) {
            session.begin(format!("{}: {}", trace.name, names[at]));
            // Made anew, so that all begin alike, and one after the other, so that memory holds one.
            let name = names[at];
            release_freed_memory();
            let player = Player::make(at, trace.values.len(), parameters.size)?;
            fill(&player, trace);
            for &threads in threads {
                let place = format!("{}, {}", trace.name, name_threads(threads));
                player.empty_table()?;
                let played = play(&player, trace, threads)?;
                for (segment, &speed) in played.speeds.iter().enumerate() {
                    let point = format!("{place}, segment {}", segment + 1);
                    session.record(name, &point, "throughput", "M requests/s", speed);
                }
                if let Some(ratio) = played.hit_ratio {
                    session.record(name, &place, "lookups that the table answers", "%", 100.0 * ratio);
                }
                speeds[at].push((place, played.speeds));
            }
            session.end();
        }
        // The first of them is the index alone.
        for (name, own) in names.iter().zip(&speeds).skip(1) {
            for ((place, own), (_, alone)) in own.iter().zip(&speeds[0]) {
                let gains = own.iter().zip(alone).map(|(own, alone)| 100.0 * (own / alone - 1.0));
                session.record(name, place, "gain in the best segment", "%", gains.fold(f64::MIN, f64::max));
            }
        }
    }
    Ok(())
}

fn fill(player: &Player, trace: &Trace) {
    let all: Vec<_> = (0..trace.values.len() as u32).map(|record| Request::set(record, trace)).collect();
    player.play(&all, 0, 1);
}

/// What playing a trace came to.
struct Played {
    /// Millions of requests a second, segment by segment.
    speeds: Vec<f64>,
    /// After the warm-up; none where there is no table.
    hit_ratio: Option<f64>,
}

fn play(player: &Player, trace: &Trace, threads: usize) -> Result<Played, ExperimentError> {
    let warm_up = trace.requests.len() / WARM_UP;
    let (warm_up, timed) = trace.requests.split_at(warm_up);
    deal(player, trace, warm_up, threads)?;
    let before = player.counts();
    let mut speeds = Vec::new();
    for segment in 0..SEGMENTS {
        let part = |segment| timed.len() * segment / SEGMENTS;
        speeds.push(deal(player, trace, &timed[part(segment)..part(segment + 1)], threads)?);
    }
    let hit_ratio = player.counts().zip(before).map(|(after, before)| {
        let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
        hits as f64 / (hits + misses + after.bypassed - before.bypassed).max(1) as f64
    });
    Ok(Played { speeds, hit_ratio })
}

/// Deals the requests out to the threads in turn; millions of them a second.
fn deal(
    player: &Player,
    trace: &Trace,
    requests: &[Request],
    threads: usize,
) -> Result<f64, ExperimentError> {
    let outcomes = in_parallel(threads, |thread| player.play(requests, thread, threads))?;
    let wrong: u64 = outcomes.iter().map(|outcome| outcome.wrong).sum();
    if wrong > 0 {
        return Err(ExperimentError::wrong(&trace.name, format!("{wrong} values that belong to other keys")));
    }
    let longest = outcomes.iter().map(|outcome| outcome.time).max().unwrap_or_default();
    Ok(requests.len() as f64 / longest.as_secs_f64().max(1e-9) / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressBar;

    fn parameters() -> Parameters {
        toml::from_str(
            "size = 65536\nthreads = [1]\nrequests = 7000\nrecorded = []\n\
             [[stand_ins]]\nname = 'S stand-in'\nrecords = 500\nhottest = 0.1\naccesses = 0.95\nupdates = 0.1\n\
             deletes = 0.2\nvalues = 'etc'\n",
        )
        .unwrap()
    }

    #[test]
    fn all_segments_are_played_and_answered_rightly() {
        let mut session = Session::new(1, ProgressBar::hidden());
        run(&parameters(), &mut session).unwrap();
        let text = format!("{session:?}");
        for part in ["S stand-in, 1 thread, segment 7", "SLB", "gain in the best segment"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn a_table_answers_hot_keys() {
        let trace = parameters().stand_ins[0].draw(20_000).unwrap();
        for (number, name) in Player::NAMES.into_iter().enumerate() {
            let player = Player::make(number, trace.values.len(), 1 << 16).unwrap();
            fill(&player, &trace);
            let played = play(&player, &trace, 1).unwrap();
            assert_eq!((played.speeds.len(), played.hit_ratio.is_some()), (SEGMENTS, name != "alone"));
            // Room for all of them; what is deleted or new misses once. The monitor may look away now and then.
            let answered = played.hit_ratio;
            assert!(name != "SLB" || answered.is_some_and(|ratio| ratio > 0.5), "{answered:?}");
        }
    }

    #[test]
    fn absent_data_is_skipped_in_words() {
        let recorded: Recorded = toml::from_str("name = 'n'\nfile = 'traces/no-such.trace'").unwrap();
        let absent = recorded.read(10).unwrap().unwrap_err();
        assert!(absent.to_string().contains(workload::data::VARIABLE), "{absent}");
    }
}
