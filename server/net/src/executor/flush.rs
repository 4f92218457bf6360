//! Forgetting everything, now or later.

use cache::engine::Housekeeper;
use protocol::Flush;

use super::Executor;

/// How far a flush has come.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    Done,
    /// It is to be asked for again, after others had their turn.
    Later,
    NotAllowed,
}

impl Executor {
    /// Forgets everything, when the delay says.
    pub(crate) fn flush_all(&mut self, delay: i32) -> Flushed {
        if !self.shared.settings.flush_allowed {
            return Flushed::NotAllowed;
        }
        let now = self.shared.time();
        let done = match protocol::flush(delay, now, self.shared.started) {
            Flush::Nothing => {
                self.shared.cache.flush_at(None);
                true
            }
            Flush::At(second) => self.flush_at(self.shared.to_second(second)),
            Flush::Now => {
                self.shared.cache.flush_at(None);
                self.sweep_and(Housekeeper::try_flush)
            }
        };
        if !done {
            return Flushed::Later;
        }
        self.metrics.flushes(1);
        Flushed::Done
    }

    /// Forgets everything that is stored up to the end of a second, from its beginning on: it may have begun.
    fn flush_at(&mut self, second: u32) -> bool {
        self.shared.cache.flush_at(Some(second));
        let now = self.shared.cache.time();
        self.sweep_and(|sweeper| sweeper.flush_due(now))
    }

    /// Flushes, or does a part of what must be done before.
    fn sweep_and(&mut self, flush: impl FnOnce(&mut Housekeeper) -> bool) -> bool {
        let cache = &self.shared.cache;
        let flushed = flush(self.sweeper.get_or_insert_with(|| cache.housekeeper()));
        if flushed {
            self.sweeper = None;
        }
        flushed
    }
}
