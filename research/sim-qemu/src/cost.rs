//! What a run costs whoever makes it: seconds of a processor, phase by phase, and memory.
//!
//! ```text
//!   Meter::start ---- load ---- enter(Functional) ---- enter(Detailed) ---- enter(Measured) ---- finish
//!                               the seconds of this thread in between go to the phase that was entered
//! ```
//!
//! Seconds are those of the thread that simulates, so neighbours that take the processor away do not count; those who
//! take its caches do. The plugin keeps them for a guest under QEMU, whose code QEMU translates and runs on the same
//! thread; what runs programs of its own process keeps them the same way. They are no part of a measurement: that
//! repeats exactly, and they do not.

use std::fs;
use std::io;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::protocol::Phase;

/// What a run took.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Seconds of the phase in which nothing is simulated but the table in front.
    pub load: f64,
    /// Seconds without the clock.
    pub functional: f64,
    /// Seconds with the clock that are not measured.
    pub detailed: f64,
    /// Seconds of the windows.
    pub measured: f64,
    /// The most that the process had resident, in bytes; absent where the system does not tell.
    pub peak_bytes: Option<u64>,
}

impl Cost {
    /// Seconds of all phases.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.load + self.functional + self.detailed + self.measured
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_string(self)? + "\n")
    }

    /// Reads what [`Cost::write`] wrote.
    ///
    /// # Errors
    /// If the file cannot be read, or holds something else.
    pub fn read(path: &Path) -> io::Result<Cost> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }
}

/// Keeps the cost of a run that goes on, on the thread that started it.
#[derive(Debug)]
pub struct Meter {
    cost: Cost,
    phase: Phase,
    since: f64,
}

impl Meter {
    /// A run begins, with its load.
    #[must_use]
    pub fn start() -> Meter {
        Meter { cost: Cost::default(), phase: Phase::Load, since: own_seconds() }
    }

    /// Another phase begins.
    pub fn enter(&mut self, phase: Phase) {
        let now = own_seconds();
        *match self.phase {
            Phase::Load => &mut self.cost.load,
            Phase::Functional => &mut self.cost.functional,
            Phase::Detailed => &mut self.cost.detailed,
            Phase::Measured => &mut self.cost.measured,
        } += now - self.since;
        (self.phase, self.since) = (phase, now);
    }

    /// The run has ended.
    #[must_use]
    pub fn finish(mut self) -> Cost {
        self.enter(Phase::Load);
        Cost { peak_bytes: peak_bytes(), ..self.cost }
    }
}

/// Seconds of a processor that this thread has had.
fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most that this process has had resident.
fn peak_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Duration;

    use super::*;

    fn work(seconds: f64) {
        let until = own_seconds() + seconds;
        while own_seconds() < until {
            black_box(0);
        }
    }

    #[test]
    fn work_is_put_down_to_its_phase_and_waiting_to_none() {
        let mut meter = Meter::start();
        work(0.01);
        meter.enter(Phase::Functional);
        work(0.02);
        for _ in 0..2 {
            meter.enter(Phase::Detailed);
            std::thread::sleep(Duration::from_millis(50));
            meter.enter(Phase::Measured);
            work(0.02);
        }
        let cost = meter.finish();
        assert!((0.01..0.02).contains(&cost.load), "{cost:?}");
        assert!((0.02..0.03).contains(&cost.functional), "{cost:?}");
        assert!(cost.detailed < 0.01, "{cost:?}");
        assert!((0.04..0.06).contains(&cost.measured), "two windows: {cost:?}");
        let parts = cost.load + cost.functional + cost.detailed + cost.measured;
        assert_eq!(cost.seconds(), parts);
    }

    #[test]
    fn memory_that_was_touched_counts_even_if_it_is_gone() {
        let peak = || Meter::start().finish().peak_bytes.expect("Linux tells");
        let before = peak();
        let size = before as usize + (64 << 20);
        drop(black_box(vec![1_u8; size]));
        assert!(peak() >= size as u64, "{} of {size}", peak());
    }

    #[test]
    fn it_survives_being_written_down() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("cost.json");
        let cost = Cost { load: 1.0, functional: 0.5, detailed: 0.25, measured: 3.0, peak_bytes: Some(7) };
        cost.write(&path).expect("written");
        assert_eq!(Cost::read(&path).expect("the same"), cost);
        fs::write(&path, "{\"load\": 1.0}").expect("written");
        assert!(Cost::read(&path).is_err());
    }
}
