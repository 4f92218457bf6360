//! Kind `index-space`: how many keys a table takes before it first refuses one, how many bytes it needs for each, and
//! how fast it takes them (the paper's Table 2).
//!
//! One thread puts records into an empty table until one is refused. The chaining table never refuses; as in the paper
//! it is called full with 1.5 entries a bucket. The time includes the page faults of a table that nobody has touched
//! yet.

use serde::Deserialize;

use super::records::Records;
use super::tables::TableChoice;
use crate::experiment::{ExperimentError, Session, timed};
use crate::subject::Call;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Bytes of each table: see `tables`.
    bytes: usize,
    /// The tables; those with the call `batch` are filled by `insert_many`.
    tables: Vec<TableChoice>,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let Parameters { bytes, tables } = parameters;
    let capacity = |choice: &TableChoice| choice.table.capacity(*bytes);
    let most = tables.iter().map(capacity).max().unwrap_or(0);
    session.announce(session.runs() * tables.len());
    // One more than any table has room for.
    let records = Records::new(most + 1)?;
    session.take_turns(tables.len(), &[()], |session, table, (), _| {
        let choice = &tables[table];
        session.begin(choice.name.clone());
        let index = choice.table.make(*bytes, &records)?;
        let refuses = index.anatomy().load.is_some();
        let end = if refuses { records.len() } else { capacity(choice) } as u64;
        let fill = |_| match choice.call {
            Call::Single => index.insert_each(0..end),
            Call::Batch => index.insert_batched(0..end),
        };
        let (filling, seconds) = timed(1, fill)?[0];
        let anatomy = index.anatomy();
        if filling.refused != refuses || filling.inserted != anatomy.entries as u64 {
            return Err(ExperimentError::wrong(&choice.name, format!("{filling:?}, but {anatomy:?}")));
        }
        let keys = anatomy.entries as f64;
        let name = &choice.name;
        session.record(name, "", "keys", "M", keys / 1e6);
        session.record(name, "", "size", "MiB", anatomy.bytes as f64 / f64::from(1 << 20));
        session.record(name, "", "bytes per key", "B", anatomy.bytes as f64 / keys);
        session.record(name, "", "construction", "M keys/s", keys / seconds / 1e6);
        if let Some(load) = anatomy.load {
            session.record(name, "", "load factor", "%", 100.0 * load);
        }
        if let Some(fullest) = anatomy.fullest {
            session.record(name, "", "fullest bucket", "entries", fullest as f64);
        }
        session.record_pages(name, anatomy.pages);
        Ok(())
    })
}
