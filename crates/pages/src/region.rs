//! Mapping memory of a wanted page kind.
//!
//! A region is mapped inside a larger reservation of inaccessible address space. The margin on both sides (1) lets
//! the region start on a boundary of its page size, (2) turns an overrun into a fault instead of a corruption, and
//! (3) keeps the kernel from merging the region with a neighbour, so that `/proc/self/smaps` speaks of it alone and
//! what was obtained can be read back.
//!
//! The usable part is made so by changing its protection, never by mapping it anew in its place: a kernel that refuses
//! such a mapping may have taken away what was there before, and another thread's mapping may be in the gap when the
//! reservation is released. Pages of a hugetlb pool cannot be had that way. They lie where the kernel puts them, with
//! margins only where the addresses beside them are free.
//!
//! Addresses are plenty, and claiming more of them than will be used costs nothing, unless the process has a limit on
//! them (`ulimit -v`) or on memory that it may write (`ulimit -d`), or the kernel promises no more than it has
//! (`vm.overcommit_memory=2`). A region that may grow begins small there, in a place with room behind it
//! ([`crate::gap`]), and claims more when that is wanted.
//!
//! Rejected: asking the allocator for aligned memory and advising it. It gives no guard, and the mapping's entry in
//! smaps is shared with whatever lies beside it. *Claiming half of what a limit leaves*, for regions that may grow: the
//! next one would get a quarter, and whatever else the process does, nothing.

#![allow(unsafe_code)]

use std::alloc::{self, Layout};
use std::fmt;
use std::ops::Range;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::io::Errno;
use rustix::mm::{self, Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::process::{Resource, getrlimit};

use crate::gap;
use crate::kind::PageKind;
use crate::smaps::{self, Census};
use crate::transparent;

/// Half of the address space that a user has on x86-64; a larger request is a mistake, not a wish.
const LARGEST: usize = 1 << 46;
/// Bytes on each side of a region that nobody may touch: a page, as large as this kernel's smallest.
fn margin() -> usize {
    rustix::param::page_size().max(PageKind::Base.size())
}

/// Bytes that a region which has to grow begins with, and the least that it grows by unless less is left.
const FIRST: usize = 1 << 20;
/// A region grows by this part of itself, or by what is wanted if that is more: so it grows seldom, and keeps few
/// addresses from others who have to share them.
const GROWTH: usize = 8;

/// Whether there is a limit on addresses, or on memory that may be written.
fn is_limited() -> bool {
    [Resource::As, Resource::Data].into_iter().any(|resource| getrlimit(resource).current.is_some())
}

/// Why a region could not be mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapError {
    /// A region of no bytes was asked for.
    ZeroLength,
    /// More was asked for than an address space holds.
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The kernel refused, for every kind of page down to the smallest.
    Refused {
        /// Bytes asked for.
        bytes: usize,
        /// The kernel's last answer, in words.
        reason: String,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::ZeroLength => {
                f.write_str("a region needs at least one byte: ask for a positive length")
            }
            MapError::TooLarge { bytes } => {
                write!(f, "a region of {bytes} bytes is beyond any address space: ask for at most {LARGEST}")
            }
            MapError::Refused { bytes, reason } => {
                write!(f, "the kernel refused {bytes} bytes ({reason}): ask for less, or free memory")
            }
        }
    }
}

impl std::error::Error for MapError {}

/// A private, zeroed, readable and writable piece of memory of a known page kind, unmapped on drop.
pub struct Region {
    start: NonNull<u8>,
    /// Changed by who holds the reservation.
    len: AtomicUsize,
    /// Bytes that it may grow to.
    reach: usize,
    /// The reservation around it, guards included.
    reservation: Mutex<Range<usize>>,
    asked: PageKind,
    obtained: PageKind,
}

// SAFETY: a Region is memory and its bounds; whoever reads or writes through its pointer answers for races.
unsafe impl Send for Region {}
// SAFETY: as above: a shared Region gives out an address, not a reference.
unsafe impl Sync for Region {}

