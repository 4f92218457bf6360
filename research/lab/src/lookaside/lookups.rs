//! Kind `slb-lookups`: indexes alone and with a table in front, asked for the same records.
//!
//! For each index, it alone and its forms with a table are made and filled, one beside the other. Then, at each point
//! (how many of the records are asked for, and how large the table is), the tables are emptied and warmed with the
//! same draws, and all take turns, run by run: each is asked for records drawn anew, and never for those that warmed
//! it. A table goes on learning from them, all tables as much: of ten million keys it answers a percent or two more
//! in the fifth run than in the first. A ratio is of one turn. Where not everything fits the memory at once
//! (`together = false`), one form after the other is made and measured. Where indexes are to be compared with each
//! other (`side_by_side = true`), all of them take turns: a machine that others share changes its speed from minute
//! to minute.
//!
//! Alone is the index as its users have it: its natural map with its usual hash, called directly, one key at a time.
//! What a ratio says is what putting a table in front is worth, batches included.

use serde::Deserialize;

use super::contestant::{Answer, Call, Contestant, Entrant, Made, Partitioned, fill};
use super::draws::{Draws, Lookups, Mixed};
use super::entrants::own_entrants;
use super::form::{Form, configuration};
use super::machine_limit::Regions;
use super::rates::{MACHINE, Mix, Part, Rates, Runner};
use super::record::Tally;
use crate::experiment::{ExperimentError, Session};
use crate::measure::{CoreError, Resident, cores, in_parallel, name_threads, release_freed_memory, turns};

/// What the definitions of this kind say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The indexes, by name.
    indexes: Vec<String>,
    /// What is measured of each.
    pub(super) forms: Vec<Form>,
    /// Records in each index.
    records: usize,
    /// Bytes of a key: 8 or 24. Values are of 64.
    #[serde(default = "long_keys")]
    key_bytes: usize,
    /// What is asked for, of which tables.
    pub(super) points: Vec<Point>,
    /// Draws that warm the tables at each point.
    warm_up: usize,
    /// Requests of one thread in one timed part; a tenth as many go before, untimed.
    operations: usize,
    /// Numbers of threads.
    threads: Vec<usize>,
    /// Writes in a hundred requests: each share is measured.
    #[serde(default = "only_lookups")]
    pub(super) sets: Vec<u32>,
    /// The same, of writes that change a value in its place: no entry comes or goes. One key at a time.
    #[serde(default)]
    pub(super) renewals: Vec<u32>,
    /// All records alike, instead of Zipfian.
    #[serde(default)]
    uniform: bool,
    /// An index for each thread, with its share of the records and of the table.
    #[serde(default)]
    partitioned: bool,
    /// All forms of an index at once in memory.
    #[serde(default = "yes")]
    together: bool,
    /// All forms of all indexes at once in memory.
    #[serde(default)]
    side_by_side: bool,
    /// Also measure, in each run, what the machine can do.
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
    pub(super) name: String,
    /// How many of the records are asked for.
    range: u64,
    /// Bytes of the table.
    bytes: usize,
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

/// The kind, with these indexes: for keys of 8 bytes, and of 24. Those that are missing are left out, and the results
/// say so.
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

/// A form of an index. Places are numbered index by index, and in each in the order of the definition's forms.
#[derive(Clone, Copy)]
struct Place<'e, const N: usize> {
    number: usize,
    entrant: &'e Entrant<N>,
    form: Form,
}

/// What stands there.
struct Standing<'e, const N: usize> {
    place: Place<'e, N>,
    contestant: Box<dyn Contestant<N>>,
}

