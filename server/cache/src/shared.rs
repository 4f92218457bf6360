//! What all sessions share.
//!
//! What is done with it is said elsewhere: how an item gets memory ([`crate::allocation`]), where that comes from when
//! no page is nobody's ([`crate::reclaim`]), how an item leaves ([`crate::departure`]).
//!
//! Locks are taken one at a time: a class's, or the index's buckets', or the pool's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use atomics::Registry;
use crossbeam_utils::CachePadded;
use cuckoo::{Growth, Linear, Location, Table};
use parking_lot::Mutex;

use pages::{Array, PageKind};

use crate::arena::{Arena, PAGE, PageNumber};
use crate::config::{Config, CreateError, Eviction, SMALLEST_LIMIT};
use crate::counters::Counters;
use crate::epoch::{Epoch, Epochs};
use crate::flush::Flushes;
use crate::front::Front;
use crate::index::{self, Indexed};
use crate::item::Generation;
use crate::judge::Judge;
use crate::page::{Memory, Page};
use crate::policy::Policy;
use crate::pool::Pool;
use crate::search::Search;
use crate::size_classes::{ClassId, SizeClasses};
use crate::slab::Class;
use crate::stamp::Stamps;
use crate::told::Told;

/// Buckets that the index starts with, unless it is asked for more: one piece of its budget.
const INITIAL_BUCKETS: usize = (64 << 10) / <Table>::BUCKET_BYTES;
/// The share of the limit that it starts with at the most is one part in so many.
const MOST_OF_THE_LIMIT: usize = 8;

/// Buckets beyond the usual ones that the index is to start with: whole pieces.
fn more_buckets(config: &Config, bytes_per_entry: f64) -> usize {
    let bytes = (config.index_items as f64 * bytes_per_entry) as usize;
    let bytes = bytes.min(config.limit / MOST_OF_THE_LIMIT);
    (bytes / <Table>::BUCKET_BYTES / INITIAL_BUCKETS).saturating_sub(1) * INITIAL_BUCKETS
}

/// A cache in use may get a limit of so many times the one that it was made with, and of so many bytes if that is more:
/// addresses are claimed for that. They cost nothing before they are touched.
const GROWTH: usize = 8;
const LEAST_REACH: usize = 1 << 30;

/// What all sessions share.
pub(crate) struct Engine<P: Policy> {
    pub(crate) config: Config,
    pub(crate) arena: Arena,
    pages: Array<Page>,
    pub(crate) sizes: SizeClasses,
    classes: Box<[CachePadded<Class<P>>]>,
    pub(crate) table: Table,
    pub(crate) front: Option<Front>,
    pub(crate) pool: Pool,
    pub(crate) search: Search,
    /// What the epoch must reach before another page is emptied.
    pub(crate) emptying: Mutex<Option<Epoch>>,
    pub(crate) epochs: Arc<Epochs>,
    pub(crate) flushes: Flushes,
    pub(crate) stamps: Stamps,
    pub(crate) registry: Arc<Registry<Counters>>,
    pub(crate) told: Told,
    /// Seconds by the clock of whoever keeps the time.
    now: CachePadded<AtomicU32>,
    /// Bytes of values that are reserved and not yet stored: nothing can evict them.
    promised: AtomicUsize,
    hash_seed: u64,
    /// Bytes that the limit can be raised to.
    pub(crate) most: usize,
}

/// Where items lie, what is known of their pages, and the index.
struct Space {
    arena: Arena,
    pages: Array<Page>,
    table: Table,
    /// Bytes of items and index that there are addresses for.
    most: usize,
}

impl Space {
    /// For as much as the limit may be raised to later, or for the limit alone, where the process may not have so many
    /// addresses.
    fn claim(config: &Config, pool: &Pool, buckets: usize) -> Result<Space, CreateError> {
        // Pages of a pool of the machine's are promised at once: not for what may never be.
        let pooled = matches!(config.pages, PageKind::Huge2M | PageKind::Huge1G);
        let roomy = config.limit.saturating_mul(GROWTH).max(LEAST_REACH);
        if !pooled && let Ok(space) = Self::of(roomy, config, pool, buckets) {
            return Ok(space);
        }
        Self::of(config.limit, config, pool, buckets)
    }

    fn of(most: usize, config: &Config, pool: &Pool, buckets: usize) -> Result<Space, CreateError> {
        let pages = PageNumber::try_from(most / PAGE).unwrap_or(PageNumber::MAX);
        let arena = Arena::reserve(pages, config.pages)?;
        let linear = Linear::up_to(most / <Table>::BUCKET_BYTES);
        let growth = Growth::Linear(linear.with_budget(pool.index_budget()));
        // As XXH3's are.
        let hashes = cuckoo::Hashes::Avalanching;
        let index = cuckoo::Config::new().with_growth(growth).with_hashes(hashes).with_pages(config.pages);
        let table = Table::with_buckets(buckets, &index)?;
        Ok(Space { arena, pages: Array::reserve(pages as usize, PageKind::Base)?, table, most })
    }
}

