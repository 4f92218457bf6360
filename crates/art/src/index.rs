//! The tree behind a lookaside table: [`lookaside::Map`] over a [`Tree`], [`lookaside::OwnedMap`] over an
//! [`OwnedTree`].
//!
//! The tree maps a key's bytes to the [handle](Handle) of its entry, which is the map's and lies on the heap. A lookup
//! that the table answers does not come here. What the table misses does, and batches of misses descend together
//! ([`crate::batch`]). Ranges are the tree's, in the order of the bytes; for prefixes and for both directions ask the
//! tree itself: a map [shows](lookaside::Map::view) it as a [`TreeView`], which has all but the tree's changes.
//!
//! A tree behind a map [samples](crate::AccessLog::sample_every) what it is asked for without a session, each thread on
//! its own. So its log knows the keys that the table misses, and [`Tree::reorganize`] lays the paths of these
//! together: what the table holds needs no paths.
//!
//! ```
//! use std::ops::{Bound, ControlFlow};
//!
//! use lookaside::{Config, Map};
//! use lookaside_art::Tree;
//!
//! let map = Map::with_index(Tree::<[u8], _>::new()?, &Config::with_size(1 << 20))?;
//! map.insert("rome".to_string(), 753);
//! map.insert("romulus".to_string(), 771);
//! map.insert("remus".to_string(), 771);
//! let reader = map.pin();
//! assert_eq!(reader.get("rome"), Some(&753));
//! let mut cities = Vec::new();
//! reader.scan(Bound::Included("ro"), Bound::Unbounded, |name, year| {
//!     cities.push((name.clone(), *year));
//!     ControlFlow::Continue(())
//! });
//! assert_eq!(cities, [("rome".to_string(), 753), ("romulus".to_string(), 771)]);
//! // The tree itself, for all that only a tree can do.
//! let tree = map.view().pin();
//! assert_eq!(tree.prefix(b"rom").rev().map(|(_, entry)| *entry.value()).collect::<Vec<_>>(), [771, 753]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A key is found by its [bytes](Encode), which may be made for the purpose:
//!
//! ```
//! use lookaside::{Config, OwnedMap};
//! use lookaside_art::OwnedTree;
//!
//! let mut map = OwnedMap::with_index(OwnedTree::<[u8; 8], _>::new()?, &Config::with_size(1 << 20))?;
//! map.insert(-753i64, "rome");
//! assert_eq!(map.get(&-753), Some(&"rome"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Panics
//!
//! The map's calls do not expect an index to refuse an entry. A tree that is [full](crate::Reason::Full) therefore
//! panics, as collections of the standard library do without memory; the map is as it was before. Give it room: see
//! [`crate::Config`].
//!
//! Rejected: *entries in the place of leaves*: a lookup would read one line less, but entries lie anywhere on the heap,
//! and the tree refers to what it has by 32 bits.

use std::array::from_fn;
use std::borrow::Borrow;
use std::ops::{Bound, ControlFlow};

use lookaside::index::{Discard, Find, Scan, SharedDiscard, SharedStore, Store, View, Walk};
use lookaside::{Found, Handle, Pin};

use crate::core::Entries;
use crate::encode::{self, FixedPart};
use crate::error::NotStored;
use crate::key::Key;
use crate::owned::OwnedTree;
use crate::range::Range;
use crate::tree::Tree;
pub use crate::view::{Onlooker, TreeView};

/// Keys that are looked up at once.
const GROUP: usize = 16;

/// A key that a tree of `T` finds by its bytes: anything with bytes in a tree of `[u8]`; arrays, numbers and tuples of
/// numbers in a tree of arrays.
///
/// Keys that are equal have the same bytes and others have others; what a key is borrowed as has the same bytes as the
/// key. Whoever breaks this has a map with wrong answers, and no worse. Ranges are in the order of the bytes.
///
/// ```
/// use lookaside_art::index::Encode;
///
/// #[derive(PartialEq, Eq, Hash)]
/// struct City { founded: i64 }
///
/// impl Encode<[u8; 8]> for City {
///     type Bytes<'k> = [u8; 8];
///
///     fn encode(&self) -> [u8; 8] {
///         lookaside_art::encode::i64(self.founded)
///     }
/// }
/// ```
pub trait Encode<T: Key + ?Sized> {
    /// The bytes, borrowed or made.
    type Bytes<'k>: Borrow<T>
    where
        Self: 'k;

