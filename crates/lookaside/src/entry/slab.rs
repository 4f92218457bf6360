//! Where the entries of one map lie: slabs of its own, cut into places of one size.
//!
//! ```text
//!    address & !(size - 1)
//!    |
//!    v
//!    +--------+-------+-------+-------+-- ... --+------+
//!    | header | entry | free -> free -> ...     | tail |        a page, or more if the entries are large
//!    +--------+-------+-------+-------+-- ... --+------+
//!      |  whose it is, and what is free
//! ```
//!
//! A slab lies at a multiple of its size, so an entry's address says where its header is, and the header which map the
//! entry is of. So entries need not say it, nor has each a header of the allocator's: an entry of two numbers takes 33
//! bytes where it took 64. Bonwick, "The Slab Allocator: An Object-Caching Kernel Memory Allocator", USENIX 1994, whose
//! way of finding the header this is; without its constructors.
//!
//! A map that threads share has a few shards, each with slabs of its own under a lock of its own. Who makes an entry
//! takes the shard of its thread; who frees one, that of the slab. A slab that is empty goes back to the allocator,
//! unless it is the only one of its shard with places.
//!
//! Each slab has a share in what it belongs to: entries outlive their map where somebody holds a handle.
//!
//! The tail is left to the allocator, which keeps a few bytes of its own between two of its blocks: without it, each
//! slab would take the room of two.
//!
//! Rejected: *an address of the home in each entry*, eight bytes; *slabs of 64 KiB*: an answer of an index looks at the
//! header, and in a page of its own that is an address translation more.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::offset_of;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// What comes before the entries.
const HEADER: usize = 64;
/// What the allocator is left behind them.
const TAIL: usize = 64;
const PAGE: usize = 4096;
/// Places of a slab whose entries are not small; one, if they are larger than a page.
const PLACES: usize = 12;
/// Shards at most.
const MOST_SHARDS: usize = 16;

/// How slabs for entries of one type are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    /// Bytes of a slab, and what it lies at a multiple of.
    slab: usize,
    /// Where the first place begins.
    first: usize,
    place: usize,
    places: usize,
}

impl Cut {
    pub(super) const fn of<E>() -> Cut {
        let (place, align) = (size_of::<E>(), align_of::<E>());
        let first = if align > HEADER { align } else { HEADER };
        let wanted = if place > PAGE { 1 } else { PLACES };
        let bytes = (first + wanted * place + TAIL).next_power_of_two();
        let slab = if bytes < PAGE { PAGE } else { bytes };
        Cut { slab, first, place, places: (slab - TAIL - first) / place }
    }

    fn layout(self) -> Layout {
        Layout::from_size_align(self.slab - TAIL, self.slab).expect("entries that fit memory")
    }

    /// The slab of the entry at this address.
    #[inline(always)]
    fn slab_of<B>(self, address: usize) -> *mut Slab<B> {
        with_exposed_provenance_mut(address & !(self.slab - 1))
    }
}

/// A slab's header.
#[repr(C)]
struct Slab<B> {
    /// A share. It and the next do not change.
    home: *const Slabs<B>,
    shard: usize,
    /// From here on under the shard's lock. The first of the places that were used, and are free: each names the next.
    free: *mut *mut u8,
    /// Places that were used at some time: those behind them are free.
    begun: usize,
    used: usize,
    /// Those beside it in the list of those with free places.
    before: *mut Slab<B>,
    behind: *mut Slab<B>,
}

const _: () = assert!(size_of::<Slab<()>>() <= HEADER && offset_of!(Slab<()>, home) == 0);

/// The slabs of a shard that have free places.
struct Shard<B> {
    roomy: *mut Slab<B>,
}

// SAFETY: slabs are changed under the lock that the shard is in. What they share may be looked at and dropped by any
// thread.
unsafe impl<B: Send + Sync> Send for Shard<B> {}

impl<B> Shard<B> {
    /// # Safety
    /// The slab is this shard's, and not in the list.
    unsafe fn link(&mut self, slab: *mut Slab<B>) {
        // SAFETY: the caller's promise, for this one, and the list's own for the other.
        unsafe {
            (*slab).before = null_mut();
            (*slab).behind = self.roomy;
            if !self.roomy.is_null() {
                (*self.roomy).before = slab;
            }
        }
        self.roomy = slab;
    }

    /// # Safety
    /// The slab is in the list.
    unsafe fn unlink(&mut self, slab: *mut Slab<B>) {
        // SAFETY: the caller's promise, and so for those beside it.
        unsafe {
            let (before, behind) = ((*slab).before, (*slab).behind);
            match before.is_null() {
                true => self.roomy = behind,
                false => (*before).behind = behind,
            }
            if !behind.is_null() {
                (*behind).before = before;
            }
        }
    }
}

