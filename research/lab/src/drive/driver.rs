//! One thread that drives servers: an event loop over the sockets of its clients.
//!
//! A *client* has a connection to each server (one, mostly) and one batch of requests under way; when all its replies
//! have come it sends the next. What that costs is kept as low as the server's own part of it:
//!
//! 1. A batch is one write of bytes that lie there rendered ([`Script`]), and its replies are taken with one large read
//!    into one buffer that all sockets of the thread share.
//! 2. Sockets are registered once, edge-triggered. A read that does not fill the buffer has emptied the socket, so no
//!    second read is needed to learn that (unless the event told of the connection's end, too).
//! 3. The next batch goes out as soon as the replies are counted, before the next event is looked at; one wait serves
//!    all sockets that have become ready meanwhile.
//! 4. The clock is read once a batch: the end of one is the beginning of the next.
//!
//! At a fixed rate (an *open loop*) batches have times at which they are due, whether or not the server keeps up, and
//! latencies count from there: a server that stops for a second delays all that was due in that second, not one request
//! for each connection. Waits are then not slept through to their end, because a sleep ends late, which would be
//! counted as the server's.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use super::DriveError;
use super::checker::Checker;
use super::contents::Contents;
use super::counter::Counter;
use super::endpoint::{Endpoint, Stream};
use super::latency::Latencies;
use super::resp::Reader;
use super::script::Script;
use super::tally::Tally;

/// Bytes read at once.
const BUFFER: usize = 256 << 10;
/// Events handled between two waits.
const EVENTS: usize = 256;
/// A wait in an open loop ends this long before the next batch is due; the rest is watched out for.
const WATCHFUL: Duration = Duration::from_millis(2);

/// How replies are looked at.
#[derive(Debug, Clone)]
pub(super) enum Inspection {
    /// They are counted.
    Count,
    /// They are checked against what was asked.
    Check(Contents),
    /// They are those of Redis, and checked where there are contents.
    Resp(Option<Contents>),
}

/// How long to go on.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// Every batch of the script has been sent once.
    Sent,
    /// So much time has passed; the script is gone through again and again.
    Elapsed(Duration),
}

/// When batches are sent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pace {
    /// When the last one was answered.
    Closed,
    /// At times that are this far apart.
    Open {
        /// Between two batches of this thread.
        interval: Duration,
    },
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) latencies: Latencies,
    /// From the first byte sent to the last one received.
    pub(super) elapsed: Duration,
    /// Batches that were due and could not be sent before the time was over.
    pub(super) overdue: u64,
    /// How many times the script was gone through.
    pub(super) rounds: f64,
}

struct Socket {
    stream: Stream,
    /// The batch's requests to this server.
    requests: Range<usize>,
    /// Of these, those that the socket did not take yet.
    unsent: usize,
    /// Replies that are due.
    due: u32,
    counter: Counter,
    checker: Checker,
    reader: Reader,
    /// Received and not understood yet.
    left: Vec<u8>,
    /// What is left is not worth looking at before it has so many bytes.
    needed: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Client {
    /// When its batch was sent, or should have been: nanoseconds since the beginning.
    sent: u64,
    /// Servers that still owe it replies.
    waiting: usize,
}

pub(super) struct Driver {
    poll: Poll,
    /// Client by client, one for each server.
    sockets: Vec<Socket>,
    clients: usize,
    lanes: usize,
    inspection: Inspection,
    patience: Duration,
    buffer: Vec<u8>,
}

impl Driver {
    /// Connects `clients` clients to each of the servers, which may say nothing for as long as `patience`.
    pub(super) fn connect(
        endpoints: &[Endpoint],
        clients: usize,
        inspection: Inspection,
        patience: Duration,
    ) -> Result<Driver, DriveError> {
        let poll = Poll::new().map_err(DriveError::System)?;
        let mut sockets = Vec::with_capacity(clients * endpoints.len());
        for _ in 0..clients {
            for endpoint in endpoints {
                let refused = |error| DriveError::Connect { endpoint: endpoint.to_string(), error };
                let mut stream = endpoint.connect_nonblocking(patience).map_err(refused)?;
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(stream.source(), Token(sockets.len()), interest).map_err(refused)?;
                sockets.push(Socket {
                    stream,
                    requests: 0..0,
                    unsent: 0,
                    due: 0,
                    counter: Counter::default(),
                    checker: Checker::default(),
                    reader: Reader::default(),
                    left: Vec::new(),
                    needed: 0,
                });
            }
        }
        let lanes = endpoints.len();
        Ok(Driver { poll, sockets, clients, lanes, inspection, patience, buffer: vec![0; BUFFER] })
    }

