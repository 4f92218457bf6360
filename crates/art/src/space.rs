//! Where nodes and leaves live: a region of addresses, cut into runs, cut into places.
//!
//! A space claims addresses for all it may ever hold, and pages as they are touched, so a reference is an offset from
//! one base that never moves; where addresses are limited, it begins with few and claims more from there on. A *run* of
//! pages belongs to one class (a kind of node, a size of leaf), whose places follow each other without gaps; a place
//! that is freed goes to its class's list and is given out again before new ones are. The list is threaded through the
//! free places themselves. A run stays its class's, even when nothing in it is in use: a place that waits may lie in
//! any of them, and what a plot has left is known to its node alone.
//!
//! Beside the runs there are *pages of mixed use*, into which the reorganisation lays places of any class: see
//! [`crate::mixed`].
//!
//! Leaves of one size lie in *plots*: a node with room for many children sets a few lines aside, and the leaves below
//! it take their places there, one after the other. Range scans, which visit neighbours, find several to a line and
//! many to a page that way, whatever the order of insertion was; left to the class alone, neighbours are a line and a
//! translation each. The Node4s below a Node256 lie in plots, too: among random keys, every other child of such a node
//! is one. What a plot has left when its node goes is given to the class. While much has been given back, it is used up
//! first.
//!
//! Rejected: *a heap allocation each*: sixteen bytes of bookkeeping for a Node4 of thirty-two, and pages shared with
//! everything else in the program; *chunks found through a table*: one more dependent load a level.

#![allow(unsafe_code)]

use std::fmt;
use std::ops::Range;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use pages::{MapError, PageKind, Region};
use parking_lot::Mutex;

use crate::census::{Census, FREED};
use crate::error::Exhausted;
use crate::kind::Kind;
use crate::mixed::{MixedPages, MixedUse};
use crate::node::Plot;

/// One region and its classes.
pub(crate) struct Space {
    region: Region,
    unit: usize,
    /// Bytes of a place, by its class.
    sizes: Box<[usize]>,
    /// Bytes of a plot, by the kind of the node.
    plots: [usize; 4],
    /// The first byte that belongs to no run.
    frontier: CachePadded<Mutex<usize>>,
    classes: Box<[CachePadded<Mutex<Class>>]>,
    pub(crate) mixed: MixedUse,
    census: Census,
}

/// Places of one size.
struct Class {
    size: usize,
    /// The first free place, in units; zero ends the list.
    free: u32,
    /// Places that were given back, or left over in plots, and wait to be used.
    waiting: usize,
    /// The rest of the run that is being cut.
    run: Range<usize>,
    /// The rests of the runs that are being cut into plots, by the kind of the node.
    plots: [Range<usize>; 4],
    /// Places given out and not given back.
    used: usize,
}

/// What a class occupies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClassUse {
    /// Bytes of one place.
    pub(crate) size: usize,
    /// Places given out and not given back.
    pub(crate) used: usize,
    /// Places that were given back and wait to be used.
    pub(crate) waiting: usize,
}

impl Space {
    /// Bytes of a run. Several nodes of the largest kind share it with little left over.
    pub(crate) const RUN: usize = 64 << 10;
    /// One place for so many in use may wait before what waits is used rather than another plot.
    const WAITING: usize = 8;

    /// A space of `bytes` bytes in pages of `kind`, whose places have one of these `sizes`, each a multiple of `unit`,
    /// and plots these, by the kind of the node.
    pub(crate) fn new(
        bytes: usize,
        kind: PageKind,
        unit: usize,
        sizes: &[usize],
        plots: [usize; 4],
    ) -> Result<Space, MapError> {
        let region = Region::growing(bytes.max(2 * Space::RUN), kind)?;
        // A page of mixed use is one of the region's, though not a gigabyte.
        let page = region.obtained().size().min(PageKind::Huge2M.size());
        let mixed = MixedUse::new(region.reach(), page, unit, sizes.len());
        let census = Census::of(region.reach() / unit);
        let classes = sizes.iter().map(|&size| {
            debug_assert!(size.is_multiple_of(unit) && size <= Space::RUN);
            CachePadded::new(Mutex::new(Class {
                size,
                free: 0,
                waiting: 0,
                run: 0..0,
                plots: [const { 0..0 }; 4],
                used: 0,
            }))
        });
        // Offset zero is the null reference, and an untouched page costs nothing.
        let frontier = CachePadded::new(Mutex::new(PageKind::Base.size()));
        Ok(Space {
            classes: classes.collect(),
            region,
            unit,
            sizes: sizes.into(),
            plots,
            frontier,
            mixed,
            census,
        })
    }

