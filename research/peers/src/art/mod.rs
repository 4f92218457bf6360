//! Kind `art-peers`: the adaptive radix tree, shared and owned, beside other ordered maps.
//!
//! | module | idea |
//! |---|---|
//! | `trees` | the trees, and what they are asked |
//!
//! In each run, for each number of keys, all trees are made anew and filled in the same random order, part by part in
//! turn. Then they are asked, in turn again: for keys drawn uniformly or by a Zipfian law that is strewn over all
//! records, one by one and in batches, and for ranges. Every loop has a warm-up with other keys of the same law, and
//! every answer is checked. A ratio is of one turn, in which the trees were asked for the same keys one directly after
//! the other.
//!
//! All trees live in regular pages of 4 KiB: ours by their configuration, the others because the C library, left to
//! itself, asks for none larger where the kernel waits to be asked. The share of huge pages is recorded.

mod trees;

use lab::art::Size;
use lab::art::ordered::{Call, Lot, Ordered, rates};
use lab::experiment::{ExperimentError, Session, expect, timed};
use lab::measure::{Resident, name_threads, release_freed_memory, turns};
use lab::subject::mixed as number;
use rand::distr::Distribution;
use serde::Deserialize;
use workload::generator;
use workload::popularity::Popularity;

use self::trees::{Kind, Tree};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Zipfian exponents of lookups; zero is uniform.
    skews: Vec<f64>,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Lookups of one thread in one timed part.
    lookups: usize,
    /// Range scans in one timed part.
    scans: usize,
    /// The trees.
    trees: Vec<Kind>,
}

/// Warm-ups are this part of what is timed.
const WARM_UP: usize = 10;
/// Parts in which a tree is filled.
const PARTS: u64 = 16;
/// Which permutation tells the record of a rank.
const PLACES: u64 = 29;

/// A tree and its name.
struct Contestant {
    kind: Kind,
    tree: Box<dyn Tree>,
}

/// Runs it.
///
/// # Errors
/// [`ExperimentError`]: the machine has too few cores or too little memory, or a tree answered wrongly.
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { sizes, skews, threads, .. } = parameters;
    session.announce(sizes.len() * session.runs() * (2 + skews.len() * threads.len()));
    for size in sizes {
        let kinds = those_with_room(parameters, size, session);
        for run in 0..session.runs() {
            session.begin(format!("{}, run {} of {}: filling", size.name, run + 1, session.runs()));
            let contestants = fill(size, &kinds, run, session)?;
            session.end();
            for (law, &skew) in skews.iter().enumerate() {
                for &threads in threads {
                    let point = format!("{}, {}, {}", size.name, name_law(skew), name_threads(threads));
                    session.begin(format!("{point}, run {} of {}", run + 1, session.runs()));
                    let seed = (run * skews.len() + law) as u64;
                    let law = (skew, threads, run, seed);
                    look_up(parameters, size.keys, &contestants, law, &point, session)?;
                    session.end();
                }
            }
            session.begin(format!("{}, run {} of {}: scanning", size.name, run + 1, session.runs()));
            scan(parameters, size, &contestants, run, session)?;
            session.end();
        }
    }
    Ok(())
}

fn name_law(skew: f64) -> String {
    if skew == 0.0 { "uniform".into() } else { format!("zipf {skew}") }
}

/// The trees for which there is memory beside those named before them; the others are said to be skipped.
fn those_with_room(parameters: &Parameters, size: &Size, session: &mut Session) -> Vec<Kind> {
    let mut left = available_memory();
    let fits = |kind: &&Kind| {
        let needed = kind.bytes() * size.keys;
        let fits = left.is_none_or(|left| left >= needed);
        if fits {
            left = left.map(|left| left - needed);
        } else {
            let reason = format!(
                "{} need about {:.1} GB, and {:.1} GB are left",
                size.name,
                needed as f64 / 1e9,
                left.unwrap_or_default() as f64 / 1e9
            );
            session.skip(kind.name(), reason);
        }
        fits
    };
    parameters.trees.iter().filter(fits).copied().collect()
}

/// Bytes that programs can still have without swapping; `None` where the kernel does not tell.
fn available_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Makes the trees, and fills them from one thread, part by part in turn.
fn fill(
    size: &Size,
    kinds: &[Kind],
    run: usize,
    session: &mut Session,
) -> Result<Vec<Contestant>, ExperimentError> {
    release_freed_memory();
    let mut contestants = Vec::new();
    for &kind in kinds {
        contestants.push(Contestant { kind, tree: kind.make().map_err(ExperimentError::Machine)? });
    }
    let mut seconds = vec![0.0; kinds.len()];
    let mut memory = vec![Resident::default(); kinds.len()];
    for part in 0..PARTS {
        let records = size.keys * part / PARTS..size.keys * (part + 1) / PARTS;
        for turn in turns(kinds.len(), run + part as usize) {
            let before = Resident::now();
            let contestant = std::sync::Mutex::new(&mut contestants[turn]);
            let (new, taken) = timed(1, |_| {
                let mut contestant = contestant.lock().expect("nobody else has it");
                contestant.tree.insert_each(records.clone())
            })?[0];
            seconds[turn] += taken;
            let grown = Resident::now().since(before);
            memory[turn].bytes += grown.bytes;
            memory[turn].huge += grown.huge;
            expect(kinds[turn].name(), new, records.end - records.start)?;
        }
    }
    let rates: Vec<f64> = seconds.iter().map(|seconds| size.keys as f64 / seconds.max(1e-9)).collect();
    record(session, &contestants, &size.name, "inserts", &rates);
    for (kind, memory) in kinds.iter().zip(memory) {
        let bytes = memory.bytes as f64 / size.keys as f64;
        session.record(kind.name(), &size.name, "memory per key", "B", bytes);
        session.record_pages(kind.name(), memory.pages());
    }
    Ok(contestants)
}

