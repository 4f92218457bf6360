//! Keys in order.
//!
//! A cursor has queues of what comes next, and behind them a stack of nodes with the symbol behind which they are still
//! to be shown. Nothing is locked: what was in the tree from the beginning of the scan to its end is shown, once, in order;
//! what came or went meanwhile may be shown or not. (A node that has been replaced under the cursor still shows what it
//! held then: see [`crate::lock`].)
//!
//! To begin at a key, the cursor follows it down. Where bytes were skipped, the node does not know them, and any leaf below
//! it tells whether all of its keys lie before the bound, or behind it, or go on agreeing with it.
//!
//! Scans are fast because what they look at has been asked for before, and because no more is than is wanted. A cursor works
//! in turns, of a few entries at first, for those who want few, and of more as it goes on. In one turn it
//!
//! 1. takes what was made ready in the last turn, leaves, to be shown one by one (the near one of [`Cursor::queues`]);
//! 2. opens the small nodes that it asked for in the last turn, and asks for their children (the other one);
//! 3. goes on through large nodes, from slot to slot, and asks for the leaves and small nodes that it finds
//!    ([`Cursor::far`]), up to as many entries as it expects a turn to have.
//!
//! What is found out of turn, a large node below a small one, say, sends the queues back to the stack. The leaf where a scan
//! begins is compared with the bound when its neighbours have been asked for.
//!
//! Where the next byte's slot is null, or holds a leaf rather than a node, cannot be predicted, and a misprediction costs as
//! much as a dozen instructions. So the loops over slots and the sorting of small nodes do without such branches.
//!
//! Rejected: *a stack alone*, on which the children of a large node are put some at a time: each time they are used up there
//! is nothing under way; *queues that take one entry as they give one*: every entry pays for their bookkeeping; *turns of as
//! many nodes, whatever they hold*: a scan of ten entries asked for a hundred.

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

/// Entries that a turn asks for: at first, and at most.
const AHEAD: (usize, usize) = (4, 24);
/// Slots of a Node256 that are looked at together. Where its children are large, all but the first go to the stack.
const TOGETHER: usize = 8;
/// Children of a small node at most.
const FEW: usize = Kind::Node16.capacity() + 1;

/// What comes next, first, in an array that has room for one more node of the largest kind that is put there at once.
struct Queue<const ROOM: usize> {
    items: [Ref; ROOM],
    next: usize,
    end: usize,
}

/// What is to be shown: what a turn wants, and the children of one more small node behind it, and in front of it.
type Ready = Queue<{ AHEAD.1 + 2 * FEW }>;
/// What was asked for, and the children of a Node48.
type Far = Queue<{ AHEAD.1 + Kind::Node48.capacity() + 1 }>;

impl<const ROOM: usize> Queue<ROOM> {
    /// Nothing, behind so much room.
    const fn empty(front: usize) -> Self {
        Queue { items: [Ref::NULL; ROOM], next: front, end: front }
    }

    fn clear(&mut self, front: usize) {
        (self.next, self.end) = (front, front);
    }

    fn is_empty(&self) -> bool {
        self.next == self.end
    }

    fn len(&self) -> usize {
        self.end - self.next
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Ref> {
        if self.is_empty() {
            return None;
        }
        let item = self.items[self.next];
        self.next += 1;
        Some(item)
    }

    #[inline(always)]
    fn push(&mut self, item: Ref) {
        self.items[self.end] = item;
        self.end += 1;
    }

    fn left(&self) -> &[Ref] {
        &self.items[self.next..self.end]
    }
}

/// Nodes that are still to be shown, the next last, each with the symbol behind which it is. The first are kept without
/// asking for memory; few paths are so long that there are more.
struct Stack {
    first: [(Ref, Symbol); Stack::FIRST],
    depth: usize,
    more: Vec<(Ref, Symbol)>,
}

impl Stack {
    const FIRST: usize = 32;
    const EMPTY: Stack =
        Stack { first: [(Ref::NULL, Symbol::BEFORE); Stack::FIRST], depth: 0, more: Vec::new() };

    fn clear(&mut self) {
        self.depth = 0;
        self.more.clear();
    }

    #[inline]
    fn push(&mut self, item: Ref, after: Symbol) {
        match self.first.get_mut(self.depth) {
            Some(entry) => {
                *entry = (item, after);
                self.depth += 1;
            }
            None => self.more.push((item, after)),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<(Ref, Symbol)> {
        if let Some(entry) = self.more.pop() {
            return Some(entry);
        }
        self.depth = self.depth.checked_sub(1)?;
        Some(self.first[self.depth])
    }
}

/// A place between two keys.
struct Cursor<'c, K: Key + ?Sized, V> {
    core: &'c Core<K, V>,
    direction: Direction,
    /// What comes next, and what comes after that: which is which changes with every turn.
    queues: [Ready; 2],
    near: usize,
    /// What comes after that: leaves and small nodes.
    far: Far,
    /// Where what has not been asked for begins in it.
    asked: usize,
    /// Entries expected of what has been asked for in it.
    expected: usize,
    /// The large node that has been asked for last.
    large: Ref,
    /// What comes after that.
    stack: Stack,
    /// Entries that a turn asks for.
    ahead: usize,
    /// Entries that have been made ready.
    shown: usize,
}

/// Whether this is a node whose children are best taken one by one.
#[inline(always)]
fn is_large(item: Ref) -> bool {
    item.is_node() && item.kind() > Kind::Node16
}

/// Entries to be expected of a leaf or small node.
#[inline(always)]
fn expected(item: Ref) -> usize {
    match item.is_leaf() {
        true => 1,
        false if item.kind() == Kind::Node4 => 3,
        false => 8,
    }
}

impl<'c, K: Key + ?Sized, V> Cursor<'c, K, V> {
    /// In a box: the queues are long, and iterators are handed on by value.
    fn new(core: &'c Core<K, V>, direction: Direction, bound: Bound<&[u8]>) -> Box<Self> {
        let mut cursor = Box::new(Cursor {
            core,
            direction,
            queues: [const { Queue::empty(FEW) }; 2],
            near: 0,
            far: Queue::empty(0),
            asked: 0,
            expected: 0,
            large: Ref::NULL,
            stack: Stack::EMPTY,
            ahead: AHEAD.0,
            shown: 0,
        });
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
            self.stack.push(next, symbol);
            next = node.child_assigned(symbol);
            position += 1;
        }
        if next.is_leaf() {
            self.core.fetch(next);
            self.look_ahead();
            let side = storage.key(next).as_ref().cmp(key);
            if self.direction.is_ahead(side) || inclusive && side == Order::Equal {
                self.queues[self.near].push(next);
            }
        }
        true
    }

