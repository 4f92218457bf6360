//! Our adaptive radix tree: alone, and behind a map.
//!
//! Alone it has values in its leaves, or on the heap as the other indexes have them. Nodes and leaves are in regular
//! pages, for which huge ones are refused, or in transparent huge ones; as they were built, or laid together by what
//! was asked for: then one lookup in so many is sampled until [`Make::settle`], which lays the paths of all keys that
//! were sampled together, the most frequent first. Behind a map the tree is asked, and learns, only what the table
//! misses.

use std::collections::HashMap;

use art::{Config, OwnedTree, PageKind, Reader, Session, Tree};
use lookaside::index::{Find, SharedDiscard, SharedStore, View};
use lookaside::{Found, Handle, Pin};
use parking_lot::Mutex;

use super::contestant::{Alone, BATCH, Entrant, Learner, Make, Request, alone, learning, sole};
use super::record::{Key, Tally, Value};

/// One lookup in so many is sampled. No ring overflows between two calls of [`Make::note`] that are a million lookups
/// apart.
const SAMPLE_EVERY: u32 = 32;

type Handled<const N: usize> = Handle<Key<N>, Value>;

impl<const N: usize> art::index::Encode<[u8; N]> for Key<N> {
    type Bytes<'k> = &'k [u8; N];

    #[inline(always)]
    fn encode(&self) -> &[u8; N] {
        &self.0
    }
}

/// How a value is stored in a tree alone.
pub(super) trait Stored: Clone + Send + Sync + 'static {
    /// That of a record.
    fn of(record: u64) -> Self;
    /// As [`Value::read`].
    fn read(&self) -> u64;
}

impl Stored for Value {
    fn of(record: u64) -> Value {
        Value::of(record)
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        Value::read(self)
    }
}

impl Stored for Box<Value> {
    fn of(record: u64) -> Box<Value> {
        Box::new(Value::of(record))
    }

    #[inline(always)]
    fn read(&self) -> u64 {
        Value::read(self)
    }
}

/// The tree, in huge pages or not, reorganised or not.
pub(super) struct Radix<const N: usize, V, const HUGE: bool, const REORGANISED: bool> {
    tree: Tree<[u8; N], V>,
    seen: Mutex<HashMap<[u8; N], usize>>,
}

impl<const N: usize, V, const HUGE: bool, const REORGANISED: bool> Make for Radix<N, V, HUGE, REORGANISED>
where
    V: Clone + Send + Sync + 'static,
{
    fn make(_records: usize) -> Result<Self, String> {
        let pages = if HUGE { PageKind::Transparent } else { PageKind::Base };
        let tree = Tree::with_config(&Config::new().with_pages(pages)).map_err(|error| error.to_string())?;
        if REORGANISED {
            tree.access_log().sample_every(SAMPLE_EVERY);
        }
        Ok(Radix { tree, seen: Mutex::default() })
    }

    fn note(&self) {
        let mut seen = self.seen.lock();
        self.tree.access_log().drain().into_iter().for_each(|key| *seen.entry(key).or_default() += 1);
    }

    fn settle(&self) {
        self.note();
        self.tree.access_log().sample_every(0);
        let mut hot: Vec<_> = self.seen.lock().drain().collect();
        hot.sort_unstable_by(|(a, more), (b, fewer)| fewer.cmp(more).then_with(|| a.cmp(b)));
        let mut reorganization = self.tree.reorganization(hot.into_iter().map(|(key, _)| key).collect());
        while reorganization.step(1 << 10).is_continue() {}
    }
}

impl<const N: usize, V: 'static, const HUGE: bool, const REORGANISED: bool> View
    for Radix<N, V, HUGE, REORGANISED>
{
    type Shown<'i> = Learner<'i, Self>;

    fn view(&self) -> Learner<'_, Self> {
        Learner(self)
    }
}

impl<const N: usize, V: Stored, const HUGE: bool, const REORGANISED: bool> Radix<N, V, HUGE, REORGANISED> {
    /// Looks up by a reader: of a session, while it samples.
    fn ask(&self, ask: impl FnOnce(&mut Reader<'_, [u8; N], V>) -> Tally) -> Tally {
        if self.tree.access_log().interval() == 0 {
            return ask(&mut self.tree.pin());
        }
        let session: Session<'_, _, _> = self.tree.session();
        ask(&mut session.pin())
    }
}

impl<const N: usize, V: Stored, const HUGE: bool, const REORGANISED: bool> Alone<N>
    for Radix<N, V, HUGE, REORGANISED>
{
    const SHARES_WRITES: bool = true;
    const HAS_BATCHES: bool = true;

    fn get_each(&self, keys: &[Key<N>]) -> Tally {
        self.ask(|reader| {
            let mut tally = Tally::default();
            keys.iter().for_each(|key| tally.count(reader.get(&key.0).map(V::read)));
            tally
        })
    }

    fn get_batches(&self, keys: &[Key<N>]) -> Tally {
        self.ask(|reader| {
            let mut tally = Tally::default();
            for keys in keys.chunks(BATCH) {
                let mut asked = [&keys[0].0; BATCH];
                asked.iter_mut().zip(keys).for_each(|(asked, key)| *asked = &key.0);
                let mut values = [None; BATCH];
                reader.get_many(&asked[..keys.len()], &mut values[..keys.len()]);
                values[..keys.len()].iter().for_each(|value| tally.count(value.map(V::read)));
            }
            tally
        })
    }

    fn perform(&self, requests: &[Request<N>]) -> Tally {
        self.ask(|reader| {
            let mut tally = Tally::default();
            for requests in requests.chunks(1024) {
                for request in requests {
                    if request.set {
                        let stored = reader.insert(&request.key.0, V::of(request.record));
                        assert!(stored.is_ok(), "there are addresses for more than any machine's memory");
                    } else {
                        tally.count(reader.get(&request.key.0).map(V::read));
                    }
                }
                reader.refresh();
            }
            tally
        })
    }
}

impl<const N: usize, const HUGE: bool, const REORGANISED: bool> Find<Key<N>, Key<N>, Value>
    for Radix<N, Handled<N>, HUGE, REORGANISED>
{
    #[inline]
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.tree.find(key, pin)
    }

