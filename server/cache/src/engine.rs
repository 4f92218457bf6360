//! The engine: what all sessions share, and how an item comes into memory and leaves it.
//!
//! ```text
//! allocate a chunk of a class:                      an item that leaves (replaced, deleted, evicted, expired):
//!   1. a free one                                     whoever takes its exact location out of the index
//!   2. one from limbo that nobody can be reading      stamps it and puts its chunk into its class's limbo;
//!   3. a new page, while the limit allows             nobody else does
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
//! A cache with fewer pages than sizes of chunks has no page for each of them. There a size without one uses chunks of the next
//! larger size that has: step 5 would give up a page full of items for one. Rejected: fewer sizes in such a cache, which waste
//! where all items are alike; the same in larger caches, where it would keep items of a new size in chunks up to
//! twice as large for good.
//!
//! In a full cache step 1 is what happens: each allocation that leaves fewer chunks free or in limbo than the class's
//! reserve evicts one or two ahead, so that by the time they are needed their readers have left. Step 7 comes only after both
//! reserves, for a reader whose thread has lost its core in the middle of a lookup.
//!
//! Locks are taken one at a time: a class's, or the index's buckets', or the pool's. The hash of a victim's key is
//! computed while its class is locked, which keeps the item where it is; the index is asked to remove exactly that
//! location afterwards. If the item has gone meanwhile, the location is not there, or it is another item's by now: so
//! whoever finds an item on a page, and not in the index, has it looked at again while its buckets are locked
//! ([`Engine::remove_if_still`]).

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use atomics::Registry;
use crossbeam_utils::CachePadded;
use cuckoo::{Entries, Growth, Linear, Location, Table, TooFull, Upsertion};
use parking_lot::MutexGuard;
use twox_hash::XxHash3_64;

use crate::arena::{Arena, PAGE, PageNumber};
use crate::config::{Config, CreateError, SMALLEST_LIMIT};
use crate::counters::Counters;
use crate::epoch::Epochs;
use crate::flush::Flushes;
use crate::front::{Change, Front};
use crate::item::{FURTHER_HEADER, Generation, Item, Outline, Unfinished};
use crate::policy::{Policy, Recency};
use crate::pool::{Need, Pool};
use crate::reclaim::{Extent, Reclaimer};
use crate::size_classes::{ClassId, LARGEST_CHUNK, SizeClasses};
use crate::slab::{Class, ClassState, Judge, Memory, Page, Returned};
use crate::stamp::Stamps;

/// Chunks taken out of limbo at once.
const RECYCLED_AT_ONCE: usize = 64;
/// Chunks that a class keeps free or in limbo at the most; and no more than a page has.
const LARGEST_RESERVE: usize = 64;
/// Pages that an allocation empties at the most.
const MOST_PAGES_EMPTIED: usize = 16;
/// Chunks that may wait in the limbo of a class before those who put more there see whether some are safe.
const LIMBO_LEFT_ALONE: usize = 256;
/// Times an allocation goes through its steps before it takes to the reserve.
const ROUNDS: usize = 4;
/// How long an allocation waits for readers at the most: some turns of a scheduler, on a machine with too many threads.
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// How long it does nothing but yield.
const LONGEST_YIELDING: Duration = Duration::from_micros(100);
/// Buckets that the index starts with: one piece of its budget.
const INITIAL_BUCKETS: usize = (64 << 10) / <Table>::BUCKET_BYTES;

/// Why an item was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// It is larger than an item may be.
    TooLarge,
    /// Memory is full, and nothing could be evicted, or nothing may be.
    OutOfMemory,
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StoreError::TooLarge => "the item is larger than the cache allows: raise the largest item size",
            StoreError::OutOfMemory => "the cache is full and nothing could be evicted: raise the limit",
        })
    }
}

impl std::error::Error for StoreError {}

/// Why an item leaves the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Somebody replaced or deleted it.
    Asked,
    /// It had to make way.
    Evicted,
    /// It was dead.
    Reclaimed,
}

/// What all sessions share.
pub(crate) struct Engine<P: Policy> {
    pub(crate) config: Config,
    pub(crate) arena: Arena,
    pages: Box<[Page]>,
    pub(crate) sizes: SizeClasses,
    classes: Box<[CachePadded<Class<P>>]>,
    pub(crate) table: Table,
    pub(crate) front: Option<Front>,
    pub(crate) pool: Pool,
    pub(crate) reclaimer: Reclaimer,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) flushes: Flushes,
    pub(crate) stamps: Stamps,
    pub(crate) registry: Arc<Registry<Counters>>,
    /// Seconds by the clock of whoever keeps the time.
    now: CachePadded<AtomicU32>,
    /// Bytes of values that are reserved and not yet stored: nothing can evict them.
    promised: AtomicUsize,
    hash_seed: u64,
}

