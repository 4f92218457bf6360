//! The paper's hash functions (Table IV): what they make of a key, and what a processor does meanwhile.
//!
//! The numbers are the functions' own, so that what collides here collides there. The instructions are counted
//! off each function's definition for 24 bytes: loads of the words, and the chain that the next key's lookup
//! has to wait for, whose latencies are those of a multiplication (3), a long one (4), and one cycle for all else.

use twox_hash::{XxHash3_64, XxHash64};

use super::keys::BYTES;
use super::processor::{Pen, Processor};
use super::registers::{HASH, OTHER, QUERY, WORD};
use super::{CODE_HASH, Hash};

/// The hash of a key.
#[must_use]
pub(super) fn hash_of(hash: Hash, key: &[u8; BYTES]) -> u64 {
    match hash {
        Hash::Xxh3 => XxHash3_64::oneshot(key),
        Hash::Xxh64 => XxHash64::oneshot(0, key),
        Hash::Murmur => murmur(key),
        Hash::Djb2 => {
            key.iter().fold(5381, |hash: u64, &byte| hash.wrapping_mul(33).wrapping_add(byte.into()))
        }
        Hash::Sip => sip::<1, 2>(key, 0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908),
    }
}

/// Executes a hash of the query's key; it is in [`HASH`].
pub(super) fn execute_hash<P: Processor>(hash: Hash, pen: &mut Pen<'_, P>) {
    let code = CODE_HASH + ((hash as u64) << 12);
    let (back, query) = (pen.call(code), pen.query());
    match hash {
        // Two products of sixteen bytes each, folded, and a finaliser.
        Hash::Xxh3 => {
            for half in [0, 8] {
                pen.load(WORD, QUERY, query + half, 8).load(OTHER, QUERY, query + half + 8, 8);
                pen.compute(WORD, &[WORD]).compute(OTHER, &[OTHER]);
                pen.compute_for(4, WORD, &[WORD, OTHER]).compute(OTHER, &[WORD]);
                pen.compute(WORD, &[WORD, OTHER]);
                pen.compute(HASH, &[HASH, WORD]);
                if half == 0 {
                    pen.compute(HASH, &[WORD]);
                }
            }
            pen.chain(HASH, &[1, 1, 3, 1, 1]);
        }
        Hash::Xxh64 => {
            pen.compute(HASH, &[QUERY]);
            for word in 0..3 {
                pen.load(WORD, QUERY, query + 8 * word, 8);
                pen.compute_for(3, WORD, &[WORD]).compute(WORD, &[WORD]).compute_for(3, WORD, &[WORD]);
                pen.compute(HASH, &[HASH, WORD]).chain(HASH, &[1, 3, 1]);
            }
            pen.chain(HASH, &[1, 1, 3, 1, 1, 3, 1, 1]);
        }
        Hash::Murmur => {
            pen.compute(HASH, &[QUERY]);
            for word in 0..3 {
                pen.load(WORD, QUERY, query + 8 * word, 8);
                pen.compute_for(3, WORD, &[WORD]).chain(WORD, &[1, 1, 3]);
                pen.compute(HASH, &[HASH, WORD]).chain(HASH, &[3]);
            }
            pen.chain(HASH, &[1, 1, 3, 1, 1]);
        }
        // Byte by byte: a shift, two additions, a load, and the loop around them.
        Hash::Djb2 => {
            pen.compute(HASH, &[QUERY]);
            for byte in 0..BYTES as u64 {
                pen.at(code + 64).load(WORD, QUERY, query + byte, 1);
                pen.compute(OTHER, &[HASH]).compute(HASH, &[HASH, OTHER]).compute(HASH, &[HASH, WORD]);
                pen.branch(&[WORD], byte + 1 < BYTES as u64, code + 64);
            }
        }
        // Fourteen operations a round on four words; a round's longest path is of seven.
        Hash::Sip => {
            pen.chain(HASH, &[1; 4]);
            for block in 0..4 {
                if block < 3 {
                    pen.load(WORD, QUERY, query + 8 * block, 8);
                }
                pen.compute(HASH, &[HASH, WORD]);
                sip_round(pen);
                pen.compute(HASH, &[HASH, WORD]);
            }
            for _ in 0..2 {
                sip_round(pen);
            }
            pen.chain(HASH, &[1, 1, 1]);
        }
    }
    pen.return_to(back);
}

fn sip_round<P: Processor>(pen: &mut Pen<'_, P>) {
    for _ in 0..7 {
        pen.compute(HASH, &[HASH]).compute(OTHER, &[HASH]);
    }
}

/// MurmurHash64A of whole words, with the seed that libstdc++ gives it.
fn murmur(key: &[u8; BYTES]) -> u64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = 0xc70f_6907 ^ (BYTES as u64).wrapping_mul(MULTIPLIER);
    for word in words(key) {
        let word = word.wrapping_mul(MULTIPLIER);
        hash = (hash ^ (word ^ word >> 47).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 47
}

fn words(key: &[u8]) -> impl Iterator<Item = u64> {
    key.chunks_exact(8).map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)))
}

/// SipHash with `C` rounds for each word and `D` at the end, of a key of whole words.
fn sip<const C: usize, const D: usize>(key: &[u8], k0: u64, k1: u64) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let last = (key.len() as u64) << 56;
    for word in words(key).chain([last]) {
        v[3] ^= word;
        (0..C).for_each(|_| round(&mut v));
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..D).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::*;

    #[test]
    #[allow(deprecated)]
    fn sip_is_the_standard_library_s_with_its_rounds() {
        use std::hash::{Hasher, SipHasher};
        let keys = Keys::new(3);
        for record in 0..100 {
            let key = keys.key(record).bytes();
            let mut theirs = SipHasher::new_with_keys(7, 11);
            theirs.write(&key);
            assert_eq!(sip::<2, 4>(&key, 7, 11), theirs.finish());
        }
    }

    #[test]
    fn every_function_tells_keys_apart() {
        let keys = Keys::new(1);
        for hash in Hash::ALL {
            let mut seen: Vec<_> =
                (0..20_000).map(|record| hash_of(hash, &keys.key(record).bytes())).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), 20_000, "{}", hash.title());
        }
    }

    #[test]
    fn murmur_turns_half_of_the_bits_when_one_is_turned() {
        let key = Keys::new(1).key(1).bytes();
        let turned: u32 = (0..BYTES * 8)
            .map(|bit| {
                let mut other = key;
                other[bit / 8] ^= 1 << (bit % 8);
                (murmur(&key) ^ murmur(&other)).count_ones()
            })
            .sum();
        let mean = f64::from(turned) / (BYTES * 8) as f64;
        assert!((mean - 32.0).abs() < 2.0, "{mean}");
    }
}
