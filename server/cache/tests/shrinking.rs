//! Memory goes back to the machine when the limit is lowered: measured as resident memory of this process, in which
//! this test is alone.

use lookaside_cache::engine::{Cache, Config, Entry, Todo, Verb};
use pages::PageKind;

const MIB: usize = 1 << 20;

/// Bytes of this process that are resident.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn what_is_resident_follows_the_limit_up_and_down() {
    for kind in [PageKind::Base, PageKind::Transparent] {
        let before = resident();
        let cache: Cache = Cache::new(Config { pages: kind, ..Config::with_limit(16 * MIB) }).unwrap();
        let (mut session, mut housekeeper) = (cache.session(), cache.housekeeper());
        // The machine may take back pages of the program meanwhile.
        assert!(resident().saturating_sub(before) < 8 * MIB, "addresses cost nothing");
        let mut number = 0u64;
        for limit in [16, 96, 24, 4, 4, 48] {
            let limit = limit * MIB;
            cache.resize(limit).unwrap();
            while housekeeper.step() == Todo::More {}
            let grown = resident() - before;
            assert!(grown as f64 <= limit as f64 * 1.10 + (4 * MIB) as f64, "{kind:?}: {grown} of {limit}");
            // All sizes, and small ones, whose index is large.
            let mut stored = 0;
            while stored < 2 * limit {
                number += 1;
                let len = if number.is_multiple_of(50) { number as usize * 31 % 20_000 } else { 20 };
                let key = format!("{number:016}");
                session.store(Verb::Set, Entry::new(key.as_bytes()), &vec![number as u8; len]).unwrap();
                stored += 70 + len;
                if number.is_multiple_of(1000) {
                    housekeeper.step();
                }
            }
            let grown = resident() - before;
            assert!(grown as f64 <= limit as f64 * 1.10 + (4 * MIB) as f64, "{kind:?}: {grown} of {limit}");
            assert!(grown > limit / 10 * 6, "{kind:?}: {limit} is not used: {grown}");
        }
    }
}
