//! Two fixed sequences of accesses, and what the named machines counted on them when it was last agreed that this was
//! right.
//!
//! A change in any number is either a mistake or a decision. If it is a decision, `LOOKASIDE_BLESS=1 cargo
//! test -p lookaside-sim golden` writes the new numbers, to be reviewed as part of the change.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::by_hand::{hash, instruction};
use sim::stlt::Variant;
use sim::{AccessKind, Core, CoreStatistics, Machine, MemoryAccess, Profile, Statistics};

/// What a machine counted, and how long a chain of dependent accesses took.
#[derive(serde::Serialize)]
struct Golden {
    machine: Statistics,
    dependent: CoreStatistics,
}

/// A lookup's rank, skewed: half of them fall on a hundredth of the keys.
fn skewed(number: u64, keys: u64) -> u64 {
    let draw = hash(number);
    if draw & 1 == 0 { (draw >> 1) % (keys / 100) } else { (draw >> 1) % keys }
}

/// Lookups in a hash table with chains: the stack, the bucket, one to three records, the record's value;
/// every tenth one writes.
fn chained_hash() -> Vec<(u64, AccessKind)> {
    let keys = 50_000;
    let mut accesses = Vec::new();
    for number in 0..1_000 {
        let key = skewed(number, keys);
        accesses.push((0x7ffe_0000_0f00 + number % 8 * 8, AccessKind::Store));
        accesses.push((0x55aa_0000_0000 + hash(key) % 65_536 * 8, AccessKind::Load));
        for step in 0..=hash(key) >> 8 & 1 {
            let record = 0x55bb_0000_0000 + hash(key ^ (1 - step) << 40) % (1 << 24) / 96 * 96;
            accesses.push((record, AccessKind::Load));
            accesses.push((record + 24, AccessKind::Load));
        }
        let kind = if number % 10 == 0 { AccessKind::Store } else { AccessKind::Load };
        accesses.push((0x55cc_0000_0000 + key * 256, kind));
    }
    accesses
}

/// Searches in a binary tree of 50 000 nodes that were allocated in random order.
fn binary_tree() -> Vec<(u64, AccessKind)> {
    let keys = 50_000;
    let mut accesses = Vec::new();
    for number in 0..400 {
        let key = skewed(number, keys);
        let (mut low, mut high) = (0, keys);
        while low < high {
            let middle = (low + high) / 2;
            accesses.push((0x55dd_0000_0000 + hash(middle) % (1 << 22) * 64, AccessKind::Load));
            match middle.cmp(&key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => break,
            }
        }
    }
    accesses
}

fn measured(profile: &Profile, accesses: &[(u64, AccessKind)]) -> Golden {
    let mut machine = Machine::new(profile).expect("a legal profile");
    machine.replay(accesses.iter().copied());
    let mut core = Core::new(profile).expect("a legal profile");
    let chain = instruction(&[1], &[1], 0);
    for &(address, kind) in accesses {
        let access = match kind {
            AccessKind::Store => MemoryAccess::store(address, 8),
            AccessKind::Load | AccessKind::Fetch => MemoryAccess::load(address, 8),
        };
        core.execute(&chain, &[access], None);
    }
    Golden { machine: machine.statistics(), dependent: core.statistics() }
}

fn check(name: &str, accesses: &[(u64, AccessKind)]) {
    let golden: BTreeMap<_, _> = [Profile::sandy_bridge(), Profile::stlt_paper(), Profile::current_server()]
        .iter()
        .map(|profile| (profile.name.clone(), measured(profile, accesses)))
        .collect();
    let text = serde_json::to_string_pretty(&golden).expect("numbers") + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name).with_extension("json");
    if std::env::var_os("LOOKASIDE_BLESS").is_some_and(|value| value == "1") {
        fs::write(&file, &text).expect("the directory of numbers");
    }
    let agreed = fs::read_to_string(&file).expect("the numbers agreed upon");
    assert!(
        agreed == text,
        "{} differs from what was agreed; the module's comment says how to change it",
        file.display()
    );
}

#[test]
fn chained_hash_counts_what_it_counted() {
    check("chained_hash", &chained_hash());
}

#[test]
fn binary_tree_counts_what_it_counted() {
    check("binary_tree", &binary_tree());
}

#[test]
fn a_table_of_records_counts_what_can_be_foreseen() {
    // The lookups' values as records of an STLT: every second lookup of a key is a hit, whatever the
    // machine.
    let accesses = chained_hash();
    let records: Vec<u64> =
        accesses.iter().map(|&(address, _)| address).filter(|address| address >> 32 == 0x55cc).collect();
    let mut machine = Machine::new(&Profile::stlt_paper()).expect("a legal profile");
    machine.stlt_alloc(1 << 20, 8, Variant::Full).expect("a legal table");
    for &record in &records {
        machine.access(record, AccessKind::Load);
        if machine.load_va(hash(record)).address != record {
            machine.insert_stlt(hash(record), record);
        }
    }
    let mut distinct = records.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let counts = machine.statistics().stlt;
    // 131 072 sets of eight for a few hundred keys: none is lost.
    assert_eq!(counts.inserted, distinct.len() as u64);
    assert_eq!(counts.hits, (records.len() - distinct.len()) as u64);
    assert_eq!((counts.evicted, counts.replaced), (0, 0));
}
