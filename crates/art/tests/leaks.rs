//! Every place that a tree has taken comes back: nodes of every kind, leaves of every size, keys on the heap; in one
//! owner's tree and in a shared one, before and after reorganisation. (Builds with debug assertions check besides,
//! whenever a tree has gone, that none of its places was in use.)

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::unused;
use lookaside_art::{Config, Memory, OwnedTree, PageKind, Tree};

fn small(pages: PageKind) -> Config {
    Config::new().with_pages(pages).with_node_bytes(64 << 20).with_leaf_bytes(64 << 20)
}

/// Keys below nodes of all kinds, prefixes of each other, of many sizes, and some that lie on the heap.
fn keys() -> Vec<Vec<u8>> {
    let fans = [(1, 3u16), (2, 12), (3, 40), (4, 256)];
    let fan = |(first, bytes): (u8, u16)| {
        (0..bytes * 8)
            .map(move |n| [&[first, (n / 8) as u8, 9][..], &vec![5; usize::from(n % 8) * 11]].concat())
    };
    let outside = (0..20).map(|n| [&[6; 600][..], &[n]].concat());
    fans.into_iter().flat_map(fan).chain(outside).chain([vec![], vec![1]]).collect()
}

fn has_every_kind(memory: &Memory) -> bool {
    memory.nodes.iter().all(|nodes| nodes.count > 0) && memory.heap_bytes > 10_000
}

#[test]
fn an_owned_tree_gives_back_what_it_took() {
    let mut tree = OwnedTree::<[u8], Arc<()>>::with_config(&small(PageKind::Base)).unwrap();
    let value = Arc::new(());
    let mut begun = Vec::new();
    for round in 0..6 {
        keys().iter().for_each(|key| assert!(tree.insert(key, Arc::clone(&value)).unwrap().is_none()));
        assert!(has_every_kind(&tree.memory()), "{:?}", tree.memory());
        assert_eq!(Arc::strong_count(&value), 1 + keys().len());
        begun.push(tree.memory().begun_bytes);
        if round % 2 == 0 {
            keys().iter().for_each(|key| assert!(tree.remove(key).is_some()));
        } else {
            assert_eq!(tree.remove_prefix(&[]), keys().len());
        }
        assert_eq!(Arc::strong_count(&value), 1);
        unused::assert_unused(&tree.memory());
    }
    assert!(begun.iter().all(|&bytes| bytes == begun[0]), "what is free is not used: {begun:?}");
    keys().iter().for_each(|key| assert!(tree.insert(key, Arc::clone(&value)).unwrap().is_none()));
    drop(tree);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_shared_tree_gives_back_what_it_took_and_what_was_moved() {
    gives_back_what_was_moved(PageKind::Base);
}

#[test]
fn so_does_one_in_huge_pages() {
    gives_back_what_was_moved(PageKind::Transparent);
}

fn gives_back_what_was_moved(pages: PageKind) {
    let tree = Tree::<[u8], Arc<()>>::with_config(&small(pages)).unwrap();
    let value = Arc::new(());
    let mut begun = Vec::new();
    for round in 0..12 {
        let mut reader = tree.pin();
        for (n, key) in keys().iter().enumerate() {
            assert!(reader.insert(key, Arc::clone(&value)).unwrap().is_none());
            if n % 16 == 0 {
                reader.refresh();
            }
        }
        assert!(has_every_kind(&tree.memory()), "{:?}", tree.memory());
        drop(reader);
        if round % 3 > 0 {
            let mut reorganization = tree.reorganization(keys());
            while reorganization.step(64).is_continue() {}
            assert_eq!(reorganization.done().leaves, keys().len());
        }
        tree.collect();
        assert_eq!(tree.memory().leaves, keys().len());
        assert_eq!(Arc::strong_count(&value), 1 + keys().len());
        begun.push(tree.memory().begun_bytes);
        let reader = tree.pin();
        if round % 2 == 0 {
            keys().iter().for_each(|key| assert!(reader.remove(key).is_some()));
        } else {
            assert_eq!(reader.remove_prefix(&[]), keys().len());
        }
        drop(reader);
        tree.collect();
        unused::assert_unused(&tree.memory());
        assert_eq!(Arc::strong_count(&value), 1);
    }
    assert!(begun[11] <= begun[5], "what is free is not used: {begun:?}");
    let reader = tree.pin();
    keys().iter().for_each(|key| assert!(reader.insert(key, Arc::clone(&value)).unwrap().is_none()));
    drop(reader);
    drop(tree);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Its destructor panics, with what panics when it is dropped.
struct Spiteful(Arc<AtomicUsize>);

impl Drop for Spiteful {
    fn drop(&mut self) {
        struct Payload;
        impl Drop for Payload {
            fn drop(&mut self) {
                resume_unwind(Box::new(()));
            }
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        resume_unwind(Box::new(Payload));
    }
}

#[test]
fn values_whose_destructors_panic_keep_no_place() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut tree = OwnedTree::<[u8], Spiteful>::with_config(&small(PageKind::Base)).unwrap();
    let fill = |tree: &mut OwnedTree<[u8], Spiteful>| {
        keys().iter().for_each(|key| {
            assert!(tree.insert(key, Spiteful(Arc::clone(&dropped))).unwrap().is_none());
        });
    };
    fill(&mut tree);
    assert_eq!(tree.remove_prefix(&[]), keys().len());
    unused::assert_unused(&tree.memory());
    assert_eq!(dropped.load(Ordering::Relaxed), keys().len());
    fill(&mut tree);
    drop(tree);
    assert_eq!(dropped.load(Ordering::Relaxed), 2 * keys().len());
}
