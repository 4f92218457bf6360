//! Playing a trace against a server: get, and on a miss set.
//!
//! One connection, blocking: what is under way is one window (see `trace`), so there is nothing to wait for but its
//! replies. The sets that follow a window's misses and the next window's gets go out in one write. Every reply is
//! checked against its request and every value against its key.

use std::fmt;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde::Serialize;

use super::DriveError;
use super::checker::Checker;
use super::endpoint::{Endpoint, Wire};
use super::items::Items;
use super::latency::{Latencies, LatencySummary};
use super::process::ProcessClock;
use super::script::{self, Script};
use super::statistics::Statistics;
use super::tally::Tally;
use super::trace::{RecordedTrace, WorkingSet};
use crate::measure::processor_time;
use crate::report::Table;

/// A server that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes read at once.
const PIECE: usize = 256 << 10;
/// Windows between two looks at the progress.
const SHOW: u64 = 4096;

/// A trace, rendered, with the items that it is about.
pub struct Replay<'i> {
    items: &'i Items,
    windows: Script,
    working_set: WorkingSet,
}

/// How far a replay has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    /// Gets so far.
    pub gets: u64,
    /// Gets that found their value.
    pub hits: u64,
    /// Bytes of keys and values in the sets that misses were followed by.
    pub refilled: u64,
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayReport {
    /// Which server.
    pub server: String,
    /// The memory it was given, in MiB, where that was decided by the replay.
    pub mebibytes: Option<u64>,
    /// What a cache that holds everything would hold.
    pub working_set: WorkingSet,
    /// Requests of the trace.
    pub requests: u64,
    /// Gets among them.
    pub gets: u64,
    /// Gets that found their value.
    pub hits: u64,
    /// Hits over gets.
    pub hit_ratio: f64,
    /// Sets, those of the trace and those that misses were followed by.
    pub sets: u64,
    /// Requests that the server answered with `SERVER_ERROR`.
    pub refused: u64,
    /// Items that the server evicted meanwhile, by its own account; none where it gives none.
    pub evictions: Option<u64>,
    /// How long it took.
    pub seconds: f64,
    /// Requests of the trace a second.
    pub requests_per_second: f64,
    /// How long windows took until their replies were there; a request's is that of its window.
    pub latency: LatencySummary,
    /// Processor time of the player for a request of the trace, in microseconds.
    pub client_cpu: f64,
    /// Processor time of the server for a request of the trace, in microseconds; none where its process is not known.
    pub server_cpu: Option<f64>,
}

