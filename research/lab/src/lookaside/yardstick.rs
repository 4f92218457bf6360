//! Kind `slb-yardstick`: what the library's faces are of a table of twenty lines, which a programmer would write
//! instead (`twenty_lines`).
//!
//! All stand before the same kind of index of the standard library and have the same records. For each range of the
//! records all tables are emptied and warmed with the same draws; then all take turns, run by run, and each is asked
//! what nobody was asked before: one key at a time, and in batches of 16 and of 64. A ratio is to the twenty lines in
//! the same run. A miss is a lookup that the table did not answer, those included that the monitor sent past it.
//!
//! | face | who |
//! |---|---|
//! | Map | [`lookaside::Map`]; a reader is kept for all lookups |
//! | Map, pinned for each | the same; each lookup, or batch, has a reader of its own |
//! | OwnedMap | [`lookaside::OwnedMap`] |
//! | Buffer | [`lookaside::Buffer`] beside the index, a visit kept; with its monitor and without |
//!
//! The faces for C++ and for C are those of `research/peers`, kind `slb-yardstick-cpp`.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;

use lookaside::{Config, Counts, Map, OwnedMap, RandomState, RwLock};
use serde::Deserialize;

use super::beside::{Beside, Filled, Record};
use super::contestant::{Make, OwnedIndex, SharedIndex};
use super::draws::{Drawn, Draws, Mix};
use super::indexes::{Hashed, Tree};
use super::record::{Key, Value};
use super::twenty_lines::TwentyLines;
use super::visit::{BATCH, Lot};
use crate::experiment::{ExperimentError, Session, expect};
use crate::measure::{Stopwatch, cores, pin, release_freed_memory, turns};
use crate::subject::Tally;

/// Keys of a batch; one at a time is a batch of one.
pub const BATCHES: [usize; 3] = [1, 16, 64];
/// Bytes of a key, as in the paper.
const N: usize = 24;
/// The part of the timed lookups that goes before them.
const BEFORE: usize = 10;
/// Keys drawn at once while warming up.
const AT_ONCE: usize = 1 << 20;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// The indexes, by name.
    indexes: Vec<String>,
    /// What is asked for.
    sizes: Vec<Size>,
    /// Bytes of the table: a power of two.
    bytes: usize,
    /// Draws that warm the tables for each range.
    warm_up: usize,
    /// Lookups of one timed part.
    operations: usize,
    /// Whether all of it is to be compiled for the processor that it runs on.
    #[serde(default)]
    native: bool,
}

/// Records, and what is asked for of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Size {
    /// Records in the index.
    pub records: u64,
    /// How many of them are asked for, in turn.
    pub points: Vec<Range>,
}

/// A place on the axis of a figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// In words.
    pub name: String,
    /// How many of the records are asked for. No other of the same records is the same.
    pub range: u64,
}

/// What is recorded of a batch: its speed, and the ratio to the twenty lines.
#[must_use]
pub fn metrics(batch: usize) -> [String; 2] {
    let how = if batch == 1 { String::new() } else { format!(" in batches of {batch}") };
    [format!("lookups{how}"), format!("of twenty lines{how}")]
}

/// The kind.
pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    if parameters.native && !cfg!(target_feature = "avx2") {
        let how = "this is compiled for every x86-64: start it by RUSTFLAGS=-Ctarget-cpu=native cargo run --release";
        return Err(ExperimentError::machine(how));
    }
    let points: usize = parameters.sizes.iter().map(|size| 1 + size.points.len()).sum();
    session.announce(points * parameters.indexes.len());
    let core = cores()?[0];
    // On a thread of its own, as only that is to stay on one core.
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            pin(core)?;
            for index in &parameters.indexes {
                let measure = match index.as_str() {
                    "HashMap" => measure::<HashMap<Key<N>, Box<Record<N>>>, Hashed<N>>,
                    "BTreeMap" => measure::<BTreeMap<Key<N>, Box<Record<N>>>, Tree<N>>,
                    other => return Err(ExperimentError::machine(format!("no index '{other}'"))),
                };
                for size in &parameters.sizes {
                    measure(index, parameters, size, session)?;
                    release_freed_memory();
                }
            }
            Ok(())
        });
        measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// An index with its records before the twenty lines and the buffer, and one of handles behind the maps.
