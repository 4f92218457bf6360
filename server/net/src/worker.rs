//! A worker: one thread, one event loop, the connections it was given, and nothing shared with other workers but the
//! cache.
//!
//! ```text
//!   listener ---- new connections, by channel and waker ----> worker
//!                                                              |  wait for events
//!                                                              |  for each connection that has one, or is owed a turn:
//!                                                              |    send what waits      -> blocked? wait for room
//!                                                              |    serve what was left  -> replies
//!                                                              |    receive, serve       -> replies
//!                                                              v    send
//! ```
//!
//! Sockets are registered once, edge-triggered, for reading and writing both, so that a request costs no more system
//! calls than its receive, its send, and its share of a wait. A receive that does not fill the buffer has emptied the
//! socket (epoll(7), question 9), so no second one is needed to learn that.
//!
//! One receive buffer and one output serve all connections of a worker in turn. A connection owns memory only while it
//! has half a request or replies that its client does not take: at most [`MOST_LEFT`] bytes of the one; of the other a
//! full [`Output`], and the requests behind it that came in the same receive. It is then not read from, so a client
//! that does not read its replies blocks nobody but itself.
//!
//! Clients come and go in crowds, where a proxy starts or stops, and each costs some microseconds: between two waits a
//! worker welcomes and parts with [`AT_ONCE`] of them, so that who asks for something waits for no more.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use mio::event::Event;
use mio::{Events, Interest, Poll, Token};
use protocol::ErrorReply;
use slab::Slab;
use tracing::warn;

use crate::buffers::RECEIVE;
use crate::connections::Doing;
use crate::conversation::{Awaits, Conversation, MOST_LEFT, Needs};
use crate::executor::{Errand, Executor};
use crate::guest::{Client, Guest, LOOK_FOR_SILENT, Reception, Stream, WAKER};
use crate::output::{Output, Sent};
use crate::shared::Shared;
use crate::watch::Ending;

const _: () = assert!(RECEIVE >= 2 * MOST_LEFT);
/// Events handled between two waits.
const EVENTS: usize = 1024;
/// Clients welcomed between two waits, and turns of those who have closed their side.
const AT_ONCE: usize = 16;
/// Outputs kept for the next connection whose client is slow.
const SPARE_OUTPUTS: usize = 16;

/// A client's connection.
struct Connection {
    guest: Guest,
    /// When it last sent or took something, by the cache's clock.
    active: u32,
    /// What it is to be handed over for, when its replies are sent.
    errand: Option<Errand>,
    /// Replies that the socket did not take; no room is needed while there are none.
    output: Option<Output>,
    /// Whether the socket may have something to read.
    readable: bool,
    /// Whether the client has closed its side: there is an end to be read, and no event will announce it again.
    ended: bool,
    /// Whether what was left can be served without receiving more.
    servable: bool,
    /// Whether it is to be closed when its replies are sent.
    closing: bool,
    /// Whether it is on the list of those that are owed a turn.
    queued: bool,
}

/// What became of a connection's turn.
enum Turn {
    /// Nothing to do before the next event.
    Waits(Doing),
    /// It could go on, but others are first.
    Again,
    /// It is handed over to the thread beside the workers.
    Leaves(Errand),
    Ended(Ending),
}

