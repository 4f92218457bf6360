//! Keys in order.
//!
//! A cursor has queues of what comes next, and behind them a stack of nodes with the symbol behind which they are still
//! to be shown. Nothing is locked: what was in the tree from the beginning of the scan to its end is shown, once, in
//! order; what came or went meanwhile may be shown or not. (A node that has been replaced under the cursor still shows
//! what it held then: see [`crate::lock`].)
//!
//! To begin at a key, the cursor follows it down. Where bytes were skipped, the node does not know them, and any leaf
//! below it tells whether all of its keys lie before the bound, or behind it, or go on agreeing with it.
//!
//! Scans are fast because what they look at has been asked for before, and because no more is than is wanted. A cursor
//! works in turns, of a few entries at first, for those who want few, and of more as it goes on. In one turn
//!
//! 1. what was made ready in the last turn becomes what is shown, leaves, one by one ([`Cursor::near`]). Nodes among
//!    them, which lay below small nodes, are opened;
//! 2. the small nodes that were asked for in the last turn are opened, and their children are asked for
//!    ([`Cursor::soon`]);
//! 3. the cursor goes on through large nodes, from slot to slot, and asks for the leaves and small nodes that it finds
//!    ([`Cursor::far`]).
//!
//! All but a Node256 are small: they are opened at once, and their children put in order where they are to lie
//! ([`crate::order`]). What is found out of turn, a large node below a small one, say, sends the queues back to the
//! stack. On the way to the bound, what comes behind a small node is asked for before the small node is looked at, and
//! what comes behind the first leaf before the leaf is compared.
//!
//! What is done for each entry is what costs. So leaves are taken over in runs, eight at a time; whether an item is a
//! leaf or a node, which cannot be predicted, is a bit or a selection rather than a branch; bounds and nulls are asked
//! about once for all entries of a node where they can be; and an iterator remembers what it showed last by its
//! reference.
//!
//! Rejected: *a stack alone*, on which the children of a large node are put some at a time: each time they are used up
//! there is nothing under way; *queues that take one entry as they give one*: every entry pays for their
//! bookkeeping; *turns of as many nodes, whatever they hold*: a scan of ten entries asked for a hundred; *a Node48 as a
//! large node*, some children at a time: its leaves are asked for a turn later, and pass through one place more; *turns
//! of sixteen entries* at most: less to do for nothing at the end of a scan, but too little under way where every leaf
//! is a miss.

use std::cmp::Ordering as Order;
use std::hint::select_unpredictable;
use std::ops::Bound;

use crate::core::Entries;
use crate::key::Key;
use crate::kind::Kind;
use crate::node::{Node, Node256, Symbol};
use crate::order::{Direction, FEW, SOME};
use crate::queue::{Queue, Stack};
use crate::reference::Ref;

/// Entries that a turn asks for: at first, and at most.
const AHEAD: (usize, usize) = (4, 24);
/// Room in front of what is shown, for what is found below it.
const FRONT: usize = 8;

/// What a turn wants, what the node with which it is reached has beyond that, and as many as are taken together.
type Soon = Queue<{ AHEAD.1 + FEW + 8 }>;
/// The same, and room in front.
type Near = Queue<{ FRONT + AHEAD.1 + FEW + 8 }>;
/// What a turn wants, or what is left of a node that the bound is below; and as many as are taken together.
type Far = Queue<{ FEW + 8 }>;

const _: () = assert!(AHEAD.1 + SOME <= FEW, "the children of large nodes fit behind what is wanted");
const _: () = assert!(FEW <= u64::BITS as usize, "there is a bit for each that may be a node");

/// A place between two keys.
struct Cursor<'c, K: Key + ?Sized, V> {
    core: &'c Entries<K, V>,
    /// What comes next.
    near: Near,
    /// What comes after that, and whether there are nodes among it: leaves and nodes that lay below small nodes.
    soon: Soon,
    has_nodes: bool,
    /// What comes after that: leaves and small nodes, and which of these are nodes.
    far: Far,
    nodes: u64,
    direction: Direction,
    /// The large node that has been asked for last.
    large: Ref,
    /// Entries that a turn asks for.
    ahead: u32,
    /// Entries that have been made ready.
    shown: usize,
    /// What comes after that.
    stack: Stack,
}

/// Whether this is a node whose children are taken some at a time.
#[inline(always)]
fn is_large(item: Ref) -> bool {
    item.sort() == Kind::Node256 as usize
}

/// Entries to be expected of what is of this sort: see [`Ref::sort`].
const EXPECTED: [u8; 8] = [3, 12, 24, 48, 1, 1, 1, 1];