impl<'i> Replay<'i> {
    /// Renders `trace` in windows of up to `depth` requests.
    #[must_use]
    pub fn new(trace: &RecordedTrace, items: &'i Items, depth: usize) -> Replay<'i> {
        Replay { items, windows: trace.windows(items, depth.max(1)), working_set: trace.working_set(items) }
    }

    /// What a cache that holds everything would hold.
    #[must_use]
    pub fn working_set(&self) -> WorkingSet {
        self.working_set
    }

    /// Plays the trace. `name` is the server's in the report, `clock` its process's.
    ///
    /// # Errors
    /// [`DriveError`], if only one reply or value is not as it should be.
    pub fn play(
        &self,
        name: &str,
        endpoint: &Endpoint,
        clock: Option<ProcessClock>,
        bar: &ProgressBar,
    ) -> Result<ReplayReport, DriveError> {
        self.play_while(name, endpoint, clock, bar, |_| true)
    }

    /// The same up to the first window after which `goes_on` says no.
    ///
    /// # Errors
    /// As [`Replay::play`].
    pub fn play_while(
        &self,
        name: &str,
        endpoint: &Endpoint,
        clock: Option<ProcessClock>,
        bar: &ProgressBar,
        mut goes_on: impl FnMut(Progress) -> bool,
    ) -> Result<ReplayReport, DriveError> {
        bar.set_length(self.windows.operations());
        bar.set_position(0);
        let refused = |error| DriveError::Connect { endpoint: endpoint.to_string(), error };
        let evictions = || Statistics::of(endpoint).map(|statistics| statistics.number("evictions"));
        let evicted_before = evictions()?;
        let mut player = Player {
            wire: endpoint.connect(PATIENCE).map_err(refused)?,
            requests: Vec::new(),
            received: Vec::new(),
            missed: Vec::new(),
            refilled: 0,
            tally: Tally::default(),
            latencies: Latencies::default(),
        };
        let spent = || clock.map(|clock| clock.now()).transpose();
        let mut requests = 0;
        let (own_before, server_before, start) = (processor_time(), spent()?, Instant::now());
        for batch in 0..self.windows.batches() {
            let (range, part) = self.windows.part(batch, 0);
            player.tally.gets += u64::from(part.keys);
            requests += u64::from(part.replies);
            player.window(self.items, self.windows.bytes(range))?;
            if (batch as u64).is_multiple_of(SHOW) {
                bar.set_position(player.tally.gets);
            }
            let Tally { gets, hits, .. } = player.tally;
            if !goes_on(Progress { gets, hits, refilled: player.refilled }) {
                break;
            }
        }
        // The last misses.
        player.window(self.items, b"")?;
        let seconds = start.elapsed().as_secs_f64();
        let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests.max(1) as f64;
        let client_cpu = per_request(processor_time() - own_before);
        let server_cpu = server_before.zip(spent()?).map(|(before, after)| per_request(after - before));
        let Tally { gets, hits, stored, refused, .. } = player.tally;
        Ok(ReplayReport {
            server: name.to_owned(),
            mebibytes: None,
            working_set: self.working_set,
            requests,
            gets,
            hits,
            hit_ratio: hits as f64 / gets.max(1) as f64,
            sets: stored,
            refused,
            evictions: evicted_before.zip(evictions()?).map(|(before, after)| after.saturating_sub(before)),
            seconds,
            requests_per_second: requests as f64 / seconds.max(1e-9),
            latency: player.latencies.summary(),
            client_cpu,
            server_cpu,
        })
    }
}

struct Player {
    wire: Box<dyn Wire>,
    /// What is sent: the sets that are owed, and a window.
    requests: Vec<u8>,
    received: Vec<u8>,
    /// Sets that are owed for misses.
    missed: Vec<u8>,
    /// Bytes of keys and values in all sets that were owed.
    refilled: u64,
    tally: Tally,
    latencies: Latencies,
}

impl Player {
    /// Sends the sets that are owed and a window, and takes in the replies.
    fn window(&mut self, items: &Items, window: &[u8]) -> Result<(), DriveError> {
        self.requests.clear();
        self.requests.append(&mut self.missed);
        self.requests.extend_from_slice(window);
        let replies = count_replies(&self.requests);
        if replies == 0 {
            return Ok(());
        }
        let sent = Instant::now();
        self.wire.write_all(&self.requests).map_err(given_up)?;
        let before = self.tally.replies;
        let (mut checker, mut filled, mut needed) = (Checker::default(), 0, 1);
        let (mut value, missed) = (Vec::new(), &mut self.missed);
        while self.tally.replies - before < replies {
            if self.received.len() < filled + PIECE.max(needed) {
                self.received.resize(filled + PIECE.max(needed), 0);
            }
            match self.wire.receive(&mut self.received[filled..]).map_err(given_up)? {
                0 => return Err(DriveError::Closed),
                count => {
                    filled += count;
                    self.tally.received += count as u64;
                }
            }
            if filled < needed {
                continue;
            }
            let refilled = &mut self.refilled;
            let set = |key: &[u8]| {
                items.value(key, 0, &mut value);
                *refilled += (key.len() + value.len()) as u64;
                script::set(key, &value, missed);
            };
            let received = &self.received[..filled];
            let checked = checker.check(items.contents(), &self.requests, received, &mut self.tally, set)?;
            self.received.copy_within(checked.consumed..filled, 0);
            (filled, needed) = (filled - checked.consumed, checked.needed);
        }
        if filled > 0 {
            return Err(DriveError::Surplus);
        }
        self.latencies.record(sent.elapsed().as_nanos() as u64, replies);
        Ok(())
    }
}

fn given_up(error: io::Error) -> DriveError {
    DriveError::of_wire(error, PATIENCE)
}

/// Replies that the requests are answered with: one each.
fn count_replies(requests: &[u8]) -> u64 {
    let (mut at, mut replies) = (0, 0);
    while at < requests.len() {
        at += script::request_length(&requests[at..]);
        replies += 1;
    }
    replies
}

/// Replays side by side, as a table.
#[derive(Debug)]
pub struct SideBySide<'r>(pub &'r [ReplayReport]);

impl fmt::Display for SideBySide<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "server",
            "-m MiB",
            "hits %",
            "evictions",
            "refused",
            "requests/s",
            "p50 us",
            "p90",
            "p99",
            "p99.9",
            "max",
            "server us",
            "client us",
        ]);
        let optional = |number: Option<String>| number.unwrap_or_else(|| "-".into());
        for report in self.0 {
            let LatencySummary { p50, p90, p99, p99_9, max, .. } = report.latency;
            let micros = |time: f64| format!("{time:.1}");
            table.add([
                report.server.clone(),
                optional(report.mebibytes.map(|size| size.to_string())),
                format!("{:.3}", 100.0 * report.hit_ratio),
                optional(report.evictions.map(|count| count.to_string())),
                report.refused.to_string(),
                format!("{:.0}", report.requests_per_second),
                micros(p50),
                micros(p90),
                micros(p99),
                micros(p99_9),
                micros(max),
                optional(report.server_cpu.map(|time| format!("{time:.2}"))),
                format!("{:.2}", report.client_cpu),
            ]);
        }
        table.fmt(f)
    }
}
