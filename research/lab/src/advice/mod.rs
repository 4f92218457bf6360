//! Advice: whether a lookaside table pays before an index, and how large it should be, for the requests of a trace.
//!
//! The keys of the trace are played through tables of several sizes, by hash and with made-up entries, and through the
//! index. With
//!
//! ```text
//!   r   the share of the lookups that a table answers, after a warm-up,
//!   t   what the table takes for a lookup on average: hash, line, the entry of a hit, the emission of a miss,
//!   C   what the index takes for a lookup,
//! ```
//!
//! a lookup with the table costs `t + (1 - r) C`, and so the table pays where `C > t / r`: that is the break-even, and
//! needs nobody's index. `C` is given, or measured with a map of the standard library.
//!
//! | module | idea |
//! |---|---|
//! | `requests` | reading the trace |
//! | `ideal` | what no table of that size can do better |
//! | `replay` | the tables and the indexes, with the clock running |
//! | `words` | the advice as text |

mod ideal;
mod replay;
mod requests;
mod words;

use std::collections::HashMap;

use indicatif::ProgressBar;
use lookaside::Config;
use serde::Serialize;
use workload::trace::TraceError;

use replay::{Entries, Played};
pub use requests::KeyTrace;
use requests::{Kind, Request};

/// A gain below this is not worth a table: a change of the program's layout in memory makes as much of a difference.
pub const WORTHWHILE: f64 = 1.05;

/// A smaller table is better than one that gains so much more.
const AS_GOOD: f64 = 1.03;

/// The largest table that is tried unless sizes are given.
const LARGEST: usize = 256 << 20;

/// A kind of table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// The buffer as it is by default, but of one size: every miss enters.
    Slb,
    /// The buffer to the letter of its paper: a log decides who enters.
    SlbPaper,
    /// STLT-SW, four ways, for comparison: it is in no library.
    Stlt,
}

impl Kept {
    /// All of them.
    pub const ALL: [Kept; 3] = [Kept::Slb, Kept::SlbPaper, Kept::Stlt];
}

/// An index whose lookups are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredIndex {
    /// The standard library's `BTreeMap`.
    BTree,
    /// The standard library's `HashMap`.
    Hash,
}

/// What is to be found out.
#[derive(Debug, Clone)]
pub struct Question {
    /// Bytes of the tables that are tried; empty for sizes that suit the trace.
    pub sizes: Vec<usize>,
    /// The kinds of tables that are tried.
    pub tables: Vec<Kept>,
    /// The share of the trace that only warms up: 0 to below 1.
    pub warm_up: f64,
    /// Bytes of an entry: key and value.
    pub entry_bytes: usize,
    /// What lookups of the user's own index take, in nanoseconds.
    pub index_costs: Vec<f64>,
    /// Indexes to measure.
    pub indexes: Vec<MeasuredIndex>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviceError {
    /// The trace is not there, or cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// There is nothing that a table could answer.
    #[error("{0} has no lookups: a table answers nothing else")]
    NoLookups(String),
    /// Positions in the trace are 32-bit numbers.
    #[error("the trace has more than four billion requests: take a part of it")]
    TooLong,
    /// What was asked makes no sense.
    #[error("{0}")]
    Question(String),
    /// A table cannot be made.
    #[error("a table of {size} bytes: {reason}")]
    Create {
        /// Its size.
        size: usize,
        /// Why not.
        reason: String,
    },
}

/// How the requests of a trace spread over its keys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkingSet {
    /// Lookups.
    pub lookups: u64,
    /// Writes.
    pub writes: u64,
    /// Deletes.
    pub deletes: u64,
    /// Different keys.
    pub keys: usize,
    /// How many of the hottest keys get half of the lookups.
    pub keys_of_half: usize,
    /// How many get 90 % of them.
    pub keys_of_90_percent: usize,
    /// How many get 99 % of them.
    pub keys_of_99_percent: usize,
}

/// What lookups of an index take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IndexCost {
    /// The index.
    pub name: String,
    /// Nanoseconds a lookup, on this trace.
    pub nanoseconds: f64,
}

