//! Kind `slb-lmdb`: rows of a snapshot of LMDB, read through heed alone, through a cache of rows, and through a
//! [`Front`], a table of references into the mapped file.
//!
//! A thread keeps one read transaction. What that lends stays as it is until the transaction ends, and so does what is
//! in the front: there is nothing to keep equal. heed's transactions are for one thread at a time, so each thread has a
//! front of its own, and all fronts together take as many bytes as the definition gives them. LMDB lends keys and
//! values, and the front compares whole keys. The cache of rows copies them, and is shared.
//!
//! A row's key is the mixed number of its record, its value begins and ends with that number; both words are read.
//! Nothing here is unsafe: it is what a user of heed would write.

use std::sync::Arc;
use std::time::Duration;

use heed::{RoTxn, WithoutTls};
use lab::experiment::{ExperimentError, Session, expect};
use lab::lookaside::Tally;
use lab::measure::{Stopwatch, in_parallel, name_threads, turns};
use lab::subject::mixed;
use lookaside::{Config, Front};
use quick_cache::sync::Cache;
use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator;
use workload::popularity::Popularity;

use super::lmdb::{File, read_value};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Rows.
    rows: u64,
    /// Bytes of a row, of which the key takes eight.
    row: usize,
    /// The exponent of the distribution.
    skew: f64,
    /// Bytes of all fronts together.
    front: usize,
    /// Rows that the cache holds.
    cached: usize,
    /// Lookups of a thread before what is timed.
    warm_up: usize,
    /// Lookups of a thread that are timed.
    lookups: usize,
    /// Numbers of threads.
    threads: Vec<usize>,
}

/// Keys looked up at once in a batch.
const BATCH: usize = 16;
/// Which permutation tells the record of a rank.
const PLACES: u64 = 31;

/// A row's key.
type Key = [u8; 8];
/// A key and a value, as LMDB lends them.
type Pair<'t> = (&'t [u8], &'t [u8]);

/// How rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Alone,
    Cached,
    Fronted,
    FrontedInBatches,
}

impl Reader {
    const ALL: [Reader; 4] = [Reader::Alone, Reader::Cached, Reader::Fronted, Reader::FrontedInBatches];

    fn name(self) -> &'static str {
        match self {
            Reader::Alone => "heed",
            Reader::Cached => "heed, quick_cache",
            Reader::Fronted => "heed, front",
            Reader::FrontedInBatches => "heed, front, batches",
        }
    }
}

/// A thread's keys: those that warm up, those that are timed, and what these read as.
struct Drawn {
    warm_up: Vec<Key>,
    timed: Vec<Key>,
    expected: Tally,
}

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the machine has too few cores or too little memory, or a row was read wrongly.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let threads = session.threads(&parameters.threads)?;
    session.announce(1 + session.runs() * threads.len());
    session.begin("writing the rows");
    let file = File::make(parameters.rows as usize, parameters.row).map_err(ExperimentError::Machine)?;
    write_rows(parameters, &file);
    session.end();
    for run in 0..session.runs() {
        for &threads in &threads {
            let point = name_threads(threads);
            session.begin(format!("{point}, run {} of {}", run + 1, session.runs()));
            let drawn = draw(parameters, threads, run)?;
            let mut rates = [0.0; Reader::ALL.len()];
            for turn in turns(Reader::ALL.len(), run) {
                let reader = Reader::ALL[turn];
                let (rate, hits) = measure(parameters, &file, reader, &drawn)?;
                rates[turn] = rate;
                session.record(reader.name(), &point, "lookups", "M/s", rate / 1e6);
                if reader != Reader::Alone {
                    session.record(reader.name(), &point, "hit ratio", "%", 100.0 * hits);
                }
            }
            for (reader, rate) in Reader::ALL.into_iter().zip(rates).skip(1) {
                session.record(reader.name(), &point, "times heed alone", "x", rate / rates[0]);
            }
            session.end();
        }
    }
    Ok(())
}

fn key_of(record: u64) -> Key {
    mixed(record).to_be_bytes()
}

fn write_rows(parameters: &Parameters, file: &File) {
    let mut writing = file.env.write_txn().expect("LMDB has a writer's place");
    let mut value = vec![0; parameters.row.saturating_sub(size_of::<Key>()).max(16)];
    for record in 0..parameters.rows {
        let end = value.len() - 8;
        value[..8].copy_from_slice(&record.to_le_bytes());
        value[end..].copy_from_slice(&record.to_le_bytes());
        let put = file.database.put(&mut writing, &key_of(record), &value);
        put.expect("the file was made for as many rows");
    }
    writing.commit().expect("LMDB commits");
}

fn draw(parameters: &Parameters, threads: usize, run: usize) -> Result<Vec<Drawn>, ExperimentError> {
    let records = Popularity::permuted(parameters.rows, parameters.skew, PLACES)?;
    let randoms = generator::streams(run as u64).take(threads);
    let drawn = randoms.map(|mut random| {
        let mut expected = Tally::default();
        let warm_up = (0..parameters.warm_up).map(|_| key_of(records.sample(&mut random))).collect();
        let timed = (0..parameters.lookups)
            .map(|_| {
                let record = records.sample(&mut random);
                expected.count(Some(record.wrapping_mul(2)));
                key_of(record)
            })
            .collect();
        Drawn { warm_up, timed, expected }
    });
    Ok(drawn.collect())
}

