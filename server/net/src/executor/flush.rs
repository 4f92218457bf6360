//! Forgetting everything, now or later.

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
        match protocol::flush(delay, now, self.shared.started) {
            Flush::Nothing => self.shared.cache.flush_at(None),
            Flush::At(second) if second > now => {
                self.shared.cache.flush_at(Some(self.shared.to_second(second)));
            }
            Flush::Now | Flush::At(_) => {
                if !self.flush() {
                    return Flushed::Later;
                }
            }
        }
        self.metrics.flushes(1);
        Flushed::Done
    }

    /// Flushes, or does a part of what must be done before.
    fn flush(&mut self) -> bool {
        let shared = &self.shared;
        shared.cache.flush_at(None);
        let flushed = self.sweeper.get_or_insert_with(|| shared.cache.housekeeper()).try_flush();
        if flushed {
            self.sweeper = None;
        }
        flushed
    }
}
