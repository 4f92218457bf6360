//! A buffer, its callbacks, and what can be done with both.
//!
//! An [`SLB`] of the header is a [`Handle`]: a buffer that several may share, the number of the index among those that
//! do, and the callbacks that know the index's keys and entries.
//!
//! # Who may touch the table
//!
//! The core wants an epoch pinned around every use of the table, since [`lookaside_resize`](crate::lookaside_resize)
//! may replace it. A hit under the paper's lock shall not pay for that. So here a resize first takes all stripes: who
//! holds a stripe needs no pin, who has pinned needs no stripe, and who is alone needs neither. Every function of the
//! interface asks its caller for one of the three, and [`Handle::table`] rests on it.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use lookaside::{
    Admission, Buffer, Config, CounterPolicy, CreateError, Guard, IndexId, Pointer, Slb, ThreadState, Ticket,
};

use crate::layout::{LOOKASIDE_OFF, Line, Lines, Prefix, SLOTS};
use crate::session::{self, Beginning, Registry, Session};

/// A search lookaside buffer in front of one index.
#[derive(Debug)]
pub struct SLB {
    _opaque: (),
}

/// Whether `entry` is the entry of `key`. Called with no lock of the library held but those that the caller took.
///
/// It must not call functions of the same buffer, and must not let an exception out: that ends the process.
pub type matchfunc = Option<unsafe extern "C-unwind" fn(entry: *mut c_void, key: *mut c_void) -> bool>;

/// The hash of a key, or of an entry's key: equal for a key and its entry. It need not be a good one, only different
/// for different keys: the library mixes it.
///
/// It must not call functions of the same buffer, and must not let an exception out: that ends the process.
pub type hashfunc = Option<unsafe extern "C-unwind" fn(opaque: *mut c_void) -> u64>;

/// The moment at which an index is searched. Good for one emission. An odd one is good for none.
pub type lookaside_ticket = u64;

type Match = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> bool;
type Hash = unsafe extern "C-unwind" fn(*mut c_void) -> u64;

/// A ticket that is good for nothing.
pub(crate) const VOID_TICKET: lookaside_ticket = 1;

/// Keys looked up at once in a batch.
const GROUP: usize = 16;

/// How warm hits make a slot, where not every hit counts.
const WARMEST: u32 = 15;

/// What knows the index's keys and entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Callbacks {
    pub(crate) matches: Match,
    pub(crate) key_hash: Hash,
    /// Of those who emit by keys alone: none.
    pub(crate) entry_hash: Option<Hash>,
}

/// What handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) buffer: Buffer,
    lines: AtomicPtr<Lines>,
    registry: Arc<Registry>,
    entry_bytes: usize,
    /// Whether hashes may be uneven.
    mixes: bool,
}

// SAFETY: what is not `Sync` by itself is the pointers to lines, which are only read.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub(crate) fn new(
        config: &Config,
        indexes: usize,
        entry_bytes: usize,
        mixes: bool,
    ) -> Result<Shared, CreateError> {
        /// Buffers made so far: a number that no other has, since an address may come again.
        static MADE: AtomicU64 = AtomicU64::new(0);
        let buffer = Buffer::for_indexes(config, indexes)?;
        // SAFETY: nobody else has it.
        let lines = Lines::of(unsafe { buffer.table() });
        Ok(Shared {
            lines: AtomicPtr::new(Box::into_raw(Box::new(lines))),
            buffer,
            registry: Registry::new(Beginning {
                id: MADE.fetch_add(1, Ordering::Relaxed) + 1,
                warmest: match config.counters {
                    CounterPolicy::Falling => WARMEST,
                    CounterPolicy::EveryHit => 256,
                    _ => 0,
                },
                enters: config.counters == CounterPolicy::Falling
                    && config.admission == Admission::Sampled { sampling: 1.0 },
                newcomer: config.newcomer,
            }),
            entry_bytes,
            mixes,
        })
    }

    /// The session of an owner, who is alone.
    pub(crate) fn owner_session(&self) -> Session {
        Session::alone(&self.buffer, &self.registry, self.lines())
    }

    /// Replaces the table. The caller holds no stripe.
    pub(crate) fn resize(&self, size: usize) -> Result<(), CreateError> {
        let guard = self.buffer.pin();
        let publish = |table: &Slb| {
            // SAFETY: readers by the other way have pinned.
            unsafe { retire_lines(self.publish(table), &guard) };
        };
        // SAFETY: whoever calls the interface has pinned the buffer, or holds a stripe: see the head of this module.
        unsafe { self.buffer.resize_exclusively(size, &guard, publish) }
    }

    /// Where the lines of the table are. See the head of this module.
    #[inline(always)]
    pub(crate) fn lines(&self) -> Lines {
        // Acquire pairs with the release in `publish`. SAFETY: made by `Box::into_raw`; freed, with the table, when
        // nobody is in a call who has found it.
        unsafe { *self.lines.load(Ordering::Acquire) }
    }

    /// Shows `lookaside_inline.h` the lines of a table that is about to be the one in use. What it saw before, made by
    /// `Box::into_raw`, is now the caller's alone, but for readers who hold no stripe.
    fn publish(&self, table: &Slb) -> *mut Lines {
        let new = Box::into_raw(Box::new(Lines::of(table)));
        // Release pairs with the acquire in lookaside_inline.h.
        self.lines.swap(new, Ordering::AcqRel)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Before the buffer, whose collector frees whatever was retired to it, in whichever thread.
        self.registry.close();
        // SAFETY: made by `Box::into_raw`; nobody else has it.
        drop(unsafe { Box::from_raw(*self.lines.get_mut()) });
    }
}

