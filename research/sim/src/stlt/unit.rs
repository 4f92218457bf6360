//! The two instructions, and the system calls, on a machine (sections III-D to III-F, Figures 8 and 9).
//!
//! ```text
//!   loadVA integer
//!     read the integer's set, a line, or two for eight ways            load_cycles + reads + a cycle a further step
//!     no row with its sub-integer, or its page is in the IPB: 0
//!     put (page, entry) into the STB; raise the counter (a store)      the store is nobody's wait
//!     the row's address
//!
//!   insertSTLT integer, address
//!     translate the address; the walker gives up on a fault: done      insert_cycles + max(translation, reads)
//!     read the set, choose the row, write 16 bytes
//! ```
//!
//! * The table is at a physical address that CR_S holds, so reaching it needs no translation.
//! * A walk for `insertSTLT` fills no TLB: it is a hint, and the program's own access has just filled it.
//! * With virtual addresses only, neither the STB nor the IPB nor the walk is there. In the software-only
//!   form the same lines are reached by loads and stores of the program, translated like all others; the
//!   instructions around them are the window model's business.
//!
//! The kernel's side (section III-D1): rows are not searched when a page goes. Where it began goes into the IPB and
//! into the process's array, and `loadVA` answers with nothing from such a page. On a switch of contexts the IPB is
//! cleared, and it is filled again from the array when the process comes back: so the two hold the same, and the array
//! stands for both. When there is no room, or more pages go at once than would fit, rows whose page is concerned get
//! their current entry or are freed, and array and buffer begin anew; the kernel's time for it is counted. `STLTresize`
//! clears the table.

use serde::{Deserialize, Serialize};

use super::table::{ADDRESS_BITS, Found, Inserted, ROW_BYTES, Table, TableError, Variant};
use crate::cache::{LINE_SHIFT, Level, Request};
use crate::frames::process_base;
use crate::machine::{Access, AccessKind, Machine, TranslatedBy};
use crate::page::{PageSize, Pte};
use crate::profile::StltShape;
use crate::translation_buffer::TranslationBuffer;
use crate::walker::{OnFault, WalkReads};

/// Where a table lies: above all frames.
const TABLE_PHYSICAL: u64 = 1 << 50;
/// Where the kernel's array of withdrawn pages lies: above every table.
const ARRAY_PHYSICAL: u64 = TABLE_PHYSICAL + (1 << 49);
/// Rows of a line.
const ROWS_OF_LINE: u64 = (1 << LINE_SHIFT) / ROW_BYTES;
/// Where the software-only form lies in the program.
const TABLE_VIRTUAL: u64 = 0x6000_0000_0000;

/// What the unit counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StltCounts {
    /// `loadVA` found an address (whether of the right key, only the program knows).
    pub hits: u64,
    /// It found none.
    pub absent: u64,
    /// It found one in a page that is in the IPB.
    pub invalid: u64,
    /// `insertSTLT` into a free row.
    pub inserted: u64,
    /// Over the integer's own row.
    pub replaced: u64,
    /// Over another's.
    pub evicted: u64,
    /// Rows taken out.
    pub removed: u64,
    /// `insertSTLT` of an address that is not mapped, or too wide for a row.
    pub refused: u64,
    /// Pages put into the IPB.
    pub invalidations: u64,
    /// Times that it was full.
    pub overflows: u64,
    /// Rows that had to be changed then.
    pub scrubbed: u64,
}

impl StltCounts {
    pub(super) fn count(&mut self, inserted: Inserted) {
        *match inserted {
            Inserted::Free => &mut self.inserted,
            Inserted::Replaced => &mut self.replaced,
            Inserted::Evicted => &mut self.evicted,
        } += 1;
    }
}

/// The unit and its buffers; the table belongs to the process.
#[derive(Debug, Clone)]
pub(crate) struct StltUnit {
    pub(crate) shape: StltShape,
    pub(crate) stb: TranslationBuffer,
    pub(crate) counts: StltCounts,
}

impl StltUnit {
    pub(crate) fn new(shape: &StltShape) -> StltUnit {
        StltUnit {
            shape: *shape,
            stb: TranslationBuffer::new(shape.stb as usize),
            counts: StltCounts::default(),
        }
    }
}

