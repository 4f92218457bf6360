//! What a thread keeps for a buffer, and how it finds it.
//!
//! The paper's functions name no thread. Yet counts, the numbers of lookups, the stripes that a thread holds and its
//! pins are the thread's own. They lie in a session, found through a thread-local pointer to the one used last: a hit
//! compares one number. That variable has no destructor, so using it registers nothing and works until the thread's
//! very end; who has several buffers finds the others in the list behind it.
//!
//! # Who frees what
//!
//! A thread ends, or a buffer does; either may be first, and both may happen at once.
//!
//! * The memory of a session is its thread's. A second thread-local variable, touched only when a session is made, has
//!   a destructor that frees the list. (What is made after that, by destructors of C++ for instance, is not freed.)
//! * The contents of a session, that is its untold counts and its guard if it is pinned, go when the first of both
//!   ends. The buffer's [`Registry`] knows which sessions still have theirs, under a mutex.
//! * What was retired is the buffer's: it lies in the buffer's collector ([`atomics::reclaim`]), which frees it when
//!   nobody is pinned any more who was then, also of threads that have ended; and when the buffer has ended, all of it.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lookaside::{Buffer, Guard, Random, ThreadState};
use parking_lot::Mutex;

use crate::layout::{LOOKASIDE_OFF, Lines, lookaside_session};

/// A stripe that a thread holds.
#[derive(Debug)]
struct Hold {
    stripe: usize,
    times: usize,
    /// Of this hash, a slot was cleared since.
    cleared: Option<u64>,
}

/// One thread's.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Session {
    /// What C code may use.
    pub(crate) face: lookaside_session,
    /// What was left when the face's counts were gathered.
    granted: Cell<i32>,
    id: u64,
    next: Cell<*mut Session>,
    pub(crate) state: ThreadState,
    /// Which of others a full counter cools.
    pub(crate) random: Random,
    held: RefCell<Vec<Hold>>,
    pins: Cell<usize>,
    contents: UnsafeCell<Contents>,
    closed: AtomicBool,
    registry: Arc<Registry>,
}

/// What a session has of its buffer.
#[derive(Debug, Default)]
struct Contents {
    /// Of this thread, if it is pinned. The buffer outlives it: whoever closes the registry takes it out.
    guard: Option<Guard<'static>>,
    /// There while the session is registered.
    buffer: Option<NonNull<Buffer>>,
}

/// How a buffer's sessions begin. The names are those of [`lookaside_session`].
#[derive(Debug)]
pub(crate) struct Beginning {
    /// The buffer's number.
    pub(crate) id: u64,
    pub(crate) warmest: u32,
    /// Of an owner's.
    pub(crate) enters: bool,
    pub(crate) newcomer: u8,
}

/// A buffer's sessions: how they begin, and which of them still have their contents.
#[derive(Debug)]
pub(crate) struct Registry {
    beginning: Beginning,
    sessions: Mutex<Vec<Registered>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Registered(*const Session);

// SAFETY: what is done with the pointer is done under the registry's mutex: see the head of this module.
unsafe impl Send for Registered {}

impl Registry {
    pub(crate) fn new(beginning: Beginning) -> Arc<Registry> {
        Arc::new(Registry { beginning, sessions: Mutex::default() })
    }

    /// The buffer's number, which no other has.
    pub(crate) fn id(&self) -> u64 {
        self.beginning.id
    }

    /// The buffer ends: nobody uses it any more, and no thread will.
    pub(crate) fn close(&self) {
        // Held to the end: a thread that ends meanwhile may free its session only when nothing here looks at it any
        // more.
        let mut sessions = self.sessions.lock();
        for Registered(session) in sessions.drain(..) {
            // SAFETY: registered, hence not freed: its thread waits for the mutex before it does that. By the contract
            // of `SLB_destroy` its thread is in no call.
            let session = unsafe { &*session };
            // SAFETY: as above. Whoever opens the contents otherwise is in a call, or has found the session registered.
            let contents = unsafe { std::mem::take(&mut *session.contents.get()) };
            // A guard is its thread's to drop; and the collector, which ends with the buffer, asks for none.
            std::mem::forget(contents.guard);
            // Release pairs with the acquire in `sweep`: its thread may free it now.
            session.closed.store(true, Ordering::Release);
        }
    }

