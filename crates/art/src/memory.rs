//! What a tree occupies.

use std::sync::atomic::Ordering;

use crate::core::Entries;
use crate::key::{Key, LARGEST_LEAF};
use crate::kind::Kind;
use crate::reference::Ref;

/// What a tree occupies, exactly: counted as places are given out and taken back. What has left the tree while someone
/// was pinned counts until it has been given back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Memory {
    /// Nodes of each kind.
    pub nodes: [NodeMemory; 4],
    /// Leaves: entries in the tree, and those that wait to be given back.
    pub leaves: usize,
    /// Bytes of leaves.
    pub leaf_bytes: usize,
    /// Bytes of keys on the heap: those that no leaf has room for.
    pub heap_bytes: usize,
    /// Bytes that were used once, or lie in pages that were filled by a reorganisation, and wait to be used again.
    pub free_bytes: usize,
    /// Bytes of pages that have been begun, for nodes and leaves together: all of the above but the heap, the ends of
    /// runs that are not cut yet, what is left over where places do not fill a run, and a page that is never used at
    /// the beginning of each.
    pub begun_bytes: usize,
}

/// The nodes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeMemory {
    /// Which.
    pub kind: Kind,
    /// How many.
    pub count: usize,
    /// Bytes of all of them.
    pub bytes: usize,
}

impl Default for NodeMemory {
    fn default() -> Self {
        NodeMemory { kind: Kind::Node4, count: 0, bytes: 0 }
    }
}

impl Memory {
    /// Bytes of all nodes, without leaves.
    #[must_use]
    pub fn node_bytes(&self) -> usize {
        self.nodes.iter().map(|nodes| nodes.bytes).sum()
    }
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// What the tree occupies.
    #[must_use]
    pub fn memory(&self) -> Memory {
        let storage = &self.storage;
        let mut memory = Memory {
            heap_bytes: storage.heap.load(Ordering::Relaxed),
            begun_bytes: storage.nodes.begun() + storage.leaves.begun(),
            free_bytes: storage.nodes.mixed.free_bytes() + storage.leaves.mixed.free_bytes(),
            ..Memory::default()
        };
        for kind in Kind::ALL {
            let class = storage.nodes.class_use(kind as usize);
            memory.nodes[kind as usize] =
                NodeMemory { kind, count: class.used, bytes: class.used * class.size };
            memory.free_bytes += class.waiting * class.size;
        }
        for class in 0..LARGEST_LEAF / Ref::LEAF_UNIT {
            let class = storage.leaves.class_use(class);
            memory.leaves += class.used;
            memory.leaf_bytes += class.used * class.size;
            memory.free_bytes += class.waiting * class.size;
        }
        memory
    }
}
