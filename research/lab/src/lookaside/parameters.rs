//! What the definitions of kind `slb-lookups` say, and who takes part by them.

use serde::Deserialize;

use super::draws::{Mix, Point};
use super::entrant::Entrant;
use super::form::{Form, configuration};

/// What the definitions of the kind say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The indexes, by name.
    #[serde(default)]
    pub(super) indexes: Vec<String>,
    /// What is measured of each.
    #[serde(default)]
    pub(super) forms: Vec<Form>,
    /// Instead, an index in a form each.
    #[serde(default)]
    pub(super) contestants: Vec<Chosen>,
    /// Records in each index.
    pub(super) records: usize,
    /// Bytes of a key: 8 or 24. Values are of 64.
    #[serde(default = "long_keys")]
    pub(super) key_bytes: usize,
    /// What is asked for, of which tables.
    pub(super) points: Vec<Point>,
    /// Draws that warm the tables at each point.
    pub(super) warm_up: usize,
    /// Requests of one thread in one timed part; a tenth as many go before, untimed.
    pub(super) operations: usize,
    /// Numbers of threads.
    #[serde(default = "one_thread")]
    pub(super) threads: Vec<usize>,
    /// Writes in a hundred requests: each share is measured.
    #[serde(default = "only_lookups")]
    pub(super) sets: Vec<u32>,
    /// The same, of writes that change a value in its place: no entry comes or goes. One key at a time.
    #[serde(default)]
    pub(super) renewals: Vec<u32>,
    /// All records alike, instead of Zipfian.
    #[serde(default)]
    pub(super) uniform: bool,
    /// An index for each thread, with its share of the records and of the table.
    #[serde(default)]
    pub(super) partitioned: bool,
    /// All forms of an index at once in memory.
    #[serde(default = "yes")]
    pub(super) together: bool,
    /// All forms of all indexes at once in memory.
    #[serde(default)]
    pub(super) side_by_side: bool,
    /// Ratios are to the first that is named, not to each index alone.
    #[serde(default)]
    pub(super) beside_the_first: bool,
    /// Also measure, in each run, what the machine can do.
    #[serde(default)]
    pub(super) machine: bool,
}

fn long_keys() -> usize {
    24
}

fn one_thread() -> Vec<usize> {
    vec![1]
}

fn only_lookups() -> Vec<u32> {
    vec![0]
}

fn yes() -> bool {
    true
}

/// An index, alone or with a table in front.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chosen {
    pub(super) index: String,
    pub(super) form: Form,
}

impl Parameters {
    /// All that take part, index by index.
    pub(super) fn chosen(&self) -> Vec<Chosen> {
        let of = |index: &String| {
            let index = index.clone();
            self.forms.iter().map(move |&form| Chosen { index: index.clone(), form })
        };
        self.indexes.iter().flat_map(of).chain(self.contestants.iter().cloned()).collect()
    }

    pub(super) fn mixes(&self) -> Vec<Mix> {
        let sets = self.sets.iter().map(|&sets| if sets == 0 { Mix::Lookups } else { Mix::Sets(sets) });
        sets.chain(self.renewals.iter().map(|&share| Mix::Renewals(share))).collect()
    }
}

/// An index in a form, by its number among all that take part.
#[derive(Clone, Copy)]
pub(super) struct Place<'e, const N: usize> {
    pub(super) number: usize,
    pub(super) index: &'e str,
    pub(super) entrant: &'e Entrant<N>,
    pub(super) form: Form,
}

impl<const N: usize> Place<'_, N> {
    pub(super) fn name(&self) -> String {
        configuration(self.index, self.form)
    }
}