impl<'c, K: Key + ?Sized, V> Cursor<'c, K, V> {
    /// In a box: the queues are long, and iterators are handed on by value.
    #[inline(never)]
    fn new(core: &'c Entries<K, V>, direction: Direction, bound: Bound<&[u8]>) -> Box<Self> {
        let mut cursor = Box::new(Cursor {
            core,
            near: Queue::EMPTY,
            soon: Queue::EMPTY,
            has_nodes: false,
            far: Queue::EMPTY,
            nodes: 0,
            direction,
            large: Ref::NULL,
            ahead: AHEAD.0 as u32,
            shown: 0,
            stack: Stack::EMPTY,
        });
        while !cursor.seek(bound) {
            cursor.stack.clear();
            cursor.far.clear(0);
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
                self.begin_with(next, None);
                return true;
            }
        };
        let mut position = 0;
        // The last small node on the way, if what comes behind it is in the far queue.
        let mut last: Option<(Ref, Symbol)> = None;
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
                        self.begin_with(if self.is_ahead(side) { next } else { Ref::NULL }, last);
                        return true;
                    }
                }
                position = level;
            }
            if let Some((above, after)) = last.take() {
                // There is more between than one node.
                self.stack.push_all(self.far.left(), self.direction.outset());
                self.far.clear(0);
                self.stack.push(above, after);
            }
            let symbol = Symbol::at(key, position);
            let child = node.child_assigned(symbol);
            if self.far.is_empty() {
                self.stack.push(next, symbol);
            } else {
                last = Some((next, symbol));
            }
            if is_large(next) && !is_large(child) && !child.is_null() {
                self.core.fetch(child);
                self.look_ahead();
            }
            next = child;
            position += 1;
        }
        if next.is_null() {
            self.begin_with(next, last);
            return true;
        }
        self.core.fetch(next);
        if self.far.is_empty() {
            self.look_ahead();
        }
        self.begin_with(next, last);
        let side = storage.key(next).as_ref().cmp(key);
        if !(self.is_ahead(side) || inclusive && side == Order::Equal) {
            self.soon.next += 1;
        }
        true
    }

    /// Whether what compares so with a bound lies behind it, as one walks.
    fn is_ahead(&self, side: Order) -> bool {
        match self.direction {
            Direction::Up => side == Order::Greater,
            Direction::Down => side == Order::Less,
        }
    }

    /// Puts what comes first, if anything, before what is left of the last node on the way, and both before all else.
    fn begin_with(&mut self, first: Ref, last: Option<(Ref, Symbol)>) {
        if !first.is_null() {
            self.soon.push(first);
            self.has_nodes = first.is_node();
        }
        if let Some((node, after)) = last {
            self.has_nodes |= self.soon.open(self.core, self.direction, node, after);
        }
    }

    /// The next leaf.
    #[inline(always)]
    fn next(&mut self) -> Option<Ref> {
        match self.near.pop() {
            Some(leaf) if leaf.is_leaf() => Some(leaf),
            other => self.next_beyond(other),
        }
    }

    /// The next leaf, when a node is in its place, or nothing.
    #[inline(never)]
    fn next_beyond(&mut self, mut next: Option<Ref>) -> Option<Ref> {
        loop {
            match next {
                Some(leaf) if leaf.is_leaf() => return Some(leaf),
                Some(node) => self.enter_early(node),
                None if self.turn() => {}
                None => return None,
            }
            next = self.near.pop();
        }
    }

    /// Shows a node whose turn has not come: it is two below a small one.
    #[cold]
    fn enter_early(&mut self, node: Ref) {
        if !is_large(node) {
            let mut found = Queue::<FEW>::EMPTY;
            found.open(self.core, self.direction, node, self.direction.outset());
            if self.near.put_in_front(found.left()) {
                return;
            }
        }
        self.put_off(node);
    }

    /// Sends the queues back to the stack, behind a node.
    #[cold]
    fn put_off(&mut self, node: Ref) {
        let outset = self.direction.outset();
        for queue in [self.far.left(), self.soon.left(), self.near.left()] {
            self.stack.push_all(queue, outset);
        }
        self.stack.push(node, outset);
        self.near.clear(FRONT);
        self.soon.clear(0);
        self.has_nodes = false;
        self.far.clear(0);
        self.nodes = 0;
    }

    /// One turn, when what was near has been shown; `false` if nothing is left.
    fn turn(&mut self) -> bool {
        loop {
            self.near.clear(FRONT);
            if self.has_nodes {
                self.open_soon();
            } else {
                self.near.take_over(&mut self.soon);
            }
            self.open_far();
            self.shown += self.near.len();
            self.ahead = (self.shown / 2).clamp(AHEAD.0, AHEAD.1) as u32;
            if self.far.is_empty() {
                self.look_ahead();
            }
            if !self.near.is_empty() {
                return true;
            }
            if self.soon.is_empty() && self.far.is_empty() {
                return false;
            }
        }
    }

    /// Makes near what comes soon, and opens the nodes among it.
    fn open_soon(&mut self) {
        while self.near.len() < self.ahead as usize && !self.soon.is_empty() {
            // There is room for so many.
            let leaves = self.soon.left().iter().take(FEW).take_while(|item| item.is_leaf()).count();
            self.near.take_some(&mut self.soon, leaves as u32);
            match self.soon.pop() {
                Some(node) if self.near.len() < self.ahead as usize && !is_large(node) => {
                    self.near.open(self.core, self.direction, node, self.direction.outset());
                }
                Some(large) if self.near.is_empty() => return self.put_off(large),
                // When what is before it has been shown.
                Some(_) => {
                    self.soon.next -= 1;
                    break;
                }
                None => break,
            }
        }
        self.soon.move_up();
        self.has_nodes = !self.soon.is_empty();
    }

    /// Opens the small nodes that have been asked for.
    #[inline(always)]
    fn open_far(&mut self) {
        let (core, direction) = (self.core, self.direction);
        while self.soon.len() < self.ahead as usize && !self.far.is_empty() {
            // Leaves up to the next node are taken together: where it is cannot be predicted.
            let node = self.nodes.trailing_zeros().min(self.far.end);
            let leaves = node - self.far.next;
            self.soon.take_some(&mut self.far, leaves);
            if self.soon.len() < self.ahead as usize
                && let Some(item) = self.far.pop()
            {
                self.nodes &= self.nodes - 1;
                self.has_nodes |= self.soon.open(core, direction, item, direction.outset());
            }
        }
    }

    /// Asks for what comes after all that has been asked for, when all that was has been opened.
    fn look_ahead(&mut self) {
        let (core, direction) = (self.core, self.direction);
        let outset = direction.outset();
        self.far.clear(0);
        self.nodes = 0;
        let mut wanted = self.ahead as isize;
        while wanted > 0 {
            let Some((item, mut after)) = self.stack.pop() else { return };
            let mut before = self.far.end as usize;
            if !is_large(item) {
                if after == outset {
                    self.far.push(item);
                } else if before > 0 {
                    return self.stack.push(item, after);
                } else {
                    self.far.open(core, direction, item, after);
                }
                let (expected, large) = self.ask(before);
                wanted -= expected;
                self.send_back(large);
                continue;
            }
            // Not before its lines are there, as long as there is something to do meanwhile.
            let is_idle = before == 0 && self.soon.is_empty() && self.near.is_empty();
            if after == outset && self.large != item && !is_idle {
                self.large = item;
                core.fetch_large(item);
                return self.stack.push(item, after);
            }
            let Node::Full(node) = core.storage.node(item) else { unreachable!("a large node is a Node256") };
            while wanted > 0 && after != direction.last() {
                let count;
                (count, after) = node.some(direction, after, self.far.room::<SOME>());
                self.far.end += count as u32;
                let (expected, large) = self.ask(before);
                wanted -= expected;
                before = self.far.end as usize;
                if large > 0 {
                    // On top of what is left of this one.
                    if after != direction.last() {
                        self.stack.push(item, after);
                    }
                    self.send_back(large);
                    after = direction.last();
                }
            }
            if after != direction.last() {
                self.stack.push(item, after);
                core.fetch_slots(node, direction, after);
            }
        }
    }

    /// Sends what was found last and left out, so many, back to the stack.
    fn send_back(&mut self, count: usize) {
        let items = &self.far.items[self.far.end as usize..][..count];
        self.stack.push_all(items, self.direction.outset());
    }

    /// Asks for what has been found from here on, up to the first large node: what is to be expected of it, and how
    /// many there are from that node on, which are left out.
    #[inline(always)]
    fn ask(&mut self, from: usize) -> (isize, usize) {
        let end = self.far.end as usize;
        let (mut wanted, mut nodes, mut bit) = (0, self.nodes, 1 << from);
        for (at, &item) in self.far.items[from..end].iter().enumerate() {
            if is_large(item) {
                self.far.end = (from + at) as u32;
                break;
            }
            self.core.fetch(item);
            nodes |= select_unpredictable(item.is_leaf(), 0, bit);
            bit <<= 1;
            wanted += isize::from(EXPECTED[item.sort()]);
        }
        self.nodes = nodes;
        (wanted, end - self.far.end as usize)
    }
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// Asks for the beginning of a leaf or Node256, or for all of a smaller node.
    #[inline(always)]
    pub(crate) fn fetch(&self, item: Ref) {
        let [nodes, leaves] =
            [&self.storage.nodes, &self.storage.leaves].map(|space| space.base().cast_const());
        let (node, leaf) = (nodes.wrapping_add(item.node_offset()), leaves.wrapping_add(item.leaf_offset()));
        let address = select_unpredictable(item.is_leaf(), leaf, node);
        pages::prefetch(address);
        if matches!(item.sort(), 1 | 2) {
            self.fetch_rest(item);
        }
    }

    /// Asks for the later lines of a Node16 or Node48.
    #[inline(always)]
    fn fetch_rest(&self, node: Ref) {
        let address = self.storage.nodes.base().cast_const().wrapping_add(node.node_offset());
        pages::prefetch(address.wrapping_add(64));
        if node.kind() == Kind::Node48 {
            (128..Kind::Node48.bytes())
                .step_by(64)
                .for_each(|line| pages::prefetch(address.wrapping_add(line)));
        }
    }

    /// Asks for the slots of a large node that the next turns will look at.
    #[inline(always)]
    fn fetch_slots(&self, node: &Node256, direction: Direction, after: Symbol) {
        // A line of slots, and two.
        for ahead in [16, 32] {
            let slot = match direction {
                Direction::Up => after.0 + ahead,
                Direction::Down => after.0 - ahead,
            };
            pages::prefetch(node.slot_address(slot.clamp(0, 255) as u8));
        }
    }

    /// Asks for the first slots of a large node.
    fn fetch_large(&self, node: Ref) {
        let address = self.storage.nodes.base().cast_const().wrapping_add(node.node_offset());
        (0..512).step_by(64).for_each(|line| pages::prefetch(address.wrapping_add(line)));
    }
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// The leaf with the least key.
    pub(crate) fn least(&self) -> Option<Ref> {
        Scan::between(self, Bound::Unbounded, Bound::Unbounded).next()
    }

    /// The leaf with the greatest key.
    pub(crate) fn greatest(&self) -> Option<Ref> {
        Scan::between(self, Bound::Unbounded, Bound::Unbounded).next_back()
    }
}

