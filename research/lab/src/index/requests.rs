//! What is asked of a table, drawn before the clock starts.
//!
//! Keys are drawn uniformly over the records that stay in the table (positive lookups) or over records that there never
//! were (negative ones); every part that is timed gets fresh draws. Writes are of two kinds. *Inserts* put in
//! newcomers: records with keys that are not there. *Removals* take out leavers: records that were put in for this
//! purpose. Each thread has newcomers and leavers of its own, and after the timed part all of it is undone, so that the
//! table is as full as before.
//!
//! ```text
//!   records:  | stay ............... | leavers, newcomers of thread 0 | of thread 1 | ... | never there
//! ```

use std::ops::Range;

use rand::distr::{Distribution, Uniform};
use serde::Deserialize;
use workload::generator::Xoshiro256PlusPlus;

use super::engine::{Index, Insertion, Operation};
use super::records::Key;
use crate::experiment::{ExperimentError, expect};
use crate::subject::{Call, Tally};

/// Records with numbers from here on exist nowhere.
const NEVER_THERE: u64 = 1 << 60;

/// A mix of requests, as definitions name it; what is left to a hundred are lookups.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// The name of the metric in the results.
    pub(crate) name: String,
    /// Whether the lookups find nothing.
    #[serde(default)]
    pub(crate) lookups: Lookups,
    /// Inserts in a hundred requests.
    #[serde(default)]
    pub(crate) inserts: u32,
    /// Removals in a hundred requests.
    #[serde(default)]
    pub(crate) removals: u32,
}

/// Which keys are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lookups {
    /// Those of records in the table.
    #[default]
    Positive,
    /// Those of records that are not.
    Negative,
}

impl Mix {
    /// Lookups alone, of keys that are there or are not.
    #[must_use]
    pub fn lookups(lookups: Lookups) -> Mix {
        let name = match lookups {
            Lookups::Positive => "positive lookups",
            Lookups::Negative => "negative lookups",
        };
        Mix { name: name.into(), lookups, inserts: 0, removals: 0 }
    }

    fn share(percent: u32, operations: usize) -> usize {
        operations * percent as usize / 100
    }

    /// Whether anything is written.
    pub(crate) fn writes(&self) -> bool {
        self.inserts + self.removals > 0
    }
}

/// How the records are divided, for a number of operations and of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    stay: u64,
    leavers: u64,
    newcomers: u64,
    threads: u64,
}

impl Division {
    /// `filled` records are in the table at first, some of them leavers; as many leavers and newcomers a thread as the
    /// most demanding of `mixes` needs.
    ///
    /// # Errors
    /// [`ExperimentError::Machine`]: there are too few records for that.
    pub fn new(
        filled: usize,
        mixes: &[Mix],
        operations: usize,
        threads: usize,
    ) -> Result<Division, ExperimentError> {
        let most = |share: fn(&Mix) -> u32| {
            mixes.iter().map(|mix| Mix::share(share(mix), operations)).max().unwrap_or(0) as u64
        };
        let (leavers, newcomers) = (most(|mix| mix.removals), most(|mix| mix.inserts));
        let stay = (filled as u64)
            .checked_sub(threads as u64 * leavers)
            .filter(|&stay| stay > 0)
            .ok_or_else(|| {
                ExperimentError::Machine(format!(
                    "{filled} records are too few for {threads} x {leavers} removals"
                ))
            })?;
        Ok(Division { stay, leavers, newcomers, threads: threads as u64 })
    }

    /// How many records there are in all.
    pub(crate) fn records(&self) -> usize {
        (self.stay + self.threads * (self.leavers + self.newcomers)) as usize
    }

    fn leavers_of(&self, thread: usize) -> Range<u64> {
        let start = self.stay + thread as u64 * (self.leavers + self.newcomers);
        start..start + self.leavers
    }

    fn newcomers_of(&self, thread: usize) -> Range<u64> {
        let start = self.leavers_of(thread).end;
        start..start + self.newcomers
    }

    /// The records that are in the table at first, in the order in which they are put in.
    pub(crate) fn filled(&self) -> impl Iterator<Item = Range<u64>> {
        let this = *self;
        std::iter::once(0..this.stay)
            .chain((0..this.threads as usize).map(move |thread| this.leavers_of(thread)))
            .filter(|range| !range.is_empty())
    }
}

/// Requests of one thread, and what they must come to.
#[derive(Debug)]
pub(crate) struct Requests {
    kind: Kind,
    expected: Tally,
    removed: Range<u64>,
    inserted: Range<u64>,
}

#[derive(Debug)]
enum Kind {
    Lookups(Vec<Key>),
    Mixed(Vec<Operation>),
}

