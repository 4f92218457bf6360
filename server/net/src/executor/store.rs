//! Storing values, whole ones and such as come in pieces.

use cache::engine::{Change, Entry, Expiry, Put, Reservation, StoreError, Stored, Value, Verb};
use protocol::ErrorReply;

use super::observed::Met;
use super::{Context, Executor};
use crate::watch::StoredAs;

/// What is to be stored, but for the value.
#[derive(Clone, Copy)]
pub(crate) struct Storing<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) how: How,
    /// The client's flags; of no meaning for an item that is extended, which keeps its own.
    pub(crate) flags: u32,
    pub(crate) expiry: Expiry,
    /// The number that the item is to have, if the client says it.
    pub(crate) own_cas: Option<u64>,
    /// Bytes of the value.
    pub(crate) length: usize,
    /// Whether what is there goes if this cannot be stored: it would be stale.
    pub(crate) or_nothing: bool,
}

/// Under which condition a value is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Set,
    Add,
    Replace,
    /// If what is there has this number; or a higher one, if stale values are welcome: then the new one counts as
    /// stale.
    Swap {
        cas: u64,
        allow_stale: bool,
    },
    /// Before or behind what is there.
    Extend {
        before: bool,
        if_cas: Option<u64>,
        create: bool,
    },
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreOutcome {
    /// It is stored, under this number, and has so many bytes now.
    Stored {
        cas: u64,
        length: usize,
    },
    /// The condition did not hold.
    NotStored,
    /// What is there has another number.
    Exists,
    /// There is nothing with that number, for there is nothing.
    NotFound,
    Failed(ErrorReply),
}

/// Room for a value that is coming.
pub(crate) struct Reserved {
    reservation: Reservation,
    how: How,
    flags: u32,
    expiry: Expiry,
    own_cas: Option<u64>,
    or_nothing: bool,
}

impl Executor {
    /// Whether a value is too large to be stored; what it was to replace is gone then, if it is not to stay.
    #[inline]
    pub(crate) fn refuse_too_large(&mut self, storing: &Storing<'_>) -> bool {
        let flags = storing.entry().flags;
        let too_large = self.shared.settings.is_too_large(storing.key.len(), storing.length, flags);
        if too_large {
            self.refuse(storing);
        }
        too_large
    }

    #[cold]
    fn refuse(&mut self, storing: &Storing<'_>) {
        self.metrics.too_large(1);
        if self.is_observed() {
            self.observe_store(storing.key, StoredAs::TooLarge, storing.how.name(), Expiry::Never, None);
        }
        if storing.or_nothing {
            self.session.delete(storing.key);
        }
    }

    /// Stores a value that is there.
    pub(crate) fn store(&mut self, storing: &Storing<'_>, value: &[u8]) -> StoreOutcome {
        let class = self.shared.cache.class_of(&storing.entry(), value.len());
        if self.is_observed() {
            self.observe_target(storing.key);
        } else if storing.how == How::Set {
            // What nearly all stores are.
            return match self.session.store(Verb::Set, storing.entry(), value) {
                Ok(Stored::Stored(cas)) => {
                    self.by_class.of(class).sets(1);
                    StoreOutcome::Stored { cas, length: value.len() }
                }
                other => self.stored(storing, class, other.map(|stored| outcome(stored, value.len()))),
            };
        }
        let outcome = match storing.how.verb(self.shared.settings.cas_disabled) {
            Some(verb) => {
                self.session.store(verb, storing.entry(), value).map(|stored| outcome(stored, value.len()))
            }
            None => self.change(storing, value),
        };
        self.stored(storing, class, outcome)
    }