    /// A thread ends, with this session.
    fn leave(&self, session: &Session) {
        let mut sessions = self.sessions.lock();
        let place = sessions.iter().position(|other| *other == Registered(session));
        if let Some(place) = place {
            sessions.swap_remove(place);
            // SAFETY: the session is this thread's, and was registered until now.
            let contents = unsafe { std::mem::take(&mut *session.contents.get()) };
            if let Some(buffer) = contents.buffer {
                session.gather();
                // SAFETY: a buffer is there until it has closed its registry, for which it would have to wait.
                session.state.tell(unsafe { buffer.as_ref() });
            }
            // Under the mutex: a buffer that ends now waits until nobody is in its collector.
            drop(contents.guard);
        }
    }
}

thread_local! {
    /// The session used last, and behind it the others.
    static FIRST: Cell<*mut Session> = const { Cell::new(null_mut()) };
    static FAREWELL: Farewell = const { Farewell };
}

/// Frees a thread's sessions when it ends.
struct Farewell;

impl Drop for Farewell {
    fn drop(&mut self) {
        let mut next = FIRST.replace(null_mut());
        while !next.is_null() {
            // SAFETY: made by `Box::into_raw`, and in no other list.
            let session = unsafe { Box::from_raw(next) };
            session.registry.leave(&session);
            next = session.next.get();
        }
    }
}

/// This thread's session for a buffer of this number; `buffer` tells of the rest, to make it.
///
/// It is lent for as long as the buffer lives.
#[inline(always)]
pub(crate) fn of<'b>(id: u64, buffer: impl FnOnce() -> (&'b Buffer, &'b Arc<Registry>)) -> &'b Session {
    let first = FIRST.get();
    // SAFETY: what the list has is freed by this thread only: at its end, or in `sweep` once its buffer is gone.
    match unsafe { first.as_ref() } {
        Some(session) if session.id == id => session,
        _ => {
            let (buffer, registry) = buffer();
            search(buffer, registry)
        }
    }
}

/// Finds a session in the list, or makes it, and puts it first.
#[cold]
fn search<'b>(buffer: &'b Buffer, registry: &'b Arc<Registry>) -> &'b Session {
    let (mut before, mut at) = (null_mut::<Session>(), FIRST.get());
    while !at.is_null() {
        // SAFETY: as in `of`.
        let session = unsafe { &*at };
        if session.id == registry.id() {
            // Not the first, or `of` had found it.
            if !before.is_null() {
                // SAFETY: as above.
                unsafe { (*before).next.set(session.next.get()) };
                session.next.set(FIRST.replace(at));
            }
            return session;
        }
        (before, at) = (at, session.next.get());
    }
    sweep();
    let session = Box::into_raw(Box::new(Session::among_others(buffer, registry)));
    // SAFETY: just made.
    let made = unsafe { &*session };
    made.next.set(FIRST.replace(session));
    registry.sessions.lock().push(Registered(session));
    // Refused when the thread is past its destructors: then nobody frees it.
    let _ = FAREWELL.try_with(|_| ());
    made
}

/// Frees sessions whose buffer is gone.
fn sweep() {
    let mut at = FIRST.replace(null_mut());
    while !at.is_null() {
        // SAFETY: as in `of`.
        let session = unsafe { &*at };
        let next = session.next.get();
        // Acquire pairs with the release in `close`, which is the last that the other thread did to it.
        if session.closed.load(Ordering::Acquire) {
            // SAFETY: made by `Box::into_raw`, and out of the list.
            drop(unsafe { Box::from_raw(at) });
        } else {
            session.next.set(FIRST.replace(at));
        }
        at = next;
    }
}

impl Session {
    /// One thread's, among others.
    fn among_others(buffer: &Buffer, registry: &Arc<Registry>) -> Session {
        Session::with(buffer, registry, Contents { guard: None, buffer: Some(NonNull::from(buffer)) })
    }

    /// That of an owner, who has no others to mind.
    pub(crate) fn alone(buffer: &Buffer, registry: &Arc<Registry>, lines: Lines) -> Session {
        let session = Session::with(buffer, registry, Contents::default());
        session.see(lines);
        session
    }

    /// An owner's table is another.
    pub(crate) fn see(&self, lines: Lines) {
        self.face.base.set(lines.base);
        self.face.count.set(lines.count);
    }

    fn with(buffer: &Buffer, registry: &Arc<Registry>, contents: Contents) -> Session {
        let (state, beginning) = (buffer.thread_state(), &registry.beginning);
        Session {
            face: lookaside_session {
                left: Cell::new(0),
                uses_table: Cell::new(1),
                misses: Cell::new(0),
                warmest: beginning.warmest,
                reserved: 0,
                random: Cell::new(state.random()),
                base: Cell::new(std::ptr::null()),
                count: Cell::new(0),
                enters: (contents.buffer.is_none() && beginning.enters).into(),
                newcomer: beginning.newcomer.into(),
                filled: Cell::new(0),
                replaced: Cell::new(0),
            },
            random: Random::new(state.random()),
            granted: Cell::new(0),
            id: beginning.id,
            next: Cell::new(null_mut()),
            state,
            held: RefCell::default(),
            pins: Cell::new(0),
            contents: UnsafeCell::new(contents),
            closed: AtomicBool::new(false),
            registry: Arc::clone(registry),
        }
    }