/// What a table comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Offer {
    /// Which table.
    pub table: Kept,
    /// The size asked for, in bytes.
    pub size: usize,
    /// What it takes, with its log.
    pub bytes: usize,
    /// Entries that it has room for.
    pub entries: usize,
    /// The share of the lookups that it answers after the warm-up.
    pub hit_ratio: f64,
    /// The share that an ideal cache of as many entries answers, which knows what will be asked.
    pub ideal_hit_ratio: f64,
    /// What the table takes for a lookup, in nanoseconds, on average over hits and misses.
    pub nanoseconds: f64,
    /// It pays before an index whose lookups take longer than this, in nanoseconds; none where it never hits.
    pub break_even: Option<f64>,
    /// What a lookup takes with the table before each of the indexes, in nanoseconds.
    pub with: Vec<f64>,
}

/// What to do before one of the indexes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Take this one of the offers: the smallest that is about as good as the best.
    Use {
        /// Its place in the list.
        offer: usize,
        /// How many times as fast lookups are.
        gain: f64,
    },
    /// Leave it out: not even the best is worth it.
    LeaveOut {
        /// How many times as fast lookups are with the best.
        gain: f64,
    },
}

/// The advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// What is asked for.
    pub working_set: WorkingSet,
    /// The share of the trace that only warmed up.
    pub warm_up: f64,
    /// Bytes of an entry.
    pub entry_bytes: usize,
    /// The indexes.
    pub indexes: Vec<IndexCost>,
    /// The tables.
    pub offers: Vec<Offer>,
    /// What to do before each of the indexes.
    pub verdicts: Vec<Verdict>,
}

impl Advice {
    /// Plays the trace, and judges.
    ///
    /// # Errors
    /// [`AdviceError::Question`], or [`AdviceError::Create`] where a table cannot be made.
    pub fn on(trace: &KeyTrace, question: &Question, progress: &ProgressBar) -> Result<Advice, AdviceError> {
        check(question)?;
        let counted_from = (trace.requests.len() as f64 * question.warm_up) as usize;
        if !trace.requests[counted_from..].iter().any(|request| request.kind.is_lookup()) {
            let reason =
                "no lookup comes behind the share that warms up: give a smaller one, or a longer trace";
            return Err(AdviceError::Question(reason.into()));
        }
        let sizes =
            if question.sizes.is_empty() { suitable_sizes(trace.keys()) } else { question.sizes.clone() };
        let plays = question.indexes.len() + sizes.len() * question.tables.len();
        progress.set_length((plays * trace.requests.len()) as u64);
        progress.set_position(0);

        let mut indexes: Vec<_> = question
            .index_costs
            .iter()
            .map(|&nanoseconds| IndexCost { name: "your index".into(), nanoseconds })
            .collect();
        for index in &question.indexes {
            let (name, measure) = match index {
                MeasuredIndex::BTree => ("BTreeMap", replay::tree as fn(&_, _, _, &_) -> _),
                MeasuredIndex::Hash => ("HashMap", replay::hash as _),
            };
            progress.set_message(name);
            let nanoseconds = measure(trace, question.entry_bytes, counted_from, progress);
            indexes.push(IndexCost { name: name.into(), nanoseconds });
        }

        let entries = Entries::new(trace, question.entry_bytes);
        let next = ideal::next_lookups(&trace.requests, trace.keys());
        // Tables of several kinds have room for as many entries.
        let mut ideals = HashMap::new();
        let mut offers = Vec::new();
        for &size in &sizes {
            for &table in &question.tables {
                progress.set_message(format!("{table}, {}", words::bytes(size)));
                let played = play(table, size, trace, &entries, counted_from, progress)?;
                let ideal = *ideals
                    .entry(played.capacity)
                    .or_insert_with(|| ideal::hits(&trace.requests, &next, played.capacity, counted_from));
                offers.push(Offer::of(table, size, &played, ideal, &indexes));
            }
        }
        let verdicts = (0..indexes.len()).map(|at| judge(&offers, at, indexes[at].nanoseconds)).collect();
        Ok(Advice {
            working_set: WorkingSet::of(trace),
            warm_up: question.warm_up,
            entry_bytes: question.entry_bytes,
            indexes,
            offers,
            verdicts,
        })
    }

