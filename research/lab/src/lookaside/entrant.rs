//! An index that can take part, by name: how it is made alone and with each table in front.

use lookaside::index::View;
use lookaside::{Config, CreateError, Map, OwnedMap};
use parking_lot::Mutex;

use super::beside::{Beside, Records};
use super::contestant::{Contestant, Learner, Learning, Learns, Make, OwnedIndex, SharedIndex};
use super::record::{Key, Value};
use super::stlt::{BehindStlt, OfOne};

/// A contestant, or why there is none.
pub type Made<const N: usize> = Result<Box<dyn Contestant<N>>, String>;

/// Makes one with room for so many records, behind a table made so, which the monitor watches or not.
pub type MakeFronted<const N: usize> = fn(usize, &Config, bool) -> Made<N>;

/// Makes one with room for so many records, behind STLT-SW: the bytes of the table, and the rows of a set.
pub type MakeBehindStlt<const N: usize> = fn(usize, usize, usize) -> Made<N>;

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
    /// It behind STLT-SW, for one thread.
    pub stlt: Option<MakeBehindStlt<N>>,
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
    pub fn with_shared<I: SharedIndex<N>>(self) -> Self {
        let shared: MakeFronted<N> =
            |records, config, monitor| Ok(Box::new(map_over::<N, I>(records, config, monitor)?));
        Entrant { shared: Some(shared), ..self }
    }

    /// The same of an index that learns.
    pub(super) fn with_learning<I>(self) -> Self
    where
        I: Learns + SharedIndex<N> + for<'i> View<Shown<'i> = Learner<'i, I>>,
    {
        let shared: MakeFronted<N> =
            |records, config, monitor| Ok(Box::new(Learning(map_over::<N, I>(records, config, monitor)?)));
        Entrant { shared: Some(shared), ..self }
    }

    /// It with a buffer beside it: an index that keeps its own records.
    pub(super) fn with_beside<I: Make + Records<N, Value = Value> + 'static>(self) -> Self {
        let shared: MakeFronted<N> = |records, config, monitor| {
            let beside = Beside::<N, I>::new(I::make(records)?, config).map_err(in_words)?;
            beside.buffer().monitor(monitor);
            Ok(Box::new(beside))
        };
        Entrant { shared: Some(shared), ..self }
    }

    /// It behind a map of one owner, and behind STLT-SW.
    #[must_use]
    pub fn with_sole<I: OwnedIndex<N>>(self) -> Self {
        let sole: MakeFronted<N> = |records, config, monitor| {
            let mut map =
                OwnedMap::<Key<N>, Value, I>::with_index(I::make(records)?, config).map_err(in_words)?;
            map.monitor(monitor);
            Ok(Box::new(Mutex::new(map)))
        };
        Entrant { sole: Some(sole), ..self }.with_stlt_before::<I>()
    }

    /// It behind STLT-SW: an index that threads could share.
    #[must_use]
    pub fn with_stlt<I: SharedIndex<N>>(self) -> Self {
        self.with_stlt_before::<OfOne<I>>()
    }

    fn with_stlt_before<I: OwnedIndex<N>>(self) -> Self {
        let stlt: MakeBehindStlt<N> = |records, bytes, ways| {
            Ok(Box::new(Mutex::new(BehindStlt::<N, I>::new(I::make(records)?, bytes, ways)?)))
        };
        Entrant { stlt: Some(stlt), ..self }
    }
}

fn map_over<const N: usize, I: SharedIndex<N>>(
    records: usize,
    config: &Config,
    monitor: bool,
) -> Result<Map<Key<N>, Value, I>, String> {
    let map = Map::with_index(I::make(records)?, config).map_err(in_words)?;
    map.buffer().monitor(monitor);
    Ok(map)
}

fn in_words(error: CreateError) -> String {
    error.to_string()
}
