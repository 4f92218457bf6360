//! Kind `art-slb`: the tree with everything that makes its lookups cheap, each alone and all together: a lookaside
//! table in front, huge pages, reorganisation; beside other indexes.
//!
//! All contestants are in memory at once, filled with the same records, and warmed with the same draws; those that
//! learn take note of them, and are laid out anew before anything is timed. Then they take turns, run by run, each
//! asked for the same records, which are not those that warmed it, and others one at a time than in batches. A ratio is
//! of one run, to the first contestant asked one key at a time.
//!
//! What a tree behind a table learns is what the table misses: the keys that the table holds need no paths.

use serde::Deserialize;

use crate::experiment::{ExperimentError, Session, expect};
use crate::lookaside::draws::{Draws, Lookups};
use crate::lookaside::form::{Form, configuration};
use crate::lookaside::lookups::Missing;
use crate::lookaside::radix_tree::learning_entrants;
use crate::lookaside::{Call, Contestant, Entrant, fill, own_entrants};
use crate::measure::{Resident, in_parallel, turns};

/// What the definitions of this kind say.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Who takes part; others are compared with the first.
    contestants: Vec<Chosen>,
    /// Records in each index, of 24-byte keys and 64-byte values. Any of them is asked for.
    records: usize,
    /// Bytes of the tables in front.
    bytes: usize,
    /// Draws that warm the tables, and are learnt from.
    warm_up: usize,
    /// Lookups in a run.
    operations: usize,
}

/// An index, alone or with a table in front.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chosen {
    index: String,
    form: Form,
}

/// An index that takes part.
struct Member {
    name: String,
    /// Whether it is another one for what it has been asked.
    is_warmed: bool,
    contestant: Box<dyn Contestant<24>>,
}

/// Keys drawn at once while warming up: [`Contestant::note`] is called after each.
const AT_ONCE: usize = 1 << 20;
/// The share of what is timed that goes before it.
const WARM_UP: usize = 10;

/// The kind, with the indexes of this crate.
pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    run_with(parameters, session, own_entrants(), &[])
}

/// The kind, with these indexes. Those that are missing are left out, and the results say so.
///
/// # Errors
/// [`ExperimentError`]: an index that there is not, a machine that is too small, or a wrong answer.
pub fn run_with(
    parameters: &Parameters,
    session: &mut Session,
    mut entrants: Vec<Entrant<24>>,
    missing: &[Missing],
) -> Result<(), ExperimentError> {
    entrants.extend(learning_entrants());
    let runs = session.runs();
    session.announce(parameters.contestants.len() + 1 + runs);
    let mut members = Vec::new();
    for chosen in &parameters.contestants {
        let name = configuration(&chosen.index, chosen.form);
        session.begin(format!("filling {name}"));
        match missing.iter().find(|missing| missing.name == chosen.index) {
            Some(missing) => session.skip(&name, missing.why),
            None => members.push(make(parameters, chosen, name, &entrants, session)?),
        }
        session.end();
    }
    let records = parameters.records as u64;
    let draws = Draws::new(records, records, false, 1)?;
    session.begin("warming up");
    warm(parameters, &members, &draws);
    session.end();
    for run in 0..runs {
        session.begin(format!("run {} of {runs}", run + 1));
        measure(parameters, &members, &draws, run, session)?;
        session.end();
    }
    Ok(())
}

/// Makes and fills an index.
fn make(
    parameters: &Parameters,
    chosen: &Chosen,
    name: String,
    entrants: &[Entrant<24>],
    session: &mut Session,
) -> Result<Member, ExperimentError> {
    let Parameters { records, bytes, .. } = *parameters;
    let before = Resident::now();
    let entrant = entrants.iter().find(|entrant| entrant.name == chosen.index);
    let made = entrant.and_then(|entrant| chosen.form.make(entrant, records, bytes));
    let made = made.ok_or_else(|| ExperimentError::machine(format!("there is no '{name}'")))?;
    let contestant = made.map_err(ExperimentError::Machine)?;
    fill(&*contestant, 0, 0..records as u64);
    let grown = Resident::now().since(before);
    session.record_pages(&name, grown.pages());
    session.record(&name, "", "memory per record", "B", grown.bytes as f64 / records as f64);
    let learns = learning_entrants::<24>().iter().any(|entrant| entrant.name == chosen.index);
    Ok(Member { name, is_warmed: learns || chosen.form != Form::Alone, contestant })
}

/// Warms all tables with the same draws, and lays out what learns from them.
fn warm(parameters: &Parameters, members: &[Member], draws: &Draws) {
    let mut random = Draws::generators(1).next().expect("streams have no end");
    let mut left = parameters.warm_up;
    while left > 0 {
        let lookups: Lookups<24> = draws.lookups(0, left.min(AT_ONCE), &mut random);
        left -= lookups.keys.len();
        for Member { contestant, .. } in members.iter().filter(|member| member.is_warmed) {
            contestant.get(0, Call::Single, &lookups.keys, &[]);
            contestant.note();
        }
    }
    members.iter().for_each(|member| member.contestant.settle());
}

/// One run: everybody, one key at a time and in batches.
fn measure(
    parameters: &Parameters,
    members: &[Member],
    draws: &Draws,
    run: usize,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    let mut random = Draws::generators(2 + run as u64).next().expect("streams have no end");
    let mut draw = |lookups: usize| -> Lookups<24> { draws.lookups(0, lookups, &mut random) };
    let before = draw((parameters.operations / WARM_UP).max(1));
    // One set for each call: a table would know what it has just been asked for.
    let timed = [draw(parameters.operations), draw(parameters.operations)];
    let calls: Vec<(usize, Call)> = (0..members.len())
        .flat_map(|member| [Call::Single, Call::Batch].map(|call| (member, call)))
        .filter(|&(member, call)| call == Call::Single || members[member].contestant.has_batches())
        .collect();
    let mut rates = vec![0.0; calls.len()];
    for turn in turns(calls.len(), run) {
        let (member, call) = calls[turn];
        let Member { name, contestant, .. } = &members[member];
        let timed = &timed[usize::from(call == Call::Batch)];
        let counted = contestant.counts();
        let ask = |thread| contestant.get(thread, call, &before.keys, &timed.keys);
        let answer = in_parallel(1, ask)?[0];
        expect(name, answer.tally, timed.expected)?;
        rates[turn] = timed.keys.len() as f64 / answer.time.as_secs_f64().max(1e-9);
        if let (Some(before), Some(after), Call::Single) = (counted, contestant.counts(), call) {
            let hits = (after.hits - before.hits) as f64;
            let asked = hits + (after.misses - before.misses) as f64;
            session.record(name, "", "hit ratio", "%", 100.0 * hits / asked.max(1.0));
        }
    }
    for (&(member, call), &rate) in calls.iter().zip(&rates) {
        let name = &members[member].name;
        let (lookups, times) = match call {
            Call::Single => ("lookups", "times the first"),
            Call::Batch => ("lookups in batches", "times the first, in batches"),
        };
        session.record(name, "", lookups, "M/s", rate / 1e6);
        session.record(name, "", times, "x", rate / rates[0]);
    }
    Ok(())
}
