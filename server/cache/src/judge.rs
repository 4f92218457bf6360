//! Who is dead: what those go by who take items out unasked.

use crate::flush::Flushes;
use crate::item::Item;

/// Says which of the items that are found live are dead, to those who take them out.
///
/// An item of another generation than the current one is dead only if the current one is looked at *after* the item was
/// found: who keeps an older one in mind, and loses its core or waits for a lock meanwhile, takes what was stored after
/// a flush for what it has flushed. Found by the acquire of its mark, the item was finished by somebody who had seen
/// its generation; so what is loaded then is that one or a later one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) now: u32,
    pub(crate) flushes: &'a Flushes,
}

impl Judge<'_> {
    /// Whether nobody who comes now can get the item any more.
    #[inline]
    pub(crate) fn is_dead(self, item: Item<'_>) -> bool {
        item.generation() != self.flushes.generation() || item.expiry().has_passed(self.now)
    }
}
