//! Counting up and down in a value.

use cache::engine::Updated;
use protocol::{ErrorReply, Operation, reply};

use super::{Executor, answer};
use crate::output::Output;

impl Executor {
    /// Adds to, or subtracts from, the number that is a key's value.
    pub(super) fn arithmetic(
        &mut self,
        operation: Operation,
        key: &[u8],
        delta: u64,
        noreply: bool,
        output: &mut Output,
    ) {
        let before = self.is_observed().then(|| (self.session.counts(), self.before_a_change(key)));
        let (mut result, mut read_in_copy, mut class) = (0, 0, 0);
        let outcome = self.session.update(key, |hit, new| {
            class = hit.class();
            let copied;
            let value = match hit.contiguous() {
                Some(value) => value,
                None => {
                    copied = hit.to_vec();
                    read_in_copy += copied.len() as u64;
                    &copied
                }
            };
            let sum = protocol::apply(value, delta, operation)?;
            result = sum.number();
            new.resize(sum.length(), 0);
            sum.fill(new);
            Ok::<(), protocol::NotNumeric>(())
        });
        self.read_in_copy += read_in_copy;
        if let Some((before, met)) = before {
            self.observe_lookup(key, met, &before);
        }
        let by_class = self.by_class.of(class);
        match (operation, &outcome) {
            (Operation::Increment, Ok(Updated::Updated(_))) => by_class.increment_hits(1),
            (Operation::Increment, Ok(Updated::NotFound)) => self.metrics.increment_misses(1),
            (Operation::Decrement, Ok(Updated::Updated(_))) => by_class.decrement_hits(1),
            (Operation::Decrement, Ok(Updated::NotFound)) => self.metrics.decrement_misses(1),
            _ => {}
        }
        match outcome {
            Ok(Updated::Updated(_)) => {
                self.number.clear();
                reply::number(&mut self.number, result);
                answer(output, noreply, &self.number);
            }
            Ok(Updated::NotFound) => answer(output, noreply, reply::NOT_FOUND),
            Ok(Updated::Declined(_)) => {
                answer(output, noreply, ErrorReply::NonNumeric.bytes());
            }
            Err(_) => answer(output, noreply, ErrorReply::OutOfMemory.bytes()),
        }
    }
}
