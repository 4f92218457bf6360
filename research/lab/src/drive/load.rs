//! Driving servers with a load, and what that comes to.
//!
//! Everything is drawn and rendered before the clock starts, and what is measured was not asked in the warm-up. A run
//! that is to last a given time cannot know how much it will need: it renders what it would need at the warm-up's
//! speed, up to a bound, and starts again at the beginning where that is not enough; the report says how often.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use serde::Serialize;
use workload::generator;

use super::DriveError;
use super::demand::{Demand, Draws};
use super::driver::{Driver, Inspection, Outcome, Pace, Until};
use super::endpoint::Endpoint;
use super::items::Items;
use super::latency::{Latencies, LatencySummary};
use super::process::ProcessClock;
use super::script::{Dialect, Script, Writer};
use super::tally::Tally;
use crate::measure::{pin, processor_time};

/// Bytes that all scripts of a run may take together.
const SCRIPTS: usize = 1 << 30;
/// Operations rendered for a run that lasts a given time and has no warm-up to go by.
const UNKNOWN_SPEED: u64 = 1_000_000;
/// Sets sent at once to fill a server, and bytes after which fewer are.
const FILLING: usize = 64;
const FILLING_BYTES: usize = 256 << 10;
/// How long servers may say nothing, unless a load says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(100);

/// Rates that can be kept: one operation in a quarter of an hour, and one in a nanosecond.
const RATES: RangeInclusive<f64> = 1e-3..=1e9;

/// How much of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// So many operations: keys asked for and sets.
    Operations(u64),
    /// So long.
    Time(Duration),
}

/// A load.
#[derive(Debug)]
pub struct Load {
    /// The servers; keys are spread over them by hash.
    pub servers: Vec<Endpoint>,
    /// What they are spoken to in.
    pub dialect: Dialect,
    /// Records.
    pub records: u64,
    /// Their keys and values.
    pub items: Items,
    /// What is asked for.
    pub demand: Demand,
    /// Clients, each with a connection to each server.
    pub connections: usize,
    /// Gets that a client sends at once.
    pub depth: usize,
    /// Keys in a get.
    pub keys_per_get: usize,
    /// Threads that the clients are dealt out to.
    pub threads: usize,
    /// Cores that the threads are pinned to, in turn; none: not pinned.
    pub cores: Vec<usize>,
    /// Everything drawn is a function of it.
    pub seed: u64,
    /// Before anything is measured.
    pub warm_up: Amount,
    /// What is measured.
    pub measured: Amount,
    /// Operations a second that are due, whether or not the servers keep up; none: clients wait for replies.
    pub rate: Option<f64>,
    /// Whether every reply is checked, and every value.
    pub check: bool,
    /// How long the servers may say nothing while they are waited for. What lasts for a time is over this long after
    /// its end, whatever the servers say until then.
    pub patience: Duration,
}

/// What a load came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadReport {
    /// Keys asked for and sets.
    pub operations: u64,
    /// Keys asked for.
    pub gets: u64,
    /// Of these, those that were there.
    pub hits: u64,
    /// Hits over gets; none without gets.
    pub hit_ratio: Option<f64>,
    /// Sets that were carried out.
    pub sets: u64,
    /// Requests that the server answered with `SERVER_ERROR`.
    pub refused: u64,
    /// From the first byte sent to the last one received.
    pub seconds: f64,
    /// Operations a second.
    pub operations_per_second: f64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Of requests; a get of many keys is one.
    pub latency: LatencySummary,
    /// Processor time of the load generator for one operation, in microseconds.
    pub client_cpu: f64,
    /// Processor time of the servers for one operation, in microseconds; none where it is not known which process they
    /// are.
    pub server_cpu: Option<f64>,
    /// How often the operations that were drawn were gone through; more than 1 if there were too few.
    pub rounds: f64,
    /// Operations that were due and not sent, because the servers did not keep up with the rate.
    pub overdue: u64,
    /// Whether every value was checked.
    pub checked: bool,
}

/// What came of filling servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Filled {
    /// Records stored.
    pub stored: u64,
    /// Records refused with `SERVER_ERROR`.
    pub refused: u64,
}

