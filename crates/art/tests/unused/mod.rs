//! That all of a tree's memory has been given back.

use lookaside_art::Memory;

/// That nothing is in use: no leaf, no node of any kind, no key on the heap.
pub(crate) fn assert_unused(memory: &Memory) {
    let nodes: usize = memory.nodes.iter().map(|nodes| nodes.count).sum();
    assert_eq!(
        (memory.leaves, memory.leaf_bytes, memory.heap_bytes, nodes),
        (0, 0, 0, 0),
        "of an empty tree there is left: {memory:?}"
    );
}
