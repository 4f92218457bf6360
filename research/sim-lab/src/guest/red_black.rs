//! A red-black tree, as libstdc++'s `map` is built.
//!
//! Guibas and Sedgewick, "A dichromatic framework for balanced trees" (FOCS 1978); the insertion is that of
//! Cormen, Leiserson, Rivest and Stein. A node holds its key:
//!
//! ```text
//!   color 8, parent 8, left 8, right 8, key 24, record* 8
//! ```
//!
//! A lookup goes down to a leaf whatever it meets, remembering the last node that is not smaller, and compares
//! once more at the end. With n nodes that is at most 2 log2(n + 1) comparisons and about log2 n.

use super::heap::Place;
use super::keys::Key;
use super::processor::{Pen, Processor};
use super::records::{Records, compare_bytes};
use super::registers::{NODE, OTHER, RECORD, WORD};
use super::{CODE_INDEX, Lookup};

const NIL: u32 = u32::MAX;
const LEFT: usize = 0;
const RIGHT: usize = 1;
const NODE_BYTES: u64 = 64;
const KEY_AT: u64 = 32;
const RECORD_AT: u64 = 56;

/// The tree; a node's number is its record's.
#[derive(Debug, Clone)]
pub struct RedBlackTree {
    root: u32,
    nodes: Vec<Node>,
    /// Of each node: not in it, since no lookup asks.
    parents: Vec<u32>,
    red: Vec<bool>,
}

/// What a lookup needs of a node, in one line of the host's.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct Node {
    children: [u32; 2],
    place: Place,
}

impl RedBlackTree {
    /// An empty tree.
    #[must_use]
    pub fn new() -> RedBlackTree {
        RedBlackTree { root: NIL, nodes: Vec::new(), parents: Vec::new(), red: Vec::new() }
    }

    fn is_red(&self, node: u32) -> bool {
        node != NIL && self.red[node as usize]
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].children[side]
    }

    fn parent(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }

    /// The node goes down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, node: u32, side: usize) {
        let up = self.child(node, 1 - side);
        let moved = self.child(up, side);
        self.nodes[node as usize].children[1 - side] = moved;
        if moved != NIL {
            self.parents[moved as usize] = node;
        }
        let parent = self.parent(node);
        self.parents[up as usize] = parent;
        if parent == NIL {
            self.root = up;
        } else {
            let own = usize::from(self.child(parent, RIGHT) == node);
            self.nodes[parent as usize].children[own] = up;
        }
        self.nodes[up as usize].children[side] = node;
        self.parents[node as usize] = up;
    }

    fn balance(&mut self, mut node: u32) {
        while self.is_red(self.parent_or_nil(node)) {
            let parent = self.parent(node);
            let grandparent = self.parent(parent);
            let side = usize::from(self.child(grandparent, RIGHT) == parent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.red[parent as usize] = false;
                self.red[uncle as usize] = false;
                self.red[grandparent as usize] = true;
                node = grandparent;
                continue;
            }
            let mut top = parent;
            if self.child(parent, 1 - side) == node {
                self.rotate(parent, side);
                top = node;
                node = parent;
            }
            self.red[top as usize] = false;
            self.red[grandparent as usize] = true;
            self.rotate(grandparent, 1 - side);
        }
        let root = self.root;
        self.red[root as usize] = false;
    }

    fn parent_or_nil(&self, node: u32) -> u32 {
        if node == NIL { NIL } else { self.parent(node) }
    }

    fn prefetch(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            pages::prefetch(node);
        }
    }

    fn address(&self, node: u32) -> u64 {
        self.nodes[node as usize].place.address()
    }
}

impl Default for RedBlackTree {
    fn default() -> Self {
        RedBlackTree::new()
    }
}