/// What an instruction did to the table's lines: one or two reads, and perhaps a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TableAccesses {
    reads: [Option<Access>; 2],
    /// The write, if there was one.
    pub write: Option<Access>,
}

impl TableAccesses {
    /// The reads of the set.
    pub fn reads(&self) -> impl Iterator<Item = &Access> {
        self.reads.iter().flatten()
    }

    fn slowest_read(&self) -> u32 {
        self.reads().map(Access::latency).max().unwrap_or_default()
    }
}

/// Why `loadVA` answered as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadVaOutcome {
    /// A row matched.
    Hit,
    /// None did.
    Absent,
    /// One did, but its page is in the IPB.
    Invalid,
    /// There is no table.
    NoTable,
}

/// The result of `loadVA`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadVa {
    /// The record's address, or 0.
    pub address: u64,
    /// Why.
    pub outcome: LoadVaOutcome,
    /// What it read and wrote.
    pub accesses: TableAccesses,
    /// Whether the row's counter has risen.
    pub counted: bool,
    /// Cycles besides the slowest read: the unit's own, and the further steps of the scan.
    pub unit_cycles: u32,
    /// Cycles until the address is known, on an idle machine.
    pub latency: u32,
}

/// The result of `insertSTLT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InsertStlt {
    /// What was replaced; nothing if the hint was refused, or there is no table, or a row was taken out.
    pub inserted: Option<Inserted>,
    /// What it read and wrote.
    pub accesses: TableAccesses,
    /// What the walk for the address read.
    pub walk: WalkReads,
    /// Cycles of the translation.
    pub translation_cycles: u32,
    /// Cycles besides memory and the walk.
    pub unit_cycles: u32,
    /// Cycles until the row can be written, on an idle machine.
    pub latency: u32,
}

impl Machine {
    /// The running process's table.
    #[must_use]
    pub fn stlt(&self) -> Option<&Table> {
        self.process.table.as_ref()
    }

    /// `STLTalloc`: gives the running process an empty table of `rows` rows.
    ///
    /// # Errors
    /// If it has one, or the shape is impossible.
    pub fn stlt_alloc(&mut self, rows: u64, ways: u32, variant: Variant) -> Result<(), TableError> {
        if self.process.table.is_some() {
            return Err(TableError::Exists);
        }
        self.stlt_make(rows, ways, variant)
    }

    fn stlt_make(&mut self, rows: u64, ways: u32, variant: Variant) -> Result<(), TableError> {
        let base = match variant {
            Variant::Software => TABLE_VIRTUAL,
            Variant::Full | Variant::VirtualOnly => process_base(self.process.number) + TABLE_PHYSICAL,
        };
        self.process.table = Some(Table::new(rows, ways, variant, base, 1)?);
        self.forget_invalidated();
        Ok(())
    }

    /// `STLTresize`: the table has `rows` rows from now on, all free.
    ///
    /// The kernel clears the new table with stores that pass the caches by, as kernels clear large areas: as fast as
    /// memory's channel takes lines. The paper gives no number. Finding memory in one piece is not counted; the
    /// software-only form is the program's own to clear.
    ///
    /// # Errors
    /// If there is no table (then nothing changes), or the number is impossible (nor then).
    pub fn stlt_resize(&mut self, rows: u64) -> Result<(), TableError> {
        let table = self.process.table.as_ref().ok_or(TableError::Absent)?;
        let (ways, variant, before) = (table.ways(), table.variant(), table.rows());
        let first = table.set_address(0) >> LINE_SHIFT;
        self.stlt_make(rows, ways, variant)?;
        if variant != Variant::Software {
            let lines = |rows: u64| rows.div_ceil(ROWS_OF_LINE);
            self.caches.forget(first..first + lines(rows.max(before)));
            let channel = u64::from(self.profile.memory.cycles_per_line);
            self.kernel_cycles += lines(rows) * channel.max(ROWS_OF_LINE);
        }
        Ok(())
    }

    /// Brings the table up to date as if the IPB were full: no row then holds a translation that was withdrawn, and
    /// array and IPB are empty. A kernel that keeps no array would have to, whenever another process runs.
    pub fn stlt_update(&mut self) {
        self.overflow(Vec::new());
    }