/// Whether the kernel is to promise the pages now or to find them when they are touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    Backed,
    AddressesOnly,
    /// Addresses only, and of these only the first, if there is not room for all.
    Growing,
}

/// What is to be made usable of so many bytes, and what may follow.
#[derive(Debug, Clone, Copy)]
struct Extent {
    len: usize,
    reach: usize,
}

impl Region {
    /// Maps at least `bytes` bytes in pages of `kind`, or of the next smaller kind that the machine gives.
    ///
    /// The length is rounded up to whole pages of the kind obtained. The memory reads as zero.
    ///
    /// # Errors
    /// [`MapError::ZeroLength`], [`MapError::TooLarge`], or [`MapError::Refused`] when not even base pages were given.
    pub fn map(bytes: usize, kind: PageKind) -> Result<Region, MapError> {
        Self::map_with(bytes, kind, Promise::Backed)
    }

    /// As [`map`](Region::map), but claims only address space: pages of the base and transparent kinds are found
    /// when they are touched, and a region may be larger than the machine's memory. For tables that grow in place.
    ///
    /// Pages from a hugetlb pool are always promised at once: touching one that the pool lacks would be fatal.
    ///
    /// # Errors
    /// As [`map`](Region::map).
    pub fn reserve(bytes: usize, kind: PageKind) -> Result<Region, MapError> {
        Self::map_with(bytes, kind, Promise::AddressesOnly)
    }

    /// As [`reserve`](Region::reserve), for whoever can begin with less: where a process may not have as many addresses
    /// as it likes (`ulimit -v`), or the kernel refuses so many, the region begins with a megabyte, or a page if that
    /// is more, and [grows](Region::grow).
    ///
    /// ```
    /// use lookaside_pages::{PageKind, Region};
    ///
    /// let region = Region::growing(1 << 35, PageKind::Base)?;
    /// assert_eq!(region.reach(), 1 << 35);
    /// region.grow(3 << 20)?;
    /// assert!(region.len() >= 3 << 20);
    /// # Ok::<(), lookaside_pages::MapError>(())
    /// ```
    ///
    /// # Errors
    /// As [`map`](Region::map).
    pub fn growing(bytes: usize, kind: PageKind) -> Result<Region, MapError> {
        Self::map_with(bytes, kind, Promise::Growing)
    }

    fn map_with(bytes: usize, asked: PageKind, promise: Promise) -> Result<Region, MapError> {
        match bytes {
            0 => return Err(MapError::ZeroLength),
            bytes if bytes > LARGEST => return Err(MapError::TooLarge { bytes }),
            _ => {}
        }
        let mut kind = asked;
        loop {
            match Self::try_map(bytes, asked, kind, promise) {
                Ok(region) if region.obtained == kind => return Ok(region),
                // Accepted, but read back as something smaller: a region of that kind, with its own alignment.
                Ok(region) => kind = region.obtained,
                Err(errno) => match kind.smaller() {
                    Some(smaller) => kind = smaller,
                    None => return Err(MapError::Refused { bytes, reason: errno.to_string() }),
                },
            }
        }
    }

    fn try_map(bytes: usize, asked: PageKind, kind: PageKind, promise: Promise) -> Result<Region, Errno> {
        let page = kind.size();
        let reach = bytes.next_multiple_of(page);
        let (all, first) =
            (Extent { len: reach, reach }, Extent { len: FIRST.next_multiple_of(page), reach });
        let is_pooled = matches!(kind, PageKind::Huge2M | PageKind::Huge1G);
        if promise != Promise::Growing || is_pooled || first.len >= reach {
            return Self::try_extent(all, asked, kind, promise);
        }
        if !is_limited()
            && let Ok(region) = Self::try_extent(all, asked, kind, promise)
        {
            return Ok(region);
        }
        Self::try_extent(first, asked, kind, promise)
    }