/// One thread's part.
struct Hand {
    driver: Driver,
    draws: Draws,
    core: Option<usize>,
}

/// What one thread did.
struct Played {
    outcome: Outcome,
    own_time: Duration,
}

impl Load {
    /// The least of a load: one client that asks for one key at a time, nothing drawn yet, and no replies checked.
    #[must_use]
    pub fn new(servers: Vec<Endpoint>, records: u64, items: Items, demand: Demand) -> Load {
        Load {
            servers,
            dialect: Dialect::Classic,
            records,
            items,
            demand,
            connections: 1,
            depth: 1,
            keys_per_get: 1,
            threads: 1,
            cores: Vec::new(),
            seed: 0,
            warm_up: Amount::Operations(0),
            measured: Amount::Operations(0),
            rate: None,
            check: false,
            patience: PATIENCE,
        }
    }

    /// Stores every record, in order.
    ///
    /// # Errors
    /// [`DriveError`]
    pub fn fill(&self, bar: &ProgressBar) -> Result<Filled, DriveError> {
        self.examine()?;
        bar.set_message("filling");
        bar.set_length(self.records);
        let connections = self.connections.min(8);
        let inspection = self.inspection(false);
        let mut driver = Driver::connect(&self.servers, connections, inspection, self.patience)?;
        let mut filled = Filled { stored: 0, refused: 0 };
        let (mut key, mut value, mut next) = (Vec::new(), Vec::new(), 0);
        while next < self.records {
            let mut writer = Writer::new(self.servers.len(), 1).in_dialect(self.dialect);
            let mut in_batch = 0;
            let mut bytes = 0;
            while next < self.records && writer.script().size() < 16 * FILLING_BYTES {
                self.items.key(next, &mut key);
                self.items.value(&key, 0, &mut value);
                writer.set(&key, &value);
                (next, in_batch, bytes) = (next + 1, in_batch + 1, bytes + value.len());
                if in_batch == FILLING || bytes > FILLING_BYTES {
                    writer.end_batch();
                    (in_batch, bytes) = (0, 0);
                }
            }
            writer.end_batch();
            let outcome = driver.play(&writer.finish(), Pace::Closed, Until::Sent, &AtomicU64::new(0))?;
            filled.stored += outcome.tally.stored;
            filled.refused += outcome.tally.refused;
            bar.set_position(next);
        }
        Ok(filled)
    }

    /// Warms up and measures. `clocks` are those of the servers' processes, if they are known.
    ///
    /// # Errors
    /// [`DriveError`], if only one reply is not as it should be.
    pub fn run(&self, clocks: &[ProcessClock], bar: &ProgressBar) -> Result<LoadReport, DriveError> {
        self.examine()?;
        let mut hands = self.hands()?;
        let mut speed = None;
        if self.warm_up != Amount::Operations(0) && self.warm_up != Amount::Time(Duration::ZERO) {
            let warm_up = self.phase("warming up", self.warm_up, None, &mut hands, &[], bar)?;
            speed = Some(warm_up.operations as f64 / warm_up.seconds);
        }
        self.phase("measuring", self.measured, speed, &mut hands, clocks, bar)
    }

    fn examine(&self) -> Result<(), DriveError> {
        let wrong = |reason: String| Err(DriveError::Settings(reason));
        if self.servers.is_empty() {
            return wrong("there is no server to drive".into());
        }
        if [self.connections, self.depth, self.keys_per_get, self.threads].contains(&0) {
            return wrong("connections, depth, keys in a get and threads are at least 1 each".into());
        }
        if self.connections < self.threads {
            return wrong(format!(
                "{} threads need a connection each, and there are {}",
                self.threads, self.connections
            ));
        }
        if self.rate.is_some_and(|rate| !RATES.contains(&rate)) {
            return wrong("a rate is a number of operations a second from 0.001 to 1,000,000,000".into());
        }
        let in_batch = (self.depth as u64).saturating_mul(self.keys_per_get as u64);
        if self.items.largest_value().saturating_mul(in_batch) > SCRIPTS as u64 {
            return wrong(format!(
                "{in_batch} values at once, of up to {} bytes, are more than {} MiB",
                self.items.largest_value(),
                SCRIPTS >> 20
            ));
        }
        self.items.examine(self.records)
    }

