//! A set-associative array with least-recently-used replacement: what every cache and every TLB here is made of.
//!
//! A key belongs to the set `key mod sets`. Keys lie apart from values, so that a set of eight is searched in
//! one host line, and the order of use apart from both (see `recency`). A way that is freed becomes the one
//! used longest ago, so free ways are always the first to be filled and a fill needs no search for one.
//!
//! The search looks at every way and takes no early exit: the compiler makes it a chain of conditional moves,
//! and what a program touches next is not what a host's branch predictor knows.
//!
//! The number of sets need not be a power of two (third-level caches of odd sizes); if it is, a mask replaces
//! the division.

use crate::recency::Recency;

/// No key: never a line, page or row number, which all have fewer than 64 bits.
const FREE: u64 = u64::MAX;

/// The array: up to `ways` keys in each of `sets` sets, a value with each.
#[derive(Debug, Clone)]
pub struct LruSets<V> {
    keys: Vec<u64>,
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
        let mut way = usize::MAX;
        for (number, &resident) in self.keys[set * self.ways..][..self.ways].iter().enumerate() {
            way = if resident == key { number } else { way };
        }
        (way != usize::MAX).then_some(way)
    }

    /// The value of `key`, which thereby becomes the latest used of its set.
    #[inline(always)]
    pub fn get(&mut self, key: u64) -> Option<&mut V> {
        let set = self.set(key);
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
        let way = self.recency.oldest(set);
        self.recency.touch(set, way);
        let place = set * self.ways + way;
        let leaving = (self.keys[place], self.values[place]);
        self.keys[place] = key;
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

    #[test]
    fn the_least_recently_used_leaves() {
        let mut array = LruSets::new(2, 2);
        assert_eq!(array.fill(0, 'a'), None);
        assert_eq!(array.fill(2, 'b'), None);
        assert_eq!(array.get(0), Some(&mut 'a'));
        assert_eq!(array.fill(4, 'c'), Some((2, 'b')));
        assert_eq!(array.fill(1, 'd'), None);
        let mut keys: Vec<_> = array.keys().collect();
        keys.sort_unstable();
        assert_eq!(keys, [0, 1, 4]);
        assert_eq!(array.remove(4), Some('c'));
        assert_eq!(array.fill(6, 'e'), None, "a way was free");
        assert_eq!(array.peek(0), Some(&'a'));
        array.clear();
        assert_eq!(array.keys().count(), 0);
        assert_eq!(array.fill(8, 'f'), None);
    }
}
