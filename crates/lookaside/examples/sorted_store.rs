//! A reader of a store: a sorted file of fixed records, found by binary search, with a table beside it.
//!
//! `cargo run --release -p lookaside --example sorted_store [records]`
//!
//! The store is never written while it is read, and keeps its own records. So a [`Front`] before it will do: a table of
//! references to records, which the compiler keeps from outliving the file in memory. A binary search among two million
//! records reads some twenty lines of memory, a hit reads one line of the table and the record.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use lookaside::{Config, Front};

/// A key of eight bytes, and what belongs to it.
type Record = [u8; 64];

fn key(record: &Record) -> u64 {
    u64::from_be_bytes(*record.first_chunk().expect("eight bytes"))
}

/// A sorted file in memory, and the table before it.
struct Store<'f> {
    records: &'f [Record],
    front: Front<&'f Record>,
}

impl<'f> Store<'f> {
    /// A store over a file's bytes, whose records are sorted by key.
    fn over(bytes: &'f [u8], table_bytes: usize) -> Result<Store<'f>, Box<dyn std::error::Error>> {
        let (records, []) = bytes.as_chunks() else {
            return Err(format!("{} bytes are no whole records", bytes.len()).into());
        };
        Ok(Store { records, front: Front::new(&Config::with_size(table_bytes))? })
    }

    /// The record with this key, by a binary search.
    fn search(&self, sought: u64) -> Option<&'f Record> {
        Some(&self.records[self.records.binary_search_by_key(&sought, key).ok()?])
    }

    /// The record with this key: from the table, or else by the search, and then remembered.
    fn get(&self, sought: u64) -> Option<&'f Record> {
        self.front.get(&sought, |record, &sought| key(record) == sought, |&sought| self.search(sought))
    }
}

/// A sorted file of records: keys are even numbers.
fn write_store(path: &Path, records: u64) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..records {
        let mut record: Record = [0; 64];
        record[..8].copy_from_slice(&(2 * number).to_be_bytes());
        record[8..16].copy_from_slice(&(number * number).to_be_bytes());
        file.write_all(&record)?;
    }
    file.flush()
}

/// Numbers without order (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A key that is there. Few are asked for often: half of the requests are for one key in 32.
fn request(state: &mut u64, records: u64) -> u64 {
    let unit = (random(state) >> 11) as f64 / (1_u64 << 53) as f64;
    let rank = (unit.powi(5) * records as f64) as u64;
    // The hot ones lie all over the file.
    2 * (rank * 1_000_003 % records)
}

/// As many lookups as there are records.
fn timed(what: &str, records: u64, mut lookup: impl FnMut(u64) -> Option<u64>) {
    let mut state = 1;
    let keys: Vec<u64> = (0..records).map(|_| request(&mut state, records)).collect();
    let began = Instant::now();
    let sum = keys.iter().map(|&key| lookup(key).expect("it is there")).fold(0, u64::wrapping_add);
    let rate = records as f64 / began.elapsed().as_secs_f64() / 1e6;
    println!("{what:18} {rate:6.2} M lookups a second (sum {sum:x})");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records = std::env::args().nth(1).map_or(Ok(2_000_000), |records| records.parse())?;
    let path = std::env::temp_dir().join(format!("sorted-store-{}", std::process::id()));
    write_store(&path, records)?;
    let bytes = fs::read(&path);
    fs::remove_file(&path)?;
    let bytes = bytes?;
    let store = Store::over(&bytes, 4 << 20)?;

    let value = |record: &Record| u64::from_be_bytes(*record[8..].first_chunk().expect("eight bytes"));
    // Warms the table, with the draws that are timed: the share of hits below is the one to look at.
    timed("binary search", records, |key| store.search(key).map(value));
    timed("with a cold table", records, |key| store.get(key).map(value));
    timed("with a warm table", records, |key| store.get(key).map(value));
    assert!(store.get(1).is_none(), "odd keys are not there");
    println!("the table remembers {} of {records} records", store.front.occupancy());
    Ok(())
}
