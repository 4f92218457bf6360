//! What takes part in an experiment: an index alone, or with a table in front.
//!
//! | contestant | what it is |
//! |---|---|
//! | `Locked`, `Boxes`, `Own` | an index as its users have it, called directly (`indexes`, `beside`) |
//! | `Fronted` | [`lookaside::Map`] over an index, or [`lookaside::Buffer`] beside one that keeps its own records |
//! | `Sole` | [`lookaside::OwnedMap`] over the index, for one thread; or STLT-SW before it (`stlt`) |
//! | `Partitioned` | one of these for each thread, each with its share of the records |
//!
//! An experiment pays one indirect call for millions of requests: the loops are a visit's own.

use lookaside::index::{Find, SharedStore, Store, View};
use lookaside::{Config, Counts, CreateError, Map, OwnedMap, Reader, RwLock, Verdict};
use parking_lot::Mutex;

use super::beside::{Beside, Records};
use super::record::{Key, Value};
use super::stlt::{BehindStlt, OfOne};
use super::visit::{Answer, Lot, Request, Visit, count_many, in_turn};
use crate::subject::{Call, Tally};

/// What is asked of everyone.
pub trait Contestant<const N: usize>: Send + Sync {
    /// Answers the first lot and then, with the clock running, the other, as thread number `thread`.
    fn ask(&self, thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer;

    /// Whether it has a call of its own for batches.
    fn has_batches(&self) -> bool {
        false
    }

    /// Whether several threads may write at once.
    fn shares_writes(&self) -> bool {
        false
    }

    /// Whether several threads may look up at once.
    fn shares_reads(&self) -> bool {
        true
    }

    /// Whether its values can be changed in place.
    fn renews(&self) -> bool {
        true
    }

    /// Whether it is laid out by what it is asked for.
    fn learns(&self) -> bool {
        false
    }

    /// Takes note of what it has been asked for since the last time, where it learns from that.
    fn note(&self) {}

    /// Lays out what it keeps by what it has taken note of, where it does such a thing.
    fn settle(&self) {}

    /// Empties the table in front, which is then of so many bytes; does nothing where there is none.
    ///
    /// # Errors
    /// As [`lookaside::Buffer::resize`].
    fn resize(&mut self, _bytes: usize) -> Result<(), CreateError> {
        Ok(())
    }

    /// What the table in front has counted.
    fn counts(&self) -> Option<Counts> {
        None
    }

    /// What the monitor has found.
    fn verdict(&self) -> Option<Verdict> {
        None
    }

    /// Looks up `warm_up`, and then `timed`.
    fn get(&self, thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
        self.ask(thread, call, [warm_up, timed].map(Lot::Keys))
    }

    /// Carries out requests.
    fn perform(&self, thread: usize, call: Call, timed: &[Request<N>]) -> Answer {
        self.ask(thread, call, [&[], timed].map(Lot::Requests))
    }
}

/// Something that can be made empty with room for some records.
pub trait Make: Sized {
    /// It.
    ///
    /// # Errors
    /// In words, why there is none.
    fn make(records: usize) -> Result<Self, String>;
}

impl<I: Make> Make for RwLock<I> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(RwLock::new(I::make(records)?))
    }
}

/// An index with a table in front, which a thread pins for as many calls as it likes.
pub(super) trait Pinned<const N: usize>: Send + Sync {
    /// The pin.
    type Visit<'m>: Visit<N>
    where
        Self: 'm;

    fn pin(&self) -> Self::Visit<'_>;

    /// Has its monitor watch, or not.
    fn monitor(&self, watches: bool);

    /// As [`Contestant::resize`].
    fn resize(&self, bytes: usize) -> Result<(), CreateError>;

    /// As [`Contestant::counts`] and [`Contestant::verdict`].
    fn told(&self) -> (Counts, Verdict);
}

