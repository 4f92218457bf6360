//! What a session keeps while a batch is open: see [`crate::batch`].

use std::cell::{Cell, RefCell};

use cuckoo::{Location, Sighting, Spot};

use crate::index::GROUP;
use crate::size_classes::ClassId;

/// Pins that a write may need: it is tried again if somebody else was faster.
pub(crate) const PINS_OF_A_WRITE: usize = 4;

/// Keys that are to be looked up or written.
pub(crate) struct Announced {
    pub(crate) hashes: [u64; GROUP],
    /// Where their items seemed to be, when the batch began.
    pub(crate) seen: [Sighting; GROUP],
    pub(crate) len: usize,
}

impl Default for Announced {
    fn default() -> Self {
        Announced { hashes: [0; GROUP], seen: [Sighting::Unsettled; GROUP], len: 0 }
    }
}

/// A session's batch of lookups and writes.
#[derive(Default)]
pub(crate) struct OpenBatch {
    pub(crate) is_open: Cell<bool>,
    /// Whether the session is pinned for it.
    pub(crate) is_pinned: Cell<bool>,
    /// How often it has been: to tell whether the session has been pinned all along.
    pins: Cell<u64>,
    /// Which of them was held when it began.
    announced_under: Cell<u64>,
    /// Pins that it is good for: it ends by itself, or whoever forgets to end it would hold back memory for ever.
    pub(crate) pins_left: usize,
    /// The keys, in their order.
    pub(crate) keys: Announced,
    /// The first of them whose turn has not come.
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

    /// Opens it, for so many keys, of which some are to be written. Whether a pin is there already.
    pub(crate) fn open(&mut self, keys: usize, writes: usize) -> bool {
        self.is_open.set(true);
        self.next.set(0);
        self.expected = writes;
        self.keys.len = keys;
        self.pins_left = PINS_OF_A_WRITE * keys;
        let has_pin = self.has_pin();
        self.announced_under.set(self.pins.get());
        has_pin
    }

    /// The turn of so many keys has come, from one on. Whether what was seen of them is an answer: what was found then
    /// may be read, for the session has been pinned ever since, and nothing has been written through it, for no other
    /// pin was asked for than the one that is held.
    #[inline]
    pub(crate) fn turn_of(&self, first: usize, count: usize) -> bool {
        self.next.set(first + count);
        self.pin() == Some(self.announced_under.get())
            && self.pins_left + 1 == PINS_OF_A_WRITE * self.keys.len
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
        let Announced { hashes, seen, len } = &self.keys;
        let place = next + hashes.get(next..*len)?.iter().position(|announced| *announced == hash)?;
        self.next.set(place + 1);
        Some(match seen[place] {
            Sighting::At(spot) => Some(spot),
            Sighting::Nowhere | Sighting::Unsettled => None,
        })
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

#[cfg(test)]
mod tests {
    use crate::engine::{Cache, Config};

    #[test]
    fn what_was_seen_is_an_answer_only_under_the_pin_that_it_was_seen_under() {
        let cache: Cache = Cache::new(Config::with_limit(1 << 20)).expect("a cache");
        let mut session = cache.session();
        let is_answer = |session: &mut crate::engine::Session| session.pin().batch().turn_of(0, 1);
        session.begin_batch(&[b"k"], 0);
        assert!(is_answer(&mut session));
        assert!(!is_answer(&mut session), "something may have been written");
        session.begin_batch(&[b"k"], 0);
        session.let_go();
        assert!(!is_answer(&mut session), "what was found may have gone");
        session.begin_batch(&[b"k"], 0);
        session.end_batch();
        assert!(!is_answer(&mut session), "the batch has ended");
        session.begin_batch(&[b"k"], 0);
        assert!(is_answer(&mut session));
    }
}
