//! What is asked for, drawn operation by operation.

use rand::RngExt;
use rand::distr::Distribution;
use workload::DistributionError;
use workload::generator::Xoshiro256PlusPlus;
use workload::operation::{IndexOperation, IndexRequest};
use workload::popularity::Popularity;
use workload::ycsb::{CoreWorkload, Ycsb};

use super::items::Items;
use super::script::{Script, Writer};

/// What is asked for.
#[derive(Debug, Clone)]
pub enum Demand {
    /// Gets and sets of records with this popularity.
    Mixed {
        /// Which records.
        popularity: Popularity,
        /// The share of operations that are gets, from 0 to 1; the others are sets.
        gets: f64,
    },
    /// A core workload of YCSB, which has its own popularity. An update and an insert are sets; a read-modify-write is
    /// a get and a set sent behind it, which does not wait. There are no scans to be had of a cache.
    Ycsb(CoreWorkload),
}

/// One thread's operations, drawn one after the other.
#[derive(Debug)]
pub(super) struct Draws {
    random: Xoshiro256PlusPlus,
    source: Source,
    /// The version of the next value.
    version: u64,
}

#[derive(Debug)]
enum Source {
    Mixed { popularity: Popularity, gets: f64 },
    Ycsb(Ycsb),
}

impl Demand {
    /// The operations of one thread, over `records` records.
    pub(super) fn draws(
        &self,
        records: u64,
        random: Xoshiro256PlusPlus,
        thread: usize,
    ) -> Result<Draws, DistributionError> {
        let source = match self {
            Demand::Mixed { popularity, gets } => {
                Source::Mixed { popularity: popularity.clone(), gets: *gets }
            }
            Demand::Ycsb(core) => Source::Ycsb(Ycsb::new(*core, records)?),
        };
        // Threads never write the same version; 0 is what a server was filled with.
        Ok(Draws { random, source, version: ((thread as u64) << 48) + 1 })
    }
}

impl Draws {
    fn draw(&mut self) -> IndexRequest {
        match &mut self.source {
            Source::Mixed { popularity, gets } => {
                let is_get = self.random.random::<f64>() < *gets;
                let operation = if is_get { IndexOperation::Read } else { IndexOperation::Update };
                IndexRequest { operation, record: popularity.sample(&mut self.random) }
            }
            Source::Ycsb(ycsb) => ycsb.draw(&mut self.random),
        }
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
        let mut writer = Writer::new(lanes, keys_per_get);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let in_batch = (depth * keys_per_get) as u64;
        while writer.script().operations() < operations && writer.script().size() < bytes {
            let end = (writer.script().operations() + in_batch).min(operations);
            while writer.script().operations() < end {
                let IndexRequest { operation, record } = self.draw();
                items.key(record, &mut key);
                if matches!(operation, IndexOperation::Read | IndexOperation::ReadModifyWrite) {
                    writer.get(&key);
                }
                if operation == IndexOperation::ReadModifyWrite {
                    writer.end_get();
                }
                if operation != IndexOperation::Read {
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

    fn script(demand: &Demand, records: u64, depth: usize, keys_per_get: usize, operations: u64) -> Script {
        let mut draws = demand.draws(records, seeded(1), 0).unwrap();
        draws.script(&Items::fixed(8, 4), 1, depth, keys_per_get, operations, usize::MAX)
    }

    #[test]
    fn keys_are_asked_for_as_often_as_the_distribution_says() {
        let popularity = Popularity::zipfian(1000, 0.99).unwrap();
        let Popularity::Zipfian(zipfian) = &popularity else { panic!() };
        let hottest = zipfian.share_of_hottest(1);
        let demand = Demand::Mixed { popularity: popularity.clone(), gets: 1.0 };
        let text = requests(&script(&demand, 1000, 4, 10, 100_000));
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
        let demand = Demand::Mixed { popularity: Popularity::uniform(100).unwrap(), gets: 0.95 };
        let drawn = script(&demand, 100, 2, 50, 100_000);
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

    #[test]
    fn ycsb_s_letters_become_gets_and_sets() {
        let shares = |core| {
            let text = requests(&script(&Demand::Ycsb(core), 1000, 1, 1, 20_000));
            let sets = text.lines().filter(|line| line.starts_with("set ")).count();
            (sets as f64 / 20_000.0, text)
        };
        assert!((shares(CoreWorkload::A).0 - 0.5).abs() < 0.02);
        assert!((shares(CoreWorkload::B).0 - 0.05).abs() < 0.01);
        assert_eq!(shares(CoreWorkload::C).0, 0.0);
        // D inserts records that were not there.
        let (inserts, text) = shares(CoreWorkload::D);
        assert!((inserts - 0.05).abs() < 0.01);
        assert!(text.lines().any(|line| line.starts_with("set 00001000")));
        // Of F's requests half are a get and a set: two thirds of the operations are gets.
        let (sets, text) = shares(CoreWorkload::F);
        assert!((sets - 1.0 / 3.0).abs() < 0.02, "{sets}");
        let lines: Vec<_> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].starts_with("set ")) {
            assert_eq!(pair[0][4..12], pair[1][4..12], "the key that was read is written");
        }
    }
}
