//! Kind `slb-alternatives`: a tree under a lock, the same with a table or a cache in front, and what could take its
//! place.
//!
//! Somebody has a `BTreeMap<u64, u64>` under a lock, and it is too slow. What helps, and what does it cost? All hold
//! the same keys, are warmed up by as many draws, and then take turns: for reads only, and for reads among which some
//! requests replace a value. Memory is what was resident more after a contestant was made and warmed up than before,
//! its table or its cache among it.
//!
//! | group | what |
//! |---|---|
//! | `BTreeMap` | under the standard library's read-write lock, taken for each request |
//! | with a cache in front | quick_cache and moka, changed while the lock is held, so that nothing in them is old |
//! | [`Map`] | ours over a `BTreeSet` under a lock: by a reader that is kept, by a pin for each lookup, in batches |
//! | in its place | `HashMap` with foldhash, papaya, dashmap, our radix tree |
//! | hash tables | `HashMap` with values inline, without a lock; ours over a `HashSet` |
//! | frozen | a `BTreeMap` that nobody changes, and a [`Front`] before it |
//!
//! Without a lock means that one is taken once for all requests: so one thread may write, or several read. The same for
//! [`OwnedMap`], which one thread has for itself. Foreign tables hash with foldhash, ours with its default.
//!
//! Values are the numbers of their records, and a value is replaced by its equal: so any answer can be checked.
//!
//! Who has a table or a cache in front has what was asked for before. So no request is made twice of the same map, but
//! by chance: each point has requests of its own, and so has each of those that share a map. Once they had the same,
//! and the first of three had 2.0 times the tree, the others, and all of the points behind, which found all of the
//! first's requests in the table, 5.6.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use art::encode;
use lab::art::Size;
use lab::art::ordered::{ABSENT, Call, Lot, Ordered, rate};
use lab::experiment::{ExperimentError, Session};
use lab::measure::{Resident, name_threads, release_freed_memory, turns};
use lab::subject::mixed;
use lookaside::{Config, Front, Map, OwnedMap};
use papaya::Guard as _;
use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator;
use workload::popularity::Popularity;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Bytes of each table.
    table: usize,
    /// Entries that a cache in front holds.
    cached: u64,
    /// The exponent of the distribution.
    skew: f64,
    /// Lookups that warm a contestant up.
    warm_up: usize,
    /// Requests of a thread that are timed.
    requests: usize,
    /// Of a hundred requests, those that write.
    writes: Vec<u32>,
    /// Numbers of threads.
    threads: Vec<usize>,
}

/// Keys looked up at once in a batch.
const BATCH: usize = 16;
/// Requests after which who stays pinned lets go of what was replaced.
const PINNED: usize = 1024;
/// Which permutation tells the record of a rank.
const PLACES: u64 = 37;
/// Contestants that share a map, at most.
const SHARING: usize = 3;

/// What others' tables are hashed by.
type Fold = foldhash::fast::RandomState;
/// The index of ours that stands for a tree.
type Tree = Map<u64, u64, lookaside::RwLock<BTreeSet<lookaside::Handle<u64, u64>>>>;

/// A key, and whether its value is to be replaced.
#[derive(Debug, Clone, Copy)]
struct Request {
    key: u64,
    record: u64,
    write: bool,
}

/// Makes requests: what the values that were read sum up to.
type Serve<'a> = Box<dyn Fn(&[Request]) -> u64 + Send + Sync + 'a>;

/// Somebody to whom requests are made.
struct Contestant<'a> {
    name: &'static str,
    /// Threads that may make requests at once: among them some that write, and if none does.
    threads: [usize; 2],
    serve: Serve<'a>,
}

/// What a contestant is asked for: what warms it up, and what is timed.
type Requests = [Vec<Lot<Vec<Request>>>; 2];

impl Ordered<Vec<Request>> for Contestant<'_> {
    fn ask(&self, _: Call, requests: &Vec<Request>) -> Option<u64> {
        Some((self.serve)(requests))
    }
}

