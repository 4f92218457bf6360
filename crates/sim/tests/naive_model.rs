//! Caches and TLBs against models so simple that they are right at sight: lists with time stamps.

use proptest::prelude::*;
use sim::{
    CacheShape, CacheShapes, Caches, Inclusion, Level, LruSets, PageSize, Pte, Request, Tlb, TlbArrayShape,
    TlbShape,
};

/// A set-associative array: every resident key with the time of its last use.
#[derive(Default, Clone)]
struct NaiveArray {
    sets: u64,
    ways: usize,
    clock: u64,
    resident: Vec<(u64, u64, bool)>,
}

impl NaiveArray {
    fn new(sets: u64, ways: usize) -> NaiveArray {
        NaiveArray { sets, ways, ..NaiveArray::default() }
    }

    fn touch(&mut self, key: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        let found = self.resident.iter_mut().find(|entry| entry.0 == key);
        found.map(|entry| entry.1 = clock).is_some()
    }

    fn mark_dirty(&mut self, key: u64) -> bool {
        let found = self.resident.iter_mut().find(|entry| entry.0 == key);
        found.map(|entry| entry.2 = true).is_some()
    }

    /// Adds a key; what left, and whether it was dirty.
    fn add(&mut self, key: u64, dirty: bool) -> Option<(u64, bool)> {
        if self.touch(key) {
            if dirty {
                self.mark_dirty(key);
            }
            return None;
        }
        let mates: Vec<_> =
            self.resident.iter().copied().filter(|entry| entry.0 % self.sets == key % self.sets).collect();
        let mut left = None;
        if mates.len() == self.ways {
            let oldest = mates.into_iter().min_by_key(|entry| entry.1).expect("a full set");
            self.take(oldest.0);
            left = Some((oldest.0, oldest.2));
        }
        self.resident.push((key, self.clock, dirty));
        left
    }

    fn take(&mut self, key: u64) -> Option<bool> {
        let place = self.resident.iter().position(|entry| entry.0 == key)?;
        Some(self.resident.swap_remove(place).2)
    }
}

/// Three levels of [`NaiveArray`], each write-back and write-allocate.
struct NaiveCaches {
    l1: NaiveArray,
    l2: NaiveArray,
    l3: NaiveArray,
    inclusion: Inclusion,
    memory_reads: u64,
    memory_writes: u64,
}

impl NaiveCaches {
    fn fill_l3(&mut self, line: u64, dirty: bool) {
        let Some((left, mut dirty)) = self.l3.add(line, dirty) else { return };
        if self.inclusion == Inclusion::Inclusive {
            dirty |= self.l1.take(left).unwrap_or(false);
            dirty |= self.l2.take(left).unwrap_or(false);
        }
        self.memory_writes += u64::from(dirty);
    }

    fn fill_l2(&mut self, line: u64, dirty: bool) {
        let Some((left, dirty)) = self.l2.add(line, dirty) else { return };
        if self.inclusion == Inclusion::Victims {
            self.fill_l3(left, dirty);
        } else if dirty && !self.l3.mark_dirty(left) {
            self.fill_l3(left, true);
        }
    }

    fn access(&mut self, line: u64, store: bool) -> Level {
        let level = if self.l1.touch(line) {
            Level::L1
        } else if self.l2.touch(line) {
            Level::L2
        } else if self.l3.touch(line) {
            let mut dirty = false;
            if self.inclusion == Inclusion::Victims {
                dirty = self.l3.take(line).expect("it was found");
            }
            self.fill_l2(line, dirty);
            Level::L3
        } else {
            self.memory_reads += 1;
            if self.inclusion != Inclusion::Victims {
                self.fill_l3(line, false);
            }
            self.fill_l2(line, false);
            Level::Memory
        };
        if let Some((left, true)) = self.l1.add(line, store)
            && !self.l2.mark_dirty(left)
        {
            self.fill_l2(left, true);
        }
        level
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_array_is_lru(
        sets in 1_u64..6,
        ways in 1_usize..5,
        operations in prop::collection::vec((0..40_u64, 0..4_u8), 1..300),
    ) {
        let mut array = LruSets::new(sets as usize, ways);
        let mut naive = NaiveArray::new(sets, ways);
        for (key, operation) in operations {
            if operation == 0 {
                prop_assert_eq!(array.remove(key).is_some(), naive.take(key).is_some());
            } else if operation == 1 {
                prop_assert_eq!(array.get(key).is_some(), naive.touch(key));
            } else {
                let left = array.put(key, ()).map(|(key, ())| key);
                prop_assert_eq!(left, naive.add(key, false).map(|(key, _)| key));
            }
            let mut resident: Vec<_> = naive.resident.iter().map(|entry| entry.0).collect();
            let mut keys: Vec<_> = array.keys().collect();
            resident.sort_unstable();
            keys.sort_unstable();
            prop_assert_eq!(keys, resident);
        }
    }

    #[test]
    fn caches_are_three_naive_arrays(
        inclusion in prop_oneof![Just(Inclusion::Neither), Just(Inclusion::Inclusive), Just(Inclusion::Victims)],
        accesses in prop::collection::vec((0..200_u64, any::<bool>()), 1..800),
    ) {
        // 16, 32 and 48 lines; the third level has three sets... of 16, which is no power of two sets.
        let shapes = CacheShapes {
            l1i: CacheShape::new(1, 2, 1),
            l1d: CacheShape::new(1, 2, 1),
            l2: Some(CacheShape::new(2, 4, 2)),
            l3: Some(CacheShape::new(3, 16, 3)),
            inclusion,
            walks_skip_l1: false,
        };
        let mut caches = Caches::new(&shapes);
        let mut naive = NaiveCaches {
            l1: NaiveArray::new(8, 2),
            l2: NaiveArray::new(8, 4),
            l3: NaiveArray::new(3, 16),
            inclusion,
            memory_reads: 0,
            memory_writes: 0,
        };
        for (line, store) in accesses {
            let request = if store { Request::Store } else { Request::Load };
            prop_assert_eq!(caches.access(line, request), naive.access(line, store));
        }
        prop_assert_eq!(caches.memory().reads, naive.memory_reads);
        prop_assert_eq!(caches.memory().writes, naive.memory_writes);
    }

    #[test]
    fn a_tlb_is_a_naive_array_for_each_of_its_arrays(
        accesses in prop::collection::vec((0..64_u64, any::<bool>(), 0..20_u8), 1..500),
    ) {
        // Small pages low, large pages high; they share an array of three sets of four.
        let shape = TlbShape {
            latency: 1,
            arrays: vec![TlbArrayShape::new(12, 4, &[PageSize::Small, PageSize::Large])],
        };
        let mut tlb = Tlb::new(&shape);
        let mut naive = NaiveArray::new(3, 4);
        for (page, large, operation) in accesses {
            let (size, address) = if large {
                (PageSize::Large, 1 << 40 | page << 21 | 0x1_2345)
            } else {
                (PageSize::Small, page << 12 | 0x123)
            };
            // The set is chosen by the page's number: the model's key keeps that and tells the sizes apart.
            let number = size.number(address);
            let key = number + if large { 3 << 50 } else { 0 };
            if operation == 0 {
                tlb.remove(address);
                naive.take(key);
                continue;
            }
            let found = tlb.get(address);
            prop_assert_eq!(found.is_some(), naive.touch(key));
            match found {
                Some(pte) => prop_assert_eq!(pte, Pte::new(number << 30, size)),
                None => {
                    tlb.put(address, Pte::new(number << 30, size));
                    naive.add(key, false);
                }
            }
        }
    }
}
