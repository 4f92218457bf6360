//! A B-tree, as google's `btree_map` is built.
//!
//! Bayer and McCreight (Acta Informatica 1, 1972). Nodes are of about 256 bytes: seven keys with their records,
//! and in inner nodes eight children behind them.
//!
//! ```text
//!   parent 8, position, count and kind 8, 7 x (key 24, record* 8), inner nodes only: 8 x child 8
//! ```
//!
//! A lookup halves the keys of a node, compares, and ends early where it meets its key. A full node is split in
//! two halves, its middle key going up. (The library first looks whether a neighbour has room; that makes nodes
//! fuller, not the tree lower.)

use super::heap::Place;
use super::keys::Key;
use super::processor::{Pen, Processor};
use super::records::{Records, compare_bytes};
use super::registers::{COUNT, NODE, OTHER, RECORD, SLOT, WORD};
use super::{CODE_INDEX, Lookup};

/// Keys of a node.
const KEYS: usize = 7;
const HEADER: u64 = 16;
const PAIR: u64 = 32;
const KEY_BYTES: u64 = 24;
const LEAF_BYTES: u64 = HEADER + KEYS as u64 * PAIR;
const INNER_BYTES: u64 = LEAF_BYTES + 8 * (KEYS as u64 + 1);

#[derive(Debug, Clone)]
struct Node {
    place: Place,
    leaf: bool,
    count: u8,
    /// Records, by their keys; one more than fits, until the node is split.
    keys: [u32; KEYS + 1],
    children: [u32; KEYS + 2],
}

/// The tree.
#[derive(Debug, Clone)]
pub struct BTree {
    nodes: Vec<Node>,
    root: u32,
}

/// What a split sends up: the middle key, and the new node to its right.
type Split = Option<(u32, u32)>;

impl BTree {
    /// An empty tree.
    #[must_use]
    pub fn new(records: &mut Records) -> BTree {
        let mut tree = BTree { nodes: Vec::new(), root: 0 };
        tree.root = tree.node(records, true);
        tree
    }

    fn node(&mut self, records: &mut Records, leaf: bool) -> u32 {
        let place = records.heap().allocate(if leaf { LEAF_BYTES } else { INNER_BYTES });
        self.nodes.push(Node { place, leaf, count: 0, keys: [0; KEYS + 1], children: [0; KEYS + 2] });
        (self.nodes.len() - 1) as u32
    }

    /// Levels.
    #[must_use]
    pub fn height(&self) -> u32 {
        let below = |node: &u32| {
            let node = &self.nodes[*node as usize];
            (!node.leaf).then_some(node.children[0])
        };
        std::iter::successors(Some(self.root), below).count() as u32
    }

    fn insert_below(&mut self, records: &mut Records, at: u32, record: u32) -> Split {
        let key = records.key(record);
        let node = &self.nodes[at as usize];
        let place = node.keys[..node.count as usize].partition_point(|&other| records.key(other) < key);
        let (up, right) = if node.leaf {
            (record, None)
        } else {
            let child = node.children[place];
            let (up, right) = self.insert_below(records, child, record)?;
            (up, Some(right))
        };
        let node = &mut self.nodes[at as usize];
        let count = node.count as usize;
        node.keys.copy_within(place..count, place + 1);
        node.keys[place] = up;
        if let Some(right) = right {
            node.children.copy_within(place + 1..count + 1, place + 2);
            node.children[place + 1] = right;
        }
        node.count += 1;
        (node.count as usize > KEYS).then(|| self.split(records, at))
    }

    fn split(&mut self, records: &mut Records, at: u32) -> (u32, u32) {
        const HALF: usize = KEYS.div_ceil(2);
        let leaf = self.nodes[at as usize].leaf;
        let right = self.node(records, leaf);
        let (keys, children) = {
            let full = &mut self.nodes[at as usize];
            full.count = HALF as u8;
            (full.keys, full.children)
        };
        let node = &mut self.nodes[right as usize];
        let moved = KEYS - HALF;
        node.count = moved as u8;
        node.keys[..moved].copy_from_slice(&keys[HALF + 1..]);
        node.children[..=moved].copy_from_slice(&children[HALF + 1..]);
        (keys[HALF], right)
    }
}