    /// The advice as JSON.
    ///
    /// # Panics
    /// Never: it is texts and numbers.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("advice is texts and numbers")
    }
}

fn check(question: &Question) -> Result<(), AdviceError> {
    let refused = |reason: &str| Err(AdviceError::Question(reason.to_owned()));
    if !(0.0..1.0).contains(&question.warm_up) {
        return refused("the share that warms up is from 0 to below 1");
    }
    if question.index_costs.iter().any(|&cost| !(cost > 0.0 && cost.is_finite())) {
        return refused("a lookup takes more than 0 nanoseconds");
    }
    if question.tables.is_empty() {
        return refused("name a table to try");
    }
    if !(1..=1 << 20).contains(&question.entry_bytes) {
        return refused("an entry has from 1 byte to 1 MiB");
    }
    Ok(())
}

fn play(
    table: Kept,
    size: usize,
    trace: &KeyTrace,
    entries: &Entries,
    counted_from: usize,
    progress: &ProgressBar,
) -> Result<Played, AdviceError> {
    let refused = |reason: String| AdviceError::Create { size, reason };
    let slb = |config: Config| replay::play(&config, trace, entries, counted_from, progress);
    match table {
        // What is asked is which size pays, so each table stays as large as it is made.
        Kept::Slb => slb(Config::with_size(size)).map_err(|error| refused(error.to_string())),
        Kept::SlbPaper => slb(Config::paper(size)).map_err(|error| refused(error.to_string())),
        Kept::Stlt => replay::play_stlt(size, trace, entries, counted_from, progress)
            .map_err(|error| refused(error.to_string())),
    }
}

/// Five sizes, each a quarter of the next: the largest has room for all keys and a quarter more.
fn suitable_sizes(keys: usize) -> Vec<usize> {
    let largest = (keys * 5 / 4 * 64).div_ceil(7).next_power_of_two().clamp(1 << 12, LARGEST);
    let sizes: Vec<_> = (0..5).rev().map(|halvings| largest >> (2 * halvings)).collect();
    sizes.into_iter().filter(|&size| size >= 1 << 10).collect()
}

impl WorkingSet {
    fn of(trace: &KeyTrace) -> WorkingSet {
        let mut lookups_of = vec![0u64; trace.keys()];
        let (mut writes, mut deletes) = (0, 0);
        for &Request { key, kind } in &trace.requests {
            match kind {
                Kind::Lookup | Kind::LookupOfNothing => lookups_of[key as usize] += 1,
                Kind::Write => writes += 1,
                Kind::Delete => deletes += 1,
            }
        }
        let lookups = lookups_of.iter().sum::<u64>();
        lookups_of.sort_unstable_by(|one, other| other.cmp(one));
        let keys_of = |share: f64| {
            let mut sum = 0;
            let before = lookups_of.iter().take_while(|&&hot| {
                let more = (sum as f64) < share * lookups as f64;
                sum += hot;
                more
            });
            before.count()
        };
        WorkingSet {
            lookups,
            writes,
            deletes,
            keys: trace.keys(),
            keys_of_half: keys_of(0.5),
            keys_of_90_percent: keys_of(0.9),
            keys_of_99_percent: keys_of(0.99),
        }
    }
}

impl Offer {
    fn of(table: Kept, size: usize, played: &Played, ideal: u64, indexes: &[IndexCost]) -> Offer {
        let share = |hits: u64| hits as f64 / played.lookups.max(1) as f64;
        let (hit_ratio, own) = (share(played.hits), played.nanoseconds);
        Offer {
            table,
            size,
            bytes: played.bytes,
            entries: played.capacity,
            hit_ratio,
            ideal_hit_ratio: share(ideal),
            nanoseconds: own,
            break_even: (hit_ratio > 0.0).then(|| own / hit_ratio),
            with: indexes.iter().map(|index| own + (1.0 - hit_ratio) * index.nanoseconds).collect(),
        }
    }
}

