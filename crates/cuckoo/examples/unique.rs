//! Prints each line of its input that was not there before.
//!
//!     cargo run --release -p lookaside-cuckoo --example unique < LINES
//!
//! The lines lie one behind the other in one piece of memory; the table has where each begins, and a tag of its hash,
//! in eight to ten bytes a line. It grows a bucket at a time: no line waits for a table to be copied.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufWriter, Write, stdin, stdout};

use lookaside_cuckoo::{Config, Hashes, Location, Table};

/// The line that begins here.
fn line(lines: &[u8], at: Location) -> &[u8] {
    let rest = &lines[at.get() as usize..];
    rest.split_inclusive(|&byte| byte == b'\n').next().unwrap_or(rest)
}

fn main() -> Result<(), Box<dyn Error>> {
    let hashing = RandomState::new();
    // The standard library's hashes are as even as random numbers: they need no mixing.
    let table: Table = Table::with_capacity(1000, &Config::new().with_hashes(Hashes::Avalanching))?;
    let (mut input, mut output) = (stdin().lock(), BufWriter::new(stdout().lock()));
    let (mut lines, mut next) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut next)? > 0 {
        if next.last() != Some(&b'\n') {
            next.push(b'\n');
        }
        let hash = hashing.hash_one(&*next);
        if table.find(hash, |at| line(&lines, at) == next).is_none() {
            let at = Location::new(lines.len() as u64).ok_or("more than 2^48 bytes")?;
            lines.extend(&next);
            table.insert_unique(hash, at, |at| hashing.hash_one(line(&lines, at)))?;
            output.write_all(&next)?;
        }
        next.clear();
    }
    Ok(output.flush()?)
}
