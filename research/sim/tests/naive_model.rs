//! Caches and TLBs against models so simple that they are right at sight: lists with time stamps.

use proptest::prelude::*;
use sim::{
    CacheCounts, CacheShape, CacheShapes, Caches, Inclusion, Level, LruSets, MemoryCounts, PageSize, Pte,
    Request, Tlb, TlbArrayShape, TlbShape,
};

/// A key that an array holds.
#[derive(Clone, Copy)]
struct Resident {
    key: u64,
    used: u64,
    dirty: bool,
    prefetched: bool,
}

/// A set-associative array: every resident key with the time of its last use.
#[derive(Default, Clone)]
struct NaiveArray {
    sets: u64,
    ways: usize,
    clock: u64,
    resident: Vec<Resident>,
}

impl NaiveArray {
    fn new(sets: u64, ways: usize) -> NaiveArray {
        NaiveArray { sets, ways, ..NaiveArray::default() }
    }

    fn find(&mut self, key: u64) -> Option<&mut Resident> {
        self.resident.iter_mut().find(|resident| resident.key == key)
    }

    fn touch(&mut self, key: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        self.find(key).map(|resident| resident.used = clock).is_some()
    }

    fn mark_dirty(&mut self, key: u64) -> bool {
        self.find(key).map(|resident| resident.dirty = true).is_some()
    }

    /// Adds a key; what left.
    fn add(&mut self, key: u64, dirty: bool) -> Option<Resident> {
        if self.touch(key) {
            if dirty {
                self.mark_dirty(key);
            }
            return None;
        }
        let mates: Vec<_> =
            self.resident.iter().copied().filter(|other| other.key % self.sets == key % self.sets).collect();
        let mut left = None;
        if mates.len() == self.ways {
            left = mates.into_iter().min_by_key(|mate| mate.used);
            self.take(left.expect("a full set").key);
        }
        self.resident.push(Resident { key, used: self.clock, dirty, prefetched: false });
        left
    }

    fn take(&mut self, key: u64) -> Option<Resident> {
        let place = self.resident.iter().position(|resident| resident.key == key)?;
        Some(self.resident.swap_remove(place))
    }
}

/// A level of the caches: an array, what each kind of request found, and what became of prefetched lines.
#[derive(Default, Clone)]
struct NaiveCache {
    array: NaiveArray,
    /// Hits and misses of loads, stores, fetches and walks.
    found: [(u64, u64); 4],
    prefetched: u64,
    useful: u64,
    written_back: u64,
}

impl NaiveCache {
    fn new(shape: CacheShape) -> NaiveCache {
        NaiveCache {
            array: NaiveArray::new(shape.sets() as u64, shape.ways as usize),
            ..NaiveCache::default()
        }
    }

    fn ask(&mut self, line: u64, request: Request) -> bool {
        let hit = self.array.touch(line);
        let (hits, misses) = &mut self.found[request as usize];
        *(if hit { hits } else { misses }) += 1;
        if let Some(resident) = self.array.find(line)
            && resident.prefetched
        {
            resident.prefetched = false;
            self.useful += 1;
        }
        hit
    }

    /// Adds a line: the one that left, and whether it was dirty.
    fn add(&mut self, line: u64, dirty: bool) -> Option<(u64, bool)> {
        self.array.add(line, dirty).map(|left| (left.key, left.dirty))
    }

    /// A prefetcher has just brought a line.
    fn mark_prefetched(&mut self, line: u64) {
        self.prefetched += 1;
        self.array.find(line).expect("it has just been added").prefetched = true;
    }

    fn is_as(&self, counts: CacheCounts) -> bool {
        let found = [counts.load, counts.store, counts.fetch, counts.walk];
        self.found == found.map(|of| (of.hits, of.misses))
            && (self.prefetched, self.useful, self.written_back)
                == (counts.prefetched, counts.prefetched_used, counts.written_back)
    }
}