    /// Plays the script; operations that are done are added to `progress` as they are.
    pub(super) fn play(
        &mut self,
        script: &Script,
        pace: Pace,
        until: Until,
        progress: &AtomicU64,
    ) -> Result<Outcome, DriveError> {
        if script.batches() == 0 {
            return Ok(Outcome::default());
        }
        let mut events = Events::with_capacity(EVENTS);
        let mut play = Play {
            clients: vec![Client::default(); self.clients],
            idle: (0..self.clients).rev().collect(),
            busy: 0,
            script,
            start: Instant::now(),
            next: 0,
            started: 0,
            pace,
            until,
            heard: 0,
            patience: self.patience,
            outcome: Outcome::default(),
        };
        play.send_what_is_due(self, 0)?;
        while play.busy > 0 || !play.is_over(play.now()) {
            match self.poll.poll(&mut events, Some(play.wait())) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome.map_err(DriveError::System)?,
            }
            if play.is_given_up(play.now()) {
                return Err(DriveError::Silent(self.patience));
            }
            let before = play.outcome.tally.operations();
            for event in &events {
                let ending = event.is_read_closed() || event.is_error();
                play.attend(self, event.token().0, ending)?;
            }
            if let Pace::Open { .. } = play.pace {
                play.send_what_is_due(self, play.now())?;
            }
            // One thread's own total would do, but others add to it too.
            progress.fetch_add(play.outcome.tally.operations() - before, Ordering::Relaxed);
        }
        Ok(play.finish())
    }
}

/// One script being played.
struct Play<'s> {
    clients: Vec<Client>,
    idle: Vec<usize>,
    busy: usize,
    script: &'s Script,
    start: Instant,
    /// The next batch.
    next: usize,
    /// Batches sent.
    started: u64,
    pace: Pace,
    until: Until,
    /// When bytes came last, or, where nothing was waited for, when something was sent again.
    heard: u64,
    patience: Duration,
    outcome: Outcome,
}

