//! Operations on an adaptive radix tree and on the standard library's ordered map: they always agree.

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use art::{Config, OwnedTree, Tree};

use crate::Shown;

#[derive(Debug, Arbitrary)]
enum Operation<'a> {
    Insert(&'a [u8]),
    Remove(&'a [u8]),
    RemovePrefix(&'a [u8]),
    Get(&'a [u8]),
    From(&'a [u8]),
    Below(&'a [u8]),
    Prefix(&'a [u8]),
    /// All one-byte extensions in a range of bytes: fills nodes of every kind.
    Fill(&'a [u8], u8, u8),
    Reorganize(&'a [u8]),
    TryInsert(&'a [u8]),
    Replace(&'a [u8]),
    /// The key, and all its beginnings, at once.
    GetMany(&'a [u8]),
    Ends,
    Pop,
    /// Keeps those whose keys have an even number of this byte.
    Retain(u8),
    Clear,
    /// From one key to another, from both ends in turns.
    Between(&'a [u8], &'a [u8]),
}

/// Operations on a tree, made of bytes.
pub fn tree(data: &[u8]) {
    let operations =
        Vec::<Operation>::arbitrary_take_rest(Unstructured::new(data)).expect("any bytes make some");
    let _shown = Shown(&operations);
    let config = Config::new().with_node_bytes(1 << 24).with_leaf_bytes(1 << 24);
    let shared = Tree::<[u8], usize>::with_config(&config).expect("room for a tree");
    let mut owned = OwnedTree::<[u8], usize>::with_config(&config).expect("room for a tree");
    let mut model: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let mut reader = shared.pin();
    for (number, operation) in operations.iter().enumerate() {
        // So that what has left the tree is freed, and used again, while it goes on.
        reader.refresh();
        match operation {
            Operation::Insert(key) => {
                let old = model.insert(key.to_vec(), number);
                assert_eq!(reader.insert(key, number).expect("room").copied(), old);
                assert_eq!(owned.insert(key, number).expect("room"), old);
            }
            Operation::Fill(prefix, first, last) => {
                for byte in *first..=*last {
                    let key = [prefix, &[byte][..]].concat();
                    let old = model.insert(key.clone(), number);
                    assert_eq!(reader.insert(&key, number).expect("room").copied(), old);
                    assert_eq!(owned.insert(&key, number).expect("room"), old);
                }
            }
            Operation::Remove(key) => {
                let old = model.remove(*key);
                assert_eq!(reader.remove(key).copied(), old);
                assert_eq!(owned.remove(key), old);
            }
            Operation::RemovePrefix(prefix) => {
                let before = model.len();
                model.retain(|key, _| !key.starts_with(prefix));
                assert_eq!(reader.remove_prefix(prefix), before - model.len());
                assert_eq!(owned.remove_prefix(prefix), before - model.len());
            }
            Operation::Get(key) => {
                assert_eq!(reader.get(key), model.get(*key));
                assert_eq!(owned.get(key), model.get(*key));
            }
            Operation::From(key) => {
                let expected = model.range(key.to_vec()..).map(|(key, value)| (&key[..], value));
                assert!(reader.range(*key..).eq(expected.clone()));
                assert!(owned.range(*key..).eq(expected));
            }
            Operation::Below(key) => {
                let expected = model.range(..key.to_vec()).rev().map(|(key, value)| (&key[..], value));
                assert!(reader.range(..*key).rev().eq(expected.clone()));
                assert!(owned.range(..*key).rev().eq(expected));
            }
            Operation::Prefix(prefix) => {
                let expected = model.iter().filter(|(key, _)| key.starts_with(prefix));
                let expected = expected.map(|(key, value)| (&key[..], value));
                assert!(reader.prefix(prefix).eq(expected.clone()));
                assert!(owned.prefix(prefix).eq(expected));
            }
            Operation::TryInsert(key) => {
                let is_new = !model.contains_key(*key);
                if is_new {
                    model.insert(key.to_vec(), number);
                }
                assert_eq!(reader.try_insert(key, number).is_ok(), is_new);
                assert_eq!(owned.try_insert(key, number).is_ok(), is_new);
            }
            Operation::Replace(key) => {
                let old = model.get_mut(*key).map(|value| std::mem::replace(value, number));
                assert_eq!(reader.replace(key, number).expect("room").copied(), old);
                assert_eq!(owned.replace(key, number).expect("room"), old);
            }
            Operation::GetMany(key) => {
                let keys: Vec<&[u8]> = (0..=key.len()).map(|length| &key[..length]).collect();
                let expected: Vec<_> = keys.iter().map(|key| model.get(*key)).collect();
                let (mut found, mut owns) = (vec![None; keys.len()], vec![None; keys.len()]);
                reader.get_many(&keys, &mut found);
                owned.get_many(&keys, &mut owns);
                assert_eq!((&found, &owns), (&expected, &expected));
            }
            Operation::Ends => {
                let entry =
                    |entry: Option<(&Vec<u8>, &usize)>| entry.map(|(key, value)| (key.clone(), *value));
                let found = |entry: Option<(&[u8], &usize)>| entry.map(|(key, value)| (key.to_vec(), *value));
                assert_eq!(found(reader.first_key_value()), entry(model.first_key_value()));
                assert_eq!(found(reader.last_key_value()), entry(model.last_key_value()));
                assert_eq!(found(owned.first_key_value()), entry(model.first_key_value()));
                assert_eq!(found(owned.last_key_value()), entry(model.last_key_value()));
            }
            Operation::Pop => {
                let (first, last) = (model.pop_first(), model.pop_last());
                let found = |entry: Option<(&[u8], &usize)>| entry.map(|(key, value)| (key.to_vec(), *value));
                assert_eq!(found(reader.pop_first()), first);
                assert_eq!(found(reader.pop_last()), last);
                assert_eq!(owned.pop_first(), first);
                assert_eq!(owned.pop_last(), last);
            }
            Operation::Retain(byte) => {
                let keep = |key: &[u8]| key.iter().filter(|other| *other == byte).count() % 2 == 0;
                model.retain(|key, _| keep(key));
                reader.retain(|key, _| keep(key));
                owned.retain(|key, _| keep(key));
            }
            Operation::Clear => {
                model.clear();
                reader.clear();
                owned.clear();
            }
            Operation::Between(from, to) if from <= to => {
                let mut expected =
                    model.range(from.to_vec()..to.to_vec()).map(|(key, value)| (&key[..], value));
                let mut found = reader.range(*from..*to);
                for turn in 0.. {
                    let (found, expected) = if turn % 3 == 0 {
                        (found.next_back(), expected.next_back())
                    } else {
                        (found.next(), expected.next())
                    };
                    assert_eq!(found, expected);
                    if found.is_none() {
                        break;
                    }
                }
            }
            // The standard library's map panics where the bounds are the wrong way round; the tree shows nothing.
            Operation::Between(from, to) => assert_eq!(reader.range(*from..*to).count(), 0),
            Operation::Reorganize(key) => {
                let mut reorganization = shared.reorganization(vec![key.to_vec()]);
                while reorganization.step(1).is_continue() {}
                assert_eq!(reader.get(key), model.get(*key));
            }
        }
    }
    assert!(reader.iter().eq(model.iter().map(|(key, value)| (&key[..], value))));
    assert_eq!((shared.len(), owned.len()), (model.len(), model.len()));
}
