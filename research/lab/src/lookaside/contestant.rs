//! What takes part in an experiment: an index alone, or with a table in front.
//!
//! | contestant | what it is |
//! |---|---|
//! | `Alone`, `Boxes`, `Own` | an index as its users have it, called directly (`indexes`, `beside`) |
//! | [`lookaside::Map`] | over an index |
//! | `Beside` | [`lookaside::Buffer`] beside an index that keeps its own records |
//! | [`lookaside::OwnedMap`] | over the index, for one thread, under a lock that is taken once a call |
//! | `BehindStlt` | STLT-SW before the index, likewise (`stlt`) |
//! | `Partitioned` | one of these for each thread, each with its share of the records |
//!
//! An experiment pays one indirect call for millions of requests: the loops are a visit's own.

use lookaside::index::{Find, SharedStore, Store, View};
use lookaside::{Counts, CreateError, Map, MapRef, OwnedMap, RwLock, Verdict};
use parking_lot::Mutex;

use super::record::{Key, Value};
use super::visit::{Answer, Lot, Request, Visit, count_many, in_turn};
use crate::subject::{Call, Tally};

/// What a contestant can do.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// It has a call of its own for batches.
    pub batches: bool,
    /// Several threads may look up at once.
    pub shared_reads: bool,
    /// Several threads may write at once.
    pub shared_writes: bool,
    /// Its values can be changed in place.
    pub renews: bool,
    /// It is laid out by what it is asked for.
    pub learns: bool,
}

impl Abilities {
    /// Of a map for many readers, or one writer.
    pub const READ_BY_MANY: Abilities =
        Abilities { batches: false, shared_reads: true, shared_writes: false, renews: true, learns: false };
    /// Of a map that threads share.
    pub const SHARED: Abilities = Abilities { shared_writes: true, ..Abilities::READ_BY_MANY };
    /// Of a map with a table in front that threads share.
    pub const FRONTED: Abilities = Abilities { batches: true, ..Abilities::SHARED };
    /// Of a map with a table in front, for one thread.
    pub const SOLE: Abilities = Abilities { batches: true, shared_reads: false, ..Abilities::READ_BY_MANY };
}

/// What is asked of everyone.
pub trait Contestant<const N: usize>: Send + Sync {
    /// Answers the first lot and then, with the clock running, the other, as thread number `thread`.
    fn ask(&self, thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer;

    /// What it can do.
    fn abilities(&self) -> Abilities;

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

    /// What the table in front has counted, and what its monitor has found.
    fn told(&self) -> Option<(Counts, Verdict)> {
        None
    }

    /// What the table in front has counted.
    fn counts(&self) -> Option<Counts> {
        self.told().map(|(counts, _)| counts)
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

/// An index that threads share behind a map: what a map asks of it.
pub trait SharedIndex<const N: usize>:
    Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync + 'static
{
}

impl<const N: usize, I> SharedIndex<N> for I where
    I: Make + Find<Key<N>, Key<N>, Value> + SharedStore<Key<N>, Value> + Send + Sync + 'static
{
}

/// An index of one owner behind a map: what that asks of it.
pub trait OwnedIndex<const N: usize>:
    Make + Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send + 'static
{
}

impl<const N: usize, I> OwnedIndex<N> for I where
    I: Make + Find<Key<N>, Key<N>, Value> + Store<Key<N>, Value> + Send + 'static
{
}

impl<const N: usize, I: SharedIndex<N>> Contestant<N> for Map<Key<N>, Value, I> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut self.pin(), call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities::FRONTED
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        self.buffer().resize(bytes)
    }

    fn told(&self) -> Option<(Counts, Verdict)> {
        Some((self.buffer().counts(), self.buffer().verdict()))
    }
}

impl<const N: usize, I: SharedIndex<N>> Visit<N> for MapRef<'_, Key<N>, Value, I> {
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
        MapRef::refresh(self);
    }
}

/// What an index behind a map shows of itself, if it learns: that it does.
pub(super) struct Learner<'i, I>(pub(super) &'i I);

/// An index that learns from what it is asked for.
pub(super) trait Learns {
    /// As [`Contestant::note`].
    fn note(&self);

    /// As [`Contestant::settle`].
    fn settle(&self);
}

/// A map over such an index.
pub(super) struct Learning<const N: usize, I>(pub(super) Map<Key<N>, Value, I>);

impl<const N: usize, I> Contestant<N> for Learning<N, I>
where
    I: Learns + SharedIndex<N> + for<'i> View<Shown<'i> = Learner<'i, I>>,
{
    fn ask(&self, thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        self.0.ask(thread, call, lots)
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn note(&self) {
        self.0.view().0.note();
    }

    fn settle(&self) {
        self.0.view().0.settle();
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        Contestant::resize(&mut self.0, bytes)
    }

    fn told(&self) -> Option<(Counts, Verdict)> {
        self.0.told()
    }
}

impl<const N: usize, I: OwnedIndex<N>> Visit<N> for OwnedMap<Key<N>, Value, I> {
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

impl<const N: usize, I: OwnedIndex<N>> Contestant<N> for Mutex<OwnedMap<Key<N>, Value, I>> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut *self.lock(), call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities::SOLE
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        self.get_mut().resize(bytes)
    }

    fn told(&self) -> Option<(Counts, Verdict)> {
        let map = self.lock();
        Some((map.counts(), map.verdict()))
    }
}

/// A contestant for each thread. Record `r` is in the partition `r` modulo their number; who asks for others finds
/// nothing.
pub(super) struct Partitioned<const N: usize>(pub(super) Vec<Box<dyn Contestant<N>>>);

impl<const N: usize> Contestant<N> for Partitioned<N> {
    fn ask(&self, thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        self.0[thread].ask(thread, call, lots)
    }

    fn abilities(&self) -> Abilities {
        let batches = self.0.iter().all(|part| part.abilities().batches);
        Abilities { batches, ..Abilities::SHARED }
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        let share = bytes / self.0.len().max(1);
        self.0.iter_mut().try_for_each(|part| part.resize(share))
    }

    fn told(&self) -> Option<(Counts, Verdict)> {
        let told = self.0.iter().map(|part| part.told()).collect::<Option<Vec<_>>>()?;
        told.into_iter().reduce(|(mut sum, verdict), (part, _)| {
            sum.hits += part.hits;
            sum.misses += part.misses;
            sum.bypassed += part.bypassed;
            (sum, verdict)
        })
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
