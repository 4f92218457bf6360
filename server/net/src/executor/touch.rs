//! Giving a key another expiry.

use protocol::ErrorReply;

use super::Executor;

impl Executor {
    /// Gives a key another expiry, and says whether it is there. It is a use of the item as a get is, as in memcached:
    /// what is only ever touched is not the first to make way for others.
    pub(crate) fn touch(&mut self, key: &[u8], exptime: i32) -> Result<bool, ErrorReply> {
        let expiry = self.context().expiry(exptime);
        self.metrics.touches(1);
        let before = self.is_observed().then(|| (self.session.counts(), self.before_a_change(key)));
        let is_there = self.session.pin().get(key).is_some();
        let touched = if is_there { self.session.touch(key, expiry) } else { Ok(false) };
        if let Some((before, met)) = before {
            self.observe_lookup(key, met, &before);
        }
        let found = touched.map_err(|_| ErrorReply::OutOfMemory)?;
        if found {
            self.by_class.of(self.session.class_met()).touch_hits(1);
        }
        Ok(found)
    }
}
