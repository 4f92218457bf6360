//! A buffer beside an index that keeps its own records: [`lookaside::Buffer`] as it is, without a map.
//!
//! A map makes its entries itself, so an index behind it has a handle where it had a record: one more line for each
//! search. Whose records stay where they are, and are freed by epochs, can do without: the table has pointers to the
//! index's own records, as it has behind the C interface, and while the table is off a lookup is the index's alone.
//!
//! The rules of `lookaside`'s `stripes` are then kept here: a ticket is taken before each search that is followed by an
//! emission, and a record is replaced under a write, which has cleared the table. Records are freed after all have left
//! who were pinned when they were replaced: who has read their pointer in the table is one of these.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::hash::BuildHasher;
use std::marker::PhantomData;

use lookaside::{Buffer, Config, Counts, CreateError, Pinned, Pointer, RandomState, Ticket, Verdict};

use super::contestant::{Abilities, Contestant, Make};
use super::record::{Key, Value};
use super::visit::{Answer, BATCH, Lot, Request, Visit as Asked, count_many, in_turn};
use crate::measure::epochs::{self, Guard};
use crate::subject::{Call, Tally};

const _: () = assert!(BATCH <= Pinned::GROUP);

/// A record that an index keeps.
pub(crate) type Record<const N: usize, V = Value> = (Key<N>, V);

/// An index that keeps its own records.
///
/// # Safety
/// A record stays where it is, and readable, until all have left who had pinned the laboratory's collector ([`epochs`])
/// when it was replaced; and for as long as the index.
pub(crate) unsafe trait Records<const N: usize>: Send + Sync {
    /// What belongs to a key.
    type Value: Send + Sync;

    /// Whether [`Records::records`] is more than asking for one after the other.
    const BATCHES: bool = false;

    /// The record of a key.
    fn record<'g>(&'g self, key: &Key<N>, guard: &'g Guard) -> Option<&'g Record<N, Self::Value>>;

    /// The records of keys, [`BATCH`] at most: `found(i, ...)` is told that of `keys[i]`.
    fn records<'g>(
        &'g self,
        keys: &[&Key<N>],
        guard: &'g Guard,
        mut found: impl FnMut(usize, Option<&'g Record<N, Self::Value>>),
    ) {
        keys.iter().enumerate().for_each(|(i, key)| found(i, self.record(key, guard)));
    }

    /// Puts a record in, in the place of the one of an equal key.
    fn put_record<'g>(
        &'g self,
        record: Record<N, Self::Value>,
        guard: &'g Guard,
    ) -> &'g Record<N, Self::Value>;

    /// Takes the record of a key out, where requests do so.
    fn discard_record(&self, _key: &Key<N>) {
        unreachable!("no experiment takes records out of this index")
    }
}

/// The records of an index that is borrowed, and so not written, found by a function.
pub(super) struct Filled<'i, const N: usize, F> {
    search: F,
    records: PhantomData<&'i Record<N>>,
}

impl<'i, const N: usize, F: Fn(&Key<N>) -> Option<&'i Record<N>>> Filled<'i, N, F> {
    pub(super) fn new(search: F) -> Self {
        Filled { search, records: PhantomData }
    }
}

// SAFETY: records that are borrowed for `'i` stay where they are, and this ends before.
unsafe impl<'i, const N: usize, F> Records<N> for Filled<'i, N, F>
where
    F: Fn(&Key<N>) -> Option<&'i Record<N>> + Send + Sync,
{
    type Value = Value;

    #[inline(always)]
    fn record<'g>(&'g self, key: &Key<N>, _guard: &'g Guard) -> Option<&'g Record<N>> {
        (self.search)(key)
    }

    fn put_record<'g>(&'g self, _record: Record<N>, _guard: &'g Guard) -> &'g Record<N> {
        unreachable!("it has been filled")
    }
}

/// An index that keeps its own records, alone.
pub(super) struct Own<I>(I);

impl<I: Make> Make for Own<I> {
    fn make(records: usize) -> Result<Self, String> {
        I::make(records).map(Own)
    }
}

impl<const N: usize, I: Records<N, Value = Value>> Contestant<N> for Own<I> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut Guarded { index: &self.0, guard: epochs::pin() }, call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities { batches: I::BATCHES, ..Abilities::SHARED }
    }
}