/// Up to four [`NaiveCache`]s, each write-back and write-allocate.
struct NaiveCaches {
    l1i: NaiveCache,
    l1d: NaiveCache,
    l2: Option<NaiveCache>,
    l3: Option<NaiveCache>,
    inclusion: Inclusion,
    walks_skip_l1: bool,
    memory: MemoryCounts,
}

impl NaiveCaches {
    fn new(shapes: &CacheShapes) -> NaiveCaches {
        NaiveCaches {
            l1i: NaiveCache::new(shapes.l1i),
            l1d: NaiveCache::new(shapes.l1d),
            l2: shapes.l2.map(NaiveCache::new),
            l3: shapes.l3.map(NaiveCache::new),
            inclusion: shapes.inclusion,
            walks_skip_l1: shapes.walks_skip_l1,
            memory: MemoryCounts::default(),
        }
    }

    /// Whether the third level gets its lines from the second, and only from there.
    fn takes_victims(&self) -> bool {
        self.inclusion == Inclusion::Victims && self.l2.is_some()
    }

    fn fill_l3(&mut self, line: u64, dirty: bool) {
        let Some(l3) = &mut self.l3 else {
            self.memory.writes += u64::from(dirty);
            return;
        };
        let Some((left, mut dirty)) = l3.add(line, dirty) else { return };
        if self.inclusion == Inclusion::Inclusive {
            for inner in [Some(&mut self.l1i), Some(&mut self.l1d), self.l2.as_mut()].into_iter().flatten() {
                dirty |= inner.array.take(left).is_some_and(|resident| resident.dirty);
            }
        }
        l3.written_back += u64::from(dirty);
        self.memory.writes += u64::from(dirty);
    }

    fn fill_l2(&mut self, line: u64, dirty: bool) {
        let Some(l2) = &mut self.l2 else { return };
        let Some((left, dirty)) = l2.add(line, dirty) else { return };
        l2.written_back += u64::from(dirty);
        if self.inclusion == Inclusion::Victims {
            self.fill_l3(left, dirty);
        } else if dirty {
            self.write_to_l3(left);
        }
    }

    fn write_to_l3(&mut self, line: u64) {
        if !self.l3.as_mut().is_some_and(|l3| l3.array.mark_dirty(line)) {
            self.fill_l3(line, true);
        }
    }

    /// What the first level throws out.
    fn write_to_l2(&mut self, line: u64) {
        match &mut self.l2 {
            None => self.write_to_l3(line),
            Some(l2) => {
                if !l2.array.mark_dirty(line) {
                    self.fill_l2(line, true);
                }
            }
        }
    }

    fn access(&mut self, line: u64, request: Request) -> Level {
        if request == Request::Walk && self.walks_skip_l1 {
            return self.access_outer(line, request);
        }
        let fetch = request == Request::Fetch;
        let store = request == Request::Store;
        let first = if fetch { &mut self.l1i } else { &mut self.l1d };
        if first.ask(line, request) {
            if store {
                first.array.mark_dirty(line);
            }
            return Level::L1;
        }
        let level = self.access_outer(line, request);
        let first = if fetch { &mut self.l1i } else { &mut self.l1d };
        if let Some((left, true)) = first.add(line, store) {
            first.written_back += 1;
            self.write_to_l2(left);
        }
        level
    }

    fn access_outer(&mut self, line: u64, request: Request) -> Level {
        let takes_victims = self.takes_victims();
        if self.l2.as_mut().is_some_and(|l2| l2.ask(line, request)) {
            return Level::L2;
        }
        let (mut level, mut dirty) = (Level::Memory, false);
        if let Some(l3) = &mut self.l3
            && l3.ask(line, request)
        {
            level = Level::L3;
            if takes_victims {
                dirty = l3.array.take(line).expect("it was found").dirty;
            }
        } else {
            self.memory.reads += 1;
            if !takes_victims {
                self.fill_l3(line, false);
            }
        }
        self.fill_l2(line, dirty);
        level
    }