impl<P: Policy> Engine<P> {
    pub(crate) fn new(config: Config, hash_seed: u64) -> Result<Self, CreateError> {
        if config.limit < SMALLEST_LIMIT {
            return Err(CreateError::LimitTooSmall { limit: config.limit });
        }
        if config.largest_item == 0 || config.largest_item > config.limit / 2 {
            return Err(CreateError::BadLargestItem { bytes: config.largest_item });
        }
        let pages = PageNumber::try_from(config.limit / PAGE).unwrap_or(PageNumber::MAX);
        let arena = Arena::reserve(pages, config.pages)?;
        let linear = Linear::up_to(config.limit / <Table>::BUCKET_BYTES);
        let bytes_per_entry =
            <Table>::BUCKET_BYTES as f64 / <Table>::BUCKET_SLOTS as f64 / linear.target_load;
        // Two pieces: one to start with, one so that the index need not wait for the first pages to pay for the next.
        let pool = Pool::new(config.limit, 2 * INITIAL_BUCKETS * <Table>::BUCKET_BYTES, bytes_per_entry);
        let growth = Growth::Linear(linear.with_budget(pool.index_budget()));
        // As XXH3's are.
        let hashes = cuckoo::Hashes::Avalanching;
        let index = cuckoo::Config::new().with_growth(growth).with_hashes(hashes).with_pages(config.pages);
        let front = match config.lookaside {
            0 => None,
            bytes => Some(Front::new(bytes, config.pages)?),
        };
        let sizes = SizeClasses::new();
        // Addresses, which may be refused, before the table of pages, which is written: 28 bytes for each.
        let table = Table::with_buckets(INITIAL_BUCKETS, &index)?;
        Ok(Engine {
            front,
            table,
            pages: (0..pages).map(|_| Page::new()).collect(),
            classes: sizes.all().map(|id| CachePadded::new(Class::new(id, sizes.chunk_size(id)))).collect(),
            reclaimer: Reclaimer::new(),
            epochs: Arc::new(Epochs::new()),
            flushes: Flushes::new(),
            stamps: Stamps::new(),
            registry: Arc::default(),
            now: CachePadded::new(AtomicU32::new(0)),
            promised: AtomicUsize::new(0),
            arena,
            sizes,
            pool,
            config,
            hash_seed,
        })
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.hash_seed, key)
    }

    #[inline]
    pub(crate) fn now(&self) -> u32 {
        // Relaxed: a clock that is read a moment late is a clock.
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn set_now(&self, second: u32) {
        self.now.store(second, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { now: self.now(), flushes: &self.flushes }
    }

    /// The entries as the index sees them, in an operation of this generation.
    #[inline]
    pub(crate) fn entries(&self, generation: Generation) -> Indexed<'_> {
        Indexed { arena: &self.arena, hash_seed: self.hash_seed, generation }
    }

    pub(crate) fn memory(&self) -> Memory<'_> {
        Memory { arena: &self.arena, pages: &self.pages, pool: &self.pool }
    }

    pub(crate) fn page(&self, number: PageNumber) -> &Page {
        &self.pages[number as usize]
    }

    pub(crate) fn classes(&self) -> impl Iterator<Item = &Class<P>> {
        self.classes.iter().map(|class| &**class)
    }

    pub(crate) fn class(&self, id: ClassId) -> &Class<P> {
        &self.classes[id.0 as usize]
    }

    pub(crate) fn class_of(&self, at: Location) -> &Class<P> {
        let (page, _) = self.arena.page_of(at);
        self.class(self.page(page).class())
    }

    /// Promises `bytes` for a value that is still to come, unless too much is promised already.
    ///
    /// At most half of the memory is, and of what is left of that a newcomer gets at most half (but the first gets what it
    /// wants): so however many values are begun and never finished, smaller ones can still be stored, and the other half
    /// of the memory keeps its items.
    pub(crate) fn promise(&self, bytes: usize) -> bool {
        let share = self.config.limit / 2;
        // Relaxed: a count that orders nothing.
        self.promised
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |promised| {
                let fits = promised == 0 || bytes <= share.saturating_sub(promised) / 2;
                fits.then_some(promised + bytes)
            })
            .is_ok()
    }

    /// Takes back a promise: it has been kept, or is not wanted any more.
    pub(crate) fn settle(&self, bytes: usize) {
        self.promised.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Starts an item: its first chunk, with header and key. The session must not be pinned: it would hold back what it
    /// waits for.
    pub(crate) fn begin(&self, outline: &Outline<'_>, counters: &Counters) -> Result<Unfinished, StoreError> {
        let bytes = outline.first_chunk() + outline.value_len - outline.first_room();
        if bytes > self.config.largest_item || outline.value_len > u32::MAX as usize {
            return Err(StoreError::TooLarge);
        }
        let class = self.sizes.class_for(outline.first_chunk()).ok_or(StoreError::TooLarge)?;
        if outline.is_chained() {
            let class = self.class(class);
            class.prefer_passed(&mut class.lock(), self.memory());
        }
        let at = self.allocate(class, counters)?;
        // SAFETY: just allocated, in a class for items of this size or of a larger one.
        Ok(unsafe { Unfinished::begin(&self.arena, at, outline, P::NEWCOMER) })
    }

    /// Appends to the value of an unfinished item, in as many further chunks as that takes. The session must not be pinned.
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

    /// Frees all chunks of an item.
    ///
    /// # Safety
    /// The caller owns the item: it was never in the index, or is safe to reuse.
    unsafe fn dismantle(&self, first: Location) {
        // SAFETY: the caller's.
        let item = unsafe { Item::at(&self.arena, first) };
        // The first chunk last: as long as a further one is not free, its owner is not reused (see `slab`).
        let further: Vec<Location> = item.further().map(|further| further.location()).collect();
        let home = self.class_of(first).id();
        for at in further {
            self.give_chunk(at, home);
        }
        self.give_chunk(first, home);
    }

    fn give_chunk(&self, at: Location, home: ClassId) {
        let class = self.class_of(at);
        let mut state = class.lock();
        if class.id() != home {
            state.comes_back();
        }
        let returned = class.push(&mut state, self.memory(), at);
        drop(state);
        self.give_page(class, returned);
    }

    /// Gives a page that has left a class to the one that it was drained for.
    pub(crate) fn give_page(&self, class: &Class<P>, returned: Returned) {
        let Returned::Emptied(page, heir) = returned else { return };
        self.pool.give(page, class.per_page());
        let Some(heir) = heir.map(|id| self.class(id)) else { return };
        // Not if there is too little for the heir's share of the index, or the reserve has been used: it asks again then.
        if let Some(page) = self.pool.take(&self.arena, heir.per_page(), Need::Ordinary) {
            heir.adopt(&mut heir.lock(), self.memory(), page);
        }
    }

    /// The class that gives chunks for one of this size: this, or in a cache with few pages another (see the module).
    fn home_of(&self, id: ClassId) -> &Class<P> {
        let class = self.class(id);
        if self.pages.len() >= self.classes.len()
            || !self.pool.lacks(class.per_page())
            || class.lock().pages() > 0
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
        let class = self.home_of(id);
        for _ in 0..ROUNDS {
            let mut state = class.lock();
            if let Some(at) = self.take_chunk(class, &mut state) {
                let short = state.available() < self.reserve_of(class, &state);
                drop(state);
                if short && self.evicts() && self.pool.lacks(class.per_page()) {
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
            class.lock().tallies.out_of_memory += 1;
            StoreError::OutOfMemory
        })
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

    /// A chunk of the next larger class that has one or can evict one: every page has something on it that is being written
    /// or read.
    #[cold]
    fn allocate_larger(&self, class: &Class<P>, counters: &Counters) -> Option<Location> {
        self.classes().skip(usize::from(class.id().0)).find_map(|larger| {
            let at = self.take_chunk(larger, &mut larger.lock());
            at.or_else(|| {
                let home = self.evict_from(larger, counters)?;
                self.recycle_fully(home);
                self.take_chunk(larger, &mut larger.lock())
            })
        })
    }

    /// A free chunk of a class.
    fn take_chunk(&self, class: &Class<P>, state: &mut ClassState<P>) -> Option<Location> {
        let at = class.pop(state, self.memory())?;
        class.entered(state, self.memory(), at);
        Some(at)
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

    /// Frees what is safe in the limbo of a class, and says whether the class has free chunks now.
    pub(crate) fn recycle(&self, class: &Class<P>, state: MutexGuard<'_, ClassState<P>>) -> bool {
        if state.limbo_len() == 0 {
            return state.free() > 0;
        }
        self.recycle_some(class, state);
        class.lock().free() > 0
    }

    /// Frees up to [`RECYCLED_AT_ONCE`] of what is safe in the limbo of a class, and says how many it has looked at.
    pub(crate) fn recycle_some(&self, class: &Class<P>, mut state: MutexGuard<'_, ClassState<P>>) -> usize {
        // What was stamped until now becomes safe as soon as those pinned now have left.
        self.epochs.advance();
        let safe = self.epochs.safe_before();
        let mut chained = Vec::new();
        let mut emptied = Vec::new();
        let mut popped = 0;
        while popped < RECYCLED_AT_ONCE {
            let Some((at, stamp)) = class.pop_limbo(&mut state, safe) else { break };
            popped += 1;
            // SAFETY: taken out of the index by whoever retired it, and safe: nobody reads it but us.
            let item = unsafe { Item::at(&self.arena, at) };
            state.leave_limbo(item.chunks_at_home());
            if !item.is_chained() {
                let returned = class.push(&mut state, self.memory(), at);
                if returned != Returned::ToItsPage {
                    emptied.push(returned);
                }
            } else if item.is_kept() {
                class.postpone(&mut state, at, stamp, item.chunks_at_home());
            } else {
                chained.push(at);
            }
        }
        drop(state);
        for returned in emptied {
            self.give_page(class, returned);
        }
        for at in chained {
            // SAFETY: as above, and nobody keeps it.
            unsafe { self.dismantle(at) };
        }
        popped
    }

    /// Evicts one item that has a chunk of this class, if there is one; says in the limbo of which class it is.
    pub(crate) fn evict_from(&self, class: &Class<P>, counters: &Counters) -> Option<&Class<P>> {
        let judge = self.judge();
        let mut state = class.lock();
        let victim = class.victim(&mut state, self.memory(), judge)?;
        let (at, hash, dead) = (victim.location(), self.hash(victim.key()), judge.is_dead(victim));
        // While the class is locked: once the item is retired, others may empty its page, and it may be nobody's.
        let home = self.class_of(at);
        drop(state);
        let why = if dead { Departure::Reclaimed } else { Departure::Evicted };
        self.remove_if_still(hash, at, why, counters).then_some(home)
    }

    /// Takes exactly this item out of the index and retires it; false if it is not there. The caller found it in the index
    /// and has been pinned since: no other item can have come to its location.
    pub(crate) fn remove(&self, hash: u64, at: Location, why: Departure, counters: &Counters) -> bool {
        self.remove_where(hash, |found| found == at, why, counters)
    }

    /// As [`remove`](Engine::remove), for a caller who found the item on its page: false also if another one has come to
    /// its location since, unless that has the same hash and is as dead as the first was.
    pub(crate) fn remove_if_still(
        &self,
        hash: u64,
        at: Location,
        why: Departure,
        counters: &Counters,
    ) -> bool {
        let is_still = |found| {
            if found != at {
                return false;
            }
            // SAFETY: in the index, which cannot lose it while the buckets are locked: it is not reused before that.
            let item = unsafe { Item::at(&self.arena, at) };
            self.hash(item.key()) == hash && (why != Departure::Reclaimed || self.judge().is_dead(item))
        };
        self.remove_where(hash, is_still, why, counters)
    }

    fn remove_where(
        &self,
        hash: u64,
        is_it: impl FnMut(Location) -> bool,
        why: Departure,
        counters: &Counters,
    ) -> bool {
        let change = self.change(hash);
        let removed = self.table.remove(hash, is_it);
        drop(change);
        if let Some(at) = removed {
            // SAFETY: removed by us, just now.
            unsafe { self.retire(at, why, counters) };
        }
        removed.is_some()
    }

    /// Puts `new` into the place of `old` in the index; false if `old` is not there, or `still` says no, which is asked while
    /// its buckets are locked. It is the caller's to retire then.
    pub(crate) fn replace_if(
        &self,
        hash: u64,
        old: Location,
        new: Location,
        still: impl FnOnce() -> bool,
    ) -> bool {
        let change = self.change(hash);
        let replaced = self.table.replace_if(hash, old, new, still);
        if let Some(change) = change.filter(|_| replaced) {
            change.put(new);
        }
        replaced
    }

    /// Puts the item of `key` at `at` into the index, in the place of the one that is there, if there is one: that is the
    /// caller's to retire.
    pub(crate) fn upsert(
        &self,
        entries: &Indexed<'_>,
        key: &[u8],
        hash: u64,
        at: Location,
    ) -> Result<Upsertion, TooFull> {
        let change = self.change(hash);
        let upsertion = self.table.insert_or_replace(hash, at, |at| entries.holds(at, key), *entries)?;
        if let Some(change) = change {
            change.put(at);
        }
        Ok(upsertion)
    }

    /// Tells the lookaside buffer, where there is one, that the index is about to lose something of this hash.
    #[inline]
    fn change(&self, hash: u64) -> Option<Change<'_>> {
        self.front.as_ref().map(|front| front.write(hash))
    }

    /// Sends an item that has left the index to limbo.
    ///
    /// # Safety
    /// The caller has taken this location out of the index: nobody else will retire it.
    pub(crate) unsafe fn retire(&self, at: Location, why: Departure, counters: &Counters) {
        // SAFETY: it is not reused before it is retired, which is ours to do.
        let item = unsafe { Item::at(&self.arena, at) };
        counters.removed(1);
        counters.bytes_removed(item.size() as u64);
        let (fetched, expired) = (item.is_fetched(), item.expiry().has_passed(self.now()));
        let chunks = item.chunks_at_home();
        let class = self.class_of(at);
        let stamp = self.epochs.stamp();
        let mut state = class.lock();
        let tallies = &mut state.tallies;
        match why {
            Departure::Asked => {}
            Departure::Evicted => {
                tallies.evicted += 1;
                tallies.evicted_unfetched += u64::from(!fetched);
            }
            Departure::Reclaimed => {
                tallies.reclaimed += 1;
                tallies.expired_unfetched += u64::from(expired && !fetched);
            }
        }
        class.retire(&mut state, self.memory(), at, stamp, chunks);
        // Where more leaves than comes, nobody else would: and memory in limbo serves no other class.
        let waiting = state.limbo_len();
        if waiting > LIMBO_LEFT_ALONE && waiting.is_multiple_of(RECYCLED_AT_ONCE) {
            self.recycle_some(class, state);
        }
    }

    /// Makes room in the index for a key of this hash, by evicting one of those in its two buckets: the first that has not
    /// been used lately, or else the first. The caller must be pinned.
    pub(crate) fn evict_neighbour(&self, hash: u64, counters: &Counters) -> bool {
        let mut choice: Option<(u64, Location, Recency)> = None;
        for at in self.table.neighbours(hash) {
            // SAFETY: found in the index while pinned.
            let item = unsafe { Item::at(&self.arena, at) };
            if choice.is_none_or(|(_, _, recency)| item.recency() < recency) {
                choice = Some((self.hash(item.key()), at, item.recency()));
            }
        }
        choice.is_some_and(|(hash, at, _)| self.remove(hash, at, Departure::Evicted, counters))
    }

    /// Frees all that is in the limbo of a class now, as far as it is safe and nobody keeps it.
    pub(crate) fn recycle_fully(&self, class: &Class<P>) {
        // Counted beforehand: what is kept comes back to the end of the list.
        let mut left = class.lock().limbo_len();
        while left > 0 {
            match self.recycle_some(class, class.lock()) {
                0 => return,
                popped => left = left.saturating_sub(popped),
            }
        }
    }
}

/// The entries as the index sees them.
#[derive(Clone, Copy)]
pub(crate) struct Indexed<'a> {
    arena: &'a Arena,
    hash_seed: u64,
    generation: Generation,
}

impl<'a> Indexed<'a> {
    /// The item at a location that is in the index, or was when the caller had pinned.
    #[inline]
    fn item(&self, location: Location) -> Item<'a> {
        // SAFETY: the index asks for what it holds, under the lock of a bucket that the location is in, so that it cannot leave
        // the index and be retired meanwhile; or, in a lookup, for what it found, and then the caller of the lookup is
        // pinned. The lookaside buffer asks for what it found, for a caller who is pinned (see `front`).
        unsafe { Item::at(self.arena, location) }
    }

    /// Whether the item there is of this key and generation.
    #[inline]
    pub(crate) fn holds(&self, location: Location, key: &[u8]) -> bool {
        let item = self.item(location);
        item.key() == key && item.generation() == self.generation
    }

    /// Whether the item there has this key, whichever generation it is of.
    pub(crate) fn has_key(&self, location: Location, key: &[u8]) -> bool {
        self.item(location).key() == key
    }
}

impl Entries for Indexed<'_> {
    #[inline]
    fn hash(&self, location: Location) -> u64 {
        XxHash3_64::oneshot_with_seed(self.hash_seed, self.item(location).key())
    }

    #[inline]
    fn prefetch(&self, location: Location) {
        let start = self.arena.start(location);
        pages::prefetch(start);
        // Most small items end in the next line.
        pages::prefetch(start.wrapping_add(64));
    }
}
