//! What was measured, and the rows that it comes to: a form's speed, and beside it what it is of the index alone and of
//! what the machine can do, each of the same turn.

use std::collections::BTreeMap;

use super::contestant::Call;
use super::form::{Form, configuration};
use super::lookups::Parameters;
use crate::experiment::Session;
use crate::measure::name_threads;

/// What is timed at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) point: usize,
    pub(super) threads: usize,
    pub(super) mix: Mix,
    pub(super) run: usize,
}

impl Part {
    /// In words.
    pub(super) fn name(self, parameters: &Parameters) -> String {
        format!("{}, {}", parameters.points[self.point].name, name_threads(self.threads))
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mix {
    Lookups,
    /// So many writes in a hundred requests.
    Sets(u32),
    /// So many changes of a value in its place.
    Renewals(u32),
}

impl Mix {
    /// All that a definition asks for.
    pub(super) fn all(parameters: &Parameters) -> Vec<Mix> {
        let sets = parameters.sets.iter().map(|&sets| if sets == 0 { Mix::Lookups } else { Mix::Sets(sets) });
        sets.chain(parameters.renewals.iter().map(|&share| Mix::Renewals(share))).collect()
    }

    pub(super) fn writes(self) -> u32 {
        match self {
            Mix::Lookups => 0,
            Mix::Sets(share) | Mix::Renewals(share) => share,
        }
    }

    /// The name of what was measured of it, asked for by this call.
    pub(super) fn metric(self, what: &str, call: Call) -> String {
        let call = if call == Call::Batch { " in batches" } else { "" };
        let mix = match self {
            Mix::Lookups => String::new(),
            Mix::Sets(share) => format!(", {share} % SET"),
            Mix::Renewals(share) => format!(", {share} % SET in place"),
        };
        format!("{what}{call}{mix}")
    }
}

/// The loops that nothing is faster than: in results, and by their place here in [`Runner::Machine`].
pub(super) const MACHINE: [&str; 2] =
    ["the machine, lines all alike", "the machine, lines as popular as records"];

/// Who was timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Runner {
    /// The form of an index at this place.
    Place(usize),
    /// One of the loops.
    Machine(usize),
}

/// Requests a second.
#[derive(Default)]
pub(super) struct Rates(BTreeMap<(Runner, Call, Part), f64>);

impl Rates {
    pub(super) fn insert(&mut self, runner: Runner, call: Call, part: Part, rate: f64) {
        self.0.insert((runner, call, part), rate);
    }

    /// Records what was measured of an index, whose places begin at `first`, and what it is beside the index alone in
    /// the same run.
    pub(super) fn record(&self, index: &str, first: usize, parameters: &Parameters, session: &mut Session) {
        let forms = &parameters.forms;
        let alone = forms.iter().position(|&form| form == Form::Alone).map(|at| Runner::Place(first + at));
        for (at, &form) in forms.iter().enumerate() {
            let own = Runner::Place(first + at);
            let name = configuration(index, form);
            for (&(_, call, part), &rate) in self.0.iter().filter(|((runner, ..), _)| *runner == own) {
                let point = part.name(parameters);
                let mut record = |what: &str, unit, value| {
                    session.record(&name, &point, part.mix.metric(what, call), unit, value);
                };
                let beside =
                    |runner: Runner, call, mix| self.0.get(&(runner, call, Part { mix, ..part })).copied();
                let alone = |mix| beside(alone?, Call::Single, mix);
                record("lookups", "M/s", rate / 1e6);
                if form != Form::Alone
                    && let Some(times) = alone(part.mix).map(|alone| rate / alone)
                {
                    record("times alone", "x", times);
                    // What the mix must reach: the gain of lookups alone, less 15 %.
                    if part.mix != Mix::Lookups
                        && let (Some(with), Some(without)) =
                            (beside(own, call, Mix::Lookups), alone(Mix::Lookups))
                    {
                        let asked = 1.0 + 0.85 * (with / without - 1.0);
                        record("times alone, of 85 % of the gain", "x", times / asked);
                    }
                }
                if (call, part.mix) == (Call::Batch, Mix::Lookups) {
                    for (at, machine) in MACHINE.iter().enumerate() {
                        if let Some(limit) = beside(Runner::Machine(at), Call::Batch, Mix::Lookups) {
                            session.record(&name, &point, format!("share of {machine}"), "x", rate / limit);
                        }
                    }
                }
            }
        }
    }
}
