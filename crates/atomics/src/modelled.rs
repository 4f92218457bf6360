//! Loom's primitives behind the standard ones' interfaces.

pub use loom::sync::Arc;
pub use loom::sync::MutexGuard;
pub use loom::sync::atomic::Ordering;
pub use loom::thread::yield_now;

loom::lazy_static! {
    static ref FENCES: loom::sync::atomic::AtomicUsize = Default::default();
}

/// As the standard library's. Loom does not try to let other threads run just before a fence, so the fences of a model
/// have a common companion: all orders of theirs are tried.
pub fn fence(ordering: Ordering) {
    FENCES.fetch_add(1, Ordering::Relaxed);
    loom::sync::atomic::fence(ordering);
}

macro_rules! ordered {
    ($($name:ident: $value:ty),*) => { $(
        /// Loom's atomic with a companion: see the crate.
        #[derive(Debug, Default)]
        pub struct $name {
            companion: loom::sync::atomic::AtomicUsize,
            atomic: loom::sync::atomic::$name,
        }

        impl $name {
            /// As the standard library's.
            pub fn new(value: $value) -> Self {
                $name { companion: Default::default(), atomic: loom::sync::atomic::$name::new(value) }
            }

            fn ordered(&self) -> &loom::sync::atomic::$name {
                self.companion.fetch_add(1, Ordering::Relaxed);
                &self.atomic
            }

            /// As the standard library's.
            pub fn load(&self, ordering: Ordering) -> $value {
                self.ordered().load(ordering)
            }

            /// As the standard library's.
            pub fn store(&self, value: $value, ordering: Ordering) {
                self.ordered().store(value, ordering);
            }

            /// As the standard library's.
            pub fn compare_exchange(
                &self, old: $value, new: $value, success: Ordering, failure: Ordering,
            ) -> Result<$value, $value> {
                self.ordered().compare_exchange(old, new, success, failure)
            }
        }
    )* };
}
ordered!(AtomicBool: bool, AtomicU16: u16, AtomicU8: u8, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

macro_rules! counted {
    ($($name:ident: $value:ty),*) => { $(
        impl $name {
            /// As the standard library's.
            pub fn fetch_add(&self, value: $value, ordering: Ordering) -> $value {
                self.ordered().fetch_add(value, ordering)
            }

            /// As the standard library's.
            pub fn fetch_sub(&self, value: $value, ordering: Ordering) -> $value {
                self.ordered().fetch_sub(value, ordering)
            }
        }
    )* };
}
counted!(AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

impl AtomicU16 {
    /// As the standard library's.
    pub fn fetch_or(&self, value: u16, ordering: Ordering) -> u16 {
        self.ordered().fetch_or(value, ordering)
    }
}

/// Loom's atomic with a companion: see the crate.
#[derive(Debug)]
pub struct AtomicPtr<T> {
    companion: loom::sync::atomic::AtomicUsize,
    atomic: loom::sync::atomic::AtomicPtr<T>,
}

impl<T> AtomicPtr<T> {
    /// As the standard library's.
    pub fn new(value: *mut T) -> Self {
        AtomicPtr { companion: Default::default(), atomic: loom::sync::atomic::AtomicPtr::new(value) }
    }

    fn ordered(&self) -> &loom::sync::atomic::AtomicPtr<T> {
        self.companion.fetch_add(1, Ordering::Relaxed);
        &self.atomic
    }

    /// As the standard library's.
    pub fn load(&self, ordering: Ordering) -> *mut T {
        self.ordered().load(ordering)
    }

    /// As the standard library's.
    pub fn compare_exchange(
        &self,
        old: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        self.ordered().compare_exchange(old, new, success, failure)
    }

    /// As the standard library's.
    pub fn swap(&self, value: *mut T, ordering: Ordering) -> *mut T {
        self.ordered().swap(value, ordering)
    }
}

/// To the model a spinning thread is one that waits for another.
pub fn spin_loop() {
    yield_now();
}

/// Loom's mutex with the interface of the standard one here, which does not poison.
#[derive(Debug)]
pub struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// As the standard one's.
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    /// As the standard one's.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a model does not go on after a panic")
    }

    /// As the standard one's.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }

    /// As the standard one's.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().expect("a model does not go on after a panic")
    }
}

/// Loom's condition variable with the interface of the standard one here.
#[derive(Debug)]
pub struct Condvar(loom::sync::Condvar);

impl Condvar {
    /// As the standard one's.
    #[allow(clippy::new_without_default, reason = "loom's has none")]
    pub fn new() -> Condvar {
        Condvar(loom::sync::Condvar::new())
    }

    /// As the standard one's.
    pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        self.0.wait(guard).expect("a model does not go on after a panic")
    }

    /// As the standard one's.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