impl Lookup for RedBlackTree {
    fn insert(&mut self, records: &mut Records, record: u32) {
        debug_assert_eq!(record as usize, self.parents.len(), "records come in order");
        let key = records.key(record);
        let place = records.heap().allocate(NODE_BYTES);
        let (mut parent, mut node, mut side) = (NIL, self.root, LEFT);
        while node != NIL {
            parent = node;
            side = usize::from(records.key(node) < key);
            node = self.child(node, side);
        }
        self.nodes.push(Node { children: [NIL, NIL], place });
        self.parents.push(parent);
        self.red.push(true);
        if parent == NIL {
            self.root = record;
        } else {
            self.nodes[parent as usize].children[side] = record;
        }
        self.balance(record);
    }

    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32> {
        pen.at(CODE_INDEX).compute(NODE, &[]).compute(RECORD, &[]);
        let (mut node, mut last) = (self.root, NIL);
        while node != NIL {
            // The host fetches the next node, whichever it will be, while the guest compares.
            self.nodes[node as usize].children.iter().for_each(|&child| self.prefetch(child));
            let key = records.key(node);
            let smaller = key < query;
            pen.at(CODE_INDEX + 64).compute(OTHER, &[NODE]).compute(WORD, &[NODE]);
            compare_bytes(pen, self.address(node) + KEY_AT, key.shared_words(query));
            pen.at(CODE_INDEX + 96).branch(&[WORD], smaller, CODE_INDEX + 192);
            if smaller {
                pen.at(CODE_INDEX + 192);
            } else {
                pen.compute(RECORD, &[NODE]);
                last = node;
            }
            let side = usize::from(smaller);
            let child = self.child(node, side);
            pen.load(NODE, NODE, self.address(node) + 16 + 8 * side as u64, 8);
            pen.branch(&[NODE], child != NIL, CODE_INDEX + 64);
            node = child;
        }
        pen.at(CODE_INDEX + 256).branch(&[RECORD], last == NIL, CODE_INDEX + 512);
        if last == NIL {
            return None;
        }
        let found = records.key(last);
        pen.compute(OTHER, &[RECORD]);
        let equal = compare_bytes(pen, self.address(last) + KEY_AT, found.shared_words(query));
        pen.at(CODE_INDEX + 320).branch(&[WORD], !equal, CODE_INDEX + 512);
        if !equal {
            return None;
        }
        pen.load(RECORD, RECORD, self.address(last) + RECORD_AT, 8);
        Some(last)
    }

    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, _: &Records, record: u32) {
        pen.at(CODE_INDEX + 1024).chain(NODE, &[1; 12]);
        for word in 0..NODE_BYTES / 8 {
            pen.store(RECORD, NODE, self.address(record) + 8 * word, 8);
        }
        // Its parent's link; recolouring and turning touch what the lookup before it has just read.
        let parent = self.parent(record);
        if parent != NIL {
            pen.store(NODE, NODE, self.address(parent) + 16, 8).chain(NODE, &[1; 12]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::records::Form;
    use super::*;

    #[test]
    fn it_is_sorted_balanced_and_never_red_twice() {
        let mut records = Records::new(Keys::new(5), Form::Plain, 64);
        let mut tree = RedBlackTree::new();
        for _ in 0..5_000 {
            let record = records.create();
            tree.insert(&mut records, record);
        }
        // (node, blacks above it), from the smallest key.
        let mut in_order = Vec::new();
        let mut blacks = Vec::new();
        let mut stack = vec![(tree.root, 0, false)];
        while let Some((node, above, seen)) = stack.pop() {
            if node == NIL {
                blacks.push(above);
            } else if seen {
                in_order.push(records.key(node));
            } else {
                assert!(!(tree.is_red(node) && tree.is_red(tree.parent_or_nil(node))), "red below red");
                let above = above + u32::from(!tree.is_red(node));
                stack.extend([
                    (tree.child(node, RIGHT), above, false),
                    (node, above, true),
                    (tree.child(node, LEFT), above, false),
                ]);
            }
        }
        assert!(in_order.is_sorted() && in_order.len() == 5_000);
        assert!(blacks.iter().all(|&count| count == blacks[0]), "every path has as many black nodes");
    }
}
