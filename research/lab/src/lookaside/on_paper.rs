//! Kind `slb-on-paper`: Figure 9 of the SLB paper at a size that does not fit this machine, by arithmetic.
//!
//! A lookup with a table in front takes the time of a hit, or that of a miss and of the index:
//!
//! ```text
//!   t = r h + (1 - r) (m + C)
//!   r   the share of the requests that go to as many records as the table holds, and of that
//!       what a table keeps of an ideal one's
//!   h   a hit: table, entry
//!   m   what a miss takes in the table: looking, and entering
//!   C   the index alone
//! ```
//!
//! `r` follows from the distribution. The times are another experiment's, measured at the largest size that fits, which
//! the definition names; that the index takes no longer at ten times its size flatters the index. Nothing is run, and
//! so nothing is claimed but what follows from this.

use lookaside::{Config, Slb};
use serde::Deserialize;

use super::warm_up::steady;
use crate::experiment::{ExperimentError, Session};

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// The index's name in the results.
    index: String,
    /// Records in the index.
    records: u64,
    /// Bytes of memory for each, with a table in front: measured where it fits.
    record_bytes: f64,
    /// What is asked for, of which tables.
    points: Vec<Point>,
    /// What a table keeps of the hits of an ideal one with as many entries: 0 to 1.
    kept: f64,
    /// A hit, in nanoseconds.
    hit_nanoseconds: f64,
    /// A miss, in nanoseconds, without what the index takes.
    miss_nanoseconds: f64,
}

/// A place on the figure's axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    name: String,
    /// Records that are asked for.
    range: u64,
    /// Bytes of the table.
    bytes: usize,
    /// A lookup in the index alone, in nanoseconds.
    alone_nanoseconds: f64,
}

/// The arithmetic: what the table answers of all requests, and how long a lookup takes with it, in nanoseconds.
fn with_table(parameters: &Parameters, point: &Point, capacity: usize) -> (f64, f64) {
    let Parameters { kept, hit_nanoseconds, miss_nanoseconds, .. } = *parameters;
    let answered = match steady(point.range, capacity as u64) {
        // With room for all there is no choice to be made, and none to be made badly.
        1.0 => 1.0,
        ideal => kept * ideal,
    };
    let time = answered * hit_nanoseconds + (1.0 - answered) * (miss_nanoseconds + point.alone_nanoseconds);
    (answered, time)
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let alone = format!("{}, alone", parameters.index);
    let behind = format!("{}, SLB", parameters.index);
    session.announce(session.runs());
    for _ in 0..session.runs() {
        session.begin("calculating");
        for point in &parameters.points {
            let table = Slb::new(&Config::with_size(point.bytes))?;
            let (answered, time) = with_table(parameters, point, table.capacity());
            session.record(&alone, &point.name, "lookups", "M/s", 1e3 / point.alone_nanoseconds);
            session.record(&behind, &point.name, "lookups", "M/s", 1e3 / time);
            session.record(&behind, &point.name, "times alone", "x", point.alone_nanoseconds / time);
            session.record(&behind, &point.name, "hit ratio", "%", 100.0 * answered);
        }
        let gigabytes = parameters.records as f64 * parameters.record_bytes / 1e9;
        session.record(&behind, "", "memory", "GB", gigabytes);
        session.end();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(text: &str) -> Parameters {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_table_that_holds_all_costs_its_hits_and_one_that_holds_little_the_index_too() {
        let parameters = model(
            "index = 'i'\nrecords = 1000\nrecord_bytes = 100.0\nkept = 0.5\nhit_nanoseconds = 50.0\n\
             miss_nanoseconds = 30.0\npoints = [\
             { name = 'all', range = 100, bytes = 0, alone_nanoseconds = 200.0 },\
             { name = 'few', range = 1_000_000_000, bytes = 0, alone_nanoseconds = 200.0 }]",
        );
        assert_eq!(with_table(&parameters, &parameters.points[0], 100), (1.0, 50.0));
        let (answered, time) = with_table(&parameters, &parameters.points[1], 100);
        // The hundred hottest of a billion: 5.28 of 22.98 parts.
        let ideal = workload::popularity::zeta(100, 0.99) / workload::popularity::zeta(1_000_000_000, 0.99);
        assert!((0.2..0.25).contains(&ideal), "{ideal}");
        assert!((answered - ideal / 2.0).abs() < 1e-12);
        assert!((time - (50.0 * answered + 230.0 * (1.0 - answered))).abs() < 1e-9);
        assert!(time > 200.0, "a table that answers one request in nine does not pay");
    }
}
