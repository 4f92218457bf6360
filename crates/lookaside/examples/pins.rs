//! What it costs to pin a map for each lookup, and what it costs to stay; with one map, and with several in turn.
//!
//! `cargo run --release -p lookaside --example pins`

use std::collections::BTreeSet;
use std::time::Instant;

use lookaside::{Config, Map, PageKind, RwLock};

const LOOKUPS: usize = 1 << 20;

/// Nanoseconds of each, the least of some rounds.
fn nanoseconds(mut lookups: impl FnMut() -> usize) -> f64 {
    let rounds = (0..15).map(|_| {
        let began = Instant::now();
        assert_eq!(lookups(), LOOKUPS);
        began.elapsed().as_nanos() as f64 / LOOKUPS as f64
    });
    rounds.fold(f64::MAX, f64::min)
}

#[allow(clippy::print_stdout)]
fn main() {
    let maps: Vec<_> = (0..64)
        .map(|_| {
            let config = Config::with_size(64).pages(PageKind::Base);
            let map = Map::new(RwLock::new(BTreeSet::new()), &config).expect("a table of a line");
            map.buffer().monitor(false);
            map.insert(7u64, 7u64);
            map
        })
        .collect();
    let reader = maps[0].pin();
    let kept =
        nanoseconds(|| (0..LOOKUPS).filter(|_| reader.get(std::hint::black_box(&7)).is_some()).count());
    drop(reader);
    println!("a reader that stays: {kept:.1} ns a lookup");
    for number in [1, 8, 9, 64] {
        let pinned = nanoseconds(|| {
            let maps = maps[..number].iter().cycle().take(LOOKUPS);
            maps.filter(|map| map.pin().get(std::hint::black_box(&7)).is_some()).count()
        });
        println!("a pin for each, {number} maps in turn: {pinned:.1} ns a lookup");
    }
}
