//! The owner-only form: for an index and a table that one thread has for itself, as where data is partitioned (the
//! paper's section 4.3.3).
//!
//! Lookups borrow the map, changes borrow it mutably: so there are no epochs to pin, no tickets to take and no stripes
//! to lock, and a hit has no atomic read-modify-write; its loads and stores are those of a plain table. The map can be
//! sent to another thread, but not shared.
//!
//! Entries whose last handle is gone lie in a graveyard until the next change, which by the borrow checker comes when
//! nothing found before is held any more. Then they are forgotten by the table and freed.

#![allow(unsafe_code)]

mod words;

use std::borrow::Borrow;
use std::cell::Cell;
use std::hash::{BuildHasher, Hash};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

use atomics::reclaim::free_in_turn;
use equivalent::Equivalent;
use parking_lot::Mutex;

use crate::buffer::Buffer;
use crate::config::{Config, CreateError};
use crate::entry::{
    Dead, Departed, Draft, Ending, Entries, Found, Handle, Pin, Reclaim, Reclaimer, Removed, ends, may_stay,
    prefetch,
};
use crate::folding::RandomState;
use crate::hashing::{Hashing, IntoHashing, hash_of};
use crate::index::{Discard, Find, Ordered, Scan, Store};
use crate::index_id::IndexId;
use crate::monitor::Verdict;
use crate::pointer::Pointer;
use crate::slb::{HitLines, Slb};
use crate::stats::Counts;
use crate::thread_state::{GROUP, ThreadState};
use crate::words::range as range_of;

/// Where the dead wait, until there is no map any more.
#[derive(Debug)]
struct Graveyard {
    buffer: Buffer,
    dead: Mutex<Option<Vec<Dead>>>,
}

impl std::fmt::Debug for Dead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dead").finish_non_exhaustive()
    }
}

impl Reclaim for Graveyard {
    fn retire(self: Arc<Self>, dead: Dead) {
        let mut waiting = self.dead.lock();
        match &mut *waiting {
            Some(waiting) => waiting.push(dead),
            None => {
                drop(waiting);
                // SAFETY: the map is gone, and with it all who could have found it; no handle is left.
                unsafe { free_in_turn(dead.object(), std::ptr::null(), dead.free) };
            }
        }
    }

    unsafe fn forget(&self, _: Dead) {
        unreachable!("what lies in a graveyard is forgotten by the owner");
    }
}

/// A map over an index of type `I`, with a table in front; for one thread.
///
/// ```
/// use lookaside::{Config, OwnedMap};
/// use std::collections::BTreeSet;
///
/// let mut map = OwnedMap::with_index(BTreeSet::new(), &Config::with_size(1 << 20))?;
/// map.insert(7u64, "seven");
/// assert_eq!(map.get(&7), Some(&"seven"));
/// assert_eq!(map.remove(&7).as_deref(), Some(&"seven"));
/// # Ok::<(), lookaside::CreateError>(())
/// ```
pub struct OwnedMap<K: 'static, V: 'static, I = Ordered<K, V>, S = RandomState> {
    /// Both are `None` only while the map is dropped.
    ends: Option<(Ending<K, V>, Departed<K, V>)>,
    index: Option<I>,
    hashing: Hashing<S>,
    graveyard: Arc<Graveyard>,
    reclaimer: Arc<Reclaimer>,
    /// The owner's, who needs no epoch, no stripe and no ticket.
    state: ThreadState,
    /// Of the table in the graveyard's buffer, as it is now.
    lines: HitLines<'static>,
    entries: Entries<K, V>,
}

/// Those of the table in use.
///
/// # Safety
/// They are used only while the buffer lives, and until it is resized.
unsafe fn lines_of(buffer: &Buffer) -> HitLines<'static> {
    // SAFETY: the caller's promise; the table lies in a box of its own, whatever becomes of the buffer's place.
    unsafe { std::mem::transmute::<HitLines<'_>, HitLines<'static>>(buffer.table.load().lines()) }
}

impl<K, V, I> OwnedMap<K, V, I, RandomState> {
    /// A map over this index.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn with_index(index: I, config: &Config) -> Result<Self, CreateError> {
        OwnedMap::with_index_and_hasher(index, config, RandomState::default())
    }
}

