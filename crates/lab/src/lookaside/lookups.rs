//! Kind `slb-lookups`: indexes alone and with a table in front, asked for the same records.
//!
//! For each index, it alone and its forms with a table are made and filled, one beside the other. Then, at each point (how many
//! of the records are asked for, and how large the table is), the tables are emptied and warmed with the same draws, and all
//! take turns, run by run: each is asked for records drawn anew, and never for those that warmed it. A ratio is of one
//! turn. Where not everything fits the memory at once (`together = false`), one form after the other is made and measured.
//!
//! Alone is the index as its users have it: its natural map with its usual hash, called directly, one key at a time. What a
//! ratio says is what putting a table in front is worth, batches included.

use std::collections::BTreeMap;

use lookaside::{Config, CounterPolicy, StltConfig, Ways};
use serde::Deserialize;

use super::contestant::{Answer, Call, Contestant, Entrant, Front, Made, Partitioned, fill};
use super::draws::{Draws, Lookups, Mixed};
use super::entrants::own_entrants;
use super::machine_limit::Regions;
use super::record::{Key, Tally};
use crate::experiment::{ExperimentError, Session};
use crate::measure::{CoreError, Resident, cores, in_parallel, name_threads, turns};

/// What the definitions of this kind say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The indexes, by name.
    indexes: Vec<String>,
    /// What is measured of each.
    forms: Vec<Form>,
    /// Records in each index.
    records: usize,
    /// Bytes of a key: 8 or 24. Values are of 64.
    #[serde(default = "long_keys")]
    key_bytes: usize,
    /// What is asked for, of which tables.
    points: Vec<Point>,
    /// Draws that warm the tables at each point.
    warm_up: usize,
    /// Requests of one thread in one timed part; a tenth as many go before, untimed.
    operations: usize,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Writes in a hundred requests: each share is measured.
    #[serde(default = "only_lookups")]
    sets: Vec<u32>,
    /// All records alike, instead of Zipfian.
    #[serde(default)]
    uniform: bool,
    /// An index for each thread, with its share of the records and of the table.
    #[serde(default)]
    partitioned: bool,
    /// All forms of an index at once in memory.
    #[serde(default = "yes")]
    together: bool,
    /// Also measure what the machine can do.
    #[serde(default)]
    machine: bool,
}

fn long_keys() -> usize {
    24
}

fn only_lookups() -> Vec<u32> {
    vec![0]
}

fn yes() -> bool {
    true
}

/// A place on the figure's axis.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// In words.
    name: String,
    /// How many of the records are asked for.
    range: u64,
    /// Bytes of the table.
    bytes: usize,
}

/// An index alone, or how a table stands in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
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

/// The kind, with the indexes of this crate.
pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    run_with(parameters, session, own_entrants::<8>(), own_entrants::<24>(), &[])
}

/// An index that is known, and not there.
#[derive(Debug, Clone, Copy)]
pub struct Missing {
    /// Its name in definitions.
    pub name: &'static str,
    /// What to install.
    pub why: &'static str,
}

/// The kind, with these indexes: for keys of 8 bytes, and of 24. Those that are missing are left out, and the results say so.
///
/// # Errors
/// [`ExperimentError`]: an index that there is not, a machine that is too small, or a wrong answer.
pub fn run_with(
    parameters: &Parameters,
    session: &mut Session,
    short: Vec<Entrant<8>>,
    long: Vec<Entrant<24>>,
    missing: &[Missing],
) -> Result<(), ExperimentError> {
    match parameters.key_bytes {
        8 => Experiment::new(parameters, session)?.run(&short, missing),
        24 => Experiment::new(parameters, session)?.run(&long, missing),
        other => {
            Err(ExperimentError::Machine(format!("keys of {other} bytes: there are keys of 8 and of 24")))
        }
    }
}

/// What is timed at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    point: usize,
    threads: usize,
    /// Writes in a hundred.
    sets: u32,
    run: usize,
}

/// Requests a second, by form (and the machine, after the last one), whether in batches, and part.
type Rates = BTreeMap<(usize, bool, Part), f64>;

struct Experiment<'e> {
    parameters: &'e Parameters,
    session: &'e mut Session,
    threads: Vec<usize>,
    /// Parts begun, each with draws of its own.
    drawn: u64,
}

/// The share of what is timed that goes before it.
const WARM_UP: usize = 10;
/// Keys drawn at once while warming up.
const AT_ONCE: usize = 1 << 20;
/// The names of the loops that nothing is faster than.
const MACHINE: [&str; 2] = ["the machine, lines all alike", "the machine, lines as popular as records"];