/// A map's buffer and a bare one are of two types, with the same calls.
macro_rules! of_its_buffer {
    () => {
        fn monitor(&self, watches: bool) {
            self.buffer().monitor(watches);
        }

        fn resize(&self, bytes: usize) -> Result<(), CreateError> {
            self.buffer().resize(bytes)
        }

        fn told(&self) -> (Counts, Verdict) {
            (self.buffer().counts(), self.buffer().verdict())
        }
    };
}
pub(super) use of_its_buffer;

impl<const N: usize, I> Pinned<N> for Map<Key<N>, Value, I>
where
    I: Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync,
{
    type Visit<'m>
        = Reader<'m, Key<N>, Value, I>
    where
        Self: 'm;

    fn pin(&self) -> Self::Visit<'_> {
        Map::pin(self)
    }

    of_its_buffer!();
}

impl<const N: usize, I> Visit<N> for Reader<'_, Key<N>, Value, I>
where
    I: Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value>,
{
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(key).map(see)
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        count_many(keys, tally, |keys, values| self.get_many(keys, values));
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.insert(request.key, Value::of(request.record));
    }

    fn refresh(&mut self) {
        Reader::refresh(self);
    }
}

/// What an index behind a map shows of itself, if it learns: that it does.
pub(super) struct Learner<'i, I>(pub(super) &'i I);

/// An index that learns from what it is asked for.
pub(super) trait Learns: Make + 'static {
    /// As [`Contestant::note`].
    fn note(&self);

    /// As [`Contestant::settle`].
    fn settle(&self);
}

/// Such an index as a contestant, and how it learns.
struct Fronted<M> {
    map: M,
    note: fn(&M),
    settle: fn(&M),
}

impl<const N: usize, M: Pinned<N>> Contestant<N> for Fronted<M> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut self.map.pin(), call, lots)
    }

    fn has_batches(&self) -> bool {
        true
    }

    fn shares_writes(&self) -> bool {
        true
    }

    fn note(&self) {
        (self.note)(&self.map);
    }

    fn settle(&self) {
        (self.settle)(&self.map);
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        self.map.resize(bytes)
    }

    fn counts(&self) -> Option<Counts> {
        Some(self.map.told().0)
    }

    fn verdict(&self) -> Option<Verdict> {
        Some(self.map.told().1)
    }
}

/// The table before the index of one owner.
pub(super) trait Front: Send {
    /// As [`Contestant::resize`].
    fn resize(&mut self, bytes: usize) -> Result<(), CreateError>;

    /// As [`Contestant::counts`].
    fn counts(&self) -> Counts;

    /// As [`Contestant::verdict`].
    fn verdict(&self) -> Option<Verdict>;
}

impl<const N: usize, I> Visit<N> for OwnedMap<Key<N>, Value, I>
where
    I: Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value>,
{
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(key).map(see)
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        count_many(keys, tally, |keys, values| self.get_many(keys, values));
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.insert(request.key, Value::of(request.record));
    }
}

impl<const N: usize, I: Send> Front for OwnedMap<Key<N>, Value, I>
where
    I: Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value>,
{
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

/// A map of one owner, behind a lock that is taken once a call.
struct Sole<M>(Mutex<M>);

impl<const N: usize, M: Visit<N> + Front> Contestant<N> for Sole<M> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut *self.0.lock(), call, lots)
    }

    fn has_batches(&self) -> bool {
        true
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
    fn ask(&self, thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        self.0[thread].ask(thread, call, lots)
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
        contestant.perform(thread, Call::Single, &requests);
    }
}

/// A contestant, or why there is none.
pub type Made<const N: usize> = Result<Box<dyn Contestant<N>>, String>;

/// Makes one with room for so many records, behind a table made so, which the monitor watches or not.
pub type MakeFronted<const N: usize> = fn(usize, &Config, bool) -> Made<N>;

/// An index that can take part.
#[derive(Debug, Clone, Copy)]
pub struct Entrant<const N: usize> {
    /// Its name in definitions and results.
    pub name: &'static str,
    /// It alone, with room for so many records.
    pub alone: fn(usize) -> Made<N>,
    /// It behind a map that threads share.
    pub shared: Option<MakeFronted<N>>,
    /// It behind a map of one owner, where it is an index for one.
    pub sole: Option<MakeFronted<N>>,
    /// It behind a buffer in another language, which is asked by calls only; [`Entrant::shared`] is then what can be
    /// inlined.
    pub called: Option<MakeFronted<N>>,
    /// It behind STLT-SW, for one thread: the bytes of the table, and the rows of a set.
    pub stlt: Option<fn(usize, usize, usize) -> Made<N>>,
}