    fn try_extent(
        extent: Extent,
        asked: PageKind,
        kind: PageKind,
        promise: Promise,
    ) -> Result<Region, Errno> {
        #[cfg(feature = "fault-injection")]
        if crate::fault::refuses_this_one() {
            return Err(Errno::NOMEM);
        }
        if cfg!(miri) {
            return Ok(Self::from_allocator(extent.reach, asked));
        }
        let mut region = match kind {
            PageKind::Base | PageKind::Transparent => Self::in_reservation(extent, asked, kind, promise)?,
            PageKind::Huge2M => Self::from_pool(extent.len, asked, kind, MapFlags::HUGE_2MB)?,
            PageKind::Huge1G => Self::from_pool(extent.len, asked, kind, MapFlags::HUGE_1GB)?,
        };
        let advised = Self::advise(region.as_ptr(), extent.len, kind);
        region.obtained = region.read_back(kind, advised);
        Ok(region)
    }

    /// Tells the kernel which pages are wanted in a part of a region; whether it took that.
    fn advise(at: *mut u8, len: usize, kind: PageKind) -> bool {
        let advice = match kind {
            PageKind::Transparent => Advice::LinuxHugepage,
            PageKind::Base => Advice::LinuxNoHugepage,
            PageKind::Huge2M | PageKind::Huge1G => return false,
        };
        // A kernel built without transparent huge pages refuses the advice.
        // SAFETY: the advice concerns our own fresh mapping and changes none of its contents.
        unsafe { mm::madvise(at.cast(), len, advice) }.is_ok()
    }