/// The slabs of one map, and what has to be known of it where an entry is.
pub(crate) struct Slabs<B> {
    pub(super) beside: B,
    /// The map is gone.
    ended: AtomicBool,
    shards: Box<[CachePadded<Mutex<Shard<B>>>]>,
}

impl<B> Slabs<B> {
    /// For one thread or for many.
    pub(super) fn new(beside: B, shared: bool) -> Arc<Slabs<B>> {
        let shards = match shared {
            true => std::thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_SHARDS),
            false => 1,
        };
        let shard = |_| CachePadded::new(Mutex::new(Shard { roomy: null_mut() }));
        Arc::new(Slabs { beside, ended: AtomicBool::new(false), shards: (0..shards).map(shard).collect() })
    }

    /// All who looked at entries of the map have left.
    pub(super) fn end(&self) {
        // Release pairs with the acquire in `has_ended`.
        self.ended.store(true, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn has_ended(&self) -> bool {
        // Acquire pairs with the release in `end`.
        self.ended.load(Ordering::Acquire)
    }

    /// A place for an entry, to be given back by [`Slabs::give_back`].
    pub(super) fn place(self: &Arc<Self>, cut: Cut) -> *mut u8 {
        let number = this_thread() % self.shards.len();
        let mut shard = self.shards[number].lock();
        if shard.roomy.is_null() {
            let slab = self.slab(number, cut);
            // SAFETY: new.
            unsafe { shard.link(slab) };
        }
        let slab = shard.roomy;
        // SAFETY: in the list, and so this shard's, whose lock is held, with a free place: a used one that names the
        // next, or one within the slab that was never used.
        unsafe {
            let free = (*slab).free;
            let place = if free.is_null() {
                let place = slab.cast::<u8>().add(cut.first + (*slab).begun * cut.place);
                (*slab).begun += 1;
                place
            } else {
                (*slab).free = (*free).cast();
                free.cast()
            };
            (*slab).used += 1;
            if (*slab).used == cut.places {
                shard.unlink(slab);
            }
            place
        }
    }

    fn slab(self: &Arc<Self>, shard: usize, cut: Cut) -> *mut Slab<B> {
        // SAFETY: of more than no bytes.
        let slab = unsafe { alloc(cut.layout()) }.cast::<Slab<B>>();
        if slab.is_null() {
            handle_alloc_error(cut.layout());
        }
        slab.expose_provenance();
        let home = Arc::into_raw(Arc::clone(self));
        let (free, before, behind) = (null_mut(), null_mut(), null_mut());
        // SAFETY: room for a header, at a multiple of a page.
        unsafe { slab.write(Slab { home, shard, free, begun: 0, used: 0, before, behind }) };
        slab
    }

    /// Gives empty slabs back to the allocator: no more entries will be made, but [`Slabs::give_back`] gives back
    /// others.
    pub(super) fn release(&self, cut: Cut) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            let mut slab = shard.roomy;
            while !slab.is_null() {
                // SAFETY: in the list, under the lock. Nothing of an empty one is used, and out of the list nobody
                // comes to it. The caller has a share of his own.
                unsafe {
                    let behind = (*slab).behind;
                    if (*slab).used == 0 {
                        shard.unlink(slab);
                        let home = (*slab).home;
                        dealloc(slab.cast(), cut.layout());
                        drop(Arc::from_raw(home));
                    }
                    slab = behind;
                }
            }
        }
    }

    /// Whose the entry at this address is.
    ///
    /// # Safety
    /// It lies in a slab of this cut and of such a home, in a place that is not given back.
    #[inline(always)]
    pub(super) unsafe fn home(address: usize, cut: Cut) -> *const Slabs<B> {
        // SAFETY: the slab stays while one of its places is used, and this part of it does not change.
        unsafe { (*cut.slab_of::<B>(address)).home }
    }

    /// Gives a place back. What it belongs to may go with it.
    ///
    /// # Safety
    /// [`Slabs::place`] of this type gave this place, for this cut, and nobody uses it any more. Once.
    pub(super) unsafe fn give_back(place: *mut u8, cut: Cut) {
        let slab = cut.slab_of::<B>(place.expose_provenance());
        // SAFETY: the slab stays while one of its places is used, as this one is until the lock is held; it has a share
        // of its home, and the home stays until that is dropped, below, behind the lock.
        let emptied = unsafe {
            let home = &*(*slab).home;
            let mut shard = home.shards[(*slab).shard].lock();
            let free = place.cast::<*mut u8>();
            free.write((*slab).free.cast());
            (*slab).free = free;
            if (*slab).used == cut.places {
                shard.link(slab);
            }
            (*slab).used -= 1;
            let only = shard.roomy == slab && (*slab).behind.is_null();
            let goes = (*slab).used == 0 && (!only || home.has_ended());
            if goes {
                shard.unlink(slab);
            }
            goes
        };
        if emptied {
            // SAFETY: nothing in it is used, and nobody comes to it any more; made by `slab`, whose share this is.
            unsafe {
                let home = (*slab).home;
                dealloc(slab.cast(), cut.layout());
                drop(Arc::from_raw(home));
            }
        }
    }
}