/// The verdict before the index at this place in the list, whose lookups take so long alone.
fn judge(offers: &[Offer], at: usize, alone: f64) -> Verdict {
    let gain = |offer: &Offer| alone / offer.with[at];
    let best = offers.iter().map(gain).fold(0.0, f64::max);
    if best < WORTHWHILE {
        return Verdict::LeaveOut { gain: best };
    }
    let (offer, gain) = offers
        .iter()
        .enumerate()
        .map(|(place, offer)| (place, gain(offer)))
        .filter(|&(_, gain)| gain >= WORTHWHILE && gain * AS_GOOD >= best)
        .min_by(|(one, one_gain), (other, other_gain)| {
            let bytes = offers[*one].bytes.cmp(&offers[*other].bytes);
            bytes.then(other_gain.total_cmp(one_gain))
        })
        .expect("the best is among them");
    Verdict::Use { offer, gain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lookups: impl Iterator<Item = u32>) -> KeyTrace {
        let requests: Vec<_> = lookups.map(|key| Request { key, kind: Kind::Lookup }).collect();
        let keys = requests.iter().map(|request| request.key + 1).max().unwrap_or(0);
        let keys = (0..keys).map(|key| key.to_be_bytes().into()).collect();
        KeyTrace { keys, requests }
    }

    fn question() -> Question {
        Question {
            sizes: Vec::new(),
            tables: Kept::ALL.to_vec(),
            warm_up: 0.2,
            entry_bytes: 88,
            index_costs: vec![100_000.0, 0.001],
            indexes: Vec::new(),
        }
    }

    /// A table of so many bytes, with which a lookup takes so long.
    fn offer(bytes: usize, with: f64) -> Offer {
        Offer {
            table: Kept::Slb,
            size: bytes,
            bytes,
            entries: 1,
            hit_ratio: 0.5,
            ideal_hit_ratio: 0.5,
            nanoseconds: 1.0,
            break_even: None,
            with: vec![with],
        }
    }

    #[test]
    fn a_trace_of_which_no_lookup_is_counted_gets_no_advice() {
        let mut trace = trace(0..100);
        trace.requests.iter_mut().skip(20).for_each(|request| request.kind = Kind::Write);
        let refused = Advice::on(&trace, &question(), &ProgressBar::hidden()).unwrap_err();
        assert!(refused.to_string().contains("no lookup"), "{refused}");
    }

    #[test]
    fn a_smaller_table_is_not_advised_where_it_is_not_worth_it() {
        // Gains of 1.03 and 1.06: the smaller one is nearly as good, and too little.
        let offers = [offer(1, 100.0 / 1.03), offer(2, 100.0 / 1.06)];
        assert!(matches!(judge(&offers, 0, 100.0), Verdict::Use { offer: 1, .. }));
        // Of 1.10 and 1.12 the smaller one will do; of 1.01 and 1.02 none.
        let offers = [offer(1, 100.0 / 1.10), offer(2, 100.0 / 1.12)];
        assert!(matches!(judge(&offers, 0, 100.0), Verdict::Use { offer: 0, .. }));
        let offers = [offer(1, 100.0 / 1.01), offer(2, 100.0 / 1.02)];
        assert!(matches!(judge(&offers, 0, 100.0), Verdict::LeaveOut { .. }));
    }

    #[test]
    fn a_slow_index_gets_a_table_and_one_that_costs_nothing_does_not() {
        // 100 keys, over and over: after the first fifth every lookup of a large table hits.
        let trace = trace((0..50_000).map(|at| at % 100));
        let advice = Advice::on(&trace, &question(), &ProgressBar::hidden()).unwrap();
        let largest = advice.offers.iter().rfind(|offer| offer.table == Kept::Slb).unwrap();
        assert_eq!((largest.hit_ratio, largest.ideal_hit_ratio), (1.0, 1.0));
        assert_eq!(largest.break_even, Some(largest.nanoseconds));
        assert_eq!(largest.with, [largest.nanoseconds; 2]);
        let [Verdict::Use { gain, .. }, Verdict::LeaveOut { gain: loss }] = advice.verdicts[..] else {
            panic!("{:?}", advice.verdicts)
        };
        assert!(gain > 10.0 && loss < 1.0, "{gain} {loss}");
        for offer in &advice.offers {
            assert!(offer.hit_ratio <= offer.ideal_hit_ratio, "{offer:?}");
        }
        let json: serde_json::Value = serde_json::from_str(&advice.to_json()).unwrap();
        assert_eq!(json["working_set"]["keys"], 100);
        assert_eq!(json["verdicts"][1].as_object().unwrap().keys().collect::<Vec<_>>(), ["leave_out"]);
    }

    #[test]
    fn keys_that_never_come_again_make_every_table_useless() {
        let trace = trace(0..20_000);
        let advice = Advice::on(&trace, &question(), &ProgressBar::hidden()).unwrap();
        for offer in &advice.offers {
            assert_eq!((offer.hit_ratio, offer.ideal_hit_ratio, offer.break_even), (0.0, 0.0, None));
        }
        assert!(advice.verdicts.iter().all(|verdict| matches!(verdict, Verdict::LeaveOut { .. })));
    }

    #[test]
    fn measured_indexes_take_time() {
        let trace = trace((0..50_000).map(|at| at * 7919 % 5000));
        let indexes = vec![MeasuredIndex::BTree, MeasuredIndex::Hash];
        let question = Question { index_costs: Vec::new(), indexes, sizes: vec![1 << 12], ..question() };
        let advice = Advice::on(&trace, &question, &ProgressBar::hidden()).unwrap();
        let names: Vec<_> = advice.indexes.iter().map(|index| index.name.as_str()).collect();
        assert_eq!(names, ["BTreeMap", "HashMap"]);
        assert!(advice.indexes.iter().all(|index| index.nanoseconds > 1.0), "{:?}", advice.indexes);
        assert_eq!((advice.offers.len(), advice.verdicts.len()), (3, 2));
    }

    #[test]
    fn the_working_set_is_counted_from_the_hottest() {
        // Key 0 gets 90 of 100 lookups, ten others one each.
        let trace = trace((0..90).map(|_| 0).chain(1..11));
        let set = WorkingSet::of(&trace);
        assert_eq!((set.lookups, set.keys), (100, 11));
        assert_eq!((set.keys_of_half, set.keys_of_90_percent, set.keys_of_99_percent), (1, 1, 10));
    }

    #[test]
    fn the_smallest_of_those_that_are_about_as_good_is_advised() {
        let offers = [offer(400, 50.0), offer(100, 51.0), offer(10, 60.0)];
        assert_eq!(judge(&offers, 0, 100.0), Verdict::Use { offer: 1, gain: 100.0 / 51.0 });
        assert_eq!(judge(&offers, 0, 51.0), Verdict::LeaveOut { gain: 51.0 / 50.0 });
    }

    #[test]
    fn sizes_suit_the_keys() {
        // 76,349 keys: 95,436 slots are 13,634 lines, 1 MiB.
        assert_eq!(suitable_sizes(76_349), [1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20]);
        assert_eq!(suitable_sizes(1), [1 << 10, 1 << 12]);
        assert_eq!(suitable_sizes(1 << 30).last(), Some(&LARGEST));
    }

    #[test]
    fn questions_that_make_no_sense_are_refused() {
        let trace = trace(0..10);
        for question in [
            Question { warm_up: 1.0, ..question() },
            Question { index_costs: vec![f64::NAN], ..question() },
            Question { tables: Vec::new(), ..question() },
            Question { entry_bytes: 0, ..question() },
        ] {
            let error = Advice::on(&trace, &question, &ProgressBar::hidden()).unwrap_err();
            assert!(matches!(error, AdviceError::Question(_)), "{error}");
        }
        let question = Question { sizes: vec![1], ..question() };
        let error = Advice::on(&trace, &question, &ProgressBar::hidden()).unwrap_err();
        assert!(matches!(error, AdviceError::Create { size: 1, .. }), "{error}");
    }
}
