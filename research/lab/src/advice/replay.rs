//! Playing the requests through a table, and through an index, with the clock running.
//!
//! A program has the key of a request in its hands when it asks. So requests are prepared in groups: the keys are
//! copied out one behind the other, and only then the clock starts. What is timed is the hash of the key, the table,
//! and the lines of the entry; both the table and the index meet the keys in the trace's own order, because caches of
//! the processor reward skew as much as the table does. (Rejected: random lines of a region as large as the table. It
//! charges a skewed trace with misses that it does not have.)
//!
//! Entries are made up: a hash to compare, and as many bytes as an entry has, the last of which is read.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::hint::black_box;

use foldhash::quality::FixedState;
use indicatif::ProgressBar;
use lookaside::{Buffer, Config, CreateError, Pinned, Pointer};
use stlt_sw::Table;

use super::requests::{KeyTrace, Kind, Request};
use crate::measure::Stopwatch;

/// Requests prepared at once: their keys stay in the second-level cache.
const GROUP: usize = 2048;

/// The keys hash to the same in every run, so that hit ratios repeat.
const SEED: u64 = 0x006c_6f6f_6b61_7369;

/// The keys of a group of requests, one behind the other.
#[derive(Default)]
struct Group {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Group {
    fn prepare(&mut self, trace: &KeyTrace, requests: &[Request]) {
        self.text.clear();
        self.ends.clear();
        for request in requests {
            self.text.extend_from_slice(&trace.keys[request.key as usize]);
            self.ends.push(self.text.len());
        }
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| &self.text[std::mem::replace(&mut begin, end)..end])
    }
}

/// Runs `each` over all requests, group by group; nanoseconds that a lookup took from position `counted_from` on. The
/// slowest and the fastest groups, one in twenty each, are left out: in those the machine was elsewhere, or had less to
/// do.
fn timed(
    trace: &KeyTrace,
    counted_from: usize,
    progress: &ProgressBar,
    mut each: impl FnMut(&[Request], &Group, bool),
) -> f64 {
    let mut prepared = Group::default();
    let mut nanoseconds = Vec::new();
    let (before, counted) = trace.requests.split_at(counted_from);
    for (requests, counts) in [(before, false), (counted, true)] {
        for group in requests.chunks(GROUP) {
            prepared.prepare(trace, group);
            let watch = Stopwatch::start();
            each(group, &prepared, counts);
            let time = watch.elapsed();
            let lookups = group.iter().filter(|request| request.kind.is_lookup()).count();
            if counts && lookups > 0 {
                nanoseconds.push(time.as_nanos() as f64 / lookups as f64);
            }
            progress.inc(group.len() as u64);
        }
    }
    nanoseconds.sort_unstable_by(f64::total_cmp);
    let left_out = nanoseconds.len() / 20;
    let kept = &nanoseconds[left_out..nanoseconds.len() - left_out];
    kept.iter().sum::<f64>() / kept.len().max(1) as f64
}

/// Entries that a table points at.
pub(super) struct Entries {
    words: Vec<u64>,
    words_each: usize,
    hasher: FixedState,
}

impl Entries {
    pub(super) fn new(trace: &KeyTrace, bytes: usize) -> Entries {
        let hasher = FixedState::with_seed(SEED);
        let words_each = bytes.div_ceil(size_of::<u64>()).max(1);
        let mut words = vec![0; trace.keys.len() * words_each];
        for (entry, key) in words.chunks_mut(words_each).zip(&trace.keys) {
            entry[0] = hasher.hash_one(&**key);
        }
        Entries { words, words_each, hasher }
    }

    /// What stands for the entry's address.
    fn pointer(&self, key: u32) -> Pointer {
        Pointer::new(u64::from(key) + 1).expect("a 32-bit number and one more is an address")
    }

    #[inline(always)]
    fn at(&self, pointer: Pointer) -> &[u64] {
        &self.words[(pointer.address() as usize - 1) * self.words_each..][..self.words_each]
    }
}

/// What a table made of the trace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Played {
    /// Lookups after the warm-up.
    pub(super) lookups: u64,
    /// Of these, those that the table answered.
    pub(super) hits: u64,
    /// What the table took for a lookup after the warm-up, in nanoseconds, its writes included.
    pub(super) nanoseconds: f64,
    /// Pointers that it has room for.
    pub(super) capacity: usize,
    /// Its bytes, with those of its log.
    pub(super) bytes: usize,
}

impl Played {
    fn add(&mut self, (lookups, hits): (u64, u64), counts: bool) {
        if counts {
            self.lookups += lookups;
            self.hits += hits;
        }
    }
}

