//! The choice: the standard library's primitives, or those of the model checker.

#[cfg(loom)]
pub use crate::modelled::*;
#[cfg(not(loom))]
pub use crate::standard::*;
