//! Which memory of a cache is what, for those who watch from outside what an operation writes: `ci/counts` counts the
//! cache lines.
//!
//! What is named here is told by addresses, and nothing is read. The lists that belong to the slab classes lie on the
//! heap and are not named: who watches takes memory without a name for shared, so that what is forgotten here is
//! counted against the cache, not for it.

use std::ops::Range;

use crate::cache::Cache;
use crate::policy::Policy;
use crate::session::Session;

/// A name, and the addresses of what has it.
pub type Region = (&'static str, Range<usize>);

fn of<T>(name: &'static str, things: &[T]) -> Region {
    let addresses = things.as_ptr_range();
    (name, addresses.start.addr()..addresses.end.addr())
}

fn mapped(name: &'static str, region: &pages::Region) -> Region {
    let start = region.as_ptr().addr();
    (name, start..start + region.reach())
}

impl<P: Policy> Cache<P> {
    /// The memory that all sessions share, but for the lists of the slab classes: of two regions that overlap the first
    /// counts.
    ///
    /// ```
    /// use lookaside_cache::engine::{Cache, Config, Entry, Verb};
    ///
    /// let cache: Cache = Cache::new(Config::with_limit(1 << 20))?;
    /// let mut session = cache.session();
    /// session.store(Verb::Set, Entry::new(b"key"), b"value")?;
    /// let pinned = session.pin();
    /// let value = pinned.get(b"key").unwrap().contiguous().unwrap().as_ptr().addr();
    /// let (name, _) = cache.regions().into_iter().find(|(_, region)| region.contains(&value)).unwrap();
    /// assert_eq!(name, "items");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn regions(&self) -> Vec<Region> {
        let engine = &*self.engine;
        vec![
            mapped("index", engine.table.region()),
            mapped("items", engine.arena.region()),
            of("numbers", engine.stamps.counters()),
            of("classes", engine.padded_classes()),
            mapped("pages", engine.page_records().region()),
            of("epochs", std::slice::from_ref(&*engine.epochs)),
            of("engine", std::slice::from_ref(engine)),
        ]
    }
}

impl<P: Policy> Session<P> {
    /// The memory that only this session writes. Others read the first of it, its place in the epochs, when they look
    /// for memory to use again.
    #[must_use]
    pub fn regions(&self) -> Vec<Region> {
        let lists = [
            room("session", &self.batch.spare),
            room("session", &self.batch.retired.borrow()),
            room("session", &self.scratch),
        ];
        let words = of("epoch of the session", std::slice::from_ref(self.participant.word()));
        let own = [words, of("session", std::slice::from_ref(&*self.counters))];
        own.into_iter().chain(lists).collect()
    }
}

/// All that a list has room for.
fn room<T>(name: &'static str, list: &Vec<T>) -> Region {
    let start = list.as_ptr().addr();
    (name, start..start + list.capacity() * size_of::<T>())
}
