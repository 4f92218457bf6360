//! The thread beside the workers: it serves clients who are told much and ask for nothing meanwhile, so that no worker
//! has to.
//!
//! ```text
//!   worker --- a client, with an errand ---> aside     watchers: lines of all logs, as they come
//!     ^                                        |       listings: a page of the cache, its lines, a rest, the next page
//!     +------- the client, when it is done ----+
//! ```
//!
//! A worker hands the whole connection over, and gets it back with what it had left of the client's bytes when a
//! listing is done; watchers stay here until they go. What a listing costs is spent here, in steps, with the low
//! priority that the thread gives itself; what it shares with the workers is what any reader of the cache does.
//!
//! Watchers come first: their logs are taken at least every [`LONGEST_PAUSE`] while anybody watches, and every
//! [`SHORTEST_PAUSE`] while much happens.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atomics::Counting;
use cache::engine::Session;
use crossbeam_channel::Receiver;
use mio::event::Event;
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use tracing::{debug, warn};

use crate::connections::Doing;
use crate::dump::Dump;
use crate::executor::Errand;
use crate::guest::{Guest, Inbox, LOOK_FOR_SILENT, WAKER};
use crate::metrics::Metrics;
use crate::shared::Shared;
use crate::tuning::ITEMS_BETWEEN_RESTS;
use crate::watch::{Ending, Log, Seat, What};

/// How long the logs are left alone while events come, and while none do.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(64);
/// Lines of a listing that are written before they are sent.
const MOST_LINES: usize = 32 << 10;
/// How much the thread steps back behind the workers.
const NICENESS: i32 = 10;

/// A client that is here.
struct Patron {
    guest: Guest,
    errand: Serving,
    /// When it last took something, by the cache's clock.
    active: u32,
    /// Whether its socket may take something, and may have something to read.
    writable: bool,
    readable: bool,
}

enum Serving {
    Watch(Seat),
    Dump {
        dump: Box<Dump>,
        lines: Vec<u8>,
        sent: usize,
        more: bool,
        rests_until: Option<Instant>,
        rested_at: u64,
    },
}

/// What became of a client's turn.
enum Turn {
    /// Nothing to do before the next event, or the next events in the logs.
    Waits,
    /// It goes on at once.
    Again,
    /// It goes on then.
    Rests(Instant),
    /// It goes back to its worker.
    Done,
    Ended(Ending),
}

/// The thread.
pub(crate) struct Aside {
    shared: Arc<Shared>,
    poll: Poll,
    guests: Receiver<(Guest, Errand)>,
    /// Where clients go back to, by the number of their worker.
    homes: Vec<Inbox>,
    patrons: Slab<Patron>,
    session: Session,
    metrics: Counting<Metrics>,
    log: Log,
}

