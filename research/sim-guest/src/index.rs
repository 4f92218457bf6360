//! Indexes: keys to the numbers of records.

use art::{Reader, Tree};
use cuckoo::{Config, Growth, Hashes, Location, Table};

use crate::record::{Key, Record, hash};

pub(crate) trait Index {
    fn insert(&mut self, number: u32) -> Result<(), String>;
    fn find(&mut self, key: &Key) -> Option<u32>;
    /// After the load.
    fn settle(&mut self) {}
}

struct Records<'r>(&'r [Record]);

impl Records<'_> {
    fn holds(&self, location: Location, key: &Key) -> bool {
        self.0[location.get() as usize].key == *key
    }

    fn hash(&self, location: Location) -> u64 {
        hash(&self.0[location.get() as usize].key)
    }
}

/// The optimistic cuckoo table.
pub(crate) struct Cuckoo<'r> {
    records: Records<'r>,
    table: Table,
}

impl Cuckoo<'_> {
    /// Empty, with room for all.
    pub(crate) fn new(records: &[Record]) -> Result<Cuckoo<'_>, String> {
        let config = Config::new().with_growth(Growth::Fixed).with_hashes(Hashes::Avalanching);
        let table = Table::with_capacity(records.len(), &config);
        Ok(Cuckoo { records: Records(records), table: table.map_err(|error| error.to_string())? })
    }
}

impl Index for Cuckoo<'_> {
    fn insert(&mut self, number: u32) -> Result<(), String> {
        let key = &self.records.0[number as usize].key;
        let location = Location::new(number.into()).ok_or("a record's number has 48 bits")?;
        let (eq, hasher) = (|at| self.records.holds(at, key), |at| self.records.hash(at));
        self.table.insert_or_get(hash(key), location, eq, hasher).map_err(|full| full.to_string())?;
        Ok(())
    }

    #[inline]
    fn find(&mut self, key: &Key) -> Option<u32> {
        let found = self.table.find(hash(key), |location| self.records.holds(location, key));
        found.map(|location| location.get() as u32)
    }
}

/// Lookups between two that the tree's access log notes.
const SAMPLE_EVERY: u32 = 8;
/// Lookups after which the reader lets go of what others have removed.
const REFRESH_EVERY: u32 = 1024;

/// The adaptive radix tree.
pub(crate) struct Radix<'t> {
    records: &'t [Record],
    tree: &'t Tree<Key, u32>,
    reader: Reader<'t, Key, u32>,
    /// Lookups since it last did.
    since: u32,
    reorganised: bool,
}

impl<'t> Radix<'t> {
    /// Of this tree; with `reorganised`, its hottest paths are moved together after the load.
    pub(crate) fn new(
        records: &'t [Record],
        tree: &'t Tree<Key, u32>,
        reader: Reader<'t, Key, u32>,
        reorganised: bool,
    ) -> Radix<'t> {
        if reorganised {
            tree.access_log().sample_every(SAMPLE_EVERY);
        }
        Radix { records, tree, reader, since: 0, reorganised }
    }
}

impl Index for Radix<'_> {
    fn insert(&mut self, number: u32) -> Result<(), String> {
        let stored = self.reader.insert(&self.records[number as usize].key, number).map(drop);
        stored.map_err(|full| format!("{:?}", full.reason))
    }

    #[inline]
    fn find(&mut self, key: &Key) -> Option<u32> {
        self.since += 1;
        if self.since == REFRESH_EVERY {
            self.since = 0;
            self.reader.refresh();
        }
        self.reader.get(key).copied()
    }

    fn settle(&mut self) {
        if self.reorganised {
            self.tree.reorganize();
            // What is measured then is the tree that was reorganised, not the noting of what is asked for.
            self.tree.access_log().sample_every(0);
        }
    }
}
