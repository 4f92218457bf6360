//! Keys in order.
//!
//! A cursor has two queues of what comes next, and behind them a stack of nodes with the symbol behind which they are still
//! to be shown. Nothing is locked: what was in the tree from the beginning of the scan to its end is shown, once, in order;
//! what came or went meanwhile may be shown or not. (A node that has been replaced under the cursor still shows what it
//! held then: see [`crate::lock`].)
//!
//! To begin at a key, the cursor follows it down. Where bytes were skipped, the node does not know them, and any leaf below
//! it tells whether all of its keys lie before the bound, or behind it, or go on agreeing with it.
//!
//! The queues are what makes scans fast. Leaves and small nodes join the far one when they are found in a large node, and are
//! asked for. When they move on to the near one they have come: a small node gives its place to its children, which are
//! asked for in turn. What leaves the near queue is shown. Both are short at first, for those who want few.
//!
//! Rejected: *a stack alone*, on which the children of a large node are put some at a time: each time they are used up
//! there is nothing under way.

use std::borrow::Cow;
use std::cmp::Ordering as Order;
use std::collections::VecDeque;
use std::ops::Bound;

use crate::core::Core;
use crate::key::Key;
use crate::node::{Kind, Symbol};
use crate::reference::Ref;

/// A direction to walk in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

impl Direction {
    /// Before all symbols, in this direction.
    fn outset(self) -> Symbol {
        match self {
            Direction::Up => Symbol::BEFORE,
            Direction::Down => Symbol::AFTER,
        }
    }

    /// Whether one symbol comes before another.
    fn precedes(self, one: Symbol, other: Symbol) -> bool {
        match self {
            Direction::Up => one < other,
            Direction::Down => one > other,
        }
    }

    /// Whether a subtree or leaf that compares so with a bound lies behind it, as one walks.
    fn is_ahead(self, subtree: Order) -> bool {
        match self {
            Direction::Up => subtree == Order::Greater,
            Direction::Down => subtree == Order::Less,
        }
    }
}

/// Items in the near queue, and as many again in the far one: at first, and at most.
const AHEAD: (usize, usize) = (2, 24);

/// A place between two keys.
struct Cursor<'c, K: Key + ?Sized, V> {
    core: &'c Core<K, V>,
    direction: Direction,
    /// What comes next, first: leaves, and now and then a node.
    near: VecDeque<(Ref, Symbol)>,
    /// What comes after that, first: leaves and small nodes.
    far: VecDeque<(Ref, Symbol)>,
    /// What comes after that, last.
    stack: Vec<(Ref, Symbol)>,
    ahead: usize,
}

/// Whether this is a node whose children are best taken all at once.
fn is_small(item: Ref) -> bool {
    item.is_node() && item.kind() <= Kind::Node16
}

impl<'c, K: Key + ?Sized, V> Cursor<'c, K, V> {
    fn new(core: &'c Core<K, V>, direction: Direction, bound: Bound<&[u8]>) -> Self {
        let (near, far) = Default::default();
        let mut cursor = Cursor { core, direction, near, far, stack: Vec::with_capacity(16), ahead: AHEAD.0 };
        while !cursor.seek(bound) {
            cursor.stack.clear();
        }
        cursor
    }

    /// Goes to the bound; `false` if the tree changed too much on the way.
    fn seek(&mut self, bound: Bound<&[u8]>) -> bool {
        let storage = &self.core.storage;
        let mut next = self.core.root.load();
        let (key, inclusive) = match bound {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded => {
                self.enter(next);
                return true;
            }
        };
        let mut position = 0;
        while next.is_node() {
            let node = storage.node(next);
            if next.skips() {
                let Some(witness) = self.core.any_leaf(next) else { return false };
                let level = node.level();
                let common = storage.key(witness).as_ref().get(position..level);
                let wanted = key.get(position..).unwrap_or_default();
                let wanted = wanted.get(..level - position).unwrap_or(wanted);
                // A bound that ends among the skipped bytes is before all that is below.
                match common.expect("keys reach to the level of the nodes above them").cmp(wanted) {
                    Order::Equal => {}
                    side => {
                        if self.direction.is_ahead(side) {
                            self.enter(next);
                        }
                        return true;
                    }
                }
                position = level;
            }
            let symbol = Symbol::at(key, position);
            self.stack.push((next, symbol));
            next = node.child(symbol);
            position += 1;
        }
        if next.is_leaf() {
            let side = storage.key(next).as_ref().cmp(key);
            if self.direction.is_ahead(side) || inclusive && side == Order::Equal {
                self.enter(next);
            }
        }
        true
    }

    /// Goes before a leaf, all that is below a node, or nothing.
    fn enter(&mut self, next: Ref) {
        if !next.is_null() {
            self.stack.push((next, self.direction.outset()));
        }
    }

    /// The next leaf.
    #[inline]
    fn next(&mut self) -> Option<Ref> {
        loop {
            if self.near.len() <= self.ahead / 2 {
                self.refill();
            }
            let (item, after) = self.near.pop_front()?;
            if item.is_leaf() {
                return Some(item);
            }
            // Below a small node there is another node.
            if is_small(item) {
                let (children, count) = self.children(item, after);
                for &(_, child) in children[..count].iter().rev() {
                    self.near.push_front((child, self.direction.outset()));
                }
            } else if let Some((symbol, child)) = self.following(item, after) {
                self.near.push_front((item, symbol));
                self.near.push_front((child, self.direction.outset()));
            }
        }
    }

