//! The values of keys.

use std::ops::ControlFlow;

use cache::engine::Hit;
use protocol::reply;

use super::Executor;
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

    /// Gives a key another expiry and writes its value, if it is there.
    pub(crate) fn get_and_touch(&mut self, key: &[u8], exptime: i32, with_cas: bool, output: &mut Output) {
        // It counts as a touch alone, as in memcached.
        self.metrics.touches(1);
        let expiry = self.expiry(exptime);
        // The value as it was: an expiry that has passed already takes it away only for those who come after.
        let pinned = self.session.pin();
        if let Some(hit) = pinned.get(key) {
            write_value(&hit, with_cas, output);
            self.by_class.of(hit.class()).touch_hits(1);
        }
        drop(pinned);
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
