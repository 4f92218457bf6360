//! Removing a key.

use protocol::{Key, reply};

use super::{Executor, answer};
use crate::output::Output;
use crate::watch::Command;

impl Executor {
    /// Removes a key.
    pub(super) fn remove(&mut self, key: Key<'_>, noreply: bool, output: &mut Output) {
        let met = if self.is_observed() { self.before_a_change(&key) } else { None };
        let deleted = self.session.delete(&key);
        if self.is_observed() {
            self.observe_delete(&key, Command::Delete, met.filter(|_| deleted));
        }
        if deleted {
            self.by_class.of(self.session.class_met()).delete_hits(1);
        } else {
            self.metrics.delete_misses(1);
        }
        answer(output, noreply, if deleted { reply::DELETED } else { reply::NOT_FOUND });
    }
}
