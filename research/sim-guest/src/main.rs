//! This project's own indexes as guests of the simulator: lookaside-own-index REQUESTS index=I variant=V records=N
//! [rows=N] [ways=N] [slb=BYTES] [slb-options=paper] load=N functional=N detailed=N window=N windows=N
//!
//! | index | |
//! |---|---|
//! | `cuckoo` | the optimistic cuckoo table |
//! | `art` | the adaptive radix tree |
//! | `art-reorganised` | the same, its hottest paths moved together after the load |
//!
//! | variant | in front of the index |
//! |---|---|
//! | `alone` | nothing |
//! | `slb` | the Search Lookaside Buffer of `crates/lookaside` |
//! | `stlt-sw` | STLT-SW, the table of the hardware kept by software alone |
//! | `stlt-va`, `stlt` | the hardware, without and with translations in its rows |
//!
//! Requests and phases are those of `research/sim-qemu/guests/driver.hpp`; so are keys, of 24 bytes, and values, of 64.
//! It ends with 0 if every GET found its record.
//!
//! | module | idea |
//! |---|---|
//! | `options` | what the guest is told |
//! | `record` | keys, values, hashes |
//! | `index` | keys to numbers of records |
//! | `hardware` | the instructions and system calls of the STLT |
//! | `in_front` | what may stand before an index |
//! | `driver` | both together, and the requests of a run, phase by phase |

mod driver;
mod hardware;
mod in_front;
mod index;
mod options;
mod record;

use std::process::ExitCode;

use art::Tree;
use lookaside::{Buffer, Config};
use stlt_sw::Table;

use driver::{Driver, SET};
use hardware::Hints;
use in_front::{Library, Nothing, Software};
use index::{Cuckoo, Index, Radix};
use options::Options;
use record::Record;

fn guest() -> Result<(), String> {
    let options = Options::read()?;
    let sets = options.requests.iter().filter(|&&request| request & SET != 0).count() as u64;
    let loaded = options.number("records", 0)?;
    let records: Vec<Record> = (0..loaded + sets).map(Record::new).collect();
    match options.text("index") {
        Some("cuckoo") => with_table(Cuckoo::new(&records)?, &records, &options),
        Some(name @ ("art" | "art-reorganised")) => {
            let tree = Tree::new().map_err(|error| error.to_string())?;
            let session = tree.session();
            let reorganised = name == "art-reorganised";
            with_table(Radix::new(&records, &tree, session.pin(), reorganised), &records, &options)
        }
        _ => Err("index= is cuckoo, art or art-reorganised".into()),
    }
}

/// Performs the requests on an index behind the table that was asked for. Where no processor has the instructions,
/// the table in software takes their place.
fn with_table(index: impl Index, records: &[Record], options: &Options) -> Result<(), String> {
    let (rows, ways) = (options.number("rows", 1 << 20)?, options.number("ways", 4)?);
    match options.text("variant") {
        Some("alone") | None => Driver::run(index, Nothing, records, options),
        Some("slb") => {
            let bytes = options.number("slb", 1 << 24)? as usize;
            let paper = options.text("slb-options") == Some("paper");
            let config = if paper { Config::paper(bytes) } else { Config::with_size(bytes) };
            // The table has the bytes that it was given, as the paper's.
            let buffer = Buffer::new(&config.fits(false)).map_err(|error| error.to_string())?;
            Driver::run(index, Library { visit: buffer.visit(), records }, records, options)
        }
        Some(name @ ("stlt" | "stlt-va")) if hardware::is_simulated() => {
            Driver::run(index, Hints::new(rows, ways, name == "stlt")?, records, options)
        }
        Some("stlt-sw" | "stlt" | "stlt-va") => {
            let table = Table::new(rows, ways as usize).map_err(|refused| refused.to_string())?;
            Driver::run(index, Software { table, records }, records, options)
        }
        Some(other) => Err(format!("variant={other}: there are alone, slb, stlt-sw, stlt-va and stlt")),
    }
}

#[allow(clippy::print_stderr, reason = "a program tells whoever started it")]
fn main() -> ExitCode {
    match guest() {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("lookaside-own-index: {reason}");
            ExitCode::FAILURE
        }
    }
}
