//! The search lookaside buffer: the software that the STLT is compared with. A model of it: the project's own library,
//! `crates/lookaside`, is compiled code, which a guest in this process cannot execute; under QEMU it is what the guests
//! have in front.
//!
//! Wu, Ni and Jiang, "Search Lookaside Buffer: Efficient Caching for Index Data Structures" (SoCC 2017), sections
//! 3.2 and 3.3, as the guest's own code:
//!
//! ```text
//!   cache table, a line:  7 tags of 2 bytes, 7 pointers of 6, 7 counters of 1
//!   log table, a line:    15 tags of 4 bytes in a ring, its head
//!
//!   hit:   compare the tags in turn, then the key; count (a byte that is full lowers another instead)
//!   miss:  after the slow path, where the line has room: enter
//!          else, one time in twenty: log the tag; the fourth time, replace the line's coldest pointer
//! ```
//!
//! Four fifths of the bytes are the log table's. The paper lets everyone in until the whole table is full; a table
//! that is found by hashes never is, so here it is the line that must be.
//!
//! The library as the paper has it (`Config::paper`) waits for the whole table, lets a newcomer begin with a count of
//! one and takes any of the coldest; it chooses lines, tags and samples by other bits. Of the same requests, both
//! answer as many to within one and a half of a hundred, whether the table holds a tenth of what is asked for or nearly
//! all: a test asks both. What the library's instructions are, and how it compares all tags of a line at once, only
//! QEMU shows.
//!
//! Of the log table only lines in use take memory here: the paper gives its largest table 10 GB for 10 M records.

use foldhash::HashMap;

use super::CODE_LOOKASIDE;
use super::heap::Heap;
use super::keys::{Key, mix};
use super::processor::{Pen, Processor};
use super::records::Records;
use super::registers::{COUNT, INTEGER, OTHER, RECORD, SLOT, TAG, WORD};

const WAYS: usize = 7;
const LOG_ENTRIES: usize = 15;
const LINE: u64 = 64;
/// Times that a tag must be in its log.
const THRESHOLD: usize = 4;
/// One miss in so many is logged, if the line is full.
const THROTTLE: u64 = 20;
/// Where pointers and counters begin in a line.
const POINTERS: u64 = 14;
const COUNTERS: u64 = 56;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    record: u32,
    tag: u16,
    counter: u8,
    used: bool,
}

/// The slots of a line: of the buffer's, as of the host's cache.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Slots([Slot; WAYS]);

const _: () = assert!(size_of::<Slots>() as u64 == LINE);

#[derive(Debug, Clone, Copy, Default)]
struct Log {
    tags: [u32; LOG_ENTRIES],
    head: u8,
}

/// The buffer.
#[derive(Debug, Clone)]
pub struct SearchLookaside {
    cache_address: u64,
    log_address: u64,
    lines: u64,
    log_lines: u64,
    cache: Vec<Slots>,
    log: HashMap<u64, Log>,
    draws: u64,
}

fn reduced(integer: u64, lines: u64) -> u64 {
    ((u128::from(integer) * u128::from(lines)) >> 64) as u64
}

fn tag_of(integer: u64) -> u16 {
    (integer >> 16) as u16
}

impl SearchLookaside {
    /// A buffer of so many bytes, of which a fifth holds pointers.
    #[must_use]
    pub fn new(heap: &mut Heap, bytes: u64) -> SearchLookaside {
        let lines = (bytes / LINE / 5).max(1);
        let log_lines = (bytes / LINE).saturating_sub(lines).max(1);
        SearchLookaside {
            cache_address: heap.allocate_table(lines * LINE).next_multiple_of(LINE),
            log_address: heap.allocate_table(log_lines * LINE).next_multiple_of(LINE),
            lines,
            log_lines,
            cache: vec![Slots::default(); lines as usize],
            log: HashMap::default(),
            draws: 0,
        }
    }

