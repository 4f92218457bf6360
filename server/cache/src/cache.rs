//! The cache: made once, shared by all threads, entered through sessions.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::class_report::ClassReport;
use crate::clock::Clock;
use crate::config::{Config, CreateError};
use crate::counters::Counts;
use crate::front::Front;
use crate::housekeeping::Housekeeper;
use crate::policy::Policy;
use crate::prefault::Prefaulter;
use crate::resize::ResizeError;
use crate::session::Session;
use crate::shared::Engine;
use crate::store::Entry;
use crate::told::Evicted;
use crate::walk::Walk;

/// A cache of items, by key: see the crate.
///
/// ```
/// use lookaside_cache::engine::{Cache, Config, Entry, Stored, Verb};
///
/// let cache: Cache = Cache::new(Config::with_limit(64 << 20))?;
/// let mut session = cache.session();
/// let stored = session.store(Verb::Set, Entry::new(b"answer"), b"42")?;
/// assert!(matches!(stored, Stored::Stored(_)));
/// assert_eq!(session.pin().get(b"answer").unwrap().to_vec(), b"42");
/// assert!(session.delete(b"answer"));
/// assert!(session.pin().get(b"answer").is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Cache<P: Policy = Clock> {
    pub(crate) engine: Arc<Engine<P>>,
}

impl<P: Policy> Clone for Cache<P> {
    /// Another handle on the same cache.
    fn clone(&self) -> Self {
        Cache { engine: self.engine.clone() }
    }
}

/// Where the memory of a cache is.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MemoryReport {
    /// Bytes that items and index may take.
    pub limit: usize,
    /// Bytes that the limit can be raised to.
    pub most: usize,
    /// Bytes that have been taken: pages, and what the index may grow to with them. They may be more than the limit for
    /// a while after that was lowered ([`Cache::resize`]).
    pub taken: usize,
    /// Bytes of the index.
    pub index: usize,
    /// Buckets of the index.
    pub index_buckets: usize,
    /// Share of the index's slots in use.
    pub index_load: f64,
    /// Pages of [`crate::engine::PAGE`] bytes that belong to no class.
    pub pages_free: usize,
    /// Pages that have moved from one class to another.
    pub pages_moved: usize,
    /// Bytes of the lookaside buffer's table, which are beside the limit; 0 without one.
    pub lookaside: usize,
}

impl<P: Policy> Cache<P> {
    /// A cache, empty, whose clock stands at zero until [`Cache::set_time`].
    ///
    /// # Errors
    /// [`CreateError`]: sizes that make no sense, or memory refused.
    pub fn new(config: Config) -> Result<Self, CreateError> {
        // Seeded anew in every process, so that nobody can know beforehand which keys collide.
        let seed = RandomState::new().hash_one(std::process::id());
        Ok(Cache { engine: Arc::new(Engine::new(config, seed)?) })
    }

    /// A way in for one thread.
    #[must_use]
    pub fn session(&self) -> Session<P> {
        Session::new(self.engine.clone())
    }

    /// A housekeeper for this cache: one is enough, several do no harm.
    #[must_use]
    pub fn housekeeper(&self) -> Housekeeper<P> {
        Housekeeper::new(self.engine.clone())
    }

    /// Who has memory ready before it is needed: optional, and for a thread of the lowest priority.
    #[must_use]
    pub fn prefaulter(&self) -> Prefaulter<P> {
        Prefaulter::new(self.engine.clone())
    }

    /// Tells the cache what time it is, in seconds by a clock of the caller's: whoever owns the cache does so once a
    /// second.
    ///
    /// Where the clock begins is the caller's to say. Unix time will do until 2106, when it is more than fits here; a
    /// clock that counts from the cache's making, from 1 on, lasts 136 years.
    pub fn set_time(&self, second: u32) {
        self.engine.set_now(second);
    }

    /// What time the cache thinks it is.
    #[must_use]
    pub fn time(&self) -> u32 {
        self.engine.now()
    }

    /// A walk over all items, or over those that are counted in the class of this number.
    #[must_use]
    pub fn walk(&self, class: Option<u8>) -> Walk<P> {
        Walk::new(self.engine.clone(), class)
    }

