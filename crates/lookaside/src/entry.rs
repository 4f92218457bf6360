//! Entries, and who may hold them.
//!
//! ```text
//!   departing   succession   removed     when a map goes; writes without the index; who has the last share
//!              handle                    what an index stores, and how an entry is made and freed
//!              found                     the entry, and what a search finds
//!    kept    place   word   reclaim      its parts; where the dead go
//!                            slab        where entries lie
//! ```
//!
//! An entry is a key, its value and the hash it was made with, in a slab of its map's ([`slab`]). Indexes store
//! [`Handle`]s, which count; readers hold [`Found`]s, which do not: a [`Pin`] keeps what they see.
//!
//! The number of handles lies in sixteen bits of the hash that no table asks for ([`Word`]): with a word of their own,
//! entries of two numbers would take a quarter more.
//!
//! # When an entry is freed
//!
//! The map clears the table before it takes an entry from the index. But the index is the user's, and may do with its
//! handles whatever it likes: drop them in the middle of a search, keep clones of them, give back another's. So nothing
//! rests on it. When the last handle of an entry goes, wherever that happens:
//!
//! 1. wait until everyone has left who was pinned. No handle exists any more, so after that nobody can admit the entry:
//!    to admit it, it must be found, and to be found, there must be a handle;
//! 2. forget its pointer in the table, where there still may be one;
//! 3. wait until everyone has left who may have read it there before;
//! 4. free it.
//!
//! An offer goes under the entry's own hash, so step 2 looks where it would be. With an honest index, the table was
//! cleared long before, and step 2 finds nothing. A map can see that: where an index gives an entry back to a write
//! that has cleared the table of its hash, and this is the only handle, nobody can admit it once more. Tickets from
//! before are void, and those taken after come before a search that cannot find it. So it is marked as forgotten, and
//! steps 1 and 2 are left out, the second of which would be a cold line for every write. And the write, which is
//! pinned, retires it at once: the collector gets a handle of its own, and drops it when step 3 is over. Whoever drops
//! the last, the collector or who has the [`crate::Removed`], frees the entry, and need not wait for anybody.
//!
//! What waits belongs to the buffer's collector ([`atomics::reclaim`]). An entry that waits holds a share in its map's
//! reclaimer, by its slab, and so in the buffer: so that this ends, who drops a map collects, and so does whoever drops
//! a handle behind that.
//!
//! When its map goes, nobody is left who looks at an entry, or ever will: those who did had borrowed the map, and no
//! other map behind the same table asks for pointers with this one's id, which is never given again. So from then on
//! whoever drops the last handle frees the entry, and neither waits nor looks into the table, which of a million
//! entries would be a million cold lines.
//!
//! Where the index is not asked for a write, the entry that it has owns another ([`succession`]).
//!
//! The owner-only form has nobody to wait for: its dead lie in a graveyard until the owner next changes the map, which
//! by the borrow checker is when no reader is left ([`crate::owned`]).
//!
//! A key or a value whose destructor panics does so in the middle of some other call, of another thread perhaps. That
//! call goes on, and so do the other entries on their way: the panic ends where the entry is freed, once the panic hook
//! has told.
//!
//! Rejected: *an index that is trusted* (an `unsafe trait`): then whoever writes one must prove it; *counting readers*:
//! an atomic read-modify-write on a line that all cores share, a hit.

#![allow(unsafe_code)]

mod departing;
mod found;
mod handle;
mod kept;
mod place;
mod reclaim;
mod removed;
mod slab;
mod succession;
mod word;

pub use self::found::Found;
pub use self::handle::{Handle, Pin, Sought};
pub use self::removed::Removed;

pub(crate) use self::departing::{Departed, Ending, ends};
pub(crate) use self::found::prefetch;
pub(crate) use self::handle::{Draft, Entries};
pub(crate) use self::reclaim::{Dead, Reclaim, Reclaimer};
pub(crate) use self::succession::{may_stay, prefetch_to_succeed};

#[cfg(test)]
mod tests;