impl<'e> Experiment<'e> {
    fn new(parameters: &'e Parameters, session: &'e mut Session) -> Result<Self, ExperimentError> {
        let available = cores().map_err(core_error)?.len();
        let (threads, beyond): (Vec<usize>, Vec<usize>) =
            parameters.threads.iter().partition(|&&threads| threads <= available);
        for threads in beyond {
            session.skip(&name_threads(threads), format!("this program may use {available} cores"));
        }
        if parameters.partitioned && parameters.threads.len() != 1 {
            return Err(ExperimentError::Machine("partitions are for one number of threads".into()));
        }
        Ok(Experiment { parameters, session, threads, drawn: 0 })
    }

    fn partitions(&self) -> usize {
        if self.parameters.partitioned { self.parameters.threads[0] } else { 1 }
    }

    fn run<const N: usize>(
        mut self,
        entrants: &[Entrant<N>],
        missing: &[Missing],
    ) -> Result<(), ExperimentError> {
        let parameters = self.parameters;
        let chosen: Vec<_> = parameters
            .indexes
            .iter()
            .filter(|name| match missing.iter().find(|missing| missing.name == **name) {
                Some(Missing { name, why }) => {
                    self.session.skip(name, *why);
                    false
                }
                None => true,
            })
            .map(|name| {
                entrants.iter().find(|entrant| entrant.name == name).ok_or_else(|| {
                    let known: Vec<_> = entrants.iter().map(|entrant| entrant.name).collect();
                    ExperimentError::Machine(format!("no index '{name}': there are {}", known.join(", ")))
                })
            })
            .collect::<Result<_, _>>()?;
        if self.threads.is_empty() {
            return Ok(());
        }
        let together = if parameters.together { parameters.forms.len() } else { 1 };
        let groups: Vec<&[Form]> = parameters.forms.chunks(together).collect();
        self.session.announce(
            chosen.len() * groups.len() * (1 + parameters.points.len() * (1 + self.session.runs())),
        );
        let machine = if parameters.machine { self.measure_machine()? } else { Rates::new() };
        for entrant in chosen {
            let mut rates = machine.clone();
            let mut first = 0;
            for forms in &groups {
                self.measure_group(entrant, forms, first, &mut rates)?;
                first += forms.len();
            }
            self.record(entrant.name, &rates);
        }
        Ok(())
    }

    /// Makes and fills a contestant.
    fn make<const N: usize>(
        &mut self,
        entrant: &Entrant<N>,
        form: Form,
    ) -> Result<Option<Box<dyn Contestant<N>>>, ExperimentError> {
        let (records, partitions) = (self.parameters.records, self.partitions());
        let bytes = self.parameters.points[0].bytes / partitions;
        let share = records.div_ceil(partitions);
        let before = Resident::now();
        let made = (0..partitions).map(|_| form.make(entrant, share, bytes));
        let Some(made) = made.collect::<Option<Vec<Made<N>>>>() else { return Ok(None) };
        let mut parts = made.into_iter().collect::<Result<Vec<_>, _>>().map_err(ExperimentError::Machine)?;
        let contestant = if partitions == 1 { parts.remove(0) } else { Box::new(Partitioned(parts)) };
        for thread in 0..partitions {
            let own = (thread as u64..records as u64).step_by(partitions);
            fill(&*contestant, thread, own);
        }
        let grown = Resident::now().since(before);
        let name = configuration(entrant.name, form);
        self.session.record_pages(&name, grown.pages());
        self.session.record(&name, "", "memory per record", "B", grown.bytes as f64 / records as f64);
        Ok(Some(contestant))
    }

    fn measure_group<const N: usize>(
        &mut self,
        entrant: &Entrant<N>,
        forms: &[Form],
        first: usize,
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let parameters = self.parameters;
        self.session.begin(format!("filling {}", entrant.name));
        let mut contestants = Vec::new();
        for (number, &form) in forms.iter().enumerate() {
            if let Some(contestant) = self.make(entrant, form)? {
                contestants.push((first + number, form, contestant));
            }
        }
        self.session.end();
        for (at, point) in parameters.points.iter().enumerate() {
            let draws =
                Draws::new(parameters.records as u64, point.range, parameters.uniform, self.partitions())?;
            self.session.begin(format!("{}: warming up for {}", entrant.name, point.name));
            self.warm(&mut contestants, &draws, point.bytes)?;
            self.session.end();
            for run in 0..self.session.runs() {
                self.session.begin(format!("{}: {}", entrant.name, point.name));
                for &threads in &self.threads.clone() {
                    for &sets in &parameters.sets {
                        let part = Part { point: at, threads, sets, run };
                        self.measure_part(entrant.name, &contestants, &draws, part, rates)?;
                    }
                }
                self.session.end();
            }
        }
        Ok(())
    }