/// A table that the trace is played through.
trait Front {
    /// The pointer of the hash that `accept` takes. If there is none, the index is asked, on another clock, and says
    /// `found`.
    fn look(
        &self,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
        found: impl FnOnce() -> Option<Pointer>,
    ) -> Option<Pointer>;

    /// The entry is another, or there is none any more.
    fn write(&self, hash: u64, new: Option<Pointer>);
}

impl Front for Pinned<'_> {
    #[inline(always)]
    fn look(
        &self,
        hash: u64,
        accept: impl FnMut(Pointer) -> bool,
        found: impl FnOnce() -> Option<Pointer>,
    ) -> Option<Pointer> {
        let known = self.find(hash, accept);
        if known.is_none() {
            let ticket = self.ticket(hash);
            found().into_iter().for_each(|pointer| self.admit_soon(&ticket, hash, pointer));
        }
        known
    }

    #[inline(always)]
    fn write(&self, hash: u64, new: Option<Pointer>) {
        let write = Pinned::write(self, hash);
        new.into_iter().for_each(|pointer| write.put(pointer));
    }
}

impl Front for Table {
    #[inline(always)]
    fn look(
        &self,
        hash: u64,
        mut accept: impl FnMut(Pointer) -> bool,
        found: impl FnOnce() -> Option<Pointer>,
    ) -> Option<Pointer> {
        let known = self.get(hash).and_then(Pointer::new).filter(|&pointer| accept(pointer));
        if known.is_none() {
            found().into_iter().for_each(|pointer| self.insert(hash, pointer.address()));
        }
        known
    }

    /// What is written is not hot for that: a new entry enters only where there was an old one.
    #[inline(always)]
    fn write(&self, hash: u64, new: Option<Pointer>) {
        let new = new.filter(|_| self.get(hash).is_some());
        self.insert(hash, new.map_or(0, Pointer::address));
    }
}

/// Plays the trace through an SLB with these parameters.
pub(super) fn play(
    config: &Config,
    trace: &KeyTrace,
    entries: &Entries,
    counted_from: usize,
    progress: &ProgressBar,
) -> Result<Played, CreateError> {
    let buffer = Buffer::new(config)?;
    // The question is what the table is worth, so it is asked every time.
    buffer.monitor(false);
    let mut visit = buffer.pinned();
    let mut played = Played { capacity: buffer.capacity(), bytes: buffer.bytes(), ..Played::default() };
    played.nanoseconds = timed(trace, counted_from, progress, |requests, group, counts| {
        played.add(through(&visit, entries, requests, group), counts);
        visit.refresh();
    });
    Ok(played)
}

/// Plays the trace through an STLT-SW of so many bytes.
pub(super) fn play_stlt(
    bytes: usize,
    trace: &KeyTrace,
    entries: &Entries,
    counted_from: usize,
    progress: &ProgressBar,
) -> Result<Played, stlt_sw::Refused> {
    let table = Table::with_bytes(bytes, 4)?;
    let mut played = Played { capacity: table.capacity(), bytes: table.bytes(), ..Played::default() };
    played.nanoseconds = timed(trace, counted_from, progress, |requests, group, counts| {
        played.add(through(&table, entries, requests, group), counts);
    });
    Ok(played)
}

/// Plays a group; how many lookups there were, and how many the table answered.
fn through(table: &impl Front, entries: &Entries, requests: &[Request], group: &Group) -> (u64, u64) {
    let (mut lookups, mut hits) = (0, 0);
    for (request, key) in requests.iter().zip(group.keys()) {
        let hash = entries.hasher.hash_one(key);
        match request.kind {
            Kind::Lookup | Kind::LookupOfNothing => {
                lookups += 1;
                let known = table.look(
                    hash,
                    |pointer| entries.at(pointer)[0] == hash,
                    || (request.kind == Kind::Lookup).then(|| entries.pointer(request.key)),
                );
                if let Some(pointer) = known {
                    hits += 1;
                    black_box(entries.at(pointer).last().copied());
                }
            }
            Kind::Write => table.write(hash, Some(entries.pointer(request.key))),
            Kind::Delete => table.write(hash, None),
        }
    }
    (lookups, hits)
}

/// Nanoseconds that a lookup takes in a `BTreeMap` of the trace's keys.
pub(super) fn tree(trace: &KeyTrace, bytes: usize, counted_from: usize, progress: &ProgressBar) -> f64 {
    let index: BTreeMap<_, _> = records(trace, bytes).collect();
    lookups(trace, counted_from, progress, |key| index.get(key))
}

