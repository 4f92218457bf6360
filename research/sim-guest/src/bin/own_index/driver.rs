//! The requests of a run, phase by phase, as `research/sim-qemu/guests/driver.hpp` makes them: the keys of 64 requests
//! are made ahead of them, as a server finds a buffer full of requests.

use sim_guest::{Phase, enter};

use crate::engine::Indexed;
use crate::in_front::InFront;
use crate::index::Index;
use crate::options::Options;
use crate::record::{Key, key};

/// A request that inserts.
pub(crate) const SET: u32 = 1 << 31;
/// Requests whose keys are made at once: they stay in the first cache.
const GROUP: usize = 64;

pub(crate) struct Driver<'o, I, F> {
    engine: Indexed<I, F>,
    requests: &'o [u32],
    lost: u64,
}

impl<'o, 'r, I: Index, F: InFront<'r>> Driver<'o, I, F> {
    /// Performs all that the options ask for.
    ///
    /// # Errors
    /// If there are fewer requests, one could not be carried out, or a GET did not find its record.
    pub(crate) fn run(engine: Indexed<I, F>, options: &'o Options) -> Result<(), String> {
        let mut driver = Driver { engine, requests: &options.requests, lost: 0 };
        for _ in 0..options.number("records", 0)? {
            driver.engine.set()?;
        }
        driver.perform(options.number("load", 0)?)?;
        driver.engine.settle();
        enter(Phase::Functional, 0, 0, 0);
        driver.perform(options.number("functional", 0)?)?;
        let (detailed, window) = (options.number("detailed", 0)?, options.number("window", 0)?);
        for _ in 0..options.number("windows", 1)? {
            enter(Phase::Detailed, 0, 0, 0);
            driver.perform(detailed)?;
            let before = driver.engine.tally();
            enter(Phase::Measured, 0, 0, 0);
            driver.perform(window)?;
            let after = driver.engine.tally();
            enter(Phase::Detailed, window, after.hits - before.hits, after.misses - before.misses);
        }
        enter(Phase::Load, 0, 0, 0);
        // Somebody must want it, or nothing is read.
        std::hint::black_box(driver.engine.sum());
        if driver.lost == 0 { Ok(()) } else { Err(format!("{} records were not found", driver.lost)) }
    }

    #[inline(never)]
    fn perform(&mut self, count: u64) -> Result<(), String> {
        let parts = usize::try_from(count).ok().and_then(|count| self.requests.split_at_checked(count));
        let (now, later) = parts.ok_or("there are fewer requests than phases ask for")?;
        self.requests = later;
        let mut keys: [Key; GROUP] = [[0; 24]; GROUP];
        for group in now.chunks(GROUP) {
            for (made, &request) in keys.iter_mut().zip(group) {
                *made = key((request & !SET).into());
            }
            for (key, &request) in keys.iter().zip(group) {
                if request & SET != 0 {
                    self.engine.set()?;
                } else if !self.engine.get(key) {
                    self.lost += 1;
                }
            }
        }
        Ok(())
    }
}
