//! Counting up and down in a value.

use cache::engine::{Change, Expiry, Put, Value};
use protocol::{ErrorReply, LONGEST_NUMBER, Operation};

use super::{Context, Executor};

/// What is to be done to a number.
pub(crate) struct Counting<F> {
    pub(crate) operation: Operation,
    pub(crate) delta: u64,
    /// The number that the item must have.
    pub(crate) if_cas: Option<u64>,
    /// The number that the item is to have.
    pub(crate) own_cas: Option<u64>,
    /// What the value of a key is to be that is not there.
    pub(crate) initial: Option<u64>,
    /// Of the old expiry, or `None` for an item that is created, the new one.
    pub(crate) expiry: F,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// It has this number now.
    Number {
        number: u64,
        cas: u64,
        /// The expiry of before, or `None` if the item was created.
        before: Option<Expiry>,
    },
    NotFound,
    /// It has another number than it must.
    Exists,
    Failed(ErrorReply),
}

impl Executor {
    /// Adds to, or subtracts from, the number that is a key's value: what nearly all who count ask for.
    // Not inlined: it is asked for in several ways, and long.
    #[inline(never)]
    pub(crate) fn count_plainly(&mut self, key: &[u8], operation: Operation, delta: u64) -> Counted {
        let expiry = |before: Option<Expiry>| before.unwrap_or(Expiry::Never);
        let (if_cas, own_cas, initial) = (None, None, None);
        self.count(key, &Counting { operation, delta, if_cas, own_cas, initial, expiry })
    }

    /// Adds to, or subtracts from, the number that is a key's value.
    pub(crate) fn count(
        &mut self,
        key: &[u8],
        counting: &Counting<impl Fn(Option<Expiry>) -> Expiry>,
    ) -> Counted {
        let &Counting { operation, delta, if_cas, own_cas, initial, ref expiry } = counting;
        let before = self.is_observed().then(|| (self.session.counts(), self.before_a_change(key)));
        let keeps_all = if_cas.is_none() && own_cas.is_none() && expiry(Some(Expiry::Never)) == Expiry::Never;
        if before.is_none() && keeps_all {
            // What nearly all counters are: of as many digits as before.
            let counted = self.session.rewrite(key, |hit, value| {
                let sum = protocol::apply(hit.contiguous()?, delta, operation).ok()?;
                (sum.length() == value.len()).then(|| {
                    sum.fill(value);
                    sum.number()
                })
            });
            if let Some((number, cas)) = counted {
                let cas = self.context().told(cas);
                let outcome = Counted::Number { number, cas, before: Some(Expiry::Never) };
                self.note(operation, &outcome);
                return outcome;
            }
        }
        let context = Context(&self.shared);
        let mut read_in_copy = 0;
        let outcome = self.session.change(key, |now, new| {
            let counted = |number, before| Counted::Number { number, cas: 0, before };
            let Some(hit) = now else {
                let Some(initial) = initial else { return Change::Leave(Counted::NotFound) };
                new.extend_from_slice(initial.to_string().as_bytes());
                let put = Put::new(Value::Scratch).with_expiry(expiry(None)).with_cas(own_cas);
                return Change::Put(put, counted(initial, None));
            };
            // What can be no number is found so before the item's own is looked at, as in memcached.
            let may_be_number = (1..=LONGEST_NUMBER).contains(&hit.value_len());
            if may_be_number && if_cas.is_some_and(|cas| !context.is(hit, cas)) {
                return Change::Leave(Counted::Exists);
            }
            let copied;
            let value = match hit.contiguous() {
                Some(value) => value,
                None => {
                    copied = hit.to_vec();
                    read_in_copy += copied.len() as u64;
                    &copied
                }
            };
            let Ok(sum) = protocol::apply(value, delta, operation) else {
                return Change::Leave(Counted::Failed(ErrorReply::NonNumeric));
            };
            new.resize(sum.length(), 0);
            sum.fill(new);
            let put = Put::new(Value::Scratch).with_flags(hit.flags()).with_cas(own_cas);
            // As where it is written over the old one: a number that needs more room is a new item.
            let is_same = sum.length() == hit.value_len();
            let put = put.with_stale(is_same && hit.is_stale()).with_won(is_same && hit.is_won());
            let put = put.with_fetched(is_same && hit.was_fetched());
            let before = Some(hit.expiry());
            Change::Put(put.with_expiry(expiry(before)), counted(sum.number(), before))
        });
        self.read_in_copy += read_in_copy;
        if let Some((before, met)) = before {
            self.observe_lookup(key, met, &before);
        }
        let outcome = match outcome {
            Ok(changed) => match (changed.result, changed.cas) {
                (Counted::Number { number, before, .. }, Some(cas)) => {
                    Counted::Number { number, cas: self.context().told(cas), before }
                }
                (other, _) => other,
            },
            Err(_) => Counted::Failed(ErrorReply::OutOfMemory),
        };
        self.note(operation, &outcome);
        outcome
    }

    fn note(&self, operation: Operation, outcome: &Counted) {
        let by_class = self.by_class.of(self.session.class_met());
        match (operation, outcome) {
            (Operation::Increment, Counted::Number { before: Some(_), .. }) => by_class.increment_hits(1),
            (Operation::Increment, Counted::NotFound) => self.metrics.increment_misses(1),
            (Operation::Decrement, Counted::Number { before: Some(_), .. }) => by_class.decrement_hits(1),
            (Operation::Decrement, Counted::NotFound) => self.metrics.decrement_misses(1),
            _ => {}
        }
    }
}
