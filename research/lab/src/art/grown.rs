//! A tree full of keys, and asking it.
//!
//! Records are inserted in a random order, so that what is together in the tree is not for that reason together in
//! memory. The value of a key is its record's number: the sum of what lookups find must be that of what was asked for.

use std::collections::HashMap;
use std::time::Duration;

use art::{AccessLog, Config, PageKind, RING, Reorganized, Schedule, Tree, TryInsertError};
use serde::Deserialize;
use workload::popularity::Permutation;

use super::draws::Asked;
use crate::experiment::{ExperimentError, expect};
use crate::measure::{Stopwatch, in_parallel};

/// Which order of insertion: any.
const ORDER: u64 = 23;

/// The pages that nodes and leaves live in, by their name: `4k`, `thp`, `2m`, `1g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Pages(pub(crate) PageKind);

impl TryFrom<String> for Pages {
    type Error = String;

    fn try_from(name: String) -> Result<Pages, String> {
        name.parse::<PageKind>().map(Pages).map_err(|error| error.to_string())
    }
}

impl Pages {
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            PageKind::Base => "4 KiB pages",
            PageKind::Transparent => "huge pages",
            PageKind::Huge2M => "hugetlb pages",
            PageKind::Huge1G => "1 GiB pages",
        }
    }
}

/// A tree with the keys of all records.
pub(crate) struct Grown<const N: usize> {
    tree: Tree<[u8; N], u32>,
}

impl<const N: usize> Grown<N> {
    /// A tree with these keys in pages of this kind, or of the next smaller one that there is.
    pub(crate) fn new(keys: &[[u8; N]], Pages(pages): Pages) -> Result<Grown<N>, ExperimentError> {
        let mut config = Config::new().with_pages(pages);
        if pages > PageKind::Transparent {
            // Pages of a pool are claimed at once: twice what the keys of any set need, for the reorganisation.
            config.node_bytes = (keys.len() * 64).max(64 << 20);
            config.leaf_bytes = (keys.len() * 32).max(64 << 20);
        }
        let tree = Tree::with_config(&config)?;
        let mut reader = tree.pin();
        for record in order_of_insertion(keys.len())? {
            reader.insert(&keys[record], record as u32)?;
            // What a growing node leaves behind is to be used again.
            if record % 16 == 0 {
                reader.refresh();
            }
        }
        drop(reader);
        if tree.len() == keys.len() {
            return Ok(Grown { tree });
        }
        Err(ExperimentError::wrong("a tree", format!("{} entries of {} keys", tree.len(), keys.len())))
    }

    pub(crate) fn tree(&self) -> &Tree<[u8; N], u32> {
        &self.tree
    }

    /// Whether the machine gave the pages that were asked for.
    pub(crate) fn has_its_pages(&self) -> bool {
        self.tree.regions().iter().all(|region| region.asked() == region.obtained())
    }

    /// Its pages in words, as the kernel reports them: the share of memory in huge ones.
    pub(crate) fn pages(&self) -> String {
        let censuses: Vec<_> = self.tree.regions().iter().filter_map(|region| region.census()).collect();
        let resident: usize = censuses.iter().map(|census| census.resident).sum();
        let huge: usize = censuses.iter().map(|census| census.transparent_huge.max(census.hugetlb)).sum();
        if resident == 0 {
            return String::new();
        }
        format!("{:.0} % huge", 100.0 * huge.min(resident) as f64 / resident as f64)
    }

    /// Looks these keys up: how long it took. What was found must sum up to `expected`.
    pub(crate) fn look_up(&self, keys: &[[u8; N]], expected: u64) -> Result<Duration, ExperimentError> {
        timed(expected, || {
            let reader = self.tree.pin();
            let watch = Stopwatch::start();
            (sum(keys.iter().map(|key| reader.get(key))), watch.elapsed())
        })
    }

    /// Looks these keys up, `batch` at a time.
    pub(crate) fn look_up_many(
        &self,
        keys: &[[u8; N]],
        expected: u64,
        batch: usize,
    ) -> Result<Duration, ExperimentError> {
        timed(expected, || {
            let reader = self.tree.pin();
            let (mut asked, mut values) = (Vec::with_capacity(batch), vec![None; batch]);
            let watch = Stopwatch::start();
            let mut found = 0;
            for keys in keys.chunks(batch) {
                asked.clear();
                asked.extend(keys);
                let values = &mut values[..keys.len()];
                reader.get_many(&asked, values);
                found += sum(values.iter().copied());
            }
            (found, watch.elapsed())
        })
    }

