//! What a hash must be, and the mixing of those that are not.
//!
//! A table takes a key's bucket from the upper bits of its hash's lower half, its tag and its stripe from the highest
//! bits, and the number of an index takes the place of some of these. All of them must be as even as random ones, of
//! neighbouring keys, too: integers that are their own hashes all have one tag and one bucket, and of a table that took
//! them as they are they got nothing, silently.
//!
//! So a map mixes what its hasher gives, unless it is known to be even: that of the default hasher
//! ([`FoldingState`](crate::FoldingState)), of the standard library's, and of those of whom the user says so
//! ([`Hashing::avalanching`]). What is asked of a hasher is then that different keys have different hashes, nearly all
//! of them. Of 32 bits that is so for some hundred thousand keys.
//!
//! A [`Buffer`](crate::Buffer) takes hashes as they are: whoever has hashes that are not even gives them to [`mix`]
//! first. The C interface does so by itself.
//!
//! The mix is a bijection: different hashes stay different. It has no secret: against somebody who chooses keys to
//! crowd a bucket, the hasher must have one.
//!
//! Rejected: *mixing always*: a dozen instructions a hit for what the default hasher has done already; *a type
//! that wraps the hasher*, which stands in every signature that names a map.

use std::any::TypeId;
use std::fmt;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, Hasher as _};

use crate::folding::FoldingState;

/// How the keys of a map are hashed: by a hasher, whose hashes are mixed if they may need it.
///
/// Made from any hasher:
///
/// ```
/// use lookaside::{Config, Hashing, OwnedMap};
/// use std::collections::BTreeSet;
/// use std::hash::{BuildHasherDefault, Hasher};
///
/// #[derive(Default)]
/// struct Itself(u64);
/// impl Hasher for Itself {
///     fn write(&mut self, bytes: &[u8]) {
///         self.0 = bytes.iter().fold(self.0, |number, &byte| number << 8 | u64::from(byte));
///     }
///     fn finish(&self) -> u64 { self.0 }
/// }
///
/// // Mixed: equal for no two keys, but not even.
/// let hasher = BuildHasherDefault::<Itself>::default();
/// let mut map = OwnedMap::with_index_and_hasher(BTreeSet::new(), &Config::with_size(1 << 20), hasher)?;
/// map.insert(7u64, "seven");
/// assert_eq!(map.get(&7), Some(&"seven"));
/// // Used as it is.
/// let hasher = Hashing::avalanching(std::hash::RandomState::new());
/// let mut map = OwnedMap::with_index_and_hasher(BTreeSet::new(), &Config::with_size(1 << 20), hasher)?;
/// map.insert("seven", 7);
/// # Ok::<(), lookaside::CreateError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Hashing<S> {
    hasher: S,
    mixes: bool,
}

impl<S> Hashing<S> {
    /// By a hasher each bit of whose hashes depends on the whole key as in a random number, as those of foldhash,
    /// wyhash, SipHash and XXH3 do: they are used as they are. A lie costs hits.
    pub const fn avalanching(hasher: S) -> Hashing<S> {
        Hashing { hasher, mixes: false }
    }
}

/// What says how keys are hashed: a hasher, or a [`Hashing`] by one.
pub trait IntoHashing {
    /// The hasher.
    type Hasher;

    /// How keys are hashed.
    fn into_hashing(self) -> Hashing<Self::Hasher>;
}

impl<S> IntoHashing for Hashing<S> {
    type Hasher = S;

    fn into_hashing(self) -> Hashing<S> {
        self
    }
}

impl<S: BuildHasher + 'static> IntoHashing for S {
    type Hasher = S;

    /// Mixed, unless this is a hasher that is known to be even.
    fn into_hashing(self) -> Hashing<S> {
        let even = [
            TypeId::of::<FoldingState>(),
            TypeId::of::<std::hash::RandomState>(),
            TypeId::of::<BuildHasherDefault<DefaultHasher>>(),
        ];
        Hashing { hasher: self, mixes: !even.contains(&TypeId::of::<S>()) }
    }
}

impl<S> fmt::Debug for Hashing<S> {
    /// Without the hasher: it may have a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hashing").field("mixes", &self.mixes).finish_non_exhaustive()
    }
}

/// As `BuildHasher::hash_one`, mixed if need be.
#[inline(always)]
pub(crate) fn hash_of<Q: Hash + ?Sized>(hashing: &Hashing<impl BuildHasher>, key: &Q) -> u64 {
    hashing.even(hashing.hash_as_is(key))
}

impl<S> Hashing<S> {
    /// Whether hashes are to be mixed.
    pub(crate) fn mixes(&self) -> bool {
        self.mixes
    }

    /// A hash of all even bits.
    #[inline(always)]
    pub(crate) fn even(&self, hash: u64) -> u64 {
        if self.mixes { mix(hash) } else { hash }
    }

    /// As `BuildHasher::hash_one`, but always inlined: a call is a tenth of a hit.
    #[allow(clippy::manual_hash_one)]
    #[inline(always)]
    pub(crate) fn hash_as_is<Q: Hash + ?Sized>(&self, key: &Q) -> u64
    where
        S: BuildHasher,
    {
        let mut state = self.hasher.build_hasher();
        key.hash(&mut state);
        state.finish()
    }
}

/// Odd, with well-mixed bits.
const BY: u64 = 0xd6e8_feb8_6659_fd93;

/// A bijection of 64 bits of whose result every bit depends on every bit: for hashes that are to be given to a
/// [`Buffer`](crate::Buffer), and are not even.
///
/// ```
/// // Of numbers in a row, the tables' tags are the highest 16 bits.
/// let tags: std::collections::HashSet<u64> = (0..100).map(|number| lookaside::mix(number) >> 48).collect();
/// assert!(tags.len() > 95);
/// ```
#[inline(always)]
#[must_use]
pub const fn mix(hash: u64) -> u64 {
    // The form of MurmurHash3's finaliser (Appleby), with one constant and one distance, as degski found them: the
    // upper half is brought down where a multiplication carries only upwards.
    let once = (hash ^ hash >> 32).wrapping_mul(BY);
    let twice = (once ^ once >> 32).wrapping_mul(BY);
    twice ^ twice >> 32
}
