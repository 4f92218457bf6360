//! Where a guest's objects lie: an allocator without any memory.
//!
//! Two orders, after the two allocators that the paper's programs use. *In turn*, as glibc gives out fresh
//! memory: one object behind the other whatever its size, each with 8 bytes before it and rounded up to 16. *By
//! size*, as jemalloc does (Evans, "A Scalable Concurrent malloc Implementation for FreeBSD", 2006): runs of
//! pages that hold objects of one size class only. Large objects get pages of their own. Nothing is freed: the
//! guests do not delete.

/// The first address.
const FIRST: u64 = 0x10_0000_0000;
/// The first address of large objects.
const FIRST_LARGE: u64 = 0x1000_0000_0000;
/// Objects of so many bytes are large.
const LARGE: u64 = 128 << 10;
/// Bytes of a run of one size class.
const RUN: u64 = 64 << 10;
/// Addresses are multiples of this.
const GRAIN: u64 = 16;
/// Bytes of small objects: their places are numbered in four bytes.
pub(super) const BYTES: u64 = GRAIN << 32;

/// How objects are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One behind the other.
    InTurn,
    /// With others of their size.
    BySize,
}

/// The place of an object, in four bytes: there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Its address.
    #[inline]
    #[must_use]
    pub fn address(self) -> u64 {
        FIRST + u64::from(self.0) * GRAIN
    }
}

/// An allocator.
#[derive(Debug, Clone)]
pub struct Heap {
    order: Order,
    next: u64,
    next_large: u64,
    /// Of each size class: its size, where its run goes on, and what is left of it.
    runs: Vec<(u64, u64, u64)>,
}

impl Heap {
    /// An empty heap.
    #[must_use]
    pub fn new(order: Order) -> Heap {
        Heap { order, next: FIRST, next_large: FIRST_LARGE, runs: Vec::new() }
    }

    /// An object's place.
    ///
    /// # Panics
    /// Beyond 64 GiB.
    pub fn allocate(&mut self, bytes: u64) -> Place {
        let address = match self.order {
            Order::InTurn => {
                let address = self.next + GRAIN;
                self.next += (bytes + 8).next_multiple_of(GRAIN).max(2 * GRAIN);
                address
            }
            Order::BySize => self.allocate_in_run(size_class(bytes)),
        };
        let grains = (address - FIRST) / GRAIN;
        Place(u32::try_from(grains).expect("a guest's heap is smaller than 64 GiB"))
    }

    fn allocate_in_run(&mut self, size: u64) -> u64 {
        let known = self.runs.iter().position(|run| run.0 == size);
        let at = known.unwrap_or_else(|| {
            self.runs.push((size, 0, 0));
            self.runs.len() - 1
        });
        let run = &mut self.runs[at];
        if run.2 < size {
            let bytes = RUN.max(size);
            (run.1, run.2) = (self.next, bytes);
            self.next += bytes;
        }
        let address = run.1;
        (run.1, run.2) = (run.1 + size, run.2 - size);
        address
    }

    /// The address of an object that may be large: a table.
    pub fn allocate_table(&mut self, bytes: u64) -> u64 {
        if bytes < LARGE {
            return self.allocate(bytes).address();
        }
        let address = self.next_large;
        // glibc keeps 16 bytes of its own before it.
        self.next_large += (bytes + 16).next_multiple_of(2 << 20) + (2 << 20);
        address + 16
    }

    /// Bytes of address space given out to small objects.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.next - FIRST
    }
}

/// Four classes between one power of two and the next.
fn size_class(bytes: u64) -> u64 {
    let step = (bytes.max(GRAIN).next_power_of_two() / 8).max(GRAIN);
    bytes.max(1).next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_turn_objects_follow_each_other() {
        let mut heap = Heap::new(Order::InTurn);
        let places: Vec<_> = [88, 24, 25, 1].map(|bytes| heap.allocate(bytes).address() - FIRST).into();
        assert_eq!(places, [16, 112, 144, 192], "96, 32, 48 and 32 bytes with what the allocator keeps");
        assert_eq!(heap.bytes(), 96 + 32 + 48 + 32);
    }

    #[test]
    fn by_size_objects_lie_with_their_equals() {
        let mut heap = Heap::new(Order::BySize);
        let first = heap.allocate(24).address();
        let other = heap.allocate(80).address();
        let second = heap.allocate(32).address();
        assert_eq!((second, other), (first + 32, first + RUN));
        assert_eq!([1, 17, 33, 65, 80, 129, 300].map(size_class), [16, 32, 48, 80, 80, 160, 320]);
        for _ in 0..RUN / 32 - 2 {
            assert!(heap.allocate(32).address() < other);
        }
        assert_eq!(heap.allocate(32).address(), first + 2 * RUN, "a new run");
    }

    #[test]
    fn tables_have_pages_of_their_own() {
        let mut heap = Heap::new(Order::InTurn);
        let (small, large) = (heap.allocate_table(100), heap.allocate_table(1 << 20));
        assert_eq!((small, large % 4096), (FIRST + 16, 16));
        assert!(heap.allocate_table(LARGE) > large + (1 << 20));
    }
}
