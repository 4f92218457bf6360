//! Sequences of operations against the standard library's ordered map: both faces, all kinds of key, keys that are
//! prefixes of each other, bytes at the ends of their range, and nodes at the boundaries of their kinds.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;

use lookaside_art::{Config, Key, Kind, OwnedTree, Tree, TryInsertError, encode};
use proptest::prelude::*;

fn small() -> Config {
    Config::new().with_node_bytes(64 << 20).with_leaf_bytes(64 << 20)
}

#[derive(Debug, Clone)]
enum Operation<K> {
    Insert(K),
    TryInsert(K),
    Replace(K),
    Remove(K),
    RemovePrefix(K, usize),
    Get(K),
    GetMany(Vec<K>),
    Range(Bound<K>, Bound<K>, Vec<bool>),
    Prefix(K, usize),
    Ends,
    Pop(bool),
    /// Keeps those whose values have another remainder by the first number than the second.
    Retain(u64, u64),
    Clear,
}

fn bound<K: std::fmt::Debug + Clone + 'static>(key: BoxedStrategy<K>) -> BoxedStrategy<Bound<K>> {
    prop_oneof![
        4 => key.clone().prop_map(Bound::Included),
        4 => key.prop_map(Bound::Excluded),
        1 => Just(Bound::Unbounded),
    ]
    .boxed()
}

fn operations<K: std::fmt::Debug + Clone + 'static>(
    key: BoxedStrategy<K>,
) -> BoxedStrategy<Vec<Operation<K>>> {
    let operation = prop_oneof![
        20 => key.clone().prop_map(Operation::Insert),
        4 => key.clone().prop_map(Operation::TryInsert),
        4 => key.clone().prop_map(Operation::Replace),
        12 => key.clone().prop_map(Operation::Remove),
        1 => (key.clone(), 1usize..9).prop_map(|(key, length)| Operation::RemovePrefix(key, length)),
        4 => key.clone().prop_map(Operation::Get),
        2 => prop::collection::vec(key.clone(), 0..70).prop_map(Operation::GetMany),
        3 => (bound(key.clone()), bound(key.clone()), prop::collection::vec(any::<bool>(), 0..40))
            .prop_map(|(from, to, ends)| Operation::Range(from, to, ends)),
        2 => (key, 0usize..9).prop_map(|(key, length)| Operation::Prefix(key, length)),
        1 => Just(Operation::Ends),
        4 => any::<bool>().prop_map(Operation::Pop),
        1 => (2u64..9, 0u64..9).prop_map(|(by, rest)| Operation::Retain(by, rest)),
    ];
    // Seldom, for what follows it begins with an empty tree.
    let operation = prop_oneof![400 => operation, 1 => Just(Operation::Clear)];
    prop::collection::vec(operation, 1..400).boxed()
}

type Model = BTreeMap<Vec<u8>, u64>;

fn bytes<'k, K: Key + ?Sized>(bound: &Bound<&'k K>) -> Bound<&'k [u8]> {
    bound.map(AsRef::as_ref)
}

fn is_inside(key: &[u8], from: &Bound<&[u8]>, to: &Bound<&[u8]>) -> bool {
    (match *from {
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
        Bound::Unbounded => true,
    }) && (match *to {
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
        Bound::Unbounded => true,
    })
}

