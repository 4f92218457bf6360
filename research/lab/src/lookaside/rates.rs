//! What was measured, and the rows that it comes to: a form's speed, and beside it what it is of the index alone, or of
//! the first contestant, and of what the machine can do, each of the same turn.

use std::collections::BTreeMap;

use super::draws::Mix;
use super::form::Form;
use super::parameters::{Parameters, Place};
use crate::experiment::Session;
use crate::measure::name_threads;
use crate::subject::Call;

/// What is timed at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) point: usize,
    pub(super) threads: usize,
    pub(super) mix: Mix,
    pub(super) run: usize,
}

impl Part {
    /// In words: nothing where there is one point, without a name.
    pub(super) fn name(self, parameters: &Parameters) -> String {
        match parameters.points[self.point].name.as_str() {
            "" => String::new(),
            point => format!("{point}, {}", name_threads(self.threads)),
        }
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

    /// Records what was measured at these places.
    pub(super) fn record<const N: usize>(
        &self,
        places: &[Place<'_, N>],
        parameters: &Parameters,
        session: &mut Session,
    ) {
        for place in places {
            let own = Runner::Place(place.number);
            // Beside whom, always asked one key at a time.
            let first = if parameters.beside_the_first {
                places.first().filter(|_| places.len() > 1)
            } else {
                let is_alone = |it: &&Place<'_, N>| it.form == Form::Alone && it.index == place.index;
                places.iter().find(is_alone).filter(|_| place.form != Form::Alone)
            };
            for (&(_, call, part), &rate) in self.0.iter().filter(|((runner, ..), _)| *runner == own) {
                let point = part.name(parameters);
                let mut record = |metric, unit, value| {
                    session.record(&place.name(), &point, metric, unit, value);
                };
                let of = |runner, call, mix| self.0.get(&(runner, call, Part { mix, ..part })).copied();
                let beside = |mix| of(Runner::Place(first?.number), Call::Single, mix);
                record(part.mix.metric("lookups", call), "M/s", rate / 1e6);
                if let Some(times) = beside(part.mix).map(|beside| rate / beside) {
                    match (parameters.beside_the_first, call) {
                        (false, _) => record(part.mix.metric("times alone", call), "x", times),
                        (true, Call::Single) => record("times the first".into(), "x", times),
                        (true, Call::Batch) => record("times the first, in batches".into(), "x", times),
                    }
                    // What the mix must reach: the gain of lookups alone, less 15 %.
                    if part.mix != Mix::Lookups
                        && let (Some(with), Some(without)) =
                            (of(own, call, Mix::Lookups), beside(Mix::Lookups))
                    {
                        let asked = 1.0 + 0.85 * (with / without - 1.0);
                        let metric = part.mix.metric("times alone, of 85 % of the gain", call);
                        record(metric, "x", times / asked);
                    }
                }
                if (call, part.mix) == (Call::Batch, Mix::Lookups) {
                    for (at, machine) in MACHINE.iter().enumerate() {
                        if let Some(limit) = of(Runner::Machine(at), Call::Batch, Mix::Lookups) {
                            record(format!("share of {machine}"), "x", rate / limit);
                        }
                    }
                }
            }
        }
    }
}
