//! Naming a table in a definition, and making it.
//!
//! A table's size is given in bytes, so that tables of different kinds can be made equally large: a cuckoo table of so
//! many bytes of buckets, and a chaining table with half as many bytes of heads. That is the paper's own setting: with
//! one link for each of its entries, of which there are 1.5 to a head when it is called full, the chaining table ends
//! up larger than the cuckoo table, with fewer entries (Table 2).

use cuckoo::experiments::{EightWay, FourWay, Search, SevenWay};
use cuckoo::{Config, Growth, Hashes};
use pages::PageKind;
use serde::Deserialize;

use super::basic_cuckoo::BasicCuckoo;
use super::chaining::Chaining;
use super::comparison::{Bytes, Integers};
use super::engine::Inspected;
use super::locking::{Global, Striped, Unlocked};
use super::optimistic::Optimistic;
use super::records::Records;
use crate::experiment::ExperimentError;
use crate::subject::Call;

/// A table as definitions name it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableChoice {
    /// The name of the configuration in the results.
    pub(crate) name: String,
    /// The table.
    pub(crate) table: Table,
    /// Whether it is asked one by one or in batches.
    #[serde(default)]
    pub(crate) call: Call,
}

/// The kinds of table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Table {
    /// memcached's.
    Chaining {
        keys: Keys,
        lock: Lock,
        #[serde(deserialize_with = "page_kind")]
        pages: PageKind,
    },
    /// Cuckoo hashing before the paper's optimisations, or with tags alone.
    BasicCuckoo { tags: bool, lock: Lock },
    /// Ours, four slots to a bucket: the paper's layout.
    FourWay { search: SearchChoice },
    /// Ours, seven slots to a bucket.
    SevenWay { search: SearchChoice },
    /// Ours, eight slots to a bucket.
    EightWay { search: SearchChoice },
}

/// How a baseline keeps threads apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Lock {
    None,
    Global,
    Bucket,
}

/// How the chaining table compares keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Keys {
    Memcmp,
    Integers,
}

/// How our table searches for a cuckoo path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SearchChoice {
    /// One random walk.
    OnePath,
    /// Two side by side.
    TwoPaths,
    /// Three side by side.
    ThreePaths,
    /// Breadth first.
    BreadthFirst,
}

pub(crate) fn page_kind<'de, D: serde::Deserializer<'de>>(name: D) -> Result<PageKind, D::Error> {
    String::deserialize(name)?.parse().map_err(serde::de::Error::custom)
}

impl SearchChoice {
    fn config(self) -> Config {
        let search = match self {
            SearchChoice::OnePath => Search::Walks(1),
            SearchChoice::TwoPaths => Search::Walks(2),
            SearchChoice::ThreePaths => Search::Walks(3),
            SearchChoice::BreadthFirst => Search::BreadthFirst,
        };
        // As XXH3's are.
        Config::new().with_growth(Growth::Fixed).with_search(search).with_hashes(Hashes::Avalanching)
    }
}