/// Records the rates of all contestants, operations a second, and how many times those of others the rates of ours are.
fn record(session: &mut Session, contestants: &[Contestant], point: &str, metric: &str, rates: &[f64]) {
    for (ours, &rate) in contestants.iter().zip(rates) {
        session.record(ours.kind.name(), point, metric.to_owned(), "M/s", rate / 1e6);
        let others = contestants.iter().zip(rates).filter(|(other, _)| !other.kind.is_ours());
        for (other, other_rate) in others.filter(|_| ours.kind.is_ours()) {
            let metric = format!("{metric}, times {}", other.kind.name());
            session.record(ours.kind.name(), point, metric, "x", rate / other_rate);
        }
    }
}

/// The trees by their names.
fn named(contestants: &[Contestant]) -> Vec<(&str, &dyn Ordered<Vec<u64>>)> {
    contestants.iter().map(|it| (it.kind.name(), &*it.tree as _)).collect()
}

/// Lets the trees take turns at the same lookups.
fn look_up(
    parameters: &Parameters,
    keys: u64,
    contestants: &[Contestant],
    (skew, threads, run, seed): (f64, usize, usize, u64),
    point: &str,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let records = Popularity::permuted(keys, skew, PLACES)?;
    let mut randoms: Vec<_> = generator::streams(seed).take(threads).collect();
    let mut draw = |count: usize| -> Vec<Lot<Vec<u64>>> {
        randoms.iter_mut().map(|random| asked(&records, random, count)).collect()
    };
    let lots = [draw((parameters.lookups / WARM_UP).max(1)), draw(parameters.lookups)];
    let lots = lots.each_ref().map(Vec::as_slice);
    let single = rates(&named(contestants), Call::Single, lots, run)?;
    let single: Vec<f64> = single.into_iter().flatten().collect();
    let batched = rates(&named(contestants), Call::Batch, lots, run)?;
    for ((Contestant { kind, .. }, single), batched) in contestants.iter().zip(&single).zip(batched) {
        if let Some(batched) = batched {
            session.record(kind.name(), point, "lookups in batches", "M/s", batched / 1e6);
            session.record(kind.name(), point, "batches, times single", "x", batched / single);
        }
    }
    record(session, contestants, point, "lookups", &single);
    Ok(())
}

/// Keys that one thread asks for.
fn asked(records: &Popularity, random: &mut generator::Xoshiro256PlusPlus, count: usize) -> Lot<Vec<u64>> {
    let drawn: Vec<u64> = (0..count).map(|_| records.sample(random)).collect();
    let expected = drawn.iter().sum();
    Lot { requests: drawn.into_iter().map(number).collect(), count, expected }
}

/// Lets the trees take turns at the same range scans, from keys drawn uniformly. All must show the same.
fn scan(
    parameters: &Parameters,
    size: &Size,
    contestants: &[Contestant],
    run: usize,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let records = Popularity::uniform(size.keys)?;
    let mut random = generator::seeded(run as u64);
    let lots = [(parameters.scans / WARM_UP).max(1), parameters.scans]
        .map(|count| [asked(&records, &mut random, count)]);
    let rates = rates(&named(contestants), Call::Range, lots.each_ref().map(|lot| &lot[..]), run)?;
    record(
        session,
        contestants,
        &size.name,
        "scans of 100",
        &rates.into_iter().flatten().collect::<Vec<_>>(),
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_noticed() {
        let mut half = Kind::BtreeMap.make().unwrap();
        half.insert_each(0..50);
        let ask = |records: std::ops::Range<u64>| {
            let (count, expected) = (records.clone().count(), records.clone().sum());
            let lot = Lot { requests: records.map(number).collect(), count, expected };
            rates(&[("half", &*half as _)], Call::Single, [&[], &[lot]], 0)
        };
        assert!(ask(0..50).unwrap()[0] > Some(0.0));
        let wrong = ask(0..100).unwrap_err();
        assert!(wrong.to_string().contains("instead of"), "{wrong}");
    }

    #[test]
    fn a_tree_that_does_not_fit_is_skipped() {
        let parameters = Parameters {
            sizes: vec![],
            skews: vec![],
            threads: vec![],
            lookups: 1,
            scans: 1,
            trees: vec![Kind::Shared, Kind::Congee],
        };
        let mut session = Session::new(1, Session::progress_bar("test"));
        let kinds = |keys, session: &mut Session| {
            those_with_room(&parameters, &Size { name: "keys".into(), keys }, session)
        };
        assert_eq!(kinds(1000, &mut session), [Kind::Shared, Kind::Congee]);
        let told = available_memory().is_some();
        assert_eq!(kinds(1 << 50, &mut session).is_empty(), told);
    }
}
