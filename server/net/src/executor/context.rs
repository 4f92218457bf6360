//! What a request is understood by: the time, and what clients are told.

use cache::engine::{Expiry, Hit};

use crate::shared::Shared;

/// The seconds of one step of the clock by which the cache notes when items are used.
const GRAIN: u32 = 4;

/// What a request is understood by. Replies are written while a session is in use, so it stands by itself.
#[derive(Clone, Copy)]
pub(crate) struct Context<'s>(pub(super) &'s Shared);

impl Context<'_> {
    /// The cache's second in which something expires that a client wants to in `exptime`.
    pub(crate) fn expiry(self, exptime: i32) -> Expiry {
        if exptime == 0 {
            return Expiry::Never;
        }
        self.second(protocol::expiry(exptime, self.0.time(), self.0.started))
    }

    /// The same for a client of the binary protocol.
    pub(crate) fn binary_expiry(self, exptime: u32) -> Expiry {
        self.second(protocol::binary_expiry(exptime, self.0.time(), self.0.started))
    }

    fn second(self, expiry: protocol::Expiry) -> Expiry {
        match expiry {
            protocol::Expiry::Never => Expiry::Never,
            protocol::Expiry::Already => Expiry::At(1),
            protocol::Expiry::At(second) => Expiry::At(self.0.to_second(second)),
        }
    }

    /// Seconds until then, if it comes.
    pub(crate) fn ttl(self, expiry: Expiry) -> Option<u64> {
        match expiry {
            Expiry::Never => None,
            Expiry::At(second) => Some(u64::from(second.saturating_sub(self.0.cache.time()))),
        }
    }

    /// Seconds since an item was last used, and up to three less: the cache keeps every fourth, and what has just been
    /// used is not to seem older.
    pub(crate) fn idle(self, hit: &Hit<'_>) -> u64 {
        u64::from(self.0.cache.time().saturating_sub(hit.last_access()).saturating_sub(GRAIN - 1))
    }

    /// The number of an item as clients are told it.
    #[inline]
    pub(crate) fn cas(self, hit: &Hit<'_>) -> u64 {
        if self.0.settings.cas_disabled { 0 } else { hit.cas() }
    }

    /// The same of a number that a store has told.
    pub(crate) fn told(self, cas: u64) -> u64 {
        if self.0.settings.cas_disabled { 0 } else { cas }
    }

    /// Whether an item is the one that a client means by this number.
    pub(crate) fn is(self, hit: &Hit<'_>, cas: u64) -> bool {
        self.0.settings.cas_disabled || hit.cas() == cas
    }
}
