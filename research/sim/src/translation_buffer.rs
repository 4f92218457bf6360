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
        self.position(address).and_then(|place| self.entries.remove(place)).map(|gone| gone.1)
    }

    /// Puts in the translation of the page of `address`; the oldest leaves if there is no room.
    pub fn put(&mut self, address: u64, pte: Pte) {
        let entry = (pte.size().base(address), pte);
        if let Some(place) = self.position(address) {
            self.entries[place] = entry;
            return;
        }
        if self.capacity == 0 {
            return;
        }
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageSize;

    #[test]
    fn it_fills_up_in_turn_and_a_page_is_there_once() {
        let pte = |number: u64, size| Pte::new(number << 30, size);
        let (small, large) = (PageSize::Small, PageSize::Large);
        let mut buffer = TranslationBuffer::new(2);
        buffer.put(0x1234, pte(1, small));
        buffer.put(0x20_0000, pte(2, large));
        assert_eq!(buffer.get(0x1fff), Some(pte(1, small)));
        assert_eq!(buffer.get(0x3f_ffff), Some(pte(2, large)), "anywhere in its page");
        assert_eq!(buffer.get(0x2000), None);
        // Put in again it keeps its turn: it leaves first.
        buffer.put(0x1000, pte(3, small));
        assert_eq!(buffer.get(0x1000), Some(pte(3, small)));
        buffer.put(0x5000, pte(4, small));
        assert_eq!((buffer.get(0x1000), buffer.get(0x5000)), (None, Some(pte(4, small))));
        assert_eq!((buffer.remove(0x2f_0000), buffer.remove(0x2f_0000)), (Some(pte(2, large)), None));
        buffer.clear();
        assert_eq!(buffer.get(0x5000), None);
        let mut none = TranslationBuffer::new(0);
        none.put(0x1000, pte(1, small));
        assert_eq!(none.get(0x1000), None);
    }
}
