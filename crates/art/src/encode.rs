//! Keys whose bytes are in the order of what they encode.
//!
//! The tree compares bytes, the first ones first. Big-endian integers are in their order as they are; signed ones once
//! the sign is flipped; floating-point numbers once those with a sign are turned round; strings as they are. A tuple is
//! its parts one after the other, where each part has a known length or says where it ends.
//!
//! ```
//! use lookaside_art::encode;
//!
//! assert!(encode::i64(-1) < encode::i64(0));
//! assert!(encode::f64(-0.5) < encode::f64(0.25));
//! // Parts of a known length make a key of a known length; others a slice.
//! assert!(encode::tuple_array::<12, _>(&(7u32, -3i64)) < encode::tuple_array::<12, _>(&(8u32, -9i64)));
//! assert!(encode::tuple(&("a", 7u8)) < encode::tuple(&("ab", 1u8)));
//! ```

mod number;
mod tuple;

pub use self::number::*;
pub use self::tuple::{FixedPart, Part, TakePart, to_tuple, tuple, tuple_array};

/// A string, in the order of its code points. The bytes are as they are: one string may be the beginning of another.
#[must_use]
pub const fn text(text: &str) -> &[u8] {
    text.as_bytes()
}
