//! Several indexes that share the table.

/// Bits of an integer that the table compares; the others choose a set.
const COMPARED: u32 = 12;

/// The integer for one of several indexes that share the table: its lowest `bits` bits, at most 12, are the index's
/// number (section III-F of the paper, Figure 10). Those are compared, so no index finds another's record, not even
/// under an equal key. What they say of the number they no longer say of the key.
///
/// ```
/// use sim_guest::{Hints, Variant, with_table};
///
/// // Two indexes, each with its keys; this one is in both.
/// const TOWNS: u64 = 0;
/// const RIVERS: u64 = 1;
/// let hash = 0x9e37_79b9_7f4a_7c15;
/// let (town, river) = (("Aller", "Asturias"), ("Aller", "211 km"));
///
/// let mut hints = Hints::new(1 << 10, 4, Variant::Full)?;
/// hints.insert(with_table(hash, TOWNS, 1), &town);
/// assert_eq!(hints.get(with_table(hash, RIVERS, 1)), None);
/// hints.insert(with_table(hash, RIVERS, 1), &river);
/// assert_eq!(hints.get(with_table(hash, TOWNS, 1)), Some(&town));
/// assert_eq!(hints.get(with_table(hash, RIVERS, 1)), Some(&river));
/// # Ok::<(), sim_guest::Refused>(())
/// ```
#[inline(always)]
#[must_use]
pub const fn with_table(integer: u64, table: u64, bits: u32) -> u64 {
    let bits = if bits < COMPARED { bits } else { COMPARED };
    let mask = (1 << bits) - 1;
    integer & !mask | table & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_in_the_lowest_bits_and_nowhere_else() {
        assert_eq!(with_table(u64::MAX, 5, 3), u64::MAX - 2);
        assert_eq!(with_table(0, 13, 3), 5, "cut");
        assert_eq!(with_table(u64::MAX, 0, 64), u64::MAX << 12);
        assert_eq!(with_table(7, 1, 0), 7);
    }
}