impl<const N: usize> Entrant<N> {
    /// An index alone.
    #[must_use]
    pub fn new<A: Make + Contestant<N> + 'static>(name: &'static str) -> Self {
        let alone = |records| Ok(Box::new(A::make(records)?) as _);
        Entrant { name, alone, shared: None, sole: None, called: None, stlt: None }
    }

    /// It behind a map that threads share.
    #[must_use]
    pub fn with_shared<I>(self) -> Self
    where
        I: Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync + 'static,
    {
        let shared: MakeFronted<N> =
            |records, config, monitor| fronted(map_over::<N, I>(records, config)?, monitor, |_| (), |_| ());
        Entrant { shared: Some(shared), ..self }
    }

    /// The same of an index that learns.
    pub(super) fn with_learning<I>(self) -> Self
    where
        I: Learns + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync,
        I: for<'i> View<Shown<'i> = Learner<'i, I>>,
    {
        let shared: MakeFronted<N> = |records, config, monitor| {
            let map = map_over::<N, I>(records, config)?;
            fronted(map, monitor, |map| map.view().0.note(), |map| map.view().0.settle())
        };
        Entrant { shared: Some(shared), ..self }
    }

    /// It with a buffer beside it: an index that keeps its own records.
    pub(super) fn with_beside<I: Make + Records<N, Value = Value> + 'static>(self) -> Self {
        let shared: MakeFronted<N> = |records, config, monitor| {
            let beside = Beside::<N, I>::new(I::make(records)?, config).map_err(in_words)?;
            fronted(beside, monitor, |_| (), |_| ())
        };
        Entrant { shared: Some(shared), ..self }
    }

    /// It behind a map of one owner, and behind STLT-SW.
    #[must_use]
    pub fn with_sole<I>(self) -> Self
    where
        I: Make + Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send + 'static,
    {
        let sole: MakeFronted<N> = |records, config, monitor| {
            let mut map = OwnedMap::<Key<N>, Value, I>::new(I::make(records)?, config).map_err(in_words)?;
            map.monitor(monitor);
            Ok(Box::new(Sole(Mutex::new(map))))
        };
        Entrant { sole: Some(sole), ..self }.with_stlt_before::<I>()
    }

    /// It behind STLT-SW: an index that threads could share.
    #[must_use]
    pub fn with_stlt<I>(self) -> Self
    where
        I: Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + 'static,
    {
        self.with_stlt_before::<OfOne<I>>()
    }

    fn with_stlt_before<I>(self) -> Self
    where
        I: Make + Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send + 'static,
    {
        let stlt: fn(usize, usize, usize) -> Made<N> = |records, bytes, ways| {
            Ok(Box::new(Sole(Mutex::new(BehindStlt::<N, I>::new(I::make(records)?, bytes, ways)?))))
        };
        Entrant { stlt: Some(stlt), ..self }
    }

    /// Whether a shared table before it fits itself unless something else is asked for: as `lookaside::Config` has it,
    /// and `lookaside_options` has not.
    pub(super) fn fits_by_default(&self) -> bool {
        self.called.is_none()
    }
}

fn map_over<const N: usize, I>(records: usize, config: &Config) -> Result<Map<Key<N>, Value, I>, String>
where
    I: Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value>,
{
    Map::new(I::make(records)?, config).map_err(in_words)
}

fn fronted<const N: usize, M: Pinned<N> + 'static>(
    map: M,
    monitor: bool,
    note: fn(&M),
    settle: fn(&M),
) -> Made<N> {
    map.monitor(monitor);
    Ok(Box::new(Fronted { map, note, settle }))
}

fn in_words(error: CreateError) -> String {
    error.to_string()
}
