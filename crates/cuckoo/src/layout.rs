//! How a bucket lies in memory, and where its version word is.
//!
//! | layout | bucket | tag | version | bytes a slot |
//! |---|---|---|---|---|
//! | [`FourWay`] | 4 slots, half a line: the paper's | 1 byte | 8192 striped words | 8 |
//! | [`SevenWay`] | 7 slots, one line | 14 bits | in the bucket | 9.14 |
//! | [`EightWay`] | 8 slots, one line | 14 bits | 8192 striped words | 8 |
//!
//! The paper keeps its 1-byte tags beside 8-byte pointers, 9 bytes a slot (Table 2: 1152 MB for 134 M slots). Pointers
//! of 48 bits leave room for the tag inside the word, so that a slot is read and written whole and costs a byte less.
//!
//! The trade between the two line-sized layouts: eight slots are denser and fill further, but their readers also load
//! two stripes, which writers to other buckets keep changing; seven slots keep the version where the reader is looking
//! anyway. Which wins is measured (research/experiments/memc3-layouts.toml) and the winner is [`crate::Table`]'s
//! default.

use crate::slot::Word;
use crate::version::Version;
use atomics::{AtomicU64, Ordering};

/// A way to lay out buckets. Sealed: the protocol of [`crate::version`] rests on how the three here behave.
pub trait Layout: sealed::Sealed {
    /// The layout's name in options and reports.
    const NAME: &'static str;
    /// Slots in a bucket.
    const SLOTS: usize;
    /// Bits in a tag.
    const TAG_BITS: u32;
    /// Bytes of a bucket.
    const BUCKET_BYTES: usize;
}

pub(crate) mod sealed {
    use super::*;

    pub trait Sealed: 'static {
        /// A bucket; zero bytes are an empty, unlocked one.
        type Bucket: Bucket;
        /// Version words kept beside the buckets: a power of two, or none where the bucket holds its own.
        const STRIPES: usize;
    }

    #[cfg(not(loom))]
    pub trait Bucket: Send + Sync + pages::Zeroed {
        const SLOTS: usize;
        fn slots(&self) -> &[SlotCell];
        fn version(&self) -> Option<&Version>;
    }

    #[cfg(loom)]
    pub trait Bucket: Send + Sync + Default {
        const SLOTS: usize;
        fn slots(&self) -> &[SlotCell];
        fn version(&self) -> Option<&Version>;
    }
}

pub(crate) use sealed::Bucket;

/// The buckets of a table: they read as zero until they are written, and cost nothing until then.
#[cfg(not(loom))]
pub(crate) type Buckets<B> = pages::Array<B>;
/// The model has no pages: buckets are made one by one.
#[cfg(loom)]
pub(crate) type Buckets<B> = Box<[B]>;

/// One slot in memory.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SlotCell(AtomicU64);

// SAFETY: one atomic integer, for which zero is a value: the empty word.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl pages::Zeroed for SlotCell {}

impl SlotCell {
    #[inline]
    pub(crate) fn load(&self) -> Word {
        // pairs with the release in `store`: who sees a location sees the entry behind it, and who sees a cleared slot
        // sees the version that was raised before.
        Word(self.0.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn store(&self, word: Word) {
        // pairs with the acquire in `load`.
        self.0.store(word.0, Ordering::Release);
    }
}

/// A number of slots, if buckets can have so many: a set of slots is a byte for each of a key's two buckets. Another
/// one does not compile.
const fn slots(of_a_bucket: usize) -> usize {
    assert!(of_a_bucket >= 1 && of_a_bucket <= 8, "a bucket has 1 to 8 slots");
    of_a_bucket
}

/// Buckets of `S` slots, 1 to 8, that hold their own version word.
#[derive(Debug)]
pub struct Inline<const S: usize>;

/// Buckets of `S` slots, 1 to 8, and nothing else, with tags of `T` bits, 1 to 14; version words are striped beside
/// them.
#[derive(Debug)]
pub struct Striped<const S: usize, const T: u32>;

/// The paper's bucket: four slots, 1-byte tags, 8192 striped versions.
pub type FourWay = Striped<4, 8>;
/// A line that holds seven slots and its own version.
pub type SevenWay = Inline<7>;
/// A line of eight slots, 8192 striped versions.
pub type EightWay = Striped<8, 14>;
/// The layout that measured best.
pub type DefaultLayout = SevenWay;

#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct InlineBucket<const S: usize> {
    version: Version,
    _unused: u32,
    slots: [SlotCell; S],
}

#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct StripedBucket<const S: usize> {
    slots: [SlotCell; S],
}

#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<InlineBucket<7>>() == 64);
    assert!(size_of::<StripedBucket<8>>() == 64);
    assert!(size_of::<StripedBucket<4>>() == 32);
};

// SAFETY: a version word, an integer, and slots, for all of which zero bytes are a value.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl<const S: usize> pages::Zeroed for InlineBucket<S> {}
// SAFETY: slots, for which zero bytes are a value.
#[cfg(not(loom))]
#[allow(unsafe_code)]
unsafe impl<const S: usize> pages::Zeroed for StripedBucket<S> {}

#[cfg(loom)]
impl<const S: usize> Default for InlineBucket<S> {
    fn default() -> Self {
        InlineBucket {
            version: Version::default(),
            _unused: 0,
            slots: std::array::from_fn(|_| SlotCell::default()),
        }
    }
}

#[cfg(loom)]
impl<const S: usize> Default for StripedBucket<S> {
    fn default() -> Self {
        StripedBucket { slots: std::array::from_fn(|_| SlotCell::default()) }
    }
}

impl<const S: usize> Bucket for InlineBucket<S> {
    const SLOTS: usize = S;

    #[inline(always)]
    fn slots(&self) -> &[SlotCell] {
        &self.slots
    }

    #[inline(always)]
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

impl<const S: usize> Bucket for StripedBucket<S> {
    const SLOTS: usize = S;

    #[inline(always)]
    fn slots(&self) -> &[SlotCell] {
        &self.slots
    }

    #[inline(always)]
    fn version(&self) -> Option<&Version> {
        None
    }
}

impl<const S: usize> sealed::Sealed for Inline<S> {
    type Bucket = InlineBucket<S>;
    const STRIPES: usize = 0;
}

impl<const S: usize, const T: u32> sealed::Sealed for Striped<S, T> {
    type Bucket = StripedBucket<S>;
    // The paper's number: it fits the first-level cache, and two keys rarely share one (section 3.2.1).
    const STRIPES: usize = if cfg!(loom) { 2 } else { 8192 };
}

impl<const S: usize> Layout for Inline<S> {
    const NAME: &'static str = if S == 7 { "seven-way" } else { "inline" };
    const SLOTS: usize = slots(S);
    const TAG_BITS: u32 = 14;
    const BUCKET_BYTES: usize = 8 * (S + 1);
}

impl<const S: usize, const T: u32> Layout for Striped<S, T> {
    const NAME: &'static str = match (S, T) {
        (4, 8) => "four-way",
        (8, 14) => "eight-way",
        _ => "striped",
    };
    const SLOTS: usize = slots(S);
    const TAG_BITS: u32 = {
        assert!(T >= 1 && T <= 14, "a tag has 1 to 14 bits");
        T
    };
    const BUCKET_BYTES: usize = 8 * S;
}
