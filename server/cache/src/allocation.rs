//! How an item gets memory, and is written into it.
//!
//! ```text
//! allocate a chunk of a class:
//!   1. a free one
//!   2. one from limbo that nobody can be reading
//!   3. a new page, while the limit allows
//!   4. a page that holds nothing alive
//!   5. the oldest page of another class, or evict, and see 2
//!   6. a page from the reserve
//!   7. wait for the readers who are in the way
//!   8. empty the oldest page of all, and see 6
//!   9. a chunk of a larger class
//! ```
//!
//! Steps 4, 5 and 8 are [`crate::reclaim`]'s.
//!
//! A cache with fewer pages than sizes of chunks has no page for each of them. There a size without one uses chunks of
//! the next larger size that has: step 5 would give up a page full of items for one. Rejected: fewer sizes in such a
//! cache, which waste where all items are alike; the same in larger caches, where it would keep items of a new size in
//! chunks up to twice as large for good.
//!
//! Step 1 is what happens: an allocation that leaves fewer chunks free or in limbo than the class's reserve takes a
//! page ahead or, in a full cache, evicts one or two, so that by the time they are needed their readers have left. Step
//! 7 comes only after both reserves, for a reader whose thread has lost its core in the middle of a lookup.

#![allow(unsafe_code)]

use std::thread;
use std::time::{Duration, Instant};

use cuckoo::Location;

use crate::counters::Counters;
use crate::item::{FURTHER_HEADER, Outline};
use crate::policy::Policy;
use crate::pool::Need;
use crate::reclaim::Extent;
use crate::shared::Engine;
use crate::size_classes::{ClassId, LARGEST_CHUNK};
use crate::slab::{Class, ClassState, Returned};
use crate::unfinished::Unfinished;

/// Chunks that a class keeps free or in limbo at the most; and no more than a page has.
const LARGEST_RESERVE: usize = 64;
/// Pages that an allocation empties at the most.
const MOST_PAGES_EMPTIED: usize = 16;
/// Times an allocation goes through its steps before it takes to the reserve.
const ROUNDS: usize = 4;
/// How long an allocation waits for readers at the most: some turns of a scheduler, on a machine with too many threads.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How long it does nothing but yield.
const LONGEST_YIELDING: Duration = Duration::from_micros(100);

/// Why an item was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The key is empty, or longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes.
    BadKey,
    /// It is larger than an item may be.
    TooLarge,
    /// Memory is full, and nothing could be evicted, or nothing may be.
    OutOfMemory,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StoreError::BadKey => "a key has 1 to 250 bytes",
            StoreError::TooLarge => "the item is larger than the cache allows: raise the largest item size",
            StoreError::OutOfMemory => "the cache is full and nothing could be evicted: raise the limit",
        })
    }
}

impl std::error::Error for StoreError {}

impl<P: Policy> Engine<P> {
    /// Starts an item: its first chunk, with header and key. The session must not be pinned: it would hold back what it
    /// waits for.
    pub(crate) fn begin(&self, outline: &Outline<'_>, counters: &Counters) -> Result<Unfinished, StoreError> {
        let class = self.class_for(outline)?;
        if outline.is_chained() {
            let class = self.class(class);
            class.prefer_passed(&mut class.lock(), self.memory());
        }
        let at = self.allocate(class, counters)?;
        // SAFETY: just allocated, in a class for items of this size or of a larger one.
        Ok(unsafe { Unfinished::begin(&self.arena, at, outline, P::NEWCOMER) })
    }

    /// The same of an item that is not chained, and its value.
    pub(crate) fn write(
        &self,
        outline: &Outline<'_>,
        value: &[u8],
        counters: &Counters,
    ) -> Result<Unfinished, StoreError> {
        let at = self.allocate(self.class_for(outline)?, counters)?;
        // SAFETY: just allocated, in a class for items of this size or of a larger one; not chained.
        Ok(unsafe { Unfinished::whole(&self.arena, at, outline, P::NEWCOMER, value) })
    }

    /// The class of an item's first chunk, if the item may be so large.
    #[inline]
    pub(crate) fn class_for(&self, outline: &Outline<'_>) -> Result<ClassId, StoreError> {
        let unchained = outline.unchained_size();
        if unchained <= LARGEST_CHUNK.min(self.config.largest_item) {
            return self.sizes.class_for(unchained).ok_or(StoreError::TooLarge);
        }
        let bytes = outline.first_chunk() + outline.value_len - outline.first_room();
        if bytes > self.config.largest_item || outline.value_len > u32::MAX as usize {
            return Err(StoreError::TooLarge);
        }
        self.sizes.class_for(outline.first_chunk()).ok_or(StoreError::TooLarge)
    }

