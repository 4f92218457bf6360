//! What is asked for, drawn operation by operation.

use rand::RngExt;
use rand::distr::Distribution;
use workload::generator::Xoshiro256PlusPlus;
use workload::popularity::Popularity;

use super::items::Items;
use super::script::{Dialect, Script, Writer};

/// What is asked for: gets and sets of records.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Which records.
    pub popularity: Popularity,
    /// The share of operations that are gets, from 0 to 1; the others are sets.
    pub gets: f64,
}

/// One thread's operations, drawn one after the other.
#[derive(Debug)]
pub(super) struct Draws {
    random: Xoshiro256PlusPlus,
    demand: Demand,
    /// The version of the next value.
    version: u64,
    dialect: Dialect,
}

impl Demand {
    /// The operations of one thread.
    pub(super) fn draws(&self, random: Xoshiro256PlusPlus, thread: usize) -> Draws {
        // Threads never write the same version; 0 is what a server was filled with.
        let version = ((thread as u64) << 48) + 1;
        Draws { random, demand: self.clone(), version, dialect: Dialect::Classic }
    }
}

impl Draws {
    /// The same in another dialect.
    pub(super) fn in_dialect(self, dialect: Dialect) -> Draws {
        Draws { dialect, ..self }
    }

    /// Renders batches until they have `operations` operations, or `bytes` bytes. A batch has `depth` times
    /// `keys_per_get` operations: `depth` gets and the sets drawn between them.
    pub(super) fn script(
        &mut self,
        items: &Items,
        lanes: usize,
        depth: usize,
        keys_per_get: usize,
        operations: u64,
        bytes: usize,
    ) -> Script {
        let mut writer = Writer::new(lanes, keys_per_get).in_dialect(self.dialect);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let in_batch = (depth * keys_per_get) as u64;
        while writer.script().operations() < operations && writer.script().size() < bytes {
            let end = (writer.script().operations() + in_batch).min(operations);
            while writer.script().operations() < end {
                let is_get = self.random.random::<f64>() < self.demand.gets;
                items.key(self.demand.popularity.sample(&mut self.random), &mut key);
                if is_get {
                    writer.get(&key);
                } else {
                    items.value(&key, self.next_version(), &mut value);
                    writer.set(&key, &value);
                }
            }
            writer.end_batch();
        }
        writer.finish()
    }

    fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use workload::generator::seeded;

    /// All requests of a script, as text.
    fn requests(script: &Script) -> String {
        let parts = (0..script.batches()).map(|batch| script.bytes(script.part(batch, 0).0));
        parts.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    fn script(demand: &Demand, depth: usize, keys_per_get: usize, operations: u64) -> Script {
        let mut draws = demand.draws(seeded(1), 0);
        draws.script(&Items::fixed(8, 4), 1, depth, keys_per_get, operations, usize::MAX)
    }

    #[test]
    fn keys_are_asked_for_as_often_as_the_distribution_says() {
        let popularity = Popularity::zipfian(1000, 0.99).unwrap();
        let Popularity::Zipfian(zipfian) = &popularity else { panic!() };
        let hottest = zipfian.share_of_hottest(1);
        let demand = Demand { popularity: popularity.clone(), gets: 1.0 };
        let text = requests(&script(&demand, 4, 10, 100_000));
        let mut counts = HashMap::new();
        text.split_whitespace()
            .filter(|word| *word != "get")
            .for_each(|key| *counts.entry(key).or_insert(0) += 1);
        assert_eq!(counts.values().sum::<u64>(), 100_000);
        let share = counts["00000000"] as f64 / 1e5;
        assert!((share / hottest - 1.0).abs() < 0.05, "{share} instead of {hottest}");
        assert!(counts.keys().all(|key| key.parse::<u64>().unwrap() < 1000));
    }

    #[test]
    fn gets_and_sets_come_in_the_shares_asked_for() {
        let demand = Demand { popularity: Popularity::uniform(100).unwrap(), gets: 0.95 };
        let drawn = script(&demand, 2, 50, 100_000);
        // Each batch is 100 operations: all in all 95 keys asked for in 100.
        assert_eq!((drawn.operations(), drawn.batches()), (100_000, 1000));
        let asked: u32 = (0..1000).map(|batch| drawn.part(batch, 0).1.keys).sum();
        assert!((94_500..95_500).contains(&asked), "{asked}");
        let longest = requests(&drawn)
            .lines()
            .filter(|line| line.starts_with("get"))
            .map(|line| line.split(' ').count())
            .max();
        assert_eq!(longest, Some(51));
    }
}
