//! The default hash of keys: folded multiplication.
//!
//! ```text
//!   16 bytes    state = fold((a ^ state) * (b ^ key))
//!    8 or less  state = fold(fold((a ^ state) * key) * a constant)
//!    none       state = fold(state * a constant)
//! ```
//!
//! The last is for keys of whole pairs: folded once, integers in a row are multiples of one number in the bits that
//! choose the bucket, and those of some numbers lie in few buckets. Of 128 keys of 16 bytes one in 85 had no room in 64
//! buckets, where one in 1,500 has none if they are thrown at random. A str of such a length takes it, too, and would
//! not need it.
//!
//! fold adds, without carry, the upper half of the 128-bit product to the lower: it is the step of wyhash and foldhash.
//! Keys of 24 bytes take three of them, inlined. It is seeded anew for each map: who does not know the seed cannot
//! choose keys that crowd one bucket.
//!
//! Rejected: *foldhash* itself, which calls a function for keys of more than 16 bytes. A hit has some seventy
//! instructions; the call and what it does are forty of them, and hits overlap in the processor only as far as its
//! window of some hundred instructions reaches: it took a fifth of the throughput of hits that miss the caches.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// How keys are hashed where nothing else is said.
pub type RandomState = FoldingState;

/// Seeds of [`FoldingHasher`]s.
#[derive(Clone, Copy)]
pub struct FoldingState {
    state: u64,
    /// Odd.
    key: u64,
}

impl Default for FoldingState {
    /// Seeds that nobody else has.
    fn default() -> Self {
        // The seeds of the standard library's maps: random, and another for each.
        let random = std::hash::RandomState::new();
        FoldingState { state: random.hash_one(0u8), key: random.hash_one(1u8) | 1 }
    }
}

impl BuildHasher for FoldingState {
    type Hasher = FoldingHasher;

    #[inline(always)]
    fn build_hasher(&self) -> FoldingHasher {
        FoldingHasher { state: self.state, key: self.key }
    }
}

/// See the head of the module.
#[derive(Clone, Copy)]
pub struct FoldingHasher {
    state: u64,
    key: u64,
}

impl fmt::Debug for FoldingState {
    /// Without the seeds: who knows them can crowd a bucket.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoldingState").finish_non_exhaustive()
    }
}

impl fmt::Debug for FoldingHasher {
    /// As [`FoldingState`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoldingHasher").finish_non_exhaustive()
    }
}

/// Digits of pi, and odd: what foldhash and others use.
const END: u64 = 0x243f_6a88_85a3_08d3;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Eight bytes as a number.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[i]))
}

impl FoldingHasher {
    /// Twice, as after once the highest bits of small numbers are those of few tags.
    #[inline(always)]
    fn take(&mut self, number: u64) {
        self.state = fold(fold(number ^ self.state, self.key), END);
    }
}

