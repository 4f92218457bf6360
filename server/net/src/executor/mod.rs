//! Carrying out requests: from a parsed request to the cache and back to a reply.
//!
//! One executor belongs to one worker. It knows nothing of sockets; replies are appended to an [`Output`]. What is done
//! for a command, or a family of commands, is a file here.

mod administration;
mod arithmetic;
mod flush;
mod get;
mod listing;
mod observed;
mod remove;
mod store;
mod touch;

use std::os::fd::RawFd;
use std::sync::Arc;

use atomics::Counting;
use cache::engine::{Expiry, Housekeeper, Session};
use protocol::{Request, StatsTopic, reply};

pub(crate) use store::StoreReply;

use crate::aside::Errand;
use crate::detail::Prefixes;
use crate::dump::Dump;
use crate::metrics::{ByClass, Metrics};
use crate::output::Output;
use crate::shared::Shared;
use crate::version::VERSION;
use crate::watch::{Log, Observers};

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
    /// The socket of the connection that is served.
    descriptor: RawFd,
    /// Who looks on, this turn.
    observers: Observers,
    log: Log,
    prefixes: Prefixes,
    /// What the connection is to be handed over for.
    errand: Option<Errand>,
}

/// Whether the connection goes on after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    GoOn,
    /// Not yet: it is to be asked for again, after others had their turn.
    Later,
    /// What waits is to be sent, then the connection is handed over: see [`Executor::take_errand`].
    Aside,
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
            descriptor: 0,
            observers: Observers::default(),
            log: shared.watch.join(),
            prefixes: shared.prefixes.join(),
            errand: None,
            shared,
        }
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn requests_per_turn(&self) -> usize {
        self.shared.settings.requests_per_turn
    }

    /// What the connection that was served last is to be handed over for.
    pub(crate) fn take_errand(&mut self) -> Option<Errand> {
        self.errand.take()
    }

    fn goes_aside(&mut self, errand: Errand) -> After {
        self.errand = Some(errand);
        After::Aside
    }

    /// Goes on with a listing, for those who have no thread beside the workers; false when it is done.
    pub(crate) fn step_dump(&mut self, dump: &mut Dump, out: &mut Vec<u8>) -> bool {
        dump.step(&self.shared, &mut self.session, out)
    }

    /// Bytes of values that were copied to be changed, so far.
    pub(crate) fn copied(&self) -> u64 {
        self.session.copied() + self.read_in_copy
    }

    /// Carries out a request that is neither a `get` nor a storage command.
    pub(crate) fn execute(&mut self, request: &Request<'_>, output: &mut Output) -> After {
        match *request {
            Request::Get(_) | Request::GetAndTouch { .. } | Request::Store(_) => {
                unreachable!("served by the conversation, which has their keys and values")
            }
            Request::Delete { key, noreply } => self.remove(key, noreply, output),
            Request::Arithmetic { operation, key, delta, noreply } => {
                self.arithmetic(operation, &key, delta, noreply, output);
            }
            Request::Touch { key, exptime, noreply } => self.touch(key, exptime, noreply, output),
            Request::FlushAll { delay, noreply } => return self.flush_all(delay, noreply, output),
            Request::Stats(topic) => return self.stats(topic, output),
            Request::Version => reply::version(output.bytes(), VERSION),
            Request::Verbosity { level, noreply } => self.verbosity(level, noreply, output),
            Request::CacheMemlimit { megabytes, noreply } => self.memory_limit(megabytes, noreply, output),
            Request::Lru { request, noreply } => self.lru(request, noreply, output),
            Request::LruCrawler { request, noreply } => return self.lru_crawler(request, noreply, output),
            Request::Slabs { request, noreply } => self.slabs(request, noreply, output),
            Request::Shutdown { how, noreply } => return self.shutdown(how, noreply, output),
            Request::Watch(streams) => return self.watch(streams, output),
            Request::Quit => return After::Close,
        }
        After::GoOn
    }

    /// Says what is counted, or has it listed.
    fn stats(&mut self, topic: StatsTopic, output: &mut Output) -> After {
        match topic {
            StatsTopic::Sizes => return self.sizes(output),
            StatsTopic::Cachedump(request) => return self.cachedump(request, output),
            StatsTopic::Detail(request) => self.detail(request, output),
            topic => self.shared.write_stats(topic, output.bytes()),
        }
        After::GoOn
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

fn answer(output: &mut Output, noreply: bool, bytes: &[u8]) {
    if !noreply {
        output.bytes().extend_from_slice(bytes);
    }
}
