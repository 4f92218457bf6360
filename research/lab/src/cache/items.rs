//! The items of the baselines, laid out as the paper counts them: memcached 1.4's, with what each design leaves out.
//!
//! ```text
//!   bytes   24: older, newer, references   strict LRU only: two pointers and a count, in words (paper, section 4)
//!            8: link                       chaining only
//!           32: times, sizes, flags, number and the like: there, and not used by what is measured
//!           16: key
//!           32: value
//! ```
//!
//! That makes 112 bytes for chaining with LRU, 104 for cuckoo with LRU, 88 for chaining with CLOCK and 80 for cuckoo
//! with CLOCK: the sizes by which the paper's Table 3 comes to its numbers of items. An item may be padded beyond that,
//! to the chunk that another memcached would put it in.
//!
//! All words are atomics, loaded and stored relaxed, plain moves on today's processors. The caches' locks order them;
//! where one were missing an item would be wrong, which every get would notice, and nothing undefined.

use std::sync::atomic::{AtomicU64, Ordering};

use cuckoo::{Entries, Location};
use pages::{Array, MapError, PageKind};

use super::contestant::Value;
use crate::index::Key;
use crate::index::chains::Linked;
use crate::index::comparison::Comparison;

/// Words that every item has besides its key, its value and what its design needs.
const OTHER_HEADER: usize = 4;
const KEY: usize = size_of::<Key>() / 8;
const VALUE: usize = size_of::<Value>() / 8;

/// An item's number.
pub(super) type Number = u32;

/// How items are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    /// Whether items are in a list by recency.
    pub(super) listed: bool,
    /// Whether items are linked to the next one of their bucket.
    pub(super) chained: bool,
}

impl Layout {
    fn list_words(self) -> usize {
        if self.listed { 3 } else { 0 }
    }

    fn words(self) -> usize {
        self.list_words() + usize::from(self.chained) + OTHER_HEADER + KEY + VALUE
    }

    /// Bytes of an item.
    pub(super) fn bytes(self) -> usize {
        self.words() * 8
    }
}

/// Room for a number of items.
pub(super) struct Items {
    words: Array<AtomicU64>,
    count: usize,
    /// Words from one item to the next.
    stride: usize,
    link: usize,
    key: usize,
}

impl Items {
    /// Room for `count` items of this layout, each padded to `bytes`, in pages of `kind`.
    pub(super) fn new(count: usize, layout: Layout, bytes: usize, kind: PageKind) -> Result<Items, MapError> {
        let stride = bytes.max(layout.bytes()).div_ceil(8);
        let link = layout.list_words();
        Ok(Items {
            words: Array::map(count.saturating_mul(stride), kind)?,
            count,
            stride,
            link,
            key: link + usize::from(layout.chained) + OTHER_HEADER,
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn region(&self) -> &pages::Region {
        self.words.region()
    }

    #[inline]
    fn word(&self, item: Number, word: usize) -> &AtomicU64 {
        &self.words[item as usize * self.stride + word]
    }

    /// The item's neighbour that was used before it; of a layout with a list.
    #[inline]
    pub(super) fn older(&self, item: Number) -> &AtomicU64 {
        self.word(item, 0)
    }

    /// The item's neighbour that was used after it; of a layout with a list.
    #[inline]
    pub(super) fn newer(&self, item: Number) -> &AtomicU64 {
        self.word(item, 1)
    }

    /// How many threads are reading the item; of a layout with a list.
    #[inline]
    pub(super) fn references(&self, item: Number) -> &AtomicU64 {
        self.word(item, 2)
    }

    #[inline]
    pub(super) fn key(&self, item: Number) -> Key {
        Key::from_words(std::array::from_fn(|at| self.word(item, self.key + at).load(Ordering::Relaxed)))
    }

    #[inline]
    pub(super) fn value(&self, item: Number) -> Value {
        let at = self.key + KEY;
        Value(std::array::from_fn(|word| self.word(item, at + word).load(Ordering::Relaxed)))
    }

    #[inline]
    pub(super) fn write_key(&self, item: Number, key: &Key) {
        for (at, word) in key.to_words().into_iter().enumerate() {
            self.word(item, self.key + at).store(word, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(super) fn write_value(&self, item: Number, value: &Value) {
        for (at, word) in value.0.into_iter().enumerate() {
            self.word(item, self.key + KEY + at).store(word, Ordering::Relaxed);
        }
    }
}

/// Chains through so many items: there are at most 1.5 of them to a bucket, as in memcached.
pub(super) fn buckets_for(items: usize) -> usize {
    (items / 3 * 2).max(1).next_power_of_two()
}

/// For the chains: an entry's number is the item's.
impl Linked for Items {
    #[inline]
    fn has_key(&self, entry: u64, key: &Key, comparison: &impl Comparison) -> bool {
        comparison.same(&self.key(entry as Number), key)
    }

    #[inline]
    fn link(&self, entry: u64) -> &AtomicU64 {
        self.word(entry as Number, self.link)
    }
}

impl Items {
    /// Whether the item at a location of a cuckoo table has this key.
    #[inline]
    pub(super) fn holds(&self, location: Location, key: &Key) -> bool {
        self.key(location.get() as Number).same(key)
    }
}

/// For the cuckoo index: an item's location is its number.
impl Entries for &Items {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        self.key(location.get() as Number).hash()
    }

    #[inline]
    fn prefetch(&self, location: Location) {
        pages::prefetch(self.word(location.get() as Number, self.key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's Table 3 has 0.60, 0.65, 0.76 and 0.84 million items in 64 MB.
    #[test]
    fn items_are_as_large_as_the_papers() {
        for (listed, chained, bytes, in_64_mb) in
            [(true, true, 112, 60), (true, false, 104, 65), (false, true, 88, 76), (false, false, 80, 84)]
        {
            let layout = Layout { listed, chained };
            assert_eq!(layout.bytes(), bytes);
            assert_eq!(((64 << 20) as f64 / bytes as f64 / 1e4).round() as usize, in_64_mb);
        }
    }

    #[test]
    fn an_item_keeps_its_parts_apart() {
        let layout = Layout { listed: true, chained: true };
        let items = Items::new(3, layout, 120, PageKind::Base).unwrap();
        for item in 0..3 {
            items.write_key(item, &Key::of(u64::from(item)));
            items.write_value(item, &Value::of(&Key::of(u64::from(item))));
            for word in
                [items.older(item), items.newer(item), items.references(item), items.link(item.into())]
            {
                word.store(u64::from(item) + 10, Ordering::Relaxed);
            }
        }
        for item in 0..3 {
            let key = Key::of(u64::from(item));
            assert!(items.key(item).same(&key) && items.value(item) == Value::of(&key));
            for word in
                [items.older(item), items.newer(item), items.references(item), items.link(item.into())]
            {
                assert_eq!(word.load(Ordering::Relaxed), u64::from(item) + 10);
            }
        }
        assert!(Items::new(usize::MAX / 2, layout, 120, PageKind::Base).is_err());
    }
}