    /// What it takes the kernel to put the process's array into the IPB when the process comes in: the array is read
    /// line by line, and each entry is an instruction.
    pub(crate) fn read_invalidated(&mut self) {
        let entries = self.process.invalidated.len() as u64;
        let first = (process_base(self.process.number) + ARRAY_PHYSICAL) >> LINE_SHIFT;
        for line in first..first + (8 * entries).div_ceil(1 << LINE_SHIFT) {
            let level = self.caches.access(line, Request::Load);
            self.kernel_cycles += u64::from(self.latencies.level[level as usize]);
        }
        self.kernel_cycles += entries;
    }

    /// `STLTfree`: takes the table away.
    ///
    /// # Errors
    /// If there is none.
    pub fn stlt_free(&mut self) -> Result<(), TableError> {
        self.process.table.take().ok_or(TableError::Absent)?;
        self.forget_invalidated();
        Ok(())
    }

    /// No row holds an old translation: neither buffer has anything to say.
    fn forget_invalidated(&mut self) {
        self.process.invalidated.clear();
        self.stlt.stb.clear();
    }

    fn table_access(&mut self, variant: Variant, address: u64, kind: AccessKind) -> Access {
        match variant {
            Variant::Software => self.access(address, kind),
            Variant::Full | Variant::VirtualOnly => self.access_physical(address, kind),
        }
    }

    fn read_set(&mut self, variant: Variant, first: u64, ways: u32) -> TableAccesses {
        let end = first + u64::from(ways) * ROW_BYTES;
        let mut accesses = TableAccesses::default();
        for (slot, address) in (first..end).step_by(1 << LINE_SHIFT).enumerate() {
            accesses.reads[slot] = Some(self.table_access(variant, address, AccessKind::Load));
        }
        accesses
    }

    /// Steps of a scan beyond the first.
    fn further_steps(&self, ways: u32) -> u32 {
        (ways * ROW_BYTES as u32).div_ceil(self.stlt.shape.path_bytes) - 1
    }

    /// `loadVA`: the address of the record that the integer was inserted with, or 0.
    pub fn load_va(&mut self, integer: u64) -> LoadVa {
        let shape = self.stlt.shape;
        let Some(table) = &self.process.table else {
            let accesses = TableAccesses::default();
            let outcome = LoadVaOutcome::NoTable;
            let unit_cycles = shape.load_cycles;
            return LoadVa {
                address: 0,
                outcome,
                accesses,
                counted: false,
                unit_cycles,
                latency: unit_cycles,
            };
        };
        // The host fetches the row while the set's lines are simulated, which do not depend on it.
        table.prefetch(integer);
        let (variant, ways, set) = (table.variant(), table.ways(), table.set_address(integer));
        let mut accesses = self.read_set(variant, set, ways);
        let (address, outcome, found) = self.look_up(integer);
        if let Some(found) = found {
            accesses.write = Some(self.table_access(variant, found.place, AccessKind::Store));
        }
        let counted = found.is_some_and(|found| found.counted);
        let unit_cycles = shape.load_cycles + self.further_steps(ways);
        let latency = unit_cycles + accesses.slowest_read();
        LoadVa { address, outcome, accesses, counted, unit_cycles, latency }
    }

    /// What `loadVA` does to the rows and to the STB: its answer, why, and the row that was found.
    pub(super) fn look_up(&mut self, integer: u64) -> (u64, LoadVaOutcome, Option<Found>) {
        let counts = &mut self.stlt.counts;
        let Some(table) = &mut self.process.table else { return (0, LoadVaOutcome::NoTable, None) };
        let Some(found) = table.load(integer) else {
            counts.absent += 1;
            return (0, LoadVaOutcome::Absent, None);
        };
        let (address, pte) = (found.row.address(), found.row.pte());
        if table.variant() == Variant::Full {
            if self.process.invalidated.contains(&pte.size().base(address)) {
                counts.invalid += 1;
                return (0, LoadVaOutcome::Invalid, Some(found));
            }
            self.stlt.stb.put(address, pte);
        }
        counts.hits += 1;
        (address, LoadVaOutcome::Hit, Some(found))
    }

