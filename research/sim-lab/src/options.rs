//! What whoever asks for a study says of it, beside its definition.

use lab::experiment::Scale;

use crate::configuration::Guest;
use crate::sweep::Place;

/// How a study is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who runs the programs.
    pub guest: Guest,
    /// In full, or small.
    pub scale: Scale,
    /// Seeds, if not as many as the definition says.
    pub seeds: Option<usize>,
    /// Runs at a time.
    pub jobs: usize,
    /// Where they take place.
    pub place: Place,
}
