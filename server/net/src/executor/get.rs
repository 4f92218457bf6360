//! The values of keys.

use std::ops::ControlFlow;

use cache::engine::{Change, Expiry, Hit};

use super::observed::Met;
use super::{Context, Executor};
use crate::metrics::ByClass;
use crate::output::Output;

/// Who asks for a key: how it is answered.
pub(crate) trait Asker: Copy + Default {
    /// Writes the answer to who has asked for this key.
    fn answer(&self, key: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output);
}

/// Answers who asks for a key, and counts that it was there.
#[inline(always)]
fn answer(
    key: &[u8],
    asker: &impl Asker,
    hit: Option<Hit<'_>>,
    context: Context<'_>,
    by_class: &ByClass,
    output: &mut Output,
) {
    match &hit {
        Some(hit) => {
            let class = hit.class();
            asker.answer(key, Some(hit), context, output);
            by_class.of(class).get_hits(1);
        }
        None => asker.answer(key, None, context, output),
    }
}

impl Executor {
    /// Looks up keys of a batch, from its key `first` on, and answers who asks for them. Stops when the output is
    /// full, and says how many keys were answered.
    #[inline]
    pub(crate) fn get<A: Asker>(
        &mut self,
        first: usize,
        keys: &[&[u8]],
        askers: &[A],
        output: &mut Output,
    ) -> usize {
        if self.is_observed() {
            return self.get_observed(keys, askers, output);
        }
        let by_class = &*self.by_class;
        let context = Context(&self.shared);
        let answered = self.session.pin().get_announced(first, keys, |number, hit| {
            answer(keys[number], &askers[number], hit, context, by_class, output);
            if output.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.metrics.gets(answered as u64);
        answered
    }

    /// Looks up one key, of no batch, and answers who asks for it.
    #[inline]
    pub(crate) fn get_alone<A: Asker>(&mut self, key: &[u8], asker: A, output: &mut Output) {
        if self.is_observed() {
            self.get_observed(&[key], &[asker], output);
            return;
        }
        let pinned = self.session.pin();
        answer(key, &asker, pinned.get(key), Context(&self.shared), &self.by_class, output);
        drop(pinned);
        self.metrics.gets(1);
    }

    /// The same while somebody looks on: one key after the other, so that it can be told what became of each.
    #[cold]
    fn get_observed<A: Asker>(&mut self, keys: &[&[u8]], askers: &[A], output: &mut Output) -> usize {
        let mut answered = 0;
        while answered < keys.len() && !output.is_full() {
            let key = keys[answered];
            let before = self.session.counts();
            let context = Context(&self.shared);
            let pinned = self.session.pin();
            let hit = pinned.get(key);
            askers[answered].answer(key, hit.as_ref(), context, output);
            let met = hit.as_ref().map(Met::of);
            drop(pinned);
            if let Some(met) = met {
                self.by_class.of(met.class).get_hits(1);
            }
            self.observe_get(key, met, &before);
            answered += 1;
        }
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
        let before = self.is_observed().then(|| self.session.counts());
        let pinned = self.session.pin();
        let hit = if unseen { pinned.peek(key) } else { pinned.get(key) };
        let found = hit.map(|hit| (Met::of(&hit), hit.cas(), look(&hit, Context(&self.shared))));
        drop(pinned);
        if let Some(before) = before {
            self.observe_get(key, found.map(|(met, ..)| met), &before);
        }
        let Some((Met { class, .. }, cas, expiry)) = found else { return false };
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
        expiry: Expiry,
        answer: impl FnOnce(Option<&Hit<'_>>, Context<'_>),
    ) {
        let context = Context(&self.shared);
        self.metrics.touches(1);
        let before = self.is_observed().then(|| self.session.counts());
        let pinned = self.session.pin();
        let hit = pinned.get(key);
        answer(hit.as_ref(), context);
        let met = hit.as_ref().map(Met::of);
        drop(pinned);
        if let Some(before) = before {
            self.observe_get(key, met, &before);
        }
        let Some(Met { class, .. }) = met else { return };
        self.by_class.of(class).touch_hits(1);
        // Where there is no memory to note an expiry, the item keeps the one it had.
        let _ = self.session.touch(key, expiry);
    }
}
