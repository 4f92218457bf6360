//! How large the hardware is: Table I of the STLT paper, by arithmetic.
//!
//! ```text
//!   CR_S               the register of the table's address and size
//!   IPB                a page number of 36 bits an entry, and a counter
//!   STB                an address and a PTE of 64 bits each
//!   insertion buffer   the same, and the physical address, 44 bits, where the row goes
//! ```

use lab::experiment::{Definition, Scale, Session};
use serde::Deserialize;
use sim::StltShape;

use crate::error::StudyError;

/// The kind of definitions that count bits.
pub const KIND: &str = "stlt-storage";

const PAGE_NUMBER: u64 = 36;
const WORD: u64 = 64;
const PHYSICAL: u64 = 44;

/// Bits of each part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Storage {
    /// The register of the table.
    pub register: u64,
    /// The invalid page buffer.
    pub ipb: u64,
    /// The translation buffer.
    pub stb: u64,
    /// The insertion buffer.
    pub insertion_buffer: u64,
}

impl Storage {
    /// Of a unit with a register of so many bits.
    #[must_use]
    pub fn of(shape: &StltShape, register: u64) -> Storage {
        // The counter holds the numbers from 0 to the entries.
        let counter = u64::from(u32::BITS - shape.ipb.leading_zeros());
        Storage {
            register,
            ipb: u64::from(shape.ipb) * PAGE_NUMBER + counter,
            stb: u64::from(shape.stb) * 2 * WORD,
            insertion_buffer: u64::from(shape.insertion_buffer) * (2 * WORD + PHYSICAL),
        }
    }

    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.register + self.ipb + self.stb + self.insertion_buffer
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    shapes: Vec<Shape>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape {
    name: String,
    register_bits: u64,
    unit: StltShape,
}

/// Records the rows of a definition of [`KIND`].
pub(crate) fn record(definition: &Definition, scale: Scale, session: &mut Session) -> Result<(), StudyError> {
    let parameters = definition.parameters_for(scale).try_into::<Parameters>();
    let parameters = parameters.map_err(|error| StudyError::parameters(definition, error))?;
    for shape in parameters.shapes {
        let storage = Storage::of(&shape.unit, shape.register_bits);
        for (part, bits) in [
            ("CR_S", storage.register),
            ("IPB", storage.ipb),
            ("STB", storage.stb),
            ("insertion buffer", storage.insertion_buffer),
            ("total", storage.total()),
        ] {
            session.record(&shape.name, part, "storage", "bits", bits as f64);
        }
        session.record(&shape.name, "total", "on-chip storage", "bytes", storage.total().div_ceil(8) as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_i_adds_up() {
        let shape = StltShape { insertion_buffer: 8, ..StltShape::default() };
        let storage = Storage::of(&shape, 64);
        let expected = Storage { register: 64, ipb: 1158, stb: 4096, insertion_buffer: 1376 };
        assert_eq!(storage, expected);
        assert_eq!((storage.total(), storage.total().div_ceil(8)), (6694, 837));
    }
}
