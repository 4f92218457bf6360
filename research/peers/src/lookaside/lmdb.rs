//! LMDB, through heed: a copy-on-write B+-tree in a file that is mapped into memory (section 4.3.1 of the SLB paper).
//!
//! Alone it maps keys to values, as its users have it; a thread reads within one transaction for all the keys of a
//! call.
//!
//! # Behind a map, and why nothing is stale
//!
//! LMDB moves entries whenever a page is written, and uses the old page again when no transaction reads it any more: so
//! a table must not point into its file beyond a transaction. It stores the addresses of handles instead, and the
//! entries stay where they are.
//!
//! * Every search is a read transaction of its own, begun after the ticket was taken and ended when the handle has been
//!   looked at. A write commits while it holds its stripe. So a snapshot that a ticket is good for has every write of
//!   the stripe, and what it says may be emitted; if a write began meanwhile, the emission is dropped. No transaction
//!   outlives a call, so nobody can ask the table within an older snapshot than the table's.
//! * A snapshot may still hold the address of a handle that has been replaced since. The handle is dropped after the
//!   commit, and its entry freed only after all who were pinned then have left; a snapshot that has the address was
//!   begun before the commit, by somebody who was pinned already.
//!
//! The file is for this process alone, and is removed with it: addresses mean nothing to another. It is not written to
//! disk on commit.
//!
//! Rejected: *a table for every snapshot*, which can point into the file, and begins empty with every commit.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use lab::lookaside::indexes::Handled;
use lab::lookaside::{Abilities, Answer, Call, Contestant, Key, Lot, Make, Tally, Value};
use lab::measure::Stopwatch;
use lookaside::index::{Find, SharedStore};
use lookaside::{Found, Handle, Pin};
use tempfile::TempDir;

/// Requests in a transaction, where one writes.
const AT_ONCE: usize = 1024;

/// A database in a file of its own.
pub(super) struct File {
    pub(super) env: Env<WithoutTls>,
    pub(super) database: Database<'static, Bytes, Bytes>,
    /// Removed last.
    _folder: TempDir,
}

impl File {
    pub(super) fn make(records: usize, bytes: usize) -> Result<File, String> {
        File::open(records, bytes).map_err(|error| format!("LMDB: {error}"))
    }

    fn open(records: usize, bytes: usize) -> Result<File, heed::Error> {
        // On a memory file system where there is one: the experiment is not on disks.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let folder = folder.map_err(heed::Error::Io)?;
        // Pages are half full at worst, and a write copies some before it frees others. The file is as large as what is
        // in it.
        let size = (records * (bytes + 32) * 3 + (64 << 20)).next_multiple_of(1 << 20);
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(size).max_readers(1024);
        // SAFETY: nobody else has this file, which was made just now, in a folder that nobody knows of; what is lost in
        // a crash is lost with the folder.
        let env = unsafe {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::WRITE_MAP | EnvFlags::NO_READ_AHEAD);
            options.open(folder.path())?
        };
        let database = env
            .create_databases_and_commit(env.write_txn()?, |opener, writing| {
                let database = opener.create_database::<Bytes, Bytes>(writing, None)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(database))
            })?
            .unwrap_commit();
        Ok(File { env, database, _folder: folder })
    }

    pub(super) fn read(&self) -> RoTxn<'_, WithoutTls> {
        self.env.read_txn().expect("a reader's place among a thousand")
    }

    #[inline(always)]
    fn get<'t, const N: usize>(&self, reading: &'t RoTxn<'_, WithoutTls>, key: &Key<N>) -> Option<&'t [u8]> {
        self.database.get(reading, &key.0).expect("LMDB reads what it has")
    }

    fn put<const N: usize>(&self, writing: &mut RwTxn<'_>, key: &Key<N>, bytes: &[u8]) {
        self.database.put(writing, &key.0, bytes).expect("the file was made for as many records");
    }
}

/// LMDB alone.
pub(super) struct LmdbAlone<const N: usize>(File);

/// Reads the first and the last word.
pub(super) fn read_value(bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    word(0).wrapping_add(word(bytes.len() - 8))
}

impl<const N: usize> Make for LmdbAlone<N> {
    fn make(records: usize) -> Result<Self, String> {
        File::make(records, N + size_of::<Value>()).map(LmdbAlone)
    }
}

