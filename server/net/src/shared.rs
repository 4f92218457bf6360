//! What all threads of a server share: the cache, the settings, the clock, and the counts that few writes go to.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use atomics::Registry;
use cache::engine::Cache;
use mio::Waker;
use parking_lot::Mutex;
use tracing::warn;

use crate::buffers::Buffers;
use crate::connections::Connections;
use crate::counted::Counted;
use crate::crawling::Crawling;
use crate::detail::AllPrefixes;
use crate::metrics::{ByClass, Metrics};
use crate::settings::Settings;
use crate::tuning::Tuning;
use crate::watch::Watch;

/// What the cache's clock shows as the server starts. It has 32 bits, so it counts from there, as memcached's does:
/// Unix time does not fit from 2106 on. Second 1, and not 0, so that there is one that has passed by then.
const FIRST_SECOND: u32 = 1;
/// The last second that the cache's clock shows. What is said to expire later, at the next one, then never does.
const LAST_SECOND: u32 = u32::MAX - 1;

/// The most that `verbosity` asks for.
const MOST_VERBOSE: u32 = 2;

/// What all threads share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) cache: Cache,
    pub(crate) metrics: Arc<Registry<Metrics>>,
    pub(crate) by_class: Arc<Registry<ByClass>>,
    /// Unix time of the start, in seconds.
    pub(crate) started: u64,
    pub(crate) stop: AtomicBool,
    /// Who is to hear of it if a thread ends before its time.
    pub(crate) when_broken: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) tuning: Tuning,
    pub(crate) watch: Arc<Watch>,
    pub(crate) prefixes: AllPrefixes,
    pub(crate) crawling: Arc<Crawling>,
    pub(crate) buffers: Arc<Buffers>,
    /// By which threads are woken to see that they are to stop.
    pub(crate) wakers: Mutex<Vec<Arc<Waker>>>,
    /// What had been counted at the last `stats reset`.
    pub(crate) baseline: Mutex<Counted>,
}

impl Shared {
    /// `started` is the Unix time, in seconds, that is shown by the clock from here on until [`Shared::set_time`].
    pub(crate) fn new(settings: Settings, cache: Cache, started: u64) -> Self {
        cache.set_time(FIRST_SECOND);
        let watch = Arc::<Watch>::default();
        watch.hear_of_evictions(&cache);
        watch.switch_detail(settings.detail.enabled);
        watch.set_verbosity(settings.verbosity);
        Shared {
            started,
            cache,
            metrics: Arc::default(),
            by_class: Arc::default(),
            stop: AtomicBool::new(false),
            when_broken: OnceLock::new(),
            connections: Arc::default(),
            tuning: Tuning::new(&settings),
            watch,
            prefixes: AllPrefixes::new(settings.detail.delimiter),
            crawling: Arc::default(),
            buffers: Arc::new(Buffers::new(settings.read_buffers)),
            wakers: Mutex::default(),
            baseline: Mutex::default(),
            settings,
        }
    }

    /// Sets the clock to this Unix time in seconds.
    pub(crate) fn set_time(&self, unix: u64) {
        self.cache.set_time(self.to_second(unix).min(LAST_SECOND));
    }

    /// The Unix time that the clock shows.
    pub(crate) fn time(&self) -> u64 {
        self.started + u64::from(self.cache.time() - FIRST_SECOND)
    }

    /// A Unix time by the cache's clock: the start, if it was before; the end of all time, if it is later than that.
    pub(crate) fn to_second(&self, unix: u64) -> u32 {
        let since = u32::try_from(unix.saturating_sub(self.started)).unwrap_or(u32::MAX);
        since.saturating_add(FIRST_SECOND)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        // Relaxed: whoever stops the server wakes everybody afterwards, through the kernel.
        self.stop.load(Ordering::Relaxed)
    }

    /// The Unix time of a second of the cache's clock.
    pub(crate) fn unix_time_of(&self, second: u32) -> u64 {
        (self.started + u64::from(second)).saturating_sub(u64::from(FIRST_SECOND))
    }

    /// Logs more or less from now on, as a client has asked for: as much as `-vv` at the most, as with memcached.
    pub(crate) fn set_verbosity(&self, level: u32) {
        let level = level.min(MOST_VERBOSE);
        self.tuning.set_verbosity(level);
        self.watch.set_verbosity(level);
        // The thread that writes the lines sleeps for as long as nobody looks on.
        self.wake_all();
    }

    fn wake_all(&self) {
        for waker in self.wakers.lock().iter() {
            if let Err(error) = waker.wake() {
                warn!(%error, "a thread could not be woken");
            }
        }
    }

    /// Has all threads end, as a client has asked for, and tells whoever waits for the server to end.
    pub(crate) fn shut_down(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake_all();
        // Pairs with the fence of `when_broken`.
        fence(Ordering::SeqCst);
        if let Some(tell) = self.when_broken.get() {
            tell();
        }
    }
}

/// Seconds since the beginning of 1970, as the machine's clock was when this was first asked for and steadily from then
/// on: a clock that is set meanwhile neither kills items nor keeps them.
pub(crate) fn unix_time() -> u64 {
    static FIRST: OnceLock<(Duration, Instant)> = OnceLock::new();
    let (then, since) = FIRST
        .get_or_init(|| (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), Instant::now()));
    (*then + since.elapsed()).as_secs()
}