    /// Makes everything stored so far invisible, at once. Its memory is swept by housekeeping.
    ///
    /// The fourth flush that comes before the first one is swept waits for the sweep, and that for all who were pinned:
    /// who flushes must not be. [`Housekeeper::try_flush`] does not wait.
    pub fn flush(&self) {
        self.flush_at(None);
        self.housekeeper().flush();
    }

    /// Lets everything that is stored up to the end of this second be invisible from its beginning on, in place of a
    /// flush that was to take place; `None` calls that off.
    ///
    /// [Housekeeping](Housekeeper::flush_due) carries it out; a second that has passed stands for now.
    pub fn flush_at(&self, second: Option<u32>) {
        self.engine.flushes.schedule(second, || self.engine.epochs.stamp());
    }

    /// Has `tell` called for each item that makes way for others while [`Cache::tell_evictions`] says so: by whoever
    /// needs its room, who waits for it meanwhile. Only the first who asks is told.
    pub fn when_evicted(&self, tell: impl Fn(&Evicted<'_>) + Send + Sync + 'static) {
        self.engine.told.set(Box::new(tell));
    }

    /// Whether evictions are told.
    pub fn tell_evictions(&self, on: bool) {
        self.engine.told.switch(on);
    }

    /// Items in the cache; dead ones that nobody has noticed yet among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.table.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What has happened since the cache was made.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.registry.sums()
    }

    /// The slab class of this number, used or not; `None` where the numbers end.
    #[must_use]
    pub fn class(&self, number: usize) -> Option<ClassReport> {
        self.engine.classes().nth(number).map(|class| class.report(self.engine.memory()))
    }

    /// Every slab class that has pages or had, with its number.
    #[must_use]
    pub fn classes(&self) -> Vec<(usize, ClassReport)> {
        let reports = self.engine.classes().map(|class| class.report(self.engine.memory()));
        reports
            .enumerate()
            .filter(|(_, report)| {
                report.pages > 0 || report.departures.evicted + report.departures.reclaimed > 0
            })
            .collect()
    }

    /// Seconds since that item of a slab class was used, or stored, that was not used for the longest time; 0 if there
    /// is none.
    ///
    /// A few pages are looked at to answer this. Where many items were used in no order since it was asked last, it is
    /// the oldest of these pages'.
    #[must_use]
    pub fn oldest_age(&self, class: usize) -> u32 {
        self.engine.classes().nth(class).and_then(|class| self.engine.oldest_age(class)).unwrap_or(0)
    }

    /// Where the memory is.
    #[must_use]
    pub fn memory(&self) -> MemoryReport {
        MemoryReport {
            limit: self.engine.pool.limit(),
            most: self.engine.most,
            taken: self.engine.pool.taken(),
            index: self.engine.table.bytes(),
            index_buckets: self.engine.table.buckets(),
            index_load: self.engine.table.load_factor(),
            pages_free: self.engine.pool.available(),
            pages_moved: self.engine.pool.returned(),
            lookaside: self.engine.front.as_ref().map_or(0, Front::bytes),
        }
    }

    /// Gives the cache another limit, while it is in use. More holds at once. Of what is too much housekeeping gives
    /// memory back to the machine, oldest items first: a gigabyte of small items takes seconds. A cache that does not
    /// evict gives back what holds nothing alive.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, ResizeError};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(64 << 20))?;
    /// let most = cache.memory().most;
    /// assert!(most >= 512 << 20);
    /// cache.resize(256 << 20)?;
    /// assert_eq!(cache.memory().limit, 256 << 20);
    /// assert_eq!(cache.resize(most + 1), Err(ResizeError::TooLarge { limit: most + 1, most }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ResizeError`]: the limit is as it was.
    pub fn resize(&self, limit: usize) -> Result<(), ResizeError> {
        self.engine.resize(limit)
    }

    /// The number of the slab class, as in [`Cache::classes`], that an item with this value is counted in.
    #[must_use]
    pub fn class_of(&self, entry: &Entry<'_>, value_len: usize) -> u8 {
        self.engine.sizes.class_of_item(entry.outline(value_len).first_chunk()).0
    }

    /// The terms it was made on.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.engine.config
    }

    /// The kind of page that the items were really given.
    #[must_use]
    pub fn page_kind(&self) -> pages::PageKind {
        self.engine.arena.region().obtained()
    }

    #[cfg(test)]
    pub(crate) fn engine(&self) -> &Arc<Engine<P>> {
        &self.engine
    }
}