    /// Into the third level, or the last that there is behind the first; the second, if the third takes its victims.
    fn prefetch(&mut self, line: u64) -> bool {
        let outer = [self.l2.as_mut(), self.l3.as_mut()];
        if outer.into_iter().flatten().any(|cache| cache.array.find(line).is_some()) {
            return false;
        }
        let cache = if self.l3.is_some() && !self.takes_victims() {
            self.fill_l3(line, false);
            self.l3.as_mut()
        } else {
            self.fill_l2(line, false);
            self.l2.as_mut()
        };
        let Some(cache) = cache else { return false };
        cache.mark_prefetched(line);
        self.memory.prefetches += 1;
        true
    }

    fn holds(&mut self, line: u64) -> Level {
        let levels =
            [(Level::L1, Some(&mut self.l1d)), (Level::L2, self.l2.as_mut()), (Level::L3, self.l3.as_mut())];
        let nearest = levels.into_iter().find_map(|(level, cache)| Some((level, cache?.array.find(line)?)));
        nearest.map_or(Level::Memory, |(level, _)| level)
    }
}

/// What the caches are asked.
#[derive(Debug, Clone, Copy)]
enum Step {
    Access(Request),
    Prefetch,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Access(Request::Load)),
        3 => Just(Step::Access(Request::Store)),
        2 => Just(Step::Access(Request::Fetch)),
        2 => Just(Step::Access(Request::Walk)),
        1 => Just(Step::Prefetch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_array_is_lru(
        sets in 1_u64..6,
        ways in 1_usize..5,
        operations in prop::collection::vec((0..40_u64, 0..40_u8), 1..300),
    ) {
        let mut array = LruSets::new(sets as usize, ways);
        let mut naive = NaiveArray::new(sets, ways);
        for (key, operation) in operations {
            match operation {
                0 => {
                    array.clear();
                    naive.resident.clear();
                }
                1..10 => prop_assert_eq!(array.remove(key).is_some(), naive.take(key).is_some()),
                10..20 => prop_assert_eq!(array.get(key).is_some(), naive.touch(key)),
                _ => {
                    let left = array.put(key, ()).map(|(key, ())| key);
                    prop_assert_eq!(left, naive.add(key, false).map(|resident| resident.key));
                }
            }
            let mut resident: Vec<_> = naive.resident.iter().map(|resident| resident.key).collect();
            let mut keys: Vec<_> = array.keys().collect();
            resident.sort_unstable();
            keys.sort_unstable();
            prop_assert_eq!(keys, resident);
        }
    }

    #[test]
    fn caches_are_naive_arrays(
        inclusion in prop_oneof![Just(Inclusion::Neither), Just(Inclusion::Inclusive), Just(Inclusion::Victims)],
        // Mostly with both outer levels.
        second in prop::bool::weighted(0.8),
        third in prop::bool::weighted(0.8),
        walks_skip_l1 in any::<bool>(),
        steps in prop::collection::vec((0..200_u64, step()), 1..800),
    ) {
        // 16, 16, 32 and 48 lines; the third level has three sets... of 16, which is no power of two sets.
        let shapes = CacheShapes {
            l1i: CacheShape::new(1, 1, 1),
            l1d: CacheShape::new(1, 2, 1),
            l2: second.then(|| CacheShape::new(2, 4, 2)),
            l3: third.then(|| CacheShape::new(3, 16, 3)),
            inclusion,
            walks_skip_l1,
        };
        let mut caches = Caches::new(&shapes);
        let mut naive = NaiveCaches::new(&shapes);
        for (line, step) in steps {
            match step {
                Step::Access(request) => prop_assert_eq!(caches.access(line, request), naive.access(line, request)),
                Step::Prefetch => prop_assert_eq!(caches.prefetch(line), naive.prefetch(line)),
            }
            prop_assert_eq!(caches.holds(line), naive.holds(line));
        }
        prop_assert_eq!(caches.memory(), naive.memory);
        prop_assert!(naive.l1i.is_as(caches.l1i()) && naive.l1d.is_as(caches.l1d()));
        prop_assert!(naive.l2.take().unwrap_or_default().is_as(caches.l2()));
        prop_assert!(naive.l3.take().unwrap_or_default().is_as(caches.l3()));
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
