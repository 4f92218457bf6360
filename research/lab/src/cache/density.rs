//! Kind `cache-density`: what memory the cache under test really takes.
//!
//! Each filling makes a cache of its own, stores more than fits, phase after phase, with a housekeeper beside as a
//! server has one, and then compares the resident memory that this process has gained, all of it, with the limit and
//! with the number of items. Nothing else of any size is allocated meanwhile.

use cache::engine::{Cache, Config, Entry, Stored, Verb};
use serde::Deserialize;
use workload::facebook::{EtcKeySizes, EtcValueSizes};
use workload::key::spell;
use workload::sizes::Sizes;

use crate::experiment::{ExperimentError, Session};
use crate::measure::{Resident, in_parallel};

/// Stores between two steps of the housekeeper.
const HOUSEKEEPING: u64 = 1000;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// What caches are filled with.
    fillings: Vec<Filling>,
}

/// What a cache is filled with.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Filling {
    /// The name of the configuration in the results.
    name: String,
    /// The cache's limit in bytes.
    limit: usize,
    /// What is stored, one after the other.
    phases: Vec<Phase>,
}

/// Items that are stored one after the other, each with a key of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Phase {
    /// How large the keys are.
    keys: Choice,
    /// How large the values are.
    values: Choice,
    /// Bytes of keys and values that are stored in all, as a multiple of the limit.
    times: f64,
}

/// Sizes in bytes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum Choice {
    /// The same for all.
    Fixed(usize),
    /// From the one to the other, equally often.
    Between(usize, usize),
    /// As Facebook's pool ETC has them.
    Etc,
}

impl Choice {
    /// The size for record `record`: always the same.
    fn size(self, record: u64, etc: &dyn Fn(u64) -> u64) -> usize {
        match self {
            Choice::Fixed(size) => size,
            // A multiple of the record that is prime to every range: each size in turn, in no order.
            Choice::Between(least, most) => {
                least + (record * 2_654_435_761 % (most - least + 1) as u64) as usize
            }
            Choice::Etc => etc(record) as usize,
        }
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(session.runs() * parameters.fillings.len());
    for _ in 0..session.runs() {
        for filling in &parameters.fillings {
            session.begin(filling.name.clone());
            let before = Resident::now();
            if before.bytes == 0 {
                return Err(ExperimentError::Machine(
                    "this system does not tell what is resident: it has no /proc/self/smaps_rollup".into(),
                ));
            }
            let cache: Cache = Cache::new(Config::with_limit(filling.limit))?;
            // A thread of its own, so that it does not move between cores.
            in_parallel(1, |_| fill(filling, &cache))?.into_iter().collect::<Result<(), _>>()?;
            let resident = Resident::now().since(before);
            let (name, items, memory) = (&filling.name, cache.len() as f64, cache.memory());
            let mut record = |metric, unit, sample| session.record(name, "", metric, unit, sample);
            record("items stored", "M", items / 1e6);
            record("resident bytes per item", "B", resident.bytes as f64 / items);
            record("index bytes per item", "B", memory.index as f64 / items);
            record("resident of limit", "%", 100.0 * resident.bytes as f64 / filling.limit as f64);
            session.record_pages(name, resident.pages());
            session.end();
        }
    }
    Ok(())
}

/// Stores what the filling says.
fn fill(filling: &Filling, cache: &Cache) -> Result<(), ExperimentError> {
    let wrong = |found: String| ExperimentError::wrong(&filling.name, found);
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let mut record = 0u64;
    for phase in &filling.phases {
        let enough = (filling.limit as f64 * phase.times) as usize;
        let mut stored = 0;
        while stored < enough {
            record += 1;
            key.clear();
            spell(record, phase.keys.size(record, &|record| EtcKeySizes.for_record(record)), &mut key);
            let size = phase.values.size(record, &|_| EtcValueSizes.for_key(&key));
            value.clear();
            value.resize(size, record as u8);
            match session.store(Verb::Set, Entry::new(&key), &value) {
                Ok(Stored::Stored(_)) => {}
                other => return Err(wrong(format!("{other:?} for {} + {size} bytes", key.len()))),
            }
            if !session.pin().get(&key).is_some_and(|hit| is_made_of(hit.pieces(), &value)) {
                return Err(wrong(format!("record {record} was stored and is not there")));
            }
            stored += key.len() + size;
            if record.is_multiple_of(HOUSEKEEPING) {
                housekeeper.step();
            }
        }
    }
    if cache.classes().iter().all(|(_, class)| class.departures.evicted == 0) {
        return Err(wrong("it is not full".into()));
    }
    Ok(())
}

/// Whether the pieces, one after the other, are the value.
fn is_made_of<'a>(mut pieces: impl Iterator<Item = &'a [u8]>, value: &[u8]) -> bool {
    let mut rest = value;
    let fits = pieces.all(|piece| rest.strip_prefix(piece).inspect(|left| rest = left).is_some());
    fits && rest.is_empty()
}
