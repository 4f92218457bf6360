//! What `include/lookaside_inline.h` reads by itself. Frozen: whoever changes anything here raises
//! [`LOOKASIDE_LAYOUT`], and code that was compiled for another layout is turned away when it asks for a session.
//!
//! ```text
//!   SLB ---> [ layout | others | mark | lines | mixes ]             one a handle
//!                                         |
//!                         [ pointer ] <---+                         one a buffer; replaced when it is resized
//!                              |
//!        [ base | count ] <----+
//!            |
//!            v
//!   [ slot 0 | slot 1 | ... | slot 6 | counters ]                   `count` lines of 64 bytes
//! ```
//!
//! * The caller's hash is *mixed* if `mixes` is not zero: exclusive-ored with [`MIX_WITH`], and twice *folded*, with
//!   [`MIX_BY`] and [`MIX_AGAIN_BY`]: multiplied to 128 bits, the halves exclusive-ored. Then its highest bits are
//!   replaced by the index's number: and-ed with `others`, or-ed with `mark`.
//! * The line of a hash is its low 32 bits times `count`, shifted right by 32.
//! * A slot is a word: the high 16 bits are those of the hash, the low 48 the entry's address. A slot whose address is
//!   zero is empty.
//! * Byte n of `counters`, counted from the low end, is the temperature of slot n.
//! * A hit adds one to its slot's temperature if that is less than the session's `warmest`; or, where that is 256, as
//!   it is if every hit counts, and the temperature 255, it takes one from another's that is not zero, if there is one.
//!
//! A lookup may be made in C between two turns of its session: [`lookaside_session`].

use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

use lookaside::{IndexId, Pointer, Slb, ThreadState};

use crate::refusal::fail;

/// The version of the layout that `lookaside_inline.h` knows.
pub const LOOKASIDE_LAYOUT: u32 = 8;

/// See the head of this module.
const MIX_WITH: u64 = 0x9e37_79b9_7f4a_7c15;
/// As above. Odd, with bits everywhere.
const MIX_BY: u64 = 0xd6e8_feb8_6659_fd93;
/// As above. Digits of pi, and odd.
const MIX_AGAIN_BY: u64 = 0x243f_6a88_85a3_08d3;

/// A hash that is good enough for the table, whatever the caller's was: that of an integer is often the integer itself,
/// and the table takes the line from the low bits, the tag from the high ones, and the stripe from ten bits of the tag.
///
/// Folded once, integers in a row are multiples of one number in each of these parts, and there are distances at which
/// those of any number lie close together: of layout 2, that did so, 128 neighbours lay in 13 of 64 lines, where 76 of
/// them had room.
#[inline(always)]
pub(crate) fn mix(hash: u64) -> u64 {
    fold(fold(hash ^ MIX_WITH, MIX_BY), MIX_AGAIN_BY)
}

#[inline(always)]
fn fold(number: u64, by: u64) -> u64 {
    let product = u128::from(number) * u128::from(by);
    product as u64 ^ (product >> 64) as u64
}

/// Slots of a line.
pub(crate) const SLOTS: usize = 7;

/// A line of the table.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Line {
    slots: [AtomicU64; SLOTS],
    /// The last is of no slot.
    counters: [AtomicU8; 8],
}

impl Line {
    /// The entry in a slot, if its tag is that of this hash. As lookaside_inline_entry().
    #[inline(always)]
    pub(crate) fn entry(&self, slot: usize, hash: u64) -> Option<Pointer> {
        // Acquire pairs with the release of the emission: the entry is seen as it was then. With the right tag, only
        // the address is left of the word; with another one, more than an address may have.
        Pointer::new(self.slots[slot].load(Ordering::Acquire) ^ (hash >> Pointer::BITS << Pointer::BITS))
    }

    /// Warms a slot that is less warm than `warmest`; false if another is to be cooled instead. As
    /// lookaside_inline_warm().
    #[inline(always)]
    pub(crate) fn warm(&self, slot: usize, warmest: u32) -> bool {
        let temperature = self.counters[slot].load(Ordering::Relaxed);
        if u32::from(temperature) >= warmest {
            return true;
        }
        if temperature < u8::MAX {
            self.counters[slot].store(temperature + 1, Ordering::Relaxed);
        }
        temperature < u8::MAX
    }
}

/// Where the lines are.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) base: *const u8,
    pub(crate) count: u64,
}

impl Lines {
    /// Those of this table.
    pub(crate) fn of(table: &Slb) -> Lines {
        let (base, count) = table.raw_lines();
        Lines { base, count: count as u64 }
    }

    /// The line of a hash.
    ///
    /// # Safety
    /// The table is there for as long as what is given.
    #[inline(always)]
    pub(crate) unsafe fn line<'t>(self, hash: u64) -> &'t Line {
        let line = ((hash & 0xffff_ffff) * self.count) >> 32;
        // SAFETY: less than `count`; lines are atomic words, of 64 bytes, and aligned to them; the caller's promise.
        unsafe { &*self.base.cast::<Line>().add(line as usize) }
    }
}

/// How a handle begins.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Prefix {
    layout: u64,
    others: u64,
    mark: u64,
    lines: *const AtomicPtr<Lines>,
    mixes: u64,
}