    /// What `insertSTLT` does to the rows: the place of the row that was written, and what was there.
    pub(super) fn enter(&mut self, integer: u64, address: u64, pte: Pte) -> (Option<u64>, Option<Inserted>) {
        let counts = &mut self.stlt.counts;
        match &mut self.process.table {
            Some(table) if address == 0 => {
                let place = table.remove(integer);
                counts.removed += u64::from(place.is_some());
                (place, None)
            }
            Some(table) => {
                let (place, inserted) = table.insert(integer, address, pte);
                counts.count(inserted);
                (Some(place), Some(inserted))
            }
            None => (None, None),
        }
    }

    /// `insertSTLT`: remembers where the integer's record is. With the address 0, forgets it.
    pub fn insert_stlt(&mut self, integer: u64, address: u64) -> InsertStlt {
        let shape = self.stlt.shape;
        let mut result = InsertStlt {
            inserted: None,
            accesses: TableAccesses::default(),
            walk: WalkReads::default(),
            translation_cycles: 0,
            unit_cycles: shape.insert_cycles,
            latency: shape.insert_cycles,
        };
        let Some(table) = &self.process.table else { return result };
        table.prefetch(integer);
        let (variant, ways, set) = (table.variant(), table.ways(), table.set_address(integer));
        let mut pte = Pte::NONE;
        if address != 0 && variant == Variant::Full {
            let translated = self.translate_for_unit(address);
            pte = translated.pte;
            result.walk = translated.walk;
            result.translation_cycles = translated.cycles;
            debug_assert!(translated.by == TranslatedBy::Walk || pte.is_present());
        }
        if address >> ADDRESS_BITS != 0 || (address != 0 && variant == Variant::Full && !pte.is_present()) {
            self.stlt.counts.refused += 1;
            result.latency += result.translation_cycles;
            return result;
        }
        result.accesses = self.read_set(variant, set, ways);
        let (place, inserted) = self.enter(integer, address, pte);
        result.inserted = inserted;
        if let Some(place) = place {
            result.accesses.write = Some(self.table_access(variant, place, AccessKind::Store));
        }
        result.unit_cycles += self.further_steps(ways);
        result.latency = result.unit_cycles + result.translation_cycles.max(result.accesses.slowest_read());
        result
    }

    /// Tells the IPB of pages that were withdrawn; the page table no longer has them.
    pub(crate) fn invalidate_for_stlt(&mut self, gone: &[(u64, PageSize)]) {
        let full = self.process.table.as_ref().is_some_and(|table| table.variant() == Variant::Full);
        if !full || gone.is_empty() {
            return;
        }
        // Behind a host with smaller pages, a row's entry translates only a part of the guest's page.
        let host = self.profile.paging.nested.map_or(PageSize::Giant, |nested| nested.pages);
        let part = move |size: PageSize| size.min(host).bytes();
        let parts: u64 = gone.iter().map(|&(_, size)| size.bytes() / part(size)).sum();
        let all =
            || gone.iter().flat_map(|&(base, size)| (base..base + size.bytes()).step_by(part(size) as usize));
        let capacity = self.stlt.shape.ipb as usize;
        if parts > capacity as u64 {
            self.overflow(all().collect());
            return;
        }
        for page in all() {
            let known = self.process.invalidated.contains(&page);
            if self.process.invalidated.len() >= capacity && !known {
                self.overflow(all().collect());
            }
            self.stlt.counts.invalidations += 1;
            if !known {
                self.process.invalidated.push(page);
            }
        }
    }

