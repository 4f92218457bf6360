//! Experiments that are measured on this machine: the laboratory's, and those beside foreign engines.
//!
//! Where a definition, or whoever asks, wants other pages under the heap, this program is started anew for it: that is
//! said when a program starts, and at no other time.

use lab::allocator::{self, Flags};
use lab::experiment::{Catalogue, Definition, Scale, Session};
use lab::machine::Provenance;
use lab::results::Results;

use super::options::{Asked, Measuring, Ran};

pub(super) fn run(
    definition: &Definition,
    catalogue: &Catalogue,
    asked: &Asked,
    measuring: &Measuring,
) -> Result<Ran, Box<dyn std::error::Error>> {
    let scale = asked.making.scale();
    let kept = (scale == Scale::Full).then(|| catalogue.results_folder());
    let out = asked.out.clone().or(kept);
    let malloc = measuring.malloc.or(definition.heap);
    if let Some(malloc) = malloc.filter(|malloc| !malloc.is_here()) {
        let quick = scale == Scale::Quick;
        let flags = Flags { quick, runs: measuring.runs, out: out.as_deref(), json: asked.json };
        let ran = malloc.run_again(&["run"], &definition.path, &flags)?;
        // Of what it measured, it leaves what it keeps.
        let results = out.filter(|_| asked.html.is_some());
        let results = results.and_then(|folder| Results::newest(&folder, &definition.name).transpose());
        return Ok(Ran { all_met: ran.all_met, reports: ran.reports, results: results.transpose()? });
    }
    let runs = measuring.runs.map_or_else(|| definition.runs_for(scale), usize::from);
    let provenance = Provenance::collect(catalogue.folder(), &allocator::describe());
    let session = Session::new(runs, Session::progress_bar(&definition.name));
    let results = lookaside_peers::laboratory().run(definition, scale, provenance, session)?;
    let is_kept = out.is_none_or(|folder| Asked::keep(&results, &folder));
    asked.show(definition, results, is_kept)
}
