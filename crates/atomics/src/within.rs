//! Which locks this thread holds while it runs its caller's code, so that one who would wait for himself is told.
//!
//! A comparison of keys, a hash, a visitor: whatever a library calls under a lock may call the library again, and then
//! the thread waits for its own lock, for ever. Nobody can prevent it, and a lock that says nothing hangs. So whoever
//! calls out under a lock [enters](Within::enter) it here, and whoever cannot have a lock asks whether that is why
//! ([`held`]).
//!
//! A thread's locks are in a small array of its own: to enter and to leave is a handful of plain loads and stores. Of
//! more than [`MOST`] locks, each taken by code that was called under the one before, the innermost are not noted:
//! there a thread that waits for itself still hangs.
//!
//! Rejected: *an owner in the lock*, where the lock is not ours or has no room for one; *a set that is allocated*,
//! whose destructor would run before those that still lock.
//!
//! Not under loom, whose threads are one thread's.

use std::cell::Cell;
use std::marker::PhantomData;

/// Locks noted of a thread.
const MOST: usize = 8;

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Others may hold it, too, in the same way.
    Shared,
    /// By nobody else.
    Exclusive,
}

struct Record {
    depth: Cell<usize>,
    locks: [Cell<(usize, Hold)>; MOST],
}

thread_local! {
    static RECORD: Record =
        const { Record { depth: Cell::new(0), locks: [const { Cell::new((0, Hold::Shared)) }; MOST] } };
}

/// This thread holds a lock, until this is dropped; those entered last are left first.
#[derive(Debug)]
pub struct Within {
    /// Of this thread.
    _here: PhantomData<*const ()>,
}

impl Within {
    /// Takes note that this thread holds the lock at an address.
    #[inline]
    #[must_use = "the lock is left when this is dropped"]
    pub fn enter<L: ?Sized>(lock: &L, hold: Hold) -> Within {
        RECORD.with(|record| {
            let depth = record.depth.get();
            if let Some(place) = record.locks.get(depth) {
                place.set((address(lock), hold));
            }
            record.depth.set(depth + 1);
        });
        Within { _here: PhantomData }
    }
}

impl Drop for Within {
    #[inline]
    fn drop(&mut self) {
        RECORD.with(|record| record.depth.set(record.depth.get() - 1));
    }
}

/// How this thread holds the lock at an address, if it does.
#[inline]
#[must_use]
pub fn held<L: ?Sized>(lock: &L) -> Option<Hold> {
    RECORD.with(|record| {
        let noted = &record.locks[..record.depth.get().min(MOST)];
        noted.iter().rev().map(Cell::get).find(|&(at, _)| at == address(lock)).map(|(_, hold)| hold)
    })
}

fn address<L: ?Sized>(lock: &L) -> usize {
    std::ptr::from_ref(lock).cast::<u8>().addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_this_thread_from_when_it_is_entered_until_it_is_left() {
        let (first, second) = (0u64, 0u64);
        assert_eq!(held(&first), None);
        let outer = Within::enter(&first, Hold::Shared);
        let inner = Within::enter(&second, Hold::Exclusive);
        assert_eq!((held(&first), held(&second)), (Some(Hold::Shared), Some(Hold::Exclusive)));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(held(&first), None));
        });
        drop(inner);
        assert_eq!((held(&first), held(&second)), (Some(Hold::Shared), None));
        drop(outer);
        assert_eq!(held(&first), None);
    }

    #[test]
    fn more_than_are_noted_do_no_harm() {
        let locks = [0u64; 2 * MOST];
        let entered: Vec<_> = locks.iter().map(|lock| Within::enter(lock, Hold::Exclusive)).collect();
        assert_eq!(locks.iter().filter(|lock| held(*lock).is_some()).count(), MOST);
        entered.into_iter().rev().for_each(drop);
        assert!(locks.iter().all(|lock| held(lock).is_none()));
    }
}
