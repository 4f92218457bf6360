//! Kind `index-growth`: the longest pauses of a table that grows, beside those of one that need not.
//!
//! One thread puts in all keys, into a table that starts small and grows, and, in turns, into one that was made large
//! enough; every insert is timed. Where the definition asks for a reader, a second thread meanwhile looks up keys that
//! are in the table, each lookup timed and its answer checked.
//!
//! A single operation cannot be told from the interrupt that hit it, and on a busy machine the longest of ten million
//! is that of a thread that lost its core, or whose core the hypervisor lent to somebody else. So there are three
//! maxima.
//!
//! - *Longest*: by the clock, whatever happened meanwhile.
//! - *Longest on a core*: less the time that the thread had no core, or one that the hypervisor had lent to somebody
//!   else: what the clock has gone on more than the thread's processor time, which is asked after each operation of
//!   more than [`SUSPICIOUS`] nanoseconds. (No operation of the index sleeps: a writer that waits for another one spins
//!   or yields.) What an interrupt takes is still in it.
//! - *Longest every time*: the same inserts are made in every run, with the same hashes, and so each of them has the
//!   same to do in every run: the n-th insert splits the same bucket. What the work costs, it costs every time; what
//!   the machine takes, it takes somewhere else the next time. So each insert is given the shortest of its times over
//!   all runs, and this is the longest of these. Expectations go by it.
//!
//! Lookups of a thread beside the writer are not the same in every run. Of them there is, in the place of the third,
//! the longest on a core in the run where that was shortest: noise only ever adds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuckoo::experiments::{DefaultLayout, Layout};
use cuckoo::{Config, Growth, Hashes, Linear};
use hdrhistogram::Histogram;
use rand::distr::{Distribution, Uniform};
use serde::Deserialize;
use workload::generator::seeded;

use super::engine::{Index, Insertion, Inspected};
use super::locking::acquire;
use super::optimistic::Optimistic;
use super::records::{Key, Records};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{in_parallel, processor_time};

/// Operations longer than this are asked about.
const SUSPICIOUS: u64 = 10_000;
/// The reader draws anew from the records that are in the table after so many lookups.
const REFRESH: u64 = 256;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Keys put in.
    keys: usize,
    /// Buckets that the growing table has at first.
    first_buckets: usize,
    /// Threads that read meanwhile: none or one.
    readers: Vec<usize>,
}

/// Without a reader and with one.
const POINTS: [&str; 2] = ["one writer", "one writer, one reader"];
/// The tables: one that was made large enough, and one that grows.
const TABLES: [&str; 2] = ["fixed size", "growing"];

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { keys, first_buckets, readers } = parameters;
    if readers.iter().any(|&readers| readers >= POINTS.len()) {
        return Err(ExperimentError::machine("there is one reader at most"));
    }
    let records = Records::new(*keys)?;
    session.announce(session.runs() * readers.len() * TABLES.len());
    // What a table with_capacity has: at the end the fixed table has room, and its pages were never touched before
    // either.
    let enough = (keys + keys / 16).div_ceil(DefaultLayout::SLOTS).next_power_of_two();
    let mut shortest = POINTS.map(|_| TABLES.map(|_| Shortest::of(*keys)));
    session.take_turns(TABLES.len(), readers, |session, table, &readers, _| {
        let (name, point) = (TABLES[table], POINTS[readers]);
        session.begin(format!("{name}, {point}"));
        let (buckets, growth) = match table {
            0 => (enough, Growth::Fixed),
            _ => (*first_buckets, Growth::Linear(Linear::up_to(2 * enough))),
        };
        let config = Config::new().with_growth(growth).with_hashes(Hashes::Avalanching);
        let index = Optimistic::<DefaultLayout>::new(buckets, &config, &records)?;
        let shortest = &mut shortest[readers][table];
        let (inserts, lookups) = load(&index, &records, readers, name, &mut shortest.inserts)?;
        inserts.record(session, name, point, "insert");
        if let Some(lookups) = lookups {
            let longest = lookups.longest_on_core;
            shortest.lookup = Some(shortest.lookup.map_or(longest, |known| known.min(longest)));
            lookups.record(session, name, point, "lookup");
        }
        let load = 100.0 * index.table().load_factor();
        session.record(name, point, "load factor at the end", "%", load);
        session.record_pages(name, index.anatomy().pages);
        Ok(())
    })?;
    for &readers in readers {
        for (name, Shortest { inserts, lookup }) in TABLES.iter().zip(&shortest[readers]) {
            let point = POINTS[readers];
            let longest = inserts.iter().copied().max().unwrap_or(0);
            session.record(name, point, "insert, longest every time", "us", f64::from(longest) / 1e3);
            if let Some(lookup) = lookup {
                let longest = *lookup as f64 / 1e3;
                session.record(name, point, "lookup, longest in the quietest run", "us", longest);
            }
        }
    }
    Ok(())
}

