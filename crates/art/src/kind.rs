//! The four kinds of node, by how many children they have room for, and when one takes another's place.

/// A kind of node, by the children that it has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Up to four children.
    Node4,
    /// Up to sixteen children.
    Node16,
    /// Up to forty-eight children.
    Node48,
    /// A child for every byte.
    Node256,
}

impl Kind {
    /// All kinds, smallest first.
    pub const ALL: [Kind; 4] = [Kind::Node4, Kind::Node16, Kind::Node48, Kind::Node256];

    /// Bytes of a node of this kind.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Kind::Node4 => 32,
            Kind::Node16 => 96,
            Kind::Node48 => 480,
            Kind::Node256 => 1056,
        }
    }

    /// Bytes that can be assigned a slot in a node of this kind.
    #[must_use]
    pub const fn capacity(self) -> usize {
        match self {
            Kind::Node4 => 4,
            Kind::Node16 => 16,
            Kind::Node48 => 48,
            Kind::Node256 => 256,
        }
    }

    /// Children below which a node of this kind is replaced by a smaller one. The gap to the smaller kind's capacity
    /// keeps a node whose last child comes and goes from changing its kind every time.
    pub(crate) const fn fewest(self) -> usize {
        match self {
            Kind::Node4 => 2,
            Kind::Node16 => 4,
            Kind::Node48 => 13,
            Kind::Node256 => 38,
        }
    }

    /// The smallest kind with room for so many bytes.
    pub(crate) fn for_bytes(bytes: usize) -> Kind {
        match bytes {
            0..=4 => Kind::Node4,
            5..=16 => Kind::Node16,
            17..=48 => Kind::Node48,
            _ => Kind::Node256,
        }
    }
}