    /// Looks these keys up in a session, one in `every` sampled on average, none if it is zero: how long it took, and
    /// how many samples the log then has.
    pub(crate) fn look_up_logged(
        &self,
        keys: &[[u8; N]],
        expected: u64,
        every: u32,
    ) -> Result<(Duration, usize), ExperimentError> {
        let log = self.tree.access_log();
        log.sample_every(every);
        let time = timed(expected, || {
            let session = self.tree.session();
            let reader = session.pin();
            let watch = Stopwatch::start();
            (sum(keys.iter().map(|key| reader.get(key))), watch.elapsed())
        })?;
        log.sample_every(0);
        Ok((time, log.drain().len()))
    }

    /// Looks these keys up, one in `every` sampled on average, and lays what is on the paths of those together that
    /// were sampled at least `samples` times, the most frequent first; unless they lie well as they are.
    pub(crate) fn learn_and_reorganize(&self, keys: &[[u8; N]], every: u32, samples: usize) -> Reorganized {
        // As a tree does that keeps itself organised.
        let schedule = Schedule::new().with_samples(samples);
        self.reorganize(self.tree.worth_moving(self.frequencies(keys, every), &schedule))
    }

    /// Looks these keys up, one in `every` sampled on average: those that were sampled at least `samples` times, the
    /// most frequent first.
    pub(crate) fn learn(&self, keys: &[[u8; N]], every: u32, samples: usize) -> Vec<[u8; N]> {
        let often = self.frequencies(keys, every).into_iter().take_while(|&(_, count)| count >= samples);
        often.map(|(key, _)| key).collect()
    }

    /// Looks these keys up, one in `every` sampled on average: the sampled ones and how often, the most frequent first.
    fn frequencies(&self, keys: &[[u8; N]], every: u32) -> Vec<([u8; N], usize)> {
        let log = self.tree.access_log();
        log.sample_every(every);
        let mut counts = HashMap::new();
        let session = self.tree.session();
        // No ring overflows: the sampler's distances are below twice the average.
        for part in keys.chunks(RING / 2 * every.max(1) as usize) {
            let reader = session.pin();
            part.iter().for_each(|key| {
                std::hint::black_box(reader.get(key));
            });
            drop(reader);
            count(log, &mut counts);
        }
        let mut frequencies: Vec<_> = counts.into_iter().collect();
        frequencies.sort_unstable_by(|(a, more), (b, fewer)| fewer.cmp(more).then_with(|| a.cmp(b)));
        log.sample_every(0);
        frequencies
    }

    /// Puts the entries of these keys in again where they have been taken out.
    pub(crate) fn restore(&self, asked: &Asked<N>) -> Result<(), ExperimentError> {
        let mut reader = self.tree.pin();
        for (at, (key, &record)) in asked.keys.iter().zip(&asked.records).enumerate() {
            if let Err(TryInsertError::NotStored(refused)) = reader.try_insert(key, record) {
                return Err(refused.into());
            }
            if at % 64 == 0 {
                reader.refresh();
            }
        }
        Ok(())
    }

    /// Lays what is on the paths of these keys together.
    pub(crate) fn reorganize(&self, hottest_first: Vec<[u8; N]>) -> Reorganized {
        let mut reorganization = self.tree.reorganization(hottest_first);
        while reorganization.step(1 << 10).is_continue() {}
        reorganization.done()
    }
}

/// Looks up on a thread of its own: how long it took. What was found must sum up to `expected`.
fn timed(expected: u64, look_up: impl Fn() -> (u64, Duration) + Sync) -> Result<Duration, ExperimentError> {
    let (found, time) = in_parallel(1, |_| look_up())?[0];
    expect("a tree", found, expected)?;
    Ok(time)
}

/// What the records that were found sum up to; something else, if one was not.
#[inline(always)]
pub(super) fn sum<'r>(found: impl Iterator<Item = Option<&'r u32>>) -> u64 {
    found.fold(0, |sum, record| sum + u64::from(*record.unwrap_or(&u32::MAX)))
}

/// The records in the order in which they are inserted.
pub(crate) fn order_of_insertion(records: usize) -> Result<impl Iterator<Item = usize>, ExperimentError> {
    let order = Permutation::new(records as u64, ORDER)?;
    Ok((0..records as u64).map(move |turn| order.record(turn) as usize))
}

fn count<const N: usize>(log: &AccessLog<[u8; N]>, counts: &mut HashMap<[u8; N], usize>) {
    log.drain().into_iter().for_each(|key| *counts.entry(key).or_default() += 1);
}
