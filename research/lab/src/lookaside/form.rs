//! The forms in which an index is measured: alone, or with one of the tables in front.

use lookaside::{Config, CounterPolicy};
use serde::Deserialize;

use super::entrant::{Entrant, Made};

/// An index alone, or how a table stands in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Form {
    /// Alone.
    Alone,
    /// The default SLB.
    Slb,
    /// The same, its monitor watching.
    SlbMonitored,
    /// The paper's SLB, to the letter.
    SlbPaper,
    /// The default SLB with the paper's counters.
    SlbEveryHit,
    /// The default SLB, asked by calls where an index in another language could inline it.
    SlbCall,
    /// The owner-only form.
    SlbOwner,
    /// STLT-SW with four ways. It is for one thread, whatever the index is for.
    Stlt,
    /// STLT-SW with one way.
    StltOneWay,
    /// STLT-SW with two ways.
    StltTwoWays,
    /// STLT-SW with eight ways.
    StltEightWays,
    /// The same as [`Form::Stlt`], named so beside the SLB's owner-only form.
    StltOwner,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Alone => "alone",
            Form::Slb => "SLB",
            Form::SlbMonitored => "SLB with monitor",
            Form::SlbPaper => "SLB as published",
            Form::SlbEveryHit => "SLB, every hit counted",
            Form::SlbCall => "SLB, by calls",
            Form::SlbOwner => "SLB, owner-only",
            Form::Stlt => "STLT-SW",
            Form::StltOneWay => "STLT-SW, one way",
            Form::StltTwoWays => "STLT-SW, two ways",
            Form::StltEightWays => "STLT-SW, eight ways",
            Form::StltOwner => "STLT-SW, owner-only",
        }
    }

    /// The SLB of this form.
    fn slb(self, bytes: usize) -> Config {
        match self {
            Form::SlbPaper => Config::paper(bytes),
            Form::SlbEveryHit => Config::with_size(bytes).counters(CounterPolicy::EveryHit),
            _ => Config::with_size(bytes),
        }
    }

    /// The ways of the STLT-SW of this form, if it is one.
    fn ways(self) -> Option<usize> {
        match self {
            Form::Stlt | Form::StltOwner => Some(4),
            Form::StltOneWay => Some(1),
            Form::StltTwoWays => Some(2),
            Form::StltEightWays => Some(8),
            _ => None,
        }
    }

    /// Makes one for these records, if the index has it.
    pub(super) fn make<const N: usize>(
        self,
        entrant: &Entrant<N>,
        records: usize,
        bytes: usize,
    ) -> Option<Made<N>> {
        let monitor = self == Form::SlbMonitored;
        if let Some(ways) = self.ways() {
            return entrant.stlt.map(|make| make(records, bytes, ways));
        }
        let make = match self {
            Form::Alone => return Some((entrant.alone)(records)),
            Form::SlbOwner => entrant.sole,
            Form::SlbCall => entrant.called,
            _ => entrant.shared,
        };
        make.map(|make| make(records, &self.slb(bytes), monitor))
    }
}

/// An index in a form, in words: a configuration in results.
pub(super) fn configuration(index: &str, form: Form) -> String {
    format!("{index}, {}", form.name())
}
