//! The addresses of real lookups, fed to a simulated machine.
//!
//! A tree is asked as ever; the probe tells the machine every piece of memory that a lookup reads, line by line, in
//! order. First come lookups that warm its TLBs and caches and are not counted.
//!
//! What is not fed: a program's other accesses, to its stack, its code and the array of keys that it asks for. They
//! nearly always hit the first TLB and the first cache, so they belong to the paper's visits, and to its misses hardly.

use art::{PageKind, Probe};
use serde::Deserialize;
use sim::{AccessKind, Machine, PageSize, Profile, Since, Statistics};

use super::draws::{Asked, Draws};
use super::grown::{Grown, Pages, sum};
use crate::experiment::{ExperimentError, Session, expect};

/// What is simulated.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Simulation {
    /// Machines, by the name of their profile.
    machines: Vec<String>,
    /// Lookups before anything is counted.
    warm_up: usize,
    /// Lookups that are counted.
    lookups: usize,
}

/// The machines, and the lookups that they are shown.
pub(crate) struct Observers<const N: usize> {
    profiles: Vec<(String, Profile)>,
    warm_up: Asked<N>,
    counted: Asked<N>,
}

/// What a machine saw of one tree.
pub(crate) struct Observed {
    /// The machine, in words.
    pub(crate) machine: String,
    pub(crate) statistics: Statistics,
    pub(crate) lookups: u64,
}

impl<const N: usize> Observers<N> {
    pub(crate) fn new(simulation: &Simulation, draws: &mut Draws<'_, N>) -> Result<Self, ExperimentError> {
        let profile = |name: &String| {
            let profile = Profile::named(name)
                .ok_or_else(|| ExperimentError::machine(format!("no machine '{name}'")))?;
            Ok((words(name), profile))
        };
        Ok(Observers {
            profiles: simulation.machines.iter().map(profile).collect::<Result<_, ExperimentError>>()?,
            warm_up: draws.next(simulation.warm_up),
            counted: draws.next(simulation.lookups),
        })
    }

    /// Shows the lookups to each machine, the tree's memory in pages of this kind, whichever the kernel gave.
    pub(crate) fn observe(&self, grown: &Grown<N>, pages: Pages) -> Result<Vec<Observed>, ExperimentError> {
        let observe = |(machine, profile): &(String, Profile)| {
            let mut simulated = Machine::new(profile)?;
            for region in grown.tree().regions() {
                let begin = region.as_ptr().addr() as u64;
                simulated.use_pages(begin..begin + region.len() as u64, page_size(pages));
            }
            show(grown, &mut simulated, &self.warm_up)?;
            let warm = simulated.statistics();
            show(grown, &mut simulated, &self.counted)?;
            let statistics = simulated.statistics().since(&warm);
            let lookups = self.counted.keys.len() as u64;
            Ok(Observed { machine: machine.clone(), statistics, lookups })
        };
        self.profiles.iter().map(observe).collect()
    }
}

impl Observed {
    /// Records the rows of Tables 2 and 3, and the cycles that accesses would take one after the other.
    pub(crate) fn record(&self, configuration: &str, point: &str, session: &mut Session) {
        let each = self.statistics.per_lookup(self.lookups);
        let accesses = &self.statistics.accesses;
        let cycles =
            (accesses.translation_cycles + accesses.cache_cycles) as f64 / self.lookups.max(1) as f64;
        for (metric, value) in [
            ("TLB visits", each.tlb_visits),
            ("TLB misses", each.tlb_misses),
            ("L1 misses", each.l1_misses),
            ("L2 misses", each.l2_misses),
            ("L3 misses", each.l3_misses),
            ("memory cycles", cycles),
        ] {
            session.record(configuration, point, format!("{}: {metric}", self.machine), "per lookup", value);
        }
    }
}

/// A probe that tells a machine.
struct Feed<'m>(&'m mut Machine);

impl Probe for Feed<'_> {
    fn touch(&mut self, address: usize, bytes: usize) {
        self.0.access_bytes(address as u64, bytes as u64, AccessKind::Load, |_| ());
    }
}

fn show<const N: usize>(
    grown: &Grown<N>,
    machine: &mut Machine,
    asked: &Asked<N>,
) -> Result<(), ExperimentError> {
    let reader = grown.tree().pin();
    let mut feed = Feed(machine);
    let found = sum(asked.keys.iter().map(|key| reader.get_watched(key, &mut feed)));
    expect("a tree that is watched", found, asked.expected)
}

fn page_size(Pages(kind): Pages) -> PageSize {
    match kind {
        PageKind::Base => PageSize::Small,
        PageKind::Transparent | PageKind::Huge2M => PageSize::Large,
        PageKind::Huge1G => PageSize::Giant,
    }
}

fn words(profile: &str) -> String {
    match profile {
        "sandy_bridge" => "Sandy Bridge".into(),
        other => other.replace('_', " "),
    }
}
