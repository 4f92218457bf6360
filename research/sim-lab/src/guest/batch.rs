//! Sixteen lookups at a time: what the library's `get_many` does, and what a program could do with the instructions.
//!
//! ```text
//!   SLB:   for each key   integer, its line of the cache table     prefetch the line
//!          for each key   tag -> pointer                           prefetch the record's lines
//!          for each key   compare, count, read
//!   STLT:  for each key   integer, loadVA -> address               prefetch the record's lines
//!          for each key   compare, read
//! ```
//!
//! The rounds are the library's. Whatever a table in front does not answer so is looked up by itself afterwards, as if
//! it had come alone: the library asks the index for all of them together, and need not hash again. Tags are searched
//! and hits counted as in the SLB's paper, at each hit. Between the rounds, integers and addresses lie on the stack,
//! beside the keys.
//!
//! The paper's programs look up one key at a time. A window of 128 instructions holds a lookup and a part of the next,
//! as far as its branches are foreseen; prefetches make room for sixteen, in software and in hardware, where the STU
//! begins a `loadVA` every few cycles.

use super::CODE_PROGRAM;
use super::processor::{Pen, Processor};
use super::program::{BATCH, Program};
use super::registers::{INTEGER, QUERY, RECORD, WORD};

const CODE_BATCH: u64 = CODE_PROGRAM + 1024;
/// Of a query's line: its key, then its integer, and the address of its record.
const INTEGER_AT: u64 = 24;
const RECORD_AT: u64 = 32;

/// What a table in front has for a key.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    /// An SLB's slot.
    slot: usize,
    record: u32,
}

impl Program {
    /// Looks records up by their keys, sixteen at most, and reads them.
    pub(super) fn get_many<P: Processor>(&mut self, pen: &mut Pen<'_, P>, batch: &[u32]) {
        let mut candidates = [None; BATCH];
        let integers = self.ask(pen, batch, &mut candidates);
        if self.lookaside.is_some() {
            self.look_into_lines(pen, &integers[..batch.len()], &mut candidates);
        }
        let mut unanswered = Vec::new();
        for (number, &record) in batch.iter().enumerate() {
            pen.ask_query(number);
            let address = pen.query();
            pen.at(CODE_BATCH + 256).load(RECORD, QUERY, address + RECORD_AT, 8);
            pen.branch(&[RECORD], candidates[number].is_none(), CODE_BATCH + 512);
            let is_it = candidates[number].is_some_and(|candidate: Candidate| {
                let equal = self.records.compare(pen, candidate.record, self.records.key(record));
                pen.at(CODE_BATCH + 288).branch(&[WORD], !equal, CODE_BATCH + 512);
                equal
            });
            // The next key's line.
            pen.at(CODE_BATCH + 512).compute(QUERY, &[QUERY]);
            if !is_it {
                pen.store(QUERY, QUERY, address + RECORD_AT, 8);
                unanswered.push((number, record));
                continue;
            }
            if let (Some(lookaside), Some(candidate)) = (&mut self.lookaside, candidates[number]) {
                pen.at(CODE_BATCH + 304).load(INTEGER, QUERY, address + INTEGER_AT, 8);
                lookaside.count_hit(pen, integers[number], candidate.slot);
            }
            self.fast_path.hits += 1;
            self.read(pen, record);
        }
        for (number, record) in unanswered {
            pen.ask_query(number);
            self.get(pen, record);
        }
        pen.ask_query(0);
    }

    /// The first round: keys arrive, and each one's integer is made. An STLT says at once where its record is.
    fn ask<P: Processor>(
        &mut self,
        pen: &mut Pen<'_, P>,
        batch: &[u32],
        candidates: &mut [Option<Candidate>; BATCH],
    ) -> [u64; BATCH] {
        let mut integers = [0; BATCH];
        for (number, &record) in batch.iter().enumerate() {
            pen.ask_query(number);
            let key = self.begin(pen, record);
            self.make_integer(pen);
            integers[number] = self.integer_of(record, key);
            let address = pen.query();
            if let Some(lookaside) = &self.lookaside {
                lookaside.ask_for_line(pen, integers[number]);
                pen.at(CODE_BATCH + 64).store(INTEGER, QUERY, address + INTEGER_AT, 8);
            } else {
                pen.at(CODE_BATCH);
                let found = pen.load_va(RECORD, INTEGER, integers[number]);
                let wanted = found == self.records.target(record);
                let found = if wanted { Some(record) } else { self.records.at(found) };
                candidates[number] = found.map(|record| Candidate { slot: 0, record });
                pen.branch(&[RECORD], found.is_none(), CODE_BATCH + 192);
                self.ask_for_record(pen, candidates[number]);
            }
            pen.at(CODE_BATCH + 320).compute(QUERY, &[QUERY]);
            pen.branch(&[QUERY], number + 1 < batch.len(), CODE_PROGRAM);
        }
        integers
    }

    /// An SLB's second round: its lines have come.
    fn look_into_lines<P: Processor>(
        &mut self,
        pen: &mut Pen<'_, P>,
        integers: &[u64],
        candidates: &mut [Option<Candidate>; BATCH],
    ) {
        let Some(lookaside) = &self.lookaside else { return };
        for (number, &integer) in integers.iter().enumerate() {
            pen.ask_query(number);
            let address = pen.query();
            pen.at(CODE_BATCH + 128).load(INTEGER, QUERY, address + INTEGER_AT, 8);
            candidates[number] =
                lookaside.candidate(pen, integer).map(|(slot, record)| Candidate { slot, record });
            if candidates[number].is_none() {
                pen.at(CODE_BATCH + 160).compute(RECORD, &[]);
            }
            self.ask_for_record(pen, candidates[number]);
            pen.at(CODE_BATCH + 384).compute(QUERY, &[QUERY]);
            pen.branch(&[QUERY], number + 1 < integers.len(), CODE_BATCH + 128);
        }
    }

    /// Prefetches a candidate, whose address stands in [`RECORD`], and keeps the address for the last round.
    fn ask_for_record<P: Processor>(&self, pen: &mut Pen<'_, P>, candidate: Option<Candidate>) {
        let address = pen.query();
        pen.at(CODE_BATCH + 192).store(RECORD, QUERY, address + RECORD_AT, 8);
        if let Some(candidate) = candidate {
            self.records.ask_for(pen, candidate.record);
        }
    }
}
