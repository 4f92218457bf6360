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

/// Buckets that the index starts with: one piece of its budget.
const INITIAL_BUCKETS: usize = (64 << 10) / <Table>::BUCKET_BYTES;

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
    fn claim(config: &Config, pool: &Pool) -> Result<Space, CreateError> {
        // Pages of a pool of the machine's are promised at once: not for what may never be.
        let pooled = matches!(config.pages, PageKind::Huge2M | PageKind::Huge1G);
        let roomy = config.limit.saturating_mul(GROWTH).max(LEAST_REACH);
        if !pooled && let Ok(space) = Self::of(roomy, config, pool) {
            return Ok(space);
        }
        Self::of(config.limit, config, pool)
    }

    fn of(most: usize, config: &Config, pool: &Pool) -> Result<Space, CreateError> {
        let pages = PageNumber::try_from(most / PAGE).unwrap_or(PageNumber::MAX);
        let arena = Arena::reserve(pages, config.pages)?;
        let linear = Linear::up_to(most / <Table>::BUCKET_BYTES);
        let growth = Growth::Linear(linear.with_budget(pool.index_budget()));
        // As XXH3's are.
        let hashes = cuckoo::Hashes::Avalanching;
        let index = cuckoo::Config::new().with_growth(growth).with_hashes(hashes).with_pages(config.pages);
        let table = Table::with_buckets(INITIAL_BUCKETS, &index)?;
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
        let Space { arena, pages, table, most } = Space::claim(&config, &pool)?;
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
