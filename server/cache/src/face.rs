//! The cache as a program uses it: one value that all threads share, with nothing to drive.
//!
//! Each thread has a session of its own, made when it first comes; a thread of the cache's keeps the time and the
//! house. Closures are called while the session is pinned: one that comes back to the cache gets another session for
//! that.
//!
//! Rejected: *the `thread_local` crate* for the sessions: it panics once its own destructor has run on the thread, and
//! a destructor that panics there ends the process.

use std::cell::RefCell;
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use atomics::reclaim::Collector;

use crate::allocation::StoreError;
use crate::cache::Cache as Engine;
use crate::config::{Config, CreateError, Eviction};
use crate::housekeeping::{Housekeeper, Todo};
use crate::item::{Expiry, MAX_KEY_LEN};
use crate::publication::{Stored, Verb};
use crate::session::{Hit, Session};
use crate::store::{Entry, Updated};

/// How long housekeeping rests when nothing is to be done: by as much more an item may outlive its time.
const REST: Duration = Duration::from_millis(100);

/// A cache of small items: see [the crate](crate).
///
/// A clone is another handle on the same cache, which ends with the last of them.
///
/// Keys have 1 to [`MAX_KEY_LEN`] bytes; none other is ever found. What is said of time takes a [`Duration`] or `None`,
/// for ever. The cache counts whole seconds: an item lives for the time that it was given, and then for up to a second
/// and a little.
#[derive(Clone)]
pub struct Cache {
    shared: Arc<Shared>,
}

/// What all handles share.
struct Shared {
    engine: Engine,
    /// Of each thread one, also of one whose thread-locals are being destroyed. Nothing is retired here.
    sessions: Collector<RefCell<Session>>,
    clock: Clock,
    stop: Arc<AtomicBool>,
    keeper: Option<JoinHandle<()>>,
}

/// Seconds since the cache was made, from 1 on.
#[derive(Debug, Clone, Copy)]
struct Clock {
    started: Instant,
}

impl Clock {
    fn now(self) -> u32 {
        u32::try_from(self.started.elapsed().as_secs() + 1).unwrap_or(u32::MAX)
    }

    /// The second from which on that much time has passed for sure.
    fn after(self, time: Option<Duration>) -> Expiry {
        let Some(time) = time else { return Expiry::Never };
        let end = self.started.elapsed().saturating_add(time);
        let second = end.as_secs().saturating_add(u64::from(end.subsec_nanos() > 0)).saturating_add(1);
        u32::try_from(second).map_or(Expiry::Never, Expiry::At)
    }
}

/// What a cache is made with: made by [`Cache::builder`].
#[derive(Debug, Clone)]
#[must_use = "it makes a cache only when it is told to build one"]
pub struct Builder {
    config: Config,
}

impl Builder {
    /// Bytes that one item, key and value and a few more, may take: at most half of the limit. By default 1 MiB, or
    /// half of the limit if that is less.
    pub fn largest_item(mut self, bytes: usize) -> Self {
        self.config.largest_item = bytes;
        self
    }

    /// Whether items make way for others when memory is full, as they do by default. Otherwise nothing more is stored
    /// then.
    pub fn evict(mut self, evict: bool) -> Self {
        self.config.eviction = if evict { Eviction::ByPolicy } else { Eviction::Never };
        self
    }

    /// Bytes of a table of the hottest items before the index, beside the limit; by default there is none. It pays
    /// where few keys, one for every eight or nine bytes of the table, get most of the lookups.
    pub fn lookaside(mut self, bytes: usize) -> Self {
        self.config.lookaside = bytes;
        self
    }

    /// Makes the cache.
    ///
    /// # Errors
    /// [`CreateError`]: sizes that make no sense, or memory or a thread refused.
    pub fn build(self) -> Result<Cache, CreateError> {
        let engine: Engine = Engine::new(self.config)?;
        let clock = Clock { started: Instant::now() };
        engine.set_time(clock.now());
        let stop = Arc::new(AtomicBool::new(false));
        let (housekeeper, stopped, kept) = (engine.housekeeper(), stop.clone(), engine.clone());
        let keeper = thread::Builder::new()
            .name("cache-keeper".into())
            .spawn(move || keep(&kept, housekeeper, clock, &stopped))
            .map_err(|error| CreateError::Thread(error.kind()))?;
        let making = engine.clone();
        let sessions = Collector::with_locals(move || RefCell::new(making.session()));
        let shared = Shared { engine, sessions, clock, stop, keeper: Some(keeper) };
        Ok(Cache { shared: Arc::new(shared) })
    }
}

