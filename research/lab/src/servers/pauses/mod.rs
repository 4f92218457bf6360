//! Kind `server-pauses`: the longest that a single request waits while something large happens in the server.
//!
//! ```text
//!   first core    server, all its threads
//!   second core   prober: one get, its reply, a short sleep, and so on
//!                 loader: makes the event; it waits for the replies of a few requests before it sends the next
//! ```
//!
//! Each event has a server of its own, started for it and filled where the event needs that. The prober watches from
//! the event's beginning until some time after its end. A control follows: a fresh server of the same program, idle,
//! watched for as long up to a bound, because a longer watch meets more of what the machine does by itself. A pause is
//! seen if it lasts longer than the prober's sleep, and then by at most that sleep too short.
//!
//! The loader has the lower priority of the two threads that share a core, so that the prober need not wait for it.
//! Servers take turns, event by event.
//!
//! | module | idea |
//! |---|---|
//! | `event` | what happens in the server, and what must be there before |
//! | `loader` | the connection that makes it happen |
//! | `prober` | the connection that waits |

mod event;
mod loader;
mod prober;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use self::event::Event;
use self::prober::Watched;
use super::contender::{Contender, Running};
use super::cores::Cores;
use super::failed;
use crate::drive::{Endpoint, ProcessClock};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{pin, turns};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    servers: Vec<Contender>,
    /// The servers' threads.
    threads: usize,
    /// The prober's sleep between a reply and the next request, in microseconds.
    sleep_us: u64,
    /// How long the prober goes on after the event, in milliseconds.
    after_ms: u64,
    /// How long a control is watched at most, in milliseconds.
    control_ms: u64,
    events: Vec<Event>,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let names = parameters.servers.iter().map(|server| server.name.as_str());
    let Some(cores) = Cores::find(session, names)? else { return Ok(()) };
    session.announce(session.runs() * parameters.events.len() * parameters.servers.len());
    for run in 0..session.runs() {
        for event in &parameters.events {
            for turn in turns(parameters.servers.len(), run) {
                let contender = &parameters.servers[turn];
                session.begin(format!("{}, {}, run {}", event.name, contender.name, run + 1));
                let start = |session: &mut Session| {
                    contender.start(parameters.threads, &event.arguments(), Some(cores.server), session)
                };
                if let Some(server) = start(session)? {
                    let (watched, time) = eventful(&server, event, parameters, cores)?;
                    drop(server);
                    let Some(idle) = start(session)? else { continue };
                    let at = At::of(&idle)?;
                    let time = time.min(Duration::from_millis(parameters.control_ms));
                    let (control, ()) = on_core(cores.client, || {
                        prober::watch(at, parameters.sleep(), || {
                            thread::sleep(time);
                            Ok(())
                        })
                    })?;
                    record(session, &contender.name, &event.name, watched, control);
                }
                session.end();
            }
        }
    }
    Ok(())
}

impl Parameters {
    fn sleep(&self) -> Duration {
        Duration::from_micros(self.sleep_us)
    }
}

fn record(session: &mut Session, server: &str, event: &str, watched: Watched, control: Watched) {
    let mut record = |metric, value| session.record(server, event, metric, "ms", value);
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let above = milliseconds(watched.longest) - milliseconds(control.longest);
    record("longest request", milliseconds(watched.longest));
    record("longest request of the control", milliseconds(control.longest));
    record("longest request above the control", above);
    record("most server CPU in a request", milliseconds(watched.busiest));
    record("most server CPU in a request of the control", milliseconds(control.busiest));
}

/// What the prober sees while the event happens in `server`, and how long that was.
fn eventful(
    server: &Running,
    event: &Event,
    parameters: &Parameters,
    cores: Cores,
) -> Result<(Watched, Duration), ExperimentError> {
    let at = At::of(server)?;
    on_core(cores.client, || {
        let mut prepared = event.prepare(at)?;
        let begin = Instant::now();
        let (watched, ()) = prober::watch(at, parameters.sleep(), || {
            prepared.happen()?;
            thread::sleep(Duration::from_millis(parameters.after_ms));
            Ok(())
        })?;
        Ok((watched, begin.elapsed()))
    })
}

/// Runs `work` on a thread of its own that is pinned to `core`, as are the threads that it starts.
fn on_core<R: Send>(
    core: usize,
    work: impl FnOnce() -> Result<R, ExperimentError> + Send,
) -> Result<R, ExperimentError> {
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            pin(core)?;
            work()
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A server for those who talk to it.
#[derive(Debug, Clone, Copy)]
struct At<'s> {
    address: SocketAddr,
    /// Its name, for errors.
    server: &'s str,
    /// The clock of its process.
    clock: ProcessClock,
}

impl<'s> At<'s> {
    fn of(server: &'s Running) -> Result<At<'s>, ExperimentError> {
        match (&server.processes[..], &server.endpoints()[..]) {
            ([process], &[Endpoint::Tcp(address)]) => {
                let clock = process.clock().map_err(|error| failed(&server.name, error))?;
                Ok(At { address, server: &server.name, clock })
            }
            _ => Err(ExperimentError::Machine(format!("{}: requests go to one port", server.name))),
        }
    }
}

fn lost(server: &str, error: std::io::Error) -> ExperimentError {
    ExperimentError::Machine(format!("{server}: {error}"))
}
