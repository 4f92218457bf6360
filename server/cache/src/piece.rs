//! Looking at the items of a page, a piece at a time: the class is locked for one piece, so that nobody who stores
//! waits for the whole page.

use std::ops::ControlFlow;

use crate::arena::PageNumber;
use crate::item::Item;
use crate::policy::Policy;
use crate::shared::Engine;
use crate::size_classes::ClassId;

/// Chunks of a piece.
pub(crate) const PIECE: usize = 128;

impl<P: Policy> Engine<P> {
    /// Shows the live items that begin in a piece of a page, from this chunk on, while the class that owns the page is
    /// locked; says where the next piece begins. They may be on their way into the index, or out of it.
    ///
    /// Nothing is shown of a page that does not belong to the class.
    pub(crate) fn look_at_piece(
        &self,
        owner: ClassId,
        number: PageNumber,
        from: usize,
        each: impl FnMut(Item<'_>),
    ) -> ControlFlow<(), usize> {
        let (class, page) = (self.class(owner), self.page(number));
        let state = class.lock();
        if page.owner() != Some(owner) {
            // It has changed hands, and what is there comes only now.
            return ControlFlow::Break(());
        }
        let end = (from + PIECE).min(page.fresh());
        class.items_beginning_in(&state, self.memory(), number, from..end).for_each(each);
        if end < page.fresh() { ControlFlow::Continue(end) } else { ControlFlow::Break(()) }
    }

    /// Shows all live items of a page, as [`look_at_piece`](Engine::look_at_piece) does.
    pub(crate) fn look_at_page(&self, number: PageNumber, mut each: impl FnMut(Item<'_>)) {
        let Some(owner) = self.page(number).owner() else { return };
        let mut from = 0;
        while let ControlFlow::Continue(next) = self.look_at_piece(owner, number, from, &mut each) {
            from = next;
        }
    }
}
