//! The values of keys.

use std::ops::ControlFlow;

use cache::engine::Hit;
use protocol::reply;

use super::Executor;
use super::observed::Met;
use crate::output::Output;

impl Executor {
    /// Looks up keys and writes the values found; `each` writes what comes after a key's. Stops when the output is
    /// full, and says how many keys were answered.
    #[inline]
    pub(crate) fn get(
        &mut self,
        keys: &[&[u8]],
        with_cas: impl Fn(usize) -> bool,
        after: impl Fn(usize, &mut Vec<u8>),
        output: &mut Output,
    ) -> usize {
        if self.is_observed() {
            return self.get_observed(keys, with_cas, after, output);
        }
        let by_class = &*self.by_class;
        let answered = self.session.pin().get_many(keys, |number, hit| {
            if let Some(hit) = hit {
                let class = hit.class();
                write_value(&hit, with_cas(number), output);
                by_class.of(class).get_hits(1);
            }
            after(number, output.bytes());
            if output.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.metrics.gets(answered as u64);
        answered
    }

    /// The same while somebody looks on: one key after the other, so that it can be told what became of each.
    #[cold]
    fn get_observed(
        &mut self,
        keys: &[&[u8]],
        with_cas: impl Fn(usize) -> bool,
        after: impl Fn(usize, &mut Vec<u8>),
        output: &mut Output,
    ) -> usize {
        let mut answered = 0;
        while answered < keys.len() && !output.is_full() {
            let key = keys[answered];
            let before = self.session.counts();
            let met = self.session.pin().get(key).map(|hit| {
                write_value(&hit, with_cas(answered), output);
                Met { class: hit.class(), size: hit.value_len() }
            });
            if let Some(met) = met {
                self.by_class.of(met.class).get_hits(1);
            }
            self.observe_get(key, met, &before);
            after(answered, output.bytes());
            answered += 1;
        }
        self.metrics.gets(answered as u64);
        answered
    }

    /// Gives a key another expiry and writes its value, if it is there.
    pub(crate) fn get_and_touch(&mut self, key: &[u8], exptime: i32, with_cas: bool, output: &mut Output) {
        // It counts as a touch alone, as in memcached.
        self.metrics.touches(1);
        let expiry = self.expiry(exptime);
        // The value as it was: an expiry that has passed already takes it away only for those who come after.
        let before = self.is_observed().then(|| self.session.counts());
        let pinned = self.session.pin();
        let mut met = None;
        if let Some(hit) = pinned.get(key) {
            write_value(&hit, with_cas, output);
            self.by_class.of(hit.class()).touch_hits(1);
            met = Some(Met { class: hit.class(), size: hit.value_len() });
        }
        drop(pinned);
        if let Some(before) = before {
            self.observe_get(key, met, &before);
        }
        // Where there is no memory to note an expiry, the item keeps the one it had.
        let _ = self.session.touch(key, expiry);
    }
}

// Always: the class of what is written, which its callers count, takes what is read here.
#[inline(always)]
fn write_value(hit: &Hit<'_>, with_cas: bool, output: &mut Output) {
    // All that is read of the item is read before anything is written: it would be read, and worked out, again after.
    let cas = with_cas.then(|| hit.cas());
    let value = hit.contiguous();
    reply::value_header(output.bytes(), hit.key(), hit.flags(), hit.value_len(), cas);
    match value {
        Some(value) => output.bytes().extend_from_slice(value),
        None => output.value(hit.keep().expect("a value in several pieces can be kept")),
    }
    output.bytes().extend_from_slice(reply::CRLF);
}
