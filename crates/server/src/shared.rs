//! What all threads of a server share: the cache, the settings, and the counts that few writes go to.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use atomics::Registry;
use cache::Cache;
use parking_lot::Mutex;

use crate::metrics::{Metrics, Sums};
use crate::settings::Settings;

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) cache: Cache,
    pub(crate) metrics: Arc<Registry<Metrics>>,
    /// Unix time of the start, in seconds.
    pub(crate) started: u64,
    pub(crate) stop: AtomicBool,
    /// Who is to hear of it if a thread ends before its time.
    pub(crate) when_broken: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// Connections open now. Changed when one comes or goes, never on a request.
    pub(crate) connections: AtomicUsize,
    pub(crate) connections_in_all: AtomicU64,
    pub(crate) connections_rejected: AtomicU64,
    verbosity: AtomicU32,
    /// What had been counted at the last `stats reset`.
    pub(crate) baseline: Mutex<(Sums, cache::Counts)>,
}

impl Shared {
    /// The time that the cache has been told is that of the start.
    pub(crate) fn new(settings: Settings, cache: Cache) -> Self {
        Shared {
            started: cache.time().into(),
            settings,
            cache,
            metrics: Arc::default(),
            stop: AtomicBool::new(false),
            when_broken: OnceLock::new(),
            connections: AtomicUsize::new(0),
            connections_in_all: AtomicU64::new(0),
            connections_rejected: AtomicU64::new(0),
            verbosity: AtomicU32::new(0),
            baseline: Mutex::default(),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: whoever stops the server wakes everybody afterwards, through the kernel.
        self.stop.load(Ordering::Relaxed)
    }

    /// How much clients have asked to be logged. It is shown in `stats settings` and changes nothing: what is logged is
    /// the operator's to say.
    pub(crate) fn set_verbosity(&self, level: u32) {
        self.verbosity.store(level.min(2), Ordering::Relaxed);
    }

    pub(crate) fn verbosity(&self) -> u32 {
        self.verbosity.load(Ordering::Relaxed)
    }
}

/// Seconds since the beginning of 1970, as the machine's clock was when this was first asked for and steadily from then on:
/// a clock that is set meanwhile neither kills items nor keeps them.
pub(crate) fn unix_time() -> u64 {
    static FIRST: OnceLock<(Duration, Instant)> = OnceLock::new();
    let (then, since) = FIRST
        .get_or_init(|| (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now()));
    (*then + since.elapsed()).as_secs()
}