    /// Takes over what the face has counted.
    pub(crate) fn gather(&self) {
        let face = &self.face;
        let left = face.left.get();
        // Of a caller who gave back what it had not taken: none.
        let taken = u64::try_from(self.granted.replace(left) - left).unwrap_or(0);
        let misses = face.misses.take();
        match face.uses_table.get() {
            0 => self.state.counted(0, 0, taken),
            _ => self.state.counted(taken.saturating_sub(misses), misses, 0),
        }
        self.state.put(face.filled.take().into(), face.replaced.take().into());
    }

    /// Ends a turn before its time: the monitor is asked again at the next lookup.
    pub(crate) fn end_turn(&self) {
        self.gather();
        self.grant(0);
    }

    /// Grants the lookups of another turn. What was counted has been gathered.
    pub(crate) fn begin_turn(&self) {
        self.grant(match self.face.uses_table.get() {
            0 => LOOKASIDE_OFF + ThreadState::TURN as i32,
            _ => ThreadState::TURN as i32,
        });
    }

    fn grant(&self, left: i32) {
        self.face.left.set(left);
        self.granted.set(left);
    }

    /// The buffer that is shared with others; `None` in an owner's.
    fn buffer(&self) -> Option<&Buffer> {
        // SAFETY: in a call of this thread, so nobody else opens the contents; no reference to them stays.
        let buffer = unsafe { (*self.contents.get()).buffer };
        // SAFETY: in a call of this thread: the buffer lives.
        buffer.map(|buffer| unsafe { buffer.as_ref() })
    }

    /// A guard of its own for this call; `None` in an owner's. When it goes, what was retired may be freed, and so user
    /// code run.
    pub(crate) fn guard(&self) -> Option<Guard<'_>> {
        self.buffer().map(Buffer::pin)
    }

    /// Pins, once more.
    pub(crate) fn pin(&self) {
        let pins = self.pins.get();
        if pins == 0 {
            // SAFETY: the buffer outlives it: see `Contents`.
            let guard =
                self.guard().map(|guard| unsafe { std::mem::transmute::<Guard<'_>, Guard<'static>>(guard) });
            self.put_guard(guard);
        }
        self.pins.set(pins + 1);
    }

    /// Unpins, once. Nothing if it is not pinned.
    pub(crate) fn unpin(&self) {
        let Some(pins) = self.pins.get().checked_sub(1) else { return };
        self.pins.set(pins);
        if pins == 0 {
            // Taken first: leaving may run user code.
            drop(self.take_guard());
        }
    }

    /// Pins anew. Nothing if it is not pinned, or more than once.
    pub(crate) fn repin(&self) {
        // Taken out meanwhile: user code may run.
        if self.pins.get() == 1
            && let Some(mut guard) = self.take_guard()
        {
            guard.refresh();
            self.put_guard(Some(guard));
        }
    }

