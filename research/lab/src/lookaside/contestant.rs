//! What takes part in an experiment: an index alone, or with a table in front.
//!
//! | contestant | what it is |
//! |---|---|
//! | `AloneOn` | the index as its users have it: its natural map from keys to boxed values, called directly |
//! | `SharedMap` | [`lookaside::Map`] over the index, for any number of threads |
//! | `LearningMap` | the same over an index that learns from what it is asked for |
//! | `WithOwnRecords` | [`lookaside::Buffer`] beside an index that keeps its own records |
//! | `SoleMap` | [`lookaside::OwnedMap`] over the index, for one thread; or STLT-SW before it (`stlt`) |
//! | `Partitioned` | one of these for each thread, each with its share of the records |
//!
//! Loops belong to the contestant, so that a lookup is a direct call and the experiment pays one indirect call for
//! millions of them; warming up and what is timed are one call, so that whoever pins or watches does so once.

use std::time::Duration;

use lookaside::index::{Discard, Find, SharedDiscard, SharedStore, Store, View};
use lookaside::{Config, Counts, CreateError, Map, OwnedMap, RwLock, Verdict};
use parking_lot::Mutex;

use super::beside::{Beside, Records};
use super::record::{Key, Tally, Value};
use super::stlt::{BehindStlt, OfOne};
use crate::measure::Stopwatch;
use crate::measure::epochs::{self, Guard};

/// Keys that a caller hands over at once where it asks in batches.
pub const BATCH: usize = 16;

/// How lookups are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// One key at a time.
    Single,
    /// [`BATCH`] keys at a time.
    Batch,
}

/// Something to do, where not everything is a lookup. In memory a struct of C, as its key.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request<const N: usize> {
    /// The key.
    pub key: Key<N>,
    /// The record it is the key of.
    pub record: u64,
    /// Whether the record is to be written: replaced by an equal one.
    pub set: bool,
}

/// Asks a concurrent index of ours, one key at a time, with an epoch pinned.
#[inline(always)]
pub(super) fn get_each_pinned<const N: usize>(
    keys: &[Key<N>],
    get: impl Fn(&Key<N>, &Guard) -> Option<u64>,
) -> Tally {
    let guard = epochs::pin();
    let mut tally = Tally::default();
    keys.iter().for_each(|key| tally.count(get(key, &guard)));
    tally
}

/// Keys as a batch is asked for them: [`BATCH`] at most, and the first again behind the last.
#[inline(always)]
pub(super) fn batch_of<const N: usize>(keys: &[Key<N>]) -> [&Key<N>; BATCH] {
    std::array::from_fn(|place| keys.get(place).unwrap_or(&keys[0]))
}

/// Reads and writes a concurrent index of ours. What is replaced meanwhile is freed from time to time.
#[inline(always)]
pub(super) fn perform_pinned<const N: usize>(
    requests: &[Request<N>],
    get: impl Fn(&Key<N>, &Guard) -> Option<u64>,
    set: impl Fn(&Request<N>),
) -> Tally {
    let mut guard = epochs::pin();
    let mut tally = Tally::default();
    for requests in requests.chunks(epochs::REQUESTS) {
        for request in requests {
            if request.set {
                set(request);
            } else {
                tally.count(get(&request.key, &guard));
            }
        }
        guard.refresh();
    }
    tally
}

/// Reads values and changes them in place, with what finds them.
#[inline(always)]
pub fn renew_each<'v, const N: usize>(
    requests: &[Request<N>],
    find: impl Fn(&Key<N>) -> Option<&'v Value>,
) -> Tally {
    let mut tally = Tally::default();
    for request in requests {
        match find(&request.key) {
            Some(value) if request.set => value.renew(request.record),
            value => tally.count(value.map(Value::read)),
        }
    }
    tally
}

/// What came of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer {
    /// What the timed lookups found.
    pub tally: Tally,
    /// How long they took.
    pub time: Duration,
}