/// One thread's event loop.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    poll: Poll,
    newcomers: Receiver<Guest>,
    reception: Reception,
    connections: Slab<Connection>,
    /// When the silent ones were looked for last, by the cache's clock.
    looked: u32,
    /// Whether newcomers may be waiting.
    awaited: bool,
    /// Connections that are owed a turn.
    queue: VecDeque<usize>,
    /// Those whose clients have closed their side. Nobody waits for most of them.
    leaving: VecDeque<usize>,
    executor: Executor,
    /// What was left of a connection's last turn, and what it has received since.
    received: Box<[u8]>,
    output: Output,
    spare: Vec<Output>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        poll: Poll,
        newcomers: Receiver<Guest>,
        reception: Reception,
    ) -> Self {
        Worker {
            executor: Executor::new(shared.clone()),
            shared,
            poll,
            newcomers,
            reception,
            connections: Slab::new(),
            looked: 0,
            awaited: false,
            queue: VecDeque::new(),
            leaving: VecDeque::new(),
            received: vec![0; RECEIVE].into_boxed_slice(),
            output: Output::default(),
            spare: Vec::new(),
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let at_rest = (self.shared.settings.idle_timeout > 0).then_some(LOOK_FOR_SILENT);
        while !self.shared.is_stopping() {
            let rests = !self.awaited && self.queue.is_empty() && self.leaving.is_empty();
            let timeout = if rests { at_rest } else { Some(Duration::ZERO) };
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                self.note(event);
            }
            // Those that are queued again have their turn after the next look at the events.
            for _ in 0..self.queue.len() {
                if let Some(number) = self.queue.pop_front() {
                    self.take_turn(number);
                }
            }
            for _ in 0..self.leaving.len().min(AT_ONCE) {
                if let Some(number) = self.leaving.pop_front() {
                    self.take_turn(number);
                }
            }
            if self.awaited {
                self.welcome_some();
            }
            if at_rest.is_some() {
                self.part_with_the_silent();
            }
        }
        Ok(())
    }

    /// Closes the connections whose clients have neither sent nor taken anything for too long. Looked for once a
    /// second.
    fn part_with_the_silent(&mut self) {
        let now = self.shared.cache.time();
        if now == self.looked {
            return;
        }
        self.looked = now;
        let most = self.shared.settings.idle_timeout;
        let is_silent =
            |connection: &Connection| !connection.queued && now.saturating_sub(connection.active) > most;
        let silent: Vec<usize> = self
            .connections
            .iter()
            .filter(|(_, connection)| is_silent(connection))
            .map(|(number, _)| number)
            .collect();
        for number in silent {
            self.executor.metrics().idle_kicks(1);
            self.part(number, Ending::IdleTimeout);
        }
    }

    fn note(&mut self, event: &Event) {
        if event.token() == WAKER {
            self.awaited = true;
        } else if let Some(connection) = self.connections.get_mut(event.token().0) {
            connection.ended |= event.is_read_closed() || event.is_error();
            connection.readable |= event.is_readable() || connection.ended;
            self.enqueue(event.token().0);
        }
    }

    fn enqueue(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !std::mem::replace(&mut connection.queued, true) {
            let queue = if connection.ended { &mut self.leaving } else { &mut self.queue };
            queue.push_back(number);
        }
    }

    /// Welcomes newcomers, if there are any, and notes whether there may be more.
    fn welcome_some(&mut self) {
        for _ in 0..AT_ONCE {
            let Ok(guest) = self.newcomers.try_recv() else {
                self.awaited = false;
                return;
            };
            self.welcome(guest);
        }
    }

    fn welcome(&mut self, mut guest: Guest) {
        let entry = self.connections.vacant_entry();
        let number = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.poll.registry().register(guest.client.stream.source(), Token(number), interest) {
            Ok(()) => {
                let presence = &guest.client.presence;
                if presence.is_new() {
                    self.executor.observe_arrival(presence.peer(), presence.descriptor());
                }
                presence.is(Doing::Reading);
                let servable = !guest.left.is_empty();
                entry.insert(Connection {
                    guest,
                    active: self.shared.cache.time(),
                    errand: None,
                    output: None,
                    readable: false,
                    ended: false,
                    servable,
                    closing: false,
                    queued: false,
                });
                if servable {
                    self.enqueue(number);
                }
            }
            Err(error) => warn!(%error, "a connection could not be registered, and is closed"),
        }
    }

    fn take_turn(&mut self, number: usize) {
        // It may have gone since it was queued.
        let Some(connection) = self.connections.get_mut(number) else { return };
        connection.queued = false;
        match self.serve(number) {
            Turn::Waits(doing) => self.connections[number].guest.client.presence.is(doing),
            Turn::Again => {
                self.connections[number].guest.client.presence.is(Doing::Queued);
                self.enqueue(number);
            }
            Turn::Leaves(errand) => {
                let mut guest = self.connections.remove(number).guest;
                match self.poll.registry().deregister(guest.client.stream.source()) {
                    Ok(()) => self.reception.receive(guest, errand),
                    Err(error) => warn!(%error, "a connection could not be handed over, and is closed"),
                }
            }
            Turn::Ended(ending) => self.part(number, ending),
        }
    }

    fn part(&mut self, number: usize, ending: Ending) {
        let mut guest = self.connections.remove(number).guest;
        let presence = &guest.client.presence;
        self.executor.observe_parting(presence.peer(), ending, presence.descriptor());
        // Closing the socket deregisters it too; this only keeps mio's own books straight.
        let _ = self.poll.registry().deregister(guest.client.stream.source());
    }

    /// Sends, serves and receives for one connection, as far as its turn goes.
    fn serve(&mut self, number: usize) -> Turn {
        let connection = &mut self.connections[number];
        let Guest { client, conversation, left, held, .. } = &mut connection.guest;
        let Client { presence, stream, .. } = client;
        if let Some(mut output) = connection.output.take() {
            let (bytes, outcome) = send(stream, &mut output, &self.executor);
            if bytes > 0 {
                connection.active = self.shared.cache.time();
            }
            match outcome {
                Ok(Sent::All) => {
                    // Less is always allowed.
                    let _ = held.reply(0);
                    if self.spare.len() < SPARE_OUTPUTS {
                        output.reset();
                        self.spare.push(output);
                    }
                }
                Ok(Sent::Blocked) => {
                    connection.output = Some(output);
                    return Turn::Waits(Doing::Writing);
                }
                Err(_) => return Turn::Ended(Ending::Error),
            }
        }
        if connection.closing {
            return Turn::Ended(Ending::Normal);
        }
        if let Some(errand) = connection.errand.take() {
            return Turn::Leaves(errand);
        }
        let mut filled = left.len();
        self.received[..filled].copy_from_slice(left);
        if !connection.servable {
            if !connection.readable {
                return Turn::Waits(awaited(conversation));
            }
            match stream.read(&mut self.received[filled..]) {
                Ok(0) => return Turn::Ended(Ending::Normal),
                Ok(count) => {
                    self.executor.metrics().bytes_read(count as u64);
                    filled += count;
                    connection.readable = connection.ended || filled == self.received.len();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.readable = false;
                    return Turn::Waits(awaited(conversation));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Turn::Again,
                Err(_) => return Turn::Ended(Ending::Error),
            }
        }
        connection.active = self.shared.cache.time();
        presence.is(Doing::Served);
        self.executor.begin_turn(presence.descriptor());
        let data = &self.received[..filled];
        let served = conversation.serve(data, &mut self.executor, &mut self.output);
        keep(left, &data[served.consumed..]);
        connection.servable = matches!(served.needs, Needs::Room | Needs::Turn);
        connection.closing = served.needs == Needs::Close;
        if served.requests > 0 {
            presence.has_asked(connection.active);
        }
        if !held.request(left.capacity()) {
            self.output.bytes().extend_from_slice(ErrorReply::OutOfMemoryReading.bytes());
            return abort(stream, &mut self.output, &self.executor);
        }
        if served.needs == Needs::Abort {
            return abort(stream, &mut self.output, &self.executor);
        }
        let (_, outcome) = send(stream, &mut self.output, &self.executor);
        let errand = self.executor.take_errand();
        match outcome {
            Ok(Sent::All) => self.output.reset(),
            Ok(Sent::Blocked) => {
                if !held.reply(self.output.held()) {
                    self.output = Output::default();
                    return Turn::Ended(Ending::Error);
                }
                let fresh = self.spare.pop().unwrap_or_default();
                connection.output = Some(std::mem::replace(&mut self.output, fresh));
                connection.errand = errand;
                return Turn::Waits(Doing::Writing);
            }
            Err(_) => {
                self.output = Output::default();
                return Turn::Ended(Ending::Error);
            }
        }
        match (served.needs, errand) {
            (Needs::Aside, Some(errand)) => Turn::Leaves(errand),
            (Needs::Close | Needs::Abort | Needs::Aside, _) => Turn::Ended(Ending::Normal),
            (Needs::Room | Needs::Turn, _) => Turn::Again,
            (Needs::Input, _) if connection.readable => Turn::Again,
            (Needs::Input, _) => Turn::Waits(awaited(conversation)),
        }
    }
}

/// Ends a connection: what waits, which memcached may drop, is sent as far as the socket takes it at once.
fn abort(stream: &mut Stream, output: &mut Output, executor: &Executor) -> Turn {
    let _ = send(stream, output, executor);
    *output = Output::default();
    Turn::Ended(Ending::Error)
}

/// What a connection is doing that waits for its client to send more.
fn awaited(conversation: &Conversation) -> Doing {
    match conversation.awaits() {
        Awaits::Request => Doing::Reading,
        Awaits::Value => Doing::ReadingValue,
        Awaits::UnwantedValue => Doing::Swallowing,
    }
}

fn send(stream: &mut Stream, output: &mut Output, executor: &Executor) -> (usize, io::Result<Sent>) {
    let (bytes, outcome) = output.send(stream);
    executor.metrics().bytes_written(bytes as u64);
    (bytes, outcome)
}

/// Keeps what is left of the received bytes, in no more memory than it needs.
fn keep(left: &mut Vec<u8>, rest: &[u8]) {
    // Given back: most connections have nothing left most of the time.
    if left.capacity() > 2 * rest.len() {
        *left = rest.to_vec();
    } else {
        left.clear();
        left.extend_from_slice(rest);
    }
}
