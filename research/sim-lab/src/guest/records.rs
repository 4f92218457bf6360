//! Records: what a key leads to, where it lies, and what comparing and reading it takes.
//!
//! Two kinds, after the paper's two kinds of program:
//!
//! ```text
//!   of a kernel (glibc's order)      of a server like Redis (jemalloc's order)
//!   +--------+-----------+           entry: key*, value*, next --> key string
//!   | key 24 | value     |                             |
//!   +--------+-----------+                             +--> object: value* --> value string
//! ```
//!
//! What the table in front remembers is the address of the record, or of the server's entry, which is what its
//! dictionary's lookup returns (section III-G: twelve lines in the function that searches the hash table).

use std::collections::HashMap;

use super::heap::{Heap, Order, Place};
use super::keys::{Key, Keys};
use super::processor::{Pen, Processor};
use super::registers::{OTHER, QUERY, RECORD, VALUE, WORD};
use super::{CODE_COMPARE, CODE_RECORD};

/// How records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Key and value in one object.
    Plain,
    /// Entry, key, object and value apart.
    Apart,
}

/// Before a string's bytes: lengths and flags.
const STRING_HEADER: u64 = 3;
/// Before a record's value.
const KEY: u64 = super::keys::BYTES as u64;

/// All records.
#[derive(Debug, Clone)]
pub struct Records {
    keys: Keys,
    form: Form,
    value_bytes: u64,
    heap: Heap,
    /// Of each record: its only object, or entry, key, object and value.
    places: Vec<Place>,
    moved: Moved,
}

/// Records that are no longer where they were made, and who lies where they went.
#[derive(Debug, Clone, Default)]
struct Moved {
    to: HashMap<u32, Place>,
    at: HashMap<u64, u32>,
}

impl Records {
    /// No records yet.
    #[must_use]
    pub fn new(keys: Keys, form: Form, value_bytes: u64) -> Records {
        let order = match form {
            Form::Plain => Order::InTurn,
            Form::Apart => Order::BySize,
        };
        Records {
            keys,
            form,
            value_bytes,
            heap: Heap::new(order),
            places: Vec::new(),
            moved: Moved::default(),
        }
    }

    /// Records.
    #[must_use]
    pub fn count(&self) -> u32 {
        (self.places.len() / self.parts()) as u32
    }

    fn parts(&self) -> usize {
        match self.form {
            Form::Plain => 1,
            Form::Apart => 4,
        }
    }

    fn part(&self, record: u32, part: usize) -> u64 {
        self.places[record as usize * self.parts() + part].address()
    }

    /// The heap that they lie on, for the index's nodes.
    pub fn heap(&mut self) -> &mut Heap {
        &mut self.heap
    }

    /// Makes the next record.
    pub fn create(&mut self) -> u32 {
        let record = self.count();
        match self.form {
            Form::Plain => self.places.push(self.heap.allocate(KEY + self.value_bytes)),
            Form::Apart => {
                // The protocol's reader makes the value, the dictionary the key and then the entry.
                let value = self.heap.allocate(STRING_HEADER + self.value_bytes + 1);
                let object = self.heap.allocate(16);
                let key = self.heap.allocate(STRING_HEADER + KEY + 1);
                let entry = self.heap.allocate(24);
                self.places.extend([entry, key, object, value]);
            }
        }
        record
    }

    /// A record's key.
    #[inline]
    #[must_use]
    pub fn key(&self, record: u32) -> Key {
        self.keys.key(record)
    }

    /// What an index and the table in front lead to.
    #[inline]
    #[must_use]
    pub fn target(&self, record: u32) -> u64 {
        // Of an empty map, this costs a comparison.
        self.moved.to.get(&record).map_or_else(|| self.part(record, 0), |place| place.address())
    }

    /// Asks for the line in which it is kept where a record's target lies.
    pub(super) fn prefetch(&self, record: u32) {
        if let Some(place) = self.places.get(record as usize * self.parts()) {
            pages::prefetch(place);
        }
    }

    /// Gives a record of one object another place, behind all others. Nobody is told.
    pub(super) fn relocate(&mut self, record: u32) {
        debug_assert_eq!(self.form, Form::Plain, "of several objects, it is not said which one moves");
        let place = self.heap.allocate(KEY + self.value_bytes);
        if let Some(before) = self.moved.to.insert(record, place) {
            self.moved.at.remove(&before.address());
        }
        self.moved.at.insert(place.address(), record);
    }

    /// The record whose target is at `address`. Targets lie in the order of their records, and evenly but for what
    /// the index allocates between them: each guess takes the rest as even. (Where records went to is kept by itself.)
    pub(super) fn at(&self, address: u64) -> Option<u32> {
        if let Some(&record) = self.moved.at.get(&address) {
            return Some(record);
        }
        let made = self.made_at(address)?;
        (!self.moved.to.contains_key(&made)).then_some(made)
    }

    /// The record that was made at `address`.
    fn made_at(&self, address: u64) -> Option<u32> {
        let (mut low, mut high) = (0, self.count().checked_sub(1)?);
        loop {
            let (first, last) = (self.part(low, 0), self.part(high, 0));
            if !(first..=last).contains(&address) {
                return None;
            }
            if first == last {
                return Some(low);
            }
            let share = (address - first) as f64 / (last - first) as f64;
            let guess = low + (f64::from(high - low) * share) as u32;
            match self.part(guess, 0).cmp(&address) {
                std::cmp::Ordering::Equal => return Some(guess),
                std::cmp::Ordering::Less => low = guess + 1,
                std::cmp::Ordering::Greater => high = guess.checked_sub(1)?,
            }
            if low > high {
                return None;
            }
        }
    }