/// What is asked of everyone.
pub trait Contestant<const N: usize>: Send + Sync {
    /// Looks up `warm_up`, and then `timed`, as thread number `thread`.
    fn get(&self, thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer;

    /// Carries out `warm_up`, and then `timed`, as thread number `thread`.
    fn perform(&self, thread: usize, call: Call, warm_up: &[Request<N>], timed: &[Request<N>]) -> Answer;

    /// As [`Contestant::perform`], but a write changes the value in its place, and no index; one key at a time. `None`
    /// from those of whom it is not asked: their values cannot be changed, or nobody wants to know.
    fn renew(&self, _thread: usize, _warm_up: &[Request<N>], _timed: &[Request<N>]) -> Option<Answer> {
        None
    }

    /// Takes note of what it has been asked for since the last time, where it learns from that.
    fn note(&self) {}

    /// Lays out what it keeps by what it has taken note of, where it does such a thing.
    fn settle(&self) {}

    /// Whether it has a call of its own for batches.
    fn has_batches(&self) -> bool;

    /// Whether several threads may write at once.
    fn shares_writes(&self) -> bool;

    /// Whether several threads may look up at once.
    fn shares_reads(&self) -> bool {
        true
    }

    /// Empties the table in front, which is then of so many bytes; does nothing where there is none.
    ///
    /// # Errors
    /// As [`lookaside::Buffer::resize`].
    fn resize(&mut self, bytes: usize) -> Result<(), CreateError>;

    /// What the table in front has counted.
    fn counts(&self) -> Option<Counts>;

    /// What the monitor has found.
    fn verdict(&self) -> Option<Verdict>;
}

/// Something that can be made empty with room for some records.
pub trait Make: Sized {
    /// It.
    ///
    /// # Errors
    /// In words, why there is none.
    fn make(records: usize) -> Result<Self, String>;

    /// As [`Contestant::note`].
    fn note(&self) {}

    /// As [`Contestant::settle`].
    fn settle(&self) {}
}

impl<I: Make> Make for RwLock<I> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(RwLock::new(I::make(records)?))
    }
}

/// An index as its users have it.
pub trait Alone<const N: usize>: Make + Send + Sync {
    /// Whether several threads may write at once.
    const SHARES_WRITES: bool;
    /// Whether [`Alone::get_batches`] is another call than [`Alone::get_each`].
    const HAS_BATCHES: bool = false;

    /// Looks up all keys, one at a time; pins or locks once.
    fn get_each(&self, keys: &[Key<N>]) -> Tally;

    /// Looks up all keys, [`BATCH`] at a time.
    fn get_batches(&self, keys: &[Key<N>]) -> Tally {
        self.get_each(keys)
    }

    /// Carries out all requests; pins or locks once.
    fn perform(&self, requests: &[Request<N>]) -> Tally;

    /// As [`Contestant::renew`].
    fn renew(&self, _requests: &[Request<N>]) -> Option<Tally> {
        None
    }
}

/// An [`Alone`] as a contestant.
#[derive(Debug)]
pub(super) struct AloneOn<A>(A);

impl<const N: usize, A: Alone<N>> Contestant<N> for AloneOn<A> {
    fn get(&self, _thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
        let ask = |keys: &[Key<N>]| match call {
            Call::Single => self.0.get_each(keys),
            Call::Batch => self.0.get_batches(keys),
        };
        in_turn(ask, warm_up, timed)
    }

    fn perform(&self, _thread: usize, _call: Call, warm_up: &[Request<N>], timed: &[Request<N>]) -> Answer {
        in_turn(|requests: &[Request<N>]| self.0.perform(requests), warm_up, timed)
    }

    fn renew(&self, _thread: usize, warm_up: &[Request<N>], timed: &[Request<N>]) -> Option<Answer> {
        self.0.renew(&[])?;
        let renew = |requests: &[Request<N>]| self.0.renew(requests).unwrap_or_default();
        Some(in_turn(renew, warm_up, timed))
    }

    fn note(&self) {
        self.0.note();
    }

    fn settle(&self) {
        self.0.settle();
    }

    fn has_batches(&self) -> bool {
        A::HAS_BATCHES
    }

    fn shares_writes(&self) -> bool {
        A::SHARES_WRITES
    }

    fn resize(&mut self, _bytes: usize) -> Result<(), CreateError> {
        Ok(())
    }

    fn counts(&self) -> Option<Counts> {
        None
    }

    fn verdict(&self) -> Option<Verdict> {
        None
    }
}

/// Does the one and then, with the clock running, the other.
pub fn in_turn<T>(mut ask: impl FnMut(&[T]) -> Tally, warm_up: &[T], timed: &[T]) -> Answer {
    ask(warm_up);
    let watch = Stopwatch::start();
    let tally = ask(timed);
    Answer { tally, time: watch.elapsed() }
}

/// Both kinds of map have the same two calls, and nothing in common that says so.
macro_rules! look_up {
    ($map:expr, $call:expr, $keys:expr, $tally:expr) => {
        match $call {
            Call::Single => $keys.iter().for_each(|key| $tally.count($map.get(key).map(Value::read))),
            Call::Batch => {
                for keys in $keys.chunks(BATCH) {
                    let mut asked = [&keys[0]; BATCH];
                    asked.iter_mut().zip(keys).for_each(|(asked, key)| *asked = key);
                    let mut values = [None; BATCH];
                    $map.get_many(&asked[..keys.len()], &mut values[..keys.len()]);
                    values[..keys.len()].iter().for_each(|value| $tally.count(value.map(Value::read)));
                }
            }
        }
    };
}

