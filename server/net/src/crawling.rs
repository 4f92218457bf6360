//! That items are listed by a crawler, of which there is one at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Whether a crawler is under way, of which there is one at a time, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Crawling {
    busy: AtomicBool,
    begun: AtomicU64,
}

impl Crawling {
    /// Begins, unless one is under way.
    pub(crate) fn begin(self: &Arc<Self>) -> Option<Crawl> {
        // Relaxed, as all of these: they order nothing.
        if self.busy.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        Some(Crawl(self.clone()))
    }

    /// Whether one is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// How many were begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }
}

/// That a crawler is under way, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Crawl(Arc<Crawling>);

impl Drop for Crawl {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Relaxed);
    }
}