/// A thread at such an index, pinned.
struct Guarded<'i, I> {
    index: &'i I,
    guard: Guard,
}

impl<const N: usize, I: Records<N, Value = Value>> Asked<N> for Guarded<'_, I> {
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.index.record(key, &self.guard).map(|record| see(&record.1))
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        let count = |_, record: Option<&Record<N>>| tally.count(record.map(|record| record.1.read()));
        self.index.records(keys, &self.guard, count);
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.index.put_record((request.key, Value::of(request.record)), &self.guard);
    }

    fn refresh(&mut self) {
        self.guard.refresh();
    }
}

/// An index and the buffer beside it.
pub(crate) struct Beside<const N: usize, I> {
    // Before the index: no pointer outlives its record.
    buffer: Buffer,
    hasher: RandomState,
    index: I,
}

impl<const N: usize, I> Beside<N, I> {
    /// A buffer beside this index, which is empty.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub(crate) fn new(index: I, config: &Config) -> Result<Self, CreateError> {
        Ok(Beside { buffer: Buffer::new(config)?, hasher: RandomState::default(), index })
    }

    /// A reader for this thread.
    pub(crate) fn pin(&self) -> Session<'_, N, I> {
        Session { beside: self, guard: epochs::pin(), visit: self.buffer.pinned() }
    }

    /// The buffer.
    pub(crate) fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

/// A thread at both, pinned.
pub(crate) struct Session<'b, const N: usize, I> {
    beside: &'b Beside<N, I>,
    visit: Pinned<'b>,
    /// What the index's records wait for. Dropped behind the visit, which admits when it ends.
    guard: Guard,
}

