//! The Search Lookaside Buffer's two tables: the Cache Table, and the Log Table before its door.
//!
//! Wu, Ni, Jiang, "Search Lookaside Buffer: Efficient Caching for Index Data Structures", SoCC 2017, sections 3.2 and
//! 3.3.
//!
//! ```text
//!   find:   bucket of the hash -> slots with its tag -> full comparison -> warm the slot
//!   admit:  present? -> room? -> sampled, logged, hot? -> over the coldest of the bucket
//! ```
//!
//! The paper logs 5 % of the offers and admits the fourth of a key that its log remembers; so a key must be asked
//! for some eighty times before it enters a full table. The default admits every offer and lets the bucket's
//! counters decide who stays: a newcomer is the next victim unless it is asked for again. It needs no second table, one
//! line is written a miss instead of one in twenty, and the table is as good as it gets almost as soon as an ideal one
//! would be. Both are measured in research/experiments/slb-warm-up.toml.

use atomics::{AtomicU8, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;

use crate::bucket::{Bucket, SLOTS, Word, line, raise};
use crate::config::{Admission, Config, CreateError, lines_of};
use crate::index_id::IndexId;
use crate::lines::{self, Lines};
use crate::log_table::LogTable;
use crate::pointer::Pointer;
use crate::random::Random;

/// Attempts to change a slot that others are changing, before an offer is dropped.
const ATTEMPTS: usize = 4;

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Insertion {
    /// Not hot enough, as far as the table knows.
    Refused,
    /// Not a single place in the table was to be had without a fight: another thread was faster.
    Contended,
    /// It was there already.
    Present,
    /// It entered a free slot.
    Admitted,
    /// It entered the slot of the coldest, which was thrown out.
    Replaced,
}

/// The Cache Table, with its Log Table where admission needs one.
///
/// It knows hashes and pointers, and neither keys nor entries: it never follows a pointer and calls no user code but
/// `accept`, with no lock held. It may forget anything at any time; what it must not do is answer with a pointer that
/// has been cleared. Calls may come from any number of threads at once. That a pointer is not admitted after its entry
/// has been removed is the affair of [`crate::stripes`].
///
/// # What maps rely on
/// They follow the pointers that the table gives. So [`Slb::find`] and [`Slb::peek`] answer only with pointers that
/// were inserted with a hash of the same eight highest bits, which tell indexes apart: the whole 16-bit tag is
/// compared. And when [`Slb::clear`], [`Slb::vacate`] or [`Slb::forget`] has returned, a pointer inserted before is no
/// longer given for such a hash: a word is found in the bucket of its hash only, every slot of which they look at, and
/// slots are changed by compare and swap only.
#[derive(Debug)]
pub struct Slb {
    buckets: Lines<Bucket>,
    log: Option<Box<Log>>,
    /// A hit counts while its slot's counter is less than this.
    warmest: u32,
    config: Config,
    /// An offer is logged, or enters, if a random number is below this.
    sampled_below: u64,
}

/// What a hit needs of a table: for who can keep it from one lookup to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HitLines<'t> {
    buckets: &'t [Bucket],
    warmest: u32,
}

impl<'t> HitLines<'t> {
    /// As [`Slb::hit`].
    #[inline(always)]
    pub(crate) fn hit(
        self,
        hash: u64,
        random: &Random,
        accept: impl FnMut(Pointer) -> bool,
    ) -> Option<Pointer> {
        line(self.buckets, hash).hit(hash, self.warmest, random, accept)
    }

    /// What [`HitLines::hit`] would ask about first, nearly always the right one, and its counter.
    #[inline(always)]
    pub(crate) fn peek(self, hash: u64) -> Option<(Pointer, &'t AtomicU8)> {
        line(self.buckets, hash).peek(hash)
    }

    /// Counts a hit of what was peeked at with this hash, in its counter. As [`Slb::warm`].
    #[inline(always)]
    pub(crate) fn warm(self, hash: u64, counter: &AtomicU8, random: &Random) {
        if !raise(counter, self.warmest) {
            line(self.buckets, hash).overflow(counter, random);
        }
    }

    /// As [`Slb::prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch(self, hash: u64) {
        #[cfg(not(loom))]
        pages::prefetch(line(self.buckets, hash));
        #[cfg(loom)]
        let _ = hash;
    }
}

