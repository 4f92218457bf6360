//! Every allocation that an operation makes fails once: it says so, gives the value back, and the tree is as it was.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use lookaside_art::{Config, OwnedTree, Reason, Tree, fault};

fn small() -> Config {
    Config::new().with_node_bytes(1 << 24).with_leaf_bytes(1 << 24)
}

/// Keys that need every kind of change: forks at leaves and above nodes, growth through all kinds, ends of keys.
fn keys() -> Vec<Vec<u8>> {
    let wide = (0..=255u8).map(|byte| vec![1, 2, byte.wrapping_mul(77), 5]);
    let long = (0..40u8).map(|byte| [&[9; 30][..byte as usize / 2], &[byte]].concat());
    let outside = [vec![7; 600], vec![7; 601]];
    wide.chain(long).chain(outside).chain([vec![], vec![1, 2], vec![1, 2, 9]]).collect()
}

#[test]
fn insertions_fail_whole() {
    let tree = Tree::<[u8], usize>::with_config(&small()).unwrap();
    let reader = tree.pin();
    let mut model = BTreeMap::new();
    let mut refused = 0;
    for (number, key) in keys().into_iter().enumerate() {
        for nth in 0.. {
            let before = tree.memory();
            let (stored, reached) =
                fault::fail_nth(nth, || reader.insert(&key, number).map(|old| old.copied()));
            if !reached {
                assert_eq!(stored.unwrap(), model.insert(key, number));
                break;
            }
            let error = stored.unwrap_err();
            assert_eq!((error.value, error.reason), (number, Reason::Full));
            let after = tree.memory();
            assert_eq!(
                (after.leaves, after.nodes, after.heap_bytes),
                (before.leaves, before.nodes, before.heap_bytes)
            );
            assert!(reader.iter().map(|(key, value)| (key.to_vec(), *value)).eq(model.clone()));
            refused += 1;
        }
    }
    // A leaf each, and a node for most of those that are not alone.
    assert!(refused > model.len() + 20, "{refused} refusals for {} keys", model.len());
}

/// A leaf, and the key behind it on the heap; the first entry of a tree needs no node.
#[test]
fn a_long_key_needs_two_places() {
    let tree = Tree::<[u8], usize>::with_config(&small()).unwrap();
    let reader = tree.pin();
    for nth in 0..2 {
        let (stored, reached) = fault::fail_nth(nth, || reader.insert(&[7; 600], 1).map(|old| old.copied()));
        assert!(reached && stored.is_err(), "{nth}");
        assert_eq!((tree.memory().leaves, tree.memory().heap_bytes), (0, 0));
    }
    let (stored, reached) = fault::fail_nth(2, || reader.insert(&[7; 600], 1).map(|old| old.copied()));
    assert_eq!((stored.unwrap(), reached), (None, false));
    assert_eq!((tree.memory().leaves, tree.memory().heap_bytes), (1, 600));
}

#[test]
fn removals_never_need_memory() {
    let mut tree = OwnedTree::<[u8], usize>::with_config(&small()).unwrap();
    let mut model = BTreeMap::new();
    for (number, key) in keys().into_iter().enumerate() {
        tree.insert(&key, number).unwrap();
        model.insert(key, number);
    }
    let mut refused = 0;
    for key in keys() {
        let (removed, reached) = fault::fail_nth(0, || tree.remove(&key));
        refused += usize::from(reached);
        assert_eq!(removed, model.remove(&key));
        assert!(tree.iter().map(|(key, value)| (key.to_vec(), *value)).eq(model.clone()));
    }
    assert!(refused > 0, "no removal wanted a smaller node");
    assert!(tree.is_empty());
}

#[test]
fn reorganisations_stop_where_there_is_no_room() {
    let tree = Tree::<[u8], usize>::with_config(&small()).unwrap();
    let reader = tree.pin();
    for (number, key) in keys().into_iter().enumerate() {
        reader.insert(&key, number).unwrap();
    }
    let before: Vec<_> = reader.iter().map(|(key, value)| (key.to_vec(), *value)).collect();
    let mut stopped = 0;
    for nth in 0.. {
        let mut reorganization = tree.reorganization(keys());
        let (last, reached) = fault::fail_nth(nth, || reorganization.step(usize::MAX));
        assert_eq!(last, ControlFlow::Break(()));
        assert_eq!(reorganization.done().full, reached);
        assert!(reader.iter().map(|(key, value)| (key.to_vec(), *value)).eq(before.clone()));
        if !reached {
            assert_eq!(reorganization.done().keys, before.len());
            break;
        }
        stopped += 1;
    }
    let entries = before.len();
    drop(reader);
    tree.collect();
    assert_eq!(tree.memory().leaves, entries);
    // Fewer than there are nodes and leaves: what lies in a page that is filled again stays there.
    assert!(stopped > before.len() / 2, "{stopped} allocations for {} entries", before.len());
}

#[test]
fn a_full_tree_says_so_and_goes_on() {
    let config = small().with_node_bytes(1 << 20).with_leaf_bytes(1 << 18);
    let mut tree = OwnedTree::<[u8; 8], u64>::with_config(&config).unwrap();
    let mut stored = 0u64;
    let error = loop {
        match tree.insert(&stored.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), stored) {
            Ok(old) => assert_eq!(old, None),
            Err(error) => break error,
        }
        stored += 1;
    };
    assert_eq!((error.value, error.reason), (stored, Reason::Full));
    assert!(error.to_string().contains("room"));
    assert!(stored > 1000 && tree.len() as u64 == stored);
    for n in 0..stored {
        assert_eq!(tree.remove(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()), Some(n));
    }
    assert_eq!(tree.insert(&[1; 8], 1).unwrap(), None);
}

#[test]
fn no_memory_for_a_tree_is_an_error() {
    // What is as small is not made smaller, and base pages have no smaller kind to fall back to.
    let config = small().with_node_bytes(1 << 20).with_leaf_bytes(1 << 20);
    for nth in 0..2 {
        let (tree, reached) = pages::fault::fail_nth(nth, || Tree::<[u8], u8>::with_config(&config));
        assert!(reached);
        assert!(tree.unwrap_err().to_string().contains("memory"));
    }
}

#[test]
fn a_tree_that_is_refused_all_its_addresses_begins_with_fewer() {
    let mut nth = 0;
    loop {
        let (tree, reached) = pages::fault::fail_nth(nth, || Tree::<[u8], usize>::with_config(&small()));
        let tree = tree.unwrap();
        let reader = tree.pin();
        (0..200_000).for_each(|n: usize| assert!(reader.try_insert(&n.to_be_bytes(), n).is_ok()));
        assert!(reader.iter().map(|(_, n)| *n).eq(0..200_000));
        if !reached {
            break;
        }
        nth += 1;
    }
    assert_eq!(nth, 2, "one for nodes, one for leaves");
}