/// The shortest times over all runs, in nanoseconds.
struct Shortest {
    /// Of each insert.
    inserts: Vec<u32>,
    /// Of the longest lookup on a core.
    lookup: Option<u64>,
}

impl Shortest {
    fn of(inserts: usize) -> Shortest {
        Shortest { inserts: vec![u32::MAX; inserts], lookup: None }
    }
}

/// Puts all records in, with or without a reader beside: the latencies of inserts and of lookups. What is known of each
/// insert's shortest time is lowered.
fn load(
    index: &Optimistic<'_, DefaultLayout>,
    records: &Records,
    readers: usize,
    name: &str,
    shortest: &mut [u32],
) -> Result<(Latencies, Option<Latencies>), ExperimentError> {
    let all = records.len() as u64;
    let present = AtomicU64::new(0);
    // One thread writes; the lock only tells the compiler so.
    let shortest = Mutex::new(shortest);
    let write = || {
        let mut shortest = acquire(&shortest);
        let mut latencies = Latencies::new();
        for record in 0..all {
            let (inserted, nanoseconds) = latencies.time(|| index.insert(record));
            let known = &mut shortest[record as usize];
            *known = (*known).min(u32::try_from(nanoseconds).unwrap_or(u32::MAX));
            match inserted {
                // pairs with the reader's acquire
                Insertion::Done { .. } => present.store(record + 1, Ordering::Release),
                Insertion::TooFull => {
                    present.store(all, Ordering::Release); // as above: lets the reader end
                    return Err(format!("a table for {all} keys was too full for number {record}"));
                }
            }
        }
        Ok(latencies)
    };
    let read = || {
        let mut latencies = Latencies::new();
        let mut random = seeded(2);
        let mut lookups = 0u64;
        let mut drawn = None;
        loop {
            if lookups.is_multiple_of(REFRESH) {
                // pairs with the writer's release: a record below the number is in the table.
                match present.load(Ordering::Acquire) {
                    number if number == all => return Ok(latencies),
                    number => drawn = Uniform::new(0, number).ok(),
                }
            }
            let Some(drawn) = drawn else { continue };
            let record = drawn.sample(&mut random);
            let key = Key::of(record);
            if latencies.time(|| index.get(&key)).0 != Some(record) {
                return Err(format!("record {record} was put in and not found"));
            }
            lookups += 1;
        }
    };
    let outcomes = in_parallel(1 + readers, |thread| if thread == 0 { write() } else { read() })?;
    let wrong = |found: String| ExperimentError::wrong(name, found);
    let mut latencies = outcomes.into_iter().collect::<Result<Vec<_>, _>>().map_err(wrong)?.into_iter();
    let inserts = latencies.next().expect("there is a writer");
    Ok((inserts, latencies.next()))
}

/// The latencies of one thread's operations, in nanoseconds.
struct Latencies {
    histogram: Histogram<u64>,
    longest: u64,
    longest_on_core: u64,
    started: Instant,
    processor_time_before: Duration,
    /// Time without a core since the start, as far as it is known.
    without_core: Duration,
}