impl Prefix {
    pub(crate) fn new(mark: IndexId, lines: &AtomicPtr<Lines>, mixes: bool) -> Prefix {
        let number = mark.on(0);
        Prefix {
            layout: LOOKASIDE_LAYOUT.into(),
            others: mark.on(u64::MAX) ^ number,
            mark: number,
            lines,
            mixes: mixes.into(),
        }
    }

    /// The hash as the table is to see it.
    #[inline(always)]
    pub(crate) fn hash(&self, hash: u64) -> u64 {
        let even = if self.mixes == 0 { hash } else { mix(hash) };
        even & self.others | self.mark
    }
}

/// Whether a header is of this layout; keeps why not.
pub(crate) fn check_layout(layout: u32) -> bool {
    let known = layout == LOOKASIDE_LAYOUT;
    if !known {
        fail(format_args!(
            "compiled for layout {layout} of the buckets, but the library has layout {LOOKASIDE_LAYOUT}: \
             compile with its headers"
        ));
    }
    known
}

/// What a thread keeps for one buffer. `lookaside_inline.h` uses these fields; nobody else should.
///
/// A lookup first takes one from `left`. It asks the table if that is not below zero then. It does not if that is
/// LOOKASIDE_OFF to LOOKASIDE_OFF + 1024; otherwise it gives the one back, calls lookaside_turn(), and takes it again:
/// then it asks if `uses_table` is not zero. Of those that ask, `misses` are no hits.
#[repr(C)]
#[derive(Debug)]
pub struct lookaside_session {
    /// Lookups until the next turn; that and LOOKASIDE_OFF if they are not to ask the table.
    pub left: Cell<i32>,
    /// Whether lookups ask the table: the monitor's decision.
    pub uses_table: Cell<u32>,
    /// Lookups that were not answered, since the last turn.
    pub misses: Cell<u64>,
    /// A hit warms its slot while that is less warm than this; 256 if one that is as warm as can be cools another
    /// (LOOKASIDE_COUNT_EVERY_HIT).
    pub warmest: u32,
    /// Zero.
    pub reserved: u32,
    /// Where the header's own stream of random numbers is.
    pub random: Cell<u64>,
    /// In that of a lookaside_owned: where its lines are, and how many.
    pub base: Cell<*const u8>,
    /// See `base`.
    pub count: Cell<u64>,
    /// In that of a lookaside_owned: whether what is emitted enters at once, in the place of the coldest where there is
    /// no room, whose temperature is then taken from the others'.
    pub enters: u32,
    /// How warm it begins.
    pub newcomer: u32,
    /// Those that the header put into free slots, since the last turn.
    pub filled: Cell<u32>,
    /// And into the slots of others.
    pub replaced: Cell<u32>,
}

/// Where a session counts lookups down to that do not ask the table.
pub const LOOKASIDE_OFF: i32 = -1_073_741_824;

const _: () = {
    assert!(size_of::<usize>() == 8, "addresses of 48 bits need pointers of 64");
    assert!(size_of::<Prefix>() == 40 && std::mem::offset_of!(Prefix, mixes) == 32);
    assert!(size_of::<lookaside_session>() == 64 && std::mem::offset_of!(lookaside_session, replaced) == 60);
    assert!(size_of::<Line>() == 64 && std::mem::offset_of!(Line, counters) == 56);
    assert!(Pointer::BITS == 48 && ThreadState::TURN == 1024);
};

#[cfg(test)]
mod tests {
    use super::*;
    use lookaside::Buffer;
    use std::collections::HashSet;

    #[test]
    fn hashes_that_are_counters_or_addresses_spread_over_lines_stripes_and_tags() {
        for step in [1u64, 64, 4096, 1 << 32, 1 << 48] {
            let hashes: Vec<u64> = (0..4096u64).map(|n| mix(n.wrapping_mul(step))).collect();
            let distinct = |part: fn(&u64) -> u64| hashes.iter().map(part).collect::<HashSet<_>>().len();
            // Of 4096 thrown at random into 4096, 1024 and 65536 places: 2589, 1005 and 3971 expected.
            assert!(distinct(|hash| (hash & 0xffff_ffff) >> 20) > 2300, "lines, step {step}");
            assert!(distinct(|&hash| Buffer::stripe_of(hash) as u64) > 900, "stripes, step {step}");
            assert!(distinct(|hash| hash >> 48) > 3500, "tags, step {step}");
        }
    }

    /// What a table that has as many keys as it should has to hold: of two keys a line, thrown at random, one in 1,500
    /// has no room beside seven others.
    #[test]
    fn few_hashes_a_step_apart_have_room_in_a_small_table_whatever_the_step() {
        const LINES: u64 = 64;
        let odd = [1u64, 3, 5, 7, 24, 48, 100];
        let far = (0..=52).flat_map(|shift| odd.map(|step| step << shift));
        let steps: Vec<u64> = (1..=1000).chain(far).collect();
        let mut without = 0;
        for &step in &steps {
            let mut full = [0u32; LINES as usize];
            for n in 0..2 * LINES {
                let line = ((mix(n.wrapping_mul(step)) & 0xffff_ffff) * LINES) >> 32;
                full[line as usize] += 1;
            }
            let here: u32 = full.iter().map(|&keys| keys.saturating_sub(7)).sum();
            assert!(here <= 6, "{here} of {} without room, step {step}", 2 * LINES);
            without += here;
        }
        let keys = steps.len() as f64 * 2.0 * LINES as f64;
        assert!(f64::from(without) < keys / 1000.0, "{without} of {keys} without room");
    }
}