/// Lookups a second of all threads, and the share of them for which LMDB was not asked.
fn measure(
    parameters: &Parameters,
    file: &File,
    reader: Reader,
    drawn: &[Drawn],
) -> Result<(f64, f64), ExperimentError> {
    let cache = Cache::new(parameters.cached);
    let config = Config::with_size(parameters.front / drawn.len());
    let read = |thread: usize| -> Result<Read, ExperimentError> {
        let drawn: &Drawn = &drawn[thread];
        let reading = file.read();
        let ask = |key: &Key| file.database.get(&reading, key).expect("LMDB reads what it has");
        Ok(match reader {
            Reader::Alone => time(drawn, |keys, read| {
                keys.iter().for_each(|key| read.count(ask(key)));
            }),
            Reader::Cached => time(drawn, |keys, read| cached(&cache, keys, ask, read)),
            Reader::Fronted => {
                let front = Front::new(&config)?;
                time(drawn, |keys, read| fronted(&front, file, &reading, keys, read))
            }
            Reader::FrontedInBatches => {
                let front = Front::new(&config)?;
                time(drawn, |keys, read| fronted_in_batches(&front, file, &reading, keys, read))
            }
        })
    };
    let (mut rate, mut asked) = (0.0, 0);
    for (drawn, read) in drawn.iter().zip(in_parallel(drawn.len(), read)?) {
        let read = read?;
        expect(reader.name(), read.tally, drawn.expected)?;
        rate += drawn.timed.len() as f64 / read.time.as_secs_f64().max(1e-9);
        asked += read.asked;
    }
    let all: usize = drawn.iter().map(|drawn| drawn.timed.len()).sum();
    Ok((rate, 1.0 - asked as f64 / all.max(1) as f64))
}

/// What a thread has read.
#[derive(Default)]
struct Read {
    tally: Tally,
    /// How often it asked LMDB, where something is in front.
    asked: usize,
    time: Duration,
}

impl Read {
    #[inline(always)]
    fn count(&mut self, value: Option<&[u8]>) {
        self.tally.count(value.map(read_value));
    }
}

/// Reads what warms up, and then, timed, the others.
fn time(drawn: &Drawn, mut look_up: impl FnMut(&[Key], &mut Read)) -> Read {
    look_up(&drawn.warm_up, &mut Read::default());
    let mut read = Read::default();
    let watch = Stopwatch::start();
    look_up(&drawn.timed, &mut read);
    read.time = watch.elapsed();
    read
}

/// Through a cache of copied rows.
fn cached<'t>(
    cache: &Cache<Key, Arc<[u8]>>,
    keys: &[Key],
    ask: impl Fn(&Key) -> Option<&'t [u8]>,
    read: &mut Read,
) {
    for key in keys {
        if let Some(row) = cache.get(key) {
            read.count(Some(&row));
            continue;
        }
        read.asked += 1;
        let row = ask(key);
        read.count(row);
        if let Some(row) = row {
            cache.insert(*key, Arc::from(row));
        }
    }
}

/// A key and its value in the file.
fn pair<'t>(
    file: &File,
    reading: &'t RoTxn<'_, WithoutTls>,
    key: &Key,
) -> Result<Option<Pair<'t>>, heed::Error> {
    let behind = file.database.get_greater_than_or_equal_to(reading, key)?;
    Ok(behind.filter(|(found, _)| found == key))
}

fn is((found, _): Pair<'_>, key: &Key) -> bool {
    found == key
}

fn fronted<'t>(
    front: &Front<Pair<'t>>,
    file: &File,
    reading: &'t RoTxn<'_, WithoutTls>,
    keys: &[Key],
    read: &mut Read,
) {
    for key in keys {
        let find = |key: &Key| {
            read.asked += 1;
            pair(file, reading, key)
        };
        let found = front.try_get(key, is, find).expect("LMDB reads what it has");
        read.count(found.map(|(_, value)| value));
    }
}

fn fronted_in_batches<'t>(
    front: &Front<Pair<'t>>,
    file: &File,
    reading: &'t RoTxn<'_, WithoutTls>,
    keys: &[Key],
    read: &mut Read,
) {
    for keys in keys.chunks(BATCH) {
        let mut sought = [&keys[0]; BATCH];
        sought.iter_mut().zip(keys).for_each(|(sought, key)| *sought = key);
        let mut found = [None; BATCH];
        let find = |key: &Key| {
            read.asked += 1;
            pair(file, reading, key)
        };
        let many = front.try_get_many(&sought[..keys.len()], &mut found[..keys.len()], is, find);
        many.expect("LMDB reads what it has");
        found[..keys.len()].iter().for_each(|found| read.count(found.map(|(_, value)| value)));
    }
}
