//! Kind `art-strings`: words and paths as keys, of the tree and of the standard library's maps, alone and behind a
//! lookaside table: lookups, batches, ranges, and what the tree occupies.
//!
//! Keys are put in in a random order. Requests are Zipfian, drawn before the clock starts, and lie one behind the other
//! in memory, as those of a program do that has just read them. All take turns, run by run; a ratio is of one run, to
//! the standard library's tree asked one key at a time. What is found must sum up to what was asked for, and ranges
//! must be those of the standard library's tree.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::{Bound, ControlFlow};

use art::{Memory, PageKind, Tree};
use lookaside::index::{Find, Scan, SharedStore};
use lookaside::{Config as TableConfig, Handle, Map, RwLock};
use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator;
use workload::popularity::Popularity;

use super::draws::name_skew;
use super::grown::order_of_insertion;
use super::ordered::{BATCH, Call, Lot, Ordered, RANGE, rate, rates, sum};
use super::texts::{Source, Text};
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Where keys come from.
    sources: Vec<Source>,
    /// The exponents of the distributions.
    skews: Vec<f64>,
    /// Bytes of the tables in front.
    bytes: usize,
    /// Draws that warm the tables, and are learnt from.
    warm_up: usize,
    /// Lookups in a run, and as many entries shown by ranges.
    operations: usize,
}

/// One lookup in so many is sampled by a tree that learns.
const SAMPLE_EVERY: u32 = 16;
/// Which requests, and which permutation: any.
const DRAWN: u64 = 37;

/// Requests, one behind the other.
#[derive(Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Requests {
    /// Those for these records.
    pub(super) fn of(keys: &[Text], records: impl Iterator<Item = u64>) -> Lot<Requests> {
        let (mut requests, mut expected) = (Requests::default(), 0);
        for record in records {
            requests.bytes.extend_from_slice(&keys[record as usize]);
            requests.ends.push(requests.bytes.len());
            expected += record;
        }
        Lot { count: requests.ends.len(), requests, expected }
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.bytes[begin..end])
    }
}

/// An index of texts.
pub(super) trait Texts: Ordered<Requests> {
    /// Begins to learn, or lays out what has been learnt.
    fn learn(&self, _begin: bool) {}

    /// What it occupies, if it tells.
    fn memory(&self) -> Option<Memory> {
        None
    }
}

impl Texts for BTreeMap<Text, u64> {}

impl Texts for HashMap<Text, u64> {}

impl Ordered<Requests> for BTreeMap<Text, u64> {
    fn ask(&self, call: Call, requests: &Requests) -> Option<u64> {
        match call {
            Call::Single => Some(sum(requests.iter().map(|key| self.get(key)))),
            Call::Batch => None,
            Call::Range => {
                let range = |key| self.range::<[u8], _>((Bound::Included(key), Bound::Unbounded));
                Some(requests.iter().flat_map(|key| range(key).take(RANGE)).map(|(_, record)| record).sum())
            }
        }
    }
}

impl Ordered<Requests> for HashMap<Text, u64> {
    fn ask(&self, call: Call, requests: &Requests) -> Option<u64> {
        (call == Call::Single).then(|| sum(requests.iter().map(|key| self.get(key))))
    }
}

/// The tree; whether it is to be reorganised.
pub(super) struct Radix {
    pub(super) tree: Tree<[u8], u64>,
    pub(super) learns: bool,
}

impl Ordered<Requests> for Radix {
    fn ask(&self, call: Call, requests: &Requests) -> Option<u64> {
        let samples = self.tree.access_log().interval() > 0;
        let session = samples.then(|| self.tree.session());
        let reader = session.as_ref().map_or_else(|| self.tree.pin(), |session| session.pin());
        Some(match call {
            Call::Single => sum(requests.iter().map(|key| reader.get(key))),
            Call::Batch => in_batches(requests, |keys, found| reader.get_many(keys, found)),
            Call::Range => {
                let range = |key| reader.range_of_bytes(Bound::Included(key), Bound::Unbounded);
                requests.iter().flat_map(|key| range(key).take(RANGE)).map(|(_, record)| record).sum()
            }
        })
    }
}

impl Texts for Radix {
    fn learn(&self, begin: bool) {
        if self.learns && begin {
            self.tree.access_log().sample_every(SAMPLE_EVERY);
        } else if self.learns {
            self.tree.access_log().sample_every(0);
            self.tree.reorganize();
        }
    }

    fn memory(&self) -> Option<Memory> {
        Some(self.tree.memory())
    }
}

/// An index behind a table.
pub(super) struct Behind<I>(pub(super) Map<Text, u64, I>);

impl<I> Texts for Behind<I> where Behind<I>: Ordered<Requests> {}

impl<I> Ordered<Requests> for Behind<I>
where
    I: Find<[u8], Text, u64> + Scan<[u8], Text, u64> + SharedStore<Text, u64> + Send + Sync,
{
    fn ask(&self, call: Call, requests: &Requests) -> Option<u64> {
        let reader = self.0.pin();
        Some(match call {
            Call::Single => sum(requests.iter().map(|key| reader.get(key))),
            Call::Batch => in_batches(requests, |keys, found| reader.get_many(keys, found)),
            Call::Range => {
                let mut shown = 0;
                for key in requests.iter() {
                    let mut left = RANGE;
                    reader.scan(Bound::Included(key), Bound::Unbounded, |_, record| {
                        shown += record;
                        left -= 1;
                        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                    });
                }
                shown
            }
        })
    }
}