impl<const N: usize, I: Records<N>> Session<'_, N, I> {
    #[inline(always)]
    fn hash(&self, key: &Key<N>) -> u64 {
        self.beside.hasher.hash_one(key)
    }

    /// The record behind a pointer that the table gave.
    #[inline(always)]
    fn at(&self, pointer: Pointer) -> &Record<N, I::Value> {
        let record = std::ptr::with_exposed_provenance::<Record<N, I::Value>>(pointer.address() as usize);
        // SAFETY: only `offer` and `insert` give the table pointers: of records, found or put in by someone pinned. It
        // was read in the table by this visit, which was pinned before: see the head of this module.
        unsafe { &*record }
    }

    /// Asks for the lines of a record that a lookup reads.
    #[inline(always)]
    fn fetch(pointer: Pointer) {
        let record = std::ptr::with_exposed_provenance::<u8>(pointer.address() as usize);
        pages::prefetch(record);
        pages::prefetch(record.wrapping_add(64));
        pages::prefetch(record.wrapping_add(size_of::<Record<N, I::Value>>() - 1));
    }

    /// Asks the index, and offers what it gives to the table.
    #[inline]
    fn search(&self, hash: u64, key: &Key<N>) -> Option<&Record<N, I::Value>> {
        let ticket = self.visit.ticket(hash);
        let record = self.beside.index.record(key, &self.guard)?;
        self.offer(&ticket, hash, record);
        Some(record)
    }

    /// As [`Session::search`], for those of a group that the table did not have.
    #[inline]
    fn search_missed<'s>(
        &'s self,
        keys: &[&Key<N>],
        hashes: &[u64],
        missed: &[usize],
        values: &[Cell<Option<&'s I::Value>>],
    ) {
        let mut sought = [keys[0]; BATCH];
        let mut tickets = [const { None }; BATCH];
        for ((&i, key), ticket) in missed.iter().zip(&mut sought).zip(&mut tickets) {
            *key = keys[i];
            *ticket = Some(self.visit.ticket(hashes[i]));
        }
        let mut found = [None; BATCH];
        self.beside.index.records(&sought[..missed.len()], &self.guard, |at, record| found[at] = record);
        for ((&i, found), ticket) in missed.iter().zip(found).zip(&tickets) {
            values[i].set(found.map(|record| &record.1));
            if let (Some(record), Some(ticket)) = (found, ticket) {
                self.offer(ticket, hashes[i], record);
            }
        }
    }

    fn offer(&self, ticket: &Ticket, hash: u64, record: &Record<N, I::Value>) {
        if let Some(pointer) = Pointer::new(std::ptr::from_ref(record).expose_provenance() as u64) {
            self.visit.admit_soon(ticket, hash, pointer);
        }
    }

    /// The value of a key.
    #[inline(always)]
    pub(crate) fn get(&self, key: &Key<N>) -> Option<&I::Value> {
        if self.visit.uses_table(1) {
            self.get_by_table(key)
        } else {
            Some(&self.beside.index.record(key, &self.guard)?.1)
        }
    }

    #[inline]
    fn get_by_table(&self, key: &Key<N>) -> Option<&I::Value> {
        let hash = self.hash(key);
        match self.visit.find_on_account(hash, |pointer| self.at(pointer).0 == *key) {
            Some(pointer) => Some(&self.at(pointer).1),
            None => Some(&self.search(hash, key)?.1),
        }
    }

    /// The values of up to [`BATCH`] keys: `values[i]` becomes that of `keys[i]`.
    #[inline]
    pub(crate) fn get_many<'s>(&'s self, keys: &[&Key<N>], values: &mut [Option<&'s I::Value>]) {
        if !self.visit.uses_table(keys.len() as u32) {
            let found =
                |i, record: Option<&'s Record<N, I::Value>>| values[i] = record.map(|record| &record.1);
            self.beside.index.records(keys, &self.guard, found);
            return;
        }
        let mut hashes = [0; BATCH];
        for (key, hash) in keys.iter().zip(&mut hashes) {
            *hash = self.hash(key);
            self.visit.prefetch(*hash);
        }
        let values = Cell::from_mut(values).as_slice_of_cells();
        let hit = |i: usize, pointer| {
            let record = self.at(pointer);
            let same = record.0 == *keys[i];
            if same {
                values[i].set(Some(&record.1));
            }
            same
        };
        let search = |missed: &[usize]| self.search_missed(keys, &hashes, missed, values);
        self.visit.find_group(&hashes[..keys.len()], Self::fetch, hit, search);
    }

    /// Puts a record in, in the place of the one of an equal key.
    pub(crate) fn insert(&self, key: Key<N>, value: I::Value) {
        let hash = self.hash(&key);
        self.visit.prefetch(hash);
        let write = self.visit.write(hash);
        let record = self.beside.index.put_record((key, value), &self.guard);
        if let Some(pointer) = Pointer::new(std::ptr::from_ref(record).expose_provenance() as u64) {
            write.put(pointer);
        }
    }

    /// Takes the record of a key out.
    pub(crate) fn remove(&self, key: &Key<N>) {
        let hash = self.hash(key);
        // Until this is dropped, nobody admits the record that goes.
        let _write = self.visit.write(hash);
        self.beside.index.discard_record(key);
    }

    /// Lets go of what was replaced meanwhile; tells the counts.
    pub(crate) fn refresh(&mut self) {
        self.visit.refresh();
        self.guard.refresh();
    }
}

impl<const N: usize, I: Records<N, Value = Value>> Contestant<N> for Beside<N, I> {
    fn ask(&self, _thread: usize, call: Call, lots: [Lot<'_, N>; 2]) -> Answer {
        in_turn(&mut self.pin(), call, lots)
    }

    fn abilities(&self) -> Abilities {
        Abilities::FRONTED
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        self.buffer.resize(bytes)
    }

    fn told(&self) -> Option<(Counts, Verdict)> {
        Some((self.buffer.counts(), self.buffer.verdict()))
    }
}

impl<const N: usize, I: Records<N, Value = Value>> Asked<N> for Session<'_, N, I> {
    #[inline(always)]
    fn look<R>(&self, key: &Key<N>, see: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(key).map(see)
    }

    #[inline(always)]
    fn look_many(&self, keys: &[&Key<N>], tally: &mut Tally) {
        count_many(keys, tally, |keys, values| self.get_many(keys, values));
    }

    #[inline(always)]
    fn set(&mut self, request: &Request<N>) {
        self.insert(request.key, Value::of(request.record));
    }

    fn refresh(&mut self) {
        Session::refresh(self);
    }
}
