//! `lookaside-lab report --table`: the server beside memcached and Redis, as a table in Markdown.
//!
//! The README and the page on benchmarks have these rows as they are printed here, of the newest results that are kept;
//! a test of the documents asks for that. `ci/tables` measures them anew.

use std::fmt::Write;
use std::path::Path;

use lab::results::{Results, ResultsError};

/// What stands above the rows.
const HEAD: &str = "\
| what | Lookaside | memcached | Redis | ours / memcached's | shown by |
|---|---|---|---|---|---|
";

/// A row: numbers of one experiment.
struct Line {
    what: &'static str,
    experiment: &'static str,
    metric: &'static str,
    /// Configurations of the experiment, and the points that each is measured at; no points: an empty cell.
    cells: [(&'static str, &'static [&'static str]); 3],
    unit: &'static str,
    decimals: usize,
    /// Whether less is better, and ours is set in relation to memcached's.
    has_ratio: bool,
}

/// A row of `server-cpu`.
const fn of_gets(what: &'static str, point: &'static [&'static str]) -> Line {
    Line {
        what,
        experiment: "server-cpu",
        metric: "server CPU per key",
        cells: [("lookaside", point), ("memcached", point), ("redis", point)],
        unit: "us",
        decimals: 2,
        has_ratio: true,
    }
}

/// A row of `server-writes`.
const fn of_writes(what: &'static str, text: &'static [&'static str], resp: &'static [&'static str]) -> Line {
    Line {
        what,
        experiment: "server-writes",
        metric: "server CPU per operation",
        cells: [("lookaside", text), ("memcached", text), ("redis", resp)],
        unit: "us",
        decimals: 2,
        has_ratio: true,
    }
}

const SIZES: &[&str] = &["1/8", "1/4", "1/2"];
const LINES: [Line; 11] = [
    of_gets("processor time of the server for a key, `get` of 100 keys", &["get of 100 keys, 8 connections"]),
    of_gets("the same, single gets pipelined by 32", &["gets pipelined by 32, 8 connections"]),
    of_gets("the same, one get at a time over 50 connections", &["single gets, 50 connections"]),
    of_writes("processor time for a `set`, pipelined by 32", &["set, text"], &["set, RESP"]),
    of_writes("a `set` without a reply, pipelined", &["noreply set, text"], &[]),
    of_writes("an `incr`, pipelined", &["incr, text"], &["incr, RESP"]),
    of_writes("a `delete`, pipelined", &["delete, text"], &["delete, RESP"]),
    of_writes("gets with one set in twenty, pipelined", &["95/5 get/set, text"], &["95/5 get/set, RESP"]),
    Line {
        what: "resident memory of a million items of 16 + 32 bytes",
        experiment: "server-cpu",
        metric: "resident memory",
        cells: [("lookaside", &["filled"]), ("memcached", &["filled"]), ("redis", &["filled"])],
        unit: "MB",
        decimals: 0,
        has_ratio: true,
    },
    Line {
        what: "the same for an item, when 1 GB is full",
        experiment: "cache-density",
        metric: "resident bytes per item",
        cells: [("16 + 32 bytes", &[""]), ("", &[]), ("", &[])],
        unit: "B",
        decimals: 1,
        has_ratio: false,
    },
    Line {
        what: "hits on a real trace in 1/8, 1/4, 1/2 of its memory",
        experiment: "server-replay",
        metric: "hit ratio",
        cells: [("lookaside", SIZES), ("memcached", SIZES), ("redis", &[])],
        unit: "%",
        decimals: 2,
        has_ratio: false,
    },
];

/// The table, of the newest results below `folder`. What was not measured is an empty cell.
pub(crate) fn table(folder: &Path) -> Result<String, ResultsError> {
    let mut table = HEAD.to_owned();
    for line in &LINES {
        let Some(results) = Results::newest(folder, line.experiment)? else { continue };
        let [ours, theirs, redis] = line.cells.map(|(configuration, points)| {
            points.iter().filter_map(|point| line.number(&results, configuration, point)).collect::<Vec<_>>()
        });
        let ratio = match (&ours[..], &theirs[..]) {
            ([ours], [theirs]) if line.has_ratio => format!("{:.2}", ours / theirs),
            _ => String::new(),
        };
        let [ours, theirs, redis] = [ours, theirs, redis].map(|numbers| line.cell(&numbers));
        let Line { what, experiment, .. } = line;
        writeln!(table, "| {what} | {ours} | {theirs} | {redis} | {ratio} | `run {experiment}` |")
            .expect("memory takes all");
    }
    Ok(table)
}

impl Line {
    fn number(&self, results: &Results, configuration: &str, point: &str) -> Option<f64> {
        let row = results.rows.iter().find(|row| row.is(configuration, point, self.metric));
        row.map(|row| row.median)
    }

    fn cell(&self, numbers: &[f64]) -> String {
        let numbers: Vec<_> = numbers.iter().map(|number| format!("{number:.*}", self.decimals)).collect();
        if numbers.is_empty() { String::new() } else { format!("{} {}", numbers.join(", "), self.unit) }
    }
}