    /// Empties all tables and warms them with the same draws.
    fn warm<const N: usize>(
        &mut self,
        contestants: &mut [(usize, Form, Box<dyn Contestant<N>>)],
        draws: &Draws,
        bytes: usize,
    ) -> Result<(), ExperimentError> {
        for (_, _, contestant) in &mut *contestants {
            contestant.resize(bytes).map_err(|error| ExperimentError::Machine(error.to_string()))?;
        }
        self.drawn += 1;
        let randoms: Vec<_> = Draws::generators(self.drawn).take(self.partitions()).collect();
        for (thread, mut random) in randoms.into_iter().enumerate() {
            let mut left = self.parameters.warm_up / self.partitions();
            while left > 0 {
                let lookups: Lookups<N> = draws.lookups(thread, left.min(AT_ONCE), &mut random);
                left -= lookups.keys.len();
                // An index alone has nothing to warm but the processor's caches.
                let warmed = contestants.iter().filter(|(_, form, _)| *form != Form::Alone);
                warmed.for_each(|(_, _, contestant)| {
                    contestant.get(thread, Call::Single, &lookups.keys, &[]);
                });
            }
        }
        Ok(())
    }

    fn measure_part<const N: usize>(
        &mut self,
        index: &str,
        contestants: &[(usize, Form, Box<dyn Contestant<N>>)],
        draws: &Draws,
        part: Part,
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let calls = contestants.iter().flat_map(|(number, form, contestant)| {
            let calls: &[Call] =
                if contestant.has_batches() { &[Call::Single, Call::Batch] } else { &[Call::Single] };
            calls.iter().map(move |&call| (*number, *form, call, &**contestant))
        });
        let able = |(_, _, _, contestant): &(usize, Form, Call, &dyn Contestant<N>)| {
            let writes = part.sets == 0 || contestant.shares_writes();
            part.threads == 1 || (writes && (self.parameters.partitioned || contestant.shares_reads()))
        };
        let calls: Vec<_> = calls.filter(able).collect();
        for turn in turns(calls.len(), part.run) {
            let (number, form, call, contestant) = calls[turn];
            let name = configuration(index, form);
            let before = contestant.counts();
            let answers = self.ask(contestant, call, draws, part)?;
            let mut rate = 0.0;
            for (answer, expected, requests) in answers {
                if answer.tally != expected {
                    return Err(ExperimentError::WrongAnswer {
                        what: name,
                        found: format!("{:?} instead of {expected:?}", answer.tally),
                    });
                }
                rate += requests as f64 / answer.time.as_secs_f64().max(1e-9);
            }
            rates.insert((number, call == Call::Batch, part), rate);
            if let (Some(before), Some(after), Call::Single, 0) =
                (before, contestant.counts(), call, part.sets)
            {
                let asked = (after.hits + after.misses) - (before.hits + before.misses);
                if asked > 0 {
                    let ratio = (after.hits - before.hits) as f64 / asked as f64;
                    let point = self.point(part);
                    self.session.record(&name, &point, "hit ratio", "%", 100.0 * ratio);
                }
            }
            if form == Form::SlbMonitored
                && let Some(verdict) = contestant.verdict()
            {
                let metric = metric("table on", call == Call::Batch, part.sets);
                let point = self.point(part);
                self.session.record(&name, &point, metric, "", f64::from(u8::from(verdict.on)));
            }
        }
        Ok(())
    }

    /// Asks one contestant with draws of its own: each thread's answer, what it must be, and how much was asked.
    fn ask<const N: usize>(
        &mut self,
        contestant: &dyn Contestant<N>,
        call: Call,
        draws: &Draws,
        part: Part,
    ) -> Result<Vec<(Answer, Tally, usize)>, ExperimentError> {
        self.drawn += 1;
        let operations = self.parameters.operations;
        let untimed = (operations / WARM_UP).max(1);
        let mut randoms: Vec<_> = Draws::generators(self.drawn).take(part.threads).collect();
        if part.sets == 0 {
            let mut draw = |requests| -> Vec<Lookups<N>> {
                let randoms = randoms.iter_mut().enumerate();
                randoms.map(|(thread, random)| draws.lookups(thread, requests, random)).collect()
            };
            let (before, timed) = (draw(untimed), draw(operations));
            let ask = |thread: usize| {
                let keys: (&[Key<N>], &[Key<N>]) = (&before[thread].keys, &timed[thread].keys);
                contestant.get(thread, call, keys.0, keys.1)
            };
            let answers = in_parallel(part.threads, ask).map_err(core_error)?;
            Ok(answers
                .into_iter()
                .zip(&timed)
                .map(|(answer, timed)| (answer, timed.expected, operations))
                .collect())
        } else {
            let mut draw = |requests| -> Vec<Mixed<N>> {
                let randoms = randoms.iter_mut().enumerate();
                randoms.map(|(thread, random)| draws.requests(thread, requests, part.sets, random)).collect()
            };
            let (before, timed) = (draw(untimed), draw(operations));
            let ask = |thread: usize| {
                contestant.perform(thread, call, &before[thread].requests, &timed[thread].requests)
            };
            let answers = in_parallel(part.threads, ask).map_err(core_error)?;
            Ok(answers
                .into_iter()
                .zip(&timed)
                .map(|(answer, timed)| (answer, timed.expected, operations))
                .collect())
        }
    }