/// The two faces, which only differ in whether they show or give values.
macro_rules! agree {
    ($name:ident, $tree:ident, $change:ident, $own:expr, $collect:block) => {
        fn $name<K: Key + ?Sized>(operations: &[Operation<K::Owned>]) -> Result<(), TestCaseError> {
            #[allow(unused_mut)]
            let mut tree = $tree::<K, u64>::with_config(&small()).unwrap();
            let mut model = Model::new();
            for (number, operation) in operations.iter().enumerate() {
                let value = number as u64;
                {
                    let $change = &mut tree;
                    #[allow(unused_mut)]
                    let mut at = $own;
                    match operation {
                        Operation::Insert(key) => {
                            let key: &K = key.borrow();
                            let old = model.insert(key.as_ref().to_vec(), value);
                            prop_assert_eq!(at.insert(key, value).unwrap().map(|old| old.to_owned()), old);
                        }
                        Operation::TryInsert(key) => {
                            let key: &K = key.borrow();
                            prop_assert_eq!(at.contains_key(key), model.contains_key(key.as_ref()));
                            let present = *model.entry(key.as_ref().to_vec()).or_insert(value);
                            match at.try_insert(key, value) {
                                Ok(stored) => prop_assert_eq!((*stored, present), (value, value)),
                                Err(TryInsertError::Occupied { current, value: refused, .. }) => {
                                    prop_assert_eq!((*current, refused), (present, value));
                                    prop_assert_ne!(present, value);
                                }
                                Err(refused) => prop_assert!(false, "{}", refused),
                            }
                        }
                        Operation::Replace(key) => {
                            let key: &K = key.borrow();
                            let old = model.get_mut(key.as_ref()).map(|old| std::mem::replace(old, value));
                            prop_assert_eq!(at.replace(key, value).unwrap().map(|old| old.to_owned()), old);
                        }
                        Operation::Remove(key) => {
                            let key: &K = key.borrow();
                            prop_assert_eq!(
                                at.remove(key).map(|old| old.to_owned()),
                                model.remove(key.as_ref())
                            );
                        }
                        Operation::RemovePrefix(key, length) => {
                            let key: &K = key.borrow();
                            let prefix = &key.as_ref()[..key.as_ref().len().min(*length)];
                            let before = model.len();
                            model.retain(|key, _| !key.starts_with(prefix));
                            prop_assert_eq!(at.remove_prefix(prefix), before - model.len());
                        }
                        Operation::Get(key) => {
                            let key: &K = key.borrow();
                            let mut touched = Vec::new();
                            prop_assert_eq!(at.get(key), model.get(key.as_ref()));
                            prop_assert_eq!(at.get_watched(key, &mut touched), model.get(key.as_ref()));
                            prop_assert!(!touched.is_empty() || !model.contains_key(key.as_ref()));
                        }
                        Operation::GetMany(keys) => {
                            let keys: Vec<&K> = keys.iter().map(|key| key.borrow()).collect();
                            let mut found = vec![None; keys.len()];
                            at.get_many(&keys, &mut found);
                            let expected: Vec<_> = keys.iter().map(|key| model.get(key.as_ref())).collect();
                            prop_assert_eq!(found, expected);
                        }
                        Operation::Range(from, to, ends) => {
                            let (from, to) =
                                (from.as_ref().map(|key| key.borrow()), to.as_ref().map(|key| key.borrow()));
                            let inside =
                                |(key, _): &(&Vec<u8>, &u64)| is_inside(key, &bytes(&from), &bytes(&to));
                            let mut expected =
                                model.iter().filter(inside).map(|(key, value)| (&key[..], value));
                            let found = at.range((from, to)).map(|(key, value)| (key.as_ref(), value));
                            prop_assert_eq!(found.collect::<Vec<_>>(), expected.clone().collect::<Vec<_>>());
                            let mut range = at.range((from, to)).map(|(key, value)| (key.as_ref(), value));
                            for &end in ends {
                                if end {
                                    prop_assert_eq!(range.next_back(), expected.next_back());
                                } else {
                                    prop_assert_eq!(range.next(), expected.next());
                                }
                            }
                        }
                        Operation::Prefix(key, length) => {
                            let key: &K = key.borrow();
                            let prefix = &key.as_ref()[..key.as_ref().len().min(*length)];
                            let expected: Vec<_> = model
                                .iter()
                                .filter(|(key, _)| key.starts_with(prefix))
                                .map(|(key, _)| &key[..])
                                .collect();
                            let found: Vec<_> = at.prefix(prefix).map(|(key, _)| key.as_ref()).collect();
                            prop_assert_eq!(&found, &expected);
                            let mut found: Vec<_> =
                                at.prefix(prefix).rev().map(|(key, _)| key.as_ref()).collect();
                            found.reverse();
                            prop_assert_eq!(found, expected);
                        }
                        Operation::Ends => {
                            let ends = [at.first_key_value(), at.last_key_value()]
                                .map(|end| end.map(|(key, value)| (key.as_ref(), value)));
                            let expected = [model.first_key_value(), model.last_key_value()];
                            prop_assert_eq!(
                                ends,
                                expected.map(|end| end.map(|(key, value)| (&key[..], value)))
                            );
                        }
                        Operation::Pop(first) => {
                            let popped = if *first { at.pop_first() } else { at.pop_last() };
                            let popped = popped.map(|(key, value)| {
                                let key: &K = key.borrow();
                                (key.as_ref().to_vec(), value.to_owned())
                            });
                            prop_assert_eq!(
                                popped,
                                if *first { model.pop_first() } else { model.pop_last() }
                            );
                        }
                        Operation::Retain(by, rest) => {
                            let mut asked = Vec::new();
                            at.retain(|key, value| {
                                asked.push((key.as_ref().to_vec(), *value));
                                *value % by != *rest
                            });
                            prop_assert!(asked.iter().map(|(key, value)| (key, value)).eq(&model));
                            model.retain(|_, value| *value % by != *rest);
                        }
                        Operation::Clear => {
                            at.clear();
                            model.clear();
                        }
                    }
                    prop_assert_eq!(at.iter().count(), model.len());
                }
                prop_assert_eq!(tree.len(), model.len());
            }
            #[allow(unused_mut)]
            let all: Vec<_> = {
                let $change = &mut tree;
                let at = $own;
                at.iter().map(|(key, value)| (key.as_ref().to_vec(), *value)).collect()
            };
            let entries = model.len();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
            {
                #[allow(unused)]
                let $change = &tree;
                $collect
            }
            prop_assert_eq!(tree.memory().leaves, entries);
            Ok(())
        }
    };
}
agree!(shared_agrees, Tree, tree_, tree_.pin(), {
    tree_.collect();
});
agree!(owned_agrees, OwnedTree, tree_, tree_, {});

