//! Gets on their way: keys are gathered, looked up together, and answered in order.
//!
//! All gets go this way, whether their keys come in one line or in many, and whether a line is all here or not. A group
//! is what the cache looks up at once, so that the cache misses of its keys overlap.

use cache::engine::GROUP;
use protocol::{Key, reply};

use crate::executor::Executor;
use crate::output::Output;

/// A set of the keys of a group: of each a bit.
type Bits = u32;
const _: () = assert!(GROUP <= Bits::BITS as usize);

/// Keys that wait to be looked up together.
pub(crate) struct Group<'d> {
    keys: [&'d [u8]; GROUP],
    len: usize,
    /// Those whose number is wanted beside their value.
    with_cas: Bits,
    /// Those that are the last of their line.
    last: Bits,
}

/// A key that has no answer yet, because the output is full.
pub(crate) struct Unanswered<'d> {
    pub(crate) key: &'d [u8],
    pub(crate) with_cas: bool,
}

impl<'d> Group<'d> {
    pub(crate) fn new() -> Self {
        Group { keys: [&[]; GROUP], len: 0, with_cas: 0, last: 0 }
    }

    /// Adds a list of keys, and answers whenever there is a whole group.
    #[inline]
    pub(crate) fn add(
        &mut self,
        keys: impl Iterator<Item = Key<'d>>,
        with_cas: bool,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Result<(), Unanswered<'d>> {
        for key in keys {
            if self.len == GROUP {
                self.answer(executor, output)?;
            }
            self.keys[self.len] = key.as_bytes();
            self.with_cas |= Bits::from(with_cas) << self.len;
            self.len += 1;
        }
        Ok(())
    }

    /// The key that was added last is the last of its line: `END` is to follow it.
    #[inline]
    pub(crate) fn end_line(&mut self) {
        self.last |= 1 << (self.len - 1);
    }

    /// Looks up what was gathered and answers it; there is nothing gathered afterwards.
    ///
    /// # Errors
    /// The first key that was not answered, for the output is full.
    pub(crate) fn answer(
        &mut self,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Result<(), Unanswered<'d>> {
        let Group { len, with_cas, last, .. } = *self;
        let answered = if output.is_full() {
            0
        } else {
            executor.get(
                &self.keys[..len],
                |number| with_cas >> number & 1 != 0,
                |number, bytes| {
                    if last >> number & 1 != 0 {
                        bytes.extend_from_slice(reply::END);
                    }
                },
                output,
            )
        };
        (self.len, self.with_cas, self.last) = (0, 0, 0);
        match self.keys[..len].get(answered) {
            None => Ok(()),
            Some(key) => Err(Unanswered { key, with_cas: with_cas >> answered & 1 != 0 }),
        }
    }
}
