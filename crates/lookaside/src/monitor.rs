//! The monitor: switches the table off where it does not pay, and on again where it does.
//!
//! STLT's performance guarantee (HPCA 2021, section III-F) asks for turning the table off and on now and then and
//! watching. Threads make trials of both ways ([`crate::monitor_sampler`]); here is what they found. The verdict is the
//! median of the last [`TRIALS`] trials of all threads, so a preempted one decides nothing; and going back takes a
//! larger advantage than staying.
//!
//! An index that looks up many keys together is quicker in batches by a factor that a table in front of it does not
//! have: there may be a gain in lookups one at a time and a loss in batches. So there is a verdict for each.
//!
//! While it is off, writes go on telling the table, so that it is never wrong when it comes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Trials that the verdict is the median of.
const TRIALS: usize = 7;
/// How much cheaper lookups must be with the table for it to be switched on again: 2 %. It is switched off for a
/// quarter of that.
const MARGIN: f64 = 0.02;

/// How lookups come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Single,
    Batch,
}

impl Call {
    pub(crate) const BOTH: [Call; 2] = [Call::Single, Call::Batch];

    /// Of so many lookups.
    #[inline(always)]
    pub(crate) fn of(lookups: u32) -> Call {
        if lookups > 1 { Call::Batch } else { Call::Single }
    }
}

/// What all threads share. Two of a thing are of lookups one at a time, and of those in batches.
#[derive(Debug)]
pub(crate) struct Monitor {
    watching: AtomicBool,
    pub(crate) off: [AtomicBool; 2],
    switches: AtomicU64,
    made: AtomicU64,
    /// Tables that began empty in another's place.
    begun: AtomicU64,
    /// Cost without the table by cost with it, of the last trials; the oldest first.
    gains: Mutex<[Vec<f64>; 2]>,
}

/// What the monitor has found.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether it watches at all.
    pub watching: bool,
    /// Whether lookups one at a time use the table.
    pub on: bool,
    /// Cost of such a lookup without the table by its cost with it, the median of the last trials; `None` before there
    /// were enough.
    pub gain: Option<f64>,
    /// Whether lookups in batches use the table.
    pub on_in_batches: bool,
    /// As `gain`, of lookups in batches.
    pub gain_in_batches: Option<f64>,
    /// Trials made.
    pub trials: u64,
    /// How often it has switched.
    pub switches: u64,
}

impl Monitor {
    pub(crate) fn new(watching: bool) -> Monitor {
        Monitor {
            watching: AtomicBool::new(watching),
            off: Default::default(),
            switches: AtomicU64::new(0),
            made: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            gains: Mutex::default(),
        }
    }

    /// Begins or ends watching. Who ends it leaves the table on.
    pub(crate) fn watch(&self, watching: bool) {
        // Under the lock, so that no trial that ends now has the last word. All relaxed: decisions, which threads
        // follow at their next block.
        let mut gains = self.gains.lock();
        self.watching.store(watching, Ordering::Relaxed);
        if !watching {
            self.off.iter().for_each(|off| off.store(false, Ordering::Relaxed));
        }
        gains.iter_mut().for_each(Vec::clear);
    }

    /// An empty table is in the place of the one that was judged.
    pub(crate) fn begins_anew(&self) {
        // As in `watch`. A thread in the middle of a trial sees the number before it says what it found.
        let mut gains = self.gains.lock();
        gains.iter_mut().for_each(Vec::clear);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let were_off = self.off.iter().filter(|off| off.swap(false, Ordering::Relaxed)).count();
        self.switches.fetch_add(were_off as u64, Ordering::Relaxed);
    }

    /// Tables that have begun empty in another's place, so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.watching.load(Ordering::Relaxed)
    }

    pub(crate) fn is_on(&self, call: Call) -> bool {
        !self.off[call as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let [gain, gain_in_batches] = self.gains.lock().each_ref().map(|gains| median(gains));
        Verdict {
            watching: self.watching.load(Ordering::Relaxed),
            on: self.is_on(Call::Single),
            gain,
            on_in_batches: self.is_on(Call::Batch),
            gain_in_batches,
            trials: self.made.load(Ordering::Relaxed),
            switches: self.switches.load(Ordering::Relaxed),
        }
    }

    /// Records a trial of such lookups, and says whether it agrees with the verdict as it now is.
    pub(crate) fn record(&self, call: Call, gain: f64) -> bool {
        let mut gains = self.gains.lock();
        if !self.is_watching() {
            return false;
        }
        let gains = &mut gains[call as usize];
        self.made.fetch_add(1, Ordering::Relaxed);
        if gains.len() == TRIALS {
            gains.remove(0);
        }
        gains.push(gain);
        let off = !self.is_on(call);
        let change = median(gains)
            .is_some_and(|gain| if off { gain > 1.0 + MARGIN } else { gain < 1.0 - MARGIN / 4.0 });
        if change {
            self.off[call as usize].store(!off, Ordering::Relaxed);
            self.switches.fetch_add(1, Ordering::Relaxed);
            // Those of the table in another state say nothing about this one.
            gains.clear();
            return true;
        }
        (gain < 1.0) == off
    }
}

fn median(gains: &[f64]) -> Option<f64> {
    let mut sorted = gains.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (sorted.len() >= TRIALS.div_ceil(2)).then(|| sorted[sorted.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whose trial ends as the watching does has no last word.
    #[test]
    fn nothing_is_switched_off_where_nobody_watches() {
        let monitor = Monitor::new(true);
        monitor.watch(false);
        for _ in 0..TRIALS {
            assert!(!monitor.record(Call::Single, 0.1) && !monitor.record(Call::Batch, 0.1));
        }
        let verdict = monitor.verdict();
        assert!(verdict.on && verdict.on_in_batches && verdict.trials == 0);
    }
}