/// Frees lines that [`Shared::publish`] gave, when all have left who are pinned now.
///
/// # Safety
/// Whoever may still read them has pinned the buffer.
unsafe fn retire_lines(lines: *mut Lines, guard: &Guard<'_>) {
    unsafe fn free(lines: *mut (), _: *const ()) {
        // SAFETY: those that are retired below, made by `Box::into_raw`. Once.
        drop(unsafe { Box::from_raw(lines.cast::<Lines>()) });
    }
    // SAFETY: nobody finds them any more; they own nothing, and any thread may free them.
    unsafe { guard.retire(lines.cast(), std::ptr::null(), free) };
}

/// A buffer as one index sees it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) prefix: Prefix,
    pub(crate) mark: IndexId,
    callbacks: Callbacks,
    id: u64,
    pub(crate) shared: Arc<Shared>,
}

impl Handle {
    /// `None` if as many indexes as the buffer was made for have a handle.
    pub(crate) fn new(shared: Arc<Shared>, callbacks: Callbacks) -> Option<Handle> {
        let mark: IndexId = shared.buffer.index_id().ok()?;
        let prefix = Prefix::new(mark, &shared.lines, shared.mixes);
        Some(Handle { prefix, mark, callbacks, id: shared.registry.id(), shared })
    }

    /// The handle that C knows by this pointer; `None` if it is null.
    ///
    /// # Safety
    /// Null, or made by [`Handle::into_raw`] and not yet destroyed.
    #[inline(always)]
    pub(crate) unsafe fn of<'h>(slb: *const SLB) -> Option<&'h Handle> {
        // SAFETY: the caller's promise.
        unsafe { slb.cast::<Handle>().as_ref() }
    }

    /// This thread's session.
    #[inline(always)]
    pub(crate) fn session(&self) -> &Session {
        session::of(self.id, || (&self.shared.buffer, &self.shared.registry))
    }

    pub(crate) fn into_raw(self) -> *mut SLB {
        Box::into_raw(Box::new(self)).cast()
    }

    /// The table. See the head of this module.
    #[inline(always)]
    pub(crate) fn table(&self) -> &Slb {
        // SAFETY: whoever calls the interface has pinned, or holds a stripe, or is alone: the table is not replaced
        // meanwhile.
        unsafe { self.shared.buffer.table() }
    }

    #[inline(always)]
    pub(crate) fn hash_of_key(&self, key: *const c_void) -> u64 {
        // SAFETY: the callback is for keys of this index, of which the caller says that this is one.
        self.prefix.hash(unsafe { (self.callbacks.key_hash)(key.cast_mut()) })
    }

    /// Where there is none, no write would find what were emitted: it must not be.
    #[inline(always)]
    pub(crate) fn hash_of_entry(&self, entry: *mut c_void) -> Option<u64> {
        // SAFETY: as above, for entries.
        self.callbacks.entry_hash.map(|hash| self.prefix.hash(unsafe { hash(entry) }))
    }

    /// Whether the next so many lookups are to ask the table.
    #[inline(always)]
    fn asks(&self, session: &Session, lookups: u32) -> bool {
        let (face, lookups) = (&session.face, lookups as i32);
        let left = face.left.get() - lookups;
        face.left.set(left);
        if left >= 0 {
            return true;
        }
        if (LOOKASIDE_OFF..=LOOKASIDE_OFF + ThreadState::TURN as i32).contains(&left) {
            return false;
        }
        face.left.set(left + lookups);
        self.turn(session, lookups as u32);
        face.left.set(face.left.get() - lookups);
        face.uses_table.get() != 0
    }

    /// Tells the counts, and asks the monitor: before a call of so many lookups.
    #[cold]
    pub(crate) fn turn(&self, session: &Session, lookups: u32) {
        session.gather();
        let shared = &self.shared;
        let uses_table = session.state.turn(&shared.buffer, lookups, || self.table().capacity());
        session.face.uses_table.set(uses_table.into());
        session.begin_turn();
    }

