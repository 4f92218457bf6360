//! An entry becomes a leaf, and goes into the tree; or its value comes back.
//!
//! The leaf is made when it is known that it will be wanted, and where it is to lie; once, however often the tree is
//! searched anew because others change it.

#![allow(unsafe_code)]

use crate::core::Entries;
use crate::error::Exhausted;
use crate::error::{NotStored, Reason};
use crate::key::Key;
use crate::reference::Ref;
use crate::storage::Placement;
use crate::write::{Discipline, Inserted, Rule};

/// What became of an entry that was to be put in.
pub(crate) enum Stored<V> {
    /// The key is new; this is its leaf.
    New(Ref),
    /// This leaf was replaced. It has left the tree, and is the caller's to retire.
    Replaced(Ref),
    /// The rule forbade it; this is what is there, or null. The value comes back.
    Refused(Ref, V),
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// Makes a leaf and puts it in.
    #[inline]
    pub(crate) fn store<D: Discipline>(
        &self,
        key: &K,
        value: V,
        rule: Rule,
        by: &D,
    ) -> Result<Stored<V>, NotStored<V>> {
        if key.as_ref().len() >= u32::MAX as usize {
            return Err(NotStored { value, reason: Reason::KeyTooLong });
        }
        let (mut value, mut made) = (Some(value), None);
        let make = |placement: Placement<'_>| {
            if let Some(leaf) = made {
                return Ok(leaf);
            }
            let leaf =
                self.storage.new_leaf(key, value.take().expect("there is a leaf or a value"), placement);
            let leaf = leaf.map_err(|refused| {
                value = Some(refused);
                Exhausted
            })?;
            made = Some(leaf);
            Ok(leaf)
        };
        let stored = self.insert(key, make, rule, by);
        match stored {
            Ok(Inserted::New) => return Ok(Stored::New(made.expect("what is in the tree was made"))),
            Ok(Inserted::Replaced(old)) => return Ok(Stored::Replaced(old)),
            Ok(Inserted::Refused(_)) | Err(Exhausted) => {}
        }
        // SAFETY: the leaf was not published.
        let unused = made.map(|leaf| unsafe { self.storage.take_leaf(leaf) }).or(value);
        let value = unused.expect("there is a leaf or a value");
        match stored {
            Ok(Inserted::Refused(present)) => Ok(Stored::Refused(present, value)),
            _ => Err(NotStored { value, reason: Reason::Full }),
        }
    }
}