/// What is read to see what the machine can do.
struct Machine {
    regions: Regions,
    /// As [`MACHINE`].
    draws: [Draws; 2],
}

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
                    // All its rows, for it is these that the definition promises.
                    for &form in &parameters.forms {
                        self.session.skip(&configuration(name, form), *why);
                    }
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
            let fewest = name_threads(parameters.threads.iter().copied().min().unwrap_or_default());
            for entrant in &chosen {
                for &form in &parameters.forms {
                    self.session.skip(
                        &configuration(entrant.name, form),
                        format!("it is measured with {fewest}, and this program may not use as many cores"),
                    );
                }
            }
            return Ok(());
        }
        let forms = parameters.forms.len();
        let places: Vec<Place<'_, N>> = chosen
            .iter()
            .flat_map(|&entrant| parameters.forms.iter().map(move |&form| (entrant, form)))
            .enumerate()
            .map(|(number, (entrant, form))| Place { number, entrant, form })
            .collect();
        let together = match (parameters.side_by_side, parameters.together) {
            (true, _) => places.len().max(1),
            (false, true) => forms,
            (false, false) => 1,
        };
        let groups = places.chunks(together);
        self.session.announce(groups.len() * (1 + parameters.points.len() * (1 + self.session.runs())));
        let mut rates = Rates::default();
        for group in groups {
            self.measure_group(group, &mut rates)?;
            for last in group.iter().filter(|place| place.number % forms == forms - 1) {
                let first = last.number + 1 - forms;
                rates.record(last.entrant.name, first, parameters, self.session);
            }
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
        self.in_each_partition(|thread| {
            fill(&*contestant, thread, (thread as u64..records as u64).step_by(partitions));
        })?;
        let grown = Resident::now().since(before);
        let name = configuration(entrant.name, form);
        let pages = match form {
            Form::Alone => grown.pages(),
            // Nothing lies in it yet, and each point has another.
            _ => format!("{}; the table has large ones where the system gives any", grown.pages()),
        };
        self.session.record_pages(&name, pages);
        self.session.record(&name, "", "memory per record", "B", grown.bytes as f64 / records as f64);
        Ok(Some(contestant))
    }

    fn measure_group<const N: usize>(
        &mut self,
        group: &[Place<'_, N>],
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let parameters = self.parameters;
        let mut names: Vec<_> = group.iter().map(|place| place.entrant.name).collect();
        names.dedup();
        let names = names.join(", ");
        self.session.begin(format!("filling {names}"));
        release_freed_memory();
        let mut standing = Vec::new();
        for &place in group {
            if let Some(contestant) = self.make(place.entrant, place.form)? {
                standing.push(Standing { place, contestant });
            }
        }
        self.session.end();
        for (at, point) in parameters.points.iter().enumerate() {
            let draws =
                Draws::new(parameters.records as u64, point.range, parameters.uniform, self.partitions())?;
            self.session.begin(format!("{names}: warming up for {}", point.name));
            self.warm(&mut standing, &draws, point.bytes)?;
            let machine = if parameters.machine { Some(self.machine(point)?) } else { None };
            self.session.end();
            for run in 0..self.session.runs() {
                self.session.begin(format!("{names}: {}", point.name));
                for &threads in &self.threads.clone() {
                    for mix in Mix::all(parameters) {
                        let part = Part { point: at, threads, mix, run };
                        self.measure_part(&standing, &draws, part, rates)?;
                    }
                    if let Some(machine) = &machine {
                        self.measure_machine(
                            machine,
                            Part { point: at, threads, mix: Mix::Lookups, run },
                            rates,
                        )?;
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
        standing: &mut [Standing<'_, N>],
        draws: &Draws,
        bytes: usize,
    ) -> Result<(), ExperimentError> {
        for Standing { contestant, .. } in &mut *standing {
            contestant.resize(bytes).map_err(|error| ExperimentError::Machine(error.to_string()))?;
        }
        // An index alone has nothing to warm but the processor's caches.
        let with_tables = standing.iter().filter(|standing| standing.place.form != Form::Alone);
        let warmed: Vec<&dyn Contestant<N>> = with_tables.map(|standing| &*standing.contestant).collect();
        self.drawn += 1;
        if warmed.is_empty() {
            return Ok(());
        }
        let randoms: Vec<_> = Draws::generators(self.drawn).take(self.partitions()).collect();
        self.in_each_partition(|thread| {
            let mut random = randoms[thread].clone();
            let mut left = self.parameters.warm_up / self.partitions();
            while left > 0 {
                let lookups: Lookups<N> = draws.lookups(thread, left.min(AT_ONCE), &mut random);
                left -= lookups.keys.len();
                for contestant in &warmed {
                    contestant.get(thread, Call::Single, &lookups.keys, &[]);
                }
            }
        })
    }

    /// Does `work` for each partition, at the same time if there are several: on a thread that is pinned to a core, as
    /// those that are measured are. Its records then lie where the allocator serves such threads. What is not
    /// partitioned is filled and warmed where it was made.
    fn in_each_partition(&self, work: impl Fn(usize) + Sync) -> Result<(), ExperimentError> {
        match self.partitions() {
            1 => work(0),
            partitions => drop(in_parallel(partitions, work).map_err(core_error)?),
        }
        Ok(())
    }

    fn measure_part<const N: usize>(
        &mut self,
        standing: &[Standing<'_, N>],
        draws: &Draws,
        part: Part,
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let calls = standing.iter().flat_map(|Standing { place, contestant }| {
            let in_batches = contestant.has_batches() && !matches!(part.mix, Mix::Renewals(_));
            let calls: &[Call] = if in_batches { &[Call::Single, Call::Batch] } else { &[Call::Single] };
            calls.iter().map(move |&call| (place, call, &**contestant))
        });
        let able = |(_, _, contestant): &(&Place<'_, N>, Call, &dyn Contestant<N>)| {
            let writes = !matches!(part.mix, Mix::Sets(_)) || contestant.shares_writes();
            part.threads == 1 || (writes && (self.parameters.partitioned || contestant.shares_reads()))
        };
        let (calls, unable): (Vec<_>, Vec<_>) = calls.partition(able);
        if part.mix == Mix::Lookups {
            for (place, call, contestant) in unable {
                self.ask_untimed(place, contestant, call, draws, part)?;
            }
        }
        for turn in turns(calls.len(), part.run) {
            let (&Place { number, entrant, form }, call, contestant) = calls[turn];
            let name = configuration(entrant.name, form);
            let before = contestant.counts();
            let rate = self.ask(&name, contestant, call, draws, part)?;
            rates.insert(Runner::Place(number), call, part, rate);
            if let (Some(before), Some(after), Call::Single, Mix::Lookups) =
                (before, contestant.counts(), call, part.mix)
            {
                let asked = (after.hits + after.misses) - (before.hits + before.misses);
                if asked > 0 {
                    let ratio = (after.hits - before.hits) as f64 / asked as f64;
                    let point = part.name(self.parameters);
                    self.session.record(&name, &point, "hit ratio", "%", 100.0 * ratio);
                }
            }
            if form == Form::SlbMonitored
                && let Some(verdict) = contestant.verdict()
            {
                let metric = part.mix.metric("table on", call);
                let point = part.name(self.parameters);
                let on = if call == Call::Batch { verdict.on_in_batches } else { verdict.on };
                self.session.record(&name, &point, metric, "", f64::from(u8::from(on)));
            }
        }
        Ok(())
    }

    /// A table goes on learning from what is timed. One that is for a single owner is asked for as much by one thread
    /// as the others are by several: all have met as many draws when they are compared.
    fn ask_untimed<const N: usize>(
        &mut self,
        place: &Place<'_, N>,
        contestant: &dyn Contestant<N>,
        call: Call,
        draws: &Draws,
        part: Part,
    ) -> Result<(), ExperimentError> {
        if contestant.counts().is_some() {
            let name = configuration(place.entrant.name, place.form);
            for _ in 0..part.threads {
                self.ask(&name, contestant, call, draws, Part { threads: 1, ..part })?;
            }
        }
        Ok(())
    }

    /// Asks one contestant, called so, with draws of its own: the requests a second of all threads.
    fn ask<const N: usize>(
        &mut self,
        name: &str,
        contestant: &dyn Contestant<N>,
        call: Call,
        draws: &Draws,
        part: Part,
    ) -> Result<f64, ExperimentError> {
        self.drawn += 1;
        let operations = self.parameters.operations;
        let untimed = (operations / WARM_UP).max(1);
        let randoms = Draws::generators(self.drawn).take(part.threads).enumerate();
        let (answers, expected): (Vec<Option<Answer>>, Vec<Tally>) = if part.mix == Mix::Lookups {
            let drawn: Vec<(Lookups<N>, Lookups<N>)> = randoms
                .map(|(thread, mut random)| {
                    let mut draw = |lookups| draws.lookups(thread, lookups, &mut random);
                    (draw(untimed), draw(operations))
                })
                .collect();
            let ask = |thread: usize| {
                let (before, timed) = &drawn[thread];
                Some(contestant.get(thread, call, &before.keys, &timed.keys))
            };
            let answers = in_parallel(part.threads, ask).map_err(core_error)?;
            (answers, drawn.iter().map(|(_, timed)| timed.expected).collect())
        } else {
            let writes = part.mix.writes();
            let drawn: Vec<(Mixed<N>, Mixed<N>)> = randoms
                .map(|(thread, mut random)| {
                    let mut draw = |requests| draws.requests(thread, requests, writes, &mut random);
                    (draw(untimed), draw(operations))
                })
                .collect();
            let ask = |thread: usize| {
                let (before, timed) = &drawn[thread];
                match part.mix {
                    Mix::Renewals(_) => contestant.renew(thread, &before.requests, &timed.requests),
                    _ => Some(contestant.perform(thread, call, &before.requests, &timed.requests)),
                }
            };
            let answers = in_parallel(part.threads, ask).map_err(core_error)?;
            (answers, drawn.iter().map(|(_, timed)| timed.expected).collect())
        };
        let mut rate = 0.0;
        for (answer, expected) in answers.into_iter().zip(expected) {
            let answer = answer.ok_or_else(|| {
                ExperimentError::Machine("values cannot be changed in place in one of these forms".into())
            })?;
            if answer.tally != expected {
                let found = format!("{:?} instead of {expected:?}", answer.tally);
                return Err(ExperimentError::WrongAnswer { what: name.into(), found });
            }
            rate += operations as f64 / answer.time.as_secs_f64().max(1e-9);
        }
        Ok(rate)
    }

    /// Regions of the sizes of a point's, and what is read of them.
    fn machine(&self, point: &Point) -> Result<Machine, ExperimentError> {
        let records = self.parameters.records;
        let regions = Regions::new(point.bytes, records)?;
        regions.touch();
        let draws = |range, uniform| Draws::new(records as u64, range, uniform, 1);
        Ok(Machine { regions, draws: [draws(records as u64, true)?, draws(point.range, false)?] })
    }

    /// What the machine can do.
    fn measure_machine(
        &mut self,
        machine: &Machine,
        part: Part,
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let operations = self.parameters.operations;
        for (at, (name, draws)) in MACHINE.iter().zip(&machine.draws).enumerate() {
            self.drawn += 1;
            let records: Vec<Vec<u32>> = Draws::generators(self.drawn)
                .take(part.threads)
                .map(|mut random| (0..operations).map(|_| draws.record(0, &mut random) as u32).collect())
                .collect();
            let times = in_parallel(part.threads, |thread| machine.regions.read(&records[thread]))
                .map_err(core_error)?;
            let rate: f64 = times.iter().map(|time| operations as f64 / time.as_secs_f64().max(1e-9)).sum();
            rates.insert(Runner::Machine(at), Call::Batch, part, rate);
            let metric = part.mix.metric("lookups", Call::Batch);
            self.session.record(name, &part.name(self.parameters), metric, "M/s", rate / 1e6);
        }
        Ok(())
    }
}

fn core_error(error: CoreError) -> ExperimentError {
    ExperimentError::Machine(error.to_string())
}
