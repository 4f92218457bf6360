//! Seeded random generators, one per thread.
//!
//! Everything here draws from a generator that the caller brings. This is the one that the project's experiments
//! bring: xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number generators", ACM TOMS 2021),
//! which costs a nanosecond, passes the usual batteries of tests, and can jump ahead, so that several threads draw
//! from one seed without ever meeting.

use rand::SeedableRng;

pub use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of `seed`. The same seed gives the same draws on every machine.
pub fn seeded(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// As many generators as wanted from one seed, each 2^128 draws behind the one before it.
///
/// ```
/// use lookaside_workload::generator;
/// use rand::Rng;
///
/// let mut threads: Vec<_> = generator::streams(1).take(2).collect();
/// assert_ne!(threads[0].next_u64(), threads[1].next_u64());
/// ```
pub fn streams(seed: u64) -> impl Iterator<Item = Xoshiro256PlusPlus> {
    std::iter::successors(Some(seeded(seed)), |previous| {
        let mut next = previous.clone();
        next.jump();
        Some(next)
    })
}