/// Carries out requests at a map: writes at once, lookups as `$call` says.
macro_rules! carry_out {
    ($map:expr, $call:expr, $requests:expr, $tally:expr) => {
        let mut asked = Vec::with_capacity(BATCH);
        for request in $requests {
            if request.set {
                $map.insert(request.key, Value::of(request.record));
            } else if $call == Call::Single {
                $tally.count($map.get(&request.key).map(Value::read));
            } else {
                asked.push(request.key);
                if asked.len() == BATCH {
                    look_up!($map, $call, asked, $tally);
                    asked.clear();
                }
            }
        }
        look_up!($map, $call, asked, $tally);
    };
}

/// A map over this index.
fn map_over<const N: usize, I>(
    index: I,
    config: &Config,
    monitor: bool,
) -> Result<Map<Key<N>, Value, I>, String> {
    let map = Map::new(index, config).map_err(in_words)?;
    map.buffer().monitor(monitor);
    Ok(map)
}

fn in_words(error: CreateError) -> String {
    error.to_string()
}

/// What a map does, and an index with a buffer beside: both are pinned for as many calls as one likes.
macro_rules! pinned_for_each_call {
    () => {
        fn get(&self, _thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
            let mut reader = self.0.pin();
            let mut tally = Tally::default();
            look_up!(reader, call, warm_up, tally);
            reader.refresh();
            let mut tally = Tally::default();
            let watch = Stopwatch::start();
            look_up!(reader, call, timed, tally);
            Answer { tally, time: watch.elapsed() }
        }

        fn perform(
            &self,
            _thread: usize,
            call: Call,
            warm_up: &[Request<N>],
            timed: &[Request<N>],
        ) -> Answer {
            let mut reader = self.0.pin();
            let ask = |requests: &[Request<N>]| {
                let mut tally = Tally::default();
                for requests in requests.chunks(epochs::REQUESTS) {
                    carry_out!(reader, call, requests, tally);
                    reader.refresh();
                }
                tally
            };
            in_turn(ask, warm_up, timed)
        }

        fn renew(&self, _thread: usize, warm_up: &[Request<N>], timed: &[Request<N>]) -> Option<Answer> {
            let reader = self.0.pin();
            let renew = |requests: &[Request<N>]| renew_each(requests, |key| reader.get(key));
            Some(in_turn(renew, warm_up, timed))
        }

        fn has_batches(&self) -> bool {
            true
        }

        fn shares_writes(&self) -> bool {
            true
        }

        fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
            self.0.buffer().resize(bytes)
        }

        fn counts(&self) -> Option<Counts> {
            Some(self.0.buffer().counts())
        }

        fn verdict(&self) -> Option<Verdict> {
            Some(self.0.buffer().verdict())
        }
    };
}

/// A map that threads share.
struct SharedMap<const N: usize, I>(Map<Key<N>, Value, I>);

impl<const N: usize, I> Contestant<N> for SharedMap<N, I>
where
    I: Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync,
{
    pinned_for_each_call!();
}

/// What an index behind a map shows of itself, if it learns: that it does.
pub(super) struct Learner<'i, I>(pub(super) &'i I);

/// An index that learns behind a map.
pub(super) trait Learns: Make + for<'i> View<Shown<'i> = Learner<'i, Self>> + 'static {}

impl<I: Make + for<'i> View<Shown<'i> = Learner<'i, I>> + 'static> Learns for I {}

/// A map that threads share, over an index that learns.
struct LearningMap<const N: usize, I>(Map<Key<N>, Value, I>);

impl<const N: usize, I> Contestant<N> for LearningMap<N, I>
where
    I: Learns + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync,
{
    fn note(&self) {
        self.0.view().0.note();
    }

    fn settle(&self) {
        self.0.view().0.settle();
    }

    pinned_for_each_call!();
}

/// An index that keeps its own records, and a buffer beside it.
struct WithOwnRecords<const N: usize, I>(Beside<N, I>);

impl<const N: usize, I: Records<N, Value = Value>> Contestant<N> for WithOwnRecords<N, I> {
    pinned_for_each_call!();
}

/// A map of one owner.
pub(super) trait Sole<const N: usize>: Send {
    /// The value of a key.
    fn get(&self, key: &Key<N>) -> Option<&Value>;

