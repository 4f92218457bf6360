//! Kind `art-memory`: what nodes and leaves occupy, by the number of keys (the paper's Table 4).
//!
//! Bytes are counted by the tree as it gives places out, so one run tells all. The tree is that of one owner, which
//! gives back at once what a growing node leaves behind; the shared form has the same nodes, and for a while some that
//! wait. The paper's sizes fit 1,040 bytes for a node of 256 and 16 for each key beside, so its leaves seem to be among
//! them. Ours are told without leaves and with them.

use art::{Memory, OwnedTree};
use serde::Deserialize;

use super::Size;
use super::grown::order_of_insertion;
use super::keys::KeySet;
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Numbers of keys.
    sizes: Vec<Size>,
    /// Which keys, of 32 bits.
    sets: Vec<KeySet>,
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    session.announce(parameters.sizes.len() * parameters.sets.len());
    for size in &parameters.sizes {
        for set in &parameters.sets {
            let (name, point) = (set.name(), &size.name);
            session.begin(format!("{name}, {point}"));
            let memory = occupied(&set.keys(size.keys)?)?;
            let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
            let nodes = memory.node_bytes();
            session.record(name, point, "nodes", "MiB", mib(nodes));
            session.record(name, point, "nodes and leaves", "MiB", mib(nodes + memory.leaf_bytes));
            session.record(name, point, "bytes of pages", "MiB", mib(memory.begun_bytes));
            session.record(name, point, "node bytes per key", "B", nodes as f64 / size.keys as f64);
            for nodes in &memory.nodes {
                session.record(name, point, format!("{:?}", nodes.kind), "nodes", nodes.count as f64);
            }
            session.end();
        }
    }
    Ok(())
}

/// What a tree with these keys occupies.
pub(super) fn occupied(keys: &[[u8; 4]]) -> Result<Memory, ExperimentError> {
    let mut tree = OwnedTree::<[u8; 4], u32>::new()?;
    for record in order_of_insertion(keys.len())? {
        tree.insert(&keys[record], record as u32)?;
    }
    let memory = tree.memory();
    if (tree.len(), memory.leaves) == (keys.len(), keys.len()) {
        return Ok(memory);
    }
    let found = format!("{} entries and {} leaves of {} keys", tree.len(), memory.leaves, keys.len());
    Err(ExperimentError::wrong("a tree", found))
}
