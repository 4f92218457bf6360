//! Our adaptive radix tree: alone, and behind a map.
//!
//! Alone it has values in its leaves, or on the heap as the other indexes have them. Nodes and leaves are in regular
//! pages, for which huge ones are refused, or in transparent huge ones; as they were built, or laid together by what
//! was asked for: then one lookup in so many is sampled until [`Make::settle`], which lays the paths of all keys that
//! were sampled together, the most frequent first. Behind a map the tree is asked, and learns, only what the table
//! misses.

use std::borrow::Borrow;
use std::collections::HashMap;

use art::{Config, OwnedTree, PageKind, Reader, Session, Tree};
use lookaside::index::{Find, SharedStore, View};
use lookaside::{Found, Pin};
use parking_lot::Mutex;

use super::contestant::{Abilities, Contestant, Learner, Learns, Make};
use super::entrant::Entrant;
use super::indexes::Handled;
use super::record::{Key, Value};
use super::visit::{Answer, BATCH, Lot, Request, Visit, in_turn};
use crate::subject::{Call, Tally};

/// One lookup in so many is sampled. No ring overflows between two calls of [`Make::note`] that are a million lookups
/// apart.
const SAMPLE_EVERY: u32 = 32;

impl<const N: usize> art::index::Encode<[u8; N]> for Key<N> {
    type Bytes<'k> = &'k [u8; N];

    #[inline(always)]
    fn encode(&self) -> &[u8; N] {
        &self.0
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
}

impl<const N: usize, V, const HUGE: bool, const REORGANISED: bool> Learns for Radix<N, V, HUGE, REORGANISED>
where
    V: Clone + Send + Sync + 'static,
{
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

impl<const N: usize, V, const HUGE: bool, const REORGANISED: bool> Contestant<N>
    for Radix<N, V, HUGE, REORGANISED>
where
    V: Borrow<Value> + From<Value> + Clone + Send + Sync + 'static,
{
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        if self.tree.access_log().interval() == 0 {
            return in_turn(&mut self.tree.pin(), call, lots);
        }
        // A reader of a session samples.
        let session: Session<'_, _, _> = self.tree.session();
        in_turn(&mut session.pin(), call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities { learns: REORGANISED, ..Abilities::FRONTED }
    }

    fn note(&self) {
        Learns::note(self);
    }

    fn settle(&self) {
        Learns::settle(self);
    }
}

impl<const N: usize, V> Visit<N> for Reader<'_, [u8; N], V>
where
    V: Borrow<Value> + From<Value> + Clone + Send + Sync + 'static,
{
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(&key.0).map(|value| see(value.borrow()))
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        let mut asked = [&keys[0].0; BATCH];
        asked.iter_mut().zip(keys).for_each(|(asked, key)| *asked = &key.0);
        let mut values = [None; BATCH];
        let values = &mut values[..keys.len()];
        self.get_many(&asked[..keys.len()], values);
        values.iter().for_each(|value| tally.count(value.map(|value: &V| value.borrow().read())));
    }

    fn set(&mut self, request: &Request<N>) {
        let stored = self.insert(&request.key.0, Value::of(request.record).into());
        assert!(stored.is_ok(), "there are addresses for more than any machine's memory");
    }

    fn refresh(&mut self) {
        Reader::refresh(self);
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

/// The owner's form behind its map.
type Owned<const N: usize> = OwnedTree<[u8; N], Handled<N>>;

impl<const N: usize> Make for Owned<N> {
    fn make(_records: usize) -> Result<Self, String> {
        OwnedTree::new().map_err(|error| error.to_string())
    }
}

/// One of them as an entrant.
fn entrant<const N: usize, const HUGE: bool, const REORGANISED: bool>(name: &'static str) -> Entrant<N> {
    Entrant::new::<Radix<N, Value, HUGE, REORGANISED>>(name)
        .with_learning::<Radix<N, Handled<N>, HUGE, REORGANISED>>()
}

/// The trees. Of those that learn, [`Contestant::note`] and [`Contestant::settle`] are to be called.
pub(super) fn entrants<const N: usize>() -> Vec<Entrant<N>> {
    vec![
        Entrant { stlt: None, ..entrant::<N, false, false>("ART").with_sole::<Owned<N>>() },
        entrant::<N, true, false>("ART, huge pages"),
        Entrant::new::<Radix<N, Box<Value>, false, false>>("ART, values on the heap"),
        entrant::<N, false, true>("ART, reorganised"),
        entrant::<N, true, true>("ART, huge pages, reorganised"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookaside::contestant::fill;
    use crate::lookaside::{history, model};

    #[test]
    fn trees_behind_a_map_are_maps() {
        history::check::<Radix<24, Handled<24>, false, false>>();
        history::check::<Radix<24, Handled<24>, true, true>>();
        model::check_owned::<Owned<24>>();
    }

    /// A tree that has learnt answers as before; what it learnt from is what it was asked for.
    #[test]
    fn what_has_settled_answers_as_before() {
        const RECORDS: u64 = 5000;
        let config = lookaside::Config::with_size(1 << 12);
        for entrant in entrants::<24>().into_iter().filter(|entrant| entrant.name.ends_with("reorganised")) {
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
