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
//! What a ratio says is what putting a table in front is worth, batches included; or, with `beside_the_first`, what
//! one is of the first that is named, asked one key at a time.
//!
//! An index that learns (our tree, reorganised) is warmed too, and laid out by what it was asked for before anything is
//! timed. What one behind a table learns is what the table misses: the keys that the table holds need no paths.

use super::contestant::{Contestant, Partitioned, fill};
use super::draws::{Drawn, Draws, Mix};
use super::entrant::{Entrant, Made};
use super::entrants::own_entrants;
use super::form::{Form, configuration};
use super::machine_limit::Regions;
use super::parameters::{Chosen, Place};
use super::rates::{MACHINE, Part, Rates, Runner};
use super::visit::Lot;
use crate::experiment::{ExperimentError, Session, expect};
use crate::measure::{Resident, in_parallel, name_threads, release_freed_memory, turns};
use crate::subject::Call;

pub use super::parameters::Parameters;

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
    if parameters.partitioned && parameters.threads.len() != 1 {
        return Err(ExperimentError::machine("partitions are for one number of threads"));
    }
    let threads = session.threads(&parameters.threads)?;
    let experiment = Experiment { parameters, session, threads, drawn: 0 };
    match parameters.key_bytes {
        8 => experiment.run(&short, missing),
        24 => experiment.run(&long, missing),
        other => {
            Err(ExperimentError::machine(format!("keys of {other} bytes: there are keys of 8 and of 24")))
        }
    }
}

/// What stands there.
struct Standing<'e, const N: usize> {
    place: Place<'e, N>,
    contestant: Box<dyn Contestant<N>>,
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
/// Keys drawn at once while warming up: [`Contestant::note`] is called after each.
const AT_ONCE: usize = 1 << 20;