impl<P: Policy> Engine<P> {
    pub(crate) fn new(config: Config, hash_seed: u64) -> Result<Self, CreateError> {
        if config.limit < SMALLEST_LIMIT {
            return Err(CreateError::LimitTooSmall { limit: config.limit });
        }
        if config.largest_item == 0 || config.largest_item > config.limit / 2 {
            return Err(CreateError::BadLargestItem { bytes: config.largest_item });
        }
        let load = Linear::default().target_load;
        let bytes_per_entry = <Table>::BUCKET_BYTES as f64 / <Table>::BUCKET_SLOTS as f64 / load;
        // Two pieces: one to start with, one so that the index need not wait for the first pages to pay for the next.
        let pool = Pool::new(config.limit, 2 * INITIAL_BUCKETS * <Table>::BUCKET_BYTES, bytes_per_entry);
        let more = more_buckets(&config, bytes_per_entry);
        let advanced = pool.advance_index(more * <Table>::BUCKET_BYTES);
        let buckets = INITIAL_BUCKETS + if advanced { more } else { 0 };
        let Space { arena, pages, table, most } = Space::claim(&config, &pool, buckets)?;
        let front = match config.lookaside {
            0 => None,
            bytes => Some(Front::new(bytes, config.pages)?),
        };
        let sizes = SizeClasses::new();
        Ok(Engine {
            front,
            table,
            pages,
            classes: sizes.all().map(|id| CachePadded::new(Class::new(id, sizes.chunk_size(id)))).collect(),
            search: Search::new(),
            emptying: Mutex::new(None),
            epochs: Arc::new(Epochs::new()),
            flushes: Flushes::new(),
            stamps: Stamps::new(),
            registry: Arc::default(),
            told: Told::default(),
            now: CachePadded::new(AtomicU32::new(0)),
            promised: AtomicUsize::new(0),
            arena,
            most,
            sizes,
            pool,
            config,
            hash_seed,
        })
    }

    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        index::hash(self.hash_seed, key)
    }

    #[inline]
    pub(crate) fn now(&self) -> u32 {
        // Relaxed: a clock that is read a moment late is a clock.
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn set_now(&self, second: u32) {
        self.now.store(second, Ordering::Relaxed);
        self.pool.set_second(second);
    }

    #[inline]
    pub(crate) fn judge(&self) -> Judge<'_> {
        Judge { now: self.now(), flushes: &self.flushes }
    }

    /// The entries as the index sees them, in an operation of this generation.
    #[inline]
    pub(crate) fn entries(&self, generation: Generation) -> Indexed<'_> {
        Indexed::new(&self.arena, self.hash_seed, generation)
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

    pub(crate) fn padded_classes(&self) -> &[CachePadded<Class<P>>] {
        &self.classes
    }

    /// What is known of all pages.
    pub(crate) fn page_records(&self) -> &Array<Page> {
        &self.pages
    }

    pub(crate) fn has_a_page_for_each_class(&self) -> bool {
        self.pool.limit() / PAGE >= self.classes.len()
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
    /// At most half of the memory is, and of what is left of that a newcomer gets at most half (but the first gets what
    /// it wants): so however many values are begun and never finished, smaller ones can still be stored, and the other
    /// half of the memory keeps its items.
    pub(crate) fn promise(&self, bytes: usize) -> bool {
        let share = self.pool.limit() / 2;
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

    /// Whether the cache may evict.
    pub(crate) fn evicts(&self) -> bool {
        self.config.eviction == Eviction::ByPolicy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::clock::Clock;
    use crate::publication::Verb;
    use crate::store::Entry;

    fn with_index_for(items: usize) -> Cache<Clock> {
        Cache::new(Config { index_items: items, ..Config::with_limit(8 << 20) }).expect("it fits")
    }

    #[test]
    fn an_index_starts_as_large_as_it_is_asked_for() {
        let least = with_index_for(0).memory().index_buckets;
        assert_eq!((least, with_index_for(100).memory().index_buckets), (INITIAL_BUCKETS, INITIAL_BUCKETS));
        let memory = with_index_for(60_000).memory();
        let slots = memory.index_buckets * <Table>::BUCKET_SLOTS;
        assert!((50_000..80_000).contains(&slots), "{slots}");
        let most = with_index_for(usize::MAX).memory();
        assert_eq!(most.index, (8 << 20) / MOST_OF_THE_LIMIT);
    }

    /// What is not used of it goes to items: there are as many as without it, and the limit holds.
    #[test]
    fn an_index_that_was_too_large_gives_way_to_items() {
        let [plain, large] = [0, usize::MAX].map(|items| {
            let cache = with_index_for(items);
            let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
            for number in 0..40_000_u32 {
                let key = number.to_be_bytes();
                session.store(Verb::Set, Entry::new(&key), &[7; 1000]).expect("it evicts");
                housekeeper.step();
            }
            let memory = cache.memory();
            assert!(memory.taken <= 8 << 20, "{memory:?}");
            cache.len()
        });
        assert!(large * 100 >= plain * 98, "{large} of {plain} items");
    }
}