    /// Compares the key of the record whose target stands in [`RECORD`] with the query's.
    pub(super) fn compare<P: Processor>(&self, pen: &mut Pen<'_, P>, record: u32, query: Key) -> bool {
        let address = match self.form {
            Form::Plain => {
                pen.compute(OTHER, &[RECORD]);
                self.target(record)
            }
            Form::Apart => {
                let key = self.part(record, 1) + STRING_HEADER;
                pen.load(OTHER, RECORD, self.target(record), 8);
                // The lengths are compared first.
                pen.load(WORD, OTHER, key - STRING_HEADER, 1).branch(&[WORD], false, CODE_COMPARE);
                key
            }
        };
        compare_bytes(pen, address, self.key(record).shared_words(query))
    }

    /// Reads the value of the record whose target stands in [`RECORD`]: a word of each of its lines.
    pub(super) fn read<P: Processor>(&self, pen: &mut Pen<'_, P>, record: u32) {
        let (address, base) = match self.form {
            Form::Plain => (self.target(record) + KEY, RECORD),
            Form::Apart => {
                let object = self.part(record, 2);
                pen.at(CODE_RECORD).load(OTHER, RECORD, self.target(record) + 8, 8);
                // Its type is checked, then the pointer to its bytes is taken.
                pen.load(WORD, OTHER, object, 4).branch(&[WORD], false, CODE_RECORD);
                pen.load(OTHER, OTHER, object + 8, 8);
                (self.part(record, 3) + STRING_HEADER, OTHER)
            }
        };
        let end = address + self.value_bytes;
        let mut at = address;
        while at < end {
            pen.at(CODE_RECORD + 64).load(WORD, base, at, 8).compute(VALUE, &[VALUE, WORD]);
            at = (at / 64 + 1) * 64;
            pen.branch(&[base], at < end, CODE_RECORD + 64);
        }
    }

    /// Prefetches a record of one object, whose target stands in [`RECORD`]: each 64th byte of it and the last one, as
    /// the library does, which does not know where its lines begin.
    pub(super) fn ask_for<P: Processor>(&self, pen: &mut Pen<'_, P>, record: u32) {
        let (first, bytes) = (self.target(record), KEY + self.value_bytes);
        for offset in (0..bytes).step_by(64).chain([bytes - 1]) {
            pen.prefetch(RECORD, first + offset);
        }
    }

    /// Writes a new record.
    pub(super) fn write<P: Processor>(&self, pen: &mut Pen<'_, P>, record: u32) {
        let mut objects = vec![(self.target(record), KEY + self.value_bytes)];
        if self.form == Form::Apart {
            objects = vec![
                (self.part(record, 3), self.value_bytes + STRING_HEADER),
                (self.part(record, 2), 16),
                (self.part(record, 1), KEY + STRING_HEADER),
                (self.part(record, 0), 24),
            ];
        }
        for (address, bytes) in objects {
            // The allocator: a list of free places, and its head.
            pen.at(CODE_RECORD + 128).chain(RECORD, &[1; 12]);
            for offset in (0..bytes).step_by(8) {
                pen.at(CODE_RECORD + 256).store(WORD, RECORD, address + offset, 8);
                pen.branch(&[RECORD], offset + 8 < bytes, CODE_RECORD + 256);
            }
        }
    }
}

/// Compares 24 bytes at `address`, which stands in [`OTHER`], with the query's, word by word until they differ.
/// Whether they are equal; the sign is in [`WORD`].
pub(super) fn compare_bytes<P: Processor>(pen: &mut Pen<'_, P>, address: u64, shared_words: u32) -> bool {
    let (back, query) = (pen.call(CODE_COMPARE + 64), pen.query());
    pen.compute(VALUE, &[VALUE]).compute(VALUE, &[VALUE]);
    for word in 0..=u64::from(shared_words.min(2)) {
        pen.at(CODE_COMPARE + 96 + 16 * word);
        pen.load(WORD, OTHER, address + 8 * word, 8).load(VALUE, QUERY, query + 8 * word, 8);
        pen.branch(&[WORD, VALUE], u64::from(shared_words) <= word, CODE_COMPARE + 192);
    }
    // Bytes are swapped into the order of texts, and subtracted.
    pen.at(CODE_COMPARE + 192).compute(VALUE, &[VALUE]).compute(WORD, &[WORD]).compute(WORD, &[WORD, VALUE]);
    pen.return_to(back);
    shared_words == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_by_their_targets() {
        for form in [Form::Plain, Form::Apart] {
            let mut records = Records::new(Keys::new(1), form, 64);
            assert_eq!(records.at(0x10_0000_0010), None);
            for record in 0..5_000 {
                records.create();
                if record % 7 == 0 {
                    records.heap().allocate(240);
                }
            }
            for record in 0..5_000 {
                let address = records.target(record);
                assert_eq!(records.at(address), Some(record));
                assert_eq!(records.at(address + 8), None);
            }
            assert_eq!((records.at(0), records.at(u64::MAX)), (None, None));
        }
    }

    #[test]
    fn records_that_moved_are_found_where_they_went_only() {
        let mut records = Records::new(Keys::new(1), Form::Plain, 64);
        (0..100).for_each(|_| _ = records.create());
        let before = records.target(7);
        records.relocate(7);
        let between = records.target(7);
        records.relocate(7);
        let after = records.target(7);
        assert!(before < records.target(99) && records.target(99) < between && between < after);
        assert_eq!([before, between, after].map(|address| records.at(address)), [None, None, Some(7)]);
        assert_eq!((records.at(records.target(8)), records.count()), (Some(8), 100));
    }
}
