//! Giving a key another expiry.

use protocol::{ErrorReply, Key, reply};

use super::{Executor, answer};
use crate::output::Output;

impl Executor {
    /// Gives a key another expiry.
    pub(super) fn touch(&mut self, key: Key<'_>, exptime: i32, noreply: bool, output: &mut Output) {
        let expiry = self.expiry(exptime);
        self.metrics.touches(1);
        let before = self.is_observed().then(|| (self.session.counts(), self.before_a_change(&key)));
        let touched = self.session.touch(&key, expiry);
        if let Some((before, met)) = before {
            self.observe_lookup(&key, met, &before);
        }
        match touched {
            Ok(found) => {
                if found {
                    self.by_class.of(self.session.class_met()).touch_hits(1);
                }
                answer(output, noreply, if found { reply::TOUCHED } else { reply::NOT_FOUND });
            }
            Err(_) => answer(output, noreply, ErrorReply::OutOfMemory.bytes()),
        }
    }
}