    #[inline(always)]
    fn is_of(&self, pointer: Pointer, key: *const c_void) -> bool {
        // SAFETY: the callback is for entries and keys of this index: the table holds entries emitted under its mark,
        // and the caller sees to it that they live.
        unsafe { (self.callbacks.matches)(address(pointer), key.cast_mut()) }
    }

    /// The line of a hash.
    #[inline(always)]
    fn line(&self, hash: u64) -> &Line {
        // SAFETY: as in `table`.
        unsafe { self.shared.lines().line(hash) }
    }

    /// As lookaside_inline_find_in().
    #[inline(always)]
    fn find(&self, session: &Session, hash: u64, key: *const c_void) -> *mut c_void {
        let line = self.line(hash);
        for slot in 0..SLOTS {
            if let Some(pointer) = line.entry(slot, hash)
                && self.is_of(pointer, key)
            {
                self.warm(session, line, hash, slot);
                return address(pointer);
            }
        }
        session.face.misses.set(session.face.misses.get() + 1);
        std::ptr::null_mut()
    }

    /// As lookaside_inline_warm().
    #[inline(always)]
    fn warm(&self, session: &Session, line: &Line, hash: u64, slot: usize) {
        if !line.warm(slot, session.face.warmest) {
            // Full: the table cools another.
            self.table().warm(hash, slot, &session.random);
        }
    }

    /// The entry of a key, or null.
    #[inline(always)]
    pub(crate) fn get(&self, session: &Session, key: *const c_void) -> *mut c_void {
        if !self.asks(session, 1) {
            return std::ptr::null_mut();
        }
        self.find(session, self.hash_of_key(key), key)
    }

    /// The entry of a key; or null, and a ticket.
    #[inline(always)]
    pub(crate) fn get_or_ticket(
        &self,
        session: &Session,
        key: *const c_void,
    ) -> Result<*mut c_void, lookaside_ticket> {
        if !self.asks(session, 1) {
            return Err(VOID_TICKET);
        }
        let hash = self.hash_of_key(key);
        let found = self.find(session, hash, key);
        if found.is_null() { Err(self.shared.buffer.ticket(hash).number()) } else { Ok(found) }
    }

    /// Asks for the lines of an entry that it takes to compare it. It may begin anywhere in the first.
    #[inline(always)]
    fn prefetch(&self, entry: Pointer) {
        let (start, bytes) = (address(entry).cast::<u8>(), self.shared.entry_bytes);
        for offset in (0..bytes).step_by(64) {
            pages::prefetch(start.wrapping_add(offset));
        }
        pages::prefetch(start.wrapping_add(bytes.saturating_sub(1)));
    }

    /// The entries of at most [`GROUP`] keys, all of which are keys; how many were found.
    fn get_group(
        &self,
        session: &Session,
        keys: &[*mut c_void],
        mut answer: impl FnMut(usize, *mut c_void, lookaside_ticket),
    ) -> usize {
        if !self.asks(session, keys.len() as u32) {
            (0..keys.len()).for_each(|i| answer(i, std::ptr::null_mut(), VOID_TICKET));
            return 0;
        }
        let lines = self.shared.lines();
        // SAFETY: as in `table`.
        let line = |hash| unsafe { lines.line(hash) };
        let mut hashes = [0; GROUP];
        for (hash, &key) in hashes.iter_mut().zip(keys) {
            *hash = self.hash_of_key(key);
            pages::prefetch(line(*hash));
        }
        // What is peeked at need not be looked for again.
        let mut peeked = [None; GROUP];
        for (&hash, peeked) in hashes[..keys.len()].iter().zip(&mut peeked) {
            *peeked = (0..SLOTS).find_map(|slot| Some((slot, line(hash).entry(slot, hash)?)));
            if let Some((_, entry)) = *peeked {
                self.prefetch(entry);
            }
        }
        let mut hits = 0;
        for (i, (&hash, &key)) in hashes.iter().zip(keys).enumerate() {
            let found = match peeked[i] {
                Some((slot, entry)) if self.is_of(entry, key) => {
                    self.warm(session, line(hash), hash, slot);
                    address(entry)
                }
                // Behind another with the same tag, or put there since, or not there.
                _ => self.find(session, hash, key),
            };
            let ticket = if found.is_null() { self.shared.buffer.ticket(hash).number() } else { VOID_TICKET };
            hits += usize::from(!found.is_null());
            answer(i, found, ticket);
        }
        hits
    }

