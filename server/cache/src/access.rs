//! What changes in an item while others read it: when it was used last, and whether somebody has been told that it is
//! stale. One word of sixteen bits.
//!
//! ```text
//!   15                                2     1      0
//!  +-----------------------------------+-----+-------+
//!  | last access, in units of 4 s      | won | stale |
//!  +-----------------------------------+-----+-------+
//! ```
//!
//! *Last access* is the cache's second, its low sixteen bits without the lowest two. It wraps after 18 hours. So that
//! nobody takes an old item for a new one, housekeeping goes over all items every [`SWEEP`] seconds and
//! [holds](Access::hold) what is older than [`OLDEST`] there. What seems older than [`AHEAD`] was written by somebody
//! whose clock is ahead: sessions read the clock when they pin.
//!
//! A hit writes the word only if it is [`GRAIN`] seconds behind: memcached's grain. So a hot item's line stays clean.
//!
//! *Won* is set by whoever is the first to be told of a stale item, or of one that is about to expire, and is to fetch
//! it anew. It is one read-modify-write, so of several who ask at the same time exactly one wins. *Stale* is written
//! before the item is published, and does not change.
//!
//! No order is needed: nothing else is read by what this word says.

use atomics::{AtomicU16, Ordering};

const STALE: u16 = 1;
const WON: u16 = 2;
const FLAGS: u16 = STALE | WON;

/// Seconds that the last access is behind before a hit writes it.
pub(crate) const GRAIN: u16 = 60;
/// Seconds between two sweeps over all items.
pub(crate) const SWEEP: u32 = 4 * 60 * 60;
/// Seconds of age that an item is held at.
const OLDEST: u16 = 9 * 60 * 60;
/// An age of more seconds than this is that of an access to come: the longest age is what is a sweep and an hour older
/// than [`OLDEST`].
const AHEAD: u16 = u16::MAX - 2 * 60 * 60;
const _: () = assert!(OLDEST as u32 + SWEEP + 60 * 60 < AHEAD as u32);

/// A second as the word is compared with it: where that has its flags, this has ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick(u16);

impl Tick {
    #[inline]
    pub(crate) fn of(second: u32) -> Tick {
        Tick(second as u16 | FLAGS)
    }

    /// As it stands in the word.
    fn bits(self) -> u16 {
        self.0 & !FLAGS
    }
}

/// A value of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accessed(u16);

impl Accessed {
    /// An item that comes now.
    pub(crate) fn new(now: u32, stale: bool, won: bool) -> Accessed {
        Accessed(Tick::of(now).bits() | if stale { STALE } else { 0 } | if won { WON } else { 0 })
    }

    pub(crate) fn is_stale(self) -> bool {
        self.0 & STALE != 0
    }

    pub(crate) fn is_won(self) -> bool {
        self.0 & WON != 0
    }

    /// The same, accessed at another time.
    pub(crate) fn at(self, now: Tick) -> Accessed {
        Accessed(now.bits() | self.0 & FLAGS)
    }

    /// The second of the last access, as told at `now`: up to four seconds early, up to [`GRAIN`] late, and never
    /// longer ago than the word can say.
    pub(crate) fn second(self, now: u32) -> u32 {
        (now & !u32::from(FLAGS)).saturating_sub(u32::from(self.age(Tick::of(now))))
    }

    fn age(self, now: Tick) -> u16 {
        let age = now.bits().wrapping_sub(self.0 & !FLAGS);
        if age > AHEAD { 0 } else { age }
    }

    /// Whether a hit now is to be written: also if the access is one to come, which [`Access::note`] tells apart.
    #[inline]
    pub(crate) fn is_behind(self, now: Tick) -> bool {
        // The flags make it up to three less, and no less than none.
        now.0.wrapping_sub(self.0) >= GRAIN
    }
}

/// The word.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Access(AtomicU16);

impl Access {
    pub(crate) fn new(accessed: Accessed) -> Access {
        Access(AtomicU16::new(accessed.0))
    }

    #[inline]
    pub(crate) fn load(&self) -> Accessed {
        Accessed(self.0.load(Ordering::Relaxed))
    }

    /// Writes that the item is accessed now, if its last access is earlier.
    #[cold]
    pub(crate) fn note(&self, now: Tick) {
        self.move_to(now, |accessed| accessed.age(now) > 0);
    }

    /// Makes an item that is older than can be told for much longer as old as that.
    pub(crate) fn hold(&self, now: Tick) {
        let oldest = Tick(now.0.wrapping_sub(OLDEST));
        self.move_to(oldest, |accessed| accessed.age(now) > OLDEST);
    }

    /// Changes the time and leaves the flags: somebody may be winning meanwhile.
    fn move_to(&self, time: Tick, wanted: impl Fn(Accessed) -> bool) {
        let mut seen = self.load();
        while wanted(seen) {
            match self.0.compare_exchange(seen.0, seen.at(time).0, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => seen = Accessed(other),
            }
        }
    }

    /// Marks the item as won; true for the one who is the first.
    pub(crate) fn win(&self) -> bool {
        self.0.fetch_or(WON, Ordering::Relaxed) & WON == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Around every end of the word and of the clock.
    const SECONDS: [u32; 8] = [0, 1, 1000, 65_535, 65_536, 1 << 31, u32::MAX - 3, u32::MAX];

    #[test]
    fn an_access_is_told_to_within_four_seconds_for_eighteen_hours() {
        for now in SECONDS {
            for age in (0..u32::from(AHEAD) - 4).step_by(37) {
                let Some(then) = now.checked_sub(age) else { continue };
                for (stale, won) in [(false, false), (true, false), (false, true), (true, true)] {
                    let accessed = Accessed::new(then, stale, won);
                    assert_eq!((accessed.is_stale(), accessed.is_won()), (stale, won));
                    let told = accessed.second(now);
                    assert!(told <= then && then - told < 4, "{then} told as {told} at {now}");
                }
            }
        }
    }

    #[test]
    fn a_hit_is_written_when_it_is_a_minute_behind() {
        for now in SECONDS {
            for flags in 0..4u16 {
                for age in 0..200u16 {
                    let then = Tick::of(now).bits().wrapping_sub(age & !3);
                    let accessed = Accessed(then | flags);
                    assert_eq!(accessed.is_behind(Tick::of(now)), age & !3 >= GRAIN, "{age} at {now}");
                }
            }
        }
    }

    #[test]
    fn an_access_to_come_is_no_old_one() {
        let word = Access::new(Accessed::new(1008, true, false));
        assert_eq!(word.load().second(1003), 1000);
        word.note(Tick::of(1003));
        assert_eq!(word.load().second(1008), 1008, "a clock that is behind moves nothing");
        word.note(Tick::of(1100));
        assert_eq!(word.load(), Accessed::new(1100, true, false));
    }

    /// With sweeps in between, an item that nobody asks for never seems to be young.
    #[test]
    fn what_is_held_stays_old_for_ever() {
        for start in SECONDS {
            let word = Access::new(Accessed::new(start, false, true));
            let mut now = start;
            for sweep in 0..40 {
                let Some(next) = now.checked_add(SWEEP) else { break };
                let told = word.load().second(next);
                let least = (next - start).min(u32::from(OLDEST));
                assert!(next - told >= least, "sweep {sweep}: {} s old, not {least}", next - told);
                now = next;
                word.hold(Tick::of(now));
                assert!(word.load().is_won() && !word.load().is_stale());
            }
        }
    }
}
