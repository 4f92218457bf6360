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
//! Scans are fast because what they look at has been asked for before. A cursor works in turns. In one turn it
//!
//! 1. takes what it asked for two turns ago, leaves, to be shown one by one ([`Cursor::near`]);
//! 2. opens the small nodes that it asked for in the last turn, and asks for their children ([`Cursor::soon`]);
//! 3. goes on through large nodes, from slot to slot, and asks for the leaves and small nodes that it finds
//!    ([`Cursor::far`]).
//!
//! A turn is short at first, for those who want few entries. What is found out of turn, a large node below a small one, say,
//! sends the queues back to the stack.
//!
//! Where the next byte's slot is null, or holds a leaf rather than a node, cannot be predicted, and a misprediction costs as
//! much as a dozen instructions. So the loops over slots and the sorting of small nodes do without such branches.
//!
//! Rejected: *a stack alone*, on which the children of a large node are put some at a time: each time they are used up there
//! is nothing under way; *queues that take one entry as they give one*: every entry pays for their bookkeeping.

use std::cmp::Ordering as Order;
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

    /// The last of all symbols, in this direction.
    fn last(self) -> Symbol {
        match self {
            Direction::Up => Symbol(255),
            Direction::Down => Symbol::END,
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

/// Leaves and small nodes that a turn asks for: in the first, and at most.
const AHEAD: (usize, usize) = (2, 16);
/// Room for one more than that is wanted, if that is a node of all its kind.
const FAR: usize = AHEAD.1 + Kind::Node48.capacity() + 1;

/// A place between two keys.
struct Cursor<'c, K: Key + ?Sized, V> {
    core: &'c Core<K, V>,
    direction: Direction,
    /// What comes next, last: leaves, and now and then a node.
    near: Vec<Ref>,
    /// What comes after that, last.
    soon: Vec<Ref>,
    /// What comes after that, first: leaves and small nodes.
    far: [Ref; FAR],
    /// How many these are.
    found: usize,
    /// What comes after that, last, each with the symbol behind which it is still to be shown.
    stack: Vec<(Ref, Symbol)>,
    ahead: usize,
}

/// Whether this is a node whose children are best taken one by one.
#[inline(always)]
fn is_large(item: Ref) -> bool {
    item.is_node() && item.kind() > Kind::Node16
}

impl<'c, K: Key + ?Sized, V> Cursor<'c, K, V> {
    fn new(core: &'c Core<K, V>, direction: Direction, bound: Bound<&[u8]>) -> Self {
        let mut cursor = Cursor {
            core,
            direction,
            near: Vec::with_capacity(4 * AHEAD.1),
            soon: Vec::with_capacity(4 * AHEAD.1),
            far: [Ref::NULL; FAR],
            found: 0,
            stack: Vec::with_capacity(2 * AHEAD.1),
            ahead: AHEAD.0,
        };
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
            next = node.child_assigned(symbol);
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
            match self.near.pop() {
                Some(leaf) if leaf.is_leaf() => return Some(leaf),
                Some(node) => self.enter_early(node),
                None if self.turn() => {}
                None => return None,
            }
        }
    }

    /// Shows a node whose turn has not come: it is below a small one.
    #[cold]
    fn enter_early(&mut self, node: Ref) {
        if !is_large(node) {
            open(self.core, self.direction, node, &mut self.near);
            return;
        }
        let outset = self.direction.outset();
        self.stack.extend(self.far[..self.found].iter().rev().map(|&item| (item, outset)));
        self.stack.extend(self.soon.drain(..).chain(self.near.drain(..)).map(|item| (item, outset)));
        self.stack.push((node, outset));
        self.found = 0;
    }

    /// One turn; `false` if nothing is left.
    fn turn(&mut self) -> bool {
        std::mem::swap(&mut self.near, &mut self.soon);
        for &item in self.far[..self.found].iter().rev() {
            if item.is_leaf() {
                self.soon.push(item);
            } else {
                open(self.core, self.direction, item, &mut self.soon);
            }
        }
        self.found = 0;
        self.look_ahead();
        !(self.near.is_empty() && self.soon.is_empty() && self.found == 0)
    }

    /// Fills the far queue from the stack.
    fn look_ahead(&mut self) {
        self.ahead = (2 * self.ahead).min(AHEAD.1);
        let outset = self.direction.outset();
        while self.found < self.ahead
            && let Some((item, after)) = self.stack.pop()
        {
            let begin = self.found;
            if is_large(item) || after != outset {
                // A Node48 is opened once, rather than a little at a time.
                let most = if item.kind() == Kind::Node256 { self.ahead } else { FAR };
                let (count, last) =
                    children(self.core, self.direction, item, after, &mut self.far[begin..most]);
                if last != self.direction.last() {
                    self.stack.push((item, last));
                }
                self.found += count;
            } else {
                self.far[begin] = item;
                self.found += 1;
            }
            for at in begin..self.found {
                let item = self.far[at];
                if is_large(item) {
                    // It is entered first.
                    self.stack.extend(self.far[at..self.found].iter().rev().map(|&item| (item, outset)));
                    self.found = at;
                    break;
                }
                self.core.fetch(item);
            }
        }
    }
}

