//! The forms in which an index is measured: alone, or with one of the tables in front.

use lookaside::{Config, CounterPolicy, StltConfig, Ways};
use serde::Deserialize;

use super::contestant::{Entrant, Front, Made};

/// An index alone, or how a table stands in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
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
    /// The default SLB, which stays as large as it was made.
    SlbOneSize,
    /// The default SLB, asked by calls where an index in another language could inline it.
    SlbCall,
    /// The owner-only form.
    SlbOwner,
    /// STLT-SW with four ways.
    Stlt,
    /// STLT-SW with one way.
    StltOneWay,
    /// STLT-SW with two ways.
    StltTwoWays,
    /// STLT-SW with eight ways.
    StltEightWays,
    /// STLT-SW, the owner-only form.
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
            Form::SlbOneSize => "SLB of one size",
            Form::SlbCall => "SLB, by calls",
            Form::SlbOwner => "SLB, owner-only",
            Form::Stlt => "STLT-SW",
            Form::StltOneWay => "STLT-SW, one way",
            Form::StltTwoWays => "STLT-SW, two ways",
            Form::StltEightWays => "STLT-SW, eight ways",
            Form::StltOwner => "STLT-SW, owner-only",
        }
    }

    fn front(self, bytes: usize) -> Front {
        let stlt = |ways| Front::Stlt(StltConfig { ways, ..StltConfig::with_size(bytes) });
        match self {
            Form::Alone | Form::Slb | Form::SlbMonitored | Form::SlbCall | Form::SlbOwner => {
                Front::Slb(Config::with_size(bytes))
            }
            Form::SlbPaper => Front::Slb(Config::paper(bytes)),
            Form::SlbEveryHit => {
                Front::Slb(Config { counters: CounterPolicy::EveryHit, ..Config::with_size(bytes) })
            }
            Form::SlbOneSize => Front::Slb(Config { fits: false, ..Config::with_size(bytes) }),
            Form::Stlt | Form::StltOwner => stlt(Ways::Four),
            Form::StltOneWay => stlt(Ways::One),
            Form::StltTwoWays => stlt(Ways::Two),
            Form::StltEightWays => stlt(Ways::Eight),
        }
    }

    /// Makes one for these records, if the index has it.
    pub(crate) fn make<const N: usize>(
        self,
        entrant: &Entrant<N>,
        records: usize,
        bytes: usize,
    ) -> Option<Made<N>> {
        let monitor = self == Form::SlbMonitored;
        match self {
            Form::Alone => Some((entrant.alone)(records)),
            Form::SlbOwner | Form::StltOwner => {
                entrant.sole.map(|make| make(records, &self.front(bytes), monitor))
            }
            Form::SlbCall => entrant.called.map(|make| make(records, &self.front(bytes), monitor)),
            _ => entrant.shared.map(|make| make(records, &self.front(bytes), monitor)),
        }
    }
}

/// An index in a form, in words: a configuration in results.
pub(crate) fn configuration(index: &str, form: Form) -> String {
    format!("{index}, {}", form.name())
}