    /// The address of the first byte.
    #[inline(always)]
    pub(crate) fn base(&self) -> *mut u8 {
        self.region.as_ptr()
    }

    /// The pages that were obtained.
    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// The address of a place.
    #[inline(always)]
    pub(crate) fn at(&self, place: u32) -> *mut u8 {
        debug_assert!(place as usize * self.unit < self.region.len());
        // SAFETY: places come from this space, so the offset is inside the region.
        unsafe { self.base().add(place as usize * self.unit) }
    }

    /// A place of this class, whose bytes are anything.
    pub(crate) fn allocate(&self, class: usize) -> Result<u32, Exhausted> {
        self.give_out(|| self.any_place(class, &mut self.classes[class].lock()))
    }

    /// Gives a place out, unless a test has this one refused.
    #[inline]
    fn give_out(&self, take: impl FnOnce() -> Result<u32, Exhausted>) -> Result<u32, Exhausted> {
        #[cfg(feature = "fault-injection")]
        if crate::fault::refuses_this_one() {
            return Err(Exhausted);
        }
        let place = take()?;
        self.census.enter(place);
        Ok(place)
    }

    /// A place of this class in the plot of a node of this kind. All places in plots are of one class.
    pub(crate) fn allocate_near(&self, class: usize, kind: Kind, plot: &Plot) -> Result<u32, Exhausted> {
        self.give_out(|| self.place_near(class, &mut self.classes[class].lock(), kind, plot))
    }

    fn place_near(
        &self,
        number: usize,
        class: &mut Class,
        kind: Kind,
        plot: &Plot,
    ) -> Result<u32, Exhausted> {
        let (units, whole) = (class.size / self.unit, self.units_of_plot(kind));
        // Relaxed: plots are looked at under the lock of the class, and nowhere else.
        let mut place = plot.0.load(Ordering::Relaxed) as usize;
        if place == 0 {
            if class.waiting > class.used / Space::WAITING || 2 * units > whole {
                return self.any_place(number, class);
            }
            let run = &mut class.plots[kind as usize];
            if run.start == run.end {
                let Ok(taken) = self.take_run() else {
                    return self.any_place(number, class);
                };
                *run = taken;
            }
            place = run.start / self.unit;
            run.start += whole * self.unit;
        }
        let next = place + units;
        let room = !next.is_multiple_of(whole) && next % whole + units <= whole;
        plot.0.store(if room { next as u32 } else { 0 }, Ordering::Relaxed);
        class.used += 1;
        Ok(place as u32)
    }

    /// Gives what is left of a plot to the class.
    pub(crate) fn give_up(&self, class: usize, kind: Kind, plot: &Plot) {
        let class = &mut *self.classes[class].lock();
        let (units, whole) = (class.size / self.unit, self.units_of_plot(kind));
        let mut place = plot.0.swap(0, Ordering::Relaxed) as usize;
        let end = place.next_multiple_of(whole);
        while place + units <= end {
            // SAFETY: it is in a plot of this class, and was not given out.
            unsafe { self.put_back(class, place as u32) };
            place += units;
        }
    }

    /// Units of a plot of a node of this kind.
    fn units_of_plot(&self, kind: Kind) -> usize {
        self.plots[kind as usize] / self.unit
    }

    /// A place that was given back, or the next one of the run, or what there is.
    fn any_place(&self, number: usize, class: &mut Class) -> Result<u32, Exhausted> {
        let place = if class.free != 0 {
            let place = class.free;
            // SAFETY: a free place begins with the number of the next one, and nobody but who holds the lock reads it.
            class.free = unsafe { self.at(place).cast::<u32>().read() };
            // Whoever comes next is not to wait for its line while it holds the lock.
            pages::prefetch(self.at(class.free).cast_const());
            class.waiting -= 1;
            place
        } else {
            if class.run.len() < class.size {
                // At the end of the space, what was meant for plots will do, and then any hole.
                let run = self.take_run().ok().or_else(|| {
                    class.plots.iter_mut().find(|rest| rest.len() >= class.size).map(std::mem::take)
                });
                let Some(run) = run else {
                    let start = self.mixed.place_anywhere(number, class.size)?;
                    return Ok((start / self.unit) as u32);
                };
                class.run = run;
            }
            let start = class.run.start;
            class.run.start += class.size;
            (start / self.unit) as u32
        };
        class.used += 1;
        Ok(place)
    }

