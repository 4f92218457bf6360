//! What a frame may ask for.

use crate::arithmetic::Operation;

/// A well-formed request. It borrows from the received bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryRequest<'a> {
    /// Get, and with its key, and quietly.
    Get(BinaryGet<'a>),
    /// Touch, and get and touch.
    Touch {
        /// The key, and how it is answered.
        get: BinaryGet<'a>,
        /// The new time to live, for [`binary_expiry`](crate::binary_expiry).
        exptime: u32,
        /// Whether the value is wanted.
        with_value: bool,
    },
    /// Set, add, replace, append, prepend: the value follows.
    Store(BinaryStore<'a>),
    /// Delete, if the header's CAS id is 0 or the item's.
    Delete {
        /// The key to delete.
        key: &'a [u8],
        /// Success is not answered.
        quiet: bool,
    },
    /// Increment, decrement.
    Arithmetic(BinaryArithmetic<'a>),
    /// Flush, now or later.
    Flush {
        /// The delay, for [`flush`](crate::flush): what does not fit is as late as it may be.
        delay: i32,
        /// Success is not answered.
        quiet: bool,
    },
    /// Statistics.
    Stat {
        /// What of; empty for all that is counted.
        topic: &'a [u8],
    },
    /// Nothing; its reply says that all before it have been answered.
    Noop,
    /// The server's version.
    Version,
    /// Send what waits to be sent, then close.
    Quit {
        /// It is not answered.
        quiet: bool,
    },
}

/// A key to be looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryGet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Whether the reply has the key.
    pub with_key: bool,
    /// A key that is not there is not answered.
    pub quiet: bool,
}

/// A value to be stored, which follows the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryStore<'a> {
    /// How it is stored, if the header has no CAS id.
    pub mode: BinaryMode,
    /// The key.
    pub key: &'a [u8],
    /// The client's own 32 bits.
    pub flags: u32,
    /// The time to live, for [`binary_expiry`](crate::binary_expiry).
    pub exptime: u32,
    /// The length of the value in bytes.
    pub length: usize,
    /// Success is not answered.
    pub quiet: bool,
}

/// How a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BinaryMode {
    /// Whatever was there before.
    Set,
    /// If nothing is there.
    Add,
    /// If something is there.
    Replace,
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
}

/// The time of an initial number that is none: nothing is created then.
pub const NO_INITIAL: u32 = u32::MAX;

/// An increment or decrement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BinaryArithmetic<'a> {
    /// Up or down.
    pub operation: Operation,
    /// The key whose value is a number.
    pub key: &'a [u8],
    /// How far.
    pub delta: u64,
    /// The number of a key that is not there, and its time to live, for
    /// [`binary_expiry`](crate::binary_expiry).
    pub initial: Option<(u64, u32)>,
    /// Success is not answered.
    pub quiet: bool,
}
