//! Atomics and storage, from the standard library or from the model checker.
//!
//! Under `--cfg loom` every load and store of the table goes through loom, which explores the interleavings and
//! reorderings that the memory model allows; the code of the table is the same.

#[cfg(not(loom))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::thread::yield_now;

    /// Buckets that read as zero until they are written, and cost nothing until then.
    pub(crate) type Buckets<B> = pages::Array<B>;
}

#[cfg(loom)]
mod imp {
    pub(crate) use loom::sync::atomic::Ordering;
    pub(crate) use loom::thread::yield_now;

    /// Loom's atomics, each with a companion that every access touches first.
    ///
    /// To decide which accesses to try in another order, loom 0.7 remembers only the last access to an object. Where a
    /// thread loads and then stores, as every writer here does, its load hides an earlier load of another thread, and
    /// loom never tries the store before that load: whole models are "explored" in one execution. The companion is only
    /// ever changed by relaxed read-modify-writes, which hide nothing from each other and synchronise nothing, so all
    /// orders are tried, and the load or store behind it still sees whatever the memory model lets it see.
    macro_rules! ordered {
        ($($name:ident: $value:ty),*) => { $(
            #[derive(Debug, Default)]
            pub(crate) struct $name {
                companion: loom::sync::atomic::AtomicUsize,
                atomic: loom::sync::atomic::$name,
            }

            #[allow(dead_code)]
            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    $name { companion: Default::default(), atomic: loom::sync::atomic::$name::new(value) }
                }

                fn ordered(&self) -> &loom::sync::atomic::$name {
                    self.companion.fetch_add(1, Ordering::Relaxed);
                    &self.atomic
                }

                pub(crate) fn load(&self, ordering: Ordering) -> $value {
                    self.ordered().load(ordering)
                }

                pub(crate) fn store(&self, value: $value, ordering: Ordering) {
                    self.ordered().store(value, ordering);
                }

                pub(crate) fn compare_exchange(
                    &self, old: $value, new: $value, success: Ordering, failure: Ordering,
                ) -> Result<$value, $value> {
                    self.ordered().compare_exchange(old, new, success, failure)
                }
            }
        )* };
    }
    ordered!(AtomicBool: bool, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

    impl AtomicUsize {
        pub(crate) fn fetch_add(&self, value: usize, ordering: Ordering) -> usize {
            self.ordered().fetch_add(value, ordering)
        }

        pub(crate) fn fetch_sub(&self, value: usize, ordering: Ordering) -> usize {
            self.ordered().fetch_sub(value, ordering)
        }
    }

    /// The model has no pages: buckets are made one by one.
    pub(crate) type Buckets<B> = Box<[B]>;

    /// To the model a spinning thread is one that waits for another.
    pub(crate) fn spin_loop() {
        loom::thread::yield_now();
    }
}

pub(crate) use imp::*;
