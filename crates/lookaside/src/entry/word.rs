//! An entry's hash, but for the bits that no table asks for: in these is the number of its handles, and what else is to
//! be known of it.
//!
//! ```text
//!   63 ... 48   47          46          45 ... 32   31 ... 0
//!   hash        forgotten   succeeded   handles     hash
//! ```
//!
//! Of an entry that has had [`Word::MANY`] handles at once no more are counted, and it is never freed: nobody knows any
//! more when the last goes.

use std::sync::atomic::{AtomicU64, Ordering};

/// A hash, the number of handles, and two marks.
pub(super) struct Word(pub(super) AtomicU64);

impl Word {
    pub(super) const ONE: u64 = 1 << 32;
    pub(super) const MANY: u64 = (1 << 14) - 1;
    /// The entry has a successor.
    pub(super) const SUCCEEDED: u64 = 1 << 46;
    /// No table has the entry, and nobody can admit it any more.
    pub(super) const FORGOTTEN: u64 = 1 << 47;
    pub(super) const HASH: u64 = !(0xffff << 32);

    /// With one handle.
    pub(super) fn new(hash: u64) -> Word {
        Word(AtomicU64::new(hash & Word::HASH | Word::ONE))
    }

    pub(super) const fn handles(word: u64) -> u64 {
        word >> 32 & Word::MANY
    }

    pub(super) const fn is_forgotten(word: u64) -> bool {
        word & Word::FORGOTTEN != 0
    }

    pub(super) fn load(&self, ordering: Ordering) -> u64 {
        self.0.load(ordering)
    }

    /// One handle more, if `may` says so of the word.
    pub(super) fn share(&self, may: impl Fn(u64) -> bool) -> bool {
        let more = |word| match Word::handles(word) {
            Word::MANY => Some(word),
            _ => Some(word + Word::ONE),
        };
        let more = |word| if may(word) { more(word) } else { None };
        // Relaxed, as `Arc`: nothing is read through the number.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// One handle less; what the word was, unless nobody knows how many there are.
    pub(super) fn let_go(&self) -> Option<u64> {
        let less = |word| (Word::handles(word) != Word::MANY).then(|| word - Word::ONE);
        // Release pairs with the fence in `Handle::drop` and with the acquires of the number: what other handles did to
        // the entry is done before it dies.
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, less).ok()
    }
}