const MANY: usize = usize::MAX;

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the machine has too few cores or too little memory, or somebody answered wrongly.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let threads = session.threads(&parameters.threads)?;
    let Parameters { sizes, writes, .. } = parameters;
    let points: Vec<_> =
        writes.iter().flat_map(|&writes| threads.iter().map(move |&it| (it, writes))).collect();
    session.announce(sizes.len() * (1 + session.runs() * points.len()));
    for size in sizes {
        let records = Popularity::permuted(size.keys, parameters.skew, PLACES)?;
        session.begin(format!("{}: filling", size.name));
        let warm_up = draw(&records, 1, parameters.warm_up, 0, u64::MAX).remove(0);
        // Those that stand before a tree that nobody changes borrow it.
        let frozen = frozen(size.keys);
        let mut contestants: Vec<Vec<Contestant<'_>>> = Vec::new();
        for make in makers(&frozen) {
            release_freed_memory();
            let before = Resident::now();
            let made = make(size.keys, parameters)?;
            // Those that share a map share what warms it up.
            made.first().map(|contestant| (contestant.serve)(&warm_up.requests));
            let bytes = Resident::now().since(before).bytes as f64 / size.keys as f64;
            for contestant in &made {
                session.record(contestant.name, &size.name, "memory per key", "B", bytes);
            }
            contestants.push(made);
        }
        session.end();
        for run in 0..session.runs() {
            for (number, &(threads, writes)) in points.iter().enumerate() {
                let point = format!("{}, {writes} % writes, {}", size.name, name_threads(threads));
                session.begin(format!("{point}, run {} of {}", run + 1, session.runs()));
                let seed = run * points.len() + number;
                let requests = draw_for_each(parameters, &records, (threads, writes), seed);
                take_turns(&requests, &contestants, (threads, writes, run), &point, session)?;
                session.end();
            }
        }
    }
    Ok(())
}

/// Requests for each of those that share a map: others for each of them, and for each seed.
fn draw_for_each(
    parameters: &Parameters,
    records: &Popularity,
    (threads, writes): (usize, u32),
    seed: usize,
) -> [Requests; SHARING] {
    std::array::from_fn(|sharing| {
        let seed = (seed * SHARING + sharing) as u64 + 1;
        let warm_up = draw(records, threads, (parameters.requests / 10).max(1), writes, seed << 32);
        [warm_up, draw(records, threads, parameters.requests, writes, seed)]
    })
}

/// Lets all take turns that can be asked so. Those of one list share a map.
fn take_turns(
    requests: &[Requests; SHARING],
    contestants: &[Vec<Contestant<'_>>],
    (threads, writes, run): (usize, u32, usize),
    point: &str,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let all = contestants.iter().flat_map(|sharing| sharing.iter().zip(requests));
    let taking: Vec<_> = all.filter(|(it, _)| it.threads[usize::from(writes == 0)] >= threads).collect();
    let mut rates = vec![0.0; taking.len()];
    for turn in turns(taking.len(), run) {
        let (contestant, [warm_up, timed]) = taking[turn];
        let ask = |lots| rate((contestant.name, contestant), Call::Single, lots, &mut None);
        ask(warm_up)?;
        rates[turn] = ask(timed)?.expect("all answer");
    }
    for ((contestant, _), rate) in taking.iter().zip(&rates) {
        session.record(contestant.name, point, "requests", "M/s", rate / 1e6);
        session.record(contestant.name, point, "times BTreeMap under a lock", "x", rate / rates[0]);
    }
    Ok(())
}

/// What each of so many threads asks for.
fn draw(
    records: &Popularity,
    threads: usize,
    count: usize,
    writes: u32,
    seed: u64,
) -> Vec<Lot<Vec<Request>>> {
    let randoms = generator::streams(seed).take(threads);
    let lots = randoms.map(|mut random| {
        let mut expected = 0;
        let request = |_| {
            let record = records.sample(&mut random);
            let write = rand::RngExt::random_range(&mut random, 0..100) < writes;
            if !write {
                expected += record;
            }
            Request { key: mixed(record), record, write }
        };
        let requests = (0..count).map(request).collect();
        Lot { requests, count, expected }
    });
    lots.collect()
}

/// Makes these requests, one after the other.
#[inline(always)]
fn serve(
    requests: &[Request],
    mut get: impl FnMut(u64) -> Option<u64>,
    mut put: impl FnMut(u64, u64),
) -> u64 {
    let mut sum = 0;
    for request in requests {
        if request.write {
            put(request.key, request.record);
        } else {
            sum += get(request.key).unwrap_or(ABSENT);
        }
    }
    sum
}

/// Makes these requests, lookups that follow each other in batches.
#[inline(always)]
fn serve_in_batches(
    requests: &[Request],
    mut get: impl FnMut(&[&u64], &mut [Option<u64>]),
    mut put: impl FnMut(u64, u64),
) -> u64 {
    let mut sum = 0;
    let mut keys = [&0; BATCH];
    let mut held = 0;
    let mut look_up = |keys: &[&u64]| {
        let mut values = [None; BATCH];
        get(keys, &mut values[..keys.len()]);
        sum += values[..keys.len()].iter().map(|value| value.unwrap_or(ABSENT)).sum::<u64>();
    };
    for request in requests {
        if request.write {
            put(request.key, request.record);
            continue;
        }
        keys[held] = &request.key;
        held += 1;
        if held == BATCH {
            look_up(&keys);
            held = 0;
        }
    }
    look_up(&keys[..held]);
    sum
}

/// The keys of so many records, in an order that is none of theirs.
fn entries(keys: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..keys).map(|record| (mixed(record), record))
}