    /// Stores a value under a condition that the engine has no word for.
    fn change(&mut self, storing: &Storing<'_>, value: &[u8]) -> Result<StoreOutcome, StoreError> {
        let Storing { key, how, flags, expiry, own_cas, .. } = *storing;
        let context = Context(&self.shared);
        let put = |value| Put::new(value).with_flags(flags).with_expiry(expiry).with_cas(own_cas);
        let changed = self.session.change(key, |now, new| {
            let stored = |length| StoreOutcome::Stored { cas: 0, length };
            match (how, now) {
                (How::Swap { .. }, None) => Change::Leave(StoreOutcome::NotFound),
                (How::Swap { cas, .. }, Some(hit)) if context.is(hit, cas) => {
                    Change::Put(put(Value::Given(value)), stored(value.len()))
                }
                // What it says was true once: it may be served until somebody who wins has fetched it anew.
                (How::Swap { cas, allow_stale: true }, Some(hit)) if cas != 0 && cas < hit.cas() => {
                    let put = put(Value::Given(value)).with_expiry(hit.expiry());
                    Change::Put(put.with_stale(true).with_won(hit.is_won()), stored(value.len()))
                }
                (How::Swap { .. }, Some(_)) => Change::Leave(StoreOutcome::Exists),
                (How::Extend { create: true, .. }, None) => {
                    Change::Put(put(Value::Given(value)), stored(value.len()))
                }
                (How::Extend { if_cas: Some(cas), .. }, Some(hit)) if !context.is(hit, cas) => {
                    Change::Leave(StoreOutcome::Exists)
                }
                (How::Extend { before, .. }, Some(hit)) => {
                    let length = hit.value_len() + value.len();
                    if context.0.settings.is_too_large(key.len(), length, hit.flags()) {
                        return Change::Leave(StoreOutcome::NotStored);
                    }
                    if before {
                        new.extend_from_slice(value);
                    }
                    hit.pieces().for_each(|piece| new.extend_from_slice(piece));
                    if !before {
                        new.extend_from_slice(value);
                    }
                    let put = Put::new(Value::Scratch).with_flags(hit.flags()).with_expiry(hit.expiry());
                    Change::Put(put.with_cas(own_cas), stored(length))
                }
                (How::Extend { .. }, None) => Change::Leave(StoreOutcome::NotStored),
                (How::Set | How::Add | How::Replace, _) => unreachable!("the engine has a word for these"),
            }
        })?;
        Ok(match (changed.result, changed.cas) {
            (StoreOutcome::Stored { length, .. }, Some(cas)) => StoreOutcome::Stored { cas, length },
            (other, _) => other,
        })
    }

    /// Makes room for a value that is still to come.
    pub(crate) fn reserve(&mut self, storing: &Storing<'_>) -> Result<Reserved, ErrorReply> {
        let Storing { how, flags, expiry, own_cas, length, or_nothing, .. } = *storing;
        // Of what is put together in the end, that it leaves what is there.
        let verb = how.verb(self.shared.settings.cas_disabled).unwrap_or(Verb::Append);
        match self.session.reserve(verb, storing.entry(), length) {
            Ok(reservation) => Ok(Reserved { reservation, how, flags, expiry, own_cas, or_nothing }),
            Err(error) => Err(self.refusal(storing.key, or_nothing, error)),
        }
    }

    /// Adds to a value that is coming.
    pub(crate) fn fill(&mut self, reserved: &mut Reserved, piece: &[u8]) -> Result<(), ErrorReply> {
        let filled = self.session.fill(&mut reserved.reservation, piece);
        filled.map_err(|error| self.refusal(&reserved.reservation.key(), reserved.or_nothing, error))
    }

    /// Does not store a value whose data did not end as it should.
    pub(crate) fn refuse_data(&self, storing: &Storing<'_>) -> StoreOutcome {
        self.bad_data(self.shared.cache.class_of(&storing.entry(), storing.length))
    }

    /// The same for one that has come in pieces.
    pub(crate) fn abandon(&self, reserved: &Reserved) -> StoreOutcome {
        self.bad_data(reserved.reservation.class())
    }

    fn bad_data(&self, class: u8) -> StoreOutcome {
        self.by_class.of(class).sets(1);
        StoreOutcome::Failed(ErrorReply::BadDataChunk)
    }

    /// Stores a value all of which has come.
    pub(crate) fn commit(&mut self, reserved: Reserved) -> StoreOutcome {
        let Reserved { reservation, how, flags, expiry, own_cas, or_nothing } = reserved;
        let (class, key, length) = (reservation.class(), reservation.key(), reservation.value_len());
        let storing = Storing { key: &key, how, flags, expiry, own_cas, length, or_nothing };
        if self.is_observed() {
            self.observe_target(&key);
        }
        let outcome = if how.verb(self.shared.settings.cas_disabled).is_some() {
            self.session.commit(reservation).map(|stored| outcome(stored, length))
        } else {
            let value = reservation.to_vec();
            drop(reservation);
            self.read_in_copy += value.len() as u64;
            self.change(&storing, &value)
        };
        self.stored(&storing, class, outcome)
    }

