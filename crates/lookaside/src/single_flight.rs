//! One thread makes what several have asked for; the others wait for it.
//!
//! ```text
//!   board:  nobody makes it        -> this thread does: a Flight, which lands when it is dropped
//!           another thread does    -> wait until that flight has landed: look again
//!           waiting would not end  -> a Ring, and the caller panics
//! ```
//!
//! What is made is named by a place, the map's address, and a hash. A flight that lands says only that it is over: the
//! value is in the map, or, where making it panicked or failed, it is not, and whoever looks again and finds nothing
//! makes it. No lock is held while a value is made.
//!
//! # Who would wait for ever
//!
//! A thread that makes a value may ask for another, and be told to wait for the thread that makes that. Each thread
//! waits for one flight at most, and each flight has one thread, so whoever is about to wait follows this chain, and
//! does not wait if it ends at himself. So that chains through several maps are seen, all maps have the same list,
//! which is as long as there are values being made. The source is Go's `singleflight`, which has no such check.
//!
//! Rejected: *making it under the stripe of the key*: a value that takes a millisecond would stop all writes of a
//! thousandth of the keys, and could not ask for another; *a list a map*: two maps whose values ask for each other
//! would wait for ever.

use atomics::{Condvar, Mutex};

/// What is being made: a map's address, and the hash of a key.
pub(crate) type Subject = (usize, u64);

#[cfg(not(loom))]
type Thread = usize;
#[cfg(loom)]
type Thread = loom::thread::ThreadId;

#[cfg(not(loom))]
fn this_thread() -> Thread {
    // Without a destructor: it has an address for as long as the thread runs anything.
    thread_local! {
        static HERE: u8 = const { 0 };
    }
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

#[cfg(loom)]
fn this_thread() -> Thread {
    loom::thread::current().id()
}

#[derive(Debug)]
struct Flights {
    /// What is being made, and by whom.
    flying: Vec<(Subject, Thread)>,
    /// Who waits, and for what.
    waiting: Vec<(Thread, Subject)>,
}

impl Flights {
    fn maker(&self, subject: Subject) -> Option<Thread> {
        self.flying.iter().find(|(other, _)| *other == subject).map(|(_, maker)| *maker)
    }

    /// Whether this thread would wait for itself if it waited for the flight of `maker`.
    fn would_wait_for(&self, thread: Thread, mut maker: Thread) -> bool {
        // Nobody waits who would make this a ring, so it ends.
        loop {
            if maker == thread {
                return true;
            }
            let next = self.waiting.iter().find(|(waiting, _)| *waiting == maker);
            match next.and_then(|(_, subject)| self.maker(*subject)) {
                Some(next) => maker = next,
                None => return false,
            }
        }
    }
}

/// The list of what is being made.
#[derive(Debug)]
pub(crate) struct SingleFlight {
    flights: Mutex<Flights>,
    landed: Condvar,
}

/// What a thread that needs a value is to do.
#[derive(Debug)]
pub(crate) enum Boarding<'f> {
    /// Make it, and drop this when it is where others look, or cannot be made.
    Make(Flight<'f>),
    /// Look again: another thread has made it, or has failed to.
    LookAgain,
    /// This thread is making it already, or would wait for itself through what others wait for.
    Ring,
}

impl SingleFlight {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> SingleFlight {
        let flights = Flights { flying: Vec::new(), waiting: Vec::new() };
        SingleFlight { flights: Mutex::new(flights), landed: Condvar::new() }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> SingleFlight {
        let flights = Flights { flying: Vec::new(), waiting: Vec::new() };
        SingleFlight { flights: Mutex::new(flights), landed: Condvar::new() }
    }

    /// Asks to make a value, or waits until another thread has done so.
    pub(crate) fn board(&self, subject: Subject) -> Boarding<'_> {
        let this = this_thread();
        let mut flights = self.flights.lock();
        let Some(maker) = flights.maker(subject) else {
            flights.flying.push((subject, this));
            return Boarding::Make(Flight { list: self, subject });
        };
        if flights.would_wait_for(this, maker) {
            return Boarding::Ring;
        }
        flights.waiting.push((this, subject));
        while flights.maker(subject).is_some() {
            flights = self.landed.wait(flights);
        }
        flights.waiting.retain(|(thread, _)| *thread != this);
        Boarding::LookAgain
    }
}

/// A value that this thread is making. It lands when it is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct Flight<'f> {
    list: &'f SingleFlight,
    subject: Subject,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut flights = self.list.flights.lock();
        flights.flying.retain(|(subject, _)| *subject != self.subject);
        let wakes = !flights.waiting.is_empty();
        drop(flights);
        if wakes {
            self.list.landed.notify_all();
        }
    }
}
