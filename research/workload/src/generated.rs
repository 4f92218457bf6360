//! Traces that are generated: requests of the same shape as recorded or published ones, for everyone who has none of
//! these.
//!
//! | name | shape of | what is alike |
//! |---|---|---|
//! | `generated/orm-busy` | cache2k's trace of that name | number of requests and keys, popularity, recency |
//! | `generated/web07` | cache2k's trace of that name | the same |
//! | `generated/fb-cdn` | Meta's sample of a content-delivery network | the same; the form of keys |
//! | `generated/kvcache_reg`, `generated/cdn`, ... | CacheLib's published workloads | popularity, sizes of keys |
//!
//! A generated trace is the same in every run and on every machine.
//!
//! **Of recorded traces**, the table has classes of keys, the hottest first: so many keys, the requests that they got
//! together, and seventeen quantiles of the gaps, in requests, between one request for a key and the next. Each key
//! gets its part of the requests, gaps drawn from its class, and a place for the whole; sorted by time, that is the
//! trace. So popularity is that of the record exactly, and an LRU cache of 1/64 to 1/2 of the keys hits as often to
//! within two and a half per cent of the requests (`tests/generated.rs`). Rejected: drawing keys independently.
//! Recorded requests come in bursts; without these, LRU with room for 1/64 of orm-busy's keys hits 23 % instead of 79
//! %. What is not alike: keys that are asked for together.
//!
//! **Of published workloads**, a million requests are drawn, for the publications have no order.

use std::collections::HashSet;
use std::fmt;

use rand::distr::Distribution;
use rand::{Rng, RngExt};

use crate::cachelib::Workload;
use crate::generator;
use crate::key::{Key, spell};
use crate::record::Record;
use crate::sizes::Sizes;
use crate::table::{Table, number};

/// What the names of generated traces begin with.
pub const PREFIX: &str = "generated/";

/// Requests that are drawn of a published workload.
const DRAWN: u64 = 1_000_000;
const SEED: u64 = 7;

/// A generated trace: its requests, in order.
///
/// ```
/// use lookaside_workload::generated::Generated;
///
/// let web07 = Generated::named("generated/web07").expect("a shape that is known");
/// assert_eq!(web07.count(), 76_118);
/// ```
pub struct Generated {
    requests: Box<dyn Iterator<Item = Record> + Send>,
}

impl fmt::Debug for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generated")
    }
}

impl Iterator for Generated {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.requests.next()
    }
}

impl Generated {
    /// The trace of this name, with [`PREFIX`], or `None` where no shape has it.
    pub fn named(name: &str) -> Option<Generated> {
        let shape = name.strip_prefix(PREFIX)?;
        let requests: Box<dyn Iterator<Item = Record> + Send> =
            if let Some(workload) = Workload::published(shape) {
                Box::new(of_workload(workload))
            } else {
                let table = Table::named(shape).filter(|table| table.rows("class").next().is_some())?;
                Box::new(of_record(table))
            };
        Some(Generated { requests })
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = String> {
        Table::names_with("class").chain(Table::names_with("get")).map(|shape| format!("{PREFIX}{shape}"))
    }
}

/// Keys of about the same popularity.
struct Class {
    keys: u64,
    requests: u64,
    /// Quantiles, evenly spaced, the first and the last of which are the extremes.
    gaps: Vec<f64>,
}

impl Class {
    /// Rows: keys, requests, gaps. Of keys that came once there are no gaps.
    fn all(table: Table) -> Vec<Class> {
        let class = |row: Vec<u64>| Class {
            keys: row[0],
            requests: row[1],
            gaps: row[2..].iter().map(|&gap| gap as f64).collect(),
        };
        table.numbers("class").map(class).collect()
    }

