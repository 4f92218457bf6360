//! Evictions, told to whoever wants to hear of them: off, it costs each eviction a look at a word.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// An item that has made way for others.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Evicted<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of its value.
    pub value_len: usize,
    /// Seconds until it would have expired, if it would.
    pub ttl: Option<u32>,
    /// Seconds since it was used last.
    pub idle: u32,
    /// Whether anybody has fetched it.
    pub fetched: bool,
    /// The number of the slab class that it was counted in.
    pub class: u8,
}

type Tell = dyn Fn(&Evicted<'_>) + Send + Sync;

/// Who is told.
#[derive(Default)]
pub(crate) struct Told {
    on: AtomicBool,
    tell: OnceLock<Box<Tell>>,
}

impl Told {
    /// Whether somebody wants to hear of evictions.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Relaxed: who wants to hear a little later has missed a little.
        self.on.load(Ordering::Relaxed)
    }

    pub(crate) fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    /// The first who asks is told.
    pub(crate) fn set(&self, tell: Box<Tell>) {
        // A second one is not: see above.
        let _ = self.tell.set(tell);
    }

    #[cold]
    pub(crate) fn tell(&self, evicted: &Evicted<'_>) {
        if let Some(tell) = self.tell.get() {
            tell(evicted);
        }
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("on", &self.on).finish_non_exhaustive()
    }
}
