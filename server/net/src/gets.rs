//! Gets on their way: keys are gathered, looked up together, and answered in order.
//!
//! All gets go this way, whatever the protocol, whether their keys come in one line or in many, and whether a line is
//! all here or not. A group is what the cache looks up at once, so that the cache misses of its keys overlap.
//!
//! Rejected: *to ask for the memory of a write that ends a group with the group's*. Where one request in twenty is a
//! set it brought nothing that could be told from noise (0.28 us a request). *Groups that go on beyond a write*: what
//! was found is to be looked at again behind it, for the write may have changed it.

use cache::engine::{GROUP, Hit};

use crate::executor::{Context, Executor};
use crate::output::Output;

/// Who asks for a key: how it is answered.
pub(crate) trait Asker: Copy + Default {
    /// Writes the answer to who has asked for this key.
    fn answer(&self, key: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output);
}

/// Serves a get and those that follow it at once, as many as the turn allows, and says where the last of them ends in
/// `rest`, at whose start the first one stands with `length` bytes. `next` finds a get at the start of what it is
/// given, and says how many bytes it has; `add` adds the keys of the one that begins at this place to the group.
///
/// # Errors
/// As [`Group::answer`].
#[inline]
pub(crate) fn serve<'d, G, A: Asker>(
    (mut get, length): (G, usize),
    rest: &'d [u8],
    turn: &mut usize,
    executor: &mut Executor,
    output: &mut Output,
    mut next: impl FnMut(&'d [u8]) -> Option<(G, usize)>,
    add: impl Fn(G, usize, &mut Group<'d, A>, &mut Executor, &mut Output) -> Result<(), Unanswered<'d, A>>,
) -> Result<usize, Unanswered<'d, A>> {
    let mut group = Group::new();
    let (mut at, mut end) = (0, length);
    loop {
        add(get, at, &mut group, executor, output)?;
        if *turn > 0
            && let Some((following, length)) = next(&rest[end..])
        {
            *turn -= 1;
            (get, at, end) = (following, end, end + length);
        } else {
            group.answer(executor, output)?;
            return Ok(end);
        }
    }
}

/// Keys that wait to be looked up together.
pub(crate) struct Group<'d, A> {
    keys: [&'d [u8]; GROUP],
    askers: [A; GROUP],
    len: usize,
}

/// A key that has no answer yet, because the output is full, and who asked for it.
pub(crate) struct Unanswered<'d, A> {
    pub(crate) key: &'d [u8],
    pub(crate) asker: A,
}

impl<'d, A: Asker> Group<'d, A> {
    pub(crate) fn new() -> Self {
        Group { keys: [&[]; GROUP], askers: [A::default(); GROUP], len: 0 }
    }

    /// Adds a key, and answers those before it if there is a whole group.
    ///
    /// # Errors
    /// As [`Group::answer`].
    #[inline]
    pub(crate) fn add(
        &mut self,
        key: &'d [u8],
        asker: A,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Result<(), Unanswered<'d, A>> {
        if self.len == GROUP {
            self.answer(executor, output)?;
        }
        self.keys[self.len] = key;
        self.askers[self.len] = asker;
        self.len += 1;
        Ok(())
    }

    /// Who asked for the key that was added last.
    #[inline]
    pub(crate) fn last(&mut self) -> Option<&mut A> {
        self.askers[..self.len].last_mut()
    }

    /// Looks up what was gathered and answers it; there is nothing gathered afterwards.
    ///
    /// # Errors
    /// The first key that was not answered, for the output is full.
    pub(crate) fn answer(
        &mut self,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Result<(), Unanswered<'d, A>> {
        let len = std::mem::take(&mut self.len);
        let answered = if output.is_full() {
            0
        } else {
            let (keys, askers) = (&self.keys, &self.askers);
            executor.get(
                &keys[..len],
                |number, hit, context, output| askers[number].answer(keys[number], hit, context, output),
                output,
            )
        };
        match self.keys[..len].get(answered) {
            None => Ok(()),
            Some(key) => Err(Unanswered { key, asker: self.askers[answered] }),
        }
    }
}

/// Writes the value of an item: a copy of a small one, which lies in one piece, a large one as it lies.
#[inline]
pub(crate) fn write_value(contiguous: Option<&[u8]>, hit: &Hit<'_>, output: &mut Output) {
    match contiguous {
        Some(value) => output.bytes().extend_from_slice(value),
        None => output.value(hit.keep().expect("a value in several pieces can be kept")),
    }
}