impl Requests {
    /// Draws `operations` requests of `mix` for `thread`.
    pub(crate) fn draw(
        mix: &Mix,
        operations: usize,
        division: &Division,
        thread: usize,
        random: &mut Xoshiro256PlusPlus,
    ) -> Requests {
        let records = match mix.lookups {
            Lookups::Positive => Uniform::new(0, division.stay),
            Lookups::Negative => Uniform::new(NEVER_THERE, u64::MAX),
        };
        let records = records.expect("there is at least one record");
        let mut expected = Tally::default();
        let mut look_up = |random: &mut Xoshiro256PlusPlus| {
            let record = records.sample(random);
            expected.count((mix.lookups == Lookups::Positive).then_some(record));
            Key::of(record)
        };
        let (mut leavers, mut newcomers) = (division.leavers_of(thread), division.newcomers_of(thread));
        let (first_leaver, first_newcomer) = (leavers.start, newcomers.start);
        leavers.end = leavers.start + Mix::share(mix.removals, operations) as u64;
        newcomers.end = newcomers.start + Mix::share(mix.inserts, operations) as u64;
        let kind = if mix.writes() {
            let percent = Uniform::new(0, 100).expect("the range is not empty");
            let draw = |_| {
                let dice = percent.sample(random);
                let write = if dice < mix.inserts {
                    newcomers.next().map(Operation::Insert)
                } else if dice < mix.inserts + mix.removals {
                    leavers.next().map(Operation::Remove)
                } else {
                    None
                };
                // Who has run out of newcomers or leavers before the end looks up instead.
                write.unwrap_or_else(|| Operation::Get(look_up(random)))
            };
            Kind::Mixed((0..operations).map(draw).collect())
        } else {
            Kind::Lookups((0..operations).map(|_| look_up(random)).collect())
        };
        Requests {
            kind,
            expected,
            removed: first_leaver..leavers.start,
            inserted: first_newcomer..newcomers.start,
        }
    }

    /// Asks them: this is what is timed.
    pub(crate) fn ask(&self, index: &dyn Index, call: Call) -> Tally {
        match (&self.kind, call) {
            (Kind::Lookups(keys), Call::Single) => index.get_each(keys),
            (Kind::Lookups(keys), Call::Batch) => index.get_batched(keys),
            (Kind::Mixed(operations), call) => index.perform(call, operations),
        }
    }

    /// Checks what came of them, and undoes the writes.
    pub(crate) fn settle(&self, index: &dyn Index, name: &str, tally: Tally) -> Result<(), ExperimentError> {
        expect(name, tally, self.expected)?;
        let wrong = |found: String| ExperimentError::wrong(name, found);
        if let Some(record) = self.inserted.clone().find(|&record| !index.remove(record)) {
            return Err(wrong(format!("record {record} was put in and is not there")));
        }
        let put_back = |record: &u64| index.insert(*record) == Insertion::TooFull;
        if let Some(record) = self.removed.clone().find(put_back) {
            return Err(wrong(format!("record {record} was taken out and finds no room again")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::Records;
    use super::super::tables::{SearchChoice, Table};
    use super::*;
    use workload::generator::seeded;

    fn mix(lookups: Lookups, inserts: u32, removals: u32) -> Mix {
        Mix { name: "mix".into(), lookups, inserts, removals }
    }

    #[test]
    fn a_mix_has_its_shares_and_is_undone() {
        let mixes =
            [mix(Lookups::Positive, 0, 0), mix(Lookups::Negative, 10, 10), mix(Lookups::Positive, 100, 0)];
        let division = Division::new(9000, &mixes, 1000, 2).unwrap();
        let records = Records::new(division.records()).unwrap();
        let table = Table::SevenWay { search: SearchChoice::BreadthFirst }.make(1 << 17, &records).unwrap();
        for range in division.filled() {
            assert!(!table.insert_each(range).refused);
        }
        assert_eq!(table.anatomy().entries, 9000);
        for mix in &mixes {
            for thread in 0..2 {
                for call in [Call::Single, Call::Batch] {
                    let requests = Requests::draw(mix, 1000, &division, thread, &mut seeded(5));
                    let tally = requests.ask(&*table, call);
                    let written = table.anatomy().entries as i64 - 9000;
                    let (inserts, removals) = (i64::from(mix.inserts) * 10, i64::from(mix.removals) * 10);
                    assert!((written - (inserts - removals)).abs() < 60, "{mix:?}: {written}");
                    requests.settle(&*table, "the table", tally).unwrap();
                    assert_eq!(table.anatomy().entries, 9000, "{mix:?}");
                }
            }
        }
    }

    #[test]
    fn threads_write_records_of_their_own() {
        let division = Division::new(5000, &[mix(Lookups::Positive, 20, 30)], 1000, 2).unwrap();
        let mut all: Vec<u64> = division.filled().flatten().collect();
        assert_eq!(all.len(), 5000);
        all.extend((0..2).flat_map(|thread| division.newcomers_of(thread)));
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..division.records() as u64));
        assert!(Division::new(600, &[mix(Lookups::Positive, 0, 30)], 1000, 2).is_err());
    }

    #[test]
    fn a_wrong_answer_is_noticed() {
        let mixes = [mix(Lookups::Positive, 0, 0)];
        let division = Division::new(100, &mixes, 50, 1).unwrap();
        let records = Records::new(100).unwrap();
        let table = Table::SevenWay { search: SearchChoice::BreadthFirst }.make(1 << 12, &records).unwrap();
        table.insert_each(0..50); // half of what should be there
        let requests = Requests::draw(&mixes[0], 50, &division, 0, &mut seeded(5));
        let tally = requests.ask(&*table, Call::Single);
        assert!(matches!(
            requests.settle(&*table, "the table", tally),
            Err(ExperimentError::WrongAnswer { .. })
        ));
    }
}
