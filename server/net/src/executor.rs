//! Carrying out requests: from a parsed request to the cache and back to a reply.
//!
//! One executor belongs to one worker. It knows nothing of sockets; replies are appended to an [`Output`].

use std::ops::ControlFlow;
use std::sync::Arc;

use atomics::Counting;
use cache::engine::{
    Entry, Expiry, Hit, Housekeeper, Reservation, Session, StoreError, Stored, Updated, Verb,
};
use protocol::{ErrorReply, Operation, Request, StoreRequest, reply};

use crate::metrics::{ByClass, Metrics};
use crate::output::Output;
use crate::shared::Shared;
use crate::version::VERSION;

/// What a reply to a storage command may be.
pub(crate) type StoreReply = Result<&'static [u8], ErrorReply>;

/// A worker's way of carrying out requests.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    session: Session,
    metrics: Counting<Metrics>,
    by_class: Counting<ByClass>,
    /// For the new value of an `incr` or `decr`.
    number: Vec<u8>,
    /// Bytes of values in several pieces that were copied to be read as numbers.
    read_in_copy: u64,
    /// Sweeps for a flush that has to wait: while one does.
    sweeper: Option<Housekeeper>,
}

/// Whether the connection goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    GoOn,
    /// Not yet: it is to be asked for again, after others had their turn.
    Later,
    /// What waits is to be sent, then the connection is closed.
    Close,
}

impl Executor {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Executor {
            session: shared.cache.session(),
            metrics: shared.metrics.join(),
            by_class: shared.by_class.join(),
            number: Vec::new(),
            read_in_copy: 0,
            sweeper: None,
            shared,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn requests_per_turn(&self) -> usize {
        self.shared.settings.requests_per_turn
    }

    /// Bytes of values that were copied to be changed, so far.
    pub(crate) fn copied(&self) -> u64 {
        self.session.copied() + self.read_in_copy
    }

    /// Flushes, or does a part of what must be done before.
    fn flush(&mut self) -> bool {
        let shared = &self.shared;
        shared.cache.flush_at(None);
        let flushed = self.sweeper.get_or_insert_with(|| shared.cache.housekeeper()).try_flush();
        if flushed {
            self.sweeper = None;
        }
        flushed
    }

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

    /// Whether a value is too large to be stored; what it was to replace is gone then, if it was a `set`.
    pub(crate) fn refuse_too_large(&mut self, request: &StoreRequest<'_>) -> bool {
        let too_large =
            self.shared.settings.is_too_large(request.key.len(), request.length, entry_flags(request));
        if too_large {
            self.metrics.too_large(1);
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
        let outcome = if self.may_store(verb, &reservation.key(), reservation.value_len()) {
            self.session.commit(reservation)
        } else {
            Err(StoreError::TooLarge)
        };
        self.stored(verb, class, outcome)
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

    /// Carries out a request that is neither a `get` nor a storage command.
    pub(crate) fn execute(&mut self, request: &Request<'_>, output: &mut Output) -> After {
        match *request {
            Request::Get(_) | Request::GetAndTouch { .. } | Request::Store(_) => {
                unreachable!("served by the conversation, which has their keys and values")
            }
            Request::Delete { key, noreply } => {
                let deleted = self.session.delete(&key);
                if deleted {
                    self.by_class.of(self.session.class_met()).delete_hits(1);
                } else {
                    self.metrics.delete_misses(1);
                }
                answer(output, noreply, if deleted { reply::DELETED } else { reply::NOT_FOUND });
            }
            Request::Arithmetic { operation, key, delta, noreply } => {
                self.arithmetic(operation, &key, delta, noreply, output);
            }
            Request::Touch { key, exptime, noreply } => {
                let expiry = self.expiry(exptime);
                self.metrics.touches(1);
                match self.session.touch(&key, expiry) {
                    Ok(found) => {
                        if found {
                            self.by_class.of(self.session.class_met()).touch_hits(1);
                        }
                        answer(output, noreply, if found { reply::TOUCHED } else { reply::NOT_FOUND });
                    }
                    Err(_) => answer(output, noreply, ErrorReply::OutOfMemory.bytes()),
                }
            }
            Request::FlushAll { delay, noreply } => {
                let now = self.now();
                match protocol::flush(delay, now, self.shared.started) {
                    protocol::Flush::Nothing => self.shared.cache.flush_at(None),
                    protocol::Flush::At(second) if second > now => {
                        self.shared.cache.flush_at(Some(self.shared.to_second(second)));
                    }
                    protocol::Flush::Now | protocol::Flush::At(_) => {
                        if !self.flush() {
                            return After::Later;
                        }
                    }
                }
                self.metrics.flushes(1);
                answer(output, noreply, reply::OK);
            }
            Request::Stats(topic) => self.shared.write_stats(topic, output.bytes()),
            Request::Version => reply::version(output.bytes(), VERSION),
            Request::Verbosity { level, noreply } => {
                self.shared.set_verbosity(level);
                answer(output, noreply, reply::OK);
            }
            Request::CacheMemlimit { noreply, .. } => {
                answer(output, noreply, ErrorReply::MemlimitUnable.bytes());
            }
            Request::Quit => return After::Close,
        }
        After::GoOn
    }

    fn arithmetic(
        &mut self,
        operation: Operation,
        key: &[u8],
        delta: u64,
        noreply: bool,
        output: &mut Output,
    ) {
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

    fn entry<'a>(&self, request: &StoreRequest<'a>) -> Entry<'a> {
        Entry::new(request.key.as_bytes())
            .with_flags(entry_flags(request))
            .with_expiry(self.expiry(request.exptime))
    }

    fn now(&self) -> u64 {
        self.shared.time()
    }

    fn expiry(&self, exptime: i32) -> Expiry {
        if exptime == 0 {
            return Expiry::Never;
        }
        match protocol::expiry(exptime, self.now(), self.shared.started) {
            protocol::Expiry::Never => Expiry::Never,
            protocol::Expiry::Already => Expiry::At(1),
            protocol::Expiry::At(second) => Expiry::At(self.shared.to_second(second)),
        }
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

fn answer(output: &mut Output, noreply: bool, bytes: &[u8]) {
    if !noreply {
        output.bytes().extend_from_slice(bytes);
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