fn frozen(keys: u64) -> BTreeMap<u64, u64> {
    entries(keys).collect()
}

/// Makes contestants that share what they stand on.
type Maker<'a> = Box<dyn Fn(u64, &Parameters) -> Result<Vec<Contestant<'a>>, ExperimentError> + 'a>;

/// All of them. The tree under a lock is the first, with which the others are compared.
fn makers<'a>(frozen: &'a BTreeMap<u64, u64>) -> Vec<Maker<'a>> {
    vec![
        Box::new(|keys, _| Ok(vec![locked_tree(keys)])),
        Box::new(|keys, parameters| Ok(vec![behind_quick_cache(keys, parameters.cached)])),
        Box::new(|keys, parameters| Ok(vec![behind_moka(keys, parameters.cached)])),
        Box::new(|keys, parameters| ours(keys, parameters.table)),
        Box::new(|keys, _| Ok(vec![locked_hash_map(keys)])),
        Box::new(|keys, _| Ok(papaya(keys))),
        Box::new(|keys, _| Ok(vec![dashmap(keys)])),
        Box::new(|keys, _| Ok(vec![radix_tree(keys)?])),
        Box::new(|keys, _| Ok(vec![hash_map::<Fold>("HashMap with foldhash, no lock", keys)])),
        Box::new(|keys, _| {
            let name = "HashMap with the default hasher, no lock";
            Ok(vec![hash_map::<std::hash::RandomState>(name, keys)])
        }),
        Box::new(|keys, parameters| Ok(vec![ours_hashed(keys, parameters.table)?])),
        Box::new(|keys, parameters| Ok(vec![ours_owned(keys, parameters.table)?])),
        Box::new(move |_, _| {
            let serve = move |requests: &[Request]| {
                serve(requests, |key| frozen.get(&key).copied(), |_, _| unreachable!("it is frozen"))
            };
            Ok(vec![Contestant { name: "frozen BTreeMap", threads: [0, MANY], serve: Box::new(serve) }])
        }),
        Box::new(move |_, parameters| fronted(frozen, parameters.table)),
    ]
}

fn locked_tree(keys: u64) -> Contestant<'static> {
    let tree: RwLock<BTreeMap<_, _>> = RwLock::new(entries(keys).collect());
    let serve = move |requests: &[Request]| {
        let get = |key| tree.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        serve(requests, get, |key, value| {
            tree.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        })
    };
    Contestant { name: "BTreeMap under a lock", threads: [MANY; 2], serve: Box::new(serve) }
}

/// A tree under a lock, and a cache of it that is changed while the lock is held.
fn behind<C: Send + Sync + 'static>(
    name: &'static str,
    keys: u64,
    cache: C,
    get: impl Fn(&C, &u64) -> Option<u64> + Send + Sync + 'static,
    put: impl Fn(&C, u64, u64) + Send + Sync + 'static,
) -> Contestant<'static> {
    let tree: RwLock<BTreeMap<_, _>> = RwLock::new(entries(keys).collect());
    let serve = move |requests: &[Request]| {
        let get = |key| {
            get(&cache, &key).or_else(|| {
                let tree = tree.read().unwrap_or_else(PoisonError::into_inner);
                let value = *tree.get(&key)?;
                put(&cache, key, value);
                Some(value)
            })
        };
        serve(requests, get, |key, value| {
            let mut tree = tree.write().unwrap_or_else(PoisonError::into_inner);
            tree.insert(key, value);
            put(&cache, key, value);
        })
    };
    Contestant { name, threads: [MANY; 2], serve: Box::new(serve) }
}