/// What admission by a log needs. There is none without the feature `paper`.
#[derive(Debug)]
struct Log {
    table: LogTable,
    /// What a key must have been logged more often than.
    threshold: usize,
    /// Slots in use: while some are free, everyone enters. Offers count what they fill, invalidations what they
    /// clear. In a line of its own: every hit reads what is beside it.
    filled: CachePadded<AtomicUsize>,
}

impl Log {
    /// Slots in use. What has just been filled may be cleared, and counted as that, before who has filled it counts it:
    /// then there seem to be fewer than none.
    fn in_use(&self) -> usize {
        let counted = self.filled.load(Ordering::Relaxed);
        usize::try_from(counted.cast_signed()).unwrap_or(0)
    }
}

impl Slb {
    /// An empty table.
    ///
    /// # Errors
    /// [`CreateError`]: no size that a table can have, or no memory.
    pub fn new(config: &Config) -> Result<Slb, CreateError> {
        config.check()?;
        let (log, sampling) = match config.admission {
            #[cfg(feature = "paper")]
            Admission::Logged { threshold, sampling } => {
                let size = config.size.saturating_mul(config.log_ratio);
                let table = LogTable::new(lines::map(lines_of(size)?, config.pages)?);
                let filled = CachePadded::new(AtomicUsize::new(0));
                (Some(Box::new(Log { table, threshold: threshold.into(), filled })), sampling)
            }
            Admission::Sampled { sampling } => (None, sampling),
        };
        Ok(Slb {
            buckets: lines::map(lines_of(config.size)?, config.pages)?,
            log,
            warmest: config.counters.warmest(),
            config: config.clone(),
            // Saturates: a share of one is u64::MAX.
            sampled_below: (sampling * (u64::MAX as f64)) as u64,
        })
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> &Bucket {
        line(&self.buckets, hash)
    }

    /// What a hit needs.
    #[inline(always)]
    pub(crate) fn lines(&self) -> HitLines<'_> {
        HitLines { buckets: &self.buckets, warmest: self.warmest }
    }

