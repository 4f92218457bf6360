//! References of 32 bits.
//!
//! ```text
//!  31  30 29   28   27                                   0
//! +---+------+------+-------------------------------------+
//! | 0 | kind | skip | where the node is, in 32-byte units | a node: 8 GiB of them
//! +---+------+------+-------------------------------------+
//! | 1 |  where the leaf is, in 16-byte units              | a leaf: 32 GiB of them
//! +---+---------------------------------------------------+
//! ```
//!
//! Half the size of pointers, so that a Node4 is half a line, a Node256 is 1 KiB, and twice as many of them share a
//! page and its translation. And a reference says what its target is, before the target's line has come: a lookup knows
//! which line of a Node256 it needs from the reference and its key alone.
//!
//! *Skip* says that the node does not tell apart the byte that follows its parent's, but a later one: some bytes
//! between are common to all keys below it, and its header says how many. Without it the header need not be read.
//!
//! The first unit of each space is never given out, so zero is no node.

use crate::kind::Kind;

/// A reference to a node, to a leaf, or to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Ref(u32);

impl Ref {
    pub(crate) const NULL: Ref = Ref(0);
    /// Bytes of a unit of nodes.
    pub(crate) const NODE_UNIT: usize = 32;
    /// Bytes of a unit of leaves.
    pub(crate) const LEAF_UNIT: usize = 16;
    /// Bytes of nodes that references reach.
    pub(crate) const NODE_REACH: usize = (Ref::PLACE as usize + 1) * Ref::NODE_UNIT;
    /// Bytes of leaves that references reach.
    pub(crate) const LEAF_REACH: usize = Ref::LEAF as usize * Ref::LEAF_UNIT;

    const LEAF: u32 = 1 << 31;
    const KIND_SHIFT: u32 = 29;
    const SKIP: u32 = 1 << 28;
    const PLACE: u32 = Ref::SKIP - 1;

    #[inline(always)]
    pub(crate) fn from_bits(bits: u32) -> Ref {
        Ref(bits)
    }

    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn node(kind: Kind, place: u32) -> Ref {
        debug_assert!(place != 0 && place <= Ref::PLACE);
        Ref((kind as u32) << Ref::KIND_SHIFT | place)
    }

    pub(crate) fn leaf(place: u32) -> Ref {
        debug_assert!(place < Ref::LEAF);
        Ref(Ref::LEAF | place)
    }

    #[inline(always)]
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn is_leaf(self) -> bool {
        self.0 & Ref::LEAF != 0
    }

    /// Whether this refers to a node.
    #[inline(always)]
    pub(crate) fn is_node(self) -> bool {
        !self.is_leaf() && !self.is_null()
    }

    /// The kind of the node referred to; of no meaning for a leaf.
    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        match self.0 >> Ref::KIND_SHIFT & 3 {
            0 => Kind::Node4,
            1 => Kind::Node16,
            2 => Kind::Node48,
            _ => Kind::Node256,
        }
    }

    /// What it refers to, for tables: a node of which [kind](Ref::kind), or, from four on, a leaf. Null is among the
    /// Node4s.
    #[inline(always)]
    pub(crate) fn sort(self) -> usize {
        (self.0 >> Ref::KIND_SHIFT) as usize
    }

    /// Whether only the node's header says which byte it tells apart.
    #[inline(always)]
    pub(crate) fn skips(self) -> bool {
        self.0 & Ref::SKIP != 0
    }

    /// This reference with the skip bit set or cleared; a leaf's has none.
    #[inline]
    pub(crate) fn with_skip(self, skips: bool) -> Ref {
        match (self.is_leaf(), skips) {
            (true, _) => self,
            (false, true) => Ref(self.0 | Ref::SKIP),
            (false, false) => Ref(self.0 & !Ref::SKIP),
        }
    }

    /// Where the target is, in units of its space.
    #[inline(always)]
    pub(crate) fn place(self) -> u32 {
        if self.is_leaf() { self.0 & !Ref::LEAF } else { self.0 & Ref::PLACE }
    }

    /// Where a node is, in bytes from the start of its space.
    #[inline(always)]
    pub(crate) fn node_offset(self) -> usize {
        (self.0 & Ref::PLACE) as usize * Ref::NODE_UNIT
    }

    /// Where a leaf is, in bytes from the start of its space.
    #[inline(always)]
    pub(crate) fn leaf_offset(self) -> usize {
        (self.0 & !Ref::LEAF) as usize * Ref::LEAF_UNIT
    }
}
