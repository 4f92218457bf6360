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

/// Bits of each part of a unit with a register of so many.
fn bits(shape: &StltShape, register: u64) -> [(&'static str, u64); 4] {
    // The counter holds the numbers from 0 to the entries.
    let counter = u64::from(u32::BITS - shape.ipb.leading_zeros());
    [
        ("CR_S", register),
        ("IPB", u64::from(shape.ipb) * PAGE_NUMBER + counter),
        ("STB", u64::from(shape.stb) * 2 * WORD),
        ("insertion buffer", u64::from(shape.insertion_buffer) * (2 * WORD + PHYSICAL)),
    ]
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
        let parts = bits(&shape.unit, shape.register_bits);
        let total: u64 = parts.iter().map(|part| part.1).sum();
        for (part, bits) in parts.into_iter().chain([("total", total)]) {
            session.record(&shape.name, part, "storage", "bits", bits as f64);
        }
        session.record(&shape.name, "total", "on-chip storage", "bytes", total.div_ceil(8) as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_i_adds_up() {
        let shape = StltShape { insertion_buffer: 8, ..StltShape::default() };
        let parts = bits(&shape, 64);
        assert_eq!(parts.map(|part| part.1), [64, 1158, 4096, 1376]);
        assert_eq!(parts.iter().map(|part| part.1).sum::<u64>(), 6694);
    }
}
