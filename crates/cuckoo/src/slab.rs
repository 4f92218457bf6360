//! The memory of a map's entries: chunks cut into slots of one size.
//!
//! An entry costs its own bytes and nothing else: no header, and no class of sizes that it is rounded up to. A location
//! is the slot's address, so a lookup needs nothing but the word of the index.
//!
//! ```text
//!   take:      from this thread's magazine; if that is empty:
//!   refill:    lock; up to MAGAZINE slots off the list of free ones, else so many off the end of the newest chunk
//!   give back: push onto the list of free ones (whoever frees an entry may be any thread)
//! ```
//!
//! Chunks are as large as all before them together, from [`FIRST`] slots on and up to [`LARGEST`] bytes, so a small map
//! is small, and a large one has few. Large chunks are mapped, in huge pages where the machine has them, and cost
//! memory only as far as they are used. They go back when the map is dropped, not before: entries do not move.
//!
//! # The list of free slots
//!
//! A stack of Treiber's (1986), whose links lie in the free slots. Whoever pushes takes no lock. Whoever pops holds the
//! slab's lock, so that there is one popper at a time: a slot that he has seen at the top stays in the list until he
//! takes it, with the same link, and the exchange that takes it cannot be fooled by a slot that went and came back.
//!
//! *Memory:* a push is a release, the popper's load of the top an acquire: whatever the old owner did in the slot was
//! done before the new one writes there, and the link below is seen. Each push is an exchange, so the release sequence
//! of those below goes on through it.
//!
//! A magazine belongs to a thread while that is pinned ([`atomics::reclaim::Guard::local`]) and is touched by it alone.
//! What it still has when the thread ends, the next thread of that number uses.
//!
//! Rejected: *the allocator for each entry*, which takes 32 bytes for 24 and a call; *a list that everybody pops from*,
//! which needs a counter against slots that come back, and 128-bit exchanges; *a bump pointer for all threads*, whose
//! line every insert would take.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr::{self, NonNull};

use atomics::{AtomicPtr, Mutex, Ordering};
#[cfg(not(loom))]
use pages::{PageKind, Region};

/// Slots that a thread takes at a time.
const MAGAZINE: usize = if cfg!(loom) { 1 } else { 64 };
/// Bytes ahead of the slot that is taken whose line is asked for: an entry is written right before a lock is taken, and
/// a lock waits for all that was written before it.
#[cfg(not(loom))]
const AHEAD: usize = 512;
/// Slots of the first chunk.
const FIRST: usize = if cfg!(loom) { 1 } else { 16 };
/// Bytes of the largest chunks, unless one slot is larger.
const LARGEST: usize = 64 << 20;
/// Bytes from which on a chunk is mapped.
#[cfg(not(loom))]
const MAPPED: usize = 4 << 20;

/// What lies in a slot that is free.
#[derive(Debug)]
struct Free {
    /// The one below. An atomic only for the model's sake: it is written before it is pushed, and read by who pops.
    below: AtomicPtr<Free>,
}

/// The slots of one map.
#[derive(Debug)]
pub(crate) struct Slab {
    slot: Layout,
    /// The list of free slots.
    top: AtomicPtr<Free>,
    chunks: Mutex<Chunks>,
}

#[derive(Debug)]
struct Chunks {
    all: Vec<Chunk>,
    /// What chunks have left, the newest last.
    left: Vec<Run>,
    /// Bytes of all.
    bytes: usize,
}

#[derive(Debug)]
enum Chunk {
    Allocated(NonNull<u8>, Layout),
    #[cfg(not(loom))]
    Mapped(#[expect(dead_code, reason = "it is there to be dropped")] Region),
}

// SAFETY: a chunk is memory, which any thread may give back.
unsafe impl Send for Chunk {}

/// Slots side by side that nobody has used.
#[derive(Debug, Clone, Copy)]
struct Run {
    next: *mut u8,
    slots: usize,
}

// SAFETY: an address and a number, of memory that is for whoever has the run.
unsafe impl Send for Run {}

impl Run {
    const NONE: Run = Run { next: ptr::null_mut(), slots: 0 };

