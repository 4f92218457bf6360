//! Watching a lookup: the addresses that it touches.
//!
//! A lookup is written once, for any probe. The probe that does nothing compiles to nothing.

/// Told of what a lookup reads in nodes and leaves, in the order in which it does. The slot of the root, which every
/// lookup reads, and the bytes of keys that are too long for their leaves are left out.
pub trait Probe {
    /// `bytes` bytes at `address` are read.
    fn touch(&mut self, address: usize, bytes: usize);
}

/// Watches nothing, and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Probe for Unwatched {
    #[inline(always)]
    fn touch(&mut self, _address: usize, _bytes: usize) {}
}

/// Remembers all of it.
impl Probe for Vec<(usize, usize)> {
    fn touch(&mut self, address: usize, bytes: usize) {
        self.push((address, bytes));
    }
}

impl<P: Probe + ?Sized> Probe for &mut P {
    #[inline(always)]
    fn touch(&mut self, address: usize, bytes: usize) {
        (**self).touch(address, bytes);
    }
}
