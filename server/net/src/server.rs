//! Starting and stopping.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cache::engine::{Cache, Todo};
use mio::{Poll, Waker};
use thread_priority::{
    NormalThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tracing::{error, info};

use crate::aside::Aside;
use crate::error::StartError;
use crate::guest::{Inbox, Reception, WAKER};
use crate::listener::{self, Sockets};
use crate::settings::Settings;
use crate::shared::{Shared, unix_time};
use crate::worker::Worker;

/// How long housekeeping rests when nothing is to be done.
const REST: Duration = Duration::from_millis(100);
/// By how much the priority of who prefaults is lower than that of the others.
const LOWEST_PRIORITY: i32 = 19;

/// A server that has its memory, and no sockets yet: nothing that others could see.
pub struct Furnished {
    settings: Settings,
    cache: Cache,
}

impl Furnished {
    /// Takes memory. Of terabytes that may take seconds.
    ///
    /// # Errors
    /// [`StartError`]: nothing has been left behind then.
    pub fn new(settings: Settings) -> Result<Furnished, StartError> {
        if settings.threads == 0 {
            return Err(StartError::NoThreads);
        }
        let cache = settings.cache()?;
        Ok(Furnished { settings, cache })
    }

    /// Binds sockets: clients can connect from here on, and wait.
    ///
    /// # Errors
    /// [`StartError`]: nothing has been left behind then.
    pub fn listen(self) -> Result<Prepared, StartError> {
        let Furnished { settings, cache } = self;
        let sockets = Sockets::bind(&settings)?;
        Ok(Prepared { settings, cache, started: unix_time(), sockets })
    }
}

/// A server that has its memory and its sockets, and no thread yet.
///
/// Between the two, a process may give up the rights that its sockets needed, or go into the background, which threads
/// would not survive.
pub struct Prepared {
    settings: Settings,
    cache: Cache,
    started: u64,
    sockets: Sockets,
}

impl Prepared {
    /// What it was made with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The TCP addresses it listens on, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.sockets.addresses()
    }

    /// Starts the threads: one that accepts, one that keeps house, and those that serve.
    ///
    /// # Errors
    /// [`StartError::System`]: nothing has been left behind then.
    pub fn start(self) -> Result<Server, StartError> {
        let Prepared { settings, cache, started, sockets } = self;
        let mut server = Server {
            addresses: sockets.addresses().to_vec(),
            shared: Arc::new(Shared::new(settings, cache, started)),
            threads: Vec::new(),
            parked: Vec::new(),
        };
        server.start_threads(sockets)?;
        info!(addresses = ?server.addresses, "listening");
        Ok(server)
    }
}

/// A server that runs. Dropped, it stops.
pub struct Server {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<io::Result<()>>>,
    /// Those that wait parked, and not for a socket.
    parked: Vec<JoinHandle<()>>,
}

impl Server {
    /// Takes memory, binds sockets and starts the threads.
    ///
    /// # Errors
    /// [`StartError`]: nothing has been left behind then.
    pub fn start(settings: Settings) -> Result<Server, StartError> {
        Furnished::new(settings)?.listen()?.start()
    }

    fn start_threads(&mut self, sockets: Sockets) -> Result<(), StartError> {
        let mut inboxes = Vec::new();
        let (guests, to_receive) = crossbeam_channel::unbounded();
        let (aside, waker) = self.waker()?;
        let reception = Reception { guests, waker };
        for number in 0..self.shared.settings.threads {
            let (connections, newcomers) = crossbeam_channel::unbounded();
            let (poll, waker) = self.waker()?;
            inboxes.push(Inbox { connections, waker });
            let (shared, reception) = (self.shared.clone(), reception.clone());
            let run = move || Worker::new(shared, poll, newcomers, reception).run();
            self.spawn(format!("worker-{number}"), run)?;
        }
        let (shared, homes) = (self.shared.clone(), inboxes.clone());
        self.spawn("aside".into(), move || Aside::new(shared, aside, to_receive, homes).run())?;
        let (poll, _) = self.waker()?;
        let shared = self.shared.clone();
        self.spawn("listener".into(), move || listener::accept(&shared, sockets, poll, &inboxes))?;
        let shared = self.shared.clone();
        let duty = self.duty("housekeeper");
        let housekeeping = move || {
            let _duty = duty();
            keep_house(&shared);
        };
        self.parked.push(begin("housekeeper".into(), housekeeping)?);
        // No duty: without it, requests wait for the machine's memory now and then.
        let shared = self.shared.clone();
        let prefaulting = move || prefault(&shared);
        self.parked.push(begin("prefaulter".into(), prefaulting)?);
        Ok(())
    }

