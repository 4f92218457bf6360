//! A run of a guest: what it is told, and the requests that it reads.
//!
//! Requests are drawn here and read by the guest from a file: distributions have one definition, in
//! `research/workload`, and drawing costs the guest nothing.

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::Path;

use rand::RngExt;
use rand::distr::Distribution as _;
use workload::generator;
use workload::popularity::Latest;

use crate::asked::{Container, Distribution, Hash, Variant};
use crate::error::{GuestError, io_error};

/// A run of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The program.
    pub container: Container,
    /// What stands before it.
    pub variant: Variant,
    /// Records in it at first.
    pub records: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Which are asked for.
    pub distribution: Distribution,
    /// What they are drawn with.
    pub seed: u64,
    /// Requests that are performed without simulation, to fill the table.
    pub load: u64,
    /// To warm caches and TLBs.
    pub functional: u64,
    /// To fill the pipeline, before each window.
    pub detailed: u64,
    /// Measured, in each window.
    pub window: u64,
    /// Windows.
    pub windows: u64,
    /// Rows of the STLT: a power of two.
    pub rows: u64,
    /// Rows of a set.
    pub ways: u64,
    /// Bytes of the SLB's Cache Table.
    pub slb_bytes: u64,
    /// The SLB as its paper has it, not as it measured best.
    pub slb_paper: bool,
    /// The hash of the fast path.
    pub hash: Hash,
}

impl Run {
    /// A run of `records` records: requests for eight times as many fill the table, one for each (a million at most)
    /// warms the caches, then come four windows of 32000 (the paper's 128 000). The STLT has two rows for each record,
    /// rounded up to a power of two, at most its 2^25; the SLB has as many bytes.
    #[must_use]
    pub fn new(container: Container, variant: Variant, records: u64) -> Run {
        let rows = (records.max(1) * 2).next_power_of_two().min(1 << 25);
        Run {
            container,
            variant,
            records,
            value_bytes: 64,
            distribution: Distribution::Zipf,
            seed: 1,
            load: records * 8,
            functional: records.min(1_000_000),
            detailed: 2000,
            window: 32_000,
            windows: 4,
            rows,
            ways: 4,
            slb_bytes: rows * 16,
            slb_paper: false,
            hash: Hash::Xxh3,
        }
    }

    /// Requests that the guest will read.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.load + self.functional + self.windows * (self.detailed + self.window)
    }

    /// What the guest is told.
    #[must_use]
    pub fn arguments(&self, requests: &Path) -> Vec<OsString> {
        let numbers = [
            ("records", self.records),
            ("value", self.value_bytes),
            ("rows", self.rows),
            ("ways", self.ways),
            ("slb", self.slb_bytes),
            ("load", self.load),
            ("functional", self.functional),
            ("detailed", self.detailed),
            ("window", self.window),
            ("windows", self.windows),
        ];
        let options = if self.slb_paper { "paper" } else { "default" };
        let names = [("variant", self.variant.name()), ("slb-options", options), ("hash", self.hash.name())];
        let own = self.container.is_own().then_some(("index", self.container.name()));
        let numbers = numbers.map(|(name, number)| format!("{name}={number}"));
        let names = names.into_iter().chain(own).map(|(name, value)| format!("{name}={value}"));
        let rest = numbers.into_iter().chain(names).map(OsString::from);
        [requests.as_os_str().to_owned()].into_iter().chain(rest).collect()
    }

    /// Writes the file of requests. It depends on the records, the distribution, the seed and
    /// [`Run::requests`] alone: runs that agree on them can share it.
    ///
    /// # Errors
    /// If the records are none or too many, or the file cannot be written.
    pub fn write_requests(&self, path: &Path) -> Result<(), GuestError> {
        let most = self.records.saturating_add(self.requests());
        if most > 1 << 31 {
            return Err(GuestError::Records(most));
        }
        let file = std::fs::File::create(path).map_err(io_error(path))?;
        let mut to = BufWriter::new(file);
        let mut rng = generator::seeded(self.seed);
        let mut write = |word: u32| to.write_all(&word.to_le_bytes()).map_err(io_error(path));
        if let Some(popularity) = self.distribution.popularity(self.records, self.seed)? {
            for _ in 0..self.requests() {
                write(popularity.sample(&mut rng) as u32)?;
            }
        } else {
            let mut latest = Latest::new(self.records, Distribution::THETA)?;
            for _ in 0..self.requests() {
                if rng.random_range(0..100) < INSERTIONS {
                    latest.insert();
                    write(SET)?;
                } else {
                    write(latest.sample(&mut rng) as u32)?;
                }
            }
        }
        to.flush().map_err(io_error(path))
    }
}

/// Of a hundred requests for the latest, so many insert.
const INSERTIONS: u32 = 5;
/// A request that inserts.
const SET: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_as_many_as_the_phases_take_and_repeat() {
        let folder = tempfile::tempdir().expect("a folder");
        for distribution in Distribution::ALL {
            let run = Run { distribution, ..Run::new(Container::Map, Variant::Alone, 1000) };
            let read = |name: &str| {
                let path = folder.path().join(name);
                run.write_requests(&path).expect("written");
                std::fs::read(path).expect("read")
            };
            let bytes = read("one");
            assert_eq!(bytes.len() as u64, 4 * run.requests());
            assert_eq!(bytes, read("two"));
            let mut records = 1000;
            for word in
                bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            {
                if word == SET {
                    records += 1;
                } else {
                    assert!(word < records, "only what is there is asked for");
                }
            }
            let inserted = f64::from(records - 1000) / run.requests() as f64;
            let expected = if distribution == Distribution::Latest { 0.05 } else { 0.0 };
            assert!((inserted - expected).abs() < 0.005, "{inserted}");
        }
        let run = Run::new(Container::Map, Variant::Alone, 1 << 31);
        assert!(matches!(run.write_requests(&folder.path().join("three")), Err(GuestError::Records(_))));
    }
}