impl<K, V, I, S> OwnedMap<K, V, I, S> {
    /// A map over this index, whose keys are hashed so: any hasher will do that gives different keys different hashes
    /// (see [`Hashing`]).
    ///
    /// # Errors
    /// As [`OwnedMap::with_index`].
    pub fn with_index_and_hasher(
        index: I,
        config: &Config,
        hasher: impl IntoHashing<Hasher = S>,
    ) -> Result<Self, CreateError> {
        let graveyard =
            Arc::new(Graveyard { buffer: Buffer::new(config)?, dead: Mutex::new(Some(Vec::new())) });
        let state = graveyard.buffer.thread_state();
        // SAFETY: as in `lines_of`: the map has the buffer.
        let lines = unsafe { lines_of(&graveyard.buffer) };
        let reclaimer = Reclaimer::of(Arc::clone(&graveyard) as Arc<dyn Reclaim>, false);
        let (ending, departed) = ends(&reclaimer);
        Ok(OwnedMap {
            ends: Some((ending, departed)),
            index: Some(index),
            hashing: hasher.into_hashing(),
            graveyard,
            reclaimer,
            state,
            lines,
            entries: Entries::default(),
        })
    }

    fn buffer(&self) -> &Buffer {
        &self.graveyard.buffer
    }

    #[inline(always)]
    fn table(&self) -> &Slb {
        // SAFETY: replaced by `resize` alone, which borrows the map mutably. Nobody else is given the buffer: handles
        // reach it only to be retired, which does not touch it.
        unsafe { self.buffer().table.load() }
    }

    /// Whether the next so many lookups are to ask the table.
    #[inline(always)]
    fn uses_table(&self, lookups: u32) -> bool {
        self.state.uses_table(lookups, &self.buffer().monitor, || self.table().capacity())
    }

    /// Clears the table for a write; how many slots.
    #[inline]
    fn clear_slots(&self, hash: u64) -> usize {
        // SAFETY: as in `table`.
        unsafe { self.state.clear_held(self.buffer(), hash) }
    }

    fn index(&self) -> &I {
        self.index.as_ref().expect("there while the map is")
    }

    /// Frees the dead, and makes the table forget them: nothing that was found is held any more. After the index has
    /// changed: what it let go of on its own is no answer from then on.
    fn bury(&mut self) {
        // Those that go with others, too.
        loop {
            let dead = self.graveyard.dead.lock().as_mut().map(std::mem::take).unwrap_or_default();
            if dead.is_empty() {
                return;
            }
            for dead in dead {
                // SAFETY: freed below, and the owner is here; as in `table`.
                unsafe {
                    dead.pointers().for_each(|pointer| self.buffer().forget_guarded(dead.hash, pointer));
                }
                // SAFETY: no handle is left, the table has forgotten it, and `&mut self`: nobody holds what they found.
                unsafe { dead.free() };
            }
        }
    }

    /// Replaces the table by an empty one of another size in bytes.
    ///
    /// # Errors
    /// As [`OwnedMap::with_index`]. Then the old one stays.
    pub fn resize(&mut self, size: usize) -> Result<(), CreateError> {
        self.buffer().resize(size)?;
        // SAFETY: as in `lines_of`: the map has the buffer.
        self.lines = unsafe { lines_of(self.buffer()) };
        Ok(())
    }

    /// Lets the monitor watch, or not: if not, the table is always used.
    pub fn monitor(&mut self, watching: bool) {
        self.buffer().monitor(watching);
        self.state.tell(self.buffer());
    }

    /// What the monitor has found.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.buffer().verdict()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.state.tell(self.buffer());
        self.buffer().counts()
    }
}

