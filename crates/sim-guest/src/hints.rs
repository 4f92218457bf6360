//! A table from integers to borrowed records.
//!
//! Why what the hardware answers is a reference that can be trusted: a process has one table, `STLTalloc` empties it and
//! refuses a second, only [`Hints`] makes one and it frees it when it goes; so every address in it was a `&'r R` of
//! this very `Hints`, and `'r` is still alive. The plugin answers nothing else, and so does a processor without it.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hardware::{self, Variant};

/// There is one table in a process.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The process has one.
    #[error("the process has a table already: there is one STLT, drop the other Hints first")]
    Exists,
    /// The simulator says no.
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
}

/// The process's STLT, as a table of records that live at least for `'r`. One thread's: the simulated core runs the
/// first one.
#[derive(Debug)]
pub struct Hints<'r, R> {
    /// Neither sent nor shared.
    records: PhantomData<(&'r R, *const ())>,
}

impl<'r, R> Hints<'r, R> {
    /// An empty table of `rows` rows, `ways` to a set. Without a simulator it stays empty.
    ///
    /// # Errors
    /// If there is one already, the shape is impossible (as far as a simulator is there to say so), or the page at
    /// the fixed address is taken.
    pub fn new(rows: u64, ways: u32, variant: Variant) -> Result<Hints<'r, R>, Refused> {
        if TAKEN.swap(true, Ordering::Acquire) {
            return Err(Refused::Exists);
        }
        let refused = if !hardware::has_mailbox() {
            Some(Refused::Mailbox)
        } else if hardware::is_simulated() && !hardware::request([1, rows, ways.into(), variant as u64, 0]) {
            Some(Refused::Shape { rows, ways })
        } else {
            None
        };
        match refused {
            Some(refused) => {
                TAKEN.store(false, Ordering::Release);
                Err(refused)
            }
            None => Ok(Hints { records: PhantomData }),
        }
    }

    /// `loadVA`: the record that the integer was inserted with, or that of another integer. The caller compares keys.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, integer: u64) -> Option<&'r R> {
        // SAFETY: `new` has opened the mailbox.
        let address = unsafe { hardware::load_va(integer) };
        // SAFETY: see the head of this file: it is null or was a `&'r R`.
        unsafe { std::ptr::with_exposed_provenance::<R>(address).as_ref() }
    }

    /// `insertSTLT`: where the integer's record is.
    #[inline(always)]
    pub fn insert(&mut self, integer: u64, record: &'r R) {
        // SAFETY: `new` has opened the mailbox.
        unsafe { hardware::insert_stlt(integer, std::ptr::from_ref(record).expose_provenance()) };
    }

    /// Forgets the integer's record.
    pub fn remove(&mut self, integer: u64) {
        // SAFETY: `new` has opened the mailbox.
        unsafe { hardware::insert_stlt(integer, 0) };
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

    /// One test, because there is one table.
    #[test]
    fn without_the_hardware_nothing_is_found_and_there_is_still_one_table() {
        let record = 7_u64;
        let mut hints = Hints::new(64, 4, Variant::Full).expect("the page is free");
        assert!(!hardware::is_simulated());
        hints.insert(5, &record);
        assert_eq!(hints.get(5), None);
        hints.remove(5);
        assert_eq!(Hints::<u64>::new(64, 4, Variant::Full).expect_err("a second"), Refused::Exists);
        drop(hints);
        assert!(Hints::<u64>::new(64, 4, Variant::VirtualOnly).is_ok());
    }
}
