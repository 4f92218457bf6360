//! What commands can change while the server runs: `lru`, `lru_crawler`, `slabs automove` and `verbosity`.
//!
//! memcached's segmented LRU, its crawler and its page mover do not exist here: one clock chooses who goes, pages
//! follow the load by themselves, and housekeeping removes what has expired. So most of these numbers are kept for one
//! purpose, that `stats settings` shows what an operator has set. Two have an effect: a crawler that is disabled lists
//! no keys, and its sleep is how long a listing rests between a thousand items.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::settings::Settings;

/// Items that a listing writes between two rests.
pub(crate) const ITEMS_BETWEEN_RESTS: usize = 1000;

/// The numbers of `lru`, as memcached starts with them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lru {
    pub(crate) segmented: bool,
    pub(crate) hot_percent: u32,
    pub(crate) warm_percent: u32,
    pub(crate) hot_factor: f64,
    pub(crate) warm_factor: f64,
    /// Seconds; below this, an item counts as temporary. `None`: no item does.
    pub(crate) temporary: Option<u32>,
}

impl Lru {
    fn new(settings: &Settings) -> Self {
        Lru {
            segmented: true,
            hot_percent: settings.asked("hot_lru_pct").unwrap_or(20),
            warm_percent: settings.asked("warm_lru_pct").unwrap_or(40),
            hot_factor: settings.asked("hot_max_factor").unwrap_or(0.2),
            warm_factor: settings.asked("warm_max_factor").unwrap_or(2.0),
            temporary: settings.asked("temporary_ttl"),
        }
    }
}

/// The numbers of `slabs automove`, as memcached starts with them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Automove {
    pub(crate) level: u32,
    pub(crate) ratio: f64,
    pub(crate) window: u32,
    pub(crate) free_ratio: f64,
}

impl Automove {
    fn new(settings: &Settings) -> Self {
        let level = match settings.asked_for("slab_automove") {
            Some(false) => 0,
            _ => settings.asked("slab_automove").unwrap_or(1),
        };
        Automove {
            level,
            ratio: settings.asked("slab_automove_ratio").unwrap_or(0.8),
            window: settings.asked("slab_automove_window").unwrap_or(30),
            free_ratio: settings.asked("slab_automove_freeratio").unwrap_or(0.01),
        }
    }
}

/// All of it.
pub(crate) struct Tuning {
    verbosity: AtomicU32,
    crawler: AtomicBool,
    /// Microseconds.
    crawler_sleep: AtomicU32,
    crawler_most: AtomicU32,
    pub(crate) lru: Mutex<Lru>,
    pub(crate) automove: Mutex<Automove>,
}

impl Tuning {
    /// memcached's numbers, and what the settings say.
    pub(crate) fn new(settings: &Settings) -> Self {
        Tuning {
            verbosity: AtomicU32::new(settings.verbosity),
            crawler: AtomicBool::new(settings.lru_crawler),
            crawler_sleep: AtomicU32::new(settings.lru_crawler_sleep),
            crawler_most: AtomicU32::new(settings.asked("lru_crawler_tocrawl").unwrap_or(0)),
            lru: Mutex::new(Lru::new(settings)),
            automove: Mutex::new(Automove::new(settings)),
        }
    }

    /// How much is logged, to show it.
    pub(crate) fn set_verbosity(&self, level: u32) {
        // Relaxed, as all of these: numbers that order nothing.
        self.verbosity.store(level, Ordering::Relaxed);
    }

    pub(crate) fn verbosity(&self) -> u32 {
        self.verbosity.load(Ordering::Relaxed)
    }

    /// Whether keys may be listed.
    pub(crate) fn has_crawler(&self) -> bool {
        self.crawler.load(Ordering::Relaxed)
    }

    /// Switches the crawler; false if it was that already.
    pub(crate) fn switch_crawler(&self, on: bool) -> bool {
        self.crawler.swap(on, Ordering::Relaxed) != on
    }

    pub(crate) fn set_crawler_sleep(&self, microseconds: u32) {
        self.crawler_sleep.store(microseconds, Ordering::Relaxed);
    }

    /// How long a listing rests between [`ITEMS_BETWEEN_RESTS`].
    pub(crate) fn crawler_sleep(&self) -> Duration {
        Duration::from_micros(self.crawler_sleep.load(Ordering::Relaxed).into())
    }

    pub(crate) fn set_crawler_most(&self, items: u32) {
        self.crawler_most.store(items, Ordering::Relaxed);
    }

    pub(crate) fn crawler_most(&self) -> u32 {
        self.crawler_most.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuning").finish_non_exhaustive()
    }
}
