//! What a write gives back: an entry that is in its map no more.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::atomic::Ordering;

use super::found::Entry;
use super::handle::{Handle, leave};
use super::reclaim::Reclaimer;
use super::slab::Cut;
use super::word::Word;

/// An entry that has been taken out of a map, or replaced. Its value can be read as long as one likes.
#[derive(Debug)]
pub struct Removed<K: 'static, V: 'static>(pub(crate) Handle<K, V>);

impl<K, V> Removed<K, V> {
    /// Its key.
    #[must_use]
    pub fn key(&self) -> &K {
        self.0.key()
    }
}

impl<K, V> Removed<K, V> {
    /// The key and the value themselves, if nobody else can see them any more. Behind a map that threads share that is
    /// when all have left who were pinned when the entry was taken out, and memory was collected since; of an
    /// [`OwnedMap`](crate::OwnedMap) it is always, unless the index has one of its handles still.
    ///
    /// ```
    /// let mut map = lookaside::OwnedMap::<String, String>::new();
    /// map.insert("rome".to_string(), "eternal".to_string());
    /// let removed = map.remove("rome").unwrap();
    /// assert_eq!(removed.try_unwrap().unwrap(), ("rome".to_string(), "eternal".to_string()));
    /// ```
    ///
    /// # Errors
    /// This, if somebody may see it.
    pub fn try_unwrap(self) -> Result<(K, V), Self> {
        let entry = self.0.entry();
        // Acquire as in `Handle::drop`.
        let word = entry.word.load(Ordering::Acquire);
        if Word::handles(word) != 1 || !Word::is_forgotten(word) {
            return Err(self);
        }
        let entry = ManuallyDrop::new(self).0.0;
        // SAFETY: the only handle, of an entry that is in no table and that nobody can see: the key and the value are
        // read once, and the place given back without them.
        unsafe {
            leave::<K, V>(entry.as_ptr().expose_provenance());
            let (key, value) =
                ((&raw const (*entry.as_ptr()).key).read(), (&raw const (*entry.as_ptr()).value).read());
            Reclaimer::give_back(entry.as_ptr().cast(), Cut::of::<Entry<K, V>>());
            Ok((key, value))
        }
    }

    /// The value: itself if nobody else can see it any more ([`Removed::try_unwrap`]), else a clone.
    #[must_use]
    pub fn into_value(self) -> V
    where
        V: Clone,
    {
        self.try_unwrap().map_or_else(|shared| V::clone(&shared), |(_, value)| value)
    }
}

impl<K, V> Deref for Removed<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        self.0.value()
    }
}