    /// Moves what comes next from the stack to the far queue, and from there to the near one.
    fn refill(&mut self) {
        self.ahead = (2 * self.ahead).min(AHEAD.1);
        let outset = self.direction.outset();
        while self.near.len() < self.ahead {
            self.refill_far();
            let Some((item, after)) = self.far.pop_front() else { return };
            if item.is_leaf() {
                self.near.push_back((item, after));
            } else {
                let (children, count) = self.children(item, after);
                self.near.extend(children[..count].iter().map(|&(_, child)| (child, outset)));
            }
        }
    }

    #[inline]
    fn refill_far(&mut self) {
        while self.far.len() < self.ahead
            && let Some((item, after)) = self.stack.pop()
        {
            if item.is_leaf() || is_small(item) {
                self.fetch(item);
                self.far.push_back((item, after));
            } else if let Some((symbol, child)) = self.following(item, after) {
                self.stack.push((item, symbol));
                self.stack.push((child, self.direction.outset()));
            }
        }
    }

    /// The child of a node that comes after a symbol.
    #[inline]
    fn following(&self, node: Ref, after: Symbol) -> Option<(Symbol, Ref)> {
        let node = self.core.storage.node(node);
        match self.direction {
            Direction::Up => node.next(after),
            Direction::Down => node.previous(after),
        }
    }

    /// The children of a small node that come after a symbol, in order; they are asked for.
    #[inline]
    fn children(&self, node: Ref, after: Symbol) -> ([(Symbol, Ref); 17], usize) {
        let mut sorted = [(Symbol::BEFORE, Ref::NULL); 17];
        let mut count = 0;
        self.core.storage.node(node).each(|symbol, child| {
            if self.direction.precedes(after, symbol) {
                self.fetch(child);
                let mut place = count;
                while place > 0 && self.direction.precedes(symbol, sorted[place - 1].0) {
                    sorted[place] = sorted[place - 1];
                    place -= 1;
                }
                sorted[place] = (symbol, child);
                count += 1;
            }
        });
        (sorted, count)
    }

    #[inline(always)]
    fn fetch(&self, item: Ref) {
        // A large node is not looked at where a key would look, but in order.
        self.core.prefetch(item, 0, &[]);
    }
}

/// The entries between two bounds, from both ends.
pub(crate) struct Scan<'s, K: Key + ?Sized, V> {
    core: &'s Core<K, V>,
    from: Bound<Cow<'s, [u8]>>,
    to: Bound<Cow<'s, [u8]>>,
    up: Option<Cursor<'s, K, V>>,
    down: Option<Cursor<'s, K, V>>,
}

fn slice<'b>(bound: &'b Bound<Cow<'_, [u8]>>) -> Bound<&'b [u8]> {
    bound.as_ref().map(|bytes| &**bytes)
}

impl<'s, K: Key + ?Sized, V> Scan<'s, K, V> {
    pub(crate) fn between(core: &'s Core<K, V>, from: Bound<&'s [u8]>, to: Bound<&'s [u8]>) -> Self {
        Scan { core, from: from.map(Cow::Borrowed), to: to.map(Cow::Borrowed), up: None, down: None }
    }

    /// Of all keys that begin so.
    pub(crate) fn of_prefix(core: &'s Core<K, V>, prefix: &'s [u8]) -> Self {
        // The first string that is behind all that begin so: the last byte that can be raised is, and the rest dropped.
        let to = match prefix.iter().rposition(|&byte| byte < 255) {
            Some(last) => {
                let mut to = prefix[..=last].to_vec();
                to[last] += 1;
                Bound::Excluded(Cow::Owned(to))
            }
            None => Bound::Unbounded,
        };
        Scan { core, from: Bound::Included(Cow::Borrowed(prefix)), to, up: None, down: None }
    }

    /// The next entry from below.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ref> {
        let up = self.up.get_or_insert_with(|| Cursor::new(self.core, Direction::Up, slice(&self.from)));
        let leaf = up.next()?;
        let core = self.core;
        let key = core.storage.key(leaf).as_ref();
        let inside = match slice(&self.to) {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        };
        if !inside {
            self.close();
            return None;
        }
        // Where the other end stops.
        self.from = Bound::Excluded(Cow::Borrowed(key));
        Some(leaf)
    }

    /// The next entry from above.
    pub(crate) fn next_back(&mut self) -> Option<Ref> {
        let down = self.down.get_or_insert_with(|| Cursor::new(self.core, Direction::Down, slice(&self.to)));
        let leaf = down.next()?;
        let core = self.core;
        let key = core.storage.key(leaf).as_ref();
        let inside = match slice(&self.from) {
            Bound::Unbounded => true,
            Bound::Included(from) => key >= from,
            Bound::Excluded(from) => key > from,
        };
        if !inside {
            self.close();
            return None;
        }
        self.to = Bound::Excluded(Cow::Borrowed(key));
        Some(leaf)
    }

    /// Nothing more comes, from either end.
    fn close(&mut self) {
        (self.up, self.down) = (None, None);
        self.from = Bound::Excluded(Cow::Borrowed(&[]));
        self.to = Bound::Excluded(Cow::Borrowed(&[]));
    }
}