    fn gap(&self, random: &mut impl Rng) -> f64 {
        let last = self.gaps.len() - 1;
        let at = random.random::<f64>() * last as f64;
        let below = (at as usize).min(last - 1);
        // Gaps differ by orders of magnitude: between two quantiles, logarithms are evenly spread.
        let (low, high) = (self.gaps[below], self.gaps[below + 1]);
        low * (high / low).powf(at - below as f64)
    }
}

fn of_record(table: Table) -> impl Iterator<Item = Record> + Send {
    let classes = Class::all(table);
    let requests: u64 = classes.iter().map(|class| class.requests).sum();
    let span = requests as f64;
    let mut random = generator::seeded(SEED);
    // When, and which key.
    let mut times: Vec<(f32, u32)> = Vec::with_capacity(requests as usize);
    let (mut key, mut gaps) = (0u32, Vec::new());
    for class in &classes {
        for nth in 0..class.keys {
            let own = class.requests * (nth + 1) / class.keys - class.requests * nth / class.keys;
            gaps.clear();
            gaps.extend((1..own).map(|_| class.gap(&mut random)));
            let whole: f64 = gaps.iter().sum();
            let shrink = if whole > span { span / whole } else { 1.0 };
            let mut at = random.random::<f64>() * (span - whole * shrink);
            times.push((at as f32, key));
            for gap in &gaps {
                at += gap * shrink;
                times.push((at as f32, key));
            }
            key += 1;
        }
    }
    times.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let texts = paths(table, key as usize);
    times.into_iter().map(move |(_, key)| {
        let text = texts.get(key as usize);
        Record::get(text.map_or(Key::Number(key as i32), |text| Key::Text(text.clone())))
    })
}

/// So many different paths of the forms that the table has; none where it has none. A form has zeros for digits.
fn paths(table: Table, count: usize) -> Vec<Box<[u8]>> {
    let forms = table.rows("path").map(|row| (row[1].as_bytes(), number::<f64>(row[0])));
    let Ok(forms) = crate::discrete::Discrete::new(forms) else { return Vec::new() };
    /// Digits in a row that differ from path to path; fewer of them are a format.
    const LONG: usize = 6;
    let mut random = generator::seeded(SEED);
    let (mut known, mut paths) = (HashSet::new(), Vec::new());
    while paths.len() < count {
        let mut path = Box::<[u8]>::from(forms.sample(&mut random));
        for digits in path.chunk_by_mut(|a, b| a.is_ascii_digit() && b.is_ascii_digit()) {
            if digits.len() >= LONG {
                digits.iter_mut().for_each(|digit| *digit = b'0' + random.random_range(0..10u8));
            }
        }
        if known.insert(path.clone()) {
            paths.push(path);
        }
    }
    paths
}

fn of_workload(mut workload: Workload) -> impl Iterator<Item = Record> + Send {
    let mut random = generator::seeded(SEED);
    (0..DRAWN).map(move |_| {
        let record = workload.draw(&mut random);
        let mut key = Vec::new();
        spell(record, workload.key_sizes().for_record(record) as usize, &mut key);
        Record::get(Key::Text(key.into()))
    })
}

/// As many different words as SuRF's list of English words has, made of letters that follow each other as often as
/// there, and as long. They are sorted, and mean nothing.
///
/// ```
/// use lookaside_workload::generated::words;
///
/// let words = words();
/// assert_eq!(words.len(), 234_369);
/// assert!(words.is_sorted() && words.iter().all(|word| word.iter().all(u8::is_ascii_lowercase)));
/// ```
#[must_use]
pub fn words() -> Vec<Box<[u8]>> {
    use crate::discrete::Discrete;
    let table = Table::named("words").expect("it is among the tables");
    let of = |row: Vec<f64>| Discrete::new((0u8..).zip(row)).expect("positive weights");
    let lengths = of(table.numbers("lengths").next().expect("a row"));
    let first = of(table.numbers("first").next().expect("a row"));
    let next: Vec<_> = table.numbers("next").map(of).collect();
    let count: usize = table.number("words");
    let mut random = generator::seeded(SEED);
    let mut words = HashSet::with_capacity(count);
    while words.len() < count {
        let mut letter = first.sample(&mut random);
        let mut word = vec![b'a' + letter];
        for _ in 0..lengths.sample(&mut random) {
            letter = next[usize::from(letter)].sample(&mut random);
            word.push(b'a' + letter);
        }
        words.insert(word.into_boxed_slice());
    }
    let mut words: Vec<_> = words.into_iter().collect();
    words.sort_unstable();
    words
}