    /// The values of up to [`BATCH`] keys: `values[i]` becomes that of `keys[i]`.
    fn get_many<'m>(&'m self, keys: &[&Key<N>], values: &mut [Option<&'m Value>]);

    /// Puts a record in, in the place of the one of an equal key.
    fn insert(&mut self, key: Key<N>, value: Value);

    /// As [`Contestant::resize`].
    ///
    /// # Errors
    /// As there.
    fn resize(&mut self, bytes: usize) -> Result<(), CreateError>;

    /// As [`Contestant::counts`].
    fn counts(&self) -> Counts;

    /// As [`Contestant::verdict`].
    fn verdict(&self) -> Option<Verdict>;
}

impl<const N: usize, I> Sole<N> for OwnedMap<Key<N>, Value, I>
where
    I: Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send,
{
    #[inline(always)]
    fn get(&self, key: &Key<N>) -> Option<&Value> {
        OwnedMap::get(self, key)
    }

    #[inline(always)]
    fn get_many<'m>(&'m self, keys: &[&Key<N>], values: &mut [Option<&'m Value>]) {
        OwnedMap::get_many(self, keys, values);
    }

    #[inline(always)]
    fn insert(&mut self, key: Key<N>, value: Value) {
        OwnedMap::insert(self, key, value);
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        OwnedMap::resize(self, bytes)
    }

    fn counts(&self) -> Counts {
        OwnedMap::counts(self)
    }

    fn verdict(&self) -> Option<Verdict> {
        Some(OwnedMap::verdict(self))
    }
}

/// Such a map, behind a lock that is taken once a call.
struct SoleMap<M>(Mutex<M>);

impl<const N: usize, M: Sole<N>> Contestant<N> for SoleMap<M> {
    fn get(&self, _thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
        let map = &*self.0.lock();
        let ask = |keys: &[Key<N>]| {
            let mut tally = Tally::default();
            look_up!(map, call, keys, tally);
            tally
        };
        in_turn(ask, warm_up, timed)
    }

    fn perform(&self, _thread: usize, call: Call, warm_up: &[Request<N>], timed: &[Request<N>]) -> Answer {
        let map = &mut *self.0.lock();
        let ask = |requests: &[Request<N>]| {
            let mut tally = Tally::default();
            carry_out!(map, call, requests, tally);
            tally
        };
        in_turn(ask, warm_up, timed)
    }

    fn has_batches(&self) -> bool {
        true
    }

    fn shares_writes(&self) -> bool {
        false
    }

    fn shares_reads(&self) -> bool {
        false
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        self.0.get_mut().resize(bytes)
    }

    fn counts(&self) -> Option<Counts> {
        Some(self.0.lock().counts())
    }

    fn verdict(&self) -> Option<Verdict> {
        self.0.lock().verdict()
    }
}

/// A contestant for each thread. Record `r` is in the partition `r` modulo their number; who asks for others finds
/// nothing.
pub(super) struct Partitioned<const N: usize>(pub(super) Vec<Box<dyn Contestant<N>>>);

impl<const N: usize> Contestant<N> for Partitioned<N> {
    fn get(&self, thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
        self.0[thread].get(thread, call, warm_up, timed)
    }

    fn perform(&self, thread: usize, call: Call, warm_up: &[Request<N>], timed: &[Request<N>]) -> Answer {
        self.0[thread].perform(thread, call, warm_up, timed)
    }

    fn has_batches(&self) -> bool {
        self.0.iter().all(|part| part.has_batches())
    }

    fn shares_writes(&self) -> bool {
        true
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        let share = bytes / self.0.len().max(1);
        self.0.iter_mut().try_for_each(|part| part.resize(share))
    }

    fn counts(&self) -> Option<Counts> {
        let counts = self.0.iter().map(|part| part.counts()).collect::<Option<Vec<_>>>()?;
        Some(counts.into_iter().fold(Counts::default(), |mut sum, part| {
            sum.hits += part.hits;
            sum.misses += part.misses;
            sum.bypassed += part.bypassed;
            sum
        }))
    }

