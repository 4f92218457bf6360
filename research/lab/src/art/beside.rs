//! Kind `art-beside`: what a reader or a writer keeps of its throughput while another thread reorganises the tree.
//!
//! The other thread lays the paths of the hottest keys together, in small steps, and begins anew when it is through:
//! more than any real schedule does. It rests after each step for as long as the step took, as by [`art::Schedule`]'s
//! default; or does not rest at all. The worker is alone and beside each in turn, run by run, on the same core with
//! keys drawn alike. Nothing is timed before the first nodes have been moved, and a run in which none were moved is an
//! error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use art::{Reorganized, Schedule};
use serde::Deserialize;

use super::Size;
use super::draws::{Asked, Draws, name_skew};
use super::grown::{Grown, Pages, sum};
use super::keys::KeySet;
use super::lookups::Learning;
use crate::experiment::{ExperimentError, Session, expect};
use crate::measure::{Stopwatch, cores, in_parallel};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Numbers of keys, of 64 bits.
    sizes: Vec<Size>,
    /// Which keys.
    set: KeySet,
    /// The pages that they live in.
    pages: Pages,
    /// The exponent of the distribution.
    skew: f64,
    /// Operations in a run.
    operations: usize,
    /// What tells which keys are hot.
    learned: Learning,
    /// Nodes and leaves that the other thread looks at in a step.
    step: usize,
}

/// What a worker does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    /// Looks keys up.
    Reader,
    /// Puts other leaves in for keys that are there.
    Replacer,
    /// Takes a key out, or puts it in where it is not there.
    Toggler,
}

impl Worker {
    pub(super) const ALL: [Worker; 3] = [Worker::Reader, Worker::Replacer, Worker::Toggler];

    fn name(self) -> &'static str {
        match self {
            Worker::Reader => "reader",
            Worker::Replacer => "writer of other values",
            Worker::Toggler => "writer of keys that come and go",
        }
    }

    /// Does its work: how long it took.
    pub(super) fn work(
        self,
        grown: &Grown<8>,
        asked: &Asked<8>,
        begin: impl FnOnce(),
    ) -> Result<Duration, ExperimentError> {
        /// Operations after which a writer lets go of what it has removed.
        const REFRESH: usize = 64;
        let mut reader = grown.tree().pin();
        begin();
        let watch = Stopwatch::start();
        if self == Worker::Reader {
            let found = sum(asked.keys.iter().map(|key| reader.get(key)));
            let time = watch.elapsed();
            expect("a tree", found, asked.expected)?;
            return Ok(time);
        }
        for (keys, records) in asked.keys.chunks(REFRESH).zip(asked.records.chunks(REFRESH)) {
            for (key, &record) in keys.iter().zip(records) {
                if self == Worker::Replacer || reader.remove(key).is_none() {
                    reader.insert(key, record)?;
                }
            }
            reader.refresh();
        }
        Ok(watch.elapsed())
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let available = cores()?.len();
    if available < 2 {
        for worker in Worker::ALL {
            session.skip(worker.name(), format!("this program may use {available} core"));
        }
        return Ok(());
    }
    session.announce(parameters.sizes.len() * (1 + session.runs() * Worker::ALL.len()));
    for size in &parameters.sizes {
        session.begin(format!("{}: growing", size.name));
        let keys = parameters.set.keys::<8>(size.keys)?;
        let grown = Grown::new(&keys, parameters.pages)?;
        let mut draws = Draws::new(&keys, parameters.skew)?;
        let seen = draws.next(parameters.learned.lookups);
        let hot = grown.learn(&seen.keys, parameters.learned.sample_every, parameters.learned.samples);
        let point = format!("{}, {}", size.name, name_skew(parameters.skew));
        session.end();
        for run in 0..session.runs() {
            for worker in Worker::ALL {
                session.begin(format!("{}, {point}: run {} of {}", worker.name(), run + 1, session.runs()));
                measure(parameters, &grown, &hot, worker, &mut draws, run, &point, session)?;
                session.end();
            }
        }
        // All that was there is there.
        grown.look_up(&keys, (0..size.keys).sum())?;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments)]
fn measure(
    parameters: &Parameters,
    grown: &Grown<8>,
    hot: &[[u8; 8]],
    worker: Worker,
    draws: &mut Draws<'_, 8>,
    run: usize,
    point: &str,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    // How long the other rests, and what its numbers are called.
    let others = [(Schedule::default().rest, ""), (0.0, ", without rests")];
    let mut rates = [0.0; 3];
    for turn in 0..3 {
        let turn = (turn + run) % 3;
        let asked = draws.next(parameters.operations);
        let time = if let Some(&(rest, how)) = others.get(turn) {
            let (time, moved) = work_beside(worker, grown, &asked, hot, parameters.step, rest)?;
            let places = (moved.nodes + moved.leaves) as f64;
            let metric = format!("moved meanwhile{how}");
            session.record(worker.name(), point, metric, "M/s", places / time.as_secs_f64() / 1e6);
            time
        } else {
            let work = |_| worker.work(grown, &asked, || ());
            in_parallel(1, work)?.remove(0)?
        };
        grown.restore(&asked)?;
        rates[turn] = asked.keys.len() as f64 / time.as_secs_f64().max(1e-9);
    }
    let alone = rates[2];
    session.record(worker.name(), point, "alone", "M/s", alone / 1e6);
    for (rate, (_, how)) in rates.into_iter().zip(others) {
        session.record(worker.name(), point, format!("beside a reorganisation{how}"), "M/s", rate / 1e6);
        session.record(worker.name(), point, format!("share kept{how}"), "x", rate / alone);
    }
    Ok(())
}

/// Ends the other thread, also where the worker fails.
struct Finish<'f>(&'f AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What one of the two threads has to say.
enum Said {
    Worked(Result<Duration, ExperimentError>),
    Moved(Reorganized),
}

/// Lets a worker work while another thread reorganises: how long it took, and what was moved meanwhile.
pub(super) fn work_beside(
    worker: Worker,
    grown: &Grown<8>,
    asked: &Asked<8>,
    hot: &[[u8; 8]],
    step: usize,
    rest: f64,
) -> Result<(Duration, Reorganized), ExperimentError> {
    let (moving, finished) = (AtomicBool::new(false), AtomicBool::new(false));
    let work = || {
        let _finish = Finish(&finished);
        worker.work(grown, asked, || {
            while !moving.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        })
    };
    let reorganize = || {
        let mut moved = Reorganized::default();
        while !finished.load(Ordering::Relaxed) && !moved.full {
            let mut reorganization = grown.tree().reorganization(hot.to_vec());
            let mut goes_on = true;
            while goes_on && !finished.load(Ordering::Relaxed) {
                goes_on = reorganization.step_and_rest(step, rest).is_continue();
                moving.store(true, Ordering::Relaxed);
            }
            let done = reorganization.done();
            moved.nodes += done.nodes;
            moved.leaves += done.leaves;
            moved.full |= done.full;
        }
        moved
    };
    let both = |thread| if thread == 0 { Said::Worked(work()) } else { Said::Moved(reorganize()) };
    let said = in_parallel(2, both)?;
    let Ok([Said::Worked(time), Said::Moved(moved)]) = <[Said; 2]>::try_from(said) else {
        unreachable!("the first works, the second moves")
    };
    if moved.full || moved.nodes + moved.leaves == 0 {
        let found = format!("{moved:?} of {} hot keys", hot.len());
        return Err(ExperimentError::wrong("a reorganisation", found));
    }
    Ok((time?, moved))
}