/// A number of this thread's: threads are numbered as they first come here.
fn this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_every_size_have_places_in_their_slab() {
        fn check<E>() {
            let cut = Cut::of::<E>();
            assert!(cut.slab.is_power_of_two() && cut.places > 0, "{cut:?}");
            assert!(cut.first >= HEADER && cut.first.is_multiple_of(align_of::<E>()), "{cut:?}");
            assert!(cut.first + cut.places * cut.place + TAIL <= cut.slab, "{cut:?}");
            // What is lost is less than a place of twelve, or less than half where there is one.
            assert!(
                cut.place > PAGE || cut.slab < (cut.places + 2) * cut.place + 2 * HEADER + PAGE / 2,
                "{cut:?}"
            );
        }
        #[repr(align(256))]
        struct Aligned(#[allow(dead_code)] [u8; 300]);
        check::<u64>();
        check::<[u64; 4]>();
        check::<[u8; 333]>();
        check::<[u8; 4000]>();
        check::<[u8; 5000]>();
        check::<[u8; 1 << 20]>();
        check::<Aligned>();
    }
    fn roomy(home: &Slabs<()>) -> Vec<usize> {
        let mut used = Vec::new();
        for shard in &home.shards {
            let mut slab = shard.lock().roomy;
            while !slab.is_null() {
                // SAFETY: in the list, and no other thread is here.
                unsafe {
                    used.push((*slab).used);
                    slab = (*slab).behind;
                }
            }
        }
        used
    }

    /// Places are apart from each other and used again, slabs that are empty go, and the last goes with the map.
    #[test]
    fn places_are_used_again_and_empty_slabs_go() {
        type Entry = [u64; 4];
        let cut = Cut::of::<Entry>();
        let home = Slabs::new((), false);
        let mut random = 1u64;
        for round in 0..3u64 {
            let many = 5 * cut.places + 3;
            let mut places: Vec<*mut Entry> = (0..many).map(|_| home.place(cut).cast()).collect();
            for (number, place) in places.iter().enumerate() {
                // SAFETY: a place for it.
                unsafe { place.write([number as u64 + round; 4]) };
            }
            for (number, place) in places.iter().enumerate() {
                // SAFETY: written above.
                assert_eq!(unsafe { place.read() }, [number as u64 + round; 4]);
            }
            assert_eq!(Arc::strong_count(&home), 1 + 6, "a share a slab");
            while !places.is_empty() {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let place = places.swap_remove((random >> 33) as usize % places.len());
                // SAFETY: of this cut, once.
                unsafe { Slabs::<()>::give_back(place.cast(), cut) };
            }
            assert_eq!((roomy(&home), Arc::strong_count(&home)), (vec![0], 2), "one is kept");
        }
        // One that is in use outlives the map's word that it is gone.
        let place = home.place(cut);
        home.end();
        home.release(cut);
        assert_eq!(Arc::strong_count(&home), 2);
        // SAFETY: as above.
        unsafe { Slabs::<()>::give_back(place, cut) };
        assert_eq!((roomy(&home).len(), Arc::strong_count(&home)), (0, 1));
    }

    #[test]
    fn threads_take_and_give_back_each_others_places() {
        let cut = Cut::of::<[u64; 4]>();
        let home = Slabs::new((), true);
        let (give, take) = std::sync::mpsc::channel::<usize>();
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let (home, give) = (&home, give.clone());
                scope.spawn(move || {
                    for number in 0..if cfg!(miri) { 50 } else { 5_000 } {
                        let place = home.place(cut).cast::<[u64; 4]>();
                        // SAFETY: a place for it.
                        unsafe { place.write([thread << 32 | number; 4]) };
                        give.send(place.expose_provenance()).unwrap();
                    }
                });
            }
            drop(give);
            scope.spawn(move || {
                for place in take {
                    let place = with_exposed_provenance_mut::<[u64; 4]>(place);
                    // SAFETY: written by another thread, and given to this one alone.
                    unsafe {
                        let [first, others @ ..] = place.read();
                        assert_eq!(others, [first; 3]);
                        Slabs::<()>::give_back(place.cast(), cut);
                    }
                }
            });
        });
        assert!(roomy(&home).iter().all(|used| *used == 0));
        home.release(cut);
        assert_eq!(Arc::strong_count(&home), 1);
    }
}