    /// Maps addresses that nobody may touch yet, `at` an address or where the kernel likes.
    fn map_addresses(at: Option<usize>, len: usize, flags: MapFlags) -> Result<Range<usize>, Errno> {
        let wish = at.map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut);
        let flags = if at.is_some() { flags | MapFlags::FIXED_NOREPLACE } else { flags };
        // SAFETY: a fresh anonymous mapping, at an address of the kernel's choice or where nobody has one: in the place
        // of another mapping the kernel does not make it. It touches nobody's memory.
        let made = unsafe { mm::mmap_anonymous(wish, len, ProtFlags::empty(), flags) }?;
        let made_at = made.expose_provenance();
        if at.is_some_and(|at| at != made_at) {
            // A kernel that does not know the flag takes the address for a wish.
            // SAFETY: made just now, for us alone.
            let _ = unsafe { mm::munmap(made, len) };
            return Err(Errno::EXIST);
        }
        Ok(made_at..made_at + len)
    }

    /// Reserves addresses with room for margins, and makes those within usable.
    fn in_reservation(
        extent: Extent,
        asked: PageKind,
        kind: PageKind,
        promise: Promise,
    ) -> Result<Region, Errno> {
        let Extent { len, reach } = extent;
        let margin = margin();
        let page = kind.size().max(margin);
        let reserved = len.next_multiple_of(margin) + page + 2 * margin;
        let flags = Self::reservation_flags(promise);
        let roomy = if reach > len { gap::middle_of_largest(reach + page + 2 * margin) } else { None };
        let roomy =
            roomy.and_then(|at| Self::map_addresses(Some(at / margin * margin), reserved, flags).ok());
        let reservation = roomy.map_or_else(|| Self::map_addresses(None, reserved, flags), Ok)?;
        let start = (reservation.start + margin).next_multiple_of(page);
        // From here on the reservation is released on every way out, by Region's drop.
        let region = Region {
            start: NonNull::new(ptr::with_exposed_provenance_mut(start))
                .expect("mmap gave a non-null address"),
            len: AtomicUsize::new(len),
            reach,
            reservation: Mutex::new(reservation),
            asked,
            obtained: kind,
        };
        // SAFETY: `start..start + len` lies inside our own reservation, which nobody else has a pointer into.
        unsafe { Self::make_usable(region.as_ptr(), len) }?;
        Ok(region)
    }

    fn reservation_flags(promise: Promise) -> MapFlags {
        match promise {
            Promise::Backed => MapFlags::PRIVATE,
            Promise::AddressesOnly | Promise::Growing => MapFlags::PRIVATE | MapFlags::NORESERVE,
        }
    }

    /// Here the kernel promises the pages, or refuses to.
    ///
    /// # Safety
    /// They lie in a reservation of ours, and nobody else has a pointer there.
    unsafe fn make_usable(at: *mut u8, len: usize) -> Result<(), Errno> {
        // SAFETY: by the contract.
        unsafe { mm::mprotect(at.cast(), len, MprotectFlags::READ | MprotectFlags::WRITE) }
    }

    /// Makes at least `bytes` bytes usable, from the first on: the new ones read as zero. What was usable stays so.
    /// Does nothing for a region that is as long already.
    ///
    /// # Errors
    /// [`MapError::Refused`] beyond the region's [reach](Region::reach), or if there are no more addresses for it, now.
    pub fn grow(&self, bytes: usize) -> Result<(), MapError> {
        // Acquire pairs with the release in `extend`.
        if bytes <= self.len.load(Ordering::Acquire) {
            return Ok(());
        }
        if bytes > self.reach {
            return Err(MapError::Refused { bytes, reason: format!("it was made for {}", self.reach) });
        }
        let mut reservation = self.reservation.lock().unwrap_or_else(PoisonError::into_inner);
        let len = self.len();
        // What the kernel makes usable are pages of its own, which may be larger than the smallest here.
        let page = self.obtained.size().max(margin());
        let least = bytes.next_multiple_of(page).min(self.reach).saturating_sub(len);
        if least == 0 {
            return Ok(());
        }
        let mut more = least.max(len / GROWTH).max(FIRST).next_multiple_of(page).min(self.reach - len);
        loop {
            match self.extend(&mut reservation, more) {
                Ok(()) => return Ok(()),
                Err(_) if more > least => more = (more / 2 / page * page).max(least),
                Err(errno) => return Err(MapError::Refused { bytes, reason: errno.to_string() }),
            }
        }
    }

    /// Makes so many more bytes usable: whole pages, within the reach.
    fn extend(&self, reservation: &mut Range<usize>, more: usize) -> Result<(), Errno> {
        let len = self.len();
        // The margin behind the region stays as large as it is. What was mapped and refused then is there already.
        let margin = margin();
        let end = (self.start.as_ptr().addr() + len + more).next_multiple_of(margin) + margin;
        if end > reservation.end {
            let flags = Self::reservation_flags(Promise::Growing);
            reservation.end = Self::map_addresses(Some(reservation.end), end - reservation.end, flags)?.end;
        }
        let at = self.start.as_ptr().wrapping_add(len);
        // SAFETY: it lies inside our reservation, behind what was given out of it.
        unsafe { Self::make_usable(at, more) }?;
        Self::advise(at, more, self.obtained);
        // Release pairs with the acquire in `grow`: who is told that it is as long may touch it.
        self.len.store(len + more, Ordering::Release);
        Ok(())
    }

    /// Maps pages of a hugetlb pool, where the kernel likes, and margins beside them, unless somebody is there already.
    fn from_pool(len: usize, asked: PageKind, kind: PageKind, size: MapFlags) -> Result<Region, Errno> {
        let beside = margin();
        let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | size;
        // SAFETY: as in `in_reservation`.
        let base =
            unsafe { mm::mmap_anonymous(ptr::null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, flags) }?;
        let start = base.expose_provenance();
        let mut reservation = start..start + len;
        let margin_at = |address: usize| {
            Self::map_addresses(Some(address), beside, MapFlags::PRIVATE | MapFlags::NORESERVE).is_ok()
        };
        if margin_at(start - beside) {
            reservation.start -= beside;
        }
        if margin_at(start + len) {
            reservation.end += beside;
        }
        Ok(Region {
            start: NonNull::new(base.cast()).expect("mmap gave a non-null address"),
            len: AtomicUsize::new(len),
            reach: len,
            reservation: Mutex::new(reservation),
            asked,
            obtained: kind,
        })
    }

    /// The interpreter of the language has no kernel to ask: there, a region is an allocation like any other.
    fn from_allocator(len: usize, asked: PageKind) -> Region {
        let layout = Self::allocator_layout(len);
        // SAFETY: the layout has a positive size: a region is never empty.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) });
        let start = start.unwrap_or_else(|| alloc::handle_alloc_error(layout));
        let (len, reach, reservation) = (AtomicUsize::new(len), len, Mutex::default());
        Region { start, len, reach, reservation, asked, obtained: PageKind::Base }
    }

    fn allocator_layout(len: usize) -> Layout {
        Layout::from_size_align(len, PageKind::Base.size()).expect("a length within any address space")
    }

    /// The kind that a mapping made as `kind` has; whether the kernel took the advice that goes with it.
    fn read_back(&self, kind: PageKind, advised: bool) -> PageKind {
        let granted = match kind {
            PageKind::Base => return kind,
            PageKind::Transparent if advised => transparent::are_granted(),
            PageKind::Transparent | PageKind::Huge2M | PageKind::Huge1G => None,
        };
        match granted {
            Some(true) => kind,
            Some(false) => PageKind::Base,
            None => self.reported(kind),
        }
    }

    /// The kind the kernel reports for a mapping made as `kind`.
    fn reported(&self, kind: PageKind) -> PageKind {
        let Some(census) = self.census() else {
            // No smaps to ask: believe hugetlb, which is refused at once where there is none, and nothing else.
            return if kind == PageKind::Transparent { PageKind::Base } else { kind };
        };
        match census.kernel_page {
            size if size == PageKind::Huge1G.size() => PageKind::Huge1G,
            size if size == PageKind::Huge2M.size() => PageKind::Huge2M,
            _ if kind == PageKind::Transparent && census.transparent_eligible => PageKind::Transparent,
            _ => PageKind::Base,
        }
    }

    /// The address of the first byte.
    #[inline]
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes in the region: what was asked for, rounded up to whole pages; less in a region that has [yet to
    /// grow](Region::growing).
    #[inline]
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a region is never empty")]
    pub fn len(&self) -> usize {
        // Acquire pairs with the release in `extend`: who is told that it is as long may touch it.
        self.len.load(Ordering::Acquire)
    }

    /// Bytes that the region may [grow](Region::grow) to: what was asked for, rounded up to whole pages.
    #[inline]
    #[must_use]
    pub fn reach(&self) -> usize {
        self.reach
    }

    /// The kind of page that was asked for.
    #[must_use]
    pub fn asked(&self) -> PageKind {
        self.asked
    }

    /// The kind of page that was obtained: as the kernel reported it, or, of transparent pages, by its settings when
    /// the region was mapped.
    ///
    /// [`PageKind::Transparent`] means that the kernel will assemble huge pages here where it finds them;
    /// [`census`](Region::census) tells how many it found.
    #[must_use]
    pub fn obtained(&self) -> PageKind {
        self.obtained
    }

    /// What is resident now, and in which pages, read from the kernel; `None` where the kernel does not tell.
    #[must_use]
    pub fn census(&self) -> Option<Census> {
        smaps::read(self.start.as_ptr() as usize)
    }

    /// Lets the kernel make no more huge pages of what is mapped now; those that are there stay. For a region of which
    /// much is [released](Region::release): the kernel would make huge pages of what is left, holes and all, and the
    /// memory would be resident again.
    pub fn make_no_more_huge_pages(&self) {
        if self.obtained == PageKind::Transparent && !cfg!(miri) {
            // A refusal costs memory and harms nobody.
            let _ = Self::advise(self.as_ptr(), self.len(), PageKind::Base);
        }
    }

    /// Keeps the first huge page's worth of the region in base pages, as long as nothing lies there yet. For what
    /// begins small and may stay so: its first line is not to take two megabytes.
    pub fn begin_with_base_pages(&self) {
        if self.obtained == PageKind::Transparent && !cfg!(miri) {
            // A refusal costs memory and harms nobody.
            let _ = Self::advise(self.as_ptr(), PageKind::Transparent.size().min(self.len()), PageKind::Base);
        }
    }

    /// Asks the machine for the memory of `range` (bytes from the start) now, so that nobody who writes there has to wait
    /// for it; says whether it is there. The contents stay as they are, whoever reads or writes meanwhile. What is beyond
    /// the region is left out.
    ///
    /// Linux knows the request since 5.14.
    ///
    /// ```
    /// use lookaside_pages::{PageKind, Region};
    ///
    /// let region = Region::reserve(4 << 20, PageKind::Base)?;
    /// region.populate(0..1 << 20);
    /// # Ok::<(), lookaside_pages::MapError>(())
    /// ```
    pub fn populate(&self, range: Range<usize>) -> bool {
        let page = PageKind::Base.size().max(margin());
        let (from, to) = (range.start / page * page, range.end.min(self.len()));
        if cfg!(miri) || from >= to {
            return from >= to;
        }
        // SAFETY: inside our mapping, and its contents do not change.
        let asked = unsafe {
            mm::madvise(self.start.as_ptr().add(from).cast(), to - from, Advice::LinuxPopulateWrite)
        };
        asked.is_ok()
    }

    /// Gives the pages that lie wholly within `range` (bytes from the start) back to the machine, and says whether that
    /// is all of the range and the machine has taken it: it then reads as zero.
    ///
    /// # Safety
    /// Their contents read as zero afterwards: nobody may be using them or rely on what they held.
    ///
    /// # Panics
    /// If the range reaches beyond the region.
    pub unsafe fn release(&self, range: Range<usize>) -> bool {
        assert!(range.end <= self.len(), "release of {range:?} in a region of {} bytes", self.len());
        let page = match self.obtained {
            // The kernel splits a transparent huge page where it must.
            PageKind::Transparent => PageKind::Base.size(),
            kind => kind.size(),
        };
        let from = range.start.next_multiple_of(page);
        let to = range.end / page * page;
        if from < to && cfg!(miri) {
            // SAFETY: inside the region, and the caller says that nobody uses it.
            unsafe { self.start.as_ptr().add(from).write_bytes(0, to - from) };
            (from..to) == range
        } else if from < to {
            // SAFETY: the pages are inside our mapping, and the caller says that nobody uses them. A refusal leaves
            // them as they were, which costs memory but harms nobody.
            let taken = unsafe {
                mm::madvise(self.start.as_ptr().add(from).cast(), to - from, Advice::LinuxDontNeed)
            };
            taken.is_ok() && (from..to) == range
        } else {
            false
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if cfg!(miri) {
            // SAFETY: allocated by `from_allocator` with this very layout.
            unsafe { alloc::dealloc(self.start.as_ptr(), Self::allocator_layout(self.reach)) };
            return;
        }
        let reservation = self.reservation.get_mut().unwrap_or_else(PoisonError::into_inner);
        let base = ptr::with_exposed_provenance_mut(reservation.start);
        // SAFETY: the whole reservation is ours, and whoever borrowed from the region is gone. munmap of a range that
        // we mapped cannot fail but for a defect, which must not become a panic in drop.
        let _ = unsafe { mm::munmap(base, reservation.len()) };
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("len", &self.len())
            .field("asked", &self.asked)
            .field("obtained", &self.obtained)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "there is no kernel to ask")]
    fn the_kernels_settings_say_what_it_reports() {
        // The mapping that was advised to have huge pages, before another is made in its place where it gets none.
        let kind = PageKind::Transparent;
        let region = Region::try_map(4 << 20, kind, kind, Promise::Backed).unwrap();
        assert_eq!(region.obtained, region.reported(kind));
        assert_eq!(region.read_back(kind, false), region.reported(kind));
    }
}
