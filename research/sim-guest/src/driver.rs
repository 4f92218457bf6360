//! The requests of a run, phase by phase, as `research/sim-qemu/guests/driver.hpp` makes them: the keys of 64 requests
//! are made ahead of them, as a server finds a buffer full of requests.

use crate::hardware::{Phase, enter};
use crate::in_front::InFront;
use crate::index::Index;
use crate::options::Options;
use crate::record::{Key, Record, key};

/// A request that inserts.
pub(crate) const SET: u32 = 1 << 31;
/// Requests whose keys are made at once: they stay in the first cache.
const GROUP: usize = 64;

/// An index with a table in front, whose records stand beside it, and the requests that are still to be made.
pub(crate) struct Driver<'o, 'r, I, F> {
    index: I,
    in_front: F,
    records: &'r [Record],
    inserted: u32,
    hits: u64,
    misses: u64,
    /// All that was read, added up.
    sum: u64,
    lost: u64,
    requests: &'o [u32],
}

impl<'o, 'r, I: Index, F: InFront<'r>> Driver<'o, 'r, I, F> {
    /// Performs all that the options ask for.
    ///
    /// # Errors
    /// If there are fewer requests, one could not be carried out, or a GET did not find its record.
    pub(crate) fn run(
        index: I,
        in_front: F,
        records: &'r [Record],
        options: &'o Options,
    ) -> Result<(), String> {
        let requests = &options.requests[..];
        let mut driver =
            Driver { index, in_front, records, inserted: 0, hits: 0, misses: 0, sum: 0, lost: 0, requests };
        for _ in 0..options.number("records", 0)? {
            driver.set()?;
        }
        driver.perform(options.number("load", 0)?)?;
        driver.index.settle();
        enter(Phase::Functional, 0, 0, 0);
        driver.perform(options.number("functional", 0)?)?;
        let (detailed, window) = (options.number("detailed", 0)?, options.number("window", 0)?);
        for _ in 0..options.number("windows", 1)? {
            enter(Phase::Detailed, 0, 0, 0);
            driver.perform(detailed)?;
            (driver.hits, driver.misses) = (0, 0);
            enter(Phase::Measured, 0, 0, 0);
            driver.perform(window)?;
            enter(Phase::Detailed, window, driver.hits, driver.misses);
        }
        enter(Phase::Load, 0, 0, 0);
        // Somebody must want it, or nothing is read.
        std::hint::black_box(driver.sum);
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
                    self.set()?;
                } else {
                    self.get(key);
                }
            }
        }
        Ok(())
    }

    /// Inserts the next record.
    fn set(&mut self) -> Result<(), String> {
        self.index.insert(self.inserted)?;
        self.inserted += 1;
        Ok(())
    }

    /// Reads the record of a key. The six lines of the SLB paper's Figure 4: ask the table, compare the key, or else
    /// search the index and tell the table.
    #[inline(always)]
    fn get(&mut self, key: &Key) {
        let record = match self.in_front.find(key) {
            Ok(record) => {
                self.hits += 1;
                record
            }
            Err(missed) => {
                self.misses += u64::from(F::IS_TABLE);
                let Some(number) = self.index.find(key) else {
                    self.lost += 1;
                    return;
                };
                let record = &self.records[number as usize];
                self.in_front.found(missed, number, record);
                record
            }
        };
        self.sum = self.sum.wrapping_add(record.sum());
    }
}