/// Makes requests, so many at once.
fn in_batches<'r>(requests: &Requests, mut get_many: impl FnMut(&[&[u8]], &mut [Option<&'r u64>])) -> u64 {
    let mut requests = requests.iter();
    let (mut total, mut keys, mut found) = (0, Vec::with_capacity(BATCH), [None; BATCH]);
    loop {
        keys.clear();
        keys.extend(requests.by_ref().take(BATCH));
        if keys.is_empty() {
            return total;
        }
        get_many(&keys, &mut found[..keys.len()]);
        total += sum(found[..keys.len()].iter().copied());
    }
}

/// The configurations, in the order in which they are made.
pub(super) const NAMES: [&str; 7] =
    ["BTreeMap", "HashMap", "ART", "ART, huge pages", "ART, reorganised", "BTreeMap, SLB", "ART, SLB"];

/// All of them, with these keys.
pub(super) fn fill(keys: &[Text], bytes: usize) -> Result<Vec<Box<dyn Texts>>, ExperimentError> {
    let entries = || {
        let order = order_of_insertion(keys.len())?;
        Ok::<_, ExperimentError>(order.map(|record| (&keys[record], record as u64)))
    };
    let mut all: Vec<Box<dyn Texts>> = vec![
        Box::new(entries()?.map(|(key, record)| (key.clone(), record)).collect::<BTreeMap<_, _>>()),
        Box::new(entries()?.map(|(key, record)| (key.clone(), record)).collect::<HashMap<_, _>>()),
    ];
    for (pages, learns) in [(PageKind::Base, false), (PageKind::Transparent, false), (PageKind::Base, true)] {
        let tree = Tree::<[u8], u64>::with_config(&art::Config::new().with_pages(pages))?;
        let mut reader = tree.pin();
        for (at, (key, record)) in entries()?.enumerate() {
            reader.insert(key, record)?;
            if at % 16 == 0 {
                reader.refresh();
            }
        }
        drop(reader);
        all.push(Box::new(Radix { tree, learns }));
    }
    let config = TableConfig::with_size(bytes);
    let set = RwLock::new(BTreeSet::<Handle<Text, u64>>::new());
    let tree = Tree::<[u8], Handle<Text, u64>>::new()?;
    let (set, tree) = (Map::with_index(set, &config)?, Map::with_index(tree, &config)?);
    for (key, record) in entries()? {
        set.insert(key.clone(), record);
        tree.insert(key.clone(), record);
    }
    all.push(Box::new(Behind(set)));
    all.push(Box::new(Behind(tree)));
    Ok(all)
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(parameters.sources.len() * parameters.skews.len() * (2 + session.runs()));
    for source in &parameters.sources {
        match source.keys(session)? {
            Ok(keys) => measure_source(parameters, &source.name, &keys, session)?,
            // The data is not part of this repository.
            Err(absent) => NAMES.iter().for_each(|name| session.skip(name, absent.to_string())),
        }
    }
    Ok(())
}

fn measure_source(
    parameters: &Parameters,
    source: &str,
    keys: &[Text],
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let distinct: HashSet<&Text> = keys.iter().collect();
    if distinct.len() != keys.len() {
        return Err(ExperimentError::machine(format!("{source}: a key is there twice")));
    }
    let count = keys.len() as u64;
    for &skew in &parameters.skews {
        session.begin(format!("{source}: growing"));
        // For each skew anew: what one has learnt the next must not know.
        let all = fill(keys, parameters.bytes)?;
        session.end();
        let point = format!("{source}, {}", name_skew(skew));
        for (name, texts) in NAMES.iter().zip(&all) {
            if let Some(memory) = texts.memory() {
                session.record(name, &point, "nodes", "B/key", memory.node_bytes() as f64 / count as f64);
                session.record(name, &point, "leaves", "B/key", memory.leaf_bytes as f64 / count as f64);
            }
        }
        session.begin(format!("{point}: warming up"));
        let records = Popularity::permuted(count, skew, DRAWN)?;
        let mut random = generator::seeded(DRAWN);
        let mut draw = |requests| Requests::of(keys, (0..requests).map(|_| records.sample(&mut random)));
        let seen = draw(parameters.warm_up);
        for (name, texts) in NAMES.iter().zip(&all) {
            texts.learn(true);
            rate((name, &**texts), Call::Single, std::slice::from_ref(&seen), &mut None)?;
            texts.learn(false);
        }
        session.end();
        for run in 0..session.runs() {
            session.begin(format!("{point}: run {} of {}", run + 1, session.runs()));
            // Others for each call: a table would know what it has just been asked for.
            let operations =
                [parameters.operations, parameters.operations, parameters.operations.div_ceil(RANGE)];
            measure_run(&all, &operations.map(&mut draw), run, &point, session)?;
            session.end();
        }
    }
    Ok(())
}

fn measure_run(
    all: &[Box<dyn Texts>],
    drawn: &[Lot<Requests>; 3],
    run: usize,
    point: &str,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let maps: Vec<(&str, &dyn Ordered<Requests>)> =
        NAMES.iter().zip(all).map(|(name, texts)| (*name, &**texts as _)).collect();
    let mut single = None;
    for (call, lot) in Call::ALL.into_iter().zip(drawn) {
        let rates = rates(&maps, call, [&[], std::slice::from_ref(lot)], run)?;
        let (metric, times) = match call {
            Call::Single => ("lookups", "times BTreeMap"),
            Call::Batch => ("lookups in batches", "times BTreeMap, in batches"),
            Call::Range => ("ranges of 100", "times BTreeMap, ranges"),
        };
        // The first has no batches.
        let first = if call == Call::Batch { single } else { rates[0] };
        single = single.or(rates[0]);
        for (name, rate) in NAMES.iter().zip(rates).filter_map(|(name, rate)| Some((name, rate?))) {
            session.record(name, point, metric, "M/s", rate / 1e6);
            session.record(name, point, times, "x", rate / first.expect("the first looks up"));
        }
    }
    Ok(())
}
