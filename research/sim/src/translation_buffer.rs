//! A small fully associative buffer of translations that fills up in turn.
//!
//! The STB of the STLT paper (section III-D1) and the prefetch buffer beside the TLB of distance prefetching
//! are both this: a few entries, first in, first out, found by the page they translate. An entry that is put
//! in again takes its old place with its new translation, so a page is never there twice.
//!
//! Hardware compares all entries at once. Here they would be compared in turn, and most pages that are asked for are
//! not there: so it is counted how many entries have which hash, and where none has the page's, none is compared.

use std::collections::VecDeque;

use crate::page::{PageSize, Pte};

/// Hashes of pages: many more than there are entries, so that one that is not there is mostly known by its own.
const HASHES: usize = 1024;

/// The buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationBuffer {
    /// Where the page begins, and its entry; the oldest first.
    entries: VecDeque<(u64, Pte)>,
    capacity: usize,
    /// Entries of each hash.
    hashed: Box<[u16; HASHES]>,
    /// Entries of each size of page.
    sized: [usize; PageSize::ALL.len()],
}

fn hash(base: u64) -> usize {
    // Fibonacci hashing: the upper bits of a product with the golden ratio.
    (base.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASHES.ilog2())) as usize
}

impl TranslationBuffer {
    /// An empty buffer for so many translations.
    #[must_use]
    pub fn new(capacity: usize) -> TranslationBuffer {
        TranslationBuffer {
            entries: VecDeque::with_capacity(capacity),
            capacity,
            hashed: Box::new([0; HASHES]),
            sized: Default::default(),
        }
    }

    fn position(&self, address: u64) -> Option<usize> {
        let may_be_there = PageSize::ALL
            .iter()
            .any(|&size| self.sized[size as usize] > 0 && self.hashed[hash(size.base(address))] > 0);
        if !may_be_there {
            return None;
        }
        self.entries.iter().position(|(base, pte)| pte.size().base(address) == *base)
    }

    fn has_come(&mut self, (base, pte): (u64, Pte)) {
        self.hashed[hash(base)] += 1;
        self.sized[pte.size() as usize] += 1;
    }

    fn has_gone(&mut self, (base, pte): (u64, Pte)) {
        self.hashed[hash(base)] -= 1;
        self.sized[pte.size() as usize] -= 1;
    }

    /// The translation of `address`.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<Pte> {
        self.position(address).map(|place| self.entries[place].1)
    }

    /// Takes out the translation of `address`.
    pub fn remove(&mut self, address: u64) -> Option<Pte> {
        let gone = self.position(address).and_then(|place| self.entries.remove(place))?;
        self.has_gone(gone);
        Some(gone.1)
    }

    /// Puts in the translation of the page of `address`; the oldest leaves if there is no room.
    pub fn put(&mut self, address: u64, pte: Pte) {
        let entry = (pte.size().base(address), pte);
        if let Some(place) = self.position(address) {
            let before = std::mem::replace(&mut self.entries[place], entry);
            self.has_gone(before);
            self.has_come(entry);
            return;
        }
        if self.capacity == 0 {
            return;
        }
        if self.entries.len() >= self.capacity
            && let Some(oldest) = self.entries.pop_front()
        {
            self.has_gone(oldest);
        }
        self.entries.push_back(entry);
        self.has_come(entry);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.hashed.fill(0);
        self.sized = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Get(u64),
        Put(u64, PageSize),
        Remove(u64),
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let address = || prop_oneof![0..1_u64 << 15, 0..1_u64 << 24, 0..1_u64 << 33];
        prop_oneof![
            8 => address().prop_map(Step::Get),
            8 => (address(), proptest::sample::select(&PageSize::ALL[..])).prop_map(|(address, size)| Step::Put(address, size)),
            2 => address().prop_map(Step::Remove),
            1 => Just(Step::Clear),
        ]
    }

    proptest! {
        #[test]
        fn it_answers_as_a_list_that_is_searched(
            capacity in 0..6_usize,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let mut buffer = TranslationBuffer::new(capacity);
            let mut list: Vec<(u64, Pte)> = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                let place = |list: &[(u64, Pte)], address: u64| {
                    list.iter().position(|(base, pte)| pte.size().base(address) == *base)
                };
                match step {
                    Step::Get(address) => {
                        let wanted = place(&list, address).map(|place| list[place].1);
                        prop_assert_eq!(buffer.get(address), wanted);
                    }
                    Step::Put(address, size) => {
                        let pte = Pte::new((number as u64) << 30, size);
                        buffer.put(address, pte);
                        let entry = (size.base(address), pte);
                        match place(&list, address) {
                            Some(place) => list[place] = entry,
                            None => list.push(entry),
                        }
                        if list.len() > capacity {
                            list.remove(0);
                        }
                    }
                    Step::Remove(address) => {
                        let gone = place(&list, address).map(|place| list.remove(place).1);
                        prop_assert_eq!(buffer.remove(address), gone);
                    }
                    Step::Clear => {
                        buffer.clear();
                        list.clear();
                    }
                }
                prop_assert_eq!(buffer.entries.len(), list.len());
            }
        }
    }
}
