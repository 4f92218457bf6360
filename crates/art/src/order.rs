//! The children of a node in order.
//!
//! Small nodes keep their bytes as they came ([`crate::node`]), so whoever wants their children in order sorts them:
//!
//! - *Node4 and Node16*: a byte's place is the number of bytes that are less, which is counted for all bytes at once
//!   ([`crate::search::ranks`]); each child is put where it belongs, and nothing is compared twice or moved again.
//! - *Node48*: the bytes that have a slot are made bits, which are in order by themselves.
//! - *Node256* is in order; its slots are looked at some at a time.
//!
//! Whether a slot is null, and how many are not, cannot be predicted, and a misprediction costs as much as a dozen
//! instructions. So all the slots of a small node are sorted, and those that are null are left for [`keep`] to drop.
//!
//! Rejected: *a sorting network* over pairs of byte and child: eight instructions a comparison, ten for four children,
//! sixty for sixteen; *making bits of the bytes of a Node16*, as of a Node48's: the way back from a bit to its slot is
//! another search.

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::kind::Kind;
use crate::node::{Node, Node4, Node16, Node48, Node256, Symbol};
use crate::reference::Ref;
use crate::search::{ranks, taken};

/// A direction to walk in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    /// Before all symbols, in this direction.
    #[inline(always)]
    pub(crate) fn outset(self) -> Symbol {
        match self {
            Direction::Up => Symbol::BEFORE,
            Direction::Down => Symbol::AFTER,
        }
    }

    /// The last of all symbols, in this direction.
    #[inline(always)]
    pub(crate) fn last(self) -> Symbol {
        match self {
            Direction::Up => Symbol(255),
            Direction::Down => Symbol::END,
        }
    }
}

/// Children of a node that is not a Node256, with the one for the end, at most.
pub(crate) const FEW: usize = Kind::Node48.capacity() + 1;
/// Slots of a Node256 that are looked at together.
const TOGETHER: usize = 8;
/// What is found in them, and the child for the end.
pub(crate) const SOME: usize = TOGETHER + 1;

impl Node<'_> {
    /// Puts the children of a node that is not a Node256 that come after a symbol, in this direction, into `found`, in
    /// order, and says how many; some may be null.
    #[inline(always)]
    pub(crate) fn few(self, direction: Direction, after: Symbol, found: &mut [Ref; FEW]) -> usize {
        // Those between two symbols, by rising bytes.
        let (low, high) = match direction {
            Direction::Up => (after, Symbol::AFTER),
            Direction::Down => (Symbol::BEFORE, after),
        };
        let within = match self {
            Node::Four(node) => node.sort(low, high, found),
            Node::Sixteen(node) => node.sort(low, high, found),
            Node::FortyEight(node) => node.sort(low, high, found),
            Node::Full(_) => unreachable!("a Node256 has many children"),
        };
        let mut count = within.len();
        if within.start > 0 {
            found.copy_within(within, 0);
        }
        // The end is before all bytes. Most keys have one length, and end in leaves.
        let end = self.header().end.load();
        if !end.is_null() && low < Symbol::END && Symbol::END < high {
            found.copy_within(..count, 1);
            found[0] = end;
            count += 1;
        }
        if direction == Direction::Down {
            found[..count].reverse();
        }
        count
    }
}

/// Where, among bytes that have been sorted, those between two symbols are.
#[inline(always)]
fn within<const N: usize>(bytes: [u8; N], assigned: usize, low: Symbol, high: Symbol) -> Range<usize> {
    if (low, high) == (Symbol::BEFORE, Symbol::AFTER) {
        0..assigned
    } else {
        within_bounds(bytes, assigned, low, high)
    }
}

/// As [`within`], where a range begins: once in a scan.
#[inline(never)]
fn within_bounds<const N: usize>(bytes: [u8; N], assigned: usize, low: Symbol, high: Symbol) -> Range<usize> {
    let before = |limit: i16| {
        let less = |(at, &byte): (usize, &u8)| usize::from(at < assigned && i16::from(byte) < limit);
        bytes.iter().enumerate().map(less).sum::<usize>()
    };
    let first = before(low.0 + 1);
    first..before(high.0).max(first)
}

