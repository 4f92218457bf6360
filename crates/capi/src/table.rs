//! The table of a buffer, chosen when it is made: the Search Lookaside Buffer's, or STLT-SW's.
//!
//! Rust chooses by type. C has one type of buffer, so here the choice is a value, and each operation looks at it: a branch that
//! is always the same for a buffer. `lookaside_inline.h` knows the lines of the Search Lookaside Buffer only and never asks.
//!
//! Rejected: a second set of functions for the second table. The protocol between index and buffer is the same for both.

use std::ops::Range;
use std::ptr::null;

use lookaside::{
    Config, CreateError, Emission, Mark, Parameters, Pointer, Random, Slb, Stlt, StltConfig, Table,
};

use crate::layout::Lines;

/// What an [`EitherTable`] is made from.
#[derive(Debug, Clone)]
pub(crate) enum EitherConfig {
    Slb(Config),
    Stlt(StltConfig),
}

/// One of the two.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for a buffer, and a box would be one more load for a hit"
)]
#[derive(Debug)]
pub(crate) enum EitherTable {
    Slb(Slb),
    Stlt(Stlt),
}

impl EitherTable {
    /// Where the lines are that `lookaside_inline.h` may read: nowhere, if it does not know them.
    pub(crate) fn lines(&self) -> Lines {
        match self {
            EitherTable::Slb(table) => {
                let (base, count) = table.raw_lines();
                Lines { base, count: count as u64 }
            }
            EitherTable::Stlt(_) => Lines { base: null(), count: 0 },
        }
    }
}

impl Parameters for EitherConfig {
    type Table = EitherTable;

    fn create(&self) -> Result<EitherTable, CreateError> {
        Ok(match self {
            EitherConfig::Slb(config) => EitherTable::Slb(config.create()?),
            EitherConfig::Stlt(config) => EitherTable::Stlt(config.create()?),
        })
    }

    fn with_size_of(&self, size: usize) -> EitherConfig {
        match self {
            EitherConfig::Slb(config) => EitherConfig::Slb(config.with_size_of(size)),
            EitherConfig::Stlt(config) => EitherConfig::Stlt(config.with_size_of(size)),
        }
    }
}

/// The same of whichever it is.
macro_rules! whichever {
    ($either:expr, $table:ident => $call:expr) => {
        match $either {
            EitherTable::Slb($table) => $call,
            EitherTable::Stlt($table) => $call,
        }
    };
}

// SAFETY: each does what both are known to do; which one it is never changes.
unsafe impl Table for EitherTable {
    type Config = EitherConfig;

    #[inline(always)]
    fn find(&self, hash: u64, accept: impl FnMut(Pointer) -> bool) -> Option<(usize, Pointer)> {
        whichever!(self, table => table.find(hash, accept))
    }

    #[inline(always)]
    fn peek(&self, hash: u64) -> Option<(usize, Pointer)> {
        whichever!(self, table => table.peek(hash))
    }

    fn counted(&self) -> u32 {
        whichever!(self, table => table.counted())
    }

    #[inline]
    fn warm(&self, hash: u64, slot: usize, random: &Random) {
        whichever!(self, table => table.warm(hash, slot, random));
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        whichever!(self, table => table.prefetch(hash));
    }

    fn wants(&self, hash: u64, random: &Random) -> bool {
        whichever!(self, table => table.wants(hash, random))
    }

    fn insert(&self, hash: u64, pointer: Pointer, random: &Random) -> Emission {
        whichever!(self, table => table.insert(hash, pointer, random))
    }

    fn clear(&self, hash: u64) -> usize {
        whichever!(self, table => table.clear(hash))
    }

    fn forget(&self, hash: u64, pointer: Pointer) {
        whichever!(self, table => table.forget(hash, pointer));
    }

    fn capacity(&self) -> usize {
        whichever!(self, table => table.capacity())
    }

    fn occupancy(&self) -> usize {
        whichever!(self, table => table.occupancy())
    }

    fn hottest(&self, most: usize, mark: Mark) -> Vec<(Pointer, u8)> {
        whichever!(self, table => table.hottest(most, mark))
    }

    fn bytes(&self) -> usize {
        whichever!(self, table => table.bytes())
    }

    fn filled(&self) -> Option<(usize, usize)> {
        whichever!(self, table => table.filled())
    }

    fn folded(&self, times: u32) -> Option<EitherTable> {
        Some(match self {
            EitherTable::Slb(table) => EitherTable::Slb(table.folded(times)?),
            EitherTable::Stlt(table) => EitherTable::Stlt(table.folded(times)?),
        })
    }

    fn copy_lines(&self, lines: Range<usize>, folded: &EitherTable) {
        match (self, folded) {
            (EitherTable::Slb(from), EitherTable::Slb(to)) => from.copy_lines(lines, to),
            (EitherTable::Stlt(from), EitherTable::Stlt(to)) => from.copy_lines(lines, to),
            (EitherTable::Slb(_), EitherTable::Stlt(_)) | (EitherTable::Stlt(_), EitherTable::Slb(_)) => {}
        }
    }
}
