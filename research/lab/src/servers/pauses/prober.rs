//! The connection that waits: one get at a time, with a sleep between a reply and the next request.
//!
//! It begins before the work that it watches and ends after it. The work has a thread with a lower priority: Linux
//! gives each thread one of its own.
//!
//! Beside the time that a request takes stands the processor time that the server's process spends meanwhile. What the
//! machine takes away is in the one and not in the other; what the server does before it answers is in both.
//!
//! Rejected: *a busy loop*, which would take the core from the loader; *requests at times that are due*, which would
//! put many of them behind one pause, and count what a reply waits for the prober.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::super::failed;
use super::{At, lost};
use crate::experiment::ExperimentError;

/// A reply that takes so long does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests before the first that counts: connections and cores wake up.
const WARM_UP: usize = 100;

/// How far the priority of the work is below the prober's.
const LOWER: i32 = 10;

/// What the prober has seen: each the most of all requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watched {
    /// From its sending to its reply.
    pub(super) longest: Duration,
    /// What the server's process spent on processors between the two.
    pub(super) busiest: Duration,
}

/// What requests took while `work` was done.
pub(super) fn watch<R: Send>(
    at: At<'_>,
    sleep: Duration,
    work: impl FnOnce() -> Result<R, ExperimentError> + Send,
) -> Result<(Watched, R), ExperimentError> {
    let over = AtomicBool::new(false);
    let (ready, begin) = mpsc::channel();
    thread::scope(|scope| {
        let over = &over;
        let prober = scope.spawn(move || probe(at, sleep, over, ready));
        // An error of the prober is in its result.
        let _ = begin.recv();
        let worker = scope.spawn(|| {
            // Where that is refused, the prober waits for the worker now and then.
            let _ = rustix::process::nice(LOWER);
            work()
        });
        let worked = worker.join();
        over.store(true, Ordering::Relaxed);
        let watched = prober.join().unwrap_or_else(|panic| resume_unwind(panic));
        let worked = worked.unwrap_or_else(|panic| resume_unwind(panic));
        Ok((watched?, worked?))
    })
}

fn probe(
    At { address, server, clock }: At<'_>,
    sleep: Duration,
    over: &AtomicBool,
    ready: mpsc::Sender<()>,
) -> Result<Watched, ExperimentError> {
    let lost = |error| lost(server, error);
    let mut stream = TcpStream::connect(address).map_err(lost)?;
    stream.set_nodelay(true).map_err(lost)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
    let spent = || clock.now().map_err(|error| failed(server, error));
    let mut request = || {
        let before = spent()?;
        let sent = Instant::now();
        // Nobody stores it: the events may take any item.
        stream.write_all(b"get probe\r\n").map_err(lost)?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).map_err(lost)?;
        let longest = sent.elapsed();
        let busiest = spent()? - before;
        if &reply != b"END\r\n" {
            let answer = format!("it answered '{}' to a get", reply.escape_ascii());
            return Err(ExperimentError::wrong(server, answer));
        }
        thread::sleep(sleep);
        Ok(Watched { longest, busiest })
    };
    for _ in 0..WARM_UP {
        request()?;
    }
    drop(ready);
    let mut watched = Watched::default();
    while !over.load(Ordering::Relaxed) {
        let Watched { longest, busiest } = request()?;
        watched.longest = watched.longest.max(longest);
        watched.busiest = watched.busiest.max(busiest);
    }
    Ok(watched)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    use crate::drive::ProcessClock;

    #[test]
    fn a_pause_is_seen() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let pauses = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut client, _) = listener.accept().unwrap();
                let mut request = [0; 11];
                while client.read_exact(&mut request).is_ok() {
                    if pauses.swap(false, Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(80));
                    }
                    client.write_all(b"END\r\n").unwrap();
                }
            });
            let clock = ProcessClock::of(std::process::id()).unwrap();
            let at = At { address, server: "a", clock };
            let watched = watch(at, Duration::from_micros(100), || {
                pauses.store(true, Ordering::Relaxed);
                // Until a request waits for it: on a busy machine that may be any time.
                while pauses.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                Ok(7)
            });
            let (watched, seven) = watched.unwrap();
            assert!(watched.longest >= Duration::from_millis(80), "{watched:?}");
            assert!(watched.busiest > Duration::ZERO, "{watched:?}");
            assert_eq!(seven, 7);
        });
    }
}