    /// Counts a slot that was free.
    #[inline]
    fn has_filled(&self) {
        if let Some(log) = &self.log {
            log.filled.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts slots off.
    #[inline]
    fn has_emptied(&self, slots: usize) {
        if let Some(log) = &self.log
            && slots > 0
        {
            log.filled.fetch_sub(slots, Ordering::Relaxed);
        }
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

    /// A pointer admitted with this hash that `accept` takes, and the slot that it is in; `accept` is asked about each
    /// one whose tag agrees.
    #[inline(always)]
    pub fn find(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<(usize, Pointer)> {
        self.bucket(hash).find(hash, accept)
    }

    /// What [`Slb::find`] would ask about first. Nearly always the right one.
    #[inline(always)]
    #[must_use]
    pub fn peek(&self, hash: u64) -> Option<(usize, Pointer)> {
        self.find(hash, |_| true)
    }

    /// Counts a hit of a slot that was found with this hash. It may hold another's entry by now, whose warmth this is
    /// not: a counter costs hits, never an answer.
    #[inline(always)]
    pub fn warm(&self, hash: u64, slot: usize, random: &Random) {
        self.bucket(hash).raise(slot, self.warmest, random);
    }

    /// [`Slb::find`], and the hit counted.
    #[inline(always)]
    pub fn hit(&self, hash: u64, random: &Random, accept: impl FnMut(Pointer) -> bool) -> Option<Pointer> {
        self.lines().hit(hash, random, accept)
    }

    /// Asks for the memory that a call with this hash will touch.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.lines().prefetch(hash);
    }

    /// Whether an offer with this hash is worth a lock. Counts it as an offer.
    pub fn wants(&self, hash: u64, random: &Random) -> bool {
        match &self.log {
            // Counted here, before the stripe is locked: the log is a line of its own.
            Some(log) => {
                log.in_use() < self.capacity()
                    || self.sampled(random) && log.table.append(hash) > log.threshold
            }
            None => self.sampled(random),
        }
    }

    /// Puts a wanted pointer in. The caller holds the stripe of `hash`.
    pub fn insert(&self, hash: u64, pointer: Pointer, random: &Random) -> Insertion {
        self.insert_by(hash, pointer, random, Bucket::exchange)
    }

    /// As [`Slb::insert`], for who is the only one to write: an exchange would wait for all loads before it, those of
    /// the search in the index among them.
    pub(crate) fn insert_alone(&self, hash: u64, pointer: Pointer, random: &Random) -> Insertion {
        self.insert_by(hash, pointer, random, |bucket, slot, _, new| {
            bucket.store(slot, new);
            true
        })
    }

    #[inline(always)]
    fn insert_by(
        &self,
        hash: u64,
        pointer: Pointer,
        random: &Random,
        put: impl Fn(&Bucket, usize, Word, Word) -> bool,
    ) -> Insertion {
        let (bucket, new) = (self.bucket(hash), Word::new(hash, pointer));
        let Config { counters, newcomer, .. } = self.config;
        for _ in 0..ATTEMPTS {
            let words: [Word; SLOTS] = std::array::from_fn(|slot| bucket.load(slot));
            if words.contains(&new) {
                return Insertion::Present;
            }
            let free = words.iter().position(|&word| word == Word::EMPTY);
            let slot = free.unwrap_or_else(|| bucket.coldest(counters, random));
            let old = words[slot];
            if put(bucket, slot, old, new) {
                if old == Word::EMPTY {
                    bucket.welcome(slot, newcomer, counters);
                    self.has_filled();
                    return Insertion::Admitted;
                }
                bucket.settle(slot, newcomer, counters);
                return Insertion::Replaced;
            }
        }
        Insertion::Contended
    }

    /// Forgets every pointer that has the tag of this hash: those of all its keys, and perhaps a few others. How many.
    pub fn clear(&self, hash: u64) -> usize {
        self.vacate(hash).0
    }

    /// As [`Slb::clear`], for a write that will put another pointer in with this hash; gives the first of the cleared
    /// slots as well, for [`Slb::fill`]. The caller holds the stripe of `hash`.
    pub(crate) fn vacate(&self, hash: u64) -> (usize, Option<usize>) {
        let bucket = self.bucket(hash);
        let (mut emptied, mut first) = (0, None);
        // Who holds the stripe sees every word of this tag, and meanwhile no other comes. One that has gone was thrown
        // out.
        for slot in 0..SLOTS {
            let mut word = bucket.load(slot);
            while word != Word::EMPTY && word.has_tag_of(hash) {
                if bucket.exchange(slot, word, Word::EMPTY) {
                    emptied += 1;
                    first = first.or(Some(slot));
                }
                word = bucket.load(slot);
            }
        }
        self.has_emptied(emptied);
        (emptied, first)
    }

    /// Puts a wanted pointer into a slot that [`Slb::vacate`] gave, or if another has come there, as [`Slb::insert`]
    /// does.
    pub(crate) fn fill(&self, slot: usize, hash: u64, pointer: Pointer, random: &Random) {
        // As warm as what it takes the place of.
        if self.bucket(hash).exchange(slot, Word::EMPTY, Word::new(hash, pointer)) {
            self.has_filled();
        } else {
            self.insert(hash, pointer, random);
        }
    }

    /// Forgets all pointers.
    pub fn reset(&mut self) {
        self.buckets.iter().for_each(Bucket::reset);
        if let Some(log) = &self.log {
            log.filled.store(0, Ordering::Relaxed);
        }
    }

    /// Forgets this pointer, admitted with this hash.
    pub fn forget(&self, hash: u64, pointer: Pointer) {
        let (bucket, word) = (self.bucket(hash), Word::new(hash, pointer));
        let slots = bucket.words().filter(|(_, found)| *found == word);
        self.has_emptied(slots.filter(|&(slot, _)| bucket.exchange(slot, word, Word::EMPTY)).count());
    }

    /// Pointers that it has room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buckets.len() * SLOTS
    }

    /// Pointers that it holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.buckets.iter().flat_map(Bucket::words).filter(|(_, word)| *word != Word::EMPTY).count()
    }

    /// The pointers of an index's warmest slots with their temperatures, warmest first, at most `most`. Walks over the
    /// table.
    #[must_use]
    pub fn hottest(&self, most: usize, id: IndexId) -> Vec<(Pointer, u8)> {
        let slots = self.buckets.iter().flat_map(|bucket| {
            let temperatures = bucket.temperatures();
            let own = bucket.words().filter(move |(_, word)| id.is_on(word.0));
            own.filter_map(move |(slot, word)| Some((word.pointer()?, temperatures[slot])))
        });
        warmest(slots, most)
    }

    /// Bytes of memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buckets.len() * 64 + self.log.as_ref().map_or(0, |log| log.table.bytes())
    }
}

