//! A reader of a store: a sorted file of fixed records, found by binary search, with a table beside it.
//!
//! `cargo run --release -p lookaside --example sorted_store [records]`
//!
//! The store is never written while it is read, and keeps its own records. So a bare [`Buffer`] beside it will do: what
//! the table remembers of a record is its number in the file, plus one, because a pointer is never zero. A binary
//! search among two million records reads some twenty lines of memory, a hit reads one line of the table and the
//! record.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use lookaside::{Buffer, Config, Pointer, Visit, mix};

/// Bytes of a record: a key of eight, and what belongs to it.
const RECORD: usize = 64;

/// A sorted file in memory, and the table beside it.
struct Store {
    bytes: Vec<u8>,
    table: Buffer,
}

impl Store {
    /// Reads a file whose records are sorted by key.
    fn open(path: &Path, table_bytes: usize) -> Result<Store, Box<dyn std::error::Error>> {
        let bytes = fs::read(path)?;
        if !bytes.len().is_multiple_of(RECORD) {
            return Err(format!("{}: {} bytes are no whole records", path.display(), bytes.len()).into());
        }
        Ok(Store { bytes, table: Buffer::new(&Config::with_size(table_bytes))? })
    }

    fn record(&self, number: usize) -> &[u8] {
        &self.bytes[number * RECORD..][..RECORD]
    }

    fn key(&self, number: usize) -> u64 {
        u64::from_be_bytes(self.record(number)[..8].try_into().expect("eight bytes"))
    }

    /// The number of the record with this key.
    fn search(&self, key: u64) -> Option<usize> {
        let (mut from, mut to) = (0, self.bytes.len() / RECORD);
        while from < to {
            let middle = from + (to - from) / 2;
            match self.key(middle).cmp(&key) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// The record with this key: from the table, or else from the file, and then remembered.
    fn get(&self, visit: &Visit<'_>, key: u64) -> Option<&[u8]> {
        // A buffer takes hashes as they are, and a number by itself is no even one.
        let hash = mix(key);
        let number = |pointer: Pointer| pointer.address() as usize - 1;
        if let Some(pointer) = visit.find(hash, |pointer| self.key(number(pointer)) == key) {
            return Some(self.record(number(pointer)));
        }
        // Taken before the search: nobody writes here, but that is the rule.
        let ticket = visit.ticket(hash);
        let found = self.search(key)?;
        visit.emit(&ticket, hash, Pointer::new(found as u64 + 1).expect("fewer than 2^48 records"));
        Some(self.record(found))
    }
}

/// A sorted file of records: keys are even numbers.
fn write_store(path: &Path, records: u64) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..records {
        let mut record = [0; RECORD];
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
    let store = Store::open(&path, 4 << 20);
    fs::remove_file(&path)?;
    let store = store?;

    let value = |record: &[u8]| u64::from_be_bytes(record[8..16].try_into().expect("eight bytes"));
    // Warms the table, with the draws that are timed: the share of hits below is the one to look at.
    let visit = store.table.visit();
    timed("binary search", records, |key| store.search(key).map(|number| value(store.record(number))));
    timed("with a cold table", records, |key| store.get(&visit, key).map(value));
    timed("with a warm table", records, |key| store.get(&visit, key).map(value));
    assert!(store.get(&visit, 1).is_none(), "odd keys are not there");
    println!("the table remembers {} of {records} records", store.table.occupancy());
    Ok(())
}