fn measure<I: Index, H: OwnedIndex<N>>(
    name: &str,
    parameters: &Parameters,
    size: &Size,
    session: &mut Session,
) -> Result<(), ExperimentError>
where
    RwLock<H>: SharedIndex<N>,
{
    let Size { records, points } = size;
    session.begin(format!("filling {name}"));
    let mut index = I::default();
    (0..*records).for_each(|record| index.put((Key::of(record), Value::of(record))));
    let config = Config::with_size(parameters.bytes);
    let shared = || {
        let map = Map::<_, _, RwLock<H>>::with_index(made(*records)?, &config).map_err(in_words)?;
        (0..*records).for_each(|record| _ = map.insert(Key::of(record), Value::of(record)));
        Ok::<_, ExperimentError>(map)
    };
    let mut owned = OwnedMap::<_, _, H>::with_index(made(*records)?, &config).map_err(in_words)?;
    (0..*records).for_each(|record| _ = owned.insert(Key::of(record), Value::of(record)));
    let beside = |monitored| {
        let beside = Beside::new(Filled::new(|key: &Key<N>| index.record(key)), &config).map_err(in_words)?;
        beside.buffer().monitor(monitored);
        Ok::<_, ExperimentError>(beside)
    };
    let table = TwentyLines::new(parameters.bytes).map_err(|error| in_words(error.into()))?;
    let mut faces: [(&str, Box<dyn Face + '_>); 6] = [
        (
            "twenty lines",
            Box::new(Twenty { table, index: &index, hasher: RandomState::default(), misses: 0 }),
        ),
        ("Map", Box::new(Shared { map: shared()?, kept: true })),
        ("Map, pinned for each", Box::new(Shared { map: shared()?, kept: false })),
        ("OwnedMap", Box::new(owned)),
        ("Buffer", Box::new(beside(true)?)),
        ("Buffer, not monitored", Box::new(beside(false)?)),
    ];
    session.end();
    for (number, Range { name: point, range }) in points.iter().enumerate() {
        session.begin(format!("{name}: {point}"));
        let draws = Draws::new(*records, *range, false, 1)?;
        let mut random = Draws::generators(number as u64).next().expect("there is no end of them");
        let mut draw = |count| -> Drawn<N> { draws.draw(0, count, Mix::Lookups, &mut random) };
        for (_, face) in &mut faces {
            face.resize(parameters.bytes)?;
        }
        let mut left = parameters.warm_up;
        while left > 0 {
            let drawn = draw(left.min(AT_ONCE));
            left -= left.min(AT_ONCE);
            faces.iter_mut().for_each(|(_, face)| _ = face.ask(keys(&drawn), 1));
        }
        for run in 0..session.runs() {
            for batch in BATCHES {
                let drawn = [parameters.operations.div_ceil(BEFORE), parameters.operations].map(&mut draw);
                let [before, timed] = [&drawn[0], &drawn[1]];
                let mut asked = [(0.0, 0); 6];
                for turn in turns(faces.len(), run) {
                    let (face_name, face) = &mut faces[turn];
                    face.ask(keys(before), batch);
                    let missed = face.misses();
                    let watch = Stopwatch::start();
                    let tally = face.ask(keys(timed), batch);
                    let seconds = watch.elapsed().as_secs_f64().max(1e-9);
                    expect(face_name, tally, timed.expected)?;
                    asked[turn] = (parameters.operations as f64 / seconds / 1e6, face.misses() - missed);
                }
                let [speed_metric, ratio_metric] = metrics(batch);
                for ((face, _), (speed, missed)) in faces.iter().zip(asked) {
                    let configuration = format!("{name}, {face}");
                    let hits = 1.0 - missed as f64 / parameters.operations as f64;
                    session.record(&configuration, point, speed_metric.clone(), "M/s", speed);
                    session.record(&configuration, point, ratio_metric.clone(), "ratio", speed / asked[0].0);
                    session.record(&configuration, point, "hit ratio", "ratio", hits);
                }
            }
        }
        session.end();
    }
    Ok(())
}

fn keys(drawn: &Drawn<N>) -> &[Key<N>] {
    match drawn.lot() {
        Lot::Keys(keys) => keys,
        Lot::Requests(_) | Lot::Renewals(_) => &[],
    }
}

fn in_words(error: lookaside::CreateError) -> ExperimentError {
    ExperimentError::machine(error.to_string())
}

/// One with room for so many records.
fn made<I: Make>(records: u64) -> Result<I, ExperimentError> {
    I::make(records as usize).map_err(ExperimentError::Machine)
}

/// An index that keeps its records, each alone on the heap.
trait Index: Default + Send + Sync {
    fn put(&mut self, record: Record<N>);
    fn record(&self, key: &Key<N>) -> Option<&Record<N>>;
}

/// The standard library's maps have these methods in common, and no trait.
macro_rules! indexes {
    ($($map:ident),*) => {$(
        impl Index for $map<Key<N>, Box<Record<N>>> {
            fn put(&mut self, record: Record<N>) {
                self.insert(record.0, Box::new(record));
            }

            #[inline(always)]
            fn record(&self, key: &Key<N>) -> Option<&Record<N>> {
                self.get(key).map(|record| &**record)
            }
        }
    )*};
}

indexes!(HashMap, BTreeMap);

/// What is asked of all.
trait Face {
    /// Empties the table.
    fn resize(&mut self, bytes: usize) -> Result<(), ExperimentError>;

    /// Looks up, in batches of so many; one at a time if that is one.
    fn ask(&mut self, keys: &[Key<N>], batch: usize) -> Tally;

    /// Lookups so far that the table did not answer.
    fn misses(&self) -> u64;
}

fn misses_of(counts: &Counts) -> u64 {
    counts.misses + counts.bypassed
}

/// Calls `get` for each key, or `get_many` for each batch, and reads what that gives.
#[inline(always)]
fn look_up<'v>(
    keys: &[Key<N>],
    batch: usize,
    get: impl Fn(&Key<N>) -> Option<&'v Value>,
    get_many: impl Fn(&[&Key<N>], &mut [Option<&'v Value>]),
) -> Tally {
    match batch {
        1 => {
            let mut tally = Tally::default();
            keys.iter().for_each(|key| tally.count(get(key).map(Value::read)));
            tally
        }
        16 => look_up_by::<16>(keys, get_many),
        _ => look_up_by::<64>(keys, get_many),
    }
}

/// Calls `get_many` for each batch. Arrays are of a batch's length: one of 16 that cleared 64 answers each time looked
/// up a fifth less.
#[inline(always)]
fn look_up_by<'v, const LENGTH: usize>(
    keys: &[Key<N>],
    get_many: impl Fn(&[&Key<N>], &mut [Option<&'v Value>]),
) -> Tally {
    let mut tally = Tally::default();
    for keys in keys.chunks(LENGTH) {
        // The first again behind the last.
        let asked: [&Key<N>; LENGTH] = std::array::from_fn(|place| keys.get(place).unwrap_or(&keys[0]));
        let mut values = [None; LENGTH];
        let values = &mut values[..keys.len()];
        get_many(&asked[..keys.len()], values);
        values.iter().for_each(|value| tally.count(value.map(Value::read)));
    }
    tally
}

/// The twenty lines, and the index that they stand before.
struct Twenty<'i, I> {
    table: TwentyLines<'i, Record<N>>,
    index: &'i I,
    hasher: RandomState,
    misses: u64,
}

impl<'i, I: Index> Twenty<'i, I> {
    /// Not inlined: it is rare.
    #[inline(never)]
    fn search(&mut self, hash: u64, key: &Key<N>) -> Option<&'i Record<N>> {
        self.misses += 1;
        let record = self.index.record(key)?;
        self.table.emit(hash, record);
        Some(record)
    }
}

impl<I: Index> Face for Twenty<'_, I> {
    fn resize(&mut self, bytes: usize) -> Result<(), ExperimentError> {
        self.table = TwentyLines::new(bytes).map_err(|error| in_words(error.into()))?;
        Ok(())
    }

    #[inline(never)]
    fn ask(&mut self, keys: &[Key<N>], batch: usize) -> Tally {
        const GROUP: usize = TwentyLines::<()>::GROUP;
        let mut tally = Tally::default();
        if batch == 1 {
            for key in keys {
                let hash = self.hasher.hash_one(key);
                let found = self.table.get(hash, |record| record.0 == *key);
                let found = found.or_else(|| self.search(hash, key));
                tally.count(found.map(|record| record.1.read()));
            }
            return tally;
        }
        for keys in keys.chunks(batch).flat_map(|keys| keys.chunks(GROUP)) {
            let (mut hashes, mut found) = ([0; GROUP], [None; GROUP]);
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = self.hasher.hash_one(key);
            }
            let is = |i: usize, record: &Record<N>| record.0 == keys[i];
            self.table.get_group(&hashes[..keys.len()], is, |i, record| found[i] = record);
            for (i, key) in keys.iter().enumerate() {
                let found = found[i].or_else(|| self.search(hashes[i], key));
                tally.count(found.map(|record| record.1.read()));
            }
        }
        tally
    }

    fn misses(&self) -> u64 {
        self.misses
    }
}