impl<K: Send + Sync, V: Send + Sync, I, S: BuildHasher> OwnedMap<K, V, I, S> {
    #[inline(always)]
    fn token(&self) -> Pin<'_> {
        // SAFETY: the graveyard is emptied by `&mut self` only, and by dropping the map.
        unsafe { Pin::new(&self.reclaimer) }
    }

    /// Entries that the table has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table().capacity()
    }

    /// Entries that the table holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.table().occupancy()
    }

    /// The entries of the warmest slots with their counters, warmest first, at most so many. Walks over the whole
    /// table.
    #[must_use]
    pub fn hottest(&self, most: usize) -> Vec<(&K, &V, u8)> {
        let hottest = self.table().hottest(most, IndexId::new(0, 0)).into_iter();
        // SAFETY: as in `look`.
        let found = hottest.map(|(pointer, degrees)| (unsafe { Found::<K, V>::at(pointer) }, degrees));
        found.map(|(found, degrees)| (found.key(), found.value(), degrees)).collect()
    }

    /// The value of a key.
    ///
    /// It is sought by whatever it can be borrowed as, or by anything else that says when it means the same
    /// ([`Equivalent`]), hashes as the key does and, where the index has an order, says what comes before
    /// ([`Comparable`](crate::Comparable)): so keys of parts need not be made to be looked up.
    ///
    /// ```
    /// use lookaside::{Comparable, Equivalent, OwnedMap};
    /// use std::cmp::Ordering;
    ///
    /// #[derive(Hash)]
    /// struct Parts<'s>(&'s str, u32);
    ///
    /// impl Equivalent<(String, u32)> for Parts<'_> {
    ///     fn equivalent(&self, key: &(String, u32)) -> bool {
    ///         (self.0, self.1) == (&key.0, key.1)
    ///     }
    /// }
    ///
    /// impl Comparable<(String, u32)> for Parts<'_> {
    ///     fn compare(&self, key: &(String, u32)) -> Ordering {
    ///         (self.0, self.1).cmp(&(&key.0, key.1))
    ///     }
    /// }
    ///
    /// let mut map = OwnedMap::<(String, u32), &str>::new();
    /// map.insert(("rome".to_string(), 753), "founded");
    /// assert_eq!(map.get(&Parts("rome", 753)), Some(&"founded"));
    /// assert!(map.remove(&Parts("rome", 476)).is_none());
    /// ```
    #[inline(always)]
    pub fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        Some(self.find(key)?.value())
    }

    #[inline(always)]
    fn find<Q>(&self, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        // As in `MapRef::find`.
        if !self.uses_table(1) {
            return self.search(key);
        }
        let hash = hash_of(&self.hashing, key);
        match self.look(hash, key) {
            Some(found) => Some(found),
            None => self.search_and_admit(key, hash),
        }
    }

    #[inline(never)]
    fn search<Q>(&self, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        self.index().find(key, &self.token())
    }

    #[inline(never)]
    fn search_and_admit<Q>(&self, key: &Q, hash: u64) -> Option<Found<'_, K, V>>
    where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        let found = self.index().find(key, &self.token())?;
        self.admit(hash, found);
        Some(found)
    }

    /// A key as it was put in, and its value.
    #[inline]
    pub fn get_key_value<Q>(&self, key: &Q) -> Option<(&K, &V)>
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        let found = self.find(key)?;
        Some((found.key(), found.value()))
    }

    #[inline(always)]
    fn look<Q>(&self, hash: u64, key: &Q) -> Option<Found<'_, K, V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        // SAFETY, here and below: the table holds pointers of this map's entries, and forgets them before they are
        // freed, which is while nobody looks.
        let holds = |pointer| {
            // SAFETY: as above.
            let found = unsafe { Found::<K, V>::at(pointer) };
            key.equivalent(found.key())
        };
        let pointer = self.state.find_on_account(self.lines, hash, holds)?;
        // SAFETY: as above.
        Some(unsafe { Found::at(pointer) })
    }

    fn admit(&self, hash: u64, found: Found<'_, K, V>) {
        // As in `MapRef::admit`.
        if found.is_of(hash)
            && let Some(pointer) = found.pointer()
        {
            self.state.admit_alone(self.table(), hash, pointer);
        }
    }

    /// The values of many keys: `values[i]` becomes that of `keys[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn get_many<'m, Q>(&'m self, keys: &[&Q], values: &mut [Option<&'m V>])
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        assert_eq!(keys.len(), values.len(), "one answer a key");
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            if self.uses_table(keys.len() as u32) {
                self.get_group(keys, values);
            } else {
                // An index that lies may leave a key out, or name one that there is not.
                values.fill(None);
                self.index().find_many(keys, &self.token(), |i, found| {
                    values.get_mut(i).into_iter().for_each(|value| *value = found.map(Found::value));
                });
            }
        }
    }

    #[inline]
    fn get_group<'m, Q>(&'m self, keys: &[&Q], values: &mut [Option<&'m V>])
    where
        Q: Hash + Equivalent<K> + ?Sized,
        I: Find<Q, K, V>,
    {
        let lines = self.lines;
        let mut hashes = [0; GROUP];
        for (&key, hash) in keys.iter().zip(&mut hashes) {
            *hash = hash_of(&self.hashing, key);
            lines.prefetch(*hash);
        }
        let values = &Cell::from_mut(values).as_slice_of_cells()[..keys.len()];
        let hit = |i: usize, pointer| {
            // SAFETY: as in `look`. Offers may throw out what was peeked at, but free nothing.
            let found = unsafe { Found::<K, V>::at(pointer) };
            // SAFETY: `find_group` numbers the hashes, of which there are as many as keys, and as values.
            let (key, value) = unsafe { (keys.get_unchecked(i), values.get_unchecked(i)) };
            let same = key.equivalent(found.key());
            if same {
                value.set(Some(found.value()));
            }
            same
        };
        let search = |missed: &[usize]| self.search_missed(keys, &hashes, missed, values);
        let (state, hashes) = (&self.state, &hashes[..keys.len()]);
        state.find_group(lines, hashes, prefetch::<K, V>, hit, search);
    }

    /// Asks the index for those keys of a group that the table did not have.
    fn search_missed<'m, Q>(
        &'m self,
        keys: &[&Q],
        hashes: &[u64],
        missed: &[usize],
        values: &[Cell<Option<&'m V>>],
    ) where
        Q: ?Sized,
        I: Find<Q, K, V>,
    {
        let mut sought = [keys[0]; GROUP];
        missed.iter().zip(&mut sought).for_each(|(&i, key)| *key = keys[i]);
        let mut found = [None; GROUP];
        // Offered to the table when the index has done: their atomic exchanges would wait for its loads.
        self.index().find_many(&sought[..missed.len()], &self.token(), |at, answer| {
            found.get_mut(at).into_iter().for_each(|found| *found = answer);
        });
        for (&i, found) in missed.iter().zip(found) {
            values[i].set(found.map(Found::value));
            if let Some(found) = found {
                self.admit(hashes[i], found);
            }
        }
    }

    /// Puts an entry in, and gives back the one that it replaced.
    pub fn insert(&mut self, key: K, value: V) -> Option<Removed<K, V>>
    where
        K: Hash + Eq,
        I: Store<K, V>,
    {
        let hash = hash_of(&self.hashing, &key);
        let draft = Draft::new(key, value, hash, &self.reclaimer);
        self.store(hash, draft, |_| {}).map(Removed)
    }

    /// The entry that the table has of this key, if it may be succeeded.
    fn known(&self, hash: u64, key: &K) -> Option<Pointer>
    where
        K: Eq,
        I: Store<K, V>,
    {
        if !(I::SUCCESSION && may_stay::<V>()) {
            return None;
        }
        let same = |pointer| {
            // SAFETY: as in `look`.
            let found = unsafe { Found::<K, V>::at(pointer) };
            found.key() == key && found.is_of(hash)
        };
        Some(self.table().find(hash, same)?.1)
    }

    /// Lets the new entry succeed the one that the table had, and gives that back; or gives the new one back, for the
    /// index.
    fn succeed(&self, known: Option<Pointer>, draft: Draft<K, V>) -> Result<Handle<K, V>, Draft<K, V>> {
        let Some(known) = known else { return Err(draft) };
        // SAFETY: as in `look`; and by the owner, who found it with this hash in the table of this map.
        unsafe { Found::<K, V>::at(known).succeed::<()>(draft, self.capacity(), None) }
            .inspect(|_| self.state.tally.successions.add(1))
    }

    /// Puts a new entry in, after `show` has seen it if that goes by the index; what it replaced.
    fn store(
        &mut self,
        hash: u64,
        draft: Draft<K, V>,
        show: impl FnOnce(&Handle<K, V>),
    ) -> Option<Handle<K, V>>
    where
        K: Eq,
        I: Store<K, V>,
    {
        let old = self.put_over(hash, draft, show);
        self.bury();
        old
    }

    /// As [`OwnedMap::store`], but frees nothing.
    fn put_over(
        &mut self,
        hash: u64,
        draft: Draft<K, V>,
        show: impl FnOnce(&Handle<K, V>),
    ) -> Option<Handle<K, V>>
    where
        K: Eq,
        I: Store<K, V>,
    {
        let pointer = draft.pointer();
        let known = self.known(hash, draft.key());
        let cleared = self.clear_slots(hash);
        let old = match self.succeed(known, draft) {
            Ok(old) => Some(old),
            Err(draft) => {
                let handle = draft.handle();
                show(&handle);
                let old = self.index.as_mut().expect("there while the map is").replace(handle);
                // An index that lies may give back the very one, which the table is about to have.
                let others = old.as_ref().is_some_and(|old| old.pointer() != pointer);
                self.newest(old, hash, others)
            }
        };
        // Should the index have dropped it, it waits in the graveyard, and is forgotten before it is freed.
        if cleared > 0
            && let Some(pointer) = pointer
        {
            self.state.put_held(self.table(), hash, pointer);
        }
        old
    }

    /// What was replaced, where the index gave this back to a write of this hash.
    fn newest(&self, old: Option<Handle<K, V>>, hash: u64, is_out: bool) -> Option<Handle<K, V>> {
        let old = old?;
        // SAFETY: by the owner, who is alone, and has cleared the table; what goes into it again is another.
        let newest = unsafe {
            let newest = old.successor(hash, &self.reclaimer);
            if is_out {
                old.forgotten_alone(hash, &self.reclaimer);
            }
            newest
        };
        Some(newest.unwrap_or(old))
    }

    /// Puts an entry in if there is one of this key already, and gives back the one that it replaced; else gives back
    /// what it was given.
    ///
    /// # Errors
    /// The key and the value, if the map has no such key.
    pub fn replace(&mut self, key: K, value: V) -> Result<Removed<K, V>, (K, V)>
    where
        K: Hash + Eq,
        I: Store<K, V> + Find<K, K, V>,
    {
        let hash = hash_of(&self.hashing, &key);
        if self.known(hash, &key).is_none() && self.index().find(&key, &self.token()).is_none() {
            return Err((key, value));
        }
        // An index that found the key and then has none to give back lies; the new one is as good as an answer.
        let mut share = None;
        let draft = Draft::new(key, value, hash, &self.reclaimer);
        let old = self.store(hash, draft, |new| share = Some(new.clone()));
        Ok(Removed(old.or(share).expect("one of the two")))
    }

    /// Takes an entry out.
    pub fn remove<Q>(&mut self, key: &Q) -> Option<Removed<K, V>>
    where
        Q: Hash + ?Sized,
        I: Discard<Q, K, V>,
    {
        let removed = self.take_out(key);
        self.bury();
        removed
    }

    /// As [`OwnedMap::remove`], but frees nothing that is not the one taken out.
    fn take_out<Q>(&mut self, key: &Q) -> Option<Removed<K, V>>
    where
        Q: Hash + ?Sized,
        I: Discard<Q, K, V>,
    {
        let hash = hash_of(&self.hashing, key);
        self.clear_slots(hash);
        let old = self.index.as_mut().expect("there while the map is").remove(key);
        self.newest(old, hash, true).map(Removed)
    }

    /// Makes the table forget a key: to be called after the index has changed the entry of it on its own, and kept the
    /// old one's handle. What it has let go of altogether, as one does that is full, is forgotten by itself: in the
    /// call that does it if that is a write, or in the next.
    pub fn forget<Q: Hash + ?Sized>(&mut self, key: &Q) {
        self.clear_slots(hash_of(&self.hashing, key));
    }

    /// The entries of the keys in a range, in the index's order, as from the standard library's maps; none where the
    /// range ends before it begins. Goes to the index.
    ///
    /// ```
    /// let map: lookaside::OwnedMap<u64, u64> = (0..100).map(|number| (number, number * number)).collect();
    /// assert_eq!(map.range(3..).map(|(_, square)| *square).take(2).collect::<Vec<_>>(), [9, 16]);
    /// assert_eq!(map.range(2..=3).count(), 2);
    /// ```
    pub fn range<Q, R>(&self, range: R) -> impl Iterator<Item = (&K, &V)>
    where
        Q: ?Sized,
        K: Borrow<Q>,
        R: RangeBounds<Q>,
        I: Scan<Q, K, V>,
    {
        range_of(self.index(), self.token(), range)
    }

    /// Shows the entries between two bounds, in order, until `visit` breaks. Goes to the index.
    pub fn scan<'m, Q>(
        &'m self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        mut visit: impl FnMut(&'m K, &'m V) -> ControlFlow<()>,
    ) where
        Q: ?Sized,
        I: Scan<Q, K, V>,
    {
        let token: Pin<'m> = self.token();
        self.index().scan(from, to, &token, &mut |found| visit(found.key(), found.value()));
    }

    /// Entries in the index.
    pub fn len(&self) -> usize
    where
        I: Store<K, V>,
    {
        self.index().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool
    where
        I: Store<K, V>,
    {
        self.index().is_empty()
    }
}

impl<K: 'static, V: 'static, I, S> Drop for OwnedMap<K, V, I, S> {
    fn drop(&mut self) {
        // From then on entries are freed as their last handles are dropped, those that the user still has, too.
        let (ending, departed) = self.ends.take().unzip();
        drop(ending);
        self.index = None;
        drop(departed);
        let dead = self.graveyard.dead.lock().take();
        for dead in dead.into_iter().flatten() {
            // SAFETY: no handle is left, and whoever found it had borrowed the map.
            unsafe { dead.free() };
        }
    }
}