    /// The bytes that a tree finds this key by.
    fn encode(&self) -> Self::Bytes<'_>;
}

impl<K: AsRef<[u8]> + ?Sized> Encode<[u8]> for K {
    type Bytes<'k>
        = &'k [u8]
    where
        K: 'k;

    #[inline(always)]
    fn encode(&self) -> &[u8] {
        self.as_ref()
    }
}

impl<const N: usize> Encode<[u8; N]> for [u8; N] {
    type Bytes<'k> = &'k [u8; N];

    #[inline(always)]
    fn encode(&self) -> &[u8; N] {
        self
    }
}

macro_rules! encode_numbers {
    ($($number:ident: $bytes:literal),*) => { $(
        impl Encode<[u8; $bytes]> for $number {
            type Bytes<'k> = [u8; $bytes];

            #[inline(always)]
            fn encode(&self) -> [u8; $bytes] {
                encode::$number(*self)
            }
        }
    )* };
}

encode_numbers!(u8: 1, u16: 2, u32: 4, u64: 8, u128: 16, i8: 1, i16: 2, i32: 4, i64: 8, i128: 16);

macro_rules! encode_tuples {
    ($(($($part:ident),*))*) => { $(
        impl<const N: usize, $($part: FixedPart),*> Encode<[u8; N]> for ($($part,)*) {
            type Bytes<'k>
                = [u8; N]
            where
                Self: 'k;

            #[inline(always)]
            fn encode(&self) -> [u8; N] {
                encode::tuple_array(self)
            }
        }
    )* };
}

encode_tuples!((A, B)(A, B, C)(A, B, C, D));

impl<T: Key + ?Sized, K: 'static, V: 'static> Entries<T, Handle<K, V>> {
    /// The entries of many keys; `saw` is told each key. Pinned, or owned.
    #[inline]
    fn find_entries<'p, Q: Encode<T> + ?Sized>(
        &self,
        keys: &[&Q],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, K, V>>),
        saw: impl Fn(&T),
    ) {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let encoded: [Option<Q::Bytes<'_>>; GROUP] = from_fn(|i| keys.get(i).map(|key| key.encode()));
            let Some(first) = &encoded[0] else { return };
            let mut sought: [&T; GROUP] = [first.borrow(); GROUP];
            for (sought, encoded) in sought.iter_mut().zip(encoded.iter().flatten()) {
                *sought = encoded.borrow();
                saw(sought);
            }
            let mut handles: [Option<&Handle<K, V>>; GROUP] = [None; GROUP];
            self.find_many(&sought[..keys.len()], |i, leaf| {
                handles[i] = leaf.map(|leaf| self.storage.value(leaf));
                // Whoever asked reads the key's line and, behind the value, what tells that the entry is theirs.
                if let Some(handle) = handles[i] {
                    pages::prefetch(std::ptr::from_ref(handle.key()));
                    pages::prefetch(std::ptr::from_ref(handle.value()).wrapping_add(1));
                }
            });
            for (i, handle) in handles[..keys.len()].iter().enumerate() {
                found(group * GROUP + i, handle.and_then(|handle| handle.found(pin)));
            }
        }
    }
}

/// Shows the entries of a range until `visit` breaks.
fn show<'p, T: Key + ?Sized, K, V>(
    range: Range<'_, T, Handle<K, V>>,
    pin: &Pin<'p>,
    visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
) {
    for (_, handle) in range {
        if handle.found(pin).is_some_and(|found| visit(found).is_break()) {
            return;
        }
    }
}

/// The bytes of a bound.
fn bytes<T: Key + ?Sized>(bound: &Bound<impl Borrow<T>>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| key.borrow().as_ref())
}

fn refused<V>(refused: NotStored<V>) -> ! {
    panic!("{refused}")
}

impl<Q, T, K, V> Find<Q, K, V> for Tree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        let encoded = key.encode();
        let key = encoded.borrow();
        self.log.saw(key);
        self.pin().get(key)?.found(pin)
    }

    fn find_many<'p>(
        &self,
        keys: &[&Q],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, K, V>>),
    ) {
        // What a table lets through of a group is often one.
        if let [key] = keys {
            found(0, self.find(*key, pin));
            return;
        }
        let _reader = self.pin();
        self.core.find_entries(keys, pin, found, |key| self.log.saw(key));
    }
}