impl Experiment<'_> {
    fn partitions(&self) -> usize {
        if self.parameters.partitioned { self.parameters.threads[0] } else { 1 }
    }

    fn run<const N: usize>(
        mut self,
        entrants: &[Entrant<N>],
        missing: &[Missing],
    ) -> Result<(), ExperimentError> {
        let parameters = self.parameters;
        let chosen = parameters.chosen();
        let mut places: Vec<Place<'_, N>> = Vec::new();
        for Chosen { index, form } in &chosen {
            let name = configuration(index, *form);
            if let Some(Missing { why, .. }) = missing.iter().find(|missing| missing.name == index) {
                self.session.skip(&name, *why);
            } else if self.threads.is_empty() {
                let fewest = name_threads(parameters.threads.iter().copied().min().unwrap_or_default());
                let why = format!("it is measured with {fewest}, and this program may not use as many cores");
                self.session.skip(&name, why);
            } else if let Some(entrant) = entrants.iter().find(|entrant| entrant.name == index) {
                places.push(Place { number: places.len(), index, entrant, form: *form });
            } else {
                let known: Vec<_> = entrants.iter().map(|entrant| entrant.name).collect();
                let known = known.join(", ");
                return Err(ExperimentError::machine(format!("no index '{index}': there are {known}")));
            }
        }
        // Those that are in memory at once, and those of one index, whose rows are recorded together.
        let together = |one: &Place<'_, N>, other: &Place<'_, N>| {
            parameters.side_by_side || (parameters.together && one.index == other.index)
        };
        let groups = places.chunk_by(together).count();
        self.session.announce(groups * (1 + parameters.points.len() * (1 + self.session.runs())));
        let mut rates = Rates::default();
        let compared = |one: &Place<'_, N>, other: &Place<'_, N>| {
            parameters.beside_the_first || one.index == other.index
        };
        for group in places.chunk_by(|one, other| together(one, other) || compared(one, other)) {
            for group in group.chunk_by(together) {
                self.measure_group(group, &mut rates)?;
            }
            for group in group.chunk_by(compared) {
                rates.record(group, parameters, self.session);
            }
        }
        Ok(())
    }

    /// Makes and fills a contestant.
    fn make<const N: usize>(
        &mut self,
        place: Place<'_, N>,
    ) -> Result<Option<Box<dyn Contestant<N>>>, ExperimentError> {
        let (records, partitions) = (self.parameters.records, self.partitions());
        let bytes = self.parameters.points[0].bytes / partitions;
        let share = records.div_ceil(partitions);
        let before = Resident::now();
        let made = (0..partitions).map(|_| place.form.make(place.entrant, share, bytes));
        let Some(made) = made.collect::<Option<Vec<Made<N>>>>() else { return Ok(None) };
        let mut parts = made.into_iter().collect::<Result<Vec<_>, _>>().map_err(ExperimentError::Machine)?;
        let contestant = if partitions == 1 { parts.remove(0) } else { Box::new(Partitioned(parts)) };
        self.in_each_partition(|thread| {
            fill(&*contestant, thread, (thread as u64..records as u64).step_by(partitions));
        })?;
        let grown = Resident::now().since(before);
        let pages = match place.form {
            Form::Alone => grown.pages(),
            // Nothing lies in it yet, and each point has another.
            _ => format!("{}; the table has large ones where the system gives any", grown.pages()),
        };
        self.session.record_pages(&place.name(), pages);
        let bytes = grown.bytes as f64 / records as f64;
        self.session.record(&place.name(), "", "memory per record", "B", bytes);
        Ok(Some(contestant))
    }

    fn measure_group<const N: usize>(
        &mut self,
        group: &[Place<'_, N>],
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let parameters = self.parameters;
        let mut names: Vec<_> = group.iter().map(|place| place.index).collect();
        names.dedup();
        let names = names.join(", ");
        self.session.begin(format!("filling {names}"));
        release_freed_memory();
        let mut standing = Vec::new();
        for &place in group {
            if let Some(contestant) = self.make(place)? {
                standing.push(Standing { place, contestant });
            }
        }
        self.session.end();
        let records = parameters.records as u64;
        for (at, point) in parameters.points.iter().enumerate() {
            let draws = Draws::new(records, point.range, parameters.uniform, self.partitions())?;
            self.session.begin(format!("{names}: warming up for {}", point.name));
            self.warm(&mut standing, &draws, point.bytes)?;
            let machine = if parameters.machine {
                let limits =
                    [Draws::new(records, records, true, 1)?, Draws::new(records, point.range, false, 1)?];
                Some((Regions::new(point.bytes, parameters.records)?, limits))
            } else {
                None
            };
            self.session.end();
            for run in 0..self.session.runs() {
                self.session.begin(format!("{names}: {}", point.name));
                for &threads in &self.threads.clone() {
                    for mix in parameters.mixes() {
                        self.measure_part(&standing, &draws, Part { point: at, threads, mix, run }, rates)?;
                    }
                    if let Some((regions, limits)) = &machine {
                        let part = Part { point: at, threads, mix: Mix::Lookups, run };
                        self.measure_machine(regions, limits, part, rates)?;
                    }
                }
                self.session.end();
            }
        }
        Ok(())
    }

    /// Empties all tables and warms them with the same draws; lays out what learns from them.
    fn warm<const N: usize>(
        &mut self,
        standing: &mut [Standing<'_, N>],
        draws: &Draws,
        bytes: usize,
    ) -> Result<(), ExperimentError> {
        for Standing { contestant, .. } in &mut *standing {
            contestant.resize(bytes)?;
        }
        // Any other index alone has nothing to warm but the processor's caches.
        let warmed = |it: &&Standing<'_, N>| it.place.form != Form::Alone || it.contestant.abilities().learns;
        let warmed: Vec<&dyn Contestant<N>> =
            standing.iter().filter(warmed).map(|standing| &*standing.contestant).collect();
        self.drawn += 1;
        if warmed.is_empty() {
            return Ok(());
        }
        let randoms: Vec<_> = Draws::generators(self.drawn).take(self.partitions()).collect();
        self.in_each_partition(|thread| {
            let mut random = randoms[thread].clone();
            let mut left = self.parameters.warm_up / self.partitions();
            while left > 0 {
                let drawn: Drawn<N> = draws.draw(thread, left.min(AT_ONCE), Mix::Lookups, &mut random);
                left -= left.min(AT_ONCE);
                for contestant in &warmed {
                    contestant.ask(thread, Call::Single, [drawn.lot(), Lot::Keys(&[])]);
                    contestant.note();
                }
            }
        })?;
        warmed.iter().for_each(|contestant| contestant.settle());
        Ok(())
    }

    /// Does `work` for each partition, at the same time if there are several: on a thread that is pinned to a core, as
    /// those that are measured are. Its records then lie where the allocator serves such threads. What is not
    /// partitioned is filled and warmed where it was made.
    fn in_each_partition(&self, work: impl Fn(usize) + Sync) -> Result<(), ExperimentError> {
        match self.partitions() {
            1 => work(0),
            partitions => drop(in_parallel(partitions, work)?),
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
        let calls = standing.iter().flat_map(|standing| {
            let in_batches = standing.contestant.abilities().batches && !matches!(part.mix, Mix::Renewals(_));
            Call::BOTH.into_iter().take(1 + usize::from(in_batches)).map(move |call| (standing, call))
        });
        let able = |(Standing { contestant, .. }, _): &(&Standing<'_, N>, Call)| {
            let abilities = contestant.abilities();
            let writes = !matches!(part.mix, Mix::Sets(_)) || abilities.shared_writes;
            part.threads == 1 || (writes && (self.parameters.partitioned || abilities.shared_reads))
        };
        let (calls, unable): (Vec<_>, Vec<_>) = calls.partition(able);
        // A table goes on learning from what is timed. One that is for a single owner is asked for as much by one
        // thread as the others are by several: all have met as many draws when they are compared.
        for (standing, call) in unable.into_iter().filter(|_| part.mix == Mix::Lookups) {
            for _ in 0..if standing.contestant.counts().is_some() { part.threads } else { 0 } {
                self.ask(standing, call, draws, Part { threads: 1, ..part })?;
            }
        }
        for turn in turns(calls.len(), part.run) {
            let (standing @ Standing { place, contestant }, call) = calls[turn];
            let (name, point) = (place.name(), part.name(self.parameters));
            let before = contestant.counts();
            let rate = self.ask(standing, call, draws, part)?;
            rates.insert(Runner::Place(place.number), call, part, rate);
            if let (Some(before), Some(after), Call::Single, Mix::Lookups) =
                (before, contestant.counts(), call, part.mix)
            {
                let asked = (after.hits + after.misses) - (before.hits + before.misses);
                if asked > 0 {
                    let ratio = (after.hits - before.hits) as f64 / asked as f64;
                    self.session.record(&name, &point, "hit ratio", "%", 100.0 * ratio);
                }
            }
            if place.form == Form::SlbMonitored
                && let Some((_, verdict)) = contestant.told()
            {
                let on = if call == Call::Batch { verdict.on_in_batches } else { verdict.on };
                let metric = part.mix.metric("table on", call);
                self.session.record(&name, &point, metric, "", f64::from(u8::from(on)));
            }
        }
        Ok(())
    }

    /// Asks one contestant, called so, with draws of its own: the requests a second of all threads.
    fn ask<const N: usize>(
        &mut self,
        Standing { place, contestant }: &Standing<'_, N>,
        call: Call,
        draws: &Draws,
        part: Part,
    ) -> Result<f64, ExperimentError> {
        let name = place.name();
        if matches!(part.mix, Mix::Renewals(_)) && !contestant.abilities().renews {
            return Err(ExperimentError::machine(format!("{name}: its values cannot be changed in place")));
        }
        self.drawn += 1;
        let operations = self.parameters.operations;
        let draw = |(thread, mut random)| {
            [(operations / WARM_UP).max(1), operations]
                .map(|count| draws.draw(thread, count, part.mix, &mut random))
        };
        let randoms = Draws::generators(self.drawn).take(part.threads).enumerate();
        let drawn: Vec<[Drawn<N>; 2]> = randoms.map(draw).collect();
        let ask = |thread: usize| contestant.ask(thread, call, drawn[thread].each_ref().map(Drawn::lot));
        let mut rate = 0.0;
        for (answer, [_, timed]) in in_parallel(part.threads, ask)?.into_iter().zip(&drawn) {
            expect(&name, answer.tally, timed.expected)?;
            rate += operations as f64 / answer.time.as_secs_f64().max(1e-9);
        }
        Ok(rate)
    }

    /// What the machine can do.
    fn measure_machine(
        &mut self,
        regions: &Regions,
        limits: &[Draws; 2],
        part: Part,
        rates: &mut Rates,
    ) -> Result<(), ExperimentError> {
        let operations = self.parameters.operations;
        for (at, (name, draws)) in MACHINE.iter().zip(limits).enumerate() {
            self.drawn += 1;
            let records: Vec<Vec<u32>> = Draws::generators(self.drawn)
                .take(part.threads)
                .map(|mut random| (0..operations).map(|_| draws.record(0, &mut random) as u32).collect())
                .collect();
            let times = in_parallel(part.threads, |thread| regions.read(&records[thread]))?;
            let rate: f64 = times.iter().map(|time| operations as f64 / time.as_secs_f64().max(1e-9)).sum();
            rates.insert(Runner::Machine(at), Call::Batch, part, rate);
            let metric = part.mix.metric("lookups", Call::Batch);
            self.session.record(name, &part.name(self.parameters), metric, "M/s", rate / 1e6);
        }
        Ok(())
    }
}