    /// What the machine can do, at each point, in each run: as the forms after the last one.
    fn measure_machine(&mut self) -> Result<Rates, ExperimentError> {
        let (parameters, mut rates) = (self.parameters, Rates::new());
        for (at, point) in parameters.points.iter().enumerate() {
            let regions = Regions::new(point.bytes, parameters.records)?;
            regions.touch();
            for run in 0..self.session.runs() {
                for (form, uniform) in [(0, true), (1, false)] {
                    let range = if uniform { parameters.records as u64 } else { point.range };
                    let draws = Draws::new(parameters.records as u64, range, uniform, 1)?;
                    self.drawn += 1;
                    for &threads in &self.threads {
                        let randoms: Vec<_> = Draws::generators(self.drawn).take(threads).collect();
                        let records: Vec<Vec<u32>> = randoms
                            .into_iter()
                            .map(|mut random| {
                                let draw = |_| draws.record(0, &mut random) as u32;
                                (0..parameters.operations).map(draw).collect()
                            })
                            .collect();
                        let times = in_parallel(threads, |thread| regions.read(&records[thread]))
                            .map_err(core_error)?;
                        let rate: f64 = times
                            .iter()
                            .map(|time| parameters.operations as f64 / time.as_secs_f64().max(1e-9))
                            .sum();
                        let part = Part { point: at, threads, sets: 0, run };
                        rates.insert((parameters.forms.len() + form, true, part), rate);
                        let name = self.point(part);
                        self.session.record(
                            MACHINE[form],
                            &name,
                            metric("lookups", true, 0),
                            "M/s",
                            rate / 1e6,
                        );
                    }
                }
            }
        }
        Ok(rates)
    }

    fn point(&self, part: Part) -> String {
        format!("{}, {}", self.parameters.points[part.point].name, name_threads(part.threads))
    }

    /// Records what was measured of an index, and what it is beside the index alone in the same run.
    fn record(&mut self, index: &str, rates: &Rates) {
        let forms = &self.parameters.forms;
        let alone = forms.iter().position(|&form| form == Form::Alone);
        for (&(number, batch, part), &rate) in rates.iter().filter(|((number, ..), _)| *number < forms.len())
        {
            let (name, point) = (configuration(index, forms[number]), self.point(part));
            let of = |what| metric(what, batch, part.sets);
            self.session.record(&name, &point, of("lookups"), "M/s", rate / 1e6);
            let beside = |number: Option<usize>, batch, sets| {
                rates.get(&(number?, batch, Part { sets, ..part })).copied()
            };
            if Some(number) != alone
                && let Some(times) = beside(alone, false, part.sets).map(|alone| rate / alone)
            {
                self.session.record(&name, &point, of("times alone"), "x", times);
                // What the mix must reach: the gain of lookups alone, less 15 %.
                if part.sets > 0
                    && let (Some(with), Some(without)) =
                        (beside(Some(number), batch, 0), beside(alone, false, 0))
                {
                    let asked = 1.0 + 0.85 * (with / without - 1.0);
                    self.session.record(
                        &name,
                        &point,
                        of("times alone, of 85 % of the gain"),
                        "x",
                        times / asked,
                    );
                }
            }
            for (machine, form) in MACHINE.iter().zip(forms.len()..) {
                if let Some(limit) = beside(Some(form), true, 0).filter(|_| batch && part.sets == 0) {
                    self.session.record(&name, &point, format!("share of {machine}"), "x", rate / limit);
                }
            }
        }
    }
}

/// An index in a form, in words: a configuration in results.
pub(crate) fn configuration(index: &str, form: Form) -> String {
    format!("{index}, {}", form.name())
}

fn metric(what: &str, batch: bool, sets: u32) -> String {
    let call = if batch { " in batches" } else { "" };
    let mix = if sets == 0 { String::new() } else { format!(", {sets} % SET") };
    format!("{what}{call}{mix}")
}

fn core_error(error: CoreError) -> ExperimentError {
    ExperimentError::Machine(error.to_string())
}
