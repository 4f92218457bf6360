//! Which core servers and client get.
//!
//! Servers on the first core, the client on the second: neither takes time from the other, and the scheduler moves
//! nobody. A machine with one core can only let them share it, and numbers from there would not mean the same, so it
//! measures nothing.

use crate::experiment::{ExperimentError, Session};
use crate::measure;

/// The cores of an experiment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores {
    pub(super) server: usize,
    pub(super) client: usize,
}

impl Cores {
    /// The first core that this program may use and the second; or none, and all of `names` are skipped.
    pub(super) fn find<'n>(
        session: &mut Session,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<Option<Cores>, ExperimentError> {
        let cores = measure::cores()?;
        match cores[..] {
            [server, client, ..] => Ok(Some(Cores { server, client })),
            _ => {
                names.for_each(|name| session.skip(name, "server and client need a core each"));
                Ok(None)
            }
        }
    }
}