    fn inspection(&self, check: bool) -> Inspection {
        let contents = check.then(|| self.items.contents().clone());
        match (self.dialect, contents) {
            (Dialect::Classic, None) => Inspection::Count,
            (Dialect::Classic, Some(contents)) => Inspection::Check(contents),
            (Dialect::Resp, contents) => Inspection::Resp(contents),
        }
    }

    fn hands(&self) -> Result<Vec<Hand>, DriveError> {
        let generators = generator::streams(self.seed).take(self.threads);
        let hands = generators.enumerate().map(|(thread, random)| {
            let clients = (thread..self.connections).step_by(self.threads).count();
            let inspection = self.inspection(self.check);
            Ok(Hand {
                driver: Driver::connect(&self.servers, clients, inspection, self.patience)?,
                draws: self.demand.draws(random, thread).in_dialect(self.dialect),
                core: (!self.cores.is_empty()).then(|| self.cores[thread % self.cores.len()]),
            })
        });
        hands.collect()
    }

    /// Draws and plays so much.
    fn phase(
        &self,
        name: &'static str,
        amount: Amount,
        speed: Option<f64>,
        hands: &mut [Hand],
        clocks: &[ProcessClock],
        bar: &ProgressBar,
    ) -> Result<LoadReport, DriveError> {
        let (operations, until) = match amount {
            Amount::Operations(operations) => (operations, Until::Sent),
            Amount::Time(time) => {
                let speed = self.rate.or(speed);
                // A quarter more: the warm-up may have been slower.
                let enough = speed.map(|speed| (speed * time.as_secs_f64() * 1.25) as u64);
                (enough.unwrap_or(UNKNOWN_SPEED), Until::Elapsed(time))
            }
        };
        bar.set_message("drawing");
        bar.set_length(operations);
        bar.set_position(0);
        let scripts = self.draw(hands, operations);
        let drawn: u64 = scripts.iter().map(Script::operations).sum();
        // What lasts for a time begins again; so many operations would be fewer.
        if matches!(until, Until::Sent) && drawn < operations {
            return Err(DriveError::Settings(format!(
                "{operations} operations are more than {} MiB of requests, of which {drawn} are as many: ask for at \
                 most these, or for a time (--duration)",
                SCRIPTS >> 20
            )));
        }
        bar.set_message(name);
        let in_batch = (self.depth * self.keys_per_get) as f64;
        let pace = self.rate.map_or(Pace::Closed, |rate| {
            let interval = Duration::from_secs_f64(in_batch / rate * self.threads as f64);
            Pace::Open { interval }
        });
        let (played, server_time) = play(hands, &scripts, pace, until, clocks, bar)?;
        Ok(self.report(&played, server_time))
    }

    fn draw(&self, hands: &mut [Hand], operations: u64) -> Vec<Script> {
        let threads = hands.len() as u64;
        let share = |thread: u64| operations / threads + u64::from(thread < operations % threads);
        thread::scope(|scope| {
            let drawing: Vec<_> = hands
                .iter_mut()
                .zip(0..)
                .map(|(hand, thread)| {
                    scope.spawn(move || {
                        let (lanes, bytes) = (self.servers.len(), SCRIPTS / self.threads);
                        hand.draws.script(
                            &self.items,
                            lanes,
                            self.depth,
                            self.keys_per_get,
                            share(thread),
                            bytes,
                        )
                    })
                })
                .collect();
            let join = |drawing: thread::ScopedJoinHandle<'_, Script>| {
                drawing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            drawing.into_iter().map(join).collect()
        })
    }

