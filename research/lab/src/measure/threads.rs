//! Cores, pinned threads that start together, and the order in which alternatives take turns.

use std::sync::Barrier;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Why a thread could not be put on a core.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CoreError {
    /// The system refused.
    #[error("the system does not let this thread choose its core: {0}")]
    Refused(Errno),
    /// More threads than cores were asked for.
    #[error("{wanted} threads need {wanted} cores, and this program may use {available}")]
    TooFew {
        /// Threads asked for.
        wanted: usize,
        /// Cores there are.
        available: usize,
    },
}

/// The cores that this thread may use.
///
/// # Errors
/// [`CoreError::Refused`]
pub fn cores() -> Result<Vec<usize>, CoreError> {
    let allowed = sched_getaffinity(None).map_err(CoreError::Refused)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}

/// Lets this thread run on `core` alone, from now on.
///
/// # Errors
/// [`CoreError::Refused`]
pub fn pin(core: usize) -> Result<(), CoreError> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).map_err(CoreError::Refused)
}

/// Runs `work` on a thread of its own that is pinned to `core`, and gives back what it returned: who calls may run on
/// as many cores afterwards as before.
///
/// # Errors
/// [`CoreError::Refused`]
///
/// # Panics
/// As `work` does.
pub fn on_core<R: Send>(core: usize, work: impl FnOnce() -> R + Send) -> Result<R, CoreError> {
    std::thread::scope(|scope| {
        let pinned = scope.spawn(|| pin(core).map(|()| work()));
        pinned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Runs `work(0)` to `work(threads - 1)` at the same time, each on a thread pinned to its own core, and gives back what
/// they returned. All of them have been pinned before the first one begins.
///
/// # Errors
/// [`CoreError`]
///
/// # Panics
/// As `work` does.
pub fn in_parallel<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Result<Vec<R>, CoreError> {
    let cores = cores()?;
    if threads > cores.len() {
        return Err(CoreError::TooFew { wanted: threads, available: cores.len() });
    }
    let barrier = Barrier::new(threads);
    let begin = |thread: usize| {
        let pinned = pin(cores[thread]);
        // Also where pinning failed: the others wait here.
        barrier.wait();
        pinned.map(|()| work(thread))
    };
    let begin = &begin;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || begin(thread))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// A number of threads in words: a point in results.
///
/// ```
/// use lookaside_lab::measure::name_threads;
///
/// assert_eq!((name_threads(1).as_str(), name_threads(2).as_str()), ("1 thread", "2 threads"));
/// ```
#[must_use]
pub fn name_threads(threads: usize) -> String {
    if threads == 1 { "1 thread".into() } else { format!("{threads} threads") }
}

/// The order in which `alternatives` take their turns in run number `run`: every other run goes backwards, and every
/// second one begins one further on, so that none always follows the same neighbour or is always the first.
///
/// ```
/// use lookaside_lab::measure::turns;
///
/// assert_eq!(turns(3, 0).collect::<Vec<_>>(), [0, 1, 2]);
/// assert_eq!(turns(3, 1).collect::<Vec<_>>(), [2, 1, 0]);
/// assert_eq!(turns(3, 2).collect::<Vec<_>>(), [1, 2, 0]);
/// ```
pub fn turns(alternatives: usize, run: usize) -> impl Iterator<Item = usize> {
    (0..alternatives).map(move |turn| {
        let turn = if run.is_multiple_of(2) { turn } else { alternatives - 1 - turn };
        (turn + run / 2) % alternatives
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn threads_run_together_each_on_its_own_core() {
        let available = cores().unwrap().len();
        let running = AtomicUsize::new(0);
        let places = in_parallel(available, |thread| {
            running.fetch_add(1, Ordering::Relaxed);
            // Ends only if all of them run at once.
            while running.load(Ordering::Relaxed) < available {
                std::thread::yield_now();
            }
            (thread, cores().unwrap())
        })
        .unwrap();
        let mut used: Vec<_> = places.iter().flat_map(|(_, cores)| cores.clone()).collect();
        used.sort_unstable();
        assert_eq!(used, cores().unwrap());
        assert!(places.iter().enumerate().all(|(at, (thread, cores))| at == *thread && cores.len() == 1));
    }

    #[test]
    fn more_threads_than_cores_are_refused() {
        let available = cores().unwrap().len();
        let refused = in_parallel(available + 1, |_| ()).unwrap_err();
        assert_eq!(refused, CoreError::TooFew { wanted: available + 1, available });
    }

    #[test]
    fn everybody_takes_a_turn_in_every_run() {
        for alternatives in 1..7 {
            let mut firsts = vec![0; alternatives];
            for run in 0..alternatives * 2 {
                let mut order: Vec<_> = turns(alternatives, run).collect();
                firsts[order[0]] += 1;
                order.sort_unstable();
                assert!(order.into_iter().eq(0..alternatives));
            }
            assert!(firsts.iter().all(|&times| times > 0), "{alternatives}: {firsts:?}");
        }
    }
}
