//! The unsafe core of the map: entries behind the locations of a [`Table`], each published once, found under a pin, and
//! freed when the pins are gone that could have found it.
//!
//! ```text
//!   make:      a slot of the slab, filled: nobody else knows it
//!   publish:   its address goes into the table, by an insert or in the place of another
//!   find:      under a pin: what the table names stays until the pin ends
//!   unlink:    the table names it no more, by a removal or because another was put in its place
//!   retire:    once, by who unlinked it; freed behind the last pin, and its slot given back
//! ```
//!
//! An entry does not change once it is published. Of several threads that would unlink the same one, the table lets one
//! have it: it is retired once.
//!
//! A [`Pinned`] brings a map and a pin of its collector together, so that no pin of another map can be meant; what it
//! lends, it lends for as long as it is borrowed, and [`Pinned::refresh`] borrows it alone. Everything above this
//! module is safe.
//!
//! # What the table may call
//!
//! The table compares keys and asks for hashes while buckets are locked, and for entries that may have been unlinked
//! just now. Their memory stays, because whoever calls the table is pinned.
//!
//! A hash or a comparison that panics leaves through the table. An entry that is not in the table by then is freed, one
//! that is stays ([`Entries::enters`] tells which).

#![allow(unsafe_code)]

use std::alloc::Layout;
use std::cell::Cell;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use atomics::reclaim::{Collector, Guard, quietly};
use equivalent::Equivalent;

use crate::config::{Config, Growth, Linear};
use crate::hash::Hashes;
use crate::layout::{DefaultLayout, Layout as _};
use crate::once::Once;
use crate::outcome::{Insertion, Upsertion};
use crate::slab::{Magazine, Slab};
use crate::slot::Location;
use crate::table::{Entries, Table};
use crate::walk::Locations;

/// Share of the slots in use above which inserts split buckets. An index of [`Linear::default`]'s load is a byte an
/// entry smaller, and every other insert displaces an entry in it.
const TARGET_LOAD: f64 = 0.8;

/// What is stored for a key.
#[derive(Debug)]
pub(super) struct Entry<K, V> {
    pub(super) key: K,
    pub(super) value: V,
}

impl<K, V> Entry<K, V> {
    pub(super) fn pair(&self) -> (&K, &V) {
        (&self.key, &self.value)
    }
}

/// The parts of a map.
pub(super) struct Core<K, V, S> {
    pub(super) table: Table,
    /// Dropped before the slab, to which what it frees goes.
    collector: Collector<Magazine>,
    /// At one address, wherever the map is moved: what is retired knows it.
    slab: Arc<Slab>,
    pub(super) hasher: S,
    pub(super) once: Once,
    /// Whether the entries have been taken out.
    is_drained: bool,
    /// Of exactly these types: a map of longer-lived keys is none of shorter-lived ones, for those can be put in.
    entries: PhantomData<*mut Entry<K, V>>,
}

// SAFETY: the map owns its entries, and frees those of other threads: for that they are `Send`. Nothing else in it
// belongs to a thread.
unsafe impl<K: Send, V: Send, S: Send> Send for Core<K, V, S> {}
// SAFETY: through a shared map a thread puts entries in that another frees (`Send`), and sees those of others (`Sync`).
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for Core<K, V, S> {}

/// A map and a pin of its own collector.
pub(super) struct Pinned<'m, K, V, S> {
    core: &'m Core<K, V, S>,
    guard: Guard<'m, Magazine>,
}

/// An entry that nobody else knows yet. Unless it is published it is dropped with this.
pub(super) struct Unpublished<'p, K, V> {
    at: NonNull<Entry<K, V>>,
    slab: &'p Slab,
    magazine: &'p Magazine,
    is_published: Cell<bool>,
    entry: PhantomData<Entry<K, V>>,
}

/// An entry that was not published, and that of its key, which was there.
type Occupied<'p, K, V> = (Unpublished<'p, K, V>, &'p Entry<K, V>);

/// The entries of a map, as the table asks for them, while one is being put in.
struct Publishing<'p, K, V, S> {
    core: &'p Core<K, V, S>,
    new: Option<&'p Unpublished<'p, K, V>>,
}

/// Entries of a map that is pinned, as long as that is borrowed.
pub(super) struct Walk<'p, K, V> {
    locations: Locations<'p, DefaultLayout>,
    entries: PhantomData<&'p Entry<K, V>>,
}

/// The entry at a location of a map's table.
///
/// # Safety
/// The location came from the table of a map of such entries, and the caller has been pinned since before, or has the
/// map alone; the reference is not used beyond that.
#[inline(always)]
unsafe fn entry_at<'e, K, V>(at: Location) -> &'e Entry<K, V> {
    let entry = ptr::with_exposed_provenance::<Entry<K, V>>(at.get() as usize);
    // SAFETY: the table has addresses of published entries only, of memory that the slab has exposed; they do not
    // change, and stay until no pin is left that could have found them.
    unsafe { &*entry }
}

