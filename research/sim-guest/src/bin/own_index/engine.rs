//! What requests are made of: an index with a table in front, whose records stand beside it; or the cache, which has
//! both its items and its own table within.

use cache::engine::{Cache, Config, Entry, Eviction, Session, Verb};

use crate::in_front::{InFront, Tally};
use crate::index::Index;
use crate::record::{Key, Record};

pub(crate) trait Engine {
    /// Inserts the next record.
    fn set(&mut self) -> Result<(), String>;
    /// Reads the record of a key; whether there is one.
    fn get(&mut self, key: &Key) -> bool;
    /// All that was read, added up.
    fn sum(&self) -> u64;
    /// What the table in front has done so far.
    fn tally(&self) -> Tally;
    /// After the load.
    fn settle(&mut self) {}
}

/// An index and what stands before it.
pub(crate) struct Indexed<I, F> {
    index: I,
    in_front: F,
    inserted: u32,
    tally: Tally,
    sum: u64,
}

impl<I, F> Indexed<I, F> {
    pub(crate) fn new(index: I, in_front: F) -> Indexed<I, F> {
        Indexed { index, in_front, inserted: 0, tally: Tally::default(), sum: 0 }
    }
}

impl<'r, I: Index, F: InFront<'r>> Engine for Indexed<I, F> {
    fn set(&mut self) -> Result<(), String> {
        self.index.insert(self.inserted)?;
        self.inserted += 1;
        Ok(())
    }

    #[inline(always)]
    fn get(&mut self, key: &Key) -> bool {
        let index = &mut self.index;
        let record = self.in_front.lookup(key, &mut self.tally, || index.find(key));
        self.sum = self.sum.wrapping_add(record.map_or(0, Record::sum));
        record.is_some()
    }

    fn sum(&self) -> u64 {
        self.sum
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn settle(&mut self) {
        self.index.settle();
    }
}

/// Bytes of an item and its place in the cache's index, at most.
const ITEM: usize = 192;
/// Bytes of pages that are not full.
const ROOM: usize = 16 << 20;

/// The cache, with room for everything.
pub(crate) struct Items<'r> {
    records: &'r [Record],
    cache: Cache,
    session: Session,
    inserted: usize,
    sum: u64,
}

impl Items<'_> {
    /// Empty, with a lookaside buffer of so many bytes; 0: none.
    pub(crate) fn new(records: &[Record], lookaside: usize) -> Result<Items<'_>, String> {
        let config = Config {
            eviction: Eviction::Never,
            lookaside,
            ..Config::with_limit(records.len() * ITEM + ROOM)
        };
        let cache: Cache = Cache::new(config).map_err(|error| error.to_string())?;
        Ok(Items { records, session: cache.session(), cache, inserted: 0, sum: 0 })
    }
}

impl Engine for Items<'_> {
    fn set(&mut self) -> Result<(), String> {
        let record =
            self.records.get(self.inserted).ok_or("there are more requests to insert than records")?;
        let value: Vec<u8> = record.value.iter().flat_map(|word| word.to_le_bytes()).collect();
        let stored = self.session.store(Verb::Set, Entry::new(&record.key), &value);
        stored.map_err(|error| format!("{error:?}"))?;
        self.inserted += 1;
        Ok(())
    }

    #[inline(always)]
    fn get(&mut self, key: &Key) -> bool {
        let pinned = self.session.pin();
        let Some(hit) = pinned.get(key) else { return false };
        let words = hit.pieces().flat_map(|piece| piece.chunks_exact(8));
        let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
        self.sum = words.fold(self.sum, |sum, bytes| sum.wrapping_add(word(bytes)));
        true
    }

    fn sum(&self) -> u64 {
        self.sum
    }

    fn tally(&self) -> Tally {
        let counts = self.cache.counts();
        Tally { hits: counts.lookaside_hits, misses: counts.lookaside_misses }
    }
}
