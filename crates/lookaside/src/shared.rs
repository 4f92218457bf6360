//! The buffer that maps stand behind: all of a [`Buffer`] but what could put a pointer into its table.
//!
//! A map follows the pointers that its table gives. So whoever can reach the table of a map, and write to it, must be
//! trusted as the map's own code is; and a buffer that has once been in other hands cannot be given to a map. The type
//! says so: what is in here was never out, and only maps get at it.

use std::fmt;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::config::{Config, CreateError};
use crate::monitor::Verdict;
use crate::stats::Counts;

/// A table in front of maps, one or several: see [`crate::Map::sharing`]. Clones are the same.
pub struct SharedBuffer(pub(crate) Arc<Buffer>);

impl Clone for SharedBuffer {
    fn clone(&self) -> Self {
        SharedBuffer(Arc::clone(&self.0))
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("capacity", &self.capacity())
            .field("counts", &self.counts())
            .field("verdict", &self.verdict())
            .finish()
    }
}

impl SharedBuffer {
    /// As [`Buffer::for_indexes`].
    ///
    /// # Errors
    /// As [`Buffer::for_indexes`].
    pub fn for_indexes(config: &Config, indexes: usize) -> Result<SharedBuffer, CreateError> {
        Ok(SharedBuffer(Arc::new(Buffer::for_indexes(config, indexes)?)))
    }

    /// As [`Buffer::resize`].
    ///
    /// # Errors
    /// As [`Buffer::resize`].
    pub fn resize(&self, size: usize) -> Result<(), CreateError> {
        self.0.resize(size)
    }

    /// As [`Buffer::collect`].
    pub fn collect(&self) {
        self.0.collect();
    }

    /// As [`Buffer::monitor`].
    pub fn monitor(&self, watching: bool) {
        self.0.monitor(watching);
    }

    /// As [`Buffer::verdict`].
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.0.verdict()
    }

    /// As [`Buffer::counts`].
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }

    /// Entries that the table has room for now: as [`Buffer::capacity`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Entries that the table holds; counted by walking over it.
    #[must_use]
    pub fn occupancy(&self) -> usize {
        self.0.occupancy()
    }

    /// Bytes of the table now: as [`Buffer::bytes`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