    /// Appends to the value of an unfinished item, in as many further chunks as that takes. The session must not be
    /// pinned.
    ///
    /// # Panics
    /// If there is more data than the item was announced with.
    pub(crate) fn append(
        &self,
        unfinished: &mut Unfinished,
        mut data: &[u8],
        counters: &Counters,
    ) -> Result<(), StoreError> {
        assert!(data.len() <= unfinished.missing(), "more data than was announced");
        loop {
            let written = unfinished.append(&self.arena, data);
            data = &data[written..];
            if data.is_empty() {
                return Ok(());
            }
            let len = unfinished.missing().min(LARGEST_CHUNK - FURTHER_HEADER);
            let class = self.sizes.class_for(FURTHER_HEADER + len).expect("at most the largest chunk");
            let at = self.allocate(class, counters)?;
            // SAFETY: just allocated, in a class for chunks of this size or of a larger one.
            unsafe { unfinished.extend(&self.arena, at, len, self.pool.turns()) };
        }
    }

    /// Gives up an item that is not in the index and never was.
    pub(crate) fn discard(&self, unfinished: &Unfinished) {
        // SAFETY: its chunks are the caller's.
        unsafe { self.dismantle(unfinished.first()) };
    }

    /// The class that gives chunks for one of this size: this, or in a cache with few pages another (see the module).
    fn home_of(&self, id: ClassId) -> &Class<P> {
        let class = self.class(id);
        if self.has_a_page_for_each_class() || !self.pool.lacks(class.per_page()) || class.lock().pages() > 0
        {
            return class;
        }
        let most = 2 * self.sizes.chunk_size(id);
        let larger = self.classes().skip(usize::from(id.0) + 1);
        larger
            .take_while(|larger| self.sizes.chunk_size(larger.id()) <= most)
            .find(|larger| larger.lock().pages() > 0)
            .unwrap_or(class)
    }

    /// A chunk of this class or, where that has no page, of a larger one.
    fn allocate(&self, id: ClassId, counters: &Counters) -> Result<Location, StoreError> {
        let home = self.home_of(id);
        let at = self.allocate_from(home, counters)?;
        if home.id() != id {
            self.is_guest(at);
        }
        Ok(at)
    }

    /// An item comes to this chunk that is counted in another class.
    #[cold]
    fn is_guest(&self, at: Location) {
        self.page(self.arena.page_of(at).0).takes_guest();
    }

    fn allocate_from(&self, class: &Class<P>, counters: &Counters) -> Result<Location, StoreError> {
        for _ in 0..ROUNDS {
            let mut state = class.lock();
            if let Some(at) = self.take_chunk(class, &mut state) {
                let short = state.available() < self.reserve_of(class, &state);
                drop(state);
                if short && self.evicts() && !self.take_page_ahead(class) {
                    self.make_way(class, counters);
                }
                return Ok(at);
            }
            if self.recycle(class, state) {
                continue;
            }
            if let Some(at) = self.take_from_new_page(class, Need::Ordinary) {
                return Ok(at);
            }
            let extent = if self.evicts() { Extent::Bounded } else { Extent::Whole };
            if self.reclaim(class, extent, counters) {
                continue;
            }
            if !self.evicts() {
                break;
            }
            if self.take_from_others(class, counters) {
                continue;
            }
            // The chunk that was wanted may be a further one of an item that is at home in another class.
            if let Some(home) = self.evict_from(class, counters).filter(|home| home.id() != class.id()) {
                let state = home.lock();
                self.recycle(home, state);
            }
        }
        self.allocate_urgently(class, counters).ok_or_else(|| {
            class.lock().tallies.departures.out_of_memory += 1;
            StoreError::OutOfMemory
        })
    }

    /// Takes up to so many free chunks of a class, for items to come; none where that would need anything else.
    pub(crate) fn take_ahead(&self, id: ClassId, most: usize, taken: &mut Vec<Location>) {
        if !self.has_a_page_for_each_class() {
            return;
        }
        let class = self.class(id);
        let mut state = class.lock();
        let left = |state: &ClassState<P>| state.available().saturating_sub(self.reserve_of(class, state));
        if left(&state) < most {
            drop(state);
            self.take_page_ahead(class);
            state = class.lock();
        }
        let most = most.min(left(&state));
        // What has left lately is in the nearest cache, and need not be put on a free list to be taken from it.
        if most > 0 && state.limbo_len() >= most {
            self.epochs.advance();
            let safe = self.epochs.safe_before();
            taken.extend((0..most).map_while(|_| {
                let at = class.pop_reusable(&mut state, self.memory(), safe)?;
                class.entered(&mut state, self.memory(), at);
                Some(at)
            }));
        }
        let missing = most.saturating_sub(taken.len());
        taken.extend((0..missing).map_while(|_| self.take_chunk(class, &mut state)));
    }

