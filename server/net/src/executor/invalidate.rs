//! Keeping a key although its value is not what it should be: as stale, for somebody to fetch it anew, or without its
//! value.

use cache::engine::{Change, Expiry, Put, StoreError, Value};

use super::{Context, Executor, Removed};

/// What is to become of a key.
pub(crate) struct Invalidation {
    /// The number that it must have.
    pub(crate) if_cas: Option<u64>,
    /// The number that it is to have.
    pub(crate) own_cas: Option<u64>,
    /// Its value goes, and it gets these flags and this expiry.
    pub(crate) emptied: Option<(u32, Expiry)>,
    /// It counts as stale, and gets this expiry if there is one.
    pub(crate) stale: Option<Option<Expiry>>,
}

impl Executor {
    /// Keeps a key, but not as it was.
    pub(crate) fn invalidate(&mut self, key: &[u8], how: &Invalidation) -> Result<Removed, StoreError> {
        let context = Context(&self.shared);
        let changed = self.session.change(key, |now, _| {
            let Some(hit) = now else { return Change::Leave(Removed::NotFound) };
            if how.if_cas.is_some_and(|cas| !context.is(hit, cas)) {
                return Change::Leave(Removed::Exists);
            }
            let put = match how.emptied {
                Some((flags, expiry)) => Put::new(Value::Given(b"")).with_flags(flags).with_expiry(expiry),
                None => Put::new(Value::Same)
                    .with_flags(hit.flags())
                    .with_expiry(hit.expiry())
                    .with_fetched(hit.was_fetched()),
            };
            // What is only emptied keeps its number.
            let kept = if how.stale.is_none() { Some(hit.cas()) } else { None };
            let put = put.with_cas(how.own_cas.or(kept));
            let put = match how.stale {
                None => put,
                Some(expiry) => put.with_expiry(expiry.unwrap_or(put.expiry)).with_stale(true),
            };
            Change::Put(put, Removed::Done)
        })?;
        match changed.result {
            Removed::Done if how.stale.is_none() => {
                self.by_class.of(self.session.class_met()).delete_hits(1);
            }
            Removed::Done => {}
            Removed::NotFound => self.metrics.delete_misses(1),
            Removed::Exists => {}
        }
        Ok(changed.result)
    }
}
