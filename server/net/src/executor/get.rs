//! The values of keys.

use std::ops::ControlFlow;

use cache::engine::{Change, Expiry, Hit};

use super::{Context, Executor};
use crate::output::Output;

impl Executor {
    /// Looks up keys and answers each with what `answer` writes. Stops when the output is full, and says how many keys
    /// were answered.
    #[inline]
    pub(crate) fn get(
        &mut self,
        keys: &[&[u8]],
        mut answer: impl FnMut(usize, Option<&Hit<'_>>, Context<'_>, &mut Output),
        output: &mut Output,
    ) -> usize {
        let by_class = &*self.by_class;
        let context = Context(&self.shared);
        let answered = self.session.pin().get_many(keys, |number, hit| {
            match &hit {
                Some(hit) => {
                    let class = hit.class();
                    answer(number, Some(hit), context, output);
                    by_class.of(class).get_hits(1);
                }
                None => answer(number, None, context, output),
            }
            if output.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.metrics.gets(answered as u64);
        answered
    }

    /// Looks up one key, unnoticed by what counts how items are used if `unseen`. What `look` says of an item that is
    /// there, it is given as its new expiry. Says whether it was there.
    ///
    /// A key that is there counts as got, or as touched if it is given an expiry; one that is not does not count.
    pub(crate) fn look(
        &mut self,
        key: &[u8],
        unseen: bool,
        look: impl FnOnce(&Hit<'_>, Context<'_>) -> Option<Expiry>,
    ) -> bool {
        let pinned = self.session.pin();
        let Some(hit) = (if unseen { pinned.peek(key) } else { pinned.get(key) }) else { return false };
        let (class, cas) = (hit.class(), hit.cas());
        let expiry = look(&hit, Context(&self.shared));
        drop(pinned);
        if let Some(expiry) = expiry {
            self.metrics.touches(1);
            self.by_class.of(class).touch_hits(1);
            // What was told is what was there before the touch. What has been stored since has an expiry of its own.
            // Where there is no memory to note an expiry, the item keeps the one it had.
            let _ = self.session.change(key, |now, _| match now {
                Some(hit) if hit.cas() == cas => Change::Touch(expiry, ()),
                _ => Change::Leave(()),
            });
        } else {
            self.metrics.gets(1);
            self.by_class.of(class).get_hits(1);
        }
        true
    }

    /// Shows the item of a key, which counts as no use.
    pub(crate) fn inspect(&mut self, key: &[u8], show: impl FnOnce(Option<&Hit<'_>>, Context<'_>)) {
        self.metrics.inspections(1);
        let context = Context(&self.shared);
        show(self.session.pin().peek(key).as_ref(), context);
    }

    /// Gives a key another expiry and answers it with what `answer` writes of its value as it was: an expiry that has
    /// passed already takes it away only for those who come after. It counts as a touch alone, as in memcached.
    pub(crate) fn get_and_touch(
        &mut self,
        key: &[u8],
        exptime: i32,
        answer: impl FnOnce(Option<&Hit<'_>>, Context<'_>),
    ) {
        let context = Context(&self.shared);
        let expiry = context.expiry(exptime);
        self.metrics.touches(1);
        let pinned = self.session.pin();
        let hit = pinned.get(key);
        answer(hit.as_ref(), context);
        let Some(hit) = hit else { return };
        self.by_class.of(hit.class()).touch_hits(1);
        drop(pinned);
        // Where there is no memory to note an expiry, the item keeps the one it had.
        let _ = self.session.touch(key, expiry);
    }
}
