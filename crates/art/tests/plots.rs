//! Leaves that are near each other in the tree lie near each other in memory, whatever the order of insertion was; and
//! no memory is lost for it.

use lookaside_art::{Config, OwnedTree, Tree};

const SUBTREES: u64 = 64;
const LEAVES: u64 = 256;

/// Key `leaf` of subtree `tree`: they differ in the third byte, and the subtrees in the second.
fn key(tree: u64, leaf: u64) -> [u8; 8] {
    (7 << 56 | tree << 48 | leaf << 40 | 99).to_be_bytes()
}

/// All keys, one of each subtree after the other.
fn strewn() -> impl Iterator<Item = [u8; 8]> {
    (0..LEAVES).flat_map(|leaf| (0..SUBTREES).map(move |tree| key(tree, leaf.wrapping_mul(77) % LEAVES)))
}

#[test]
fn neighbours_lie_together() {
    let tree = Tree::<[u8; 8], u64>::new().unwrap();
    let reader = tree.pin();
    strewn().for_each(|key| assert_eq!(reader.insert(&key, 1).unwrap(), None));
    let one: Vec<_> = (0..LEAVES).map(|leaf| key(5, leaf)).collect();
    let found = tree.assess(&one);
    // One after the other, as they were inserted, its leaves would lie in every page that leaves lie in: 64 of them.
    assert!(found.pages < 32, "{found:?}");
}

#[test]
fn what_plots_have_left_is_used() {
    let mut tree = OwnedTree::<[u8; 8], u64>::with_config(&Config::default()).unwrap();
    let mut begun = Vec::new();
    for round in 0..20 {
        strewn().for_each(|key| assert_eq!(tree.insert(&key, round).unwrap(), None));
        let memory = tree.memory();
        assert_eq!(memory.leaves as u64, SUBTREES * LEAVES);
        begun.push(memory.begun_bytes);
        strewn().for_each(|key| assert_eq!(tree.remove(&key), Some(round)));
        assert_eq!(tree.memory().leaves, 0);
    }
    // Half as much again, where plots lie that nodes of other kinds had in the first round.
    assert!(begun[19] <= begun[0] + begun[0] / 2, "{begun:?}");
    assert_eq!(begun[10], begun[19], "it grows for ever");
}
