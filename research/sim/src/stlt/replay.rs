//! The table alone: what a program's lookups leave in it, without caches, TLBs or a clock.
//!
//! The paper warms its tables with 80 million requests. Almost all of that only matters to the table, whose rows
//! depend on the integers and addresses that it is given, in their order, and on nothing that a cache or a TLB
//! does. So a long warm-up is replayed first: the same `loadVA` and `insertSTLT`, done to the rows, their
//! counters, the STB, the IPB and the page table; then its end is simulated, which brings everything else to the
//! state in which it would be.
//!
//! [`Machine::replay_load_va`] says what is skipped.
//!
//! The same hits, misses and evictions are counted as by the instructions themselves.

use super::table::{ADDRESS_BITS, Table, Variant};
use crate::cache::Level;
use crate::machine::Machine;
use crate::page::Pte;
use crate::walker::OnFault;

impl Machine {
    /// What [`load_va`](Machine::load_va) does to the table and to the unit's buffers; the address that it gives.
    ///
    /// A long warm-up can so be replayed, its end be simulated. What a replay skips:
    ///
    /// * The caches, TLBs, paging-structure caches and prefetchers hear of nothing, neither of the table's lines nor
    ///   of the program's. Some hundred thousand simulated requests fill them: the largest hold as many lines.
    /// * Pages are mapped when a record in them is inserted, not when the program touches them first. Where frames
    ///   are given out in turn or at random, another page gets the frame: one draw of the layout instead of another.
    ///   A page that is withdrawn, and touched again by something other than an inserted record, is not known to be
    ///   there when the table is brought up to date: rows of its other records are freed then.
    pub fn replay_load_va(&mut self, integer: u64) -> u64 {
        self.look_up(integer).0
    }

    /// Asks for the lines of memory in which an integer's row would be, for a
    /// [`replay_load_va`](Machine::replay_load_va) or a [`load_va`](Machine::load_va) soon to come. Nothing that is
    /// simulated changes.
    #[inline]
    pub fn prefetch_row(&self, integer: u64) {
        if let Some(table) = &self.process.table {
            table.prefetch(integer);
        }
    }

    /// What [`insert_stlt`](Machine::insert_stlt) does to the table. The record's page is mapped if it is not: the
    /// program has read the record, though nobody saw it.
    pub fn replay_insert_stlt(&mut self, integer: u64, address: u64) {
        let Some(variant) = self.stlt().map(Table::variant) else { return };
        if address >> ADDRESS_BITS != 0 {
            self.stlt.counts.refused += 1;
            return;
        }
        let pte = match variant {
            Variant::Full if address != 0 => {
                self.process.walker.walk(address, OnFault::Map, |_| Level::L1).pte
            }
            Variant::Full | Variant::VirtualOnly | Variant::Software => Pte::NONE,
        };
        self.enter(integer, address, pte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Frames, mix};
    use crate::machine::AccessKind;
    use crate::profile::Profile;

    /// As the program's lookup has it, on the machine itself.
    fn simulated(machine: &mut Machine, integer: u64, record: u64) {
        let found = machine.load_va(integer).address;
        if found != 0 {
            machine.access(found, AccessKind::Load);
        }
        if found != record {
            machine.access(record, AccessKind::Load);
            machine.insert_stlt(integer, record);
        }
    }

    fn replayed(machine: &mut Machine, integer: u64, record: u64) {
        if machine.replay_load_va(integer) != record {
            machine.replay_insert_stlt(integer, record);
        }
    }

    #[test]
    fn the_table_and_its_buffers_are_as_after_a_simulation() {
        // More keys than rows, some of which collide whole; pages that go; records that are deleted.
        for (variant, ways) in [
            (Variant::Full, 4),
            (Variant::Full, 1),
            (Variant::Full, 8),
            (Variant::VirtualOnly, 2),
            (Variant::Software, 4),
        ] {
            let mut profile = Profile::stlt_paper();
            // Then a page's frame does not depend on who touches it when.
            profile.paging.frames = Frames::Identity {};
            profile.stlt.ipb = 4;
            let mut machines = [(); 2].map(|()| {
                let mut machine = Machine::new(&profile).expect("a legal profile");
                machine.stlt_alloc(1 << 9, ways, variant).expect("a legal table");
                machine
            });
            let record = |key: u64| 0x5555_0000_0000 + key * 192;
            for request in 0..60_000_u64 {
                // Half of the requests are for a tenth of the keys.
                let draw = mix(request);
                let key = (draw >> 1) % if draw & 1 == 0 { 200 } else { 2000 };
                let integer = mix(key) & 0xf_ffff;
                let [first, second] = &mut machines;
                simulated(first, integer, record(key));
                replayed(second, integer, record(key));
                if request % 199 == 0 {
                    let gone = record(mix(request ^ 7) % 2000);
                    first.unmap(gone..gone + 1);
                    second.unmap(gone..gone + 1);
                }
                if request % 997 == 0 {
                    first.insert_stlt(integer, 0);
                    second.replay_insert_stlt(integer, 0);
                }
            }
            let [first, second] = &machines;
            assert!(first.stlt() == second.stlt(), "{variant:?}, {ways} ways: rows, counters, draws");
            assert_eq!(first.stlt.stb, second.stlt.stb);
            assert_eq!(first.process.invalidated, second.process.invalidated);
            let counts = first.statistics().stlt;
            assert_eq!(counts, second.statistics().stlt, "{variant:?}, {ways} ways");
            assert!(counts.hits > 5_000 && counts.evicted > 5_000 && counts.removed > 10, "{counts:?}");
            let full = variant == Variant::Full;
            assert_eq!((counts.invalid > 0, counts.overflows > 10), (full, full), "{counts:?}");
            // And nobody else has heard of it, but for the kernel's own reads.
            let statistics = second.statistics();
            assert_eq!((statistics.data_tlb.total(), statistics.l1d.walk.total()), (0, 0));
        }
    }
}