    fn find_many<'p>(
        &self,
        keys: &[&Key<N>],
        pin: &Pin<'p>,
        found: impl FnMut(usize, Option<Found<'p, Key<N>, Value>>),
    ) {
        self.tree.find_many(keys, pin, found);
    }
}

impl<const N: usize, const HUGE: bool, const REORGANISED: bool> SharedStore<Key<N>, Value>
    for Radix<N, Handled<N>, HUGE, REORGANISED>
{
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        SharedStore::replace(&self.tree, handle)
    }

    fn len(&self) -> usize {
        self.tree.len()
    }
}

impl<const N: usize, const HUGE: bool, const REORGANISED: bool> SharedDiscard<Key<N>, Key<N>, Value>
    for Radix<N, Handled<N>, HUGE, REORGANISED>
{
    fn remove(&self, key: &Key<N>) -> Option<Handled<N>> {
        SharedDiscard::remove(&self.tree, key)
    }
}

/// The owner's form behind its map.
type Owned<const N: usize> = OwnedTree<[u8; N], Handled<N>>;

impl<const N: usize> Make for Owned<N> {
    fn make(_records: usize) -> Result<Self, String> {
        OwnedTree::new().map_err(|error| error.to_string())
    }
}

/// One of them as an entrant.
fn entrant<const N: usize, const HUGE: bool, const REORGANISED: bool>(name: &'static str) -> Entrant<N> {
    Entrant {
        name,
        alone: alone::<N, Radix<N, Value, HUGE, REORGANISED>>,
        shared: Some(learning::<N, Radix<N, Handled<N>, HUGE, REORGANISED>>),
        sole: None,
        called: None,
        stlt: None,
    }
}

/// Those that need not learn.
pub(super) fn entrants<const N: usize>() -> Vec<Entrant<N>> {
    vec![
        Entrant { sole: Some(sole::<N, Owned<N>>), ..entrant::<N, false, false>("ART") },
        entrant::<N, true, false>("ART, huge pages"),
        Entrant {
            name: "ART, values on the heap",
            alone: alone::<N, Radix<N, Box<Value>, false, false>>,
            shared: None,
            sole: None,
            called: None,
            stlt: None,
        },
    ]
}

/// Those that learn: [`Make::note`] and [`Make::settle`] are to be called.
pub(crate) fn learning_entrants<const N: usize>() -> Vec<Entrant<N>> {
    vec![
        entrant::<N, false, true>("ART, reorganised"),
        entrant::<N, true, true>("ART, huge pages, reorganised"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookaside::contestant::{Call, fill};
    use crate::lookaside::model;
    use lookaside::OwnedMap;

    #[test]
    fn trees_behind_a_map_are_maps() {
        model::check::<Radix<24, Handled<24>, false, false>>();
        model::check::<Radix<24, Handled<24>, true, true>>();
        let mut map =
            OwnedMap::new(Owned::<24>::make(0).unwrap(), &lookaside::Config::with_size(256)).unwrap();
        for record in 0..300 {
            assert!(map.insert(Key::of(record), Value::of(record)).is_none());
        }
        assert!((0..400).all(|record| map.get(&Key::of(record)).is_some() == (record < 300)));
    }

    /// A tree that has learnt answers as before; what it learnt from is what it was asked for.
    #[test]
    fn what_has_settled_answers_as_before() {
        const RECORDS: u64 = 5000;
        let config = lookaside::Config::with_size(1 << 12);
        for entrant in learning_entrants::<24>() {
            for mut contestant in [
                (entrant.alone)(RECORDS as usize).unwrap(),
                entrant.shared.unwrap()(RECORDS as usize, &config, false).unwrap(),
            ] {
                fill(&*contestant, 0, 0..RECORDS);
                let keys: Vec<Key<24>> = (0..RECORDS + 10).map(Key::of).collect();
                let before = contestant.get(0, Call::Single, &keys, &keys).tally;
                contestant.note();
                contestant.settle();
                contestant.resize(1 << 12).unwrap();
                for call in [Call::Single, Call::Batch] {
                    assert_eq!(contestant.get(0, call, &[], &keys).tally, before, "{}", entrant.name);
                }
                assert_eq!(before.found, RECORDS);
            }
        }
    }
}
