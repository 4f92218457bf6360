//! A table from integers to borrowed records.
//!
//! Why what the hardware answers is a reference that can be trusted: a process has one table, `STLTalloc` empties it
//! and refuses a second, only [`Hints`] makes one and it frees it when it goes; so every address in it was a `&'r R`
//! of this very `Hints`, and `'r` is still alive. The plugin answers nothing else (what calls come to has another
//! word); and on a processor without it the table in software is this `Hints`' own.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use stlt_sw::Table;

use crate::hardware::{self, Answer, Variant};

/// There is one table in a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The process has one.
    #[error("the process has a table already: there is one STLT, drop the other Hints first")]
    Exists,
    /// No table can be so.
    #[error("{rows} rows in sets of {ways} are no STLT: rows are a power of two, sets 1, 2, 4 or 8 rows")]
    Shape {
        /// Asked for.
        rows: u64,
        /// Asked for.
        ways: u32,
    },
    /// The page that carries operands cannot be had.
    #[error("the page at 0x53540000 is taken: operands of the STLT's instructions go through it")]
    Mailbox,
    /// The simulated core runs the first thread.
    #[error("the simulated core runs the program's first thread: make the Hints there")]
    Thread,
    /// There is no memory for the table in software.
    #[error("no memory for {rows} rows of 16 bytes")]
    Memory {
        /// Asked for.
        rows: u64,
    },
}

/// The process's STLT, as a table of records that live at least for `'r`. One thread's: the simulated core runs the
/// first one.
#[derive(Debug)]
pub struct Hints<'r, R> {
    /// Where there is no such processor.
    software: Option<Table>,
    /// Neither sent nor shared.
    records: PhantomData<(&'r R, *const ())>,
}

impl<'r, R> Hints<'r, R> {
    /// An empty table of `rows` rows, `ways` to a set: the simulated processor's, or else one in software.
    ///
    /// # Errors
    /// If there is one already, the shape is impossible, the page at the fixed address is taken, memory is short, or
    /// this is not the thread that the simulated core runs.
    pub fn new(rows: u64, ways: u32, variant: Variant) -> Result<Hints<'r, R>, Refused> {
        if TAKEN.swap(true, Ordering::Acquire) {
            return Err(Refused::Exists);
        }
        let software = if !hardware::has_mailbox() {
            Err(Refused::Mailbox)
        } else if !hardware::is_simulated() {
            Table::new(rows, ways as usize).map(Some).map_err(|why| match why {
                stlt_sw::Refused::Shape => Refused::Shape { rows, ways },
                stlt_sw::Refused::Memory(_) => Refused::Memory { rows },
            })
        } else {
            match hardware::request([1, rows, ways.into(), variant as u64, 0]) {
                Answer::Done => Ok(None),
                Answer::Elsewhere => Err(Refused::Thread),
                Answer::Refused | Answer::Nobody => Err(Refused::Shape { rows, ways }),
            }
        };
        if software.is_err() {
            TAKEN.store(false, Ordering::Release);
        }
        Ok(Hints { software: software?, records: PhantomData })
    }

    /// `loadVA`: the record that the integer was inserted with, or that of another integer. The caller compares keys.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, integer: u64) -> Option<&'r R> {
        let address = match &self.software {
            // SAFETY: `new` has opened the mailbox.
            None => unsafe { hardware::load_va(integer) },
            Some(table) => usize::try_from(table.get(integer)?).ok()?,
        };
        // SAFETY: see the head of this file: it is null or was a `&'r R`.
        unsafe { std::ptr::with_exposed_provenance::<R>(address).as_ref() }
    }

    /// `insertSTLT`: where the integer's record is.
    #[inline(always)]
    pub fn insert(&mut self, integer: u64, record: &'r R) {
        let address = std::ptr::from_ref(record).expose_provenance();
        match &self.software {
            // SAFETY: `new` has opened the mailbox.
            None => unsafe { hardware::insert_stlt(integer, address) },
            Some(table) => table.insert(integer, address as u64),
        }
    }

    /// Forgets the integer's record.
    pub fn remove(&mut self, integer: u64) {
        match &self.software {
            // SAFETY: `new` has opened the mailbox.
            None => unsafe { hardware::insert_stlt(integer, 0) },
            Some(table) => table.remove(integer),
        }
    }
}