/// Keeps the time and the house until the cache ends.
fn keep(engine: &Engine, mut housekeeper: Housekeeper, clock: Clock, stopped: &AtomicBool) {
    let mut prefaulter = engine.prefaulter();
    prefaulter.is_called();
    // Relaxed: whoever stops it wakes it afterwards.
    while !stopped.load(Ordering::Relaxed) {
        engine.set_time(clock.now());
        prefaulter.step();
        match housekeeper.step() {
            Todo::Rest => thread::park_timeout(REST),
            Todo::More => thread::yield_now(),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            // It has panicked if that fails, and said so.
            let _ = keeper.join();
        }
    }
}

/// What became of a [`Cache::compare_and_swap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Swapped {
    /// The value is in the cache.
    Stored,
    /// The key has been stored since: its value stays.
    Changed,
    /// The key has no item.
    Missing,
}

impl Cache {
    /// A cache of so many bytes, at least [`SMALLEST_LIMIT`](crate::SMALLEST_LIMIT): its items and its index together.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn with_limit(bytes: usize) -> Result<Cache, CreateError> {
        Cache::builder(bytes).build()
    }

    /// To make a cache of so many bytes with other terms than the usual ones.
    ///
    /// ```
    /// use lookaside_cache::{Cache, StoreError};
    ///
    /// let cache = Cache::builder(4 << 20).largest_item(1000).evict(false).build()?;
    /// assert_eq!(cache.set(b"key", &[0; 1000], None), Err(StoreError::TooLarge));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(limit: usize) -> Builder {
        Builder { config: Config::with_limit(limit) }
    }

    /// The value of `key`, copied.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.with(|session| session.pin().get(key).map(|hit| hit.to_vec()))
    }

    /// Appends the value of `key` to a buffer, and says whether there is one.
    ///
    /// ```
    /// # let cache = lookaside_cache::Cache::with_limit(1 << 20)?;
    /// cache.set(b"name", b"world", None)?;
    /// let mut page = b"hello, ".to_vec();
    /// assert!(cache.get_into(b"name", &mut page));
    /// assert_eq!(page, b"hello, world");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> bool {
        self.with(|session| match session.pin().get(key) {
            Some(hit) => {
                hit.pieces().for_each(|piece| buffer.extend_from_slice(piece));
                true
            }
            None => false,
        })
    }

    /// The values of many keys, in their order: faster than one after the other, for they are waited for together.
    #[must_use]
    pub fn get_many(&self, keys: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
        self.with(|session| {
            let mut values = Vec::with_capacity(keys.len());
            session.pin().get_many(keys, |_, hit| {
                values.push(hit.map(|hit| hit.to_vec()));
                std::ops::ControlFlow::Continue(())
            });
            values
        })
    }

    /// The value of `key`, and what [`Cache::compare_and_swap`] tells by whether it has been stored since.
    ///
    /// ```
    /// use lookaside_cache::Swapped;
    ///
    /// # let cache = lookaside_cache::Cache::with_limit(1 << 20)?;
    /// cache.set(b"key", b"one", None)?;
    /// let (_, version) = cache.get_with_version(b"key").expect("just stored");
    /// assert_eq!(cache.compare_and_swap(b"key", version, b"two", None)?, Swapped::Stored);
    /// assert_eq!(cache.compare_and_swap(b"key", version, b"three", None)?, Swapped::Changed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn get_with_version(&self, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        self.with(|session| session.pin().get(key).map(|hit| (hit.to_vec(), hit.cas())))
    }

    /// Whether `key` has a value. That counts as no use of it.
    #[must_use]
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.with(|session| session.pin().peek(key).is_some())
    }

    /// Stores a value, in the place of the one that is there.
    ///
    /// # Errors
    /// [`StoreError`]: the key has no value then, rather than an old one.
    pub fn set(&self, key: &[u8], value: &[u8], time: impl Into<Option<Duration>>) -> Result<(), StoreError> {
        self.store(Verb::Set, key, value, time.into()).map(drop)
    }

    /// Stores a value if the key has none, and says whether it had none.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn add(
        &self,
        key: &[u8],
        value: &[u8],
        time: impl Into<Option<Duration>>,
    ) -> Result<bool, StoreError> {
        self.store(Verb::Add, key, value, time.into()).map(was_stored)
    }

    /// Stores a value if the key has one, and says whether it had.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn replace(
        &self,
        key: &[u8],
        value: &[u8],
        time: impl Into<Option<Duration>>,
    ) -> Result<bool, StoreError> {
        self.store(Verb::Replace, key, value, time.into()).map(was_stored)
    }

    /// Adds to the end of the value that is there, and says whether there is one. Its time stays.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn append(&self, key: &[u8], piece: &[u8]) -> Result<bool, StoreError> {
        self.store(Verb::Append, key, piece, None).map(was_stored)
    }

    /// Adds to the front of the value that is there, and says whether there is one. Its time stays.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn prepend(&self, key: &[u8], piece: &[u8]) -> Result<bool, StoreError> {
        self.store(Verb::Prepend, key, piece, None).map(was_stored)
    }

    /// Stores a value if the key has not been stored since [`Cache::get_with_version`] said this version.
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        version: u64,
        value: &[u8],
        time: impl Into<Option<Duration>>,
    ) -> Result<Swapped, StoreError> {
        let stored = self.store(Verb::CompareAndSwap(version), key, value, time.into())?;
        Ok(match stored {
            Stored::Stored(_) => Swapped::Stored,
            Stored::Exists => Swapped::Changed,
            Stored::NotStored | Stored::NotFound => Swapped::Missing,
        })
    }

    /// Makes a new value of the one that is there, and says whether that happened: there is one, and `make` did not say
    /// `None`. Its time stays. `make` is called again if others change the value meanwhile.
    ///
    /// ```
    /// # let cache = lookaside_cache::Cache::with_limit(1 << 20)?;
    /// cache.set(b"n", &7u64.to_le_bytes(), None)?;
    /// let increment = |old: &[u8]| Some((u64::from_le_bytes(old.try_into().ok()?) + 1).to_le_bytes().to_vec());
    /// assert!(cache.update(b"n", increment)?);
    /// assert_eq!(cache.get(b"n"), Some(8u64.to_le_bytes().to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`StoreError`]: nothing has changed then.
    pub fn update(
        &self,
        key: &[u8],
        mut make: impl FnMut(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let mut remake = |hit: &Hit<'_>, new: &mut Vec<u8>| {
            let made = match hit.contiguous() {
                Some(old) => make(old),
                None => make(&hit.to_vec()),
            };
            *new = made.ok_or(())?;
            Ok::<(), ()>(())
        };
        let outcome = self.with(|session| session.update(key, &mut remake))?;
        Ok(matches!(outcome, Updated::Updated(_)))
    }

    /// Gives the value of `key` another time from now on, and says whether there is one.
    ///
    /// # Errors
    /// [`StoreError::OutOfMemory`]: what was to live for ever is copied to get a time, and there was no memory for it.
    pub fn touch(&self, key: &[u8], time: impl Into<Option<Duration>>) -> Result<bool, StoreError> {
        let expiry = self.shared.clock.after(time.into());
        self.with(|session| session.touch(key, expiry))
    }

    /// Deletes the value of `key`, and says whether there was one.
    pub fn delete(&self, key: &[u8]) -> bool {
        self.with(|session| session.delete(key))
    }

    /// Deletes all values: none is found any more. They go one after the other, and until then [`Cache::len`] counts
    /// them. It may wait for those who use the cache at this moment, so a closure that the cache has called must not
    /// call it.
    pub fn clear(&self) {
        self.shared.engine.flush();
    }

    /// Values in the cache; some that have expired or were [cleared](Cache::clear) and that nobody has noticed yet are
    /// among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.engine.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn store(
        &self,
        verb: Verb,
        key: &[u8],
        value: &[u8],
        time: Option<Duration>,
    ) -> Result<Stored, StoreError> {
        if !(1..=MAX_KEY_LEN).contains(&key.len()) {
            return Err(StoreError::BadKey);
        }
        let entry = Entry::new(key).with_expiry(self.shared.clock.after(time));
        self.with(|session| session.store(verb, entry, value))
    }

    /// Does something with this thread's session.
    fn with<T>(&self, work: impl FnOnce(&mut Session) -> T) -> T {
        let Shared { engine, sessions, .. } = &*self.shared;
        let mine = sessions.pin();
        match mine.local().try_borrow_mut() {
            Ok(mut session) => work(&mut session),
            Err(_) => work(&mut engine.session()),
        }
    }
}

// A closure that panics leaves the cache whole.
impl UnwindSafe for Cache {}
impl RefUnwindSafe for Cache {}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("len", &self.len()).finish_non_exhaustive()
    }
}

fn was_stored(stored: Stored) -> bool {
    matches!(stored, Stored::Stored(_))
}