impl Table {
    /// An empty table of `bytes` bytes, a power of two, over `records`; see the module for what is counted.
    pub(crate) fn make<'r>(
        &self,
        bytes: usize,
        records: &'r Records,
    ) -> Result<Box<dyn Inspected + 'r>, ExperimentError> {
        if !bytes.is_power_of_two() || bytes < 64 {
            return Err(ExperimentError::Machine(format!(
                "a table of {bytes} bytes: choose a power of two, at least 64"
            )));
        }
        let (lines, heads, halves) = (bytes / 64, bytes / 16, bytes / 32);
        let most = records.len();
        macro_rules! with_lock {
            ($lock:expr, $table:ident<$of:tt>($($argument:expr),*)) => {
                match $lock {
                    Lock::None => Box::new($table::<$of, Unlocked>::new($($argument),*)?),
                    Lock::Global => Box::new($table::<$of, Global>::new($($argument),*)?),
                    Lock::Bucket => Box::new($table::<$of, Striped>::new($($argument),*)?),
                }
            };
        }
        let huge = PageKind::Transparent;
        let made: Box<dyn Inspected + 'r> = match *self {
            Table::Chaining { keys: Keys::Memcmp, lock, pages } => {
                with_lock!(lock, Chaining<Bytes>(heads, most, pages))
            }
            Table::Chaining { keys: Keys::Integers, lock, pages } => {
                with_lock!(lock, Chaining<Integers>(heads, most, pages))
            }
            Table::BasicCuckoo { tags: false, lock } => {
                with_lock!(lock, BasicCuckoo<false>(halves, records, huge))
            }
            Table::BasicCuckoo { tags: true, lock } => {
                with_lock!(lock, BasicCuckoo<true>(halves, records, huge))
            }
            Table::FourWay { search } => {
                Box::new(Optimistic::<FourWay>::new(halves, &search.config(), records)?)
            }
            Table::SevenWay { search } => {
                Box::new(Optimistic::<SevenWay>::new(lines, &search.config(), records)?)
            }
            Table::EightWay { search } => {
                Box::new(Optimistic::<EightWay>::new(lines, &search.config(), records)?)
            }
        };
        Ok(made)
    }

    /// Records that a table of `bytes` bytes can hold at most; for chaining, what the paper calls full (section 5.2).
    pub(crate) fn capacity(&self, bytes: usize) -> usize {
        let words = bytes / 8;
        match self {
            Table::Chaining { .. } => words / 2 * 3 / 2,
            Table::SevenWay { .. } => words / 8 * 7,
            Table::BasicCuckoo { .. } | Table::FourWay { .. } | Table::EightWay { .. } => words,
        }
    }

    /// Whether threads that write may share it.
    pub(crate) fn is_shareable(&self) -> bool {
        !matches!(
            self,
            Table::Chaining { lock: Lock::None, .. } | Table::BasicCuckoo { lock: Lock::None, .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::{BATCH, Insertion, Operation};
    use super::super::records::Key;
    use super::*;
    use crate::subject::Tally;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Every table there is.
    fn all() -> Vec<Table> {
        let mut tables = Vec::new();
        for lock in [Lock::None, Lock::Global, Lock::Bucket] {
            for keys in [Keys::Memcmp, Keys::Integers] {
                tables.push(Table::Chaining { keys, lock, pages: PageKind::Base });
            }
            for tags in [false, true] {
                tables.push(Table::BasicCuckoo { tags, lock });
            }
        }
        for search in [
            SearchChoice::OnePath,
            SearchChoice::TwoPaths,
            SearchChoice::ThreePaths,
            SearchChoice::BreadthFirst,
        ] {
            tables.push(Table::FourWay { search });
            tables.push(Table::SevenWay { search });
            tables.push(Table::EightWay { search });
        }
        tables
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Every table answers as a plain set does, also when it is filled until it refuses.
        #[test]
        fn every_table_is_a_set(writes in prop::collection::vec((0u64..400, any::<bool>()), 1..600)) {
            let records = Records::new(400).unwrap();
            for table in all() {
                let index = table.make(2048, &records).unwrap();
                let mut model = BTreeSet::new();
                for &(record, insert) in &writes {
                    if insert && !model.contains(&record) {
                        match index.insert(record) {
                            Insertion::Done { .. } => prop_assert!(model.insert(record)),
                            Insertion::TooFull => prop_assert!(model.len() > 150, "{table:?} at {}", model.len()),
                        }
                    } else if !insert {
                        prop_assert_eq!(index.remove(record), model.remove(&record), "{:?}", table);
                    }
                }
                let keys: Vec<_> = (0..500).map(Key::of).collect();
                for (record, key) in (0..).zip(&keys) {
                    let expected = model.contains(&record).then_some(record);
                    prop_assert_eq!(index.get(key), expected, "{:?}", table);
                }
                let mut expected = Tally::default();
                model.iter().for_each(|&record| expected.count(Some(record)));
                prop_assert_eq!(index.get_each(&keys), expected, "{:?}", table);
                prop_assert_eq!(index.get_batched(&keys), expected, "{:?}", table);
                prop_assert_eq!(index.anatomy().entries, model.len(), "{:?}", table);
            }
        }
    }

    /// Filled until it refuses, single or in batches, a table keeps everything that it accepted.
    #[test]
    fn a_full_table_has_all_that_it_took() {
        let records = Records::new(8192).unwrap();
        for table in all().into_iter().filter(|table| !matches!(table, Table::Chaining { .. })) {
            for call in [Call::Single, Call::Batch] {
                let index = table.make(1 << 15, &records).unwrap();
                let filling = match call {
                    Call::Single => index.insert_each(0..8192),
                    Call::Batch => index.insert_batched(0..8192),
                };
                let anatomy = index.anatomy();
                assert!(
                    filling.refused && anatomy.entries as u64 == filling.inserted,
                    "{table:?} {filling:?}"
                );
                assert!(anatomy.load.unwrap() > 0.85, "{table:?} {anatomy:?}");
                let keys: Vec<_> = (0..filling.inserted).map(Key::of).collect();
                // A batch may go on after its first refusal.
                let found = index.get_each(&keys).found;
                assert!(found >= filling.inserted - BATCH as u64, "{table:?}: {found}");
            }
        }
    }

    #[test]
    fn chains_are_as_long_as_they_are() {
        let records = Records::new(1000).unwrap();
        let table = Table::Chaining { keys: Keys::Integers, lock: Lock::Global, pages: PageKind::Base };
        let index = table.make(64, &records).unwrap(); // 4 heads
        index.insert_each(0..1000);
        let anatomy = index.anatomy();
        assert_eq!((anatomy.entries, anatomy.bytes), (1000, 4 * 8 + 1000 * 8));
        assert!((250..400).contains(&anatomy.fullest.unwrap()), "{anatomy:?}");
    }

    /// Writers to one table from two threads lose nothing, under every lock that is one.
    #[test]
    fn shareable_tables_can_be_shared() {
        let records = Records::new(40_000).unwrap();
        for table in all().into_iter().filter(Table::is_shareable) {
            let index = table.make(1 << 19, &records).unwrap();
            std::thread::scope(|scope| {
                for thread in 0..2u64 {
                    let index = &index;
                    scope.spawn(move || {
                        let operations: Vec<_> = (thread * 20_000..(thread + 1) * 20_000)
                            .flat_map(|record| {
                                let gone = (record % 2 == 1).then_some(Operation::Remove(record));
                                [Some(Operation::Insert(record)), Some(Operation::Get(Key::of(record))), gone]
                            })
                            .flatten()
                            .collect();
                        let tally = index.perform(Call::Single, &operations);
                        assert_eq!((tally.found, tally.refused), (20_000, 0));
                    });
                }
            });
            assert_eq!(index.anatomy().entries, 20_000, "{table:?}");
            let keys: Vec<_> = (0..20_000).map(|pair| Key::of(2 * pair)).collect();
            assert_eq!(index.get_each(&keys).found, 20_000, "{table:?}");
        }
    }

    #[test]
    fn odd_sizes_are_refused() {
        let records = Records::new(1).unwrap();
        for bytes in [0, 32, 100] {
            let table = Table::SevenWay { search: SearchChoice::BreadthFirst };
            assert!(matches!(table.make(bytes, &records), Err(ExperimentError::Machine(_))));
        }
    }
}