#[cfg(test)]
impl Slb {
    /// Slots in use, by its own count; as they are where it keeps none.
    pub(crate) fn in_use(&self) -> usize {
        self.log.as_ref().map_or_else(|| self.occupancy(), |log| log.in_use())
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::config::CounterPolicy;

    /// Spread over all bits, as a hash is.
    fn hash(key: u64) -> u64 {
        let random = Random::new(key);
        random.next();
        random.next()
    }

    fn pointer(key: u64) -> Pointer {
        Pointer::new(0x10_0000 + key).unwrap()
    }

    /// As the faces do it.
    fn admit(table: &Slb, hash: u64, pointer: Pointer, random: &Random) -> Insertion {
        if table.wants(hash, random) { table.insert(hash, pointer, random) } else { Insertion::Refused }
    }

    fn holds(table: &Slb, hash: u64, pointer: Pointer) -> bool {
        table.find(hash, |found| found == pointer).is_some()
    }

    /// Hits it often.
    fn warm(table: &Slb, hash: u64, random: &Random) {
        (0..1000).for_each(|_| assert!(table.hit(hash, random, |_| true).is_some()));
    }

    /// Admits one key after the other until the table is full.
    fn fill(table: &Slb, random: &Random) -> u64 {
        let mut key = 0;
        while table.in_use() < table.capacity() {
            let outcome = admit(table, hash(key), pointer(key), random);
            assert!(outcome != Insertion::Refused && outcome != Insertion::Contended, "{outcome:?}");
            assert!(holds(table, hash(key), pointer(key)), "not throttled while the table is not full");
            key += 1;
        }
        assert_eq!(table.occupancy(), table.capacity());
        key
    }

    fn paper(size: usize, threshold: u8, sampling: f64) -> Config {
        Config::paper(size).admission(Admission::Logged { threshold, sampling })
    }

    #[test]
    fn a_hit_that_is_counted_late_costs_nothing_but_warmth() {
        let (table, random) = (Slb::new(&Config::with_size(64)).unwrap(), Random::new(5));
        assert_eq!(admit(&table, hash(1), pointer(1), &random), Insertion::Admitted);
        let (slot, _) = table.find(hash(1), |_| true).unwrap();
        let warmth = || table.bucket(hash(1)).temperatures()[slot];
        let before = warmth();
        table.warm(hash(1), slot, &random);
        assert_eq!(warmth(), before + 1);
        // It goes, and another comes, to whom the warmth is given.
        assert_eq!(table.clear(hash(1)), 1);
        assert_eq!(admit(&table, hash(2), pointer(2), &random), Insertion::Admitted);
        assert_eq!(table.find(hash(2), |_| true).unwrap(), (slot, pointer(2)));
        table.warm(hash(1), slot, &random);
        assert_eq!((warmth(), table.find(hash(1), |_| true)), (1, None));
        assert_eq!(table.find(hash(2), |_| true), Some((slot, pointer(2))));
    }

    #[test]
    fn an_owner_puts_in_what_others_do() {
        let [shared, owned] = [(); 2].map(|()| Slb::new(&Config::with_size(64 * 8)).unwrap());
        let randoms = [Random::new(5), Random::new(5)];
        for number in 0..1000 {
            let key = number * number % 317;
            let hits = [&shared, &owned].map(|table| table.hit(hash(key), &randoms[0], |_| true).is_some());
            assert_eq!(hits[0], hits[1], "of key {key}");
            let outcome = shared.insert(hash(key), pointer(key), &randoms[0]);
            assert_eq!(owned.insert_alone(hash(key), pointer(key), &randoms[1]), outcome);
            assert!(holds(&owned, hash(key), pointer(key)));
        }
        assert_eq!((shared.occupancy(), owned.occupancy()), (56, 56));
    }

    #[test]
    fn what_takes_the_place_of_another_is_as_warm() {
        let (table, random) = (Slb::new(&Config::paper(64)).unwrap(), Random::new(5));
        assert_eq!(admit(&table, hash(1), pointer(1), &random), Insertion::Admitted);
        warm(&table, hash(1), &random);
        let temperatures = table.bucket(hash(1)).temperatures();
        let (cleared, kept) = table.vacate(hash(1));
        assert_eq!((cleared, table.find(hash(1), |_| true)), (1, None));
        table.fill(kept.unwrap(), hash(1), pointer(2), &random);
        assert!(holds(&table, hash(1), pointer(2)));
        assert_eq!((table.bucket(hash(1)).temperatures(), table.in_use()), (temperatures, 1));
    }

    /// Its Table 2.
    #[test]
    fn tables_of_the_papers_sizes_have_the_papers_entries_and_tags() {
        for (mebibytes, entries, tags) in
            [(16, 1_835_008, 15_728_640), (32, 3_670_016, 31_457_280), (64, 7_340_032, 62_914_560)]
        {
            let table = Slb::new(&Config::paper(mebibytes << 20)).unwrap();
            assert_eq!(table.capacity(), entries);
            assert_eq!(table.log.as_ref().unwrap().table.bytes() / 64 * crate::log_table::TAGS, tags);
            assert_eq!(table.bytes(), 5 * (mebibytes << 20));
        }
    }

    #[test]
    fn the_papers_table_lets_everyone_in_until_it_is_full_and_then_those_logged_more_than_thrice() {
        // All are sampled here, so that the log can be counted by hand.
        let (table, random) = (Slb::new(&paper(64 * 16, 3, 1.0)).unwrap(), Random::new(5));
        assert_eq!(table.capacity(), 7 * 16);
        assert_eq!(table.bytes(), 64 * 16 * 5, "the Log Table is four times the Cache Table");
        let fresh = fill(&table, &random);
        for key in fresh..fresh + 20 {
            for times in 1..=3 {
                let outcome = admit(&table, hash(key), pointer(key), &random);
                assert_eq!(outcome, Insertion::Refused, "offer {times}");
                assert!(!holds(&table, hash(key), pointer(key)));
            }
            assert_eq!(admit(&table, hash(key), pointer(key), &random), Insertion::Replaced, "the fourth");
            assert!(holds(&table, hash(key), pointer(key)));
        }
        assert_eq!(table.occupancy(), table.capacity());
    }

    #[test]
    fn a_removal_opens_the_papers_table_again() {
        let (table, random) = (Slb::new(&paper(64 * 4, 3, 1.0)).unwrap(), Random::new(5));
        let fresh = fill(&table, &random);
        let (gone, _) =
            (0..fresh).map(|key| (key, holds(&table, hash(key), pointer(key)))).find(|it| it.1).unwrap();
        assert!(table.clear(hash(gone)) >= 1);
        assert!(table.in_use() < table.capacity());
        let outcome = admit(&table, hash(fresh), pointer(fresh), &random);
        assert!(matches!(outcome, Insertion::Admitted | Insertion::Replaced), "{outcome:?}");
    }

    #[test]
    fn five_percent_of_the_offers_are_logged_and_a_key_enters_after_some_eighty() {
        let (table, random) = (Slb::new(&Config::paper(64 * 64)).unwrap(), Random::new(5));
        let fresh = fill(&table, &random);
        let mut offers = 0u64;
        let keys = 400;
        for key in fresh..fresh + keys {
            // The fourth that is sampled: 4 / 0.05 on average.
            while admit(&table, hash(key), pointer(key), &random) == Insertion::Refused {
                offers += 1;
            }
        }
        let mean = offers as f64 / keys as f64;
        assert!((70.0..90.0).contains(&mean), "{mean} offers a key");
    }

    #[test]
    fn a_threshold_of_none_admits_what_is_sampled() {
        let (table, random) = (Slb::new(&paper(64 * 64, 0, 0.25)).unwrap(), Random::new(5));
        let fresh = fill(&table, &random);
        let admitted = (fresh..fresh + 10_000)
            .filter(|&key| admit(&table, hash(key), pointer(key), &random) == Insertion::Replaced)
            .count();
        assert!((2300..2700).contains(&admitted), "{admitted}");
    }

    #[test]
    fn the_default_admits_everyone_over_the_coldest() {
        let (table, random) = (Slb::new(&Config::with_size(64)).unwrap(), Random::new(5));
        assert_eq!((table.capacity(), table.bytes()), (7, 64), "no log");
        for key in 0..7 {
            assert_eq!(admit(&table, hash(key), pointer(key), &random), Insertion::Admitted);
        }
        // All but one are hit.
        for key in (0..7).filter(|&key| key != 4) {
            warm(&table, hash(key), &random);
        }
        assert_eq!(admit(&table, hash(7), pointer(7), &random), Insertion::Replaced);
        assert!(!holds(&table, hash(4), pointer(4)), "the coldest went");
        assert!((0..8).filter(|&key| key != 4).all(|key| holds(&table, hash(key), pointer(key))));
    }

    #[test]
    fn a_share_of_the_offers_can_be_chosen_without_a_log() {
        let config = Config::with_size(64 * 1024).admission(Admission::Sampled { sampling: 0.1 });
        let (table, random) = (Slb::new(&config).unwrap(), Random::new(5));
        let admitted = (0..10_000).filter(|&key| table.wants(hash(key), &random)).count();
        assert!((850..1150).contains(&admitted), "{admitted}");
    }

    #[test]
    fn what_is_there_is_not_put_in_twice() {
        for config in [Config::paper(64), Config::with_size(64)] {
            let (table, random) = (Slb::new(&config).unwrap(), Random::new(5));
            assert_eq!(admit(&table, hash(1), pointer(1), &random), Insertion::Admitted);
            assert_eq!(admit(&table, hash(1), pointer(1), &random), Insertion::Present);
            assert_eq!(table.occupancy(), 1);
            assert_eq!(table.clear(hash(1)), 1);
            assert_eq!((table.occupancy(), table.in_use()), (0, 0));
        }
    }

    #[test]
    fn clearing_forgets_all_of_a_tag_and_nobody_else() {
        let (table, random) = (Slb::new(&Config::paper(64)).unwrap(), Random::new(5));
        let tag = |tag: u64, low: u64| tag << Pointer::BITS | low;
        for (key, hash) in [tag(7, 1), tag(7, 2), tag(8, 3), tag(7, 4), tag(0, 5)].into_iter().enumerate() {
            assert_eq!(admit(&table, hash, pointer(key as u64), &random), Insertion::Admitted);
        }
        assert_eq!(table.clear(tag(9, 1)), 0);
        assert_eq!(table.clear(tag(7, 99)), 3);
        assert!(holds(&table, tag(8, 3), pointer(2)) && holds(&table, tag(0, 5), pointer(4)));
        assert_eq!(table.clear(tag(0, 0)), 1, "empty slots are not counted");
        assert_eq!((table.occupancy(), table.in_use()), (1, 1));
    }

    #[test]
    fn forgetting_takes_out_one_pointer() {
        let (table, random) = (Slb::new(&Config::paper(64)).unwrap(), Random::new(5));
        let hash = 7 << Pointer::BITS;
        (0..3).for_each(|key| assert_eq!(admit(&table, hash, pointer(key), &random), Insertion::Admitted));
        table.forget(hash, pointer(1));
        table.forget(hash, pointer(9));
        table.forget(8 << Pointer::BITS, pointer(0));
        assert_eq!([0, 1, 2].map(|key| holds(&table, hash, pointer(key))), [true, false, true]);
        assert_eq!((table.occupancy(), table.in_use()), (2, 2));
    }

    #[test]
    fn an_update_does_not_cool_the_bucket() {
        let (table, random) = (Slb::new(&Config::with_size(64)).unwrap(), Random::new(5));
        for key in 0..7 {
            admit(&table, hash(key), pointer(key), &random);
            warm(&table, hash(key), &random);
        }
        let before = table.buckets[0].temperatures();
        assert!(before.iter().all(|&temperature| temperature > 2), "{before:?}");
        assert_eq!(table.clear(hash(3)), 1);
        table.insert(hash(3), pointer(103), &random);
        let after = table.buckets[0].temperatures();
        let changed: Vec<_> = (0..SLOTS).filter(|&slot| before[slot] != after[slot]).collect();
        assert_eq!(changed, [3], "{before:?} became {after:?}");
    }

    #[test]
    fn the_hottest_come_first() {
        let config = Config::with_size(64 * 8).counters(CounterPolicy::EveryHit).newcomer(1);
        let (table, random) = (Slb::new(&config).unwrap(), Random::new(5));
        for key in 0..20 {
            assert_eq!(admit(&table, hash(key), pointer(key), &random), Insertion::Admitted);
            (0..key).for_each(|_| assert!(table.hit(hash(key), &random, |_| true).is_some()));
        }
        let expected = |most: u64| -> Vec<_> {
            (0..20).rev().take(most as usize).map(|key| (pointer(key), key as u8 + 1)).collect()
        };
        for most in [0, 1, 3, 20, 100] {
            assert_eq!(table.hottest(most as usize, IndexId::new(0, 0)), expected(most));
        }
    }
}