impl Node4 {
    #[inline(always)]
    fn sort(&self, low: Symbol, high: Symbol, found: &mut [Ref; FEW]) -> Range<usize> {
        // Before the bytes and the slots: see the protocol page. What is not assigned comes last.
        let assigned = self.header.lock.state().assigned().min(4);
        let bytes = self.bytes.load(Ordering::Acquire) | (u64::MAX << (8 * assigned)) as u32;
        let bytes = bytes.to_le_bytes();
        // Of equals, which are not assigned, the first comes first.
        let mut places = [0; 4];
        for (one, other) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
            let is_greater = usize::from(bytes[one] > bytes[other]);
            places[one] += is_greater;
            places[other] += 1 - is_greater;
        }
        for at in 0..4 {
            found[places[at] % 4] = self.slots[at].load();
        }
        within(bytes, assigned, low, high)
    }
}

impl Node16 {
    #[inline(always)]
    fn sort(&self, low: Symbol, high: Symbol, found: &mut [Ref; FEW]) -> Range<usize> {
        // Before the bytes and the slots: see the protocol page. What is not assigned comes last.
        let assigned = self.header.lock.state().assigned().min(16);
        let [first, second] = self.bytes();
        let unassigned = u128::MAX.checked_shl(8 * assigned as u32).unwrap_or(0);
        let bytes = [first | unassigned as u64, second | (unassigned >> 64) as u64];
        let places = ranks(bytes);
        // Backwards: what is not assigned is put where the last of the others may belong.
        for at in (0..16).rev() {
            found[usize::from(places[at] % 16)] = self.slots[at].load();
        }
        within(std::array::from_fn::<_, 16, _>(|at| bytes[at / 8].to_le_bytes()[at % 8]), assigned, low, high)
    }
}

impl Node48 {
    #[inline(always)]
    fn sort(&self, low: Symbol, high: Symbol, found: &mut [Ref; FEW]) -> Range<usize> {
        let (from, to) = ((low.0 + 1).max(0) as usize, high.0.max(0) as usize);
        let mut count = 0;
        for sixty_four in from / 64..to.div_ceil(64) {
            // pairs with the release in `Node::assign`.
            let word = |at: usize| self.index[8 * sixty_four + at].load(Ordering::Acquire);
            let parts: [u64; 4] = std::array::from_fn(|at| taken([word(2 * at), word(2 * at + 1)]).into());
            let mut bits = parts[0] | parts[1] << 16 | parts[2] << 32 | parts[3] << 48;
            if sixty_four == from / 64 {
                bits &= u64::MAX << (from % 64);
            }
            if to < 64 * (sixty_four + 1) {
                bits &= (1 << (to % 64)) - 1;
            }
            while bits != 0 {
                found[count] = self.child((64 * sixty_four) as u8 | bits.trailing_zeros() as u8);
                count += 1;
                bits &= bits - 1;
            }
        }
        0..count
    }
}

impl Node256 {
    /// Puts some of the children that come after a symbol, in this direction, into `found`: says how many, and which
    /// symbol was looked at last.
    #[inline(always)]
    pub(crate) fn some(
        &self,
        direction: Direction,
        after: Symbol,
        found: &mut [Ref; SOME],
    ) -> (usize, Symbol) {
        let mut count = 0;
        match direction {
            Direction::Up => {
                if after < Symbol::END {
                    count = keep(found, count, self.header.end.load());
                }
                let from = (after.0 + 1).max(0) as usize;
                match self.slots[from..].first_chunk::<TOGETHER>() {
                    Some(slots) => {
                        slots.iter().for_each(|slot| count = keep(found, count, slot.load()));
                        (count, Symbol((from + TOGETHER) as i16 - 1))
                    }
                    None => {
                        self.slots[from..].iter().for_each(|slot| count = keep(found, count, slot.load()));
                        (count, Symbol(255))
                    }
                }
            }
            Direction::Down => {
                let to = after.0.max(0) as usize;
                let from = to.saturating_sub(TOGETHER);
                self.slots[from..to].iter().rev().for_each(|slot| count = keep(found, count, slot.load()));
                if from > 0 {
                    return (count, Symbol(from as i16));
                }
                (keep(found, count, self.header.end.load()), Symbol::END)
            }
        }
    }
}

/// Puts a child behind the `count` found so far, where it stays if it is one: how many there are now.
#[inline(always)]
pub(crate) fn keep(found: &mut [Ref], count: usize, child: Ref) -> usize {
    found[count] = child;
    count + usize::from(!child.is_null())
}