impl Lookup for BTree {
    fn insert(&mut self, records: &mut Records, record: u32) {
        if let Some((up, right)) = self.insert_below(records, self.root, record) {
            let root = self.node(records, false);
            let node = &mut self.nodes[root as usize];
            node.count = 1;
            node.keys[0] = up;
            (node.children[0], node.children[1]) = (self.root, right);
            self.root = root;
        }
    }

    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32> {
        pen.at(CODE_INDEX).compute(NODE, &[]);
        let mut at = self.root;
        loop {
            let node = &self.nodes[at as usize];
            let address = node.place.address();
            pen.at(CODE_INDEX + 64).load(COUNT, NODE, address + 10, 1).compute(SLOT, &[]);
            let (mut low, mut high) = (0, node.count as usize);
            while low < high {
                let middle = usize::midpoint(low, high);
                let key = records.key(node.keys[middle]);
                // The middle is known when the comparison before it is.
                pen.at(CODE_INDEX + 96).compute(OTHER, &[SLOT, COUNT]).compute(OTHER, &[OTHER]);
                pen.compute(OTHER, &[OTHER, NODE]);
                let place = address + HEADER + PAIR * middle as u64;
                let equal = compare_bytes(pen, place, key.shared_words(query));
                pen.at(CODE_INDEX + 128).branch(&[WORD], equal, CODE_INDEX + 320);
                if equal {
                    pen.at(CODE_INDEX + 320).load(RECORD, OTHER, place + KEY_BYTES, 8);
                    return Some(node.keys[middle]);
                }
                let smaller = key < query;
                pen.branch(&[WORD], smaller, CODE_INDEX + 160);
                if smaller {
                    pen.at(CODE_INDEX + 160).compute(SLOT, &[OTHER]);
                    low = middle + 1;
                } else {
                    pen.compute(COUNT, &[OTHER]);
                    high = middle;
                }
                pen.at(CODE_INDEX + 176).branch(&[SLOT, COUNT], low < high, CODE_INDEX + 96);
            }
            pen.at(CODE_INDEX + 192).load(WORD, NODE, address + 11, 1);
            pen.branch(&[WORD], node.leaf, CODE_INDEX + 512);
            if node.leaf {
                return None;
            }
            pen.compute(SLOT, &[SLOT, NODE]).load(NODE, SLOT, address + LEAF_BYTES + 8 * low as u64, 8);
            pen.branch(&[NODE], true, CODE_INDEX + 64);
            at = node.children[low];
        }
    }

    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32) {
        // Half of a leaf's pairs move on to make room, in the leaf that the lookup before it has just read.
        let key = records.key(record);
        let mut at = self.root;
        loop {
            let node = &self.nodes[at as usize];
            let place = node.keys[..node.count as usize].partition_point(|&other| records.key(other) < key);
            if node.leaf || node.keys[..node.count as usize].contains(&record) {
                let end = node.place.address() + HEADER + PAIR * u64::from(node.count);
                pen.at(CODE_INDEX + 1024).chain(SLOT, &[1; 12]);
                for word in 1..=(PAIR / 8) * (KEYS as u64).div_ceil(2).min(u64::from(node.count)) {
                    pen.at(CODE_INDEX + 1152).load(WORD, SLOT, end - 8 * word, 8);
                    pen.store(WORD, SLOT, end - 8 * word, 8).branch(&[SLOT], true, CODE_INDEX + 1152);
                }
                return;
            }
            at = node.children[place];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::records::Form;
    use super::*;

    #[test]
    fn it_is_sorted_of_one_depth_and_half_full() {
        let mut records = Records::new(Keys::new(5), Form::Plain, 64);
        let mut tree = BTree::new(&mut records);
        for _ in 0..5_000 {
            let record = records.create();
            tree.insert(&mut records, record);
        }
        let mut keys = Vec::new();
        let mut leaves = Vec::new();
        fn walk(tree: &BTree, at: u32, depth: u32, keys: &mut Vec<u32>, leaves: &mut Vec<u32>) {
            let node = &tree.nodes[at as usize];
            assert!(at == tree.root || node.count as usize >= KEYS / 2);
            for place in 0..node.count as usize {
                if !node.leaf {
                    walk(tree, node.children[place], depth + 1, keys, leaves);
                }
                keys.push(node.keys[place]);
            }
            if node.leaf {
                leaves.push(depth);
            } else {
                walk(tree, node.children[node.count as usize], depth + 1, keys, leaves);
            }
        }
        walk(&tree, tree.root, 1, &mut keys, &mut leaves);
        assert_eq!(keys.len(), 5_000);
        assert!(keys.is_sorted_by_key(|&record| records.key(record)));
        assert!(leaves.iter().all(|&depth| depth == tree.height()));
    }
}
