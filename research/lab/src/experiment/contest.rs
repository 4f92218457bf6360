//! What every comparison does with those that are compared.
//!
//! 1. Of the numbers of threads that a definition asks for, those count that there are cores for
//!    ([`Session::threads`]).
//! 2. All take turns, in every run and at every point ([`Session::take_turns`]).
//! 3. Threads are asked at the same time, each what was drawn for it before. A thread's rate is its requests by its
//!    time on a core or asleep on a lock, and the rates of all threads are added ([`rate`]).
//! 4. Before what is timed goes a tenth of it, with other draws ([`warmed`]).
//! 5. An answer that is wrong stops the experiment ([`expect`]).
//!
//! What is not timed need not take turns: it is done on all cores, whatever comes next on whichever is free
//! ([`Session::on_all_cores`]).

use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ExperimentError, Session};
use crate::measure::{Stopwatch, cores, in_parallel, name_threads, turns};

/// Warm-ups are this part of what is timed.
const WARM_UP: usize = 10;

impl Session {
    /// Those of these numbers of threads that there are cores for; of the others it is said that they are left out.
    ///
    /// # Errors
    /// [`ExperimentError::Machine`] where the cores are not known.
    pub fn threads(&mut self, asked: &[usize]) -> Result<Vec<usize>, ExperimentError> {
        let available = cores()?.len();
        let (there, beyond): (Vec<usize>, Vec<usize>) =
            asked.iter().partition(|&&threads| threads <= available);
        for threads in beyond {
            self.skip(&name_threads(threads), format!("this program may use {available} cores"));
        }
        Ok(there)
    }

    /// In every run and at each of `points` gives every one of `contestants` its turn: its number, the point, the
    /// number of the run. A turn is a step of the progress.
    ///
    /// # Errors
    /// As `turn`.
    pub fn take_turns<P>(
        &mut self,
        contestants: usize,
        points: &[P],
        mut turn: impl FnMut(&mut Session, usize, &P, usize) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        for run in 0..self.runs() {
            for point in points {
                for contestant in turns(contestants, run) {
                    turn(self, contestant, point, run)?;
                    self.end();
                }
            }
        }
        Ok(())
    }

    /// Measures all `cells`, as many at once as `threads`: what was measured of each, in their order.
    ///
    /// # Errors
    /// As `measure`, or [`ExperimentError::Machine`] where there are fewer cores.
    pub fn on_all_cores<C: Sync, M: Send>(
        &self,
        threads: usize,
        cells: &[C],
        measure: impl Fn(&C) -> Result<M, ExperimentError> + Sync,
    ) -> Result<Vec<M>, ExperimentError> {
        let next = AtomicUsize::new(0);
        let work = |_| -> Result<Vec<(usize, M)>, ExperimentError> {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(cell) = cells.get(number) else { return Ok(done) };
                done.push((number, measure(cell)?));
                self.end();
            }
        };
        let mut all = Vec::with_capacity(cells.len());
        for done in in_parallel(threads.min(cells.len()), work)? {
            all.append(&mut done?);
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, measured)| measured).collect())
    }
}

/// What each of so many pinned threads had to say, and the seconds that it took.
///
/// # Errors
/// [`ExperimentError::Machine`] where there are fewer cores.
pub fn timed<A: Send>(
    threads: usize,
    work: impl Fn(usize) -> A + Sync,
) -> Result<Vec<(A, f64)>, ExperimentError> {
    Ok(in_parallel(threads, |thread| {
        let watch = Stopwatch::start();
        let answer = work(thread);
        (answer, watch.elapsed().as_secs_f64().max(1e-9))
    })?)
}

/// Requests a second of all threads together. Each has a lot of `count` requests; what came of it is checked after the
/// clock has stopped.
///
/// # Errors
/// As `check`, or [`ExperimentError::Machine`] where there are fewer cores than lots.
pub fn rate<Q: Sync, A: Send>(
    lots: &[Q],
    count: usize,
    ask: impl Fn(&Q) -> A + Sync,
    mut check: impl FnMut(&Q, A) -> Result<(), ExperimentError>,
) -> Result<f64, ExperimentError> {
    let mut rate = 0.0;
    for (lot, (answer, seconds)) in lots.iter().zip(timed(lots.len(), |thread| ask(&lots[thread]))?) {
        check(lot, answer)?;
        rate += count as f64 / seconds;
    }
    Ok(rate)
}

/// Asks a part of so many requests, and before it one of a tenth.
///
/// # Errors
/// As `part`.
pub fn warmed<R>(
    requests: usize,
    mut part: impl FnMut(usize) -> Result<R, ExperimentError>,
) -> Result<R, ExperimentError> {
    part((requests / WARM_UP).max(1))?;
    part(requests)
}

/// Nothing, if `found` is what was expected of `what`.
///
/// # Errors
/// [`ExperimentError::WrongAnswer`]
pub fn expect<T: PartialEq + Debug>(what: &str, found: T, expected: T) -> Result<(), ExperimentError> {
    if found == expected {
        return Ok(());
    }
    Err(ExperimentError::wrong(what, format!("{found:?} instead of {expected:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressBar;

    #[test]
    fn everybody_has_a_turn_at_every_point_of_every_run() {
        let mut session = Session::new(2, ProgressBar::hidden());
        let mut had = Vec::new();
        let turn = |_: &mut Session, contestant, point: &char, run| {
            had.push((run, *point, contestant));
            Ok(())
        };
        session.take_turns(2, &['a', 'b'], turn).unwrap();
        assert_eq!(had[..4], [(0, 'a', 0), (0, 'a', 1), (0, 'b', 0), (0, 'b', 1)]);
        assert_eq!(had[4..], [(1, 'a', 1), (1, 'a', 0), (1, 'b', 1), (1, 'b', 0)]);
    }

    #[test]
    fn threads_without_a_core_are_left_out_and_named() {
        let available = cores().unwrap().len();
        let mut session = Session::new(1, ProgressBar::hidden());
        assert_eq!(session.threads(&[1, available, available + 1]).unwrap(), [1, available]);
        assert!(format!("{session:?}").contains(&name_threads(available + 1)));
    }

    #[test]
    fn cells_are_measured_once_each_and_keep_their_order() {
        let session = Session::new(1, ProgressBar::hidden());
        let cells: Vec<u64> = (0..100).collect();
        let squares = session.on_all_cores(cores().unwrap().len(), &cells, |cell| Ok(cell * cell)).unwrap();
        assert!(squares.into_iter().eq(cells.iter().map(|cell| cell * cell)));
        let failed = session.on_all_cores(1, &cells, |cell| expect("a cell", *cell, 0)).unwrap_err();
        assert_eq!(failed.to_string(), "a cell answered wrongly: 1 instead of 0");
    }

    #[test]
    fn rates_add_up_and_a_wrong_answer_has_none() {
        let ask =
            |expected: u32| rate(&[3u32], 1000, |lot| lot * 2, |_, found| expect("it", found, expected));
        assert!(ask(6).unwrap() > 0.0);
        assert!(matches!(ask(7), Err(ExperimentError::WrongAnswer { .. })));
        let mut parts = Vec::new();
        let part = |requests| {
            parts.push(requests);
            Ok(())
        };
        warmed(50, part).unwrap();
        assert_eq!(parts, [5, 50]);
    }
}
