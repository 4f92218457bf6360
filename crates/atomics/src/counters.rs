//! Counting without sharing.
//!
//! Each thread counts in its own cache lines, with plain loads and stores that no other thread makes; who wants the
//! sums adds them up. A thread that leaves leaves its counts behind. [`counters!`](crate::counters) makes the types.

use std::fmt;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// The counters of one thread, as made by [`counters!`](crate::counters).
pub trait CounterSet: Default {
    /// The sums of such counters.
    type Sums: Copy + Default;

    /// Adds what has been counted so far.
    fn add_to(&self, sums: &mut Self::Sums);
}

/// The counters of all threads.
pub struct Registry<C: CounterSet> {
    state: Mutex<State<C>>,
}

struct State<C: CounterSet> {
    present: Vec<Arc<CachePadded<C>>>,
    past: C::Sums,
}

/// One thread's counters: dereferences to them, and leaves their counts behind when it is dropped.
pub struct Counting<C: CounterSet> {
    counters: Arc<CachePadded<C>>,
    registry: Arc<Registry<C>>,
}

impl<C: CounterSet> Default for Registry<C> {
    fn default() -> Self {
        Registry { state: Mutex::new(State { present: Vec::new(), past: C::Sums::default() }) }
    }
}

impl<C: CounterSet> Registry<C> {
    /// New counters, for the calling thread or one that it hands them to.
    #[must_use]
    pub fn join(self: &Arc<Self>) -> Counting<C> {
        let counters = Arc::new(CachePadded::new(C::default()));
        self.state.lock().present.push(counters.clone());
        Counting { counters, registry: self.clone() }
    }

    /// The sums over all threads, those that have left among them. Not a snapshot: threads go on counting meanwhile.
    #[must_use]
    pub fn sums(&self) -> C::Sums {
        let state = self.state.lock();
        let mut sums = state.past;
        state.present.iter().for_each(|counters| counters.add_to(&mut sums));
        sums
    }
}

impl<C: CounterSet> std::ops::Deref for Counting<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.counters
    }
}

impl<C: CounterSet> Drop for Counting<C> {
    fn drop(&mut self) {
        let mut state = self.registry.state.lock();
        state.present.retain(|other| !Arc::ptr_eq(other, &self.counters));
        self.counters.add_to(&mut state.past);
    }
}

impl<C: CounterSet> fmt::Debug for Registry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").finish_non_exhaustive()
    }
}

impl<C: CounterSet> fmt::Debug for Counting<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counting").finish_non_exhaustive()
    }
}

/// Makes a struct of sums and a struct of the counters that one thread has, with a method for each that adds to it.
///
/// ```
/// lookaside_atomics::counters! {
///     /// What has happened in all.
///     pub struct Sums;
///     /// What one thread has seen happen.
///     pub struct Counters;
///     /// Apples eaten.
///     apples,
///     /// Pears eaten.
///     pears,
/// }
///
/// let registry = std::sync::Arc::new(lookaside_atomics::Registry::<Counters>::default());
/// let mine = registry.join();
/// mine.apples(3);
/// assert_eq!(registry.sums(), Sums { apples: 3, pears: 0 });
/// drop(mine);
/// assert_eq!(registry.sums().apples, 3);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$sums_doc:meta])* $sums_visibility:vis struct $sums:ident;
        $(#[$counters_doc:meta])* $counters_visibility:vis struct $counters:ident;
        $($(#[$doc:meta])* $name:ident),* $(,)?
    ) => {
        $(#[$sums_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        $sums_visibility struct $sums {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl ::std::ops::Sub for $sums {
            type Output = Self;

            /// What has been counted since.
            fn sub(self, earlier: Self) -> Self {
                $sums { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }

        $(#[$counters_doc])*
        #[derive(Debug, Default)]
        $counters_visibility struct $counters {
            $($name: ::std::sync::atomic::AtomicU64,)*
        }

        impl $counters {
            $(
                $(#[$doc])*
                #[inline]
                $counters_visibility fn $name(&self, by: u64) {
                    // Relaxed and not a read-modify-write: only one thread writes it.
                    let now = self.$name.load(::std::sync::atomic::Ordering::Relaxed);
                    self.$name.store(now.wrapping_add(by), ::std::sync::atomic::Ordering::Relaxed);
                }
            )*
        }

        impl $crate::CounterSet for $counters {
            type Sums = $sums;

            fn add_to(&self, sums: &mut $sums) {
                $(
                    let now = self.$name.load(::std::sync::atomic::Ordering::Relaxed);
                    sums.$name = sums.$name.wrapping_add(now);
                )*
            }
        }
    };
}