    /// Pointers that it has room for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.lines * WAYS as u64
    }

    /// Asks for the line of an integer, which will be looked up.
    pub(super) fn prefetch(&self, integer: u64) {
        pages::prefetch(&self.cache[reduced(integer, self.lines) as usize]);
    }

    /// Looks the integer of a key up: the record, its target in [`RECORD`].
    pub(super) fn find<P: Processor>(
        &mut self,
        pen: &mut Pen<'_, P>,
        records: &Records,
        integer: u64,
        query: Key,
    ) -> Option<u32> {
        let (line, at, record) = self.search(pen, integer, CODE_LOOKASIDE + 64, |pen, record| {
            let equal = records.compare(pen, record, query);
            pen.at(CODE_LOOKASIDE + 192).branch(&[WORD], !equal, CODE_LOOKASIDE + 80);
            equal
        })?;
        self.count(pen, line, at);
        Some(record)
    }

    /// Compares the tags of an integer's line in turn, by the code at `code`: the first slot with its tag that `is_it`
    /// accepts, with its line and its record, whose target is in [`RECORD`].
    fn search<P: Processor>(
        &self,
        pen: &mut Pen<'_, P>,
        integer: u64,
        code: u64,
        mut is_it: impl FnMut(&mut Pen<'_, P>, u32) -> bool,
    ) -> Option<(u64, usize, u32)> {
        let (line, address) = self.find_line(pen, integer);
        pen.compute(TAG, &[INTEGER]).compute(COUNT, &[]);
        for (at, slot) in self.cache[line as usize].0.into_iter().enumerate() {
            let matches = slot.used && slot.tag == tag_of(integer);
            pen.at(code).load(WORD, SLOT, address + 2 * at as u64, 2);
            pen.branch(&[WORD, TAG], matches, code + 64);
            if matches {
                let pointer = address + POINTERS + 6 * at as u64;
                pen.at(code + 64).load(RECORD, SLOT, pointer, 6).compute(RECORD, &[RECORD]);
                if is_it(pen, slot.record) {
                    return Some((line, at, slot.record));
                }
            }
            pen.at(code + 16).compute(COUNT, &[COUNT]);
            pen.branch(&[COUNT], at + 1 < WAYS, code);
        }
        None
    }

    /// The line of the integer that stands in [`INTEGER`], and its address, which is then in [`SLOT`].
    fn find_line<P: Processor>(&self, pen: &mut Pen<'_, P>, integer: u64) -> (u64, u64) {
        let line = reduced(integer, self.lines);
        pen.at(CODE_LOOKASIDE).compute_for(4, SLOT, &[INTEGER]).compute(SLOT, &[SLOT]);
        (line, self.cache_address + line * LINE)
    }

    /// Of a batch: prefetches the line of an integer.
    pub(super) fn ask_for_line<P: Processor>(&self, pen: &mut Pen<'_, P>, integer: u64) {
        let (_, address) = self.find_line(pen, integer);
        pen.prefetch(SLOT, address);
    }

    /// Of a batch: the first slot with the integer's tag, and its record, whose target is in [`RECORD`] then.
    pub(super) fn candidate<P: Processor>(&self, pen: &mut Pen<'_, P>, integer: u64) -> Option<(usize, u32)> {
        let (_, at, record) = self.search(pen, integer, CODE_LOOKASIDE + 320, |_, _| true)?;
        Some((at, record))
    }

    /// Of a batch: the candidate in this slot was the record that was asked for.
    pub(super) fn count_hit<P: Processor>(&mut self, pen: &mut Pen<'_, P>, integer: u64, at: usize) {
        let (line, _) = self.find_line(pen, integer);
        self.count(pen, line, at);
    }

    fn count<P: Processor>(&mut self, pen: &mut Pen<'_, P>, line: u64, at: usize) {
        let counters = self.cache_address + line * LINE + COUNTERS;
        let slots = &mut self.cache[line as usize].0;
        let full = slots[at].counter == u8::MAX;
        pen.load(OTHER, SLOT, counters + at as u64, 1).branch(&[OTHER], full, CODE_LOOKASIDE + 256);
        let mut written = at;
        if full {
            self.draws += 1;
            let others = (0..WAYS).cycle().skip(mix(self.draws) as usize % WAYS).take(WAYS);
            let lowered = others.into_iter().find(|&other| other != at && slots[other].counter > 0);
            pen.at(CODE_LOOKASIDE + 256).chain(OTHER, &[1; 8]);
            if let Some(other) = lowered {
                slots[other].counter -= 1;
                written = other;
            }
        } else {
            slots[at].counter += 1;
            pen.compute(OTHER, &[OTHER]);
        }
        pen.store(OTHER, SLOT, counters + written as u64, 1);
    }

    /// Tells the buffer of a record that the slow path has found; its target is in [`RECORD`].
    pub(super) fn emit<P: Processor>(&mut self, pen: &mut Pen<'_, P>, integer: u64, record: u32) {
        let line = reduced(integer, self.lines);
        let full = self.cache[line as usize].0.iter().all(|slot| slot.used);
        pen.at(CODE_LOOKASIDE + 512).load(WORD, SLOT, self.cache_address + line * LINE + COUNTERS + 7, 1);
        pen.branch(&[WORD], full, CODE_LOOKASIDE + 544);
        if full {
            self.draws += 1;
            let passed_over = !mix(self.draws).is_multiple_of(THROTTLE);
            pen.at(CODE_LOOKASIDE + 544).chain(OTHER, &[1, 1, 1, 1, 1, 1]);
            pen.branch(&[OTHER], passed_over, CODE_LOOKASIDE + 1024);
            if passed_over || self.log_tag(pen, integer) < THRESHOLD {
                return;
            }
        }
        let slots = &mut self.cache[line as usize].0;
        let coldest = (0..WAYS).min_by_key(|&at| (slots[at].used, slots[at].counter)).unwrap_or_default();
        slots[coldest] = Slot { record, tag: tag_of(integer), counter: 0, used: true };
        let address = self.cache_address + line * LINE;
        for at in 0..WAYS as u64 {
            pen.at(CODE_LOOKASIDE + 768).load(WORD, SLOT, address + COUNTERS + at, 1);
            pen.compute(COUNT, &[COUNT, WORD]).compute(COUNT, &[COUNT]);
            pen.branch(&[WORD], at + 1 < WAYS as u64, CODE_LOOKASIDE + 768);
        }
        let at = coldest as u64;
        pen.store(TAG, SLOT, address + 2 * at, 2).store(RECORD, SLOT, address + POINTERS + 6 * at, 6);
        pen.store(COUNT, SLOT, address + COUNTERS + at, 1);
    }

    /// Puts the integer's tag into its log: how often it is there now.
    fn log_tag<P: Processor>(&mut self, pen: &mut Pen<'_, P>, integer: u64) -> usize {
        // Another line than that of its neighbours in the cache table.
        let strewn = mix(integer);
        let line = reduced(strewn, self.log_lines);
        // Zero is an empty entry.
        let tag = (strewn as u32).max(1);
        let log = self.log.entry(line).or_default();
        log.tags[log.head as usize] = tag;
        let address = self.log_address + line * LINE;
        pen.at(CODE_LOOKASIDE + 576).chain(OTHER, &[3, 1, 1, 4, 1]).load(COUNT, OTHER, address + 60, 1);
        pen.compute(WORD, &[OTHER, COUNT]).store(OTHER, WORD, address + 4 * u64::from(log.head), 4);
        pen.compute(COUNT, &[COUNT]).store(COUNT, OTHER, address + 60, 1);
        log.head = (log.head + 1) % LOG_ENTRIES as u8;
        for at in 0..LOG_ENTRIES as u64 {
            pen.at(CODE_LOOKASIDE + 640)
                .load(WORD, OTHER, address + 4 * at, 4)
                .compute(COUNT, &[COUNT, WORD]);
            pen.branch(&[OTHER], at + 1 < LOG_ENTRIES as u64, CODE_LOOKASIDE + 640);
        }
        let count = log.tags.iter().filter(|&&other| other == tag).count();
        pen.branch(&[COUNT], count < THRESHOLD, CODE_LOOKASIDE + 1024);
        count
    }
}