    /// Puts a place on the list of those that wait.
    ///
    /// # Safety
    /// It is of this class, and nobody uses it.
    unsafe fn put_back(&self, class: &mut Class, place: u32) {
        // SAFETY: the place is nobody's but ours, and aligned to a unit.
        unsafe { self.at(place).cast::<u32>().write(class.free) };
        class.free = place;
        class.waiting += 1;
    }

    /// Takes a place back.
    ///
    /// # Safety
    /// It was given out by this space for this class, and nobody uses it or will give it back again.
    pub(crate) unsafe fn free(&self, class: usize, place: u32) {
        self.census.leave(place);
        if cfg!(debug_assertions) {
            // SAFETY: by the contract the place is ours, as large as its class says.
            unsafe { self.at(place).write_bytes(FREED, self.sizes[class]) };
        }
        let start = place as usize * self.unit;
        if self.mixed.contains(start) {
            return self.mixed.put_back(class, start, self.sizes[class]);
        }
        // Nobody has looked at it for a while: its line is fetched before the lock is taken, not while others wait for
        // it. SAFETY: by the contract the place is ours.
        unsafe { self.at(place).cast::<u32>().write(0) };
        let class = &mut *self.classes[class].lock();
        // SAFETY: by the contract.
        unsafe { self.put_back(class, place) };
        class.used -= 1;
    }

    /// A place of this class in a page of mixed use.
    pub(crate) fn allocate_mixed(&self, class: usize, mixed: &mut MixedPages) -> Result<u32, Exhausted> {
        self.give_out(|| {
            let start = self.mixed.place(class, self.sizes[class], mixed, || {
                let page = self.mixed.page();
                let (passed_over, taken) = self.take(page, page)?;
                Ok((passed_over, taken.start))
            })?;
            Ok((start / self.unit) as u32)
        })
    }

    /// Follows a reference: in builds with debug assertions, panics if the place is not in use.
    #[inline(always)]
    pub(crate) fn check(&self, place: u32) {
        self.census.check(place);
    }

    /// A run: a page that was of mixed use and is empty, or new pages.
    fn take_run(&self) -> Result<Range<usize>, Exhausted> {
        let given_up = self.mixed.give_up(Space::RUN);
        // No page of 4 KiB is passed over: all that is taken is a multiple of these.
        given_up.map_or_else(|| Ok(self.take(Space::RUN, PageKind::Base.size())?.1), Ok)
    }

    /// New bytes, and those that are passed over because what is taken begins at a multiple of `alignment`.
    fn take(&self, bytes: usize, alignment: usize) -> Result<(Range<usize>, Range<usize>), Exhausted> {
        let mut frontier = self.frontier.lock();
        let before = *frontier;
        let start = before.next_multiple_of(alignment);
        let end = start + bytes;
        self.region.grow(end).map_err(|_| Exhausted)?;
        *frontier = end;
        Ok((before..start, start..end))
    }

    /// What this class occupies.
    pub(crate) fn class_use(&self, class: usize) -> ClassUse {
        let in_mixed = self.mixed.used(class);
        let class = self.classes[class].lock();
        ClassUse { size: class.size, used: class.used + in_mixed, waiting: class.waiting }
    }

    /// What all classes occupy.
    #[cfg(debug_assertions)]
    pub(crate) fn uses(&self) -> Vec<ClassUse> {
        (0..self.sizes.len()).map(|class| self.class_use(class)).collect()
    }

    /// Bytes in runs and pages that have been begun.
    pub(crate) fn begun(&self) -> usize {
        *self.frontier.lock()
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("region", &self.region)
            .field("begun", &self.begun())
            .finish_non_exhaustive()
    }
}