impl Latencies {
    fn new() -> Latencies {
        // Up to a minute, to three digits; what is longer is a minute.
        let histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order");
        Latencies {
            histogram,
            longest: 0,
            longest_on_core: 0,
            started: Instant::now(),
            processor_time_before: processor_time(),
            without_core: Duration::ZERO,
        }
    }

    /// Times an operation: its result, and how long it took by the clock, in nanoseconds.
    #[inline]
    fn time<R>(&mut self, operation: impl FnOnce() -> R) -> (R, u64) {
        let start = Instant::now();
        let result = operation();
        let nanoseconds = start.elapsed().as_nanos() as u64;
        self.histogram.saturating_record(nanoseconds);
        self.longest = self.longest.max(nanoseconds);
        if nanoseconds <= SUSPICIOUS {
            self.longest_on_core = self.longest_on_core.max(nanoseconds);
        } else {
            self.suspect(nanoseconds);
        }
        (result, nanoseconds)
    }

    #[cold]
    fn suspect(&mut self, nanoseconds: u64) {
        let on_core = processor_time().saturating_sub(self.processor_time_before);
        let without_core = self.started.elapsed().saturating_sub(on_core);
        // What was lost between two operations is counted here too, and cannot be more than all of this one.
        let during = without_core.saturating_sub(self.without_core).as_nanos() as u64;
        self.without_core = self.without_core.max(without_core);
        self.longest_on_core = self.longest_on_core.max(nanoseconds.saturating_sub(during));
    }

    fn record(&self, session: &mut Session, configuration: &str, point: &str, operation: &str) {
        let mut record = |what: String, nanoseconds: u64| {
            let metric = format!("{operation}, {what}");
            session.record(configuration, point, metric, "us", nanoseconds as f64 / 1e3);
        };
        record("longest".into(), self.longest);
        record("longest on a core".into(), self.longest_on_core);
        for percent in [50.0, 99.0, 99.9, 99.99] {
            record(format!("p{percent}"), self.histogram.value_at_percentile(percent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::ProgressBar;

    #[test]
    fn an_operation_is_as_long_as_it_takes() {
        let mut latencies = Latencies::new();
        for _ in 0..100 {
            latencies.time(|| ());
        }
        latencies.time(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(latencies.longest >= 50_000_000);
        assert!(latencies.longest_on_core < 25_000_000, "a sleep: {}", latencies.longest_on_core);
        latencies.time(|| {
            let before = processor_time();
            while processor_time() < before + Duration::from_millis(25) {}
        });
        assert!(latencies.longest_on_core >= 24_000_000, "work: {}", latencies.longest_on_core);
        assert!(latencies.longest_on_core <= latencies.longest);
        assert_eq!(latencies.histogram.len(), 102);
    }

    #[test]
    fn both_sizes_end_with_all_records_and_their_own_load() {
        let parameters = Parameters { keys: 20_000, first_buckets: 4, readers: vec![0] };
        run(&parameters, &mut Session::new(1, ProgressBar::hidden())).unwrap();
        let records = Records::new(20_000).unwrap();
        let config = Config::new().with_growth(Growth::Linear(Linear::up_to(1 << 13)));
        let index = Optimistic::<DefaultLayout>::new(4, &config, &records).unwrap();
        let mut shortest = vec![u32::MAX; 20_000];
        load(&index, &records, 0, "growing", &mut shortest).unwrap();
        assert!(shortest.iter().all(|&nanoseconds| nanoseconds < u32::MAX));
        assert_eq!(index.table().len(), 20_000);
        assert!(index.table().load_factor() > 0.85);
        // A table that is too small says so.
        let index = Optimistic::<DefaultLayout>::new(64, &Config::new().with_growth(Growth::Fixed), &records)
            .unwrap();
        assert!(matches!(
            load(&index, &records, 0, "fixed size", &mut shortest),
            Err(ExperimentError::WrongAnswer { .. })
        ));
    }
}