fn behind_quick_cache(keys: u64, cached: u64) -> Contestant<'static> {
    let cache = quick_cache::sync::Cache::<u64, u64>::new(cached as usize);
    behind(
        "BTreeMap, quick_cache in front",
        keys,
        cache,
        |cache, key| cache.get(key),
        |cache, key, value| {
            cache.insert(key, value);
        },
    )
}

fn behind_moka(keys: u64, cached: u64) -> Contestant<'static> {
    let cache = moka::sync::Cache::<u64, u64>::new(cached);
    behind(
        "BTreeMap, moka in front",
        keys,
        cache,
        |cache, key| cache.get(key),
        |cache, key, value| {
            cache.insert(key, value);
        },
    )
}

/// The three ways to look up in one map of ours.
fn ours(keys: u64, table: usize) -> Result<Vec<Contestant<'static>>, ExperimentError> {
    let map: Tree = Map::with_index(lookaside::RwLock::new(BTreeSet::new()), &Config::with_size(table))?;
    entries(keys).for_each(|(key, record)| {
        map.insert(key, record);
    });
    let map = Arc::new(map);
    let put = |map: &Tree, key, value| {
        map.insert(key, value);
    };
    let kept = {
        let map = Arc::clone(&map);
        move |requests: &[Request]| {
            let mut reader = map.pin();
            let mut sum = 0;
            for requests in requests.chunks(PINNED) {
                sum += serve(requests, |key| reader.get(&key).copied(), |key, value| put(&map, key, value));
                reader.refresh();
            }
            sum
        }
    };
    let pinned = {
        let map = Arc::clone(&map);
        move |requests: &[Request]| {
            serve(requests, |key| map.pin().get(&key).copied(), |key, value| put(&map, key, value))
        }
    };
    let batched = move |requests: &[Request]| {
        let mut reader = map.pin();
        let mut sum = 0;
        for requests in requests.chunks(PINNED) {
            let get = |keys: &[&u64], values: &mut [Option<u64>]| {
                let mut found = [None; BATCH];
                reader.get_many(keys, &mut found[..keys.len()]);
                values.iter_mut().zip(found).for_each(|(value, found)| *value = found.copied());
            };
            sum += serve_in_batches(requests, get, |key, value| put(&map, key, value));
            reader.refresh();
        }
        sum
    };
    let contestant = |name, serve: Serve<'static>| Contestant { name, threads: [MANY; 2], serve };
    Ok(vec![
        contestant("ours over a BTreeSet, a reader kept", Box::new(kept)),
        contestant("ours over a BTreeSet, a pin each", Box::new(pinned)),
        contestant("ours over a BTreeSet, batches", Box::new(batched)),
    ])
}

fn locked_hash_map(keys: u64) -> Contestant<'static> {
    let table: RwLock<HashMap<_, _, Fold>> = RwLock::new(entries(keys).collect());
    let serve = move |requests: &[Request]| {
        let get = |key| table.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        serve(requests, get, |key, value| {
            table.write().unwrap_or_else(PoisonError::into_inner).insert(key, value);
        })
    };
    Contestant { name: "HashMap with foldhash under a lock", threads: [MANY; 2], serve: Box::new(serve) }
}

/// By a guard that is kept, and by a pin for each request.
fn papaya(keys: u64) -> Vec<Contestant<'static>> {
    let table = papaya::HashMap::<u64, u64, Fold>::default();
    entries(keys).for_each(|(key, record)| {
        table.pin().insert(key, record);
    });
    let table = Arc::new(table);
    let pinned = {
        let table = Arc::clone(&table);
        move |requests: &[Request]| {
            serve(
                requests,
                |key| table.pin().get(&key).copied(),
                |key, value| {
                    table.pin().insert(key, value);
                },
            )
        }
    };
    let kept = move |requests: &[Request]| {
        let mut guard = table.guard();
        let mut sum = 0;
        for requests in requests.chunks(PINNED) {
            sum += serve(
                requests,
                |key| table.get(&key, &guard).copied(),
                |key, value| {
                    table.insert(key, value, &guard);
                },
            );
            guard.refresh();
        }
        sum
    };
    vec![
        Contestant { name: "papaya, a guard kept", threads: [MANY; 2], serve: Box::new(kept) },
        Contestant { name: "papaya, a pin each", threads: [MANY; 2], serve: Box::new(pinned) },
    ]
}

