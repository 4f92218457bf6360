//! What was replaced is freed, however much a reader writes before it is refreshed, or before it leaves. One test in a file of
//! its own: others beside it would hold the epoch up.

mod quiet;

use std::sync::Arc;

use lookaside_art::{Config, PageKind, Tree};

/// How many leaves may wait: far fewer than are replaced below.
const MOST_WAITING: u64 = 20_000;

#[test]
fn a_reader_that_writes_a_lot_frees_as_much() {
    let config = Config { pages: PageKind::Base, node_bytes: 64 << 20, leaf_bytes: 64 << 20 };
    let tree = Tree::<[u8], Arc<()>>::with(&config).unwrap();
    let value = Arc::new(());
    let mut reader = tree.pin();
    for round in 0..400_u64 {
        (0..1024).for_each(|number| _ = reader.insert(&[(number % 10) as u8], Arc::clone(&value)).unwrap());
        if round < 200 {
            reader.refresh();
        } else {
            drop(reader);
            reader = tree.pin();
        }
        let waiting = Arc::strong_count(&value) as u64;
        assert!(waiting < MOST_WAITING, "{waiting} of {} values were not freed", round * 1024);
    }
    drop(reader);
    quiet::await_leaves(tree.len(), || tree.memory().leaves);
}