    /// `class` is that of the item that was made for it, if one was.
    fn stored(
        &mut self,
        storing: &Storing<'_>,
        class: u8,
        outcome: Result<StoreOutcome, StoreError>,
    ) -> StoreOutcome {
        let Storing { key, how, or_nothing, .. } = *storing;
        if self.is_observed() {
            self.observe_stored(storing, class, &outcome);
        }
        let extends = matches!(how, How::Extend { .. });
        if outcome.is_ok() || extends {
            self.by_class.of(class).sets(1);
        }
        if let How::Swap { .. } = how {
            let met = self.by_class.of(self.session.class_met());
            match outcome {
                Ok(StoreOutcome::Stored { .. }) => met.cas_hits(1),
                Ok(StoreOutcome::Exists) => met.cas_badval(1),
                Ok(StoreOutcome::NotFound) => self.metrics.cas_misses(1),
                _ => {}
            }
        }
        match outcome {
            Ok(outcome) => outcome,
            // What is there cannot be extended, and stays; memcached says and counts no more than this.
            Err(_) if extends => StoreOutcome::NotStored,
            Err(error) => StoreOutcome::Failed(self.refusal(key, or_nothing, error)),
        }
    }

    /// A value was to be stored, and somebody looks on.
    #[cold]
    fn observe_stored(&self, storing: &Storing<'_>, class: u8, outcome: &Result<StoreOutcome, StoreError>) {
        let (status, size) = match *outcome {
            Ok(StoreOutcome::Stored { length, .. }) => (StoredAs::Stored, length),
            Ok(StoreOutcome::NotStored) => (StoredAs::NotStored, storing.length),
            Ok(StoreOutcome::Exists) => (StoredAs::Exists, storing.length),
            Ok(StoreOutcome::NotFound) => (StoredAs::NotFound, storing.length),
            Err(StoreError::TooLarge) => (StoredAs::TooLarge, storing.length),
            Ok(StoreOutcome::Failed(_)) | Err(_) => (StoredAs::NoMemory, storing.length),
        };
        self.observe_store(
            storing.key,
            status,
            storing.how.name(),
            storing.expiry,
            Some(Met { class, size }),
        );
    }

    fn refusal(&mut self, key: &[u8], or_nothing: bool, error: StoreError) -> ErrorReply {
        if or_nothing {
            self.session.delete(key);
        }
        match error {
            StoreError::TooLarge => {
                self.metrics.too_large(1);
                ErrorReply::TooLarge
            }
            _ => {
                self.metrics.no_memory(1);
                ErrorReply::OutOfMemoryStoring
            }
        }
    }
}

impl<'a> Storing<'a> {
    fn entry(&self) -> Entry<'a> {
        // An item that is extended keeps its own flags.
        let flags = if let How::Extend { create: false, .. } = self.how { 0 } else { self.flags };
        Entry::new(self.key).with_flags(flags).with_expiry(self.expiry).with_cas(self.own_cas)
    }
}

impl How {
    /// memcached's word for it.
    fn name(self) -> &'static str {
        match self {
            How::Set => "set",
            How::Add => "add",
            How::Replace => "replace",
            How::Swap { .. } => "cas",
            How::Extend { before: true, .. } => "prepend",
            How::Extend { before: false, .. } => "append",
        }
    }

    /// The engine's word for it, if it has one.
    fn verb(self, cas_disabled: bool) -> Option<Verb> {
        match self {
            How::Set => Some(Verb::Set),
            How::Add => Some(Verb::Add),
            How::Replace => Some(Verb::Replace),
            How::Swap { cas, allow_stale: false } if !cas_disabled => Some(Verb::CompareAndSwap(cas)),
            How::Swap { .. } | How::Extend { .. } => None,
        }
    }
}

fn outcome(stored: Stored, length: usize) -> StoreOutcome {
    match stored {
        Stored::Stored(cas) => StoreOutcome::Stored { cas, length },
        Stored::NotStored => StoreOutcome::NotStored,
        Stored::Exists => StoreOutcome::Exists,
        Stored::NotFound => StoreOutcome::NotFound,
    }
}