fn dashmap(keys: u64) -> Contestant<'static> {
    let table: dashmap::DashMap<u64, u64, Fold> = entries(keys).collect();
    let serve = move |requests: &[Request]| {
        serve(
            requests,
            |key| table.get(&key).map(|value| *value),
            |key, value| {
                table.insert(key, value);
            },
        )
    };
    Contestant { name: "dashmap", threads: [MANY; 2], serve: Box::new(serve) }
}

/// Ours, alone.
fn radix_tree(keys: u64) -> Result<Contestant<'static>, ExperimentError> {
    let tree = art::Tree::<[u8; 8], u64>::new()?;
    {
        let mut reader = tree.pin();
        for (key, record) in entries(keys) {
            reader.insert(&encode::u64(key), record).expect("there is room");
            if record % PINNED as u64 == 0 {
                reader.refresh();
            }
        }
    }
    let serve = move |requests: &[Request]| {
        let mut reader = tree.pin();
        let mut sum = 0;
        for requests in requests.chunks(PINNED) {
            sum += serve(
                requests,
                |key| reader.get(&encode::u64(key)).copied(),
                |key, value| {
                    reader.insert(&encode::u64(key), value).expect("there is room");
                },
            );
            reader.refresh();
        }
        sum
    };
    Ok(Contestant { name: "our radix tree", threads: [MANY; 2], serve: Box::new(serve) })
}

/// Values inline; a lock that is taken once is as good as none.
fn hash_map<S: BuildHasher + Default + Send + Sync + 'static>(
    name: &'static str,
    keys: u64,
) -> Contestant<'static> {
    let table: RwLock<HashMap<u64, u64, S>> = RwLock::new(entries(keys).collect());
    let serve = move |requests: &[Request]| {
        if requests.iter().any(|request| request.write) {
            let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
            let mut sum = 0;
            for request in requests {
                if request.write {
                    table.insert(request.key, request.record);
                } else {
                    sum += table.get(&request.key).copied().unwrap_or(ABSENT);
                }
            }
            return sum;
        }
        let table = table.read().unwrap_or_else(PoisonError::into_inner);
        serve(requests, |key| table.get(&key).copied(), |_, _| {})
    };
    Contestant { name, threads: [1, MANY], serve: Box::new(serve) }
}

/// A map of ours over a hash table, by a reader that is kept.
fn ours_hashed(keys: u64, table: usize) -> Result<Contestant<'static>, ExperimentError> {
    let index = HashSet::<lookaside::Handle<u64, u64>, Fold>::default();
    let map = Map::with_index(lookaside::RwLock::new(index), &Config::with_size(table))?;
    entries(keys).for_each(|(key, record)| {
        map.insert(key, record);
    });
    let serve = move |requests: &[Request]| {
        let mut reader = map.pin();
        let mut sum = 0;
        for requests in requests.chunks(PINNED) {
            sum += serve(
                requests,
                |key| reader.get(&key).copied(),
                |key, value| {
                    map.insert(key, value);
                },
            );
            reader.refresh();
        }
        sum
    };
    Ok(Contestant { name: "ours over a HashSet, a reader kept", threads: [MANY; 2], serve: Box::new(serve) })
}

/// An owner's map over a hash table.
fn ours_owned(keys: u64, table: usize) -> Result<Contestant<'static>, ExperimentError> {
    let index = HashSet::<lookaside::Handle<u64, u64>, Fold>::default();
    let mut map = OwnedMap::with_index(index, &Config::with_size(table))?;
    entries(keys).for_each(|(key, record)| {
        map.insert(key, record);
    });
    let map = Mutex::new(map);
    let serve = move |requests: &[Request]| {
        let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = 0;
        for request in requests {
            if request.write {
                map.insert(request.key, request.record);
            } else {
                sum += map.get(&request.key).copied().unwrap_or(ABSENT);
            }
        }
        sum
    };
    Ok(Contestant { name: "ours over a HashSet, owned", threads: [1; 2], serve: Box::new(serve) })
}

