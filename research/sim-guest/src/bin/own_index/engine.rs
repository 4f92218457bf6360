//! What requests are made of: an index with a table in front, whose records stand beside it.

use crate::in_front::{InFront, Tally};
use crate::index::Index;
use crate::record::{Key, Record};

/// An index and what stands before it.
pub(crate) struct Indexed<I, F> {
    index: I,
    in_front: F,
    inserted: u32,
    tally: Tally,
    sum: u64,
}

impl<'r, I: Index, F: InFront<'r>> Indexed<I, F> {
    pub(crate) fn new(index: I, in_front: F) -> Indexed<I, F> {
        Indexed { index, in_front, inserted: 0, tally: Tally::default(), sum: 0 }
    }

    /// Inserts the next record.
    pub(crate) fn set(&mut self) -> Result<(), String> {
        self.index.insert(self.inserted)?;
        self.inserted += 1;
        Ok(())
    }

    /// Reads the record of a key; whether there is one.
    #[inline(always)]
    pub(crate) fn get(&mut self, key: &Key) -> bool {
        let index = &mut self.index;
        let record = self.in_front.lookup(key, &mut self.tally, || index.find(key));
        self.sum = self.sum.wrapping_add(record.map_or(0, Record::sum));
        record.is_some()
    }

    /// All that was read, added up.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// What the table in front has done so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// After the load.
    pub(crate) fn settle(&mut self) {
        self.index.settle();
    }
}