/// Finds the children of a node that come after a symbol: see [`crate::node::Node::rising`].
#[inline(always)]
fn children<K: Key + ?Sized, V>(
    core: &Core<K, V>,
    direction: Direction,
    node: Ref,
    after: Symbol,
    found: &mut [Ref],
) -> (usize, Symbol) {
    let node = core.storage.node(node);
    match direction {
        Direction::Up => node.rising(after, found),
        Direction::Down => node.falling(after, found),
    }
}

/// Puts the children of a small node on a queue whose last item comes first, and asks for them.
#[inline(always)]
fn open<K: Key + ?Sized, V>(core: &Core<K, V>, direction: Direction, node: Ref, queue: &mut Vec<Ref>) {
    let mut found = [Ref::NULL; Kind::Node16.capacity() + 1];
    let (count, _) = children(core, direction, node, direction.outset(), &mut found);
    found[..count].iter().for_each(|&child| core.fetch(child));
    queue.extend(found[..count].iter().rev());
}

impl<K: Key + ?Sized, V> Core<K, V> {
    /// Asks for the beginning of a leaf or small node.
    #[inline(always)]
    fn fetch(&self, item: Ref) {
        let storage = &self.storage;
        let address = if item.is_leaf() {
            storage.leaf_address(item).cast_const()
        } else {
            storage.nodes.base().cast_const().wrapping_add(item.node_offset())
        };
        pages::prefetch(address);
        if !item.is_leaf() && item.kind() == Kind::Node16 {
            pages::prefetch(address.wrapping_add(64));
        }
    }
}

/// The entries between two bounds, from both ends.
pub(crate) struct Scan<'s, K: Key + ?Sized, V> {
    core: &'s Core<K, V>,
    from: Bound<&'s [u8]>,
    to: To<'s>,
    up: Option<Cursor<'s, K, V>>,
    down: Option<Cursor<'s, K, V>>,
    /// The last keys shown from below and from above.
    low: Option<&'s [u8]>,
    high: Option<&'s [u8]>,
    closed: bool,
}

/// A bound that a scan was made with, or made.
enum To<'s> {
    Given(Bound<&'s [u8]>),
    Before(Vec<u8>),
}

impl To<'_> {
    #[inline(always)]
    fn bound(&self) -> Bound<&[u8]> {
        match self {
            To::Given(bound) => *bound,
            To::Before(key) => Bound::Excluded(key),
        }
    }
}

impl<'s, K: Key + ?Sized, V> Scan<'s, K, V> {
    pub(crate) fn between(core: &'s Core<K, V>, from: Bound<&'s [u8]>, to: Bound<&'s [u8]>) -> Self {
        Scan::new(core, from, To::Given(to))
    }

    /// Of all keys that begin so.
    pub(crate) fn of_prefix(core: &'s Core<K, V>, prefix: &'s [u8]) -> Self {
        // The first string that is behind all that begin so: the last byte that can be raised is, and the rest dropped.
        let to = match prefix.iter().rposition(|&byte| byte < 255) {
            Some(last) => {
                let mut to = prefix[..=last].to_vec();
                to[last] += 1;
                To::Before(to)
            }
            None => To::Given(Bound::Unbounded),
        };
        Scan::new(core, Bound::Included(prefix), to)
    }

    fn new(core: &'s Core<K, V>, from: Bound<&'s [u8]>, to: To<'s>) -> Self {
        Scan { core, from, to, up: None, down: None, low: None, high: None, closed: false }
    }

    /// The next entry from below.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Ref> {
        if self.closed {
            return None;
        }
        let up = self.up.get_or_insert_with(|| Cursor::new(self.core, Direction::Up, self.from));
        let leaf = up.next()?;
        let key = self.core.storage.key(leaf).as_ref();
        let inside = self.high.is_none_or(|high| key < high)
            && match self.to.bound() {
                Bound::Unbounded => true,
                Bound::Included(to) => key <= to,
                Bound::Excluded(to) => key < to,
            };
        self.low = Some(key);
        self.shown(leaf, inside)
    }

    /// The next entry from above.
    pub(crate) fn next_back(&mut self) -> Option<Ref> {
        if self.closed {
            return None;
        }
        let down = self.down.get_or_insert_with(|| Cursor::new(self.core, Direction::Down, self.to.bound()));
        let leaf = down.next()?;
        let key = self.core.storage.key(leaf).as_ref();
        let inside = self.low.is_none_or(|low| key > low)
            && match self.from {
                Bound::Unbounded => true,
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
            };
        self.high = Some(key);
        self.shown(leaf, inside)
    }

    /// The leaf if it lies between the bounds; if it does not, nothing more comes, from either end.
    #[inline(always)]
    fn shown(&mut self, leaf: Ref, inside: bool) -> Option<Ref> {
        if inside {
            return Some(leaf);
        }
        self.closed = true;
        (self.up, self.down) = (None, None);
        None
    }
}
