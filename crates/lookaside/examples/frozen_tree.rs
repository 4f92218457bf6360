//! A tree that one has and keeps: a `BTreeMap` of names, filled once and then read by threads, with a table before it.
//!
//! `cargo run --release -p lookaside --example frozen_tree [names]`
//!
//! Nothing moves into the library: the tree stays what it is, and a [`Front`] remembers references to the keys and
//! values that are asked for most. While it does, the tree cannot be changed. When it is to be, the front is recycled.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeMap;
use std::time::Instant;

use lookaside::{Config, Front};

type Names = BTreeMap<String, u64>;
/// What the tree lends.
type Entry<'t> = (&'t String, &'t u64);

fn find<'t>(front: &Front<Entry<'t>>, names: &'t Names, name: &str) -> Option<u64> {
    let (_, number) = front.get(name, |(found, _), name| found == name, |name| names.get_key_value(name))?;
    Some(*number)
}

fn name(number: u64) -> String {
    format!("{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Names as they are asked for: some much more often than others.
fn requests(count: u64, seed: u64) -> Vec<String> {
    let mut state = seed;
    let requests = (0..count).map(|_| {
        // Knuth's generator for 64 bits.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
        name((unit.powi(5) * count as f64) as u64)
    });
    requests.collect()
}

fn timed(what: &str, names: &[String], mut find: impl FnMut(&str) -> Option<u64>) {
    let began = Instant::now();
    let sum: u64 = names.iter().map(|name| find(name).expect("it is there")).sum();
    let rate = names.len() as f64 / began.elapsed().as_secs_f64() / 1e6;
    println!("{what:22} {rate:6.2} M lookups a second (sum {sum})");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().nth(1).map_or(Ok(1_000_000), |names| names.parse())?;
    let mut names: Names = (0..count).map(|number| (name(number), number)).collect();

    let front = Front::new(&Config::with_size(16 << 20))?;
    let asked = requests(count, 1);
    timed("the tree", &asked, |name| names.get(name).copied());
    timed("with a cold table", &asked, |name| find(&front, &names, name));
    timed("with a warm table", &asked, |name| find(&front, &names, name));
    std::thread::scope(|threads| {
        for seed in [2, 3] {
            let (front, names, asked) = (&front, &names, requests(count, seed));
            threads.spawn(move || timed("one of two threads", &asked, |name| find(front, names, name)));
        }
    });

    // The tree is changed, and the same memory serves again.
    let kept: Front<Entry<'static>> = front.recycle();
    names.insert("new".to_owned(), count);
    let front = kept.recycle();
    assert_eq!(find(&front, &names, "new"), Some(count));
    Ok(())
}