    /// Brings the rows of the pages that the process's array names, and of `gone`, up to date with the page table;
    /// clears the array and the IPB.
    ///
    /// What it costs, the paper does not say, nor how the rows are found: nothing leads from a page to its rows, so
    /// here the kernel reads the whole table. It does so as fast as memory's channel gives lines, a row a cycle at
    /// best, through the caches, which lose what the program had there; for each row that is concerned it walks the
    /// page table, one read after the other, and writes the row.
    fn overflow(&mut self, gone: Vec<u64>) {
        self.stlt.counts.overflows += 1;
        let mut concerned = gone;
        concerned.append(&mut self.process.invalidated);
        concerned.sort_unstable();
        let Some(mut table) = self.process.table.take() else { return };
        let (first, lines) = (table.set_address(0) >> LINE_SHIFT, table.rows().div_ceil(ROWS_OF_LINE));
        let channel = u64::from(self.profile.memory.cycles_per_line);
        for line in first..first + lines {
            let level = self.caches.access(line, Request::Load);
            let transfer = if level == Level::Memory { channel } else { 0 };
            self.kernel_cycles += transfer.max(ROWS_OF_LINE);
        }
        let mut walks = 0;
        let (walker, caches) = (&mut self.process.walker, &mut self.caches);
        let latencies = self.latencies.level;
        let scrubbed = table.scrub(|place, row| {
            if concerned.binary_search(&row.pte().size().base(row.address())).is_err() {
                return row.pte();
            }
            let walked = walker.walk(row.address(), OnFault::GiveUp, |entry| {
                let level = caches.access(entry >> LINE_SHIFT, Request::Load);
                walks += u64::from(latencies[level as usize]);
                level
            });
            if walked.pte != row.pte() {
                caches.access(place >> LINE_SHIFT, Request::Store);
            }
            walked.pte
        });
        self.kernel_cycles += walks;
        self.stlt.counts.scrubbed += scrubbed;
        self.process.table = Some(table);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Level;
    use crate::profile::Profile;

    const RECORD: u64 = 0x5555_0000_1040;

    fn machine(ways: u32, variant: Variant) -> Machine {
        let mut machine = Machine::new(&Profile::stlt_paper()).expect("a legal profile");
        machine.stlt_alloc(1 << 16, ways, variant).expect("a legal table");
        machine
    }

    /// Touches so many other pages that no TLB knows the earlier ones.
    fn forget_translations(machine: &mut Machine) {
        for page in 0..8192 {
            machine.access(0x1_0000_0000 + page * 4096, AccessKind::Load);
        }
    }

    #[test]
    fn the_access_after_load_va_walks_no_page_table() {
        for (variant, expected) in [
            (Variant::Full, TranslatedBy::Stb),
            (Variant::VirtualOnly, TranslatedBy::Walk),
            (Variant::Software, TranslatedBy::Walk),
        ] {
            let mut machine = machine(4, variant);
            machine.access(RECORD, AccessKind::Load);
            assert_eq!(machine.insert_stlt(77, RECORD).inserted, Some(Inserted::Free));
            forget_translations(&mut machine);
            let loaded = machine.load_va(77);
            assert_eq!((loaded.address, loaded.outcome), (RECORD, LoadVaOutcome::Hit));
            assert_eq!(machine.access(RECORD + 8, AccessKind::Load).translated, expected, "{variant:?}");
            assert_eq!(machine.access(RECORD + 16, AccessKind::Load).translated, TranslatedBy::FirstTlb);
        }
    }

    #[test]
    fn latencies_are_those_of_table_iii() {
        for (ways, steps, lines) in [(1, 0, 1), (2, 1, 1), (4, 3, 1), (8, 7, 2)] {
            let mut machine = machine(ways, Variant::Full);
            machine.access(RECORD, AccessKind::Load);
            // Cold: 6 + the scan's further steps + a set in memory (40 + 120).
            let cold = machine.load_va(1 << 12);
            assert_eq!(cold.latency, 6 + steps + 160);
            assert_eq!(cold.accesses.reads().count(), lines);
            assert_eq!(cold.accesses.write, None);
            // Warm: 4 + steps + the slower of the first TLB (1) and the first cache (4).
            assert_eq!(machine.insert_stlt(1 << 12, RECORD).latency, 4 + steps + 4);
            let warm = machine.load_va(1 << 12);
            assert_eq!(warm.latency, 6 + steps + 4);
            assert_eq!(warm.accesses.write.map(|write| write.level), Some(Level::L1));
        }
    }

    #[test]
    fn an_address_that_is_not_mapped_is_not_inserted() {
        let mut machine = machine(4, Variant::Full);
        assert_eq!(machine.insert_stlt(5, 0x1234_5000).inserted, None);
        assert_eq!(machine.insert_stlt(5, 1 << 50).inserted, None);
        assert_eq!(machine.statistics().stlt.refused, 2);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Absent);
        assert_eq!(machine.statistics().page_faults, 0, "the simplified walker maps nothing");
    }