impl Play<'_> {
    /// Nanoseconds since the beginning.
    #[inline]
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Whether no more batches are to be sent.
    #[inline]
    fn is_over(&self, now: u64) -> bool {
        match self.until {
            Until::Sent => self.started == self.script.batches() as u64,
            Until::Elapsed(time) => now >= time.as_nanos() as u64,
        }
    }

    /// When the next batch is due.
    #[inline]
    fn next_due(&self) -> Option<u64> {
        match self.pace {
            Pace::Closed => None,
            Pace::Open { interval } => Some(self.started * interval.as_nanos() as u64),
        }
    }

    /// How long to wait for events.
    fn wait(&self) -> Duration {
        let now = self.now();
        let until = |then: u64| Duration::from_nanos(then.saturating_sub(now));
        // A little longer than what is waited for, so that it is over when the wait is.
        let after = |then: u64| until(then) + Duration::from_millis(1);
        let patient = if self.busy > 0 { after(self.given_up_at()) } else { Duration::MAX };
        match self.next_due() {
            Some(due) if !self.idle.is_empty() && !self.is_over(now) => {
                let wait = until(due).saturating_sub(WATCHFUL).as_millis() as u64;
                let end = match self.until {
                    Until::Elapsed(time) => after(time.as_nanos() as u64),
                    Until::Sent => Duration::MAX,
                };
                Duration::from_millis(wait).min(patient).min(end)
            }
            // Nothing is waited for: what is to end by the clock does.
            _ if self.busy == 0 => Duration::ZERO,
            _ => patient,
        }
    }

    /// When the servers are given up, if they say nothing more. A time that is over is waited out only so long, however
    /// often some of them say something.
    fn given_up_at(&self) -> u64 {
        let patience = self.patience.as_nanos() as u64;
        let silent = self.heard.saturating_add(patience);
        match self.until {
            Until::Elapsed(time) => silent.min((time.as_nanos() as u64).saturating_add(patience)),
            Until::Sent => silent,
        }
    }

    fn is_given_up(&self, now: u64) -> bool {
        self.busy > 0 && now > self.given_up_at()
    }

    /// Sends batches that are due, as far as clients are idle.
    fn send_what_is_due(&mut self, driver: &mut Driver, now: u64) -> Result<(), DriveError> {
        while !self.idle.is_empty() && !self.is_over(now) {
            let due = self.next_due().unwrap_or(now);
            if due > now {
                break;
            }
            let client = self.idle.pop().expect("it was just seen");
            self.send(driver, client, due)?;
        }
        Ok(())
    }

    /// Sends the next batch, which was due at `due`.
    #[inline]
    fn send(&mut self, driver: &mut Driver, client: usize, due: u64) -> Result<(), DriveError> {
        let batch = self.next;
        self.next = if batch + 1 == self.script.batches() { 0 } else { batch + 1 };
        self.started += 1;
        if self.busy == 0 {
            self.heard = self.now();
        }
        self.busy += 1;
        let mut waiting = 0;
        for lane in 0..driver.lanes {
            let (requests, part) = self.script.part(batch, lane);
            if part.replies == 0 {
                continue;
            }
            waiting += 1;
            self.outcome.tally.gets += u64::from(part.keys);
            let socket = &mut driver.sockets[client * driver.lanes + lane];
            socket.unsent = requests.start;
            socket.requests = requests;
            socket.due = part.replies;
            socket.checker = Checker::default();
            socket.reader = Reader::default();
            socket.send(self.script)?;
        }
        self.clients[client] = Client { sent: due, waiting };
        Ok(())
    }

    /// Looks after a socket at which something happened, its end perhaps.
    #[inline]
    fn attend(&mut self, driver: &mut Driver, number: usize, ending: bool) -> Result<(), DriveError> {
        let socket = &mut driver.sockets[number];
        if socket.unsent < socket.requests.end {
            socket.send(self.script)?;
        }
        loop {
            let socket = &mut driver.sockets[number];
            let filled = socket.left.len();
            if driver.buffer.len() < filled + BUFFER {
                driver.buffer.resize(filled + BUFFER, 0);
            }
            driver.buffer[..filled].copy_from_slice(&socket.left);
            let room = driver.buffer.len() - filled;
            let received = match socket.stream.read(&mut driver.buffer[filled..]) {
                Ok(0) => return Err(DriveError::Closed),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(lost(error)),
            };
            let now = self.now();
            self.heard = now;
            self.outcome.tally.received += received as u64;
            let replies = socket.understand(
                &driver.buffer[..filled + received],
                &driver.inspection,
                self.script,
                &mut self.outcome.tally,
            )?;
            if replies > 0 {
                self.answered(driver, number, replies, now)?;
            }
            // The end makes no second event if it came with the last bytes.
            if received < room && !ending {
                return Ok(());
            }
        }
    }

    /// Notes that `replies` have come, and goes on if the client has all of its batch's.
    #[inline]
    fn answered(
        &mut self,
        driver: &mut Driver,
        number: usize,
        replies: u64,
        now: u64,
    ) -> Result<(), DriveError> {
        let client = number / driver.lanes;
        let state = &mut self.clients[client];
        self.outcome.latencies.record(now.saturating_sub(state.sent), replies);
        let socket = &mut driver.sockets[number];
        socket.due = u32::try_from(replies)
            .ok()
            .and_then(|replies| socket.due.checked_sub(replies))
            .ok_or(DriveError::Surplus)?;
        if socket.due > 0 {
            return Ok(());
        }
        state.waiting -= 1;
        if state.waiting > 0 {
            return Ok(());
        }
        self.busy -= 1;
        match self.pace {
            Pace::Closed if !self.is_over(now) => self.send(driver, client, now),
            _ => {
                self.idle.push(client);
                Ok(())
            }
        }
    }

    fn finish(self) -> Outcome {
        let elapsed = self.start.elapsed();
        let due = match (self.pace, self.until) {
            (Pace::Open { interval }, Until::Elapsed(time)) => {
                (time.as_nanos() / interval.as_nanos().max(1)) as u64
            }
            _ => self.started,
        };
        Outcome {
            elapsed,
            overdue: due.saturating_sub(self.started),
            rounds: self.started as f64 / self.script.batches() as f64,
            ..self.outcome
        }
    }
}

impl Socket {
    /// Sends what the socket takes.
    #[inline]
    fn send(&mut self, script: &Script) -> Result<(), DriveError> {
        while self.unsent < self.requests.end {
            match self.stream.write(script.bytes(self.unsent..self.requests.end)) {
                Ok(0) => return Err(DriveError::Closed),
                Ok(count) => self.unsent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(error)),
            }
        }
        Ok(())
    }

    /// Takes in what was received: how many requests are answered by it.
    #[inline]
    fn understand(
        &mut self,
        received: &[u8],
        inspection: &Inspection,
        script: &Script,
        tally: &mut Tally,
    ) -> Result<u64, DriveError> {
        let before = tally.replies;
        let consumed = match inspection {
            Inspection::Count => self.counter.count(received, tally)?,
            Inspection::Check(_) if received.len() < self.needed => 0,
            Inspection::Check(contents) => {
                let requests = script.bytes(self.requests.clone());
                let checked = self.checker.check(contents, requests, received, tally, |_| ())?;
                self.needed = checked.needed;
                checked.consumed
            }
            Inspection::Resp(contents) => {
                self.reader.read(contents.as_ref(), script.bytes(self.requests.clone()), received, tally)?
            }
        };
        self.left.clear();
        self.left.extend_from_slice(&received[consumed..]);
        Ok(tally.replies - before)
    }
}

/// What an error of a connection means.
fn lost(error: io::Error) -> DriveError {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => DriveError::Closed,
        _ => DriveError::System(error),
    }
}