    /// Up to so many slots of its beginning.
    fn take(&mut self, slots: usize, slot: Layout) -> Run {
        let taken = Run { next: self.next, slots: slots.min(self.slots) };
        // Within the chunk, or at its end.
        self.next = self.next.wrapping_add(taken.slots * slot.size());
        self.slots -= taken.slots;
        taken
    }
}

/// What one thread has at hand.
#[derive(Debug)]
pub(crate) struct Magazine {
    /// Free slots, linked.
    free: Cell<*mut Free>,
    run: Cell<Run>,
}

// SAFETY: the slots are for whoever has the magazine.
unsafe impl Send for Magazine {}

impl Default for Magazine {
    fn default() -> Self {
        Magazine { free: Cell::new(ptr::null_mut()), run: Cell::new(Run::NONE) }
    }
}

impl Slab {
    /// Without memory, for entries of this layout.
    pub(crate) fn new(entry: Layout) -> Slab {
        let free = Layout::new::<Free>();
        let size = entry.size().max(free.size());
        let slot = Layout::from_size_align(size, entry.align().max(free.align()))
            .expect("an entry is a type of the language, and its layout is one");
        Slab {
            slot: slot.pad_to_align(),
            top: AtomicPtr::new(ptr::null_mut()),
            chunks: Mutex::new(Chunks { all: Vec::new(), left: Vec::new(), bytes: 0 }),
        }
    }

    #[cfg(not(loom))]
    /// Makes sure that so many slots can be taken without another chunk.
    pub(crate) fn reserve(&self, slots: usize) {
        let mut chunks = self.chunks.lock();
        let left: usize = chunks.left.iter().map(|run| run.slots).sum();
        if left < slots {
            self.add_chunk(&mut chunks, slots - left);
        }
    }

    #[cfg(not(loom))]
    /// Bytes of its chunks: of those that are mapped, all that may be touched.
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.lock().bytes
    }

    /// A slot for an entry, whose bytes are anything.
    ///
    /// # Safety
    /// The magazine is this slab's, and nobody else's meanwhile.
    #[inline]
    pub(crate) unsafe fn take(&self, magazine: &Magazine) -> NonNull<u8> {
        let mut run = magazine.run.get();
        if run.slots > 0 {
            let taken = run.take(1, self.slot);
            magazine.run.set(run);
            #[cfg(not(loom))]
            pages::prefetch(taken.next.wrapping_add(AHEAD).cast_const());
            // SAFETY: a slot of a chunk.
            return unsafe { NonNull::new_unchecked(taken.next) };
        }
        if let Some(free) = NonNull::new(magazine.free.get()) {
            // SAFETY: slots in a magazine have been given back, and hold a link.
            magazine.free.set(unsafe { free.as_ref() }.below.load(Ordering::Relaxed));
            return free.cast();
        }
        self.refill(magazine);
        // SAFETY: the caller's promise; and now there is one.
        unsafe { self.take(magazine) }
    }

    #[cfg(not(loom))]
    /// Gives back a slot that the magazine's thread has taken and nobody else has seen.
    ///
    /// # Safety
    /// As [`Slab::take`]; the slot is this slab's, is given back once, and nothing is in it.
    pub(crate) unsafe fn put_back(&self, magazine: &Magazine, slot: NonNull<u8>) {
        let free = slot.cast::<Free>();
        // SAFETY: a slot has room for it, and is the caller's.
        unsafe { free.write(Free { below: AtomicPtr::new(magazine.free.get()) }) };
        magazine.free.set(free.as_ptr());
    }

