//! The cache under test: [`cache::engine::Cache`], the cuckoo index with CLOCK, asked what experiments ask.
//!
//! Its limit holds for items and index together, the paper's cache size for items alone. [`limit_for`] turns the one
//! into the other.

use std::ops::ControlFlow;

use cache::engine::{Cache, Config, Entry, Policy, SMALLEST_LIMIT, Session, Verb};
use cuckoo::{Linear, Table};

use super::contestant::{Contestant, Holding, Request, Tally, Value, Verb as Asked, Visitor};
use crate::experiment::ExperimentError;
use crate::index::Key;

/// Keys that a caller hands over at once where it asks in batches: a multi-get of a usual size.
const BATCH: usize = 64;

/// The cache.
pub(super) struct CuckooClock<P: Policy = cache::engine::Clock> {
    cache: Cache<P>,
}

impl<P: Policy> CuckooClock<P> {
    /// A cache with room for `space` bytes of items of `key` + `value` bytes, and their index.
    pub(super) fn new(space: usize, key: usize, value: usize) -> Result<Self, ExperimentError> {
        let limit = limit_for(space, key, value)?;
        Ok(CuckooClock { cache: Cache::new(Config::with_limit(limit))? })
    }
}

/// The limit of a cache whose items, of `key` + `value` bytes, may take `space` bytes: so much more as their entries in
/// the index need.
pub(super) fn limit_for(space: usize, key: usize, value: usize) -> Result<usize, ExperimentError> {
    // What chunk an item of this size gets is asked, not assumed.
    let probe: Cache = Cache::new(Config::with_limit(SMALLEST_LIMIT))?;
    let stored = probe.session().store(Verb::Set, Entry::new(&vec![0; key]), &vec![0; value]);
    let classes = probe.classes();
    let (Ok(_), [(_, class)]) = (stored, classes.as_slice()) else {
        return Err(ExperimentError::Machine(format!(
            "an item of {key} + {value} bytes: choose smaller ones"
        )));
    };
    let slot = <Table>::BUCKET_BYTES as f64 / <Table>::BUCKET_SLOTS as f64;
    let entry = slot / Linear::up_to(1).target_load;
    Ok((space as f64 * (1.0 + entry / class.chunk_size as f64)) as usize)
}

impl<P: Policy> Visitor for Session<P> {
    #[inline]
    fn get(&mut self, key: &Key) -> Option<Value> {
        let pinned = self.pin();
        pinned.get(&key.0)?.contiguous().and_then(Value::from_bytes)
    }

    fn set(&mut self, key: &Key, value: &Value) -> bool {
        self.store(Verb::Set, Entry::new(&key.0), &value.to_bytes()).is_ok()
    }

    fn perform_batched(&mut self, requests: &[Request]) -> Tally {
        let mut tally = Tally::default();
        let mut keys: Vec<&[u8]> = Vec::with_capacity(BATCH);
        let mut to_set: Vec<&Key> = Vec::with_capacity(BATCH);
        for requests in requests.chunks(BATCH) {
            let gets = || requests.iter().filter(|request| request.verb == Asked::Get);
            keys.clear();
            keys.extend(gets().map(|request| request.key.0.as_slice()));
            to_set.clear();
            let sets = requests.iter().filter(|request| request.verb == Asked::Set);
            to_set.extend(sets.map(|request| &request.key));
            let mut asked = gets();
            self.pin().get_many(&keys, |_, hit| {
                let key = &asked.next().expect("an answer a key").key;
                tally.gets += 1;
                match hit {
                    Some(hit) => {
                        let found = hit.contiguous().and_then(Value::from_bytes);
                        tally.wrong += u64::from(found != Some(Value::of(key)));
                    }
                    None => {
                        tally.misses += 1;
                        to_set.push(key);
                    }
                }
                ControlFlow::Continue(())
            });
            for key in &to_set {
                tally.refused += u64::from(!self.set(key, &Value::of(key)));
            }
        }
        tally
    }
}

impl<P: Policy> Contestant for CuckooClock<P> {
    fn enter(&self) -> Box<dyn Visitor + '_> {
        Box::new(self.cache.session())
    }

    fn holding(&self) -> Holding {
        Holding {
            items: self.cache.len(),
            index: self.cache.memory().index,
            pages: self.cache.page_kind().to_string(),
        }
    }

    fn has_evicted(&self) -> bool {
        self.cache.classes().iter().any(|(_, class)| class.departures.evicted > 0)
    }
}