    fn verdict(&self) -> Option<Verdict> {
        self.0.first()?.verdict()
    }
}

/// Puts records into a contestant, by what it does as thread number `thread`.
pub fn fill<const N: usize>(
    contestant: &dyn Contestant<N>,
    thread: usize,
    records: impl Iterator<Item = u64>,
) {
    /// Enough to pin or lock rarely.
    const AT_ONCE: usize = 4096;
    let mut records = records.peekable();
    while records.peek().is_some() {
        let put = |record| Request { key: Key::of(record), record, set: true };
        let requests: Vec<_> = records.by_ref().take(AT_ONCE).map(put).collect();
        contestant.perform(thread, Call::Single, &[], &requests);
    }
}

/// A contestant, or why there is none.
pub type Made<const N: usize> = Result<Box<dyn Contestant<N>>, String>;

/// An index that can take part.
#[derive(Debug, Clone, Copy)]
pub struct Entrant<const N: usize> {
    /// Its name in definitions and results.
    pub name: &'static str,
    /// It alone, with room for so many records.
    pub alone: fn(usize) -> Made<N>,
    /// It behind a map that threads share; whether the monitor watches.
    pub shared: Option<fn(usize, &Config, bool) -> Made<N>>,
    /// It behind a map of one owner, where it is an index for one.
    pub sole: Option<fn(usize, &Config, bool) -> Made<N>>,
    /// It behind a buffer in another language, which is asked by calls only; [`Entrant::shared`] is then what can be
    /// inlined.
    pub called: Option<fn(usize, &Config, bool) -> Made<N>>,
    /// It behind STLT-SW, for one thread: the bytes of the table, and the rows of a set.
    pub stlt: Option<fn(usize, usize, usize) -> Made<N>>,
}

impl<const N: usize> Entrant<N> {
    /// Whether a shared table before it fits itself unless something else is asked for: as `lookaside::Config` has it,
    /// and `lookaside_options` has not.
    pub(super) fn fits_by_default(&self) -> bool {
        self.called.is_none()
    }
}

/// [`Entrant::alone`] of an index.
///
/// # Errors
/// As [`Make::make`].
pub fn alone<const N: usize, A: Alone<N> + 'static>(records: usize) -> Made<N> {
    Ok(Box::new(AloneOn(A::make(records)?)))
}

/// [`Entrant::shared`] of an index.
///
/// # Errors
/// As [`Make::make`] and [`Map::new`].
pub fn shared<const N: usize, I>(records: usize, config: &Config, monitor: bool) -> Made<N>
where
    I: Make
        + Find<Key<N>, Key<N>, Value>
        + SharedStore<Key<N>, Value>
        + SharedDiscard<Key<N>, Key<N>, Value>
        + Send
        + Sync
        + 'static,
{
    Ok(Box::new(SharedMap::<N, I>(map_over(I::make(records)?, config, monitor)?)))
}

/// [`Entrant::shared`] of an index that learns.
///
/// # Errors
/// As [`Make::make`] and [`Map::new`].
pub(super) fn learning<const N: usize, I>(records: usize, config: &Config, monitor: bool) -> Made<N>
where
    I: Learns + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync,
{
    Ok(Box::new(LearningMap::<N, I>(map_over(I::make(records)?, config, monitor)?)))
}

/// [`Entrant::shared`] of an index that keeps its own records.
///
/// # Errors
/// As [`Make::make`] and [`Beside::new`].
pub(super) fn with_own_records<const N: usize, I: Make + Records<N, Value = Value> + 'static>(
    records: usize,
    config: &Config,
    monitor: bool,
) -> Made<N> {
    let beside = Beside::new(I::make(records)?, config).map_err(in_words)?;
    beside.buffer().monitor(monitor);
    Ok(Box::new(WithOwnRecords(beside)))
}

/// [`Entrant::sole`] of an index.
///
/// # Errors
/// As [`Make::make`] and [`OwnedMap::new`].
pub fn sole<const N: usize, I>(records: usize, config: &Config, monitor: bool) -> Made<N>
where
    I: Make
        + Find<Key<N>, Key<N>, Value>
        + Store<Key<N>, Value>
        + Discard<Key<N>, Key<N>, Value>
        + Send
        + 'static,
{
    let mut map = OwnedMap::<Key<N>, Value, I>::new(I::make(records)?, config).map_err(in_words)?;
    map.monitor(monitor);
    Ok(Box::new(SoleMap(Mutex::new(map))))
}

/// [`Entrant::stlt`] of an index for one.
///
/// # Errors
/// As [`Make::make`], and if there is no such table.
pub fn behind_stlt<const N: usize, I>(records: usize, bytes: usize, ways: usize) -> Made<N>
where
    I: Make + Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send + 'static,
{
    Ok(Box::new(SoleMap(Mutex::new(BehindStlt::<N, I>::new(I::make(records)?, bytes, ways)?))))
}

/// [`Entrant::stlt`] of an index that threads could share.
///
/// # Errors
/// As [`behind_stlt`].
pub fn shared_behind_stlt<const N: usize, I>(records: usize, bytes: usize, ways: usize) -> Made<N>
where
    I: Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + 'static,
{
    behind_stlt::<N, OfOne<I>>(records, bytes, ways)
}