impl<'p, K, V> Iterator for Walk<'p, K, V> {
    type Item = &'p Entry<K, V>;

    fn next(&mut self) -> Option<&'p Entry<K, V>> {
        // SAFETY: of the table of a map that is pinned while the pin is borrowed.
        self.locations.next().map(|at| unsafe { entry_at(at) })
    }
}

impl<K, V, S> Core<K, V, S> {
    /// An empty one with room for so many entries.
    ///
    /// # Panics
    /// If memory is refused.
    pub(super) fn new(capacity: usize, hasher: S, hashes: Hashes) -> Self {
        let linear = Linear::default().with_target_load(TARGET_LOAD);
        // A power of two: then all buckets are alike, and hardly an insert displaces an entry.
        let slots = ((capacity as f64 / linear.target_load) as usize).saturating_add(1);
        let buckets = slots.div_ceil(DefaultLayout::SLOTS).next_power_of_two();
        let config = Config::new().with_growth(Growth::Linear(linear)).with_hashes(hashes).for_a_map();
        let table = Table::with_buckets(buckets, &config);
        let table = table.unwrap_or_else(|error| panic!("no map of {capacity} entries: {error}"));
        if buckets * DefaultLayout::BUCKET_BYTES < table.region().obtained().size() / 2 {
            table.region().begin_with_base_pages();
        }
        let slab = Slab::new(Layout::new::<Entry<K, V>>());
        if capacity > 0 {
            slab.reserve(capacity);
        }
        Core {
            table,
            collector: Collector::new(),
            slab: Arc::new(slab),
            hasher,
            once: Once::default(),
            is_drained: false,
            entries: PhantomData,
        }
    }

    /// An empty one with room for so many entries, that hashes as this one does.
    pub(super) fn like(&self, capacity: usize) -> Self
    where
        S: Clone,
    {
        Self::new(capacity, self.hasher.clone(), self.table.config.hashes)
    }

    pub(super) fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned { core: self, guard: self.collector.pin() }
    }

    /// Frees what was unlinked and nobody holds.
    pub(super) fn collect(&self) {
        self.collector.collect();
    }

    /// Bytes of the index and of the entries' chunks.
    pub(super) fn bytes(&self) -> usize {
        self.table.bytes() + self.slab.bytes()
    }

    /// The entry at a location of the table.
    ///
    /// # Safety
    /// As [`entry_at`].
    #[inline(always)]
    unsafe fn entry<'e>(&self, at: Location) -> &'e Entry<K, V> {
        // SAFETY: the caller's promise.
        unsafe { entry_at(at) }
    }

    /// Takes all entries out of a map that is being dropped or taken apart, each by `take`.
    pub(super) fn drain(&mut self, mut take: impl FnMut(K, V)) {
        // What was unlinked before is freed here, while there is a collector that its destructors may come by.
        self.collector.collect();
        self.is_drained = true;
        for location in self.table.iter() {
            let entry = ptr::with_exposed_provenance::<Entry<K, V>>(location.get() as usize);
            // SAFETY: published, not unlinked, and nobody has the map but this thread; read once, for the caller does
            // nothing with the map any more but to drop it.
            let Entry { key, value } = unsafe { entry.read() };
            take(key, value);
        }
    }
}

impl<K, V, S> Core<K, V, S>
where
    S: BuildHasher,
{
    #[inline(always)]
    pub(super) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.hasher.hash_one(key)
    }
}

