//! What a session keeps while a batch of writes is open: see [`crate::batch`].

use std::cell::{Cell, RefCell};

use cuckoo::{Location, Spot};

use crate::size_classes::ClassId;

/// Pins that a write may need: it is tried again if somebody else was faster.
pub(crate) const PINS_OF_A_WRITE: usize = 4;

/// A key that is to be written.
#[derive(Clone, Copy)]
pub(crate) struct Announced {
    pub(crate) hash: u64,
    /// Where its item seemed to be.
    pub(crate) spot: Option<Spot>,
}

/// A session's batch of writes.
#[derive(Default)]
pub(crate) struct OpenBatch {
    pub(crate) is_open: Cell<bool>,
    /// Whether the session is pinned for it.
    pub(crate) is_pinned: Cell<bool>,
    /// How often it has been: to tell whether the session has been pinned all along.
    pins: Cell<u64>,
    /// Pins that it is good for: it ends by itself, or whoever forgets to end it would hold back memory for ever.
    pub(crate) pins_left: usize,
    /// The keys, in the order in which they are to be written.
    pub(crate) keys: Vec<Announced>,
    /// The first of them that has not been written.
    next: Cell<usize>,
    /// Writes that are still to come, as far as it knows.
    pub(crate) expected: usize,
    /// Chunks of one class, which are this session's.
    pub(crate) spare: Vec<Location>,
    pub(crate) class: ClassId,
    /// Items that have left the index, and how many chunks of their class come free with each.
    pub(crate) retired: RefCell<Vec<(Location, usize)>>,
}

impl OpenBatch {
    /// Whether a pin that is wanted is one too many.
    #[inline]
    pub(crate) fn is_spent(&mut self) -> bool {
        let before = self.pins_left;
        self.pins_left = before.saturating_sub(1);
        self.is_open.get() && before == 0
    }

    /// Takes these keys to be written, and none of before.
    pub(crate) fn announce(&mut self, keys: impl Iterator<Item = Announced>) {
        self.keys.clear();
        self.keys.extend(keys);
        self.next.set(0);
    }

    /// Where the item of a key of this hash seemed to be, if it is the turn of such a key. It is a hint: the item may
    /// be gone, and be of another key.
    #[inline]
    pub(crate) fn announced(&self, hash: u64) -> Option<Option<Spot>> {
        if !self.is_open.get() {
            return None;
        }
        let next = self.next.get();
        // Those between were refused before they came here.
        let skipped = self.keys.get(next..)?.iter().position(|announced| announced.hash == hash)?;
        self.next.set(next + skipped + 1);
        Some(self.keys[next + skipped].spot)
    }

    /// Whether a pin that is dropped holds on for the batch.
    #[inline]
    pub(crate) fn holds_pins(&self) -> bool {
        self.is_open.get()
    }

    /// Which pin the session holds, if it is one of a batch.
    #[inline]
    pub(crate) fn pin(&self) -> Option<u64> {
        (self.is_open.get() && self.is_pinned.get()).then(|| self.pins.get())
    }

    /// Whether a pin that is wanted is there; it is from now on, if the batch is open.
    #[inline]
    pub(crate) fn has_pin(&self) -> bool {
        self.is_open.get() && {
            let was_pinned = self.is_pinned.replace(true);
            self.pins.set(self.pins.get() + u64::from(!was_pinned));
            was_pinned
        }
    }
}