impl<const N: usize> Contestant<N> for LmdbAlone<N> {
    fn ask(&self, _thread: usize, _call: Call, [warm_up, timed]: [Lot<'_, N>; 2]) -> Answer {
        self.answer(warm_up);
        let watch = Stopwatch::start();
        let tally = self.answer(timed);
        Answer { tally, time: watch.elapsed() }
    }

    fn abilities(&self) -> Abilities {
        Abilities { renews: false, ..Abilities::SHARED }
    }
}

impl<const N: usize> LmdbAlone<N> {
    fn answer(&self, lot: Lot<'_, N>) -> Tally {
        let mut tally = Tally::default();
        match lot {
            Lot::Keys(keys) => {
                let reading = self.0.read();
                for key in keys {
                    tally.count(self.0.get(&reading, key).map(read_value));
                }
            }
            Lot::Requests(requests) | Lot::Renewals(requests) => {
                for requests in requests.chunks(AT_ONCE) {
                    let mut writing = self.0.env.write_txn().expect("LMDB has a writer's place");
                    for request in requests {
                        if request.set {
                            let value = Value::of(request.record).words().map(u64::to_le_bytes);
                            self.0.put(&mut writing, &request.key, value.as_flattened());
                        } else {
                            tally.count(self.0.get(&writing, &request.key).map(read_value));
                        }
                    }
                    writing.commit().expect("LMDB commits");
                }
            }
        }
        tally
    }
}

/// LMDB of handles.
pub(super) struct Lmdb<const N: usize> {
    file: File,
    handles: PhantomData<Handled<N>>,
}

fn address(bytes: &[u8]) -> usize {
    usize::from_le_bytes(bytes.try_into().expect("addresses are stored whole"))
}

impl<const N: usize> Lmdb<N> {
    fn look<'p>(
        &self,
        reading: &RoTxn<'_, WithoutTls>,
        key: &Key<N>,
        pin: &Pin<'p>,
    ) -> Option<Found<'p, Key<N>, Value>> {
        let bytes = self.file.get(reading, key)?;
        // SAFETY: of a handle of this type, given up when it was put in; only looked at. See the module: who asks was
        // pinned before the handle was dropped.
        ManuallyDrop::new(unsafe { Handle::<Key<N>, Value>::from_raw(address(bytes)) }).found(pin)
    }
}

impl<const N: usize> Make for Lmdb<N> {
    fn make(records: usize) -> Result<Self, String> {
        Ok(Lmdb { file: File::make(records, N + size_of::<usize>())?, handles: PhantomData })
    }
}

impl<const N: usize> Find<Key<N>, Key<N>, Value> for Lmdb<N> {
    fn find<'p>(&self, key: &Key<N>, pin: &Pin<'p>) -> Option<Found<'p, Key<N>, Value>> {
        self.look(&self.file.read(), key, pin)
    }

    fn find_many<'p>(
        &self,
        keys: &[&Key<N>],
        pin: &Pin<'p>,
        mut found: impl FnMut(usize, Option<Found<'p, Key<N>, Value>>),
    ) {
        let reading = self.file.read();
        keys.iter().enumerate().for_each(|(i, key)| found(i, self.look(&reading, key, pin)));
    }
}

impl<const N: usize> SharedStore<Key<N>, Value> for Lmdb<N> {
    fn replace(&self, handle: Handled<N>) -> Option<Handled<N>> {
        let key = *handle.key();
        let mut writing = self.file.env.write_txn().expect("LMDB has a writer's place");
        let old = self.file.get(&writing, &key).map(address);
        self.file.put(&mut writing, &key, &handle.into_raw().to_le_bytes());
        writing.commit().expect("LMDB commits");
        // SAFETY: given up for this address once, and now out of the file; LMDB has one writer at a time.
        old.map(|old| unsafe { Handle::from_raw(old) })
    }

    fn len(&self) -> usize {
        self.file.database.len(&self.file.read()).expect("LMDB knows how much it has") as usize
    }
}

impl<const N: usize> Drop for Lmdb<N> {
    fn drop(&mut self) {
        let reading = self.file.read();
        let all = self.file.database.iter(&reading).expect("LMDB reads what it has");
        for entry in all {
            let (_, bytes) = entry.expect("LMDB reads what it has");
            // SAFETY: given up for this address once; the index is going, and the file with it.
            drop(unsafe { Handle::<Key<N>, Value>::from_raw(address(bytes)) });
        }
    }
}