impl<'m, K, V, S> Pinned<'m, K, V, S> {
    #[inline(always)]
    pub(super) fn core(&self) -> &'m Core<K, V, S> {
        self.core
    }

    /// Lets go of what was found so far, and pins anew.
    pub(super) fn refresh(&mut self) {
        self.guard.refresh();
    }

    /// The entry of a key of this hash.
    #[inline(always)]
    pub(super) fn find<Q>(&self, hash: u64, key: &Q) -> Option<&Entry<K, V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        // SAFETY: of this table, and this is a pin; what it names is lent for as long as the pin is borrowed.
        let found =
            self.core.table.find_first(hash, |at| key.equivalent(&unsafe { self.core.entry(at) }.key))?;
        // SAFETY: as above.
        Some(unsafe { self.core.entry(found) })
    }

    /// All entries, in no order.
    pub(super) fn walk(&self) -> Walk<'_, K, V> {
        Walk { locations: self.core.table.iter(), entries: PhantomData }
    }

    /// An entry to be published.
    pub(super) fn make(&self, key: K, value: V) -> Unpublished<'_, K, V> {
        let magazine = self.guard.local();
        // SAFETY: what the collector keeps for this thread, which is pinned; no code of others runs in `take`.
        let at = unsafe { self.core.slab.take(magazine) }.cast::<Entry<K, V>>();
        // SAFETY: a slot has the layout of an entry, and this one is ours.
        unsafe { at.write(Entry { key, value }) };
        let slab = &self.core.slab;
        Unpublished { at, slab, magazine, is_published: Cell::new(false), entry: PhantomData }
    }

    fn location(new: &Unpublished<'_, K, V>) -> Location {
        Location::new(new.at.as_ptr().expose_provenance() as u64).expect("the slab has looked")
    }

    /// Retires an entry that this thread has unlinked.
    ///
    /// # Safety
    /// The table had it, has it no more, and gave it to this call alone.
    unsafe fn retire(&self, entry: &Entry<K, V>) {
        unsafe fn free<K, V>(entry: *mut (), slab: *const ()) {
            /// Gives the slot back, also when a destructor panics.
            struct GivenBack<'s>(&'s Slab, NonNull<u8>);
            impl Drop for GivenBack<'_> {
                fn drop(&mut self) {
                    // SAFETY: as below; the entry in it is dropped by now.
                    unsafe { self.0.give_back(self.1) };
                }
            }
            // SAFETY: the collector is dropped before the slab, and calls once, for an entry that is there.
            unsafe {
                let slot = NonNull::new_unchecked(entry.cast::<u8>());
                let _given_back = GivenBack(&*slab.cast::<Slab>(), slot);
                ptr::drop_in_place(entry.cast::<Entry<K, V>>());
            }
        }
        // By its address, for which the slab has exposed what it takes to write there; the reference may only read.
        let at = ptr::with_exposed_provenance_mut::<()>(ptr::from_ref(entry).addr());
        let slab = Arc::as_ptr(&self.core.slab).cast();
        // SAFETY: nobody who pins from here on finds it, and it is retired once: the caller's promise. Where entries
        // are not `Send`, neither is the map `Send` nor `Sync`, and no other thread ever pins it.
        unsafe { self.guard.retire(at, slab, free::<K, V>) };
    }
}

impl<K, V, S> Pinned<'_, K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    /// Looks for many keys, at most a group: tells, of the number of each, the entry of the key whose hash is
    /// `hashes[i]` and that is the `i`th of `keys`.
    #[inline(always)]
    pub(super) fn find_many<'p, 'k, Q>(
        &'p self,
        hashes: &[u64],
        keys: impl Fn(usize) -> &'k Q,
        mut tell: impl FnMut(usize, Option<&'p Entry<K, V>>),
    ) where
        Q: Equivalent<K> + ?Sized + 'k,
    {
        // SAFETY: of this table, and this is a pin.
        let entry = |at| unsafe { self.core.entry(at) };
        let entries = Publishing { core: self.core, new: None };
        let eq = |i, at| keys(i).equivalent(&entry(at).key);
        self.core.table.find_group_first(&entries, hashes, eq, |i, at| tell(i, at.map(entry)));
    }

    /// Publishes an entry, unless its key is there.
    ///
    /// # Errors
    /// The entry, and that of the key which is there.
    pub(super) fn insert_or_get<'p>(
        &'p self,
        hash: u64,
        new: Unpublished<'p, K, V>,
    ) -> Result<&'p Entry<K, V>, Occupied<'p, K, V>> {
        // SAFETY: of this table, and this is a pin.
        let entry = |at| unsafe { self.core.entry(at) };
        let publishing = Publishing { core: self.core, new: Some(&new) };
        let at = Self::location(&new);
        let eq = |other| new.key() == &entry(other).key;
        match self.core.table.insert_or_get(hash, at, eq, publishing) {
            Ok(Insertion::Inserted(_)) => Ok(entry(at)),
            Ok(Insertion::Occupied(other)) => Err((new, entry(other))),
            Err(_) => unreachable!("a table with a stash refuses nobody"),
        }
    }

    /// Publishes an entry, in the place of that of its key, if there is one: both.
    pub(super) fn insert_or_replace<'p>(
        &'p self,
        hash: u64,
        new: Unpublished<'p, K, V>,
    ) -> (&'p Entry<K, V>, Option<&'p Entry<K, V>>) {
        // SAFETY: of this table, and this is a pin.
        let entry = |at| unsafe { self.core.entry(at) };
        let publishing = Publishing { core: self.core, new: Some(&new) };
        let at = Self::location(&new);
        let eq = |other| new.key() == &entry(other).key;
        match self.core.table.insert_or_replace(hash, at, eq, publishing) {
            Ok(Upsertion::Inserted(_)) => (entry(at), None),
            Ok(Upsertion::Replaced(old)) => {
                let old = entry(old);
                // SAFETY: the table has the new one in its place, and said so to this call.
                unsafe { self.retire(old) };
                (entry(at), Some(old))
            }
            Err(_) => unreachable!("a table with a stash refuses nobody"),
        }
    }

    /// Publishes an entry in the place of another one of its key, if that is there.
    ///
    /// # Errors
    /// The entry: the other one is not there.
    pub(super) fn replace<'p>(
        &'p self,
        hash: u64,
        old: &Entry<K, V>,
        new: Unpublished<'p, K, V>,
    ) -> Result<&'p Entry<K, V>, Unpublished<'p, K, V>> {
        let at = Self::location(&new);
        let Some(old_at) = Location::new(ptr::from_ref(old).addr() as u64) else { return Err(new) };
        if !self.core.table.replace(hash, old_at, at) {
            return Err(new);
        }
        new.is_published.set(true);
        // SAFETY: the table has the new one in its place, by this call.
        unsafe { self.retire(old) };
        // SAFETY: of this table, and this is a pin.
        Ok(unsafe { self.core.entry(at) })
    }

    /// Takes out the entry of a key.
    pub(super) fn remove<Q>(&self, hash: u64, key: &Q) -> Option<&Entry<K, V>>
    where
        Q: Equivalent<K> + ?Sized,
    {
        // SAFETY: of this table, and this is a pin.
        let entry = |at| unsafe { self.core.entry(at) };
        let old = entry(self.core.table.remove(hash, |at| key.equivalent(&entry(at).key))?);
        // SAFETY: the table has given it to this call.
        unsafe { self.retire(old) };
        Some(old)
    }

    /// Takes out exactly this entry, whose key has this hash; whether it was there.
    pub(super) fn remove_exact(&self, hash: u64, old: &Entry<K, V>) -> bool {
        let at = Location::new(ptr::from_ref(old).addr() as u64);
        let was_there = at.is_some_and(|at| self.core.table.remove_exact(hash, at));
        if was_there {
            // SAFETY: the table has given it to this call.
            unsafe { self.retire(old) };
        }
        was_there
    }

    /// Takes out all entries that are there.
    pub(super) fn clear(&self) {
        let hasher = Publishing { core: self.core, new: None };
        // SAFETY: the table has given it to this call; and this is a pin.
        self.core.table.clear(hasher, |at| unsafe { self.retire(self.core.entry(at)) });
    }

    /// Makes room for so many entries more, if the index can ever have so many; whether it can.
    pub(super) fn reserve(&self, additional: usize) -> bool {
        let can = self.core.table.may_reserve(additional);
        if can {
            self.core.slab.reserve(additional);
            self.core.table.reserve(additional, Publishing { core: self.core, new: None });
        }
        can
    }
}

