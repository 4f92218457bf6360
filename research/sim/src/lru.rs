//! A set-associative array with least-recently-used replacement: what every cache and every TLB here is made of.
//!
//! A key belongs to the set `key mod sets`. Keys lie apart from values, and the order of use apart from both (see
//! `recency`). A way that is freed becomes the one used longest ago, so free ways are always the first to be filled and
//! a fill needs no search for one.
//!
//! Of each key a byte is kept besides, its tag; those of eight ways are one word, in which all ways with the wanted tag
//! are found at once (Mycroft's trick, for bytes; the layout is that of Google's Swiss tables, a word for a vector).
//! Only they are compared. So a key that is absent, which is what a simulation of large tables asks for most, seldom
//! touches a key at all, and the tags of a third-level cache fit into the first of the host. Before its tags, a set's
//! way used last is asked: most hits of a program are there, and then the order stays as it is, too. Of a program under
//! QEMU without a clock that makes a third more instructions a second.
//!
//! Rejected: comparing every way without an exit, a chain of conditional moves. It takes three times as many
//! instructions for eight ways, and a line of the host's cache for each set.
//!
//! The number of sets need not be a power of two (third-level caches of odd sizes); if it is, a mask replaces
//! the division.

use crate::recency::Recency;

/// No key: never a line, page or row number, which all have fewer than 64 bits.
const FREE: u64 = u64::MAX;
/// Ways whose tags are one word.
const LANES: usize = 8;
const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHEST: u64 = ONES << 7;

/// A byte of a key: of a product, whose high bits depend on all of them.
#[inline(always)]
fn tag(key: u64) -> u8 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// The array: up to `ways` keys in each of `sets` sets, a value with each.
#[derive(Debug, Clone)]
pub struct LruSets<V> {
    keys: Vec<u64>,
    /// Tags of the ways of each set, eight a word. A free way's means nothing.
    tags: Vec<u64>,
    /// Words of a set's tags.
    words: usize,
    values: Vec<V>,
    recency: Recency,
    sets: u64,
    /// `sets - 1` if that is a mask.
    mask: Option<u64>,
    ways: usize,
}

impl<V: Copy + Default> LruSets<V> {
    /// An empty array.
    ///
    /// # Panics
    /// If `sets` or `ways` is zero; profiles refuse such before they come here.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> LruSets<V> {
        assert!(sets > 0 && ways > 0, "an array needs at least one set and one way");
        LruSets {
            keys: vec![FREE; sets * ways],
            tags: vec![0; sets * ways.div_ceil(LANES)],
            words: ways.div_ceil(LANES),
            values: vec![V::default(); sets * ways],
            recency: Recency::new(sets, ways),
            sets: sets as u64,
            mask: sets.is_power_of_two().then_some(sets as u64 - 1),
            ways,
        }
    }

    #[inline(always)]
    fn set(&self, key: u64) -> usize {
        self.mask.map_or_else(|| key % self.sets, |mask| key & mask) as usize
    }

    #[inline(always)]
    fn way(&self, set: usize, key: u64) -> Option<usize> {
        let wanted = u64::from(tag(key)) * ONES;
        for word in 0..self.words {
            let differences = self.tags[set * self.words + word] ^ wanted;
            // The lowest mark is right, one above it may be wrong: all are only candidates.
            let mut candidates = differences.wrapping_sub(ONES) & !differences & HIGHEST;
            while candidates != 0 {
                let way = word * LANES + candidates.trailing_zeros() as usize / 8;
                // A lane beyond the last way leads into the next set, which never has this set's key.
                if self.keys.get(set * self.ways + way) == Some(&key) {
                    return Some(way);
                }
                candidates &= candidates - 1;
            }
        }
        None
    }

    /// The value of `key`, which thereby becomes the latest used of its set.
    #[inline(always)]
    pub fn get(&mut self, key: u64) -> Option<&mut V> {
        let set = self.set(key);
        // A free way has no key, whichever way is the latest.
        let latest = set * self.ways + self.recency.latest(set);
        if self.keys[latest] == key {
            return Some(&mut self.values[latest]);
        }
        let way = self.way(set, key)?;
        self.recency.touch(set, way);
        Some(&mut self.values[set * self.ways + way])
    }

    /// The value of `key`; its age stays.
    #[must_use]
    pub fn peek(&self, key: u64) -> Option<&V> {
        let set = self.set(key);
        self.way(set, key).map(|way| &self.values[set * self.ways + way])
    }

    /// The value of `key`, to be changed; its age stays.
    pub fn peek_mut(&mut self, key: u64) -> Option<&mut V> {
        let set = self.set(key);
        self.way(set, key).map(|way| &mut self.values[set * self.ways + way])
    }

    /// Fills in a key that is absent, as the latest used, and gives back what had to leave.
    ///
    /// The caller has just missed with [`get`](Self::get): a key that is present would be there twice.
    #[inline]
    pub fn fill(&mut self, key: u64, value: V) -> Option<(u64, V)> {
        debug_assert!(self.peek(key).is_none(), "filled a key that is present");
        let set = self.set(key);
        let way = self.recency.renew(set);
        let place = set * self.ways + way;
        let leaving = (self.keys[place], self.values[place]);
        self.keys[place] = key;
        let (word, shift) = (set * self.words + way / LANES, 8 * (way % LANES));
        self.tags[word] = self.tags[word] & !(0xff << shift) | u64::from(tag(key)) << shift;
        self.values[place] = value;
        (leaving.0 != FREE).then_some(leaving)
    }

    /// As [`fill`](Self::fill), for a key that may be present: then its value is replaced and nothing leaves.
    pub fn put(&mut self, key: u64, value: V) -> Option<(u64, V)> {
        match self.get(key) {
            Some(present) => {
                *present = value;
                None
            }
            None => self.fill(key, value),
        }
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: u64) -> Option<V> {
        let set = self.set(key);
        let way = self.way(set, key)?;
        self.recency.expire(set, way);
        let place = set * self.ways + way;
        self.keys[place] = FREE;
        Some(self.values[place])
    }

    /// Empties the array.
    pub fn clear(&mut self) {
        self.keys.fill(FREE);
    }

    /// The keys that are present, set by set.
    pub fn keys(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.iter().copied().filter(|&key| key != FREE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of one tag, and more ways than a word has lanes: what the tags cannot tell apart, the keys do.
    #[test]
    fn equal_tags_are_told_apart() {
        let equal: Vec<u64> = (0..1 << 20).filter(|&key| tag(key) == tag(0)).take(24).collect();
        for ways in [1, 3, 8, 11, 24] {
            let mut array = LruSets::new(1, ways);
            for &key in &equal {
                assert_eq!(array.get(key), None);
                array.fill(key, key + 1);
            }
            let (gone, there) = equal.split_at(equal.len() - ways);
            assert!(gone.iter().all(|&key| array.get(key).is_none()), "{ways}");
            assert!(there.iter().all(|&key| array.get(key) == Some(&mut (key + 1))), "{ways}");
            assert_eq!(array.remove(there[0]), Some(there[0] + 1));
            assert_eq!(array.peek(there[0]), None);
        }
    }
}