    /// Gives back a slot, by any thread.
    ///
    /// # Safety
    /// The slot is this slab's, is given back once, nothing is in it, and nobody looks at it.
    pub(crate) unsafe fn give_back(&self, slot: NonNull<u8>) {
        let free = slot.cast::<Free>();
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            // SAFETY: a slot has room for it, and is the caller's until the exchange.
            unsafe { free.write(Free { below: AtomicPtr::new(top) }) };
            // Release pairs with the acquire in `pop`.
            match self.top.compare_exchange(top, free.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(newer) => top = newer,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn refill(&self, magazine: &Magazine) {
        let mut chunks = self.chunks.lock();
        let popped = self.pop(&mut chunks);
        if !popped.is_null() {
            magazine.free.set(popped);
            return;
        }
        if chunks.left.is_empty() {
            // As many as there are, so that there are few chunks, and at most half of them is in vain.
            let slots = (chunks.bytes / self.slot.size()).clamp(FIRST, (LARGEST / self.slot.size()).max(1));
            self.add_chunk(&mut chunks, slots);
        }
        let last = chunks.left.last_mut().expect("a chunk that was just added, or what one has left");
        magazine.run.set(last.take(MAGAZINE, self.slot));
        if last.slots == 0 {
            chunks.left.pop();
        }
    }

    /// Takes some slots off the list of free ones, linked. Who holds the lock is the only one to do so.
    fn pop(&self, _alone: &mut Chunks) -> *mut Free {
        loop {
            // Acquire pairs with the release in `give_back`: what was done in these slots was done before.
            let top = self.top.load(Ordering::Acquire);
            if top.is_null() {
                return top;
            }
            let mut last = top;
            for _ in 1..MAGAZINE {
                // SAFETY: what is in the list is free, and stays while nobody else pops; the acquire load of the top
                // is behind the writes of all links below it.
                let below = unsafe { &*last }.below.load(Ordering::Relaxed);
                if below.is_null() {
                    break;
                }
                last = below;
            }
            // SAFETY: as above.
            let rest = unsafe { &*last }.below.load(Ordering::Relaxed);
            // Acquire: as the load. (Whoever has pushed meanwhile makes it fail.)
            if self.top.compare_exchange(top, rest, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                // The last one's link is cut: it is this thread's now.
                // SAFETY: taken out of the list, by the exchange.
                unsafe { last.write(Free { below: AtomicPtr::new(ptr::null_mut()) }) };
                return top;
            }
        }
    }

    /// Adds a chunk of so many slots, at least one.
    fn add_chunk(&self, chunks: &mut Chunks, slots: usize) {
        let bytes = self.slot.size().checked_mul(slots).expect("more entries than there are addresses");
        let (chunk, start) = self.make_chunk(bytes);
        let end = start.as_ptr().expose_provenance() + bytes;
        assert!(
            end as u64 >> crate::Location::BITS == 0,
            "memory lies above the addresses that an index can name"
        );
        chunks.left.push(Run { next: start.as_ptr(), slots });
        chunks.bytes += bytes;
        chunks.all.push(chunk);
    }

    fn make_chunk(&self, bytes: usize) -> (Chunk, NonNull<u8>) {
        #[cfg(not(loom))]
        if bytes >= MAPPED
            && self.slot.align() <= PageKind::Base.size()
            && let Ok(region) = Region::reserve(bytes, PageKind::Transparent)
        {
            let start = NonNull::new(region.as_ptr()).expect("a region is somewhere");
            return (Chunk::Mapped(region), start);
        }
        let layout = Layout::from_size_align(bytes, self.slot.align()).expect("within any address space");
        // SAFETY: a slot has at least the size of a link.
        let start = NonNull::new(unsafe { alloc(layout) }).unwrap_or_else(|| handle_alloc_error(layout));
        (Chunk::Allocated(start, layout), start)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        match self {
            // SAFETY: allocated with this layout; whoever drops it is the last to know of it.
            Chunk::Allocated(start, layout) => unsafe { dealloc(start.as_ptr(), *layout) },
            #[cfg(not(loom))]
            Chunk::Mapped(_) => {}
        }
    }
}

#[cfg(all(test, loom))]
pub(crate) mod loom_tests {
    //! Slots that two threads give back and a third takes: none is lost, none is there twice, and what was written in a
    //! slot before it was given back is not seen to come later.

    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn slots_given_back_are_taken_once() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let slab = Arc::new(Slab::new(Layout::new::<u64>()));
            let magazine = Magazine::default();
            // SAFETY: this thread's magazine.
            let mut taken = std::array::from_fn::<_, 3, _>(|_| unsafe { slab.take(&magazine) });
            taken.sort();
            let addresses = taken.map(|slot| slot.as_ptr().addr());
            let givers = [0, 1].map(|which| {
                let (slab, at) = (slab.clone(), addresses[which]);
                thread::spawn(move || {
                    let slot = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(at)).unwrap();
                    // SAFETY: taken above, and given back here only.
                    unsafe { slab.give_back(slot) };
                })
            });
            let taker = {
                let slab = slab.clone();
                thread::spawn(move || {
                    let magazine = Magazine::default();
                    // SAFETY: this thread's magazine.
                    let two = [unsafe { slab.take(&magazine) }, unsafe { slab.take(&magazine) }];
                    two.map(|slot| slot.as_ptr().expose_provenance())
                })
            };
            for giver in givers {
                giver.join().unwrap();
            }
            let [first, second] = taker.join().unwrap();
            assert_ne!(first, second);
            assert!(![first, second].contains(&addresses[2]), "nobody has given this one back");
            // Whatever the taker did not get can still be taken.
            let mut rest = Vec::new();
            // SAFETY: this thread's magazine.
            rest.extend((0..2).map(|_| unsafe { slab.take(&magazine) }.as_ptr().addr()));
            let all = [first, second, rest[0], rest[1]];
            for at in &addresses[..2] {
                assert!(all.iter().filter(|other| *other == at).count() <= 1, "a slot is there twice");
            }
            let fresh = all.iter().filter(|at| !addresses.contains(at)).count();
            assert_eq!(all.len() - fresh, 2, "a slot was lost");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Slots do not overlap, are aligned, come back, and are used before new ones are.
    #[test]
    fn slots_are_apart_and_are_used_again() {
        for layout in
            [Layout::new::<()>(), Layout::new::<[u64; 3]>(), Layout::from_size_align(40, 64).unwrap()]
        {
            let (slab, magazine) = (Slab::new(layout), Magazine::default());
            // SAFETY: this thread's magazine.
            let take = || unsafe { slab.take(&magazine) };
            let mut slots: Vec<_> = (0..1000).map(|_| take()).collect();
            for slot in &slots {
                assert!(slot.as_ptr().addr().is_multiple_of(layout.align()));
                // SAFETY: a slot has room for it.
                unsafe { slot.as_ptr().write_bytes(0xff, layout.size()) };
            }
            slots.sort();
            assert!(
                slots.windows(2).all(|two| two[1].addr().get() - two[0].addr().get() >= layout.size().max(8))
            );
            let bytes = slab.bytes();
            std::thread::scope(|scope| {
                for some in slots.chunks(500) {
                    let addresses: Vec<_> =
                        some.iter().map(|slot| slot.as_ptr().expose_provenance()).collect();
                    let slab = &slab;
                    scope.spawn(move || {
                        for at in addresses {
                            let slot = NonNull::new(ptr::with_exposed_provenance_mut(at)).unwrap();
                            // SAFETY: taken above, and given back here only.
                            unsafe { slab.give_back(slot) };
                        }
                    });
                }
            });
            let mut again: Vec<_> = (0..1000).map(|_| take()).collect();
            assert_eq!(slab.bytes(), bytes, "there was room");
            again.sort();
            again.dedup();
            assert_eq!(again.len(), 1000, "a slot came twice");
            // SAFETY: this thread's magazine, from which it was taken, and nothing is in it.
            unsafe { slab.put_back(&magazine, again[7]) };
            assert_eq!(take(), again[7]);
        }
    }

    #[test]
    fn room_that_was_asked_for_is_there() {
        let (slab, magazine) = (Slab::new(Layout::new::<u64>()), Magazine::default());
        slab.reserve(10_000);
        let bytes = slab.bytes();
        slab.reserve(10_000);
        // SAFETY: this thread's magazine.
        (0..10_000).for_each(|_| _ = unsafe { slab.take(&magazine) });
        assert_eq!((slab.bytes(), bytes), (80_000, 80_000));
    }
}