    fn take_guard(&self) -> Option<Guard<'static>> {
        // SAFETY: as in `buffer`.
        unsafe { (*self.contents.get()).guard.take() }
    }

    fn put_guard(&self, guard: Option<Guard<'static>>) {
        // SAFETY: as in `buffer`. There is none in its place: nothing runs when that is dropped.
        unsafe { (*self.contents.get()).guard = guard };
    }

    /// Shows the guard of this thread's pin, or one for this call. Nothing in an owner's.
    pub(crate) fn pinned(&self, show: impl FnOnce(&Guard<'_>)) {
        // SAFETY: as in `buffer`; `show` calls nothing of the interface.
        if let Some(guard) = unsafe { (*self.contents.get()).guard.as_ref() } {
            show(guard);
        } else if let Some(guard) = self.guard() {
            show(&guard);
        }
    }

    /// Whether this thread holds a stripe.
    #[inline]
    pub(crate) fn holds(&self, stripe: usize) -> bool {
        self.held.borrow().iter().any(|hold| hold.stripe == stripe)
    }

    /// Once more, if it is held; whether it was.
    pub(crate) fn hold_again(&self, stripe: usize) -> bool {
        let mut held = self.held.borrow_mut();
        let hold = held.iter_mut().find(|hold| hold.stripe == stripe);
        hold.map(|hold| hold.times += 1).is_some()
    }

    pub(crate) fn hold(&self, stripe: usize) {
        self.held.borrow_mut().push(Hold { stripe, times: 1, cleared: None });
    }

    /// Once less; whether that was the last.
    pub(crate) fn let_go(&self, stripe: usize) -> bool {
        let mut held = self.held.borrow_mut();
        let Some(place) = held.iter().position(|hold| hold.stripe == stripe) else { return false };
        held[place].times -= 1;
        let last = held[place].times == 0;
        if last {
            held.swap_remove(place);
        }
        last
    }

    pub(crate) fn holds_any(&self) -> bool {
        !self.held.borrow().is_empty()
    }

    /// A slot of this hash was cleared; remembered while the stripe is held.
    pub(crate) fn note_cleared(&self, stripe: usize, hash: u64) {
        if let Some(hold) = self.held.borrow_mut().iter_mut().find(|hold| hold.stripe == stripe) {
            hold.cleared = Some(hash);
        }
    }

    pub(crate) fn was_cleared(&self, stripe: usize, hash: u64) -> bool {
        self.held.borrow().iter().any(|hold| hold.stripe == stripe && hold.cleared == Some(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extended::{lookaside_pin, lookaside_retire, lookaside_unpin};
    use crate::figure4::{SLB_create, SLB_destroy};
    use std::ffi::c_void;
    use std::sync::atomic::AtomicPtr;
    use std::time::{Duration, Instant};

    extern "C-unwind" fn hash(_: *mut c_void) -> u64 {
        1
    }

    extern "C-unwind" fn matches(_: *mut c_void, _: *mut c_void) -> bool {
        false
    }

    /// What happens while a buffer ends.
    #[derive(Default)]
    struct Ending {
        other: AtomicPtr<Session>,
        may_end: AtomicBool,
        has_ended: AtomicBool,
        was_closed: AtomicBool,
        ended_meanwhile: AtomicBool,
    }

    /// Dropped after the thread's sessions, if it was made before them.
    struct Last(Arc<Ending>);

    impl Drop for Last {
        fn drop(&mut self) {
            self.0.has_ended.store(true, Ordering::SeqCst);
        }
    }

    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }

    /// Called while the buffer ends: lets the other thread end, and sees whether it can.
    unsafe extern "C-unwind" fn free(_: *mut c_void, ending: *mut c_void) {
        // SAFETY: the test's.
        let ending = unsafe { &*ending.cast::<Ending>() };
        // SAFETY: its thread waits for `may_end`.
        let other = unsafe { &*ending.other.load(Ordering::SeqCst) };
        ending.was_closed.store(other.closed.load(Ordering::SeqCst), Ordering::SeqCst);
        ending.may_end.store(true, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline && !ending.has_ended.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        ending.ended_meanwhile.store(ending.has_ended.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    struct Sent(*mut crate::SLB);
    // SAFETY: its functions may be called by any thread.
    unsafe impl Send for Sent {}

    /// What users free runs when no session is left to be closed, and no lock is held: a thread, pinned or not, can end
    /// meanwhile, and free its session.
    #[test]
    fn a_thread_ends_while_a_buffer_frees_what_was_retired_to_it() {
        for pinned in [false, true] {
            let ending = Arc::new(Ending::default());
            // SAFETY: callbacks that follow no pointer; the other thread makes its last call before the end.
            let b = unsafe { SLB_create(64, Some(matches), Some(hash), Some(hash)) };
            let other = std::thread::spawn({
                let (sent, ending) = (Sent(b), Arc::clone(&ending));
                move || {
                    let Sent(b) = { sent };
                    LAST.set(Some(Last(Arc::clone(&ending))));
                    // SAFETY: the buffer lives until `other` is set.
                    unsafe {
                        lookaside_pin(b);
                        if !pinned {
                            lookaside_unpin(b);
                        }
                    }
                    ending.other.store(FIRST.get(), Ordering::SeqCst);
                    while !ending.may_end.load(Ordering::SeqCst) {
                        std::thread::yield_now();
                    }
                }
            });
            while ending.other.load(Ordering::SeqCst).is_null() {
                std::thread::yield_now();
            }
            let context = Arc::as_ptr(&ending).cast_mut().cast();
            // SAFETY: nobody follows the entry, nor uses the buffer after this.
            unsafe {
                lookaside_retire(b, std::ptr::without_provenance_mut(64), Some(free), context);
                SLB_destroy(b);
            }
            other.join().unwrap();
            assert!(ending.was_closed.load(Ordering::SeqCst), "its session is yet to be closed");
            assert!(ending.ended_meanwhile.load(Ordering::SeqCst), "it waits for the buffer");
        }
    }
}
