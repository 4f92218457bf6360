//! The prefetch instruction.
//!
//! A batch of lookups is a loop of three passes: name the lines all keys will need, then read them, then the lines
//! those name. The processor keeps some ten to forty of these requests in flight, where a loop of whole lookups
//! waits for one at a time as soon as anything serialises it.

#![allow(unsafe_code)]

/// Asks for the cache line at `place` in all levels of the cache; changes nothing and never faults.
///
/// ```
/// let table = vec![0u64; 1024];
/// lookaside_pages::prefetch(&table[512]);
/// ```
#[inline(always)]
pub fn prefetch<T: ?Sized>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(any(miri, lookaside_portable))))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint; the instruction accepts any address and does not access memory in the sense
        // of the language.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(any(miri, lookaside_portable))))]
    {
        // SAFETY: as above; `prfm` never faults and touches neither registers nor flags.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place.cast::<u8>(),
                options(nostack, preserves_flags, readonly))
        };
    }
    #[cfg(any(miri, lookaside_portable, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}
