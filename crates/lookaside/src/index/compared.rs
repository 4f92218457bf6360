//! Handles in the standard library's sets, looked up by what is no key, but can be compared with one: [`Equivalent`]
//! and [`Comparable`].
//!
//! The sets look up only by what their elements can be borrowed as, and a pair of a `String` and a number cannot be
//! borrowed as one of a `&str` and a number: there is no such pair to point to. So a handle is borrowed as an object
//! that says which side of a comparison it is, and what is sought is one that says the other.
//!
//! For each type of what is sought there is a trait of its own, so that the compiler has one implementor on either side
//! and calls it directly: a key that is borrowed is looked up as quickly as it would be without this.
//!
//! Rejected: *a word that is a handle, or the tagged address of what is sought*, which wants unsafe code and a branch a
//! comparison; *one trait for whatever is sought*, whose hash would go by a `dyn Hasher`.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use equivalent::{Comparable, Equivalent};

use crate::entry::Handle;

/// A side of a comparison.
pub(super) enum Side<'s, Q: ?Sized, K> {
    /// The key of a handle.
    Stored(&'s K),
    /// What is sought.
    Sought(&'s Q),
}

/// What is either side: a handle, or what handles are looked up by.
pub(super) trait Compared<Q: ?Sized, K> {
    fn side(&self) -> Side<'_, Q, K>;
}

impl<Q: ?Sized, K, V> Compared<Q, K> for Handle<K, V> {
    #[inline(always)]
    fn side(&self) -> Side<'_, Q, K> {
        Side::Stored(self.key())
    }
}

impl<Q: ?Sized, K> Compared<Q, K> for &Q {
    #[inline(always)]
    fn side(&self) -> Side<'_, Q, K> {
        Side::Sought(self)
    }
}

impl<'q, Q: ?Sized + 'q, K, V> Borrow<dyn Compared<Q, K> + 'q> for Handle<K, V> {
    #[inline(always)]
    fn borrow(&self) -> &(dyn Compared<Q, K> + 'q) {
        self
    }
}

impl<Q: Equivalent<K> + ?Sized, K: Eq> PartialEq for dyn Compared<Q, K> + '_ {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.side(), other.side()) {
            (Side::Sought(sought), Side::Stored(key)) | (Side::Stored(key), Side::Sought(sought)) => {
                sought.equivalent(key)
            }
            (Side::Stored(one), Side::Stored(other)) => one == other,
            // The sets compare what is sought with what they have, and not with itself.
            (Side::Sought(_), Side::Sought(_)) => true,
        }
    }
}

impl<Q: Equivalent<K> + ?Sized, K: Eq> Eq for dyn Compared<Q, K> + '_ {}

impl<Q: Comparable<K> + ?Sized, K: Ord> PartialOrd for dyn Compared<Q, K> + '_ {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<Q: Comparable<K> + ?Sized, K: Ord> Ord for dyn Compared<Q, K> + '_ {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.side(), other.side()) {
            (Side::Sought(sought), Side::Stored(key)) => sought.compare(key),
            (Side::Stored(key), Side::Sought(sought)) => sought.compare(key).reverse(),
            (Side::Stored(one), Side::Stored(other)) => one.cmp(other),
            // As in `eq`.
            (Side::Sought(_), Side::Sought(_)) => Ordering::Equal,
        }
    }
}

impl<Q: Hash + ?Sized, K: Hash> Hash for dyn Compared<Q, K> + '_ {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.side() {
            Side::Stored(key) => key.hash(state),
            Side::Sought(sought) => sought.hash(state),
        }
    }
}
