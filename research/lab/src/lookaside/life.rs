//! Kind `slb-life`: what maps take before and after their lookups: to be loaded, to be held, to be dropped.
//!
//! Each is made of the same shuffled keys twice: collected from an iterator, as one loads it, and key by key, as it
//! grows. What is resident more than before is its memory; what it frees elsewhere by and by counts as long as it is
//! not freed. All take turns. Values are found again before a map is dropped.

use std::collections::BTreeMap;

use lookaside::{Map, OwnedMap};
use rand::seq::SliceRandom;
use serde::Deserialize;
use workload::generator::seeded;

use crate::experiment::{ExperimentError, Session};
use crate::measure::{Resident, Stopwatch, cores, on_core, release_freed_memory, turns};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Keys: numbers, as their values are.
    keys: u64,
}

/// A map from numbers to numbers.
trait Subject: FromIterator<(u64, u64)> {
    const NAME: &str;

    fn fill(keys: &[u64]) -> Self;
    fn value(&self, key: u64) -> Option<u64>;
}

impl Subject for BTreeMap<u64, u64> {
    const NAME: &str = "BTreeMap";

    fn fill(keys: &[u64]) -> Self {
        let mut map = BTreeMap::new();
        for &key in keys {
            map.insert(key, !key);
        }
        map
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }
}

impl Subject for Map<u64, u64> {
    const NAME: &str = "Map";

    fn fill(keys: &[u64]) -> Self {
        let map = Map::with_capacity(keys.len());
        let reader = map.pin();
        for &key in keys {
            reader.insert(key, !key);
        }
        drop(reader);
        map
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.pin().get(&key).copied()
    }
}

impl Subject for OwnedMap<u64, u64> {
    const NAME: &str = "OwnedMap";

    fn fill(keys: &[u64]) -> Self {
        let mut map = OwnedMap::with_capacity(keys.len());
        for &key in keys {
            map.insert(key, !key);
        }
        map
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let core = *cores()?.last().expect("a program runs on a core");
    let lives = [live::<BTreeMap<u64, u64>>, live::<Map<u64, u64>>, live::<OwnedMap<u64, u64>>];
    session.announce(session.runs());
    for run in 0..session.runs() {
        session.begin(format!("run {}", run + 1));
        let mut keys: Vec<u64> = (0..parameters.keys).map(|key| key << 20 | run as u64).collect();
        keys.shuffle(&mut seeded(run as u64));
        for turn in turns(lives.len(), run) {
            on_core(core, || lives[turn](&keys, session))??;
        }
        session.end();
    }
    Ok(())
}

fn live<M: Subject>(keys: &[u64], session: &mut Session) -> Result<(), ExperimentError> {
    for how in ["collected", "inserted"] {
        release_freed_memory();
        let (before, clock) = (Resident::now(), Stopwatch::start());
        let map = if how == "inserted" {
            M::fill(keys)
        } else {
            keys.iter().map(|&key| (key, !key)).collect::<M>()
        };
        let made = clock.elapsed();
        let bytes = Resident::now().since(before).bytes;
        if let Some(key) = keys.iter().find(|&&key| map.value(key) != Some(!key)) {
            return Err(ExperimentError::wrong(M::NAME, format!("key {key} has another value or none")));
        }
        let clock = Stopwatch::start();
        drop(map);
        let dropped = clock.elapsed();
        let mut record = |metric, unit, value| session.record(M::NAME, how, metric, unit, value);
        record("time to be made", "ms", made.as_secs_f64() * 1e3);
        record("time to be dropped", "ms", dropped.as_secs_f64() * 1e3);
        record("memory per key", "B", bytes as f64 / keys.len() as f64);
    }
    Ok(())
}
