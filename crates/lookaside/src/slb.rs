//! The Search Lookaside Buffer's two tables: the Cache Table, and the Log Table before its door.
//!
//! Wu, Ni, Jiang, "Search Lookaside Buffer: Efficient Caching for Index Data Structures", SoCC 2017, sections 3.2 and 3.3.
//!
//! ```text
//!   find:   bucket of the hash -> slots with its tag -> full comparison -> warm the slot
//!   emit:   present? -> room? -> sampled, logged, hot? -> over the coldest of the bucket
//! ```
//!
//! The paper logs 5 % of the emissions and admits the fourth of a key that its log remembers; so a key must be asked for
//! some eighty times before it enters a full table. The default admits every emission and lets the bucket's counters
//! decide who stays: a newcomer is the next victim unless it is asked for again. It needs no second table, one line
//! is written a miss instead of one in twenty, and the table is as good as it gets almost as soon as an ideal one would
//! be. Both are measured in experiments/slb-warm-up.toml.

use atomics::{AtomicUsize, Ordering};

use crate::bucket::{Bucket, SLOTS};
use crate::config::{Admission, Config, CreateError, lines_of};
use crate::lines::{Lines, index};
use crate::log_table::LogTable;
use crate::random::Random;
use crate::table::{Emission, Parameters, Table};
use crate::word::{Pointer, Word};

/// Attempts to change a slot that others are changing, before an emission is dropped.
const ATTEMPTS: usize = 4;

/// The Cache Table, with its Log Table where admission needs one.
#[derive(Debug)]
pub struct Slb {
    buckets: Lines<Bucket>,
    log: Option<LogTable>,
    /// Slots in use. Emissions count what they fill, invalidations what they clear.
    filled: AtomicUsize,
    config: Config,
    /// An emission is logged, or enters, if a random number is below this.
    sampled_below: u64,
}

impl Slb {
    #[cfg(not(loom))]
    fn lines<L: pages::Zeroed>(lines: usize, config: &Config) -> Result<Lines<L>, CreateError> {
        Ok(Lines::map(lines, config.pages)?)
    }

    #[cfg(loom)]
    fn lines<L: Default>(lines: usize, _config: &Config) -> Result<Lines<L>, CreateError> {
        Ok((0..lines).map(|_| L::default()).collect())
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &Bucket {
        &self.buckets[index(hash, self.buckets.len())]
    }

    fn is_full(&self) -> bool {
        self.filled.load(Ordering::Relaxed) >= self.capacity()
    }

    fn sampled(&self, random: &Random) -> bool {
        self.sampled_below == u64::MAX || random.next() < self.sampled_below
    }

    /// The parameters that it was made with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The address and the number of the Cache Table's lines, for a hit path that is inlined elsewhere. Their layout is
    /// frozen: seven words of a 16-bit tag over a 48-bit pointer, and seven 1-byte counters.
    #[cfg(not(loom))]
    #[must_use]
    pub fn raw_lines(&self) -> (*const u8, usize) {
        (self.buckets.as_ptr().cast(), self.buckets.len())
    }
}

impl Parameters for Config {
    type Table = Slb;

    fn create(&self) -> Result<Slb, CreateError> {
        self.check()?;
        let (log, sampling) = match self.admission {
            Admission::Logged { sampling, .. } => {
                let size = self.size.saturating_mul(self.log_ratio);
                (Some(LogTable::new(Slb::lines(lines_of(size)?, self)?)), sampling)
            }
            Admission::Sampled { sampling } => (None, sampling),
        };
        Ok(Slb {
            buckets: Slb::lines(lines_of(self.size)?, self)?,
            log,
            filled: AtomicUsize::new(0),
            config: self.clone(),
            // Saturates: a share of one is u64::MAX.
            sampled_below: (sampling * (u64::MAX as f64)) as u64,
        })
    }

    fn with_size_of(&self, size: usize) -> Config {
        Config { size, ..self.clone() }
    }
}

impl Table for Slb {
    type Config = Config;

    #[inline(always)]
    fn find(&self, hash: u64, random: &Random, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.bucket(hash).find(hash, self.config.counters, random, accept)
    }