/// A front before a tree that nobody changes; both ways to look up share it.
fn fronted(frozen: &BTreeMap<u64, u64>, table: usize) -> Result<Vec<Contestant<'_>>, ExperimentError> {
    let front = Arc::new(Front::<(u64, &u64)>::new(&Config::with_size(table))?);
    let is = |(key, _): (u64, &u64), sought: &u64| key == *sought;
    let find = |&key: &u64| Some((key, frozen.get(&key)?));
    let single = {
        let front = Arc::clone(&front);
        move |requests: &[Request]| {
            let get = |key| front.get(&key, is, find).map(|(_, value)| *value);
            serve(requests, get, |_, _| unreachable!("it is frozen"))
        }
    };
    let batched = move |requests: &[Request]| {
        let get = |keys: &[&u64], values: &mut [Option<u64>]| {
            let mut found = [None; BATCH];
            front.get_many(keys, &mut found[..keys.len()], is, find);
            values.iter_mut().zip(found).for_each(|(value, found)| *value = found.map(|(_, value)| *value));
        };
        serve_in_batches(requests, get, |_, _| unreachable!("it is frozen"))
    };
    Ok(vec![
        Contestant { name: "frozen BTreeMap, front", threads: [0, MANY], serve: Box::new(single) },
        Contestant { name: "frozen BTreeMap, front, batches", threads: [0, MANY], serve: Box::new(batched) },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else who has a table or a cache in front finds there what was asked for before.
    #[test]
    fn no_two_that_share_a_map_are_asked_for_the_same_nor_at_two_points() {
        let parameters = parameters(2000);
        let records = Popularity::uniform(1 << 20).unwrap();
        let draws = (0..4).map(|seed| draw_for_each(&parameters, &records, (2, 0), seed));
        let lots: Vec<_> = draws.flatten().flatten().flatten().collect();
        assert_eq!(lots.len(), 4 * SHARING * 2 * 2);
        for (number, lot) in lots.iter().enumerate() {
            let asked: HashSet<_> = lot.requests.iter().map(|request| request.record).collect();
            for other in &lots[..number] {
                let twice = other.requests.iter().filter(|request| asked.contains(&request.record)).count();
                assert!(twice * 20 < other.count, "{twice} of {} requests", other.count);
            }
        }
        let frozen = frozen(10);
        let made = makers(&frozen).into_iter().map(|make| make(10, &parameters).unwrap().len());
        assert_eq!(made.max(), Some(SHARING));
    }

    fn parameters(requests: usize) -> Parameters {
        Parameters {
            sizes: vec![],
            table: 1 << 14,
            cached: 50,
            skew: 0.99,
            warm_up: 0,
            requests,
            writes: vec![],
            threads: vec![],
        }
    }

    #[test]
    fn everybody_reads_what_was_written_and_misses_what_was_not() {
        let frozen = frozen(500);
        let parameters = parameters(0);
        let request = |record, write| Request { key: mixed(record), record, write };
        let reads: Vec<_> = (0..501).chain(0..500).map(|record| request(record, false)).collect();
        let expected = 2 * (0..500).sum::<u64>() + ABSENT;
        let mixed_with_writes: Vec<_> = (0..500)
            .flat_map(|record| {
                let other = Request { record: record + 1, ..request(record, true) };
                [request(record, false), other, request(record, false), request(record, true)]
            })
            .collect();
        let mut contestants = 0;
        for contestant in makers(&frozen).iter().flat_map(|make| make(500, &parameters).unwrap()) {
            assert_eq!((contestant.serve)(&reads), expected, "{}", contestant.name);
            if contestant.threads[0] > 0 && !contestant.name.ends_with("batches") {
                let sum = (0..500).map(|record| record + record + 1).sum::<u64>();
                assert_eq!((contestant.serve)(&mixed_with_writes), sum, "{}", contestant.name);
            }
            contestants += 1;
        }
        assert_eq!(contestants, 18);
    }
}