impl Hasher for FoldingHasher {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            self.state = fold(word(&pair[..8]) ^ self.state, word(&pair[8..]) ^ self.key);
        }
        if rest.is_empty() && !pairs.is_empty() {
            self.state = fold(self.state, END);
        }
        let (words, rest) = rest.as_chunks::<8>();
        if let [last] = words {
            self.take(word(last));
        }
        if !rest.is_empty() {
            // With its length: "a" is not "a\0".
            let number = rest.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
            self.take(number | (rest.len() as u64) << 56);
        }
    }

    #[inline(always)]
    fn write_u8(&mut self, number: u8) {
        self.take(u64::from(number));
    }

    #[inline(always)]
    fn write_u16(&mut self, number: u16) {
        self.take(u64::from(number));
    }

    #[inline(always)]
    fn write_u32(&mut self, number: u32) {
        self.take(u64::from(number));
    }

    #[inline(always)]
    fn write_u64(&mut self, number: u64) {
        self.take(number);
    }

    #[inline(always)]
    fn write_usize(&mut self, number: usize) {
        self.take(number as u64);
    }

    #[inline(always)]
    fn write_u128(&mut self, number: u128) {
        self.take(number as u64);
        self.take((number >> 64) as u64);
    }

    #[inline(always)]
    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::Hash;

    /// What tables take of a hash: the bucket from the low half, the tag from the highest bits.
    fn spread<K: Hash>(what: &str, keys: impl Iterator<Item = K>) {
        let state = FoldingState::default();
        let hashes: Vec<u64> = keys.map(|key| state.hash_one(key)).collect();
        let (many, buckets) = (hashes.len(), hashes.len() / 4);
        let mut full = vec![0u32; buckets];
        let mut tags = vec![0u32; 1 << 16];
        let mut together = HashSet::new();
        for &hash in &hashes {
            let bucket = (((hash & 0xffff_ffff) * buckets as u64) >> 32) as usize;
            full[bucket] += 1;
            tags[(hash >> 48) as usize] += 1;
            together.insert((bucket, hash >> 48));
        }
        // Poisson with mean four: more than seven in 5.1 % of the buckets. Fewer are welcome.
        let crowded = full.iter().filter(|&&many| many > 7).count() as f64 / buckets as f64;
        assert!(crowded < 0.06, "{what}: {crowded} crowded");
        let most = tags.iter().max().copied().unwrap_or_default();
        assert!(f64::from(most) < many as f64 / 65_536.0 + 40.0, "{what}: {most} of one tag");
        // Of one tag in one bucket: four in 65,536 on average.
        let twins = many - together.len();
        assert!((twins as f64) < many as f64 * 8.0 / 65_536.0 + 20.0, "{what}: {twins} twins");
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn keys_of_every_kind_are_spread_over_buckets_and_tags() {
        let many = 200_000u64;
        spread("numbers", 0..many);
        spread("numbers far apart", (0..many).map(|number| number << 32));
        spread("small numbers", 0..many as u32);
        spread("pairs", (0..many).map(|number| (number / 500, number % 500)));
        spread("words", (0..many).map(|number| format!("user:{number}")));
        spread(
            "long words",
            (0..many).map(|number| format!("https://example.org/a/b/{number:08}/index.html")),
        );
        spread("words with their numbers first", (0..many).map(|number| format!("{number:09}-session-key")));
        spread(
            "24 bytes",
            (0..many).map(|number| {
                let mut key = [0u8; 24];
                key[(number % 3) as usize * 8..][..8].copy_from_slice(&number.to_be_bytes());
                key
            }),
        );
    }

    /// What a table that has folded itself holds: of two keys a line, thrown at random, one in 1,500 has no room beside
    /// seven others. Integers in a row that were folded once may lie in a few lines.
    #[test]
    #[cfg_attr(miri, ignore = "statistics of many steps, and no unsafe code")]
    fn few_keys_in_a_row_have_room_in_a_small_table() {
        const LINES: u64 = 64;
        let without_room = |hashes: &dyn Fn(&FoldingState, u64) -> u64| {
            let mut without = 0;
            for _ in 0..1000 {
                let (state, mut full) = (FoldingState::default(), [0u32; LINES as usize]);
                for number in 0..2 * LINES {
                    full[(((hashes(&state, number) & 0xffff_ffff) * LINES) >> 32) as usize] += 1;
                }
                without += full.iter().map(|&keys| keys.saturating_sub(7)).sum::<u32>();
            }
            f64::from(without) / (1000.0 * 2.0 * LINES as f64)
        };
        let bytes = |length: usize, at: usize| {
            move |state: &FoldingState, number: u64| {
                let mut key = [0u8; 48];
                key[at..at + 8].copy_from_slice(&number.to_be_bytes());
                state.hash_one(&key[..length])
            }
        };
        for (length, at) in
            [(8, 0), (16, 0), (16, 8), (24, 0), (24, 8), (24, 16), (32, 8), (32, 24), (48, 40)]
        {
            let share = without_room(&bytes(length, at));
            assert!(share < 0.002, "{share} of keys of {length} bytes that differ at {at}");
        }
        let share = without_room(&|state, number| state.hash_one(number));
        assert!(share < 0.002, "{share} of numbers");
    }

    #[test]
    fn other_lengths_and_other_seeds_give_other_hashes() {
        let state = FoldingState::default();
        let hash = |bytes: &[u8]| {
            let mut hasher = state.build_hasher();
            hasher.write(bytes);
            hasher.finish()
        };
        let zeros = [0u8; 64];
        let hashes: HashSet<u64> = (0..8).map(|length| hash(&zeros[..length])).collect();
        assert_eq!(hashes.len(), 8);
        let seeds: HashSet<u64> = (0..100).map(|_| FoldingState::default().hash_one(1u8)).collect();
        assert_eq!(seeds.len(), 100);
    }
}
