//! Storing values, whole ones and such as come in pieces.

use cache::engine::{Entry, Expiry, Reservation, StoreError, Stored, Verb};
use protocol::{ErrorReply, StoreRequest, reply};

use super::Executor;
use super::observed::Met;
use crate::watch::StoredAs;

/// What a reply to a storage command may be.
pub(crate) type StoreReply = Result<&'static [u8], ErrorReply>;

impl Executor {
    /// Whether a value is too large to be stored; what it was to replace is gone then, if it was a `set`.
    pub(crate) fn refuse_too_large(&mut self, request: &StoreRequest<'_>) -> bool {
        let too_large =
            self.shared.settings.is_too_large(request.key.len(), request.length, entry_flags(request));
        if too_large {
            self.metrics.too_large(1);
            if self.is_observed() {
                let command = request.verb.name();
                self.observe_store(&request.key, StoredAs::TooLarge, command, Expiry::Never, None);
            }
            if request.verb == protocol::Verb::Set {
                self.session.delete(&request.key);
            }
        }
        too_large
    }

    /// Carries out a storage command whose value is there.
    pub(crate) fn store(&mut self, request: &StoreRequest<'_>, value: &[u8]) -> StoreReply {
        let entry = self.entry(request);
        let class = self.shared.cache.class_of(&entry, value.len());
        let outcome = if self.may_store(request.verb, entry.key, value.len()) {
            self.session.store(verb(request), entry, value)
        } else {
            Err(StoreError::TooLarge)
        };
        if self.is_observed() {
            let met = Met { class, size: value.len() };
            self.observe_stored(entry.key, request.verb, &outcome, entry.expiry, met);
        }
        self.stored(request.verb, class, outcome)
    }

    /// False if an append or prepend would make a larger item than memcached would have.
    fn may_store(&mut self, verb: protocol::Verb, key: &[u8], more: usize) -> bool {
        if !extends(verb) {
            return true;
        }
        let pinned = self.session.pin();
        let Some(old) = pinned.peek(key) else { return true };
        !self.shared.settings.is_too_large(key.len(), old.value_len() + more, old.flags())
    }

    /// Makes room for a value that is still to come.
    pub(crate) fn reserve(&mut self, request: &StoreRequest<'_>) -> Result<Reservation, ErrorReply> {
        let entry = self.entry(request);
        self.session.reserve(verb(request), entry, request.length).map_err(|error| self.refusal(error))
    }

    /// Adds to a value that is coming.
    pub(crate) fn fill(&mut self, reservation: &mut Reservation, piece: &[u8]) -> Result<(), ErrorReply> {
        self.session.fill(reservation, piece).map_err(|error| self.refusal(error))
    }

    /// Does not carry out a storage command whose data did not end as it should.
    pub(crate) fn refuse_data(&self, request: &StoreRequest<'_>) -> StoreReply {
        self.bad_data(self.shared.cache.class_of(&self.entry(request), request.length))
    }

    /// The same for one whose value has come in pieces.
    pub(crate) fn abandon(&self, reservation: &Reservation) -> StoreReply {
        self.bad_data(reservation.class())
    }

    fn bad_data(&self, class: u8) -> StoreReply {
        self.by_class.of(class).sets(1);
        Err(ErrorReply::BadDataChunk)
    }

    /// Carries out a storage command all of whose value has come.
    pub(crate) fn commit(&mut self, verb: protocol::Verb, reservation: Reservation) -> StoreReply {
        let class = reservation.class();
        let (key, size) = (reservation.key(), reservation.value_len());
        let outcome = if self.may_store(verb, &key, size) {
            self.session.commit(reservation)
        } else {
            Err(StoreError::TooLarge)
        };
        if self.is_observed() {
            let expiry = self.expiry_of(&key);
            self.observe_stored(&key, verb, &outcome, expiry, Met { class, size });
        }
        self.stored(verb, class, outcome)
    }

    /// A value was to be stored, and somebody looks on.
    #[cold]
    fn observe_stored(
        &self,
        key: &[u8],
        verb: protocol::Verb,
        outcome: &Result<Stored, StoreError>,
        expiry: Expiry,
        met: Met,
    ) {
        let status = match outcome {
            Ok(Stored::Stored(_)) => StoredAs::Stored,
            Ok(Stored::NotStored) => StoredAs::NotStored,
            Ok(Stored::Exists) => StoredAs::Exists,
            Ok(Stored::NotFound) => StoredAs::NotFound,
            Err(StoreError::TooLarge) => StoredAs::TooLarge,
            Err(_) => StoredAs::NoMemory,
        };
        self.observe_store(key, status, verb.name(), expiry, Some(met));
    }

    /// When the item that is there now expires.
    #[cold]
    fn expiry_of(&mut self, key: &[u8]) -> Expiry {
        self.session.pin().peek(key).map_or(Expiry::Never, |hit| hit.expiry())
    }

    /// `class` is that of the item that was made for it, if one was.
    fn stored(&mut self, verb: protocol::Verb, class: u8, outcome: Result<Stored, StoreError>) -> StoreReply {
        if outcome.is_ok() || extends(verb) {
            self.by_class.of(class).sets(1);
        }
        let is_cas = matches!(verb, protocol::Verb::Cas(_));
        match outcome {
            Ok(Stored::Stored(_)) => {
                if is_cas {
                    self.by_class.of(self.session.class_met()).cas_hits(1);
                }
                Ok(reply::STORED)
            }
            Ok(Stored::NotStored) => Ok(reply::NOT_STORED),
            Ok(Stored::Exists) => {
                self.by_class.of(self.session.class_met()).cas_badval(1);
                Ok(reply::EXISTS)
            }
            Ok(Stored::NotFound) => {
                self.metrics.cas_misses(1);
                Ok(reply::NOT_FOUND)
            }
            // What is there cannot be extended, and stays; memcached says and counts no more than this.
            Err(_) if extends(verb) => Ok(reply::NOT_STORED),
            Err(error) => Err(self.refusal(error)),
        }
    }

    fn refusal(&self, error: StoreError) -> ErrorReply {
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

    fn entry<'a>(&self, request: &StoreRequest<'a>) -> Entry<'a> {
        Entry::new(request.key.as_bytes())
            .with_flags(entry_flags(request))
            .with_expiry(self.expiry(request.exptime))
    }
}

/// An item that is extended keeps its own flags.
fn entry_flags(request: &StoreRequest<'_>) -> u32 {
    if extends(request.verb) { 0 } else { request.flags }
}

/// Whether a verb makes a new value of the old one.
fn extends(verb: protocol::Verb) -> bool {
    matches!(verb, protocol::Verb::Append | protocol::Verb::Prepend)
}

fn verb(request: &StoreRequest<'_>) -> Verb {
    match request.verb {
        protocol::Verb::Set => Verb::Set,
        protocol::Verb::Add => Verb::Add,
        protocol::Verb::Replace => Verb::Replace,
        protocol::Verb::Append => Verb::Append,
        protocol::Verb::Prepend => Verb::Prepend,
        protocol::Verb::Cas(number) => Verb::CompareAndSwap(number),
    }
}