/// A map: one whose reader is kept, or which each call pins anew, as a handler of requests must that waits in between.
struct Shared<I: 'static> {
    map: Map<Key<N>, Value, I>,
    kept: bool,
}

impl<I: SharedIndex<N>> Face for Shared<I> {
    fn resize(&mut self, bytes: usize) -> Result<(), ExperimentError> {
        self.map.buffer().resize(bytes).map_err(in_words)
    }

    #[inline(never)]
    fn ask(&mut self, keys: &[Key<N>], batch: usize) -> Tally {
        let mut tally = Tally::default();
        if !self.kept && batch == 1 {
            keys.iter().for_each(|key| tally.count(self.map.pin().get(key).map(Value::read)));
            return tally;
        }
        for keys in keys.chunks(if self.kept { keys.len().max(1) } else { batch }) {
            let reader = self.map.pin();
            tally +=
                look_up(keys, batch, |key| reader.get(key), |keys, values| reader.get_many(keys, values));
        }
        tally
    }

    fn misses(&self) -> u64 {
        misses_of(&self.map.buffer().counts())
    }
}

impl<I: OwnedIndex<N>> Face for OwnedMap<Key<N>, Value, I> {
    fn resize(&mut self, bytes: usize) -> Result<(), ExperimentError> {
        OwnedMap::resize(self, bytes).map_err(in_words)
    }

    #[inline(never)]
    fn ask(&mut self, keys: &[Key<N>], batch: usize) -> Tally {
        look_up(keys, batch, |key| self.get(key), |keys, values| self.get_many(keys, values))
    }

    fn misses(&self) -> u64 {
        misses_of(&self.counts())
    }
}

impl<'i, F> Face for Beside<N, Filled<'i, N, F>>
where
    F: Fn(&Key<N>) -> Option<&'i Record<N>> + Send + Sync,
{
    fn resize(&mut self, bytes: usize) -> Result<(), ExperimentError> {
        self.buffer().resize(bytes).map_err(in_words)
    }

    #[inline(never)]
    fn ask(&mut self, keys: &[Key<N>], batch: usize) -> Tally {
        let session = self.pin();
        look_up(
            keys,
            batch,
            |key| session.get(key),
            |keys, values| {
                for (keys, values) in keys.chunks(BATCH).zip(values.chunks_mut(BATCH)) {
                    session.get_many(keys, values);
                }
            },
        )
    }

    fn misses(&self) -> u64 {
        misses_of(&self.buffer().counts())
    }
}