    /// Goes before a leaf, all that is below a node, or nothing.
    fn enter(&mut self, next: Ref) {
        if !next.is_null() {
            self.stack.push(next, self.direction.outset());
        }
    }

    /// The next leaf.
    #[inline]
    fn next(&mut self) -> Option<Ref> {
        loop {
            match self.queues[self.near].pop() {
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
            let mut found = [Ref::NULL; FEW];
            let (count, _) = children(self.core, self.direction, node, self.direction.outset(), &mut found);
            let near = &mut self.queues[self.near];
            if count <= near.next {
                near.next -= count;
                near.items[near.next..][..count].copy_from_slice(&found[..count]);
                found[..count].iter().for_each(|&child| self.core.fetch(child));
                return;
            }
        }
        self.put_off(node);
    }

    /// Sends the queues back to the stack, behind a node.
    fn put_off(&mut self, node: Ref) {
        let outset = self.direction.outset();
        let [near, soon] = [self.near, 1 - self.near].map(|queue| self.queues[queue].left());
        for queue in [self.far.left(), soon, near] {
            queue.iter().rev().for_each(|&item| self.stack.push(item, outset));
        }
        self.stack.push(node, outset);
        self.queues.iter_mut().for_each(|queue| queue.clear(FEW));
        self.far.clear(0);
        (self.asked, self.expected) = (0, 0);
    }

    /// One turn; `false` if nothing is left.
    fn turn(&mut self) -> bool {
        // What was near has been shown.
        let soon = &mut self.queues[self.near];
        self.near = 1 - self.near;
        soon.clear(FEW);
        while self.far.next < self.asked && soon.len() < self.ahead {
            let Some(item) = self.far.pop() else { break };
            self.expected -= expected(item);
            if item.is_leaf() {
                soon.push(item);
            } else {
                let room = &mut soon.items[soon.end..];
                let (count, _) = children(self.core, self.direction, item, self.direction.outset(), room);
                room[..count].iter().for_each(|&child| self.core.fetch(child));
                soon.end += count;
            }
        }
        self.shown += soon.len();
        self.ahead = (self.shown / 2).clamp(AHEAD.0, AHEAD.1);
        self.look_ahead();
        !(self.queues.iter().all(Queue::is_empty) && self.far.is_empty())
    }

    /// Asks for what comes after what has been asked for.
    fn look_ahead(&mut self) {
        let outset = self.direction.outset();
        loop {
            while self.expected < self.ahead && self.asked < self.far.end {
                let item = self.far.items[self.asked];
                if is_large(item) {
                    // Not before its lines are there, as long as there is something to do meanwhile.
                    if self.expected > 0 && self.large != item {
                        self.large = item;
                        self.core.fetch_large(item);
                        return;
                    }
                    self.enter_large();
                    break;
                }
                self.core.fetch(item);
                self.expected += expected(item);
                self.asked += 1;
            }
            if self.expected >= self.ahead {
                return;
            }
            let Some((item, after)) = self.stack.pop() else { return };
            // All that is left has been asked for.
            self.far.items.copy_within(self.far.next..self.far.end, 0);
            self.far.end -= self.far.next;
            (self.far.next, self.asked) = (0, self.far.end);
            if !is_large(item) && after == outset {
                self.far.push(item);
                continue;
            }
            let room = &mut self.far.items[self.far.end..];
            // A Node48 is opened once, rather than a little at a time.
            let most = if item.kind() == Kind::Node256 { TOGETHER } else { room.len() };
            let (count, last) = children(self.core, self.direction, item, after, &mut room[..most]);
            if last != self.direction.last() {
                self.stack.push(item, last);
            }
            self.far.end += count;
        }
    }

    /// Sends what has not been asked for, which begins with a large node, back to the stack.
    fn enter_large(&mut self) {
        let outset = self.direction.outset();
        let rest = &self.far.items[self.asked..self.far.end];
        rest.iter().rev().for_each(|&item| self.stack.push(item, outset));
        self.far.end = self.asked;
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

    /// Asks for the beginning of a large node: all of a Node48, and the first slots of a Node256.
    fn fetch_large(&self, node: Ref) {
        let address = self.storage.nodes.base().cast_const().wrapping_add(node.node_offset());
        let bytes = node.kind().bytes().min(Kind::Node48.bytes());
        (0..bytes).step_by(64).for_each(|line| pages::prefetch(address.wrapping_add(line)));
    }
}

/// The entries between two bounds, from both ends.
pub(crate) struct Scan<'s, K: Key + ?Sized, V> {
    core: &'s Core<K, V>,
    from: Bound<&'s [u8]>,
    to: To<'s>,
    up: Option<Box<Cursor<'s, K, V>>>,
    down: Option<Box<Cursor<'s, K, V>>>,
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
