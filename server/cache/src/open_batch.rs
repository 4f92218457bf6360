//! What a session keeps while a batch of writes is open: see [`crate::batch`].

use std::cell::{Cell, RefCell};

use cuckoo::Location;

use crate::size_classes::ClassId;

/// Pins that a write may need: it is tried again if somebody else was faster.
pub(crate) const PINS_OF_A_WRITE: usize = 4;

/// A session's batch of writes.
#[derive(Default)]
pub(crate) struct OpenBatch {
    pub(crate) is_open: Cell<bool>,
    /// Whether the session is pinned for it.
    pub(crate) is_pinned: Cell<bool>,
    /// Pins that it is good for: it ends by itself, or whoever forgets to end it would hold back memory for ever.
    pub(crate) pins_left: usize,
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

    /// Whether a pin that is dropped holds on for the batch.
    #[inline]
    pub(crate) fn holds_pins(&self) -> bool {
        self.is_open.get()
    }

    /// Whether a pin that is wanted is there; it is from now on, if the batch is open.
    #[inline]
    pub(crate) fn has_pin(&self) -> bool {
        self.is_open.get() && self.is_pinned.replace(true)
    }
}