impl<K, V> Unpublished<'_, K, V> {
    fn key(&self) -> &K {
        // SAFETY: written when it was made; nobody writes to it while this is borrowed.
        &unsafe { self.at.as_ref() }.key
    }

    /// The entry, taken out of its slot. It must not have been published.
    pub(super) fn into_parts(self) -> (K, V) {
        assert!(!self.is_published.replace(true), "an entry that was published is the map's");
        // SAFETY: written when it was made, and not dropped: from here on this does not.
        let Entry { key, value } = unsafe { self.at.read() };
        // SAFETY: taken from this slab by this magazine, of a pin that is still borrowed; nothing is in it any more.
        unsafe { self.slab.put_back(self.magazine, self.at.cast()) };
        (key, value)
    }
}

impl<K, V> Drop for Unpublished<'_, K, V> {
    fn drop(&mut self) {
        if self.is_published.get() {
            return;
        }
        // SAFETY: written when it was made, nobody else knows it, and it is dropped once. Its slot is lost until the
        // map is dropped, should its destructor panic.
        unsafe { ptr::drop_in_place(self.at.as_ptr()) };
        // SAFETY: as in `into_parts`.
        unsafe { self.slab.put_back(self.magazine, self.at.cast()) };
    }
}

impl<K: Hash, V, S: BuildHasher> Entries for Publishing<'_, K, V, S> {
    fn hash(&self, location: Location) -> u64 {
        // SAFETY: of the table, under its locks; and the call is made by a thread that is pinned.
        self.core.hasher.hash_one(&unsafe { self.core.entry(location) }.key)
    }

    #[inline(always)]
    fn prefetch(&self, location: Location) {
        pages::prefetch(ptr::without_provenance::<u8>(location.get() as usize));
    }

    #[inline]
    fn enters(&self, _location: Location) {
        // One at a time is put in.
        self.new.inspect(|new| new.is_published.set(true));
    }
}

impl<K, V, S> Drop for Core<K, V, S> {
    fn drop(&mut self) {
        if needs_drop::<Entry<K, V>>() && !self.is_drained {
            self.drain(|key, value| {
                quietly(|| drop(key));
                quietly(|| drop(value));
            });
        }
    }
}