    /// The entries of keys, by the group; how many were found. Null is nobody's key.
    ///
    /// # Safety
    /// `keys` and `entries` point to `count` elements each, `tickets` too unless it is null.
    pub(crate) unsafe fn get_many(
        &self,
        session: &Session,
        keys: *const *mut c_void,
        count: usize,
        entries: *mut *mut c_void,
        tickets: *mut lookaside_ticket,
    ) -> usize {
        let (mut hits, mut next) = (0, 0);
        while next < count {
            let (mut group, mut places, mut length) = ([std::ptr::null_mut(); GROUP], [0; GROUP], 0);
            let put = |place: usize, entry, ticket| {
                // SAFETY: `place` is below `count`.
                unsafe { *entries.add(place) = entry };
                if !tickets.is_null() {
                    // SAFETY: as above.
                    unsafe { *tickets.add(place) = ticket };
                }
            };
            while next < count && length < GROUP {
                // SAFETY: `next` is below `count`.
                let key = unsafe { *keys.add(next) };
                if key.is_null() {
                    put(next, std::ptr::null_mut(), VOID_TICKET);
                } else {
                    (group[length], places[length]) = (key, next);
                    length += 1;
                }
                next += 1;
            }
            if length > 0 {
                hits += self
                    .get_group(session, &group[..length], |i, entry, ticket| put(places[i], entry, ticket));
            }
        }
        hits
    }

    /// Offers an entry: under the stripe if this thread holds it, and otherwise with a ticket, if need be one of this
    /// moment.
    pub(crate) fn emit(&self, session: &Session, entry: *mut c_void, ticket: Option<lookaside_ticket>) {
        self.emit_hashed(session, || self.hash_of_entry(entry), entry, ticket);
    }

    /// As [`Handle::emit`], for those who know the hash.
    pub(crate) fn emit_hashed(
        &self,
        session: &Session,
        hash: impl FnOnce() -> Option<u64>,
        entry: *mut c_void,
        ticket: Option<lookaside_ticket>,
    ) {
        let Some(pointer) = pointer(entry) else { return };
        if session.face.uses_table.get() == 0 {
            return;
        }
        let Some(hash) = hash() else { return };
        let (shared, table) = (&self.shared, self.table());
        if ticket.is_none() && session.holds(Buffer::stripe_of(hash)) {
            session.state.admit_held(table, hash, pointer);
        } else {
            let ticket = match ticket {
                Some(number) => Ticket::numbered(hash, number),
                None => shared.buffer.ticket(hash),
            };
            session.state.admit_ticketed(&shared.buffer, table, &ticket, hash, pointer);
        }
    }

    /// Runs `change` under the stripe of a hash: that which this thread holds, or else for as long as it takes.
    pub(crate) fn held<R>(&self, session: &Session, hash: u64, change: impl FnOnce() -> R) -> R {
        if session.holds(Buffer::stripe_of(hash)) {
            return change();
        }
        self.shared.buffer.lock(hash);
        let outcome = change();
        self.shared.buffer.unlock(hash);
        outcome
    }

    /// Whether this thread holds the stripe of a hash.
    pub(crate) fn holds(&self, session: &Session, hash: u64) -> bool {
        session.holds(Buffer::stripe_of(hash))
    }

    /// Takes a stripe, or takes it once more.
    pub(crate) fn lock(&self, session: &Session, hash: u64) {
        let stripe = Buffer::stripe_of(hash);
        if !session.hold_again(stripe) {
            self.shared.buffer.lock(hash);
            session.hold(stripe);
        }
    }

    /// Gives it back, if this thread has it.
    pub(crate) fn unlock(&self, session: &Session, hash: u64) {
        if session.let_go(Buffer::stripe_of(hash)) {
            self.shared.buffer.unlock(hash);
        }
    }

    /// As [`lookaside::ThreadState::clear_held`], for who holds the stripe or is alone.
    pub(crate) fn clear_held(&self, session: &Session, hash: u64) -> usize {
        // SAFETY: as in `table`.
        unsafe { session.state.clear_held(&self.shared.buffer, hash) }
    }

    /// Forgets the entry of a key.
    pub(crate) fn clear(&self, session: &Session, hash: u64) {
        let cleared = self.held(session, hash, || self.clear_held(session, hash));
        if cleared > 0 {
            session.note_cleared(Buffer::stripe_of(hash), hash);
        }
    }

    /// Puts another entry in the place of a key's, if the table has that one, or had it when this thread's write began.
    pub(crate) fn update(&self, session: &Session, hash: u64, entry: *mut c_void) {
        self.held(session, hash, || {
            let hot =
                self.clear_held(session, hash) > 0 || session.was_cleared(Buffer::stripe_of(hash), hash);
            if hot && let Some(pointer) = pointer(entry) {
                session.state.put_held(self.table(), hash, pointer);
            }
        });
    }
}

/// What the table can remember of an entry: nothing, if it is null or needs more than 48 bits.
#[inline(always)]
fn pointer(entry: *mut c_void) -> Option<Pointer> {
    Pointer::new(entry.expose_provenance() as u64)
}

#[inline(always)]
pub(crate) fn address(pointer: Pointer) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(pointer.address() as usize)
}