/// Nanoseconds that a lookup takes in a `HashMap` of the trace's keys, with the hash that it has by itself.
pub(super) fn hash(trace: &KeyTrace, bytes: usize, counted_from: usize, progress: &ProgressBar) -> f64 {
    let index: HashMap<_, _> = records(trace, bytes).collect();
    lookups(trace, counted_from, progress, |key| index.get(key))
}

fn records(trace: &KeyTrace, bytes: usize) -> impl Iterator<Item = (Box<[u8]>, Box<[u64]>)> + '_ {
    let words = bytes.div_ceil(size_of::<u64>()).max(1);
    trace.keys.iter().map(move |key| (key.clone(), vec![0; words].into_boxed_slice()))
}

fn lookups<'i>(
    trace: &KeyTrace,
    counted_from: usize,
    progress: &ProgressBar,
    get: impl Fn(&[u8]) -> Option<&'i Box<[u64]>>,
) -> f64 {
    timed(trace, counted_from, progress, |requests, group, _| {
        for (request, key) in requests.iter().zip(group.keys()) {
            if request.kind.is_lookup() {
                black_box(get(key).and_then(|record| record.last().copied()));
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::generator;
    use workload::popularity::Zipfian;

    fn trace(numbers: impl Iterator<Item = u32>) -> KeyTrace {
        let requests: Vec<_> = numbers.map(|key| Request { key, kind: Kind::Lookup }).collect();
        let keys = requests.iter().map(|request| request.key + 1).max().unwrap_or(0);
        let keys = (0..keys).map(|key| format!("key {key}").into_bytes().into_boxed_slice()).collect();
        KeyTrace { keys, requests }
    }

    fn played(config: &Config, trace: &KeyTrace, counted_from: usize) -> Played {
        let entries = Entries::new(trace, 88);
        play(config, trace, &entries, counted_from, &ProgressBar::hidden()).unwrap()
    }

    fn played_stlt(trace: &KeyTrace, counted_from: usize) -> Played {
        let entries = Entries::new(trace, 88);
        play_stlt(1 << 20, trace, &entries, counted_from, &ProgressBar::hidden()).unwrap()
    }

    #[test]
    fn a_table_with_room_for_all_misses_every_key_once() {
        let trace = trace((0..10_000).map(|at| at % 100));
        let slb = played(&Config::with_size(1 << 20), &trace, 0);
        // Misses are admitted eight at a time, as by a map: the last of the first round are still waiting when they
        // come again.
        assert_eq!(slb.lookups, 10_000);
        assert!((9_893..=9_900).contains(&slb.hits), "{slb:?}");
        assert!(slb.nanoseconds > 0.0);
        // After the first group there is nothing to miss.
        let warm = played(&Config::with_size(1 << 20), &trace, GROUP);
        assert_eq!((warm.lookups, warm.hits), (10_000 - GROUP as u64, 10_000 - GROUP as u64));
        let stlt = played_stlt(&trace, GROUP);
        assert_eq!((stlt.lookups, stlt.hits), (10_000 - GROUP as u64, 10_000 - GROUP as u64));
    }

    #[test]
    fn writes_keep_a_hot_key_and_deletes_do_not() {
        let mut trace = trace([0, 0, 0, 0, 0].into_iter());
        trace.requests[1].kind = Kind::Write;
        trace.requests[3].kind = Kind::Delete;
        trace.requests[4].kind = Kind::LookupOfNothing;
        let slb = played(&Config::with_size(1 << 12), &trace, 0);
        assert_eq!((slb.lookups, slb.hits), (3, 1));
        let stlt = played_stlt(&trace, 0);
        assert_eq!((stlt.lookups, stlt.hits), (3, 1));
    }

    /// A table hits less often than the ideal of its size, and not much less where the trace is skewed.
    #[test]
    fn a_skewed_trace_comes_near_the_ideal() {
        let zipfian = Zipfian::new(50_000, 0.99).unwrap();
        let mut rng = generator::seeded(1);
        let numbers: Vec<u32> =
            (0..400_000).map(|_| rand::distr::Distribution::sample(&zipfian, &mut rng) as u32).collect();
        let trace = trace(numbers.into_iter());
        let counted_from = trace.requests.len() / 5;
        let next = super::super::ideal::next_lookups(&trace.requests, trace.keys.len());
        let mut before = 0;
        for size in [16 << 10, 64 << 10, 256 << 10] {
            let played = played(&Config::with_size(size), &trace, counted_from);
            let ideal = super::super::ideal::hits(&trace.requests, &next, played.capacity, counted_from);
            assert!(played.hits < ideal && played.hits * 10 > ideal * 7, "{} of {ideal}", played.hits);
            assert!(played.hits > before, "a larger table hits more often");
            before = played.hits;
        }
    }
}
