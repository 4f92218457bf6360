//! A recorded trace, or the generated one of its shape where it is not here.

use std::fmt;

use crate::data::DataError;
use crate::generated::PREFIX;
use crate::table::Table;
use crate::trace::{Choice, Trace, TraceError};

/// What stands in for data that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandIn {
    /// The generated trace's name.
    pub name: String,
    /// Why the recorded one is not taken.
    pub absent: DataError,
}

impl fmt::Display for StandIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "as recorded; {} is in its place ({})", self.name, self.absent)
    }
}

/// The recorded trace of this file, a path or one in the data folder, or else the generated one of its shape, and why;
/// or why there is neither.
///
/// # Errors
///
/// As [`Trace::find`].
pub fn recorded_or_generated(file: &str) -> Result<Result<(Trace, Option<StandIn>), DataError>, TraceError> {
    let absent = match Trace::find(file, &Choice::default()) {
        Err(TraceError::Absent { elsewhere, .. }) => elsewhere,
        found => return Ok(Ok((found?, None))),
    };
    let stand_in = in_place_of(file).and_then(|name| Some((Trace::generated(&name)?, name)));
    Ok(match stand_in {
        Some((trace, name)) => Ok((trace, Some(StandIn { name, absent }))),
        None => Err(absent),
    })
}

/// The generated trace in the place of the recorded one of this file, such as `traces/orm-busy.trace.xz`.
fn in_place_of(file: &str) -> Option<String> {
    let name = file.rsplit('/').next()?;
    let shape = match name.split('.').next()? {
        "fb_cdn_short_bigcache_traces" => "fb-cdn",
        stem => Table::names_with("class").find(|shape| *shape == stem)?,
    };
    Some(format!("{PREFIX}{shape}"))
}
