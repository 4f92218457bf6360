//! What a programmer writes in an afternoon instead of taking a library: a table of references to hot entries.
//!
//! A bucket is one line: seven words of a 16-bit tag over a 48-bit pointer, and seven counters of a byte. Loads are
//! plain and end at the first entry that is the key's. A counter is raised at every hit, and the smallest is evicted.
//! It is for one thread, never switched off, and forgets nothing by itself: what a library may cost is measured against
//! it (`yardstick`). The same in C++ is `research/peers/cpp/twenty_lines.hpp`.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::marker::PhantomData;

use pages::{Array, MapError, PageKind};

const WAYS: usize = 7;

#[repr(C, align(64))]
struct Bucket {
    words: [Cell<u64>; WAYS],
    counters: [Cell<u8>; 8],
}

// SAFETY: integers, for all of which zero is a value: no entries.
unsafe impl pages::Zeroed for Bucket {}

/// See the head of this module.
pub(super) struct TwentyLines<'e, E> {
    buckets: Array<Bucket>,
    entries: PhantomData<&'e E>,
}

/// Whether a word has an entry, and the tag of this hash.
#[inline(always)]
fn is_tagged(word: u64, hash: u64) -> bool {
    word >> 48 == hash >> 48 && word << 16 != 0
}

impl<'e, E> TwentyLines<'e, E> {
    /// Lookups that [`TwentyLines::get_group`] takes at most.
    pub(super) const GROUP: usize = 16;

    /// Of so many bytes: a power of two, at least a line.
    pub(super) fn new(bytes: usize) -> Result<Self, MapError> {
        let lines = (bytes / size_of::<Bucket>()).max(1);
        Ok(TwentyLines { buckets: Array::map(lines, PageKind::Transparent)?, entries: PhantomData })
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &Bucket {
        // SAFETY: there is at least one, and their number is a power of two or the mask is less than it.
        unsafe { self.buckets.get_unchecked(hash as usize & (self.buckets.len() - 1)) }
    }

    /// The entry that a word names.
    #[inline(always)]
    fn entry(word: u64) -> &'e E {
        // SAFETY: only `emit` stores words: the address of an entry that is borrowed for `'e`, of 48 bits in user
        // space.
        unsafe { &*std::ptr::with_exposed_provenance::<E>((word << 16 >> 16) as usize) }
    }

    /// The entry of this hash that `is` takes.
    #[inline(always)]
    pub(super) fn get(&self, hash: u64, is: impl Fn(&E) -> bool) -> Option<&'e E> {
        let bucket = self.bucket(hash);
        for (word, counter) in bucket.words.iter().zip(&bucket.counters) {
            if is_tagged(word.get(), hash) && is(Self::entry(word.get())) {
                counter.set(counter.get().saturating_add(1));
                return Some(Self::entry(word.get()));
            }
        }
        None
    }

    /// Puts an entry in, in the place of the one that was asked for least.
    pub(super) fn emit(&self, hash: u64, entry: &'e E) {
        let bucket = self.bucket(hash);
        let coldest = (0..WAYS).min_by_key(|&way| bucket.counters[way].get()).unwrap_or(0);
        let address = std::ptr::from_ref(entry).expose_provenance() as u64;
        bucket.words[coldest].set(hash >> 48 << 48 | address);
        bucket.counters[coldest].set(1);
    }

    /// At most [`TwentyLines::GROUP`] lookups: asks for the lines of all, then for the entries that they name, and then
    /// compares. `is` is shown the number of a lookup, and an entry.
    #[inline(always)]
    pub(super) fn get_group(
        &self,
        hashes: &[u64],
        is: impl Fn(usize, &E) -> bool,
        mut found: impl FnMut(usize, Option<&'e E>),
    ) {
        hashes.iter().for_each(|&hash| pages::prefetch(self.bucket(hash)));
        for &hash in hashes {
            let tagged = self.bucket(hash).words.iter().find(|word| is_tagged(word.get(), hash));
            if let Some(word) = tagged {
                let entry = std::ptr::from_ref(Self::entry(word.get())).cast::<u8>();
                (0..size_of::<E>())
                    .step_by(64)
                    .for_each(|offset| pages::prefetch(entry.wrapping_add(offset)));
                pages::prefetch(entry.wrapping_add(size_of::<E>() - 1));
            }
        }
        for (i, &hash) in hashes.iter().enumerate() {
            found(i, self.get(hash, |entry| is(i, entry)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_asked_for_is_evicted_and_nothing_else_is_found() {
        let entries: Vec<u64> = (0..8).collect();
        let table = TwentyLines::new(64).unwrap();
        let hash = |entry: &u64| (entry + 1) << 48;
        for entry in &entries[..7] {
            table.emit(hash(entry), entry);
        }
        let asked = entries[..7].iter().filter(|&&entry| entry != 4);
        asked.for_each(|entry| assert_eq!(table.get(hash(entry), |found| found == entry), Some(entry)));
        table.emit(hash(&7), &entries[7]);
        assert_eq!(table.get(hash(&4), |_| true), None);
        assert_eq!(table.get(hash(&7), |_| false), None);
        assert_eq!(table.get(0, |_| true), None, "an empty word has its tag");
        let mut found = Vec::new();
        table.get_group(&[hash(&7), hash(&4), hash(&0)], |_, _| true, |_, entry| found.push(entry));
        assert_eq!(found, [Some(&7), None, Some(&0)]);
    }
}