impl<T, K, V> SharedStore<K, V> for Tree<T, Handle<K, V>>
where
    T: Key + ?Sized,
    K: Encode<T> + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// # Panics
    /// If the tree is full, or the key has 2^32 - 1 bytes or more.
    fn replace(&self, handle: Handle<K, V>) -> Option<Handle<K, V>> {
        // The tree shows what was there, and drops it later: a share for the key, and one to give back.
        let share = handle.clone();
        let encoded = share.key().encode();
        let stored = self.pin().insert(encoded.borrow(), handle).map(|old| old.cloned());
        stored.unwrap_or_else(|full| {
            // What others have removed makes room.
            self.collect();
            self.pin().insert(encoded.borrow(), full.value).unwrap_or_else(|full| refused(full)).cloned()
        })
    }

    fn len(&self) -> usize {
        Tree::len(self)
    }
}

impl<Q, T, K, V> SharedDiscard<Q, K, V> for Tree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn remove(&self, key: &Q) -> Option<Handle<K, V>> {
        self.pin().remove(key.encode().borrow()).cloned()
    }
}

impl<Q, T, K, V> Scan<Q, K, V> for Tree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn scan<'p>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
    ) {
        let (from, to) = (from.map(Q::encode), to.map(Q::encode));
        show(self.pin().range_of_bytes(bytes(&from), bytes(&to)), pin, visit);
    }
}

impl<T, K, V> Walk<K, V> for Tree<T, Handle<K, V>>
where
    T: Key + ?Sized,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        let session = self.pin();
        show(session.range_of_bytes(Bound::Unbounded, Bound::Unbounded), pin, &mut |found| {
            visit(found);
            ControlFlow::Continue(())
        });
    }
}

impl<T, K, V> View for Tree<T, Handle<K, V>>
where
    T: Key + ?Sized,
    K: Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    type Shown<'t>
        = TreeView<'t, T, Handle<K, V>>
    where
        Self: 't;

    fn view(&self) -> TreeView<'_, T, Handle<K, V>> {
        TreeView::of(self)
    }
}

impl<Q, T, K, V> Find<Q, K, V> for OwnedTree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: 'static,
    V: 'static,
{
    #[inline]
    fn find<'p>(&self, key: &Q, pin: &Pin<'p>) -> Option<Found<'p, K, V>> {
        self.get(key.encode().borrow())?.found(pin)
    }

    fn find_many<'p>(
        &self,
        keys: &[&Q],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, K, V>>),
    ) {
        // What a table lets through of a group is often one.
        if let [key] = keys {
            found(0, self.find(*key, pin));
            return;
        }
        self.core.find_entries(keys, pin, found, |_| ());
    }
}

impl<T, K, V> Store<K, V> for OwnedTree<T, Handle<K, V>>
where
    T: Key + ?Sized,
    K: Encode<T> + 'static,
    V: 'static,
{
    /// # Panics
    /// If the tree is full, or the key has 2^32 - 1 bytes or more.
    fn replace(&mut self, handle: Handle<K, V>) -> Option<Handle<K, V>> {
        let share = handle.clone();
        self.insert(share.key().encode().borrow(), handle).unwrap_or_else(|full| refused(full))
    }

    fn len(&self) -> usize {
        OwnedTree::len(self)
    }
}

impl<Q, T, K, V> Discard<Q, K, V> for OwnedTree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: 'static,
    V: 'static,
{
    fn remove(&mut self, key: &Q) -> Option<Handle<K, V>> {
        OwnedTree::remove(self, key.encode().borrow())
    }
}

impl<Q, T, K, V> Scan<Q, K, V> for OwnedTree<T, Handle<K, V>>
where
    Q: Encode<T> + ?Sized,
    T: Key + ?Sized,
    K: 'static,
    V: 'static,
{
    fn scan<'p>(
        &self,
        from: Bound<&Q>,
        to: Bound<&Q>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, K, V>) -> ControlFlow<()>,
    ) {
        let (from, to) = (from.map(Q::encode), to.map(Q::encode));
        show(self.range_of_bytes(bytes(&from), bytes(&to)), pin, visit);
    }
}

impl<T, K, V> Walk<K, V> for OwnedTree<T, Handle<K, V>>
where
    T: Key + ?Sized,
    K: 'static,
    V: 'static,
{
    fn walk<'p>(&self, pin: &Pin<'p>, visit: &mut dyn FnMut(Found<'p, K, V>)) {
        let all = self.range_of_bytes(Bound::Unbounded, Bound::Unbounded);
        show(all, pin, &mut |found| {
            visit(found);
            ControlFlow::Continue(())
        });
    }
}
