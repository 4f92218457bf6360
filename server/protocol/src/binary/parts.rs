//! What every frame consists of, for the commands to look at.

use super::header::Header;

/// The parts of a frame.
pub(super) struct Parts<'a> {
    pub(super) header: Header,
    pub(super) extras: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value_length: usize,
}

impl<'a> Parts<'a> {
    pub(super) fn opcode(&self) -> u8 {
        self.header.opcode()
    }

    /// The key, of a frame that has one and no value.
    pub(super) fn only_key(&self) -> Option<&'a [u8]> {
        (!self.key.is_empty() && self.value_length == 0).then_some(self.key)
    }

    /// The extras as one number.
    pub(super) fn time(&self) -> Option<u32> {
        self.extras.try_into().ok().map(u32::from_be_bytes)
    }
}
