//! The invalid page buffer (section III-D1): pages whose translation was withdrawn, and which rows of the
//! STLT may still hold.
//!
//! Rows are not searched when a page goes; the page's address is put in here, and `loadVA` returns nothing
//! for an address in such a page. Only when the buffer is full must the table be brought up to date, and the
//! buffer cleared. The kernel keeps the same pages in an array of the process's own: on a switch of contexts
//! the buffer is cleared without touching the table, and filled again from the array when the process comes
//! back.

use std::collections::VecDeque;

/// The buffer: fully associative, first in, first out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPageBuffer {
    pages: VecDeque<u64>,
    capacity: usize,
}

impl InvalidPageBuffer {
    /// An empty buffer for so many pages.
    #[must_use]
    pub fn new(capacity: usize) -> InvalidPageBuffer {
        InvalidPageBuffer { pages: VecDeque::with_capacity(capacity), capacity }
    }

    /// Whether there is no room: the third of the kernel's instructions.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.pages.len() >= self.capacity
    }

    /// How many fit.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Puts in where a page begins: the first of the kernel's instructions. The oldest leaves if the kernel
    /// did not make room.
    pub fn insert(&mut self, page: u64) {
        if self.pages.contains(&page) {
            return;
        }
        if self.is_full() {
            self.pages.pop_front();
        }
        self.pages.push_back(page);
    }

    /// Whether the page that begins there was withdrawn.
    #[must_use]
    #[inline]
    pub fn contains(&self, page: u64) -> bool {
        self.pages.contains(&page)
    }

    /// Empties it: the second of the kernel's instructions.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// Empties it and fills it with the pages of the process that comes in.
    pub fn restore(&mut self, pages: &[u64]) {
        self.clear();
        pages.iter().for_each(|&page| self.insert(page));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_held_once_and_room_is_what_it_says() {
        let mut buffer = InvalidPageBuffer::new(2);
        buffer.insert(0x1000);
        buffer.insert(0x1000);
        assert!(!buffer.is_full());
        buffer.insert(0x2000);
        assert!(buffer.is_full() && buffer.contains(0x1000) && buffer.contains(0x2000));
        buffer.insert(0x3000);
        assert!(!buffer.contains(0x1000), "first in, first out");
        buffer.restore(&[0x9000]);
        assert!(buffer.contains(0x9000) && !buffer.contains(0x2000));
    }
}