    #[test]
    fn an_invalidated_page_is_not_answered_and_a_new_mapping_is_conservative() {
        let mut machine = machine(4, Variant::Full);
        machine.access(RECORD, AccessKind::Load);
        machine.insert_stlt(5, RECORD);
        machine.load_va(5);
        assert_eq!(machine.unmap(RECORD..RECORD + 1), 1);
        // Between loadVA and the access the page went: the STB must not answer.
        assert_eq!(machine.access(RECORD, AccessKind::Load).translated, TranslatedBy::Walk);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Invalid);
        // It is mapped again, and inserted again; but the IPB still names the page.
        machine.insert_stlt(5, RECORD);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Invalid);
        let counts = machine.statistics().stlt;
        assert_eq!((counts.invalid, counts.invalidations, counts.overflows), (2, 1, 0));
    }

    #[test]
    fn an_overflow_brings_the_table_up_to_date() {
        let mut machine = machine(4, Variant::Full);
        let page = |n: u64| 0x7000_0000 + n * 4096;
        for n in 0..40 {
            machine.access(page(n), AccessKind::Load);
            machine.insert_stlt(n << 12, page(n));
        }
        for n in 0..32 {
            machine.unmap(page(n)..page(n) + 1);
        }
        assert_eq!(machine.statistics().stlt.overflows, 0);
        // Page 0 comes back, in another frame, before the buffer overflows.
        let frame = machine.access(page(0), AccessKind::Load).physical;
        machine.unmap(page(32)..page(32) + 1);
        let counts = machine.statistics().stlt;
        assert_eq!((counts.invalidations, counts.overflows), (33, 1));
        // 31 rows were freed by the scrub, and row 0 got its new frame; page 32 is the buffer's only one.
        assert_eq!(counts.scrubbed, 33, "that of page 32 too, which was unmapped already");
        assert_eq!(machine.load_va(0).outcome, LoadVaOutcome::Hit);
        forget_translations(&mut machine);
        machine.load_va(0);
        let again = machine.access(page(0), AccessKind::Load);
        assert_eq!((again.physical, again.translated), (frame, TranslatedBy::Stb));
        for n in 1..=32 {
            assert_eq!(machine.load_va(n << 12).outcome, LoadVaOutcome::Absent, "{n}");
        }
        assert_eq!(machine.load_va(33 << 12).outcome, LoadVaOutcome::Hit);
    }

    #[test]
    fn bringing_the_table_up_to_date_takes_the_kernel_time() {
        let mut machine = machine(4, Variant::Full);
        machine.access(RECORD, AccessKind::Load);
        machine.insert_stlt(5, RECORD);
        machine.unmap(RECORD..RECORD + 1);
        assert_eq!(machine.take_kernel_cycles(), 0, "there is room in the buffer");
        let pages = 0x9000_0000..0x9000_0000 + 40 * 4096;
        for page in pages.clone().step_by(4096) {
            machine.access(page, AccessKind::Load);
        }
        machine.unmap(pages);
        // A table of 1 MiB, of which a line is in the caches: the others come over the channel, 22 cycles each. One row
        // is concerned: a walk of four entries, wherever the scan has left them.
        let lines = (1 << 16) / 4;
        let scan = (lines - 1) * 22 + 4;
        let taken = machine.take_kernel_cycles();
        assert!((scan + 4 * 4..=scan + 4 * 160).contains(&taken), "{taken} cycles for {lines} lines");
        let counts = machine.statistics().stlt;
        assert_eq!((counts.overflows, counts.scrubbed), (1, 1));
        assert_eq!(machine.stlt().map(Table::used), Some(0));
    }

    #[test]
    fn a_part_of_a_large_page_is_withdrawn_whole_and_its_rest_stays() {
        let mut profile = Profile::stlt_paper();
        profile.paging.pages = PageSize::Large;
        let mut machine = Machine::new(&profile).expect("a legal profile");
        machine.stlt_alloc(1 << 10, 4, Variant::Full).expect("a legal table");
        let base = 0x4000_0000;
        let record = base + 0x10_0040;
        let before = machine.access(record, AccessKind::Load).physical;
        machine.insert_stlt(5, record);
        assert_eq!(machine.unmap(base..base + 0x1000), 1);
        // The row's translation was that of the large page: nobody may use it, though the bytes are where they were.
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Invalid);
        let access = machine.access(record, AccessKind::Load);
        assert_eq!((access.translated, access.physical), (TranslatedBy::Walk, before));
        machine.insert_stlt(5, record);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Hit, "of a small page now");
        assert_eq!(machine.entry(base), None);
        assert_eq!(machine.statistics().page_faults, 1);
    }

    #[test]
    fn new_rights_withdraw_a_translation_and_leave_the_page() {
        let mut machine = machine(4, Variant::Full);
        let before = machine.access(RECORD, AccessKind::Load).physical;
        machine.insert_stlt(5, RECORD);
        assert_eq!(machine.invalidate(RECORD - 0x40..RECORD + 1), 1);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Invalid);
        let access = machine.access(RECORD, AccessKind::Load);
        assert_eq!((access.translated, access.physical), (TranslatedBy::Walk, before));
        // The table is brought up to date: the row's entry is still right.
        for page in 1..=32_u64 {
            machine.access(RECORD + page * 4096, AccessKind::Load);
        }
        machine.invalidate(RECORD + 4096..RECORD + 33 * 4096);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Hit);
        let counts = machine.statistics().stlt;
        assert_eq!((counts.overflows, counts.scrubbed), (1, 0));
    }

    #[test]
    fn many_pages_at_once_are_one_overflow() {
        let mut machine = machine(4, Variant::Full);
        for n in 0..100 {
            machine.access(0x7000_0000 + n * 4096, AccessKind::Load);
            machine.insert_stlt(n << 12, 0x7000_0000 + n * 4096);
        }
        assert_eq!(machine.unmap(0x7000_0000..0x7000_0000 + 90 * 4096), 90);
        let counts = machine.statistics().stlt;
        assert_eq!((counts.overflows, counts.scrubbed), (1, 90));
        assert_eq!(machine.stlt().map(Table::used), Some(10));
    }

    #[test]
    fn another_process_sees_neither_table_nor_buffers_and_they_come_back() {
        let mut machine = machine(4, Variant::Full);
        machine.access(RECORD, AccessKind::Load);
        machine.insert_stlt(5, RECORD);
        machine.unmap(RECORD..RECORD + 1);
        machine.access(RECORD, AccessKind::Load);
        let mut other = machine.new_process(1);
        machine.switch_to(&mut other);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::NoTable);
        // The same page of another process was never invalidated.
        machine.stlt_alloc(1 << 10, 4, Variant::Full).expect("one each");
        machine.access(RECORD, AccessKind::Load);
        machine.insert_stlt(5, RECORD);
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Hit);
        machine.switch_to(&mut other);
        // The buffer was cleared by the switch and restored from the process's array.
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Invalid);
    }

    #[test]
    fn the_system_calls_say_what_is_wrong() {
        let mut machine = machine(4, Variant::Full);
        assert_eq!(machine.stlt_alloc(64, 4, Variant::Full), Err(TableError::Exists));
        machine.access(RECORD, AccessKind::Load);
        machine.insert_stlt(5, RECORD);
        assert_eq!(machine.stlt_resize(100), Err(TableError::Rows { rows: 100, ways: 4 }));
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Hit, "nothing changed");
        assert_eq!(machine.stlt_resize(128), Ok(()));
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::Absent, "resizing clears");
        assert_eq!(machine.stlt_free(), Ok(()));
        assert_eq!(machine.stlt_free(), Err(TableError::Absent));
        assert_eq!(machine.stlt_resize(64), Err(TableError::Absent));
        assert_eq!(machine.load_va(5).outcome, LoadVaOutcome::NoTable);
    }

    #[test]
    fn colliding_keys_cost_a_bounded_detour() {
        // Hash flooding: a thousand keys with one integer. Each lookup finds another key's record, never more
        // than that.
        let mut machine = machine(4, Variant::Full);
        for key in 0..1000 {
            let record = RECORD + key * 256;
            machine.access(record, AccessKind::Load);
            let loaded = machine.load_va(42);
            assert!(loaded.address == 0 || loaded.address == record - 256);
            machine.insert_stlt(42, record);
        }
        assert_eq!(machine.stlt().map(Table::used), Some(1));
        let detour = machine.load_va(42).latency + machine.insert_stlt(42, RECORD).latency;
        assert!(detour <= (6 + 3 + 4) + (4 + 3 + 7 + 4 * 160), "{detour}");
    }
}
