//! A small fully associative buffer of translations that fills up in turn.
//!
//! The STB of the STLT paper (section III-D1) and the prefetch buffer beside the TLB of distance prefetching
//! are both this: a few entries, first in, first out, found by the page they translate. An entry that is put
//! in again takes its old place with its new translation, so a page is never there twice.

use std::collections::VecDeque;

use crate::page::Pte;

/// The buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationBuffer {
    /// Where the page begins, and its entry; the oldest first.
    entries: VecDeque<(u64, Pte)>,
    capacity: usize,
}

impl TranslationBuffer {
    /// An empty buffer for so many translations.
    #[must_use]
    pub fn new(capacity: usize) -> TranslationBuffer {
        TranslationBuffer { entries: VecDeque::with_capacity(capacity), capacity }
    }

    fn position(&self, address: u64) -> Option<usize> {
        self.entries.iter().position(|(base, pte)| pte.size().base(address) == *base)
    }

    /// The translation of `address`.
    #[must_use]
    pub fn get(&self, address: u64) -> Option<Pte> {
        self.position(address).map(|place| self.entries[place].1)
    }

    /// Takes out the translation of `address`.
    pub fn remove(&mut self, address: u64) -> Option<Pte> {
        self.position(address).and_then(|place| self.entries.remove(place)).map(|(_, pte)| pte)
    }

    /// Puts in the translation of the page of `address`; the oldest leaves if there is no room.
    pub fn put(&mut self, address: u64, pte: Pte) {
        if let Some(place) = self.position(address) {
            self.entries[place] = (pte.size().base(address), pte);
            return;
        }
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        if self.capacity > 0 {
            self.entries.push_back((pte.size().base(address), pte));
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many translations it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageSize;

    #[test]
    fn the_first_in_is_the_first_out_however_often_it_is_used() {
        let mut buffer = TranslationBuffer::new(2);
        let pte = |page: u64| Pte::new(page << 20, PageSize::Small);
        buffer.put(0x1234, pte(1));
        buffer.put(0x2234, pte(2));
        assert_eq!(buffer.get(0x1fff), Some(pte(1)));
        buffer.put(0x1000, pte(5));
        assert_eq!(buffer.len(), 2);
        buffer.put(0x3000, pte(3));
        assert_eq!(buffer.get(0x1000), None);
        assert_eq!(buffer.remove(0x2000), Some(pte(2)));
        assert_eq!(buffer.len(), 1);
        buffer.clear();
        assert!(buffer.is_empty());
    }
}
