//! The forms in which an index is measured: alone, or with one of the tables in front.

use lookaside::{Config, CounterPolicy};
use serde::Deserialize;

use super::contestant::{Entrant, Made};

/// An index alone, or how a table stands in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Form {
    /// Alone.
    Alone,
    /// The default SLB: of one size where the index is in another language, and one that fits itself in Rust.
    Slb,
    /// The same, its monitor watching.
    SlbMonitored,
    /// The paper's SLB, to the letter.
    SlbPaper,
    /// The default SLB with the paper's counters.
    SlbEveryHit,
    /// The default SLB, which stays as large as it was made; of an index that has another by default.
    SlbOneSize,
    /// The default SLB, which fits itself; of an index that has another by default.
    SlbFits,
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
            Form::SlbOneSize => "SLB of one size",
            Form::SlbFits => "SLB that fits itself",
            Form::SlbCall => "SLB, by calls",
            Form::SlbOwner => "SLB, owner-only",
            Form::Stlt => "STLT-SW",
            Form::StltOneWay => "STLT-SW, one way",
            Form::StltTwoWays => "STLT-SW, two ways",
            Form::StltEightWays => "STLT-SW, eight ways",
            Form::StltOwner => "STLT-SW, owner-only",
        }
    }

    /// The SLB of this form, where one that is not asked for anything else fits itself or does not.
    fn slb(self, bytes: usize, fits: bool) -> Config {
        let slb = Config::with_size(bytes).fits(fits);
        match self {
            Form::SlbPaper => Config::paper(bytes),
            Form::SlbEveryHit => slb.counters(CounterPolicy::EveryHit),
            Form::SlbOneSize => slb.fits(false),
            Form::SlbFits => slb.fits(true),
            _ => slb,
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

    /// Makes one for these records, if the index has it, and has it not as [`Form::Slb`] already.
    pub(super) fn make<const N: usize>(
        self,
        entrant: &Entrant<N>,
        records: usize,
        bytes: usize,
    ) -> Option<Made<N>> {
        let monitor = self == Form::SlbMonitored;
        let fits = entrant.fits_by_default();
        if let Some(ways) = self.ways() {
            return entrant.stlt.map(|make| make(records, bytes, ways));
        }
        let make = match self {
            Form::Alone => return Some((entrant.alone)(records)),
            Form::SlbOwner => entrant.sole,
            Form::SlbCall => entrant.called,
            Form::SlbOneSize => entrant.shared.filter(|_| fits),
            Form::SlbFits => entrant.shared.filter(|_| !fits),
            _ => entrant.shared,
        };
        make.map(|make| make(records, &self.slb(bytes, fits), monitor))
    }
}

/// An index in a form, in words: a configuration in results.
pub(super) fn configuration(index: &str, form: Form) -> String {
    format!("{index}, {}", form.name())
}

#[cfg(test)]
mod tests {
    use super::super::entrants::b_tree;
    use super::*;

    /// Else a definition would measure the same twice, under two names, or compare tables that fit themselves with
    /// others.
    #[test]
    fn a_table_that_fits_itself_or_does_not_is_another_form_only_where_it_is_not_the_default() {
        let ours = b_tree::<24>();
        let elsewhere = Entrant { called: ours.shared, ..ours };
        let made = |form: Form, entrant| form.make(entrant, 10, 4096).map(Result::unwrap).is_some();
        for (entrant, other, same) in
            [(&ours, Form::SlbOneSize, Form::SlbFits), (&elsewhere, Form::SlbFits, Form::SlbOneSize)]
        {
            assert!(made(Form::Slb, entrant) && made(other, entrant) && !made(same, entrant));
            let fits = |form: Form| form.slb(4096, entrant.fits_by_default()).fits;
            assert_eq!((fits(other), fits(Form::SlbEveryHit)), (other == Form::SlbFits, !fits(other)));
            assert_eq!((fits(Form::Slb), fits(Form::SlbPaper)), (!fits(other), false));
        }
    }
}
