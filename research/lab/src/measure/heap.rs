//! A heap as a program begins with it.
//!
//! What an index has freed lies in the allocator's lists, in the order in which it was freed: that of the index. The
//! next index would be built from it, and its entries would lie beside each other, or far from each other, for no
//! reason of its own; on regular pages that changes a lookup's time by a third. Nor would its memory count as its own,
//! being resident already. So the allocator is made to join what is free and to give it back to the kernel.
//!
//! Rejected: a process for each index. They could not take turns.

#![allow(unsafe_code)]

/// Gives what the C library's allocator has free back to the kernel, all of it but what lies among things still in use.
/// Nothing where the C library cannot.
pub fn release_freed_memory() {
    super::epochs::collect();
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