    #[inline(always)]
    fn peek(&self, hash: u64) -> Option<Pointer> {
        self.bucket(hash).peek(hash)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        #[cfg(not(loom))]
        pages::prefetch(self.bucket(hash));
        #[cfg(loom)]
        let _ = hash;
    }

    fn wants(&self, hash: u64, random: &Random) -> bool {
        match self.config.admission {
            // Counted here, before the stripe is locked: the log is a line of its own.
            Admission::Logged { threshold, .. } if self.is_full() => {
                self.sampled(random)
                    && self.log.as_ref().is_some_and(|log| log.append(hash) > usize::from(threshold))
            }
            Admission::Logged { .. } => true,
            Admission::Sampled { .. } => self.sampled(random),
        }
    }

    fn insert(&self, hash: u64, pointer: Pointer, random: &Random) -> Emission {
        let (bucket, new) = (self.bucket(hash), Word::new(hash, pointer));
        let Config { counters, newcomer, .. } = self.config;
        for _ in 0..ATTEMPTS {
            let mut free = None;
            for (slot, word) in bucket.words() {
                if word == new {
                    return Emission::Present;
                }
                if word == Word::EMPTY {
                    free = free.or(Some(slot));
                }
            }
            let slot = free.unwrap_or_else(|| bucket.coldest(counters, random));
            let old = if free.is_some() { Word::EMPTY } else { bucket.load(slot) };
            if bucket.exchange(slot, old, new) {
                bucket.settle(slot, newcomer, counters);
                if old == Word::EMPTY {
                    self.filled.fetch_add(1, Ordering::Relaxed);
                    return Emission::Admitted;
                }
                return Emission::Replaced;
            }
        }
        Emission::Contended
    }

    fn clear(&self, hash: u64) -> usize {
        let bucket = self.bucket(hash);
        let mut cleared = 0;
        for slot in 0..SLOTS {
            let mut word = bucket.load(slot);
            while word != Word::EMPTY && word.has_tag_of(hash) {
                if bucket.exchange(slot, word, Word::EMPTY) {
                    cleared += 1;
                }
                word = bucket.load(slot);
            }
        }
        self.filled.fetch_sub(cleared, Ordering::Relaxed);
        cleared
    }

    fn forget(&self, hash: u64, pointer: Pointer) {
        let (bucket, word) = (self.bucket(hash), Word::new(hash, pointer));
        let slots = bucket.words().filter(|(_, found)| *found == word);
        let cleared = slots.filter(|&(slot, _)| bucket.exchange(slot, word, Word::EMPTY)).count();
        if cleared > 0 {
            self.filled.fetch_sub(cleared, Ordering::Relaxed);
        }
    }

    fn capacity(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    fn occupancy(&self) -> usize {
        self.buckets.iter().flat_map(Bucket::words).filter(|(_, word)| *word != Word::EMPTY).count()
    }

    fn hottest(&self, most: usize) -> Vec<(Pointer, u8)> {
        let slots = self.buckets.iter().flat_map(|bucket| {
            let temperatures = bucket.temperatures();
            bucket.words().filter_map(move |(slot, word)| Some((word.pointer()?, temperatures[slot])))
        });
        warmest(slots, most)
    }

    fn bytes(&self) -> usize {
        self.buckets.len() * 64 + self.log.as_ref().map_or(0, LogTable::bytes)
    }
}

/// The `most` warmest of these, warmest first.
pub(crate) fn warmest(slots: impl Iterator<Item = (Pointer, u8)>, most: usize) -> Vec<(Pointer, u8)> {
    // Temperatures are a byte: a list for each, and the warmest lists one after the other.
    let mut by_temperature: [Vec<Pointer>; 256] = std::array::from_fn(|_| Vec::new());
    for (pointer, temperature) in slots {
        let list = &mut by_temperature[usize::from(temperature)];
        if list.len() < most {
            list.push(pointer);
        }
    }
    let lists = by_temperature.into_iter().enumerate().rev();
    lists.flat_map(|(degrees, list)| list.into_iter().map(move |at| (at, degrees as u8))).take(most).collect()
}