fn both<K: Key + ?Sized>(operations: &[Operation<K::Owned>]) -> Result<(), TestCaseError> {
    shared_agrees::<K>(operations)?;
    owned_agrees::<K>(operations)
}

/// Bytes that are often those at the ends, and often alike.
fn byte() -> BoxedStrategy<u8> {
    prop_oneof![3 => Just(0u8), 3 => Just(255u8), 2 => 1u8..4, 1 => any::<u8>()].boxed()
}

fn short() -> BoxedStrategy<Vec<u8>> {
    prop::collection::vec(byte(), 0..7).boxed()
}

/// Keys with long common parts, some longer than any leaf.
fn long() -> BoxedStrategy<Vec<u8>> {
    let common = prop_oneof![Just(0usize), Just(3), Just(40), Just(480), Just(700)];
    (common, 0u8..2, short()).prop_map(|(length, fill, end)| [vec![fill; length], end].concat()).boxed()
}

/// Many different bytes at two places, so that nodes grow and shrink through all kinds.
fn wide() -> BoxedStrategy<[u8; 3]> {
    (prop_oneof![Just(0u8), Just(7)], prop_oneof![2 => any::<u8>(), 1 => 0u8..20], 0u8..2)
        .prop_map(|(a, b, c)| [a, b, c])
        .boxed()
}

