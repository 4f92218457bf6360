//! A hash table with chains, as libstdc++'s `unordered_map` is built.
//!
//! All nodes are in one list. A bucket points to the node *before* its first one, so that one can be unlinked;
//! a lookup reads the bucket, that node's link, and then the bucket's own nodes until the next node's hash says
//! that it belongs elsewhere. Hashes are kept in the nodes. The number of buckets is a prime: each step to
//! another bucket is a division.
//!
//! ```text
//!   buckets:  [ * ][   ][ * ]...                 node: link 8, record* 8, hash 8
//!               |         |
//!   list:   ... n --> n --> n --> n --> ...
//! ```
//!
//! With n records in m buckets a lookup of one of them compares 1 + (n - 1) / 2m hashes on average.

use super::hash::{execute_hash, hash_of};
use super::heap::Place;
use super::keys::Key;
use super::processor::{Pen, Processor};
use super::records::Records;
use super::registers::{HASH, NODE, RECORD, SLOT, WORD};
use super::{CODE_INDEX, Hash, Lookup};

/// The index's own hash.
const HASH_FUNCTION: Hash = Hash::Murmur;
const NONE: u32 = u32::MAX;
/// The list's own head, where a node's number stands.
const HEAD: u32 = u32::MAX - 1;
/// Cycles of a division of 64 bits.
const DIVISION: u8 = 26;

/// The table.
#[derive(Debug, Clone)]
pub struct Chained {
    table: u64,
    head: u64,
    first: u32,
    /// The node before each bucket's first.
    before: Vec<u32>,
    /// A node's number is its record's.
    nodes: Vec<Node>,
}

/// What is kept of a node, in one line of the host's: all of it is looked at together.
#[derive(Debug, Clone, Copy)]
#[repr(align(16))]
struct Node {
    next: u32,
    bucket: u32,
    place: Place,
}

impl Chained {
    /// A table that need not grow until it has so many records.
    #[must_use]
    pub fn new(records: &mut Records, capacity: u32) -> Chained {
        let buckets = prime_from(capacity.max(2));
        let head = records.heap().allocate_table(56);
        Chained {
            table: records.heap().allocate_table(u64::from(buckets) * 8),
            head,
            first: NONE,
            before: vec![NONE; buckets as usize],
            nodes: Vec::new(),
        }
    }

    /// Buckets.
    #[must_use]
    pub fn buckets(&self) -> u32 {
        self.before.len() as u32
    }

    fn bucket(&self, key: Key) -> u32 {
        (hash_of(HASH_FUNCTION, &key.bytes()) % self.before.len() as u64) as u32
    }

    /// Where a node lies: link, record, hash.
    fn address(&self, node: u32) -> u64 {
        if node == HEAD { self.head + 16 } else { self.nodes[node as usize].place.address() }
    }

    fn after(&self, node: u32) -> u32 {
        if node == HEAD { self.first } else { self.nodes[node as usize].next }
    }

    /// Asks for a node's line, if there is such a node.
    fn prefetch(&self, node: u32) {
        if let Some(kept) = self.nodes.get(node as usize) {
            pages::prefetch(kept);
        }
    }

    fn link(&mut self, node: u32, to: u32) {
        if node == HEAD {
            self.first = to;
        } else {
            self.nodes[node as usize].next = to;
        }
    }
}

impl Lookup for Chained {
    fn insert(&mut self, records: &mut Records, record: u32) {
        let bucket = self.bucket(records.key(record));
        debug_assert_eq!(record as usize, self.nodes.len(), "records come in order");
        self.nodes.push(Node { next: NONE, bucket, place: records.heap().allocate(24) });
        let before = self.before[bucket as usize];
        if before == NONE {
            // An empty bucket's first node goes to the front of the list; what stood there now stands behind it.
            let old = self.first;
            self.link(record, old);
            self.first = record;
            if old != NONE {
                let displaced = self.nodes[old as usize].bucket;
                self.before[displaced as usize] = record;
            }
            self.before[bucket as usize] = HEAD;
        } else {
            let first = self.after(before);
            self.link(record, first);
            self.link(before, record);
        }
    }

    fn find<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, query: Key) -> Option<u32> {
        pen.at(CODE_INDEX).compute(HASH, &[HASH]);
        execute_hash(HASH_FUNCTION, pen);
        let bucket = self.bucket(query);
        pen.at(CODE_INDEX + 64).compute_for(DIVISION, SLOT, &[HASH]).compute(WORD, &[SLOT]);
        pen.load(NODE, SLOT, self.table + u64::from(bucket) * 8, 8);
        let before = self.before[bucket as usize];
        pen.branch(&[NODE], before == NONE, CODE_INDEX + 512);
        if before == NONE {
            return None;
        }
        let mut node = self.after(before);
        pen.load(NODE, NODE, self.address(before), 8);
        loop {
            // The host fetches the next node while the guest compares this one.
            self.prefetch(self.after(node));
            let found = records.key(node);
            pen.at(CODE_INDEX + 128).load(WORD, NODE, self.address(node) + 16, 8);
            // Two hashes of one bucket are equal for equal keys only: 64 bits of them.
            pen.branch(&[WORD, HASH], found != query, CODE_INDEX + 256);
            if found == query {
                pen.load(RECORD, NODE, self.address(node) + 8, 8);
                records.compare(pen, node, query);
                pen.at(CODE_INDEX + 192).branch(&[WORD], false, CODE_INDEX + 256);
                return Some(node);
            }
            let next = self.after(node);
            pen.at(CODE_INDEX + 256).load(NODE, NODE, self.address(node), 8);
            pen.branch(&[NODE], next == NONE, CODE_INDEX + 512);
            if next == NONE {
                return None;
            }
            let elsewhere = self.nodes[next as usize].bucket != bucket;
            pen.load(WORD, NODE, self.address(next) + 16, 8).compute_for(DIVISION, WORD, &[WORD]);
            pen.branch(&[WORD, SLOT], !elsewhere, CODE_INDEX + 128);
            if elsewhere {
                return None;
            }
            node = next;
        }
    }

    fn execute_insert<P: Processor>(&self, pen: &mut Pen<'_, P>, records: &Records, record: u32) {
        let _ = records;
        let node = self.address(record);
        let bucket = self.nodes[record as usize].bucket;
        pen.at(CODE_INDEX + 1024).chain(NODE, &[1; 12]);
        for word in 0..3 {
            pen.store(RECORD, NODE, node + 8 * word, 8);
        }
        pen.store(NODE, SLOT, self.table + u64::from(bucket) * 8, 8);
    }
}

/// The first prime that is not smaller.
fn prime_from(from: u32) -> u32 {
    let is_prime = |&number: &u32| {
        let root = f64::from(number).sqrt() as u32;
        number > 1 && (2..=root).all(|divisor| number % divisor != 0)
    };
    (from..u32::MAX).find(is_prime).unwrap_or(4_294_967_291)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_found() {
        assert_eq!([1, 2, 4, 100, 7920].map(prime_from), [2, 2, 5, 101, 7927]);
    }
}