/// The entries between two bounds, from both ends.
pub(crate) struct Scan<'s, K: Key + ?Sized, V> {
    core: &'s Entries<K, V>,
    from: Bound<&'s [u8]>,
    to: To<'s>,
    up: Option<Box<Cursor<'s, K, V>>>,
    down: Option<Box<Cursor<'s, K, V>>>,
    /// The leaves shown last from below and from above, or null.
    low: Ref,
    high: Ref,
    /// Whether nothing but the end of the tree bounds what is shown from below.
    is_open: bool,
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
    pub(crate) fn between(core: &'s Entries<K, V>, from: Bound<&'s [u8]>, to: Bound<&'s [u8]>) -> Self {
        Scan::new(core, from, To::Given(to))
    }

    /// Of all keys that begin so.
    pub(crate) fn of_prefix(core: &'s Entries<K, V>, prefix: &'s [u8]) -> Self {
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

    fn new(core: &'s Entries<K, V>, from: Bound<&'s [u8]>, to: To<'s>) -> Self {
        let is_open = matches!(to, To::Given(Bound::Unbounded));
        Scan { core, from, to, up: None, down: None, low: Ref::NULL, high: Ref::NULL, is_open, closed: false }
    }

    /// The next entry from below.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Ref> {
        let up = match &mut self.up {
            Some(up) => up,
            None if self.closed => return None,
            none => none.insert(Cursor::new(self.core, Direction::Up, self.from)),
        };
        let leaf = up.next()?;
        self.low = leaf;
        if self.is_open || self.is_below(leaf) { Some(leaf) } else { self.close() }
    }

    /// The next entry from above.
    pub(crate) fn next_back(&mut self) -> Option<Ref> {
        let down = match &mut self.down {
            Some(down) => down,
            None if self.closed => return None,
            none => none.insert(Cursor::new(self.core, Direction::Down, self.to.bound())),
        };
        let leaf = down.next()?;
        (self.high, self.is_open) = (leaf, false);
        if self.is_above(leaf) { Some(leaf) } else { self.close() }
    }

    fn key(&self, leaf: Ref) -> &'s [u8] {
        self.core.storage.key(leaf).as_ref()
    }

    /// Whether a leaf is before the upper bound and what was shown from above.
    fn is_below(&self, leaf: Ref) -> bool {
        let key = self.key(leaf);
        (self.high.is_null() || key < self.key(self.high))
            && match self.to.bound() {
                Bound::Unbounded => true,
                Bound::Included(to) => key <= to,
                Bound::Excluded(to) => key < to,
            }
    }

    /// Whether a leaf is behind the lower bound and what was shown from below.
    fn is_above(&self, leaf: Ref) -> bool {
        let key = self.key(leaf);
        (self.low.is_null() || key > self.key(self.low))
            && match self.from {
                Bound::Unbounded => true,
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
            }
    }

    /// Nothing more comes, from either end.
    #[cold]
    fn close(&mut self) -> Option<Ref> {
        self.closed = true;
        (self.up, self.down) = (None, None);
        None
    }
}
