//! Removing a key.

use cache::engine::Change;

use super::{Context, Executor};
use crate::watch::Command;

/// What has become of a key that was to go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removed {
    Done,
    NotFound,
    /// It has another number.
    Exists,
}

impl Executor {
    /// Removes a key, if it has this number; `by` is told to those who watch. One that has another number is not
    /// counted.
    pub(crate) fn remove(&mut self, key: &[u8], if_cas: Option<u64>, by: Command) -> Removed {
        let met = if self.is_observed() { self.observe_target(key) } else { None };
        let removed = match if_cas {
            None if self.session.delete(key) => Removed::Done,
            None => Removed::NotFound,
            Some(cas) => {
                let context = Context(&self.shared);
                let changed = self.session.change(key, |now, _| match now {
                    None => Change::Leave(Removed::NotFound),
                    Some(hit) if context.is(hit, cas) => Change::Remove(Removed::Done),
                    Some(_) => Change::Leave(Removed::Exists),
                });
                // Nothing is stored, so nothing can be short.
                changed.map_or(Removed::NotFound, |changed| changed.result)
            }
        };
        match removed {
            Removed::Done => self.by_class.of(self.session.class_met()).delete_hits(1),
            Removed::NotFound => self.metrics.delete_misses(1),
            Removed::Exists => {}
        }
        if self.is_observed() {
            self.observe_delete(key, by, met.filter(|_| removed == Removed::Done));
        }
        removed
    }
}