    fn waker(&mut self) -> io::Result<(Poll, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        self.shared.wakers.lock().push(waker.clone());
        Ok((poll, waker))
    }

    fn spawn(
        &mut self,
        name: String,
        run: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), StartError> {
        let duty = self.duty(&name);
        let run = move || {
            let _duty = duty();
            run()
        };
        self.threads.push(begin(name, run)?);
        Ok(())
    }

    /// The duty of a thread, which it takes up when it begins: one that cannot be started has none.
    fn duty(&self, name: &str) -> impl FnOnce() -> Duty + Send + use<> {
        let (shared, thread) = (self.shared.clone(), name.to_owned());
        move || Duty { shared, thread }
    }

    /// Has `tell` called if a thread of the server ends before it was told to, or if a client stops the server by
    /// `shutdown`: then the server is to be stopped, which says why. Its threads end with the next event that they
    /// have. Only the first who asks is told, perhaps more than once.
    pub fn when_broken(&self, tell: impl Fn() + Send + Sync + 'static) {
        // It may be set already: see above.
        let _ = self.shared.when_broken.set(Box::new(tell));
        // Pairs with the fence of `Duty`: one of the two sees what the other has written.
        fence(Ordering::SeqCst);
        if self.shared.is_stopping()
            && let Some(tell) = self.shared.when_broken.get()
        {
            tell();
        }
    }

    /// The TCP addresses it listens on, with the ports that were chosen.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops: no more connections are accepted, those that are open are closed.
    ///
    /// # Errors
    /// What ended a thread before its time, if anything did.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for waker in self.shared.wakers.lock().iter() {
            waker.wake()?;
        }
        let mut outcome = Ok(());
        for thread in self.parked.drain(..) {
            thread.thread().unpark();
            let ended = thread.join().map_err(|_| io::Error::other("a thread panicked"));
            outcome = outcome.and(ended);
        }
        for thread in self.threads.drain(..) {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn begin<T: Send + 'static>(
    name: String,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, StartError> {
    let begun = thread::Builder::new().name(name.clone()).spawn(run);
    begun.map_err(|source| StartError::Thread { name, source })
}

/// What a thread has for as long as it lives: where one is missing, clients would be accepted whom nobody serves, or
/// items would never expire. Better no server at all.
struct Duty {
    shared: Arc<Shared>,
    thread: String,
}

impl Drop for Duty {
    fn drop(&mut self) {
        if !self.shared.stop.swap(true, Ordering::Relaxed) {
            error!(thread = self.thread, "ended before its time: the server stops");
            // Pairs with the fence of `when_broken`.
            fence(Ordering::SeqCst);
            if let Some(tell) = self.shared.when_broken.get() {
                tell();
            }
        }
    }
}

/// Keeps the time and does the cache's housekeeping until the server stops.
fn keep_house(shared: &Shared) {
    let mut housekeeper = shared.cache.housekeeper();
    while !shared.is_stopping() {
        let time = unix_time();
        // Before the clock shows it.
        while !housekeeper.flush_due(shared.to_second(time)) {
            thread::yield_now();
        }
        shared.set_time(time);
        match housekeeper.step() {
            Todo::Rest => thread::park_timeout(REST),
            Todo::More => thread::yield_now(),
        }
    }
}

/// Has memory ready before it is needed, until the server stops.
fn prefault(shared: &Shared) {
    // Who serves goes first, also while the kernel clears a page for this thread. Under the idle policy at once; by its
    // priority alone, this thread would go on for up to four milliseconds. (Both are of the thread alone, on Linux.)
    let idle = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Idle);
    let is_idle = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, idle).is_ok();
    if is_idle || rustix::process::nice(LOWEST_PRIORITY).is_ok() {
        shared.cache.prefaulter().run(|| shared.is_stopping());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_before_its_time_ends_the_server() {
        let settings = Settings::default().with_tcp(vec![([127, 0, 0, 1], 0).into()]);
        let mut server = Server::start(settings).expect("a free port");
        let (told, heard) = crossbeam_channel::unbounded();
        server.when_broken(move || told.send(()).expect("somebody listens"));
        server.spawn("short-lived".into(), || Err(io::Error::other("on purpose"))).expect("a thread");
        heard.recv_timeout(Duration::from_secs(60)).expect("somebody is told");
        let outcome = server.stop().map_err(|error| error.to_string());
        assert_eq!(outcome, Err("on purpose".to_string()));
    }
}
