//! Operations on a small cache: whatever is evicted, what is found is what was stored last.

use std::collections::HashMap;

use arbitrary::{Arbitrary, Unstructured};
use cache::engine::{Cache, Config, Entry, Expiry, Todo, Verb};

use crate::Shown;

#[derive(Debug, Arbitrary)]
enum Operation {
    Set { key: u8, size: u16, ttl: Option<u8> },
    Add { key: u8, size: u16 },
    Append { key: u8, size: u8 },
    Get { key: u8 },
    Delete { key: u8 },
    Touch { key: u8, ttl: u8 },
    Flush,
    Wait { seconds: u8 },
    KeepHouse,
}

struct Stored {
    value: Vec<u8>,
    /// The first second in which it is gone.
    ends: Option<u32>,
}

/// Operations on a cache, made of bytes.
pub fn cache(data: &[u8]) {
    let operations =
        Vec::<Operation>::arbitrary_take_rest(Unstructured::new(data)).expect("any bytes make some");
    let _shown = Shown(&operations);
    let mut now = 1_700_000_000;
    let cache: Cache = Cache::new(Config::with_limit(2 << 20)).expect("two megabytes are enough");
    cache.set_time(now);
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    let mut model: HashMap<u8, Stored> = HashMap::new();
    for (number, operation) in operations.iter().enumerate() {
        now += 1;
        cache.set_time(now);
        model.retain(|_, stored| stored.ends.is_none_or(|ends| now < ends));
        match *operation {
            Operation::Set { key, size, ttl } => {
                let value = value(number, size.into());
                let ends = ttl.map(|ttl| now + 1 + u32::from(ttl));
                let expiry = ends.map_or(Expiry::Never, Expiry::At);
                match session.store(Verb::Set, Entry { expiry, ..Entry::new(&[key]) }, &value) {
                    Ok(_) => drop(model.insert(key, Stored { value, ends })),
                    Err(_) => drop(model.remove(&key)),
                }
            }
            Operation::Add { key, size } => {
                let value = value(number, size.into());
                if let Ok(cache::engine::Stored::Stored(_)) =
                    session.store(Verb::Add, Entry::new(&[key]), &value)
                {
                    // It may have been evicted, but what is there cannot be added.
                    model.insert(key, Stored { value, ends: None });
                }
            }
            Operation::Append { key, size } => {
                let piece = value(number, size.into());
                if let Ok(cache::engine::Stored::Stored(_)) =
                    session.store(Verb::Append, Entry::new(&[key]), &piece)
                {
                    let stored = model.get_mut(&key).expect("what was extended was there");
                    stored.value.extend(piece);
                }
            }
            Operation::Get { key } => {
                let pinned = session.pin();
                if let Some(hit) = pinned.get(&[key]) {
                    let stored = model.get(&key).expect("what is found was stored, and has not ended");
                    assert!(hit.to_vec() == stored.value, "another value than was stored last");
                }
            }
            Operation::Delete { key } => {
                session.delete(&[key]);
                model.remove(&key);
            }
            Operation::Touch { key, ttl } => {
                let ends = now + 1 + u32::from(ttl);
                if session.touch(&[key], Expiry::At(ends)) == Ok(true) {
                    model.get_mut(&key).expect("what was touched was there").ends = Some(ends);
                }
            }
            Operation::Flush => {
                cache.flush();
                model.clear();
            }
            Operation::Wait { seconds } => now += u32::from(seconds),
            Operation::KeepHouse => while housekeeper.step() == Todo::More {},
        }
    }
}

fn value(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (number * 31 + at) as u8).collect()
}
