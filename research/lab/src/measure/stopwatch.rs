//! Wall time less the time that the thread waited for a core.
//!
//! Linux counts for every thread how long it was ready to run while another thread had its core: the second number of
//! `/proc/thread-self/schedstat`. Where that file is absent nothing is known, and nothing is subtracted. What a
//! hypervisor takes away is not in it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// How long this thread has waited for a core since it began; zero where the kernel does not tell.
#[must_use]
pub fn waited_for_core() -> Duration {
    thread_local! {
        static STATISTICS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let mut text = [0; 64];
    let read = STATISTICS.with(|file| file.as_ref()?.read_at(&mut text, 0).ok());
    parse(&text[..read.unwrap_or(0)]).unwrap_or_default()
}

/// How long the threads of a process have waited for a core since they began, in sum; zero where the kernel does not
/// tell. Threads that have ended are not in it.
#[must_use]
pub fn process_waited_for_core(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| parse(&fs::read(thread.path().join("schedstat")).ok()?)).sum()
}

fn parse(text: &[u8]) -> Option<Duration> {
    let waited = std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?;
    waited.parse().ok().map(Duration::from_nanos)
}

/// Processor time of this thread since it began: time in which it had a core, and the core was not lent to somebody
/// else by a hypervisor that tells. Sleep, of whatever kind, is not in it.
///
/// # Panics
/// Never: every thread has such a clock.
#[must_use]
pub fn processor_time() -> Duration {
    let clock = ClockId::CLOCK_THREAD_CPUTIME_ID;
    clock_gettime(clock).expect("a thread has a clock of its own").into()
}

/// A running measurement of time on this thread.
#[derive(Debug)]
pub struct Stopwatch {
    started: Instant,
    waited: Duration,
}

impl Stopwatch {
    /// Starts.
    #[must_use]
    pub fn start() -> Stopwatch {
        // In this order, and at the end the other way round: a wait between the two readings is counted as time then,
        // rather than taken from it, and what was measured is never too short.
        let started = Instant::now();
        Stopwatch { started, waited: waited_for_core() }
    }

    /// Time since the start, less the time that this thread waited for a core. To be called by the thread that started.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        let waited = waited_for_core().saturating_sub(self.waited);
        self.started.elapsed().saturating_sub(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{cores, pin};
    use std::path::Path;
    use std::sync::Barrier;

    #[test]
    fn the_second_number_is_the_wait() {
        assert_eq!(parse(b"534294888 500071694 154\n"), Some(Duration::from_nanos(500_071_694)));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"1 x 2"), None);
    }

    #[test]
    fn a_process_has_waited_as_long_as_its_threads_or_longer() {
        let core = cores().unwrap()[0];
        let barrier = Barrier::new(3);
        let compete = || {
            pin(core).unwrap();
            let wall = Instant::now();
            while wall.elapsed() < Duration::from_millis(100) {}
            let waited = waited_for_core();
            // Both stay until the process was looked at: what a thread has waited goes with it.
            barrier.wait();
            barrier.wait();
            waited
        };
        let (threads, process) = std::thread::scope(|scope| {
            let competing = [scope.spawn(compete), scope.spawn(compete)];
            barrier.wait();
            let process = process_waited_for_core(std::process::id());
            barrier.wait();
            (competing.map(|thread| thread.join().unwrap()).into_iter().sum::<Duration>(), process)
        });
        // Other tests may have threads, too.
        assert!(process >= threads, "{process:?}, of which two threads {threads:?}");
        if Path::new("/proc/thread-self/schedstat").exists() {
            assert!(threads >= Duration::from_millis(20), "one of two has no core: {threads:?}");
        }
        assert_eq!(process_waited_for_core(u32::MAX), Duration::ZERO);
    }

    /// Two threads compete for one core: each has it for half of the time, and the stopwatch counts that half only.
    #[test]
    fn waiting_for_a_core_is_not_counted_and_sleeping_is() {
        let core = cores().unwrap()[0];
        let barrier = Barrier::new(2);
        let compete = || {
            pin(core).unwrap();
            barrier.wait();
            let (wall, watch) = (Instant::now(), Stopwatch::start());
            while wall.elapsed() < Duration::from_millis(300) {}
            (watch.elapsed(), wall.elapsed())
        };
        let (own, wall) = std::thread::scope(|scope| {
            let other = scope.spawn(compete);
            let (own, wall) = scope.spawn(compete).join().unwrap();
            let (other, _) = other.join().unwrap();
            (own + other, wall)
        });
        if Path::new("/proc/thread-self/schedstat").exists() {
            // Both together had one core: not much more than the wall's time, and certainly not twice of it.
            assert!(own < wall * 3 / 2, "{own:?} of {wall:?}");
        } else {
            assert!(own > wall * 3 / 2, "a plain watch counts both: {own:?} of {wall:?}");
        }
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(20));
        assert!(watch.elapsed() >= Duration::from_millis(10), "a sleep is the thread's own choice");
    }
}