impl<R> Drop for Hints<'_, R> {
    fn drop(&mut self) {
        hardware::request([3, 0, 0, 0, 0]);
        TAKEN.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::with_table;

    /// With the same keys, in tables down to one set, of which only what is compared can tell them apart.
    fn two_indexes_do_not_find_each_other_s() {
        for rows in [8, 64, 1024] {
            let (first, second): (Vec<u64>, Vec<u64>) = (0..32).map(|key| (key, 1000 + key)).unzip();
            let mut hints = Hints::new(rows, 8, Variant::Full).expect("none is left");
            let integer = |key: u64, index| with_table(key.wrapping_mul(0x9e37_79b9_7f4a_7c15), index, 1);
            for (key, record) in (0..).zip(&first) {
                hints.insert(integer(key, 0), record);
            }
            assert!((0..32).all(|key| hints.get(integer(key, 1)) != Some(&key)), "{rows} rows");
            for (key, record) in (0..).zip(&second) {
                hints.insert(integer(key, 1), record);
                assert_eq!(hints.get(integer(key, 1)), Some(record));
                assert_ne!(hints.get(integer(key, 0)), Some(record), "{rows} rows");
            }
            let found = (0..32).filter(|&key| hints.get(integer(key, 0)) == Some(&key)).count();
            assert!(rows < 1024 || found > 24, "{found} of 32 are left");
        }
    }

    /// One test, because there is one table.
    #[test]
    fn without_the_hardware_there_is_one_table_in_software() {
        assert!(!hardware::is_simulated());
        for ways in [1, 2, 4, 8] {
            // Rows of 64 sub-integers and more sets than one.
            let records: Vec<u64> = (0..64).collect();
            let mut hints = Hints::new(1024, ways, Variant::Full).expect("the page is free");
            let integer = |record: u64| record << 12 | record;
            records.iter().for_each(|record| hints.insert(integer(*record), record));
            let found = records.iter().filter(|&record| hints.get(integer(*record)) == Some(record)).count();
            assert_eq!(found, 64, "{ways} ways");
            // The newer one, and then none.
            hints.insert(integer(5), &records[6]);
            assert_eq!(hints.get(integer(5)), Some(&6));
            hints.remove(integer(5));
            assert_eq!(hints.get(integer(5)), None);
            // What does not fit is forgotten, and nothing is made up.
            (0..100_000u64)
                .for_each(|n| hints.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &records[n as usize % 64]));
            let hit = |n: u64| {
                hints.get(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).is_some_and(|found| *found == n % 64)
            };
            let last = (0..100_000u64).filter(|&n| hit(n)).count();
            assert!((500..=3_000).contains(&last), "{last} of 1024 rows answer");
        }
        two_indexes_do_not_find_each_other_s();
        assert!(matches!(
            Hints::<u64>::new(1000, 4, Variant::Full),
            Err(Refused::Shape { rows: 1000, ways: 4 })
        ));
        assert!(matches!(Hints::<u64>::new(1024, 3, Variant::Full), Err(Refused::Shape { .. })));
        assert!(matches!(Hints::<u64>::new(1 << 60, 4, Variant::Full), Err(Refused::Memory { .. })));
        let record = 7_u64;
        let mut hints = Hints::new(64, 4, Variant::Full).expect("none is left");
        hints.insert(5, &record);
        assert_eq!(Hints::<u64>::new(64, 4, Variant::Full).expect_err("a second"), Refused::Exists);
        drop(hints);
        assert!(Hints::<u64>::new(64, 4, Variant::VirtualOnly).is_ok());
    }
}
