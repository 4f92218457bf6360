//! What a scan has still to show: queues of what comes next, and a stack of the nodes behind it.
//!
//! Queues are arrays on the cursor, each as long as what a turn wants and one node more (see [`crate::scan`] for why
//! turns, and why as many). Nothing asks for memory, and nothing is moved when the first is taken, but at most once a
//! turn. The stack holds a path's nodes, in an array as well, and beyond that in a vector for paths that are very long.
//!
//! Rejected: *a deque*: its bookkeeping is done for every entry that a scan shows.

use crate::core::Entries;
use crate::key::Key;
use crate::node::Symbol;
use crate::order::{Direction, FEW, keep};
use crate::reference::Ref;

/// What comes next, first, in an array that has room for one more node that is opened there.
pub(crate) struct Queue<const ROOM: usize> {
    pub(crate) items: [Ref; ROOM],
    /// Where what comes next lies among them, and where the room behind the last begins.
    pub(crate) next: u32,
    pub(crate) end: u32,
}

impl<const ROOM: usize> Queue<ROOM> {
    pub(crate) const EMPTY: Self = Queue { items: [Ref::NULL; ROOM], next: 0, end: 0 };

    /// Nothing, behind so much room.
    #[inline(always)]
    pub(crate) fn clear(&mut self, front: usize) {
        (self.next, self.end) = (front as u32, front as u32);
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.end
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        (self.end - self.next) as usize
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Ref> {
        if self.is_empty() {
            return None;
        }
        let item = self.items[self.next as usize];
        self.next += 1;
        Some(item)
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: Ref) {
        self.items[self.end as usize] = item;
        self.end += 1;
    }

    #[inline(always)]
    pub(crate) fn left(&self) -> &[Ref] {
        &self.items[self.next as usize..self.end as usize]
    }

    /// Room for so many.
    #[inline(always)]
    pub(crate) fn room<const MOST: usize>(&mut self) -> &mut [Ref; MOST] {
        self.items[self.end as usize..]
            .first_chunk_mut()
            .expect("queues are long enough for what a turn wants")
    }

    /// Puts so many of what comes next in another queue behind what is here: eight at a time, for there are never many,
    /// and how many cannot be predicted.
    #[inline(always)]
    pub(crate) fn take_some<const OTHER: usize>(&mut self, other: &mut Queue<OTHER>, count: u32) {
        let end = self.end + count;
        while self.end < end {
            let eight = other.items[other.next as usize..].first_chunk::<8>();
            *self.room::<8>() = *eight.expect("queues are longer than what is in them");
            other.next += 8;
            self.end += 8;
        }
        other.next -= self.end - end;
        self.end = end;
    }

    /// Puts all that is in another queue behind this one's.
    #[inline(always)]
    pub(crate) fn take_over<const OTHER: usize>(&mut self, other: &mut Queue<OTHER>) {
        let items = other.left();
        self.items[self.end as usize..][..items.len()].copy_from_slice(items);
        self.end += items.len() as u32;
        other.clear(0);
    }

    /// Puts these before what is here, if there is room.
    pub(crate) fn put_in_front(&mut self, items: &[Ref]) -> bool {
        let Some(next) = (self.next as usize).checked_sub(items.len()) else { return false };
        self.items[next..self.next as usize].copy_from_slice(items);
        self.next = next as u32;
        true
    }

    /// Moves what is here to the beginning of the room.
    #[inline(always)]
    pub(crate) fn move_up(&mut self) {
        self.items.copy_within(self.next as usize..self.end as usize, 0);
        self.end -= self.next;
        self.next = 0;
    }

    /// Opens a small node behind what is here, and asks for its children: whether there may be nodes among them.
    #[inline(always)]
    pub(crate) fn open<K: Key + ?Sized, V>(
        &mut self,
        core: &Entries<K, V>,
        direction: Direction,
        node: Ref,
        after: Symbol,
    ) -> bool {
        let room = self.room::<FEW>();
        let mut count = core.storage.node(node).few(direction, after, room);
        let mut all = u32::MAX;
        for &child in &room[..count] {
            if child.is_leaf() {
                pages::prefetch(core.storage.leaf_address(child));
            } else {
                core.fetch(child);
            }
            all &= child.bits();
        }
        let has_others = !Ref::from_bits(all).is_leaf();
        if has_others {
            let found = count;
            count = 0;
            for at in 0..found {
                let child = room[at];
                count = keep(room, count, child);
            }
        }
        self.end += count as u32;
        has_others
    }
}

/// Nodes that are still to be shown, the next last, each with the symbol behind which it is. The first are kept without
/// asking for memory; few paths are so long that there are more.
pub(crate) struct Stack {
    first: [(Ref, Symbol); Stack::FIRST],
    depth: u32,
    more: Vec<(Ref, Symbol)>,
}

impl Stack {
    pub(crate) const FIRST: usize = 12;
    pub(crate) const EMPTY: Stack =
        Stack { first: [(Ref::NULL, Symbol::BEFORE); Stack::FIRST], depth: 0, more: Vec::new() };

    pub(crate) fn clear(&mut self) {
        self.depth = 0;
        self.more.clear();
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, item: Ref, after: Symbol) {
        match self.first.get_mut(self.depth as usize) {
            Some(entry) => {
                *entry = (item, after);
                self.depth += 1;
            }
            None => self.more.push((item, after)),
        }
    }

    /// Puts these on top, the first one last.
    pub(crate) fn push_all(&mut self, items: &[Ref], after: Symbol) {
        items.iter().rev().for_each(|&item| self.push(item, after));
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<(Ref, Symbol)> {
        if let Some(entry) = self.more.pop() {
            return Some(entry);
        }
        self.depth = self.depth.checked_sub(1)?;
        Some(self.first[self.depth as usize])
    }
}
