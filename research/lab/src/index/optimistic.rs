//! The table under test, [`cuckoo::Table`], asked what experiments ask.

use std::ops::Range;

use cuckoo::experiments::Layout;
use cuckoo::{Config, Location, Table};

use super::engine::{Anatomy, BATCH, Filling, Index, Insertion, Inspected, describe_pages};
use super::records::{Key, Records};
use crate::subject::Tally;

/// A table of layout `L` over records.
pub struct Optimistic<'r, L: Layout> {
    table: Table<L>,
    records: &'r Records,
}

impl<'r, L: Layout> Optimistic<'r, L> {
    /// An empty table of `buckets` buckets.
    ///
    /// # Errors
    /// As [`Table::with_buckets`].
    pub fn new(buckets: usize, config: &Config, records: &'r Records) -> Result<Self, cuckoo::CreateError> {
        Ok(Optimistic { table: Table::with_buckets(buckets, config)?, records })
    }

    /// The table itself.
    #[must_use]
    pub fn table(&self) -> &Table<L> {
        &self.table
    }

    fn location(record: u64) -> Location {
        Location::new(record).expect("records are numbered below 2^48")
    }
}

fn insertion(outcome: Result<cuckoo::Insertion, cuckoo::TooFull>) -> Insertion {
    match outcome {
        Ok(cuckoo::Insertion::Inserted(work)) => Insertion::Done { displaced: work.displaced },
        Ok(cuckoo::Insertion::Occupied(at)) => panic!("the key of record {} was put in twice", at.get()),
        Err(_) => Insertion::TooFull,
    }
}

impl<L: Layout> Index for Optimistic<'_, L> {
    #[inline(always)]
    fn get(&self, key: &Key) -> Option<u64> {
        self.table.find(key.hash(), |at| self.records.holds(at, key)).map(Location::get)
    }

    #[inline]
    fn insert(&self, record: u64) -> Insertion {
        let key = self.records.key(record);
        let at = Self::location(record);
        insertion(self.table.insert_or_get(key.hash(), at, |at| self.records.holds(at, key), self.records))
    }

    fn remove(&self, record: u64) -> bool {
        self.table.remove_exact(self.records.key(record).hash(), Self::location(record))
    }

    fn get_batched(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        let mut hashes = [0; BATCH];
        let mut found = [None; BATCH];
        for keys in keys.chunks(BATCH) {
            for (key, hash) in keys.iter().zip(&mut hashes) {
                *hash = key.hash();
            }
            let holds = |i: usize, at| self.records.holds(at, &keys[i]);
            self.table.find_many(self.records, &hashes[..keys.len()], holds, &mut found[..keys.len()]);
            for answer in &found[..keys.len()] {
                tally.count(answer.map(Location::get));
            }
        }
        tally
    }

    fn insert_batched(&self, records: Range<u64>) -> Filling {
        let mut filling = Filling::default();
        let mut keys = Vec::with_capacity(BATCH);
        let mut hashes = Vec::with_capacity(BATCH);
        let mut locations = Vec::with_capacity(BATCH);
        let mut outcomes = [Err(cuckoo::TooFull::Table); BATCH];
        let mut records = records.into_iter();
        loop {
            keys.clear();
            hashes.clear();
            locations.clear();
            for record in records.by_ref().take(BATCH) {
                let key = self.records.key(record);
                keys.push(key);
                hashes.push(key.hash());
                locations.push(Self::location(record));
            }
            let outcomes = &mut outcomes[..keys.len()];
            let holds = |i: usize, at| self.records.holds(at, keys[i]);
            self.table.insert_many(&hashes, &locations, holds, self.records, outcomes);
            for &outcome in &*outcomes {
                match insertion(outcome) {
                    Insertion::Done { displaced } => {
                        filling.inserted += 1;
                        filling.displaced += displaced as u64;
                    }
                    Insertion::TooFull => filling.refused = true,
                }
            }
            if filling.refused || keys.is_empty() {
                return filling;
            }
        }
    }
}

impl<L: Layout> Inspected for Optimistic<'_, L> {
    fn anatomy(&self) -> Anatomy {
        Anatomy {
            bytes: self.table.bytes(),
            entries: self.table.len(),
            load: Some(self.table.load_factor()),
            fullest: Some(L::SLOTS),
            pages: describe_pages(self.table.region()),
        }
    }
}
