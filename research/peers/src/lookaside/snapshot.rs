//! Kind `slb-lmdb`: rows of a snapshot of LMDB, read through heed alone, through a cache of rows, and through a
//! [`Front`], a table of references into the mapped file.
//!
//! A thread keeps one read transaction. What that lends stays as it is until the transaction ends, and so does what is
//! in the front: there is nothing to keep equal. heed's transactions are for one thread at a time, so each thread has a
//! front of its own, and all fronts together take as many bytes as the definition gives them. Two kinds of front:
//!
//! * of rows: all are of one size, and begin with their key; a reference to one fits a slot;
//! * of pairs: keys and values as LMDB lends them, of any size, which take two words, and so half as many slots.
//!
//! Either compares whole keys. The cache of rows copies them, and all threads share it.
//!
//! A row ends with the number of its record, of which its key is made; its first and its last word are read. Nothing
//! here is unsafe: it is what a user of heed would write.

use std::sync::Arc;
use std::time::Duration;

use heed::{RoTxn, WithoutTls};
use lab::experiment::{ExperimentError, Session, expect};
use lab::lookaside::Tally;
use lab::measure::{Stopwatch, in_parallel, name_threads, turns};
use lab::subject::mixed;
use lookaside::{Config, Front, Lent};
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
/// A row, which begins with its key.
type Row = [u8; 100];
/// A key and a value, as LMDB lends them.
type Pair<'t> = (&'t [u8], &'t [u8]);

/// How rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Alone,
    Cached,
    Rows,
    RowsInBatches,
    Pairs,
    PairsInBatches,
}

impl Reader {
    const ALL: [Reader; 6] = [
        Reader::Alone,
        Reader::Cached,
        Reader::Rows,
        Reader::RowsInBatches,
        Reader::Pairs,
        Reader::PairsInBatches,
    ];

    fn name(self) -> &'static str {
        match self {
            Reader::Alone => "heed",
            Reader::Cached => "heed, quick_cache",
            Reader::Rows => "heed, front of rows",
            Reader::RowsInBatches => "heed, front of rows, batches",
            Reader::Pairs => "heed, front of pairs",
            Reader::PairsInBatches => "heed, front of pairs, batches",
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
    let file = File::make(parameters.rows as usize, size_of::<Key>() + size_of::<Row>())
        .map_err(ExperimentError::Machine)?;
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

fn row_of(record: u64) -> Row {
    let mut row = [0; size_of::<Row>()];
    let end = row.len() - size_of::<u64>();
    row[..size_of::<Key>()].copy_from_slice(&key_of(record));
    row[end..].copy_from_slice(&record.to_le_bytes());
    row
}

fn write_rows(parameters: &Parameters, file: &File) {
    let mut writing = file.env.write_txn().expect("LMDB has a writer's place");
    for record in 0..parameters.rows {
        let put = file.database.put(&mut writing, &key_of(record), &row_of(record));
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
                expected.count(Some(read_value(&row_of(record))));
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
            Reader::Rows | Reader::RowsInBatches => {
                let front = Front::new(&config)?;
                let is = |row: &Row, key: &Key| row.first_chunk() == Some(key);
                let find = |key: &Key| row(file, &reading, key);
                let batches = reader == Reader::RowsInBatches;
                time(drawn, |keys, read| fronted(&front, batches, keys, is, find, |row| &row[..], read))
            }
            Reader::Pairs | Reader::PairsInBatches => {
                let front = Front::new(&config)?;
                let is = |(found, _): Pair<'_>, key: &Key| found == key;
                let find = |key: &Key| pair(file, &reading, key);
                let batches = reader == Reader::PairsInBatches;
                time(drawn, |keys, read| fronted(&front, batches, keys, is, find, |(_, value)| value, read))
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

/// A row in the file. Others than those of this size are none of ours.
fn row<'t>(
    file: &File,
    reading: &'t RoTxn<'_, WithoutTls>,
    key: &Key,
) -> Result<Option<&'t Row>, heed::Error> {
    Ok(file.database.get(reading, key)?.and_then(|row| row.try_into().ok()))
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

/// Through a front, one key at a time or in batches.
#[inline(always)]
fn fronted<'t, T: Lent>(
    front: &Front<T>,
    batches: bool,
    keys: &[Key],
    is: impl Fn(T, &Key) -> bool,
    find: impl Fn(&Key) -> Result<Option<T>, heed::Error>,
    value: impl Fn(T) -> &'t [u8],
    read: &mut Read,
) {
    const READS: &str = "LMDB reads what it has";
    for keys in keys.chunks(BATCH) {
        let mut asked = 0;
        let find = |key: &Key| {
            asked += 1;
            find(key)
        };
        if batches {
            let mut sought = [&keys[0]; BATCH];
            sought.iter_mut().zip(keys).for_each(|(sought, key)| *sought = key);
            let mut found = [None; BATCH];
            front.try_get_many(&sought[..keys.len()], &mut found[..keys.len()], &is, find).expect(READS);
            found[..keys.len()].iter().for_each(|found| read.count(found.map(&value)));
        } else {
            let mut find = find;
            for key in keys {
                read.count(front.try_get(key, &is, &mut find).expect(READS).map(&value));
            }
        }
        read.asked += asked;
    }
}