impl Aside {
    pub(crate) fn new(
        shared: Arc<Shared>,
        poll: Poll,
        guests: Receiver<(Guest, Errand)>,
        homes: Vec<Inbox>,
    ) -> Self {
        Aside {
            session: shared.cache.session(),
            metrics: shared.metrics.join(),
            log: shared.watch.join(),
            shared,
            poll,
            guests,
            homes,
            patrons: Slab::new(),
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) -> io::Result<()> {
        if let Err(error) = rustix::process::nice(NICENESS) {
            debug!(%error, "the thread beside the workers has their priority");
        }
        let mut events = Events::with_capacity(64);
        let mut pause = SHORTEST_PAUSE;
        // It may be to log from the start.
        let mut timeout = Some(Duration::ZERO);
        while !self.shared.is_stopping() {
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            for event in &events {
                self.note(event);
            }
            let watched = self.patrons.iter().any(|(_, patron)| matches!(patron.errand, Serving::Watch(_)));
            timeout = None;
            if watched || self.shared.watch.observers().log() {
                let events = self.shared.watch.tell();
                pause = if events > 0 { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
                timeout = Some(pause);
            }
            let now = Instant::now();
            for number in (0..self.patrons.capacity())
                .filter(|&number| self.patrons.contains(number))
                .collect::<Vec<_>>()
            {
                let wait = match self.serve(number) {
                    Turn::Waits if self.is_silent(number) => {
                        self.metrics.idle_kicks(1);
                        self.part(number, Ending::IdleTimeout);
                        continue;
                    }
                    Turn::Waits if self.may_be_silent(number) => LOOK_FOR_SILENT,
                    Turn::Waits => continue,
                    Turn::Again => Duration::ZERO,
                    Turn::Rests(until) => until.saturating_duration_since(now).max(SHORTEST_PAUSE),
                    Turn::Done => {
                        self.send_home(number);
                        continue;
                    }
                    Turn::Ended(ending) => {
                        self.part(number, ending);
                        continue;
                    }
                };
                timeout = Some(timeout.map_or(wait, |timeout| timeout.min(wait)));
            }
        }
        Ok(())
    }

    /// Whether the client is one of those that are closed if they take nothing for too long: a list waits for it, and
    /// others for the list. Who watches may be told nothing for as long as nothing happens.
    fn may_be_silent(&self, number: usize) -> bool {
        self.shared.settings.idle_timeout > 0 && matches!(self.patrons[number].errand, Serving::Dump { .. })
    }

    /// Whether the client has taken nothing for too long.
    fn is_silent(&self, number: usize) -> bool {
        let silent = self.shared.cache.time().saturating_sub(self.patrons[number].active);
        self.may_be_silent(number) && silent > self.shared.settings.idle_timeout
    }

    fn note(&mut self, event: &Event) {
        if event.token() == WAKER {
            while let Ok((guest, errand)) = self.guests.try_recv() {
                self.welcome(guest, errand);
            }
        } else if let Some(patron) = self.patrons.get_mut(event.token().0) {
            patron.writable |= event.is_writable() || event.is_error();
            patron.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        }
    }

    fn welcome(&mut self, mut guest: Guest, errand: Errand) {
        let entry = self.patrons.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) =
            self.poll.registry().register(guest.client.stream.source(), Token(entry.key()), interest)
        {
            warn!(%error, "a connection could not be registered, and is closed");
            return;
        }
        guest.client.presence.is(Doing::Watching);
        let errand = match errand {
            Errand::Watch(seat) => Serving::Watch(seat),
            Errand::Dump(dump) => Serving::Dump {
                dump,
                lines: Vec::new(),
                sent: 0,
                more: true,
                rests_until: None,
                rested_at: 0,
            },
        };
        entry.insert(Patron {
            guest,
            errand,
            active: self.shared.cache.time(),
            writable: true,
            readable: false,
        });
    }

    /// Serves one client as far as its turn goes.
    fn serve(&mut self, number: usize) -> Turn {
        let patron = &mut self.patrons[number];
        let stream = &mut patron.guest.client.stream;
        match &mut patron.errand {
            Serving::Watch(seat) => {
                // What a watcher says is not listened to; that it has gone is.
                while patron.readable {
                    match stream.read(&mut [0; 1024]) {
                        Ok(0) => return Turn::Ended(Ending::Normal),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => patron.readable = false,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => return Turn::Ended(Ending::Error),
                    }
                }
                match seat.watcher.lock().send(stream) {
                    Ok(bytes) => self.metrics.bytes_written(bytes as u64),
                    Err(_) => return Turn::Ended(Ending::Error),
                }
                Turn::Waits
            }
            Serving::Dump { dump, lines, sent, more, rests_until, rested_at } => {
                while *sent < lines.len() {
                    if !patron.writable {
                        return Turn::Waits;
                    }
                    match stream.write(&lines[*sent..]) {
                        Ok(0) => return Turn::Ended(Ending::Error),
                        Ok(bytes) => {
                            *sent += bytes;
                            patron.active = self.shared.cache.time();
                            self.metrics.bytes_written(bytes as u64);
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => patron.writable = false,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(_) => return Turn::Ended(Ending::Error),
                    }
                }
                lines.clear();
                *sent = 0;
                if !*more {
                    return Turn::Done;
                }
                if let Some(until) = rests_until.filter(|&until| Instant::now() < until) {
                    return Turn::Rests(until);
                }
                while *more && lines.len() < MOST_LINES {
                    *more = dump.step(&self.shared, &mut self.session, lines);
                    if dump.items() - *rested_at >= ITEMS_BETWEEN_RESTS as u64 {
                        *rested_at = dump.items();
                        *rests_until = Some(Instant::now() + self.shared.tuning.crawler_sleep());
                        break;
                    }
                }
                Turn::Again
            }
        }
    }

    fn send_home(&mut self, number: usize) {
        let mut patron = self.patrons.remove(number);
        if let Err(error) = self.poll.registry().deregister(patron.guest.client.stream.source()) {
            warn!(%error, "a connection could not be handed back, and is closed");
            return;
        }
        // A listing that is done makes room for the next one before its client can ask for that.
        drop(patron.errand);
        self.homes[patron.guest.home].send(patron.guest);
    }

    fn part(&mut self, number: usize, ending: Ending) {
        let mut patron = self.patrons.remove(number);
        let presence = &patron.guest.client.presence;
        if self.shared.watch.observers().hear_clients() {
            let (peer, descriptor) = (presence.peer().clone(), presence.descriptor());
            self.log.write(What::Closed { peer, ending, descriptor }, b"");
        }
        // Closing the socket deregisters it too; this only keeps mio's own books straight.
        let _ = self.poll.registry().deregister(patron.guest.client.stream.source());
    }
}
