//! The limit holds, whatever the sizes: measured as resident memory of this process, in which this test is alone.

use lookaside_cache::engine::{Cache, Config, Entry, StoreError, Verb};
use pages::PageKind;

const MIB: usize = 1 << 20;

/// Bytes of this process that are resident.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn resident_memory_stays_within_the_limit_whatever_the_mix_of_sizes() {
    const LIMIT: usize = 48 * MIB;
    // Sizes that come and go: small, then large, then all, then small again.
    type LengthOf = fn(u64) -> usize;
    let phases: [(u64, LengthOf); 5] = [
        (600_000, |_| 20),
        (400, |key| 300_000 + (key * 7919 % 700_000) as usize),
        (60_000, |key| [3, 50, 700, 5_000, 9_000, 20_000, 100_000, 900_000][(key * 31 % 8) as usize] / 4),
        (2_000_000, |key| (key % 40) as usize),
        (20_000, |key| 4_000 + (key % 9_000) as usize),
    ];
    let before = resident();
    let cache: Cache = Cache::new(Config { pages: PageKind::Base, ..Config::with_limit(LIMIT) }).unwrap();
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    let mut key = 0;
    let mut refused = 0;
    for (phase, (count, len)) in phases.into_iter().enumerate() {
        for i in 0..count {
            key += 1;
            let value = vec![key as u8; len(key)];
            match session.store(Verb::Set, Entry::new(&key.to_be_bytes()), &value) {
                Ok(_) => {
                    assert_eq!(session.pin().get(&key.to_be_bytes()).unwrap().to_vec(), value, "just stored")
                }
                Err(StoreError::OutOfMemory) => refused += 1,
                Err(error) => panic!("{error}"),
            }
            if i % 1000 == 0 {
                housekeeper.step();
            }
        }
        let taken = cache.memory().taken;
        assert!(taken <= LIMIT, "phase {phase}: {taken} taken");
        let grown = resident() - before;
        assert!(grown as f64 <= LIMIT as f64 * 1.10 + (4 * MIB) as f64, "phase {phase}: {grown} resident");
    }
    assert_eq!(refused, 0, "memory moves to where it is wanted");
}
