//! Making an empty item for a key that is not there, in the name of the one who is to fetch its value.

use cache::engine::{Change, Entry, Expiry, Put, StoreError, Value};

use super::Executor;

impl Executor {
    /// Makes an empty item, which has been won, and says its number. `None` if there is one already.
    pub(crate) fn vivify(
        &mut self,
        key: &[u8],
        expiry: Expiry,
        own_cas: Option<u64>,
    ) -> Result<Option<u64>, StoreError> {
        let put = Put::new(Value::Given(b"")).with_expiry(expiry).with_cas(own_cas).with_won(true);
        let changed = self.session.change(key, |now, _| match now {
            None => Change::Put(put, ()),
            Some(_) => Change::Leave(()),
        })?;
        Ok(changed.cas)
    }

    /// Counts an item that was made for who asked as found by a get, or by a touch.
    pub(crate) fn count_vivified(&mut self, key: &[u8], unseen: bool, touches: bool) {
        let pinned = self.session.pin();
        let hit = if unseen { pinned.peek(key) } else { pinned.get(key) };
        let class = hit.map(|hit| hit.class());
        drop(pinned);
        // It may have expired as it was made.
        let class = class.unwrap_or_else(|| self.shared.cache.class_of(&Entry::new(key), 0));
        if touches {
            self.metrics.touches(1);
            self.by_class.of(class).touch_hits(1);
        } else {
            self.metrics.gets(1);
            self.by_class.of(class).get_hits(1);
        }
    }
}