#[cfg(test)]
mod tests {
    use lookaside::{Config, Pointer, Random, Slb};

    use super::super::hash::hash_of;
    use super::super::requests::{Request, Requests};
    use super::super::{Distribution, Form, Hash, Keys, Nobody};
    use super::*;

    /// The share of requests, in percent, that this buffer and the library's answer, once they are warm.
    fn hits(distribution: Distribution, keys: u32, lines: u64) -> (f64, f64) {
        let mut records = Records::new(Keys::new(1), Form::Plain, 64);
        for _ in 0..keys {
            records.create();
        }
        let mut own = SearchLookaside::new(records.heap(), 5 * LINE * lines);
        let library = Slb::new(&Config::paper((LINE * lines) as usize)).expect("a table");
        assert_eq!((own.capacity(), own.log_lines), (library.capacity() as u64, 4 * lines));
        assert_eq!(library.bytes() as u64, 5 * LINE * lines);
        let (random, mut nobody) = (Random::new(1), Nobody);
        let pen = &mut Pen::new(&mut nobody);
        let mut requests = Requests::new(distribution, keys, 1).expect("a distribution");
        // A full line admits who was asked for some eighty times: it takes long to be warm.
        let (warm_up, counted) = (1_000_000, 500_000);
        let mut hits = (0, 0);
        for request in 0..warm_up + counted {
            let Request::Get(record) = requests.next() else { continue };
            let (query, pointer) = (records.key(record), Pointer::new(records.target(record)));
            let integer = hash_of(Hash::Xxh3, &query.bytes());
            let found = own.find(pen, &records, integer, query);
            if found.is_none() {
                own.emit(pen, integer, record);
            }
            let pointer = pointer.expect("an address of a guest");
            let answered = library.hit(integer, &random, |candidate| candidate == pointer).is_some();
            if !answered && library.wants(integer, &random) {
                library.insert(integer, pointer, &random);
            }
            if request >= warm_up {
                hits.0 += u32::from(found == Some(record));
                hits.1 += u32::from(answered);
            }
        }
        let percent = |hits| 100.0 * f64::from(hits) / f64::from(counted);
        (percent(hits.0), percent(hits.1))
    }

    #[test]
    fn it_answers_as_many_requests_as_the_library() {
        for (distribution, lines) in [
            (Distribution::Zipf, 300),
            (Distribution::Zipf, 1_000),
            (Distribution::Zipf, 3_000),
            (Distribution::Plain, 1_000),
            (Distribution::Uniform, 3_000),
        ] {
            let (own, library) = hits(distribution, 20_000, lines);
            assert!(
                (own - library).abs() < 1.5,
                "{distribution:?}, {lines} lines: {own} % of the requests, the library {library} %"
            );
        }
    }
}