/// Fewer where they are slow: under the sanitizers, which set the variable.
fn cases() -> u32 {
    match std::env::var_os("LOOKASIDE_STRESS_CHANGES") {
        Some(_) => 40,
        None if cfg!(debug_assertions) => 150,
        None => 600,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn strings_that_begin_each_other(operations in operations(short())) {
        both::<[u8]>(&operations)?;
    }

    #[test]
    fn strings_with_long_common_parts(operations in operations(long())) {
        both::<[u8]>(&operations)?;
    }

    #[test]
    fn wide_nodes(operations in operations(wide())) {
        both::<[u8; 3]>(&operations)?;
    }

    #[test]
    fn numbers_of_32_bits(operations in operations(
        prop_oneof![any::<u32>(), 0u32..600, (u32::MAX - 300)..].prop_map(encode::u32).boxed()
    )) {
        both::<[u8; 4]>(&operations)?;
    }

    #[test]
    fn numbers_of_64_bits(operations in operations(
        prop_oneof![any::<u64>(), 0u64..600, (0u64..300).prop_map(|n| n << 40)].prop_map(encode::u64).boxed()
    )) {
        both::<[u8; 8]>(&operations)?;
    }

    #[test]
    fn signed_numbers(operations in operations(
        prop_oneof![any::<i64>(), -300i64..300].prop_map(encode::i64).boxed()
    )) {
        both::<[u8; 8]>(&operations)?;
    }

    #[test]
    fn pairs(operations in operations(
        (short(), 0u32..40).prop_map(|(text, n)| encode::tuple(&(text, n))).boxed()
    )) {
        both::<[u8]>(&operations)?;
    }

    #[test]
    fn text(operations in operations("(ab|abc|http://|x)?[a-c]{0,3}".prop_map(String::into_bytes).boxed())) {
        both::<[u8]>(&operations)?;
    }
}

/// The kind of the only node of a tree.
fn kind_of(tree: &OwnedTree<[u8; 2], u64>) -> Option<Kind> {
    let nodes = tree.memory().nodes;
    assert!(nodes.iter().map(|node| node.count).sum::<usize>() <= 1);
    nodes.iter().find(|node| node.count == 1).map(|node| node.kind)
}

#[test]
fn a_node_passes_through_all_kinds_and_back() {
    let mut tree = OwnedTree::with_config(&small()).unwrap();
    // Neither rising nor falling: every byte once.
    let byte = |n: usize| (n * 89 + 3) as u8;
    let mut kinds = Vec::new();
    for n in 0..256 {
        tree.insert(&[7, byte(n)], n as u64).unwrap();
        kinds.push(kind_of(&tree));
    }
    let grown = |n: usize| match n {
        1 => None,
        2..=4 => Some(Kind::Node4),
        5..=16 => Some(Kind::Node16),
        17..=48 => Some(Kind::Node48),
        _ => Some(Kind::Node256),
    };
    assert_eq!(kinds, (1..=256).map(grown).collect::<Vec<_>>());
    for n in (0..256).rev() {
        assert!((0..=n).all(|n| tree.get(&[7, byte(n)]) == Some(&(n as u64))));
        assert_eq!(tree.remove(&[7, byte(n)]), Some(n as u64));
        assert_eq!(tree.get(&[7, byte(n)]), None);
        let shrunk = match n {
            0 | 1 => None,
            2..=3 => Some(Kind::Node4),
            4..=12 => Some(Kind::Node16),
            13..=37 => Some(Kind::Node48),
            _ => Some(Kind::Node256),
        };
        assert_eq!(kind_of(&tree), shrunk, "{n} left");
    }
    assert_eq!((tree.len(), tree.memory().leaves), (0, 0));
}

#[test]
fn memory_is_what_was_put_in() {
    let mut tree = OwnedTree::<[u8], u64>::with_config(&small()).unwrap();
    tree.insert(&[b'a'; 100], 1).unwrap();
    let one = tree.memory();
    assert_eq!((one.leaves, one.leaf_bytes, one.node_bytes(), one.heap_bytes), (1, 128, 0, 0));
    tree.insert(&[b'a'; 1000], 2).unwrap();
    let two = tree.memory();
    // The second one's leaf is a length, a value and an address.
    assert_eq!((two.leaves, two.leaf_bytes, two.node_bytes(), two.heap_bytes), (2, 128 + 32, 32, 1000));
    assert_eq!(tree.remove_prefix(b"aaa"), 2);
    let none = tree.memory();
    assert_eq!((none.leaves, none.leaf_bytes, none.node_bytes(), none.heap_bytes), (0, 0, 0, 0));
    assert_eq!(none.free_bytes, 128 + 32 + 32);
    assert_eq!(none.begun_bytes, two.begun_bytes);
}

#[test]
fn evenly_spaced_keys_take_what_the_paper_takes_at_most() {
    // Table 4 of the paper: MiB for 512k and 1M keys, spread evenly over 32 bits, and for the first numbers.
    for (keys, sparse, dense) in [(512u32 << 10, 14.0, 10.0), (1 << 20, 22.0, 19.0)] {
        for (stride, paper) in [((1u64 << 32) / u64::from(keys), sparse), (1, dense)] {
            let mut tree = OwnedTree::<[u8; 4], u32>::new().unwrap();
            for n in 0..keys {
                tree.insert(&encode::u32((u64::from(n) * stride) as u32), n).unwrap();
            }
            let mib = tree.memory().node_bytes() as f64 / f64::from(1 << 20);
            assert!(mib <= 1.1 * paper, "{keys} keys, each {stride}: {mib} MiB of nodes");
        }
    }
}

#[test]
fn values_are_dropped_once() {
    use std::sync::Arc;
    let value = Arc::new(());
    let mut owned = OwnedTree::<[u8], Arc<()>>::with_config(&small()).unwrap();
    for n in 0..500u32 {
        owned.insert(&n.to_le_bytes(), value.clone()).unwrap();
        owned.insert(&n.to_le_bytes(), value.clone()).unwrap();
    }
    assert_eq!(Arc::strong_count(&value), 501);
    assert!(owned.try_insert(&0u32.to_le_bytes(), value.clone()).is_err());
    owned.replace(b"absent", value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 501);
    owned.remove_prefix(&[7]);
    owned.remove(&8u32.to_le_bytes());
    assert_eq!(Arc::strong_count(&value), 1 + owned.len());
    drop(owned);
    assert_eq!(Arc::strong_count(&value), 1);
}
