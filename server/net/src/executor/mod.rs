//! Carrying out requests: from a parsed request to the cache and back to a reply.
//!
//! One executor belongs to one worker. It knows nothing of sockets; replies are appended to an [`Output`]. What is done
//! for a command, or a family of commands, is a file here.

mod administration;
mod arithmetic;
mod context;
mod flush;
mod get;
mod invalidate;
mod listing;
mod observed;
mod remove;
mod store;
mod touch;
mod vivify;

use std::os::fd::RawFd;
use std::sync::Arc;

use atomics::Counting;
use cache::engine::{Housekeeper, Session};
use protocol::{ErrorReply, Request, StatsTopic, reply};

pub(crate) use arithmetic::{Counted, Counting as NumberChange};
pub(crate) use context::Context;
pub(crate) use flush::Flushed;
pub(crate) use get::Asker;
pub(crate) use invalidate::Invalidation;
pub(crate) use remove::Removed;
pub(crate) use store::{How, Reserved, StoreOutcome, Storing};

use crate::detail::Prefixes;
use crate::dump::Dump;
use crate::metrics::{ByClass, Metrics};
use crate::output::Output;
use crate::shared::Shared;
use crate::version::VERSION;
use crate::watch::{Command, Log, Observers, Seat};

/// What a client is handed over for, to the thread beside the workers.
pub(crate) enum Errand {
    /// It watches.
    Watch(Seat),
    /// Items are listed for it.
    Dump(Box<Dump>),
}

/// A worker's way of carrying out requests.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    session: Session,
    metrics: Counting<Metrics>,
    by_class: Counting<ByClass>,
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

    /// What requests are understood by at the moment.
    pub(crate) fn context(&self) -> Context<'_> {
        Context(&self.shared)
    }

    pub(crate) fn requests_per_turn(&self) -> usize {
        self.shared.settings.requests_per_turn
    }

    /// What the connection that was served last is to be handed over for.
    pub(crate) fn take_errand(&mut self) -> Option<Errand> {
        self.errand.take()
    }

    /// Asks for the memory that requests for these keys will touch.
    pub(crate) fn prefetch(&self, keys: &[&[u8]]) {
        self.session.prefetch(keys);
    }

    /// Begins a batch of gets and writes of these keys, so many of them writes.
    pub(crate) fn begin_batch(&mut self, keys: &[&[u8]], writes: usize) {
        self.session.begin_batch(keys, writes);
    }

    /// Ends it.
    pub(crate) fn end_batch(&mut self) {
        self.session.end_batch();
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

    /// Writes statistics, as `stats` does.
    pub(crate) fn stats(&self, topic: StatsTopic, out: &mut Vec<u8>) {
        self.shared.write_stats(topic, out);
    }

    /// Carries out a request that is neither a `get` nor a storage command.
    pub(crate) fn execute(&mut self, request: &Request<'_>, output: &mut Output) -> After {
        match *request {
            Request::Get(_) | Request::GetAndTouch { .. } | Request::Store(_) | Request::Meta(_) => {
                unreachable!("served by the conversation, which has their keys and values")
            }
            Request::Delete { key, noreply } => {
                let removed = self.remove(&key, None, Command::Delete) == Removed::Done;
                answer(output, noreply, if removed { reply::DELETED } else { reply::NOT_FOUND });
            }
            Request::Arithmetic { operation, key, delta, noreply } => {
                match self.count_plainly(&key, operation, delta) {
                    Counted::Number { .. } if noreply => {}
                    Counted::Number { number, .. } => reply::number(output.bytes(), number),
                    Counted::NotFound | Counted::Exists => answer(output, noreply, reply::NOT_FOUND),
                    Counted::Failed(error) => answer(output, noreply, error.bytes()),
                }
            }
            Request::Touch { key, exptime, noreply } => {
                let touched = self.touch(&key, exptime);
                let found = touched.map(|found| if found { reply::TOUCHED } else { reply::NOT_FOUND });
                answer(output, noreply, found.unwrap_or_else(ErrorReply::bytes));
            }
            Request::FlushAll { delay, noreply } => match self.flush_all(delay) {
                Flushed::Done => answer(output, noreply, reply::OK),
                Flushed::NotAllowed => answer(output, noreply, ErrorReply::FlushNotAllowed.bytes()),
                Flushed::Later => return After::Later,
            },
            Request::Stats(topic) => return self.show_stats(topic, output),
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
    fn show_stats(&mut self, topic: StatsTopic, output: &mut Output) -> After {
        match topic {
            StatsTopic::Sizes => return self.sizes(output),
            StatsTopic::Cachedump(request) => return self.cachedump(request, output),
            StatsTopic::Detail(request) => self.detail(request, output),
            topic => self.shared.write_stats(topic, output.bytes()),
        }
        After::GoOn
    }
}

fn answer(output: &mut Output, noreply: bool, bytes: &[u8]) {
    if !noreply {
        output.bytes().extend_from_slice(bytes);
    }
}