    fn report(&self, played: &[Played], server_time: Option<Duration>) -> LoadReport {
        let mut tally = Tally::default();
        let mut latencies = Latencies::default();
        for Played { outcome, .. } in played {
            tally += outcome.tally;
            latencies.add(&outcome.latencies);
        }
        let operations = tally.operations();
        let longest = played.iter().map(|played| played.outcome.elapsed).max().unwrap_or_default();
        let own_time: Duration = played.iter().map(|played| played.own_time).sum();
        let per_operation = |time: Duration| time.as_secs_f64() * 1e6 / operations.max(1) as f64;
        let overdue: u64 = played.iter().map(|played| played.outcome.overdue).sum();
        LoadReport {
            operations,
            gets: tally.gets,
            hits: tally.hits,
            hit_ratio: (tally.gets > 0).then(|| tally.hits as f64 / tally.gets as f64),
            sets: tally.stored,
            refused: tally.refused,
            seconds: longest.as_secs_f64(),
            operations_per_second: operations as f64 / longest.as_secs_f64().max(1e-9),
            received_bytes: tally.received,
            latency: latencies.summary(),
            client_cpu: per_operation(own_time),
            server_cpu: server_time.map(per_operation),
            rounds: played.iter().map(|played| played.outcome.rounds).fold(0.0, f64::max),
            overdue: overdue * (self.depth * self.keys_per_get) as u64,
            checked: self.check,
        }
    }
}

/// Lets all hands play their scripts at the same time: what each did, and what the servers spent meanwhile.
fn play(
    hands: &mut [Hand],
    scripts: &[Script],
    pace: Pace,
    until: Until,
    clocks: &[ProcessClock],
    bar: &ProgressBar,
) -> Result<(Vec<Played>, Option<Duration>), DriveError> {
    let spent = || clocks.iter().map(ProcessClock::now).sum::<Result<Duration, _>>();
    let progress = AtomicU64::new(0);
    let barrier = Barrier::new(hands.len() + 1);
    let (finished, results) = mpsc::channel();
    let hands_at_work = hands.len();
    thread::scope(|scope| {
        for (hand, script) in hands.iter_mut().zip(scripts) {
            let (barrier, progress, finished) = (&barrier, &progress, finished.clone());
            scope.spawn(move || {
                let pinned = hand.core.map_or(Ok(()), pin);
                // Also where that failed: the others wait here.
                barrier.wait();
                let before = processor_time();
                let outcome = pinned
                    .map_err(DriveError::from)
                    .and_then(|()| hand.driver.play(script, pace, until, progress));
                let own_time = processor_time() - before;
                // The other end is there until all have reported.
                let _ = finished.send(outcome.map(|outcome| Played { outcome, own_time }));
            });
        }
        let before = spent();
        barrier.wait();
        let mut played = Vec::new();
        while played.len() < hands_at_work {
            match results.recv_timeout(SHOW) {
                Ok(result) => played.push(result),
                Err(RecvTimeoutError::Timeout) => bar.set_position(progress.load(Ordering::Relaxed)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let after = spent();
        let played = played.into_iter().collect::<Result<Vec<_>, _>>()?;
        let server_time = if clocks.is_empty() { None } else { Some(after? - before?) };
        Ok((played, server_time))
    })
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadReport { operations, seconds, operations_per_second, .. } = self;
        writeln!(f, "{operations} operations in {seconds:.2} s: {operations_per_second:.0} a second")?;
        if let Some(ratio) = self.hit_ratio {
            writeln!(f, "{} gets, {} hits: {:.2} %", self.gets, self.hits, 100.0 * ratio)?;
        }
        writeln!(f, "{} sets, {} refused", self.sets, self.refused)?;
        let LatencySummary { p50, p90, p99, p99_9, max, .. } = self.latency;
        writeln!(
            f,
            "latency of a request, us: p50 {p50:.1}, p90 {p90:.1}, p99 {p99:.1}, p99.9 {p99_9:.1}, max {max:.1}"
        )?;
        write!(f, "processor time of an operation, us: client {:.3}", self.client_cpu)?;
        if let Some(server) = self.server_cpu {
            let ratio = self.client_cpu / server;
            write!(f, ", server {server:.3}; client / server {ratio:.2}")?;
        }
        writeln!(f)?;
        if self.checked {
            writeln!(f, "every reply was checked against its request, and every value against its key")?;
        }
        if self.rounds > 1.0 {
            writeln!(f, "the operations drawn were gone through {:.1} times", self.rounds)?;
        }
        if self.overdue > 0 {
            writeln!(f, "the servers did not keep up: {} operations were due and not sent", self.overdue)?;
        }
        Ok(())
    }
}