    /// Gives chunks of a class back that were taken for items that have not come.
    pub(crate) fn give_back(&self, class: &Class<P>, chunks: &mut Vec<Location>) {
        let mut state = class.lock();
        let emptied: Vec<Returned> =
            chunks.drain(..).map(|at| class.push(&mut state, self.memory(), at)).collect();
        drop(state);
        emptied.into_iter().for_each(|returned| self.give_page(class, returned));
    }

    /// Steps 6 to 9.
    #[cold]
    fn allocate_urgently(&self, class: &Class<P>, counters: &Counters) -> Option<Location> {
        for emptied in 0..=MOST_PAGES_EMPTIED {
            if let Some(at) = self.take_from_new_page(class, Need::Urgent) {
                return Some(at);
            }
            if !self.wait_for_readers() {
                return None;
            }
            // Now all is safe that was in limbo: of this class, and on pages that others have given up.
            self.recycle_all();
            let at = self.take_chunk(class, &mut class.lock());
            if let Some(at) = at.or_else(|| self.take_from_new_page(class, Need::Urgent)) {
                return Some(at);
            }
            if emptied == MOST_PAGES_EMPTIED || !self.evicts() || !self.empty_a_page(counters) {
                break;
            }
        }
        if self.evicts() { self.allocate_larger(class, counters) } else { None }
    }

    /// A chunk of the next larger class that has one or can evict one: every page has something on it that is being
    /// written or read.
    #[cold]
    fn allocate_larger(&self, class: &Class<P>, counters: &Counters) -> Option<Location> {
        self.classes().skip(usize::from(class.id().0)).find_map(|larger| {
            let at = self.take_chunk(larger, &mut larger.lock());
            let at = at.or_else(|| {
                let home = self.evict_from(larger, counters)?;
                self.recycle_fully(home);
                self.take_chunk(larger, &mut larger.lock())
            })?;
            self.is_guest(at);
            Some(at)
        })
    }

    /// A free chunk of a class.
    fn take_chunk(&self, class: &Class<P>, state: &mut ClassState<P>) -> Option<Location> {
        let at = class.pop(state, self.memory())?;
        class.entered(state, self.memory(), at);
        Some(at)
    }

    /// Gives a class that is short of chunks another page, while there are some, and says whether there were. A class
    /// whose items are replaced, and no more of them come, has as few chunks left for ever, and each of its writes
    /// would ask the pool again whether it has to evict.
    fn take_page_ahead(&self, class: &Class<P>) -> bool {
        if self.pool.lacks(class.per_page()) {
            return false;
        }
        if let Some(page) = self.pool.take(&self.arena, class.per_page(), Need::Ordinary) {
            class.adopt(&mut class.lock(), self.memory(), page);
        }
        true
    }

    /// A chunk of a page that was nobody's: the first, before anybody else sees that there are some.
    fn take_from_new_page(&self, class: &Class<P>, need: Need) -> Option<Location> {
        let take = || self.pool.take(&self.arena, class.per_page(), need);
        let page = take().or_else(|| if self.collect_spare() { take() } else { None })?;
        let mut state = class.lock();
        class.adopt(&mut state, self.memory(), page);
        self.take_chunk(class, &mut state)
    }

    /// Waits until those have left who were pinned when it was called, and says whether they have.
    ///
    /// Nobody stays pinned for longer than it takes to look something up, but the kernel may take a thread off its core
    /// meanwhile. By then the reserves, which are there for this, are gone: evicting more would empty the cache without
    /// freeing a byte, and refusing would be an error that no client has earned. The caller must not be pinned.
    #[cold]
    fn wait_for_readers(&self) -> bool {
        let present = self.epochs.advance();
        let began = Instant::now();
        while self.epochs.safe_before() < present {
            match began.elapsed() {
                waited if waited > LONGEST_WAIT => return false,
                // Whoever is waited for may need this core.
                waited if waited > LONGEST_YIELDING => thread::sleep(LONGEST_YIELDING),
                _ => thread::yield_now(),
            }
        }
        true
    }

    fn reserve_of(&self, class: &Class<P>, state: &ClassState<P>) -> usize {
        (state.pages() * class.per_page() / 32).clamp(1, LARGEST_RESERVE.min(class.per_page()))
    }
}
