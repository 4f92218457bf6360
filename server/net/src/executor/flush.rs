//! Forgetting everything, now or later.

use protocol::{Flush, reply};

use super::{After, Executor, answer};
use crate::output::Output;

impl Executor {
    /// Forgets everything, when the delay says.
    pub(super) fn flush_all(&mut self, delay: i32, noreply: bool, output: &mut Output) -> After {
        let now = self.now();
        match protocol::flush(delay, now, self.shared.started) {
            Flush::Nothing => self.shared.cache.flush_at(None),
            Flush::At(second) if second > now => {
                self.shared.cache.flush_at(Some(self.shared.to_second(second)));
            }
            Flush::Now | Flush::At(_) => {
                if !self.flush() {
                    return After::Later;
                }
            }
        }
        self.metrics.flushes(1);
        answer(output, noreply, reply::OK);
        After::GoOn
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
