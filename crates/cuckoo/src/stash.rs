//! The stash: entries for which no bucket has room.
//!
//! More keys of the very same hash than two buckets have slots (14) fit into no cuckoo table, and a table may be at its
//! limit. A table without a stash says so ([`TooFull`](crate::TooFull)). A map cannot: whatever its keys' hashes, an
//! insert succeeds. So its table keeps such entries in a list (Kirsch, Mitzenmacher and Wieder, "More robust hashing:
//! cuckoo hashing with a stash", ESA 2008, for the few that a table of fixed size leaves over).
//!
//! Nobody looks at the list but for keys whose first bucket is *marked*, so one crowd slows its own neighbours down and
//! nobody else:
//!
//! ```text
//!   stash a key:    lock its buckets; look once more; mark the first; push
//!   find it:        a miss is not believed where the first has a mark: lock both; look in them, then in the list
//!   remove it:      lock its buckets; not in them, and a mark: take it out of the list
//!   split, merge:   the mark goes with the entries, before the geometry is published
//! ```
//!
//! *Who reads, who writes.* A mark is a bit of its bucket's version word ([`crate::version`]): set under the lock, and
//! read without one, by the first look at the version. Whoever saw the insert of a stashed key end, or has come by it
//! in a walk, sees its mark: that was set before, and is never taken back; and whoever looks in a bucket that was split
//! since knows the geometry, behind whose publication the copy of the mark is. The list changes for a key under the
//! locks of the key's buckets, so whoever holds these reads it in peace. An entry never moves between a bucket and the
//! list. So a miss needs no other second look than it has.
//!
//! *No code of an owner* runs under the list's mutex: the locations of a hash are copied out first.
//!
//! Rejected: *one flag for the whole table*, by which fifteen equal hashes make every miss take locks; *chains of
//! entries*, which cost each entry eight bytes; *a second table of another hash*, in which equal hashes stay equal.

use atomics::Mutex;

use crate::slot::Location;

/// An entry in the list, and the mixed hash of its key.
#[derive(Debug, Clone, Copy)]
struct Stashed {
    hash: u64,
    location: Location,
}

/// The list. Every operation on a key is made by who holds the locks of the key's buckets.
#[derive(Debug)]
pub(crate) struct Stash(Mutex<Vec<Stashed>>);

impl Stash {
    pub(crate) fn new() -> Stash {
        Stash(Mutex::new(Vec::new()))
    }

    /// The locations of entries with this hash.
    pub(crate) fn of(&self, hash: u64) -> Vec<Location> {
        let list = self.0.lock();
        list.iter().filter(|stashed| stashed.hash == hash).map(|stashed| stashed.location).collect()
    }

    pub(crate) fn push(&self, hash: u64, location: Location) {
        self.0.lock().push(Stashed { hash, location });
    }

    pub(crate) fn remove(&self, location: Location) {
        let mut list = self.0.lock();
        if let Some(at) = list.iter().position(|stashed| stashed.location == location) {
            list.swap_remove(at);
        }
    }

    pub(crate) fn replace(&self, old: Location, new: Location) {
        let mut list = self.0.lock();
        if let Some(stashed) = list.iter_mut().find(|stashed| stashed.location == old) {
            stashed.location = new;
        }
    }

    /// All mixed hashes and locations, as they are now.
    pub(crate) fn all(&self) -> Vec<(u64, Location)> {
        self.0.lock().iter().map(|stashed| (stashed.hash, stashed.location)).collect()
    }
}
