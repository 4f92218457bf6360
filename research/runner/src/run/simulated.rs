//! Experiments of the simulator: all runs that they need, several at a time, then their numbers from what is kept.

use std::path::Path;

use lab::experiment::{Catalogue, Definition, Session};
use lab::machine::Provenance;
use lab::results::Results;
use lookaside_cli::output::tell;
use sim_lab::configuration::Guest;
use sim_lab::qemu::Qemu;
use sim_lab::store::Store;
use sim_lab::sweep::{Place, Swept};
use sim_lab::{Options, study};

use super::options::{Asked, Making, Ran};

/// Where finished runs are kept, beside results.
const STORE: &str = "simulations";

impl Making {
    fn options(&self) -> Result<Options, std::io::Error> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Options {
            guest: self.guest,
            scale: self.scale(),
            seeds: self.seeds.map(usize::from),
            jobs: self.jobs.map_or(processors, usize::from),
            place: Place::Program(std::env::current_exe()?),
        })
    }

    /// The folder of finished runs: the one that was named, or the repository's, or the current directory's outside of
    /// it.
    fn store(&self, catalogue: &Catalogue) -> Result<Store, Box<dyn std::error::Error>> {
        let folder = self.store.as_deref().map_or_else(|| catalogue.home().join(STORE), Path::to_owned);
        Ok(Store::open(&folder)?)
    }

    /// Who runs the programs of a definition. One that cannot be read has nobody: it says why itself, when it is its
    /// turn.
    fn guests(&self, definition: &Definition) -> Vec<Guest> {
        if !study::is(&definition.kind) {
            return Vec::new();
        }
        study::guests(definition, self.guest, self.scale()).unwrap_or_default()
    }

    /// Leaves out the definitions whose guests cannot run here, and says once, before anything runs, what is missing
    /// for them; whether all are left. Who is asked for may not matter: there are definitions that name their own
    /// guests.
    ///
    /// # Errors
    /// If none is left.
    pub(super) fn leave_out_impossible(
        &self,
        definitions: &mut Vec<Definition>,
    ) -> Result<bool, Box<dyn std::error::Error>> {
        if !definitions.iter().any(|definition| self.guests(definition).contains(&Guest::Qemu)) {
            return Ok(true);
        }
        let Err(missing) = Qemu::find() else { return Ok(true) };
        let needs_it = |definition: &Definition| {
            let guests = self.guests(definition);
            !guests.is_empty() && guests.iter().all(|&guest| guest == Guest::Qemu)
        };
        let left_out: Vec<Definition> =
            definitions.extract_if(.., |definition| needs_it(definition)).collect();
        if definitions.is_empty() {
            return Err(missing.into());
        }
        tell(format_args!("lookaside-lab: {missing}"));
        for definition in &left_out {
            tell(format_args!("lookaside-lab: without it, {} is left out", definition.name));
        }
        Ok(left_out.is_empty())
    }

    /// Why results do not go where the newest ones count, if they should not.
    fn objection(&self, definition: &Definition, results: &Results, swept: &Swept) -> Option<&'static str> {
        let own = study::guests(definition, Guest::default(), self.scale()).unwrap_or_default();
        if results.rows.is_empty() || !results.skipped.is_empty() || !swept.failed.is_empty() {
            Some("not all of it was measured")
        } else if self.guests(definition) != own {
            Some("the experiment's own guests are others")
        } else {
            None
        }
    }
}

pub(super) fn run(
    definition: &Definition,
    catalogue: &Catalogue,
    asked: &Asked,
) -> Result<Ran, Box<dyn std::error::Error>> {
    let making = &asked.making;
    if definition.heap.is_some() {
        let path = definition.path.display();
        return Err(format!(
            "{path}: 'heap' is for what is measured on this machine; a profile says the pages"
        )
        .into());
    }
    let provenance = Provenance::collect(catalogue.folder(), "system");
    let progress = Session::progress_bar(&definition.name);
    let (store, options) = (making.store(catalogue)?, making.options()?);
    let (results, swept) = study::results(definition, &store, &options, provenance, progress)?;
    let is_as_asked = match (&asked.out, making.objection(definition, &results, &swept)) {
        (Some(folder), _) => Asked::keep(&results, folder),
        // As its help says.
        (None, _) if making.quick => true,
        (None, None) => Asked::keep(&results, &catalogue.results_folder()),
        (None, Some(reason)) => {
            tell(format_args!("{}: not kept, {reason}: give --out to keep it", definition.name));
            true
        }
    };
    asked.show(definition, results, is_as_asked && swept.failed.is_empty())
}
