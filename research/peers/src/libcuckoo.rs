//! libcuckoo (Li, Andersen, Kaminsky and Freedman, "Algorithmic improvements for fast concurrent cuckoo hashing",
//! EuroSys 2014), the C++ library that grew out of the paper's table: keys and values lie in its slots, four to a
//! bucket, with one-byte summaries; every operation, lookups too, locks its two buckets by spinning.
//!
//! Its best call for a lookup is `find`, which copies the value; there is none for many keys at once. The whole loop of
//! an experiment runs on the C++ side (`cpp/libcuckoo.cpp`).

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::NonNull;

use lab::index::{Index, Insertion, Key};
use lab::subject::Tally;

// SAFETY: these are the functions of cpp/libcuckoo.cpp, which build.rs compiles and links whenever this module is
// compiled in. `Key` there is 16 bytes, aligned to 16, as it is here.
unsafe extern "C" {
    fn lookaside_peers_xxh3(key: *const Key) -> u64;
    fn lookaside_peers_libcuckoo_new(capacity: usize) -> *mut c_void;
    fn lookaside_peers_libcuckoo_free(map: *mut c_void);
    fn lookaside_peers_libcuckoo_insert(
        map: *mut c_void,
        keys: *const Key,
        count: usize,
        first: u64,
    ) -> usize;
    fn lookaside_peers_libcuckoo_find(
        map: *const c_void,
        keys: *const Key,
        count: usize,
        found: *mut u64,
        sum: *mut u64,
    );
}

/// The hash of a key, computed on the C++ side.
#[must_use]
pub fn hash(key: &Key) -> u64 {
    // SAFETY: the function reads one key, at an address that is one.
    unsafe { lookaside_peers_xxh3(key) }
}

/// A `libcuckoo::cuckoohash_map` from keys to record numbers.
pub struct LibCuckoo {
    map: NonNull<c_void>,
}

// SAFETY: the map is a concurrent one: its insert and find may be called from any thread at any time, and it is
// deleted only by the one who owns it.
unsafe impl Send for LibCuckoo {}
// SAFETY: as above.
unsafe impl Sync for LibCuckoo {}

impl LibCuckoo {
    /// An empty map with room for `capacity` keys; `None` where memory is refused.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Option<LibCuckoo> {
        // SAFETY: the function has no requirements; what it returns is null or a map that is ours to free.
        NonNull::new(unsafe { lookaside_peers_libcuckoo_new(capacity) }).map(|map| LibCuckoo { map })
    }
}

impl Drop for LibCuckoo {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and freed nowhere else.
        unsafe { lookaside_peers_libcuckoo_free(self.map.as_ptr()) };
    }
}

impl Index for LibCuckoo {
    fn get(&self, key: &Key) -> Option<u64> {
        let tally = self.get_each(std::slice::from_ref(key));
        (tally.found == 1).then_some(tally.sum)
    }

    fn insert(&self, record: u64) -> Insertion {
        let key = Key::of(record);
        // SAFETY: the map lives, and `key` is one key.
        match unsafe { lookaside_peers_libcuckoo_insert(self.map.as_ptr(), &key, 1, record) } {
            1 => Insertion::Done { displaced: 0 },
            _ => Insertion::TooFull,
        }
    }

    fn get_each(&self, keys: &[Key]) -> Tally {
        let mut tally = Tally::default();
        let (found, sum) = (&raw mut tally.found, &raw mut tally.sum);
        // SAFETY: the map lives, `keys` are as many keys as the function is told, and it writes two numbers that are
        // ours.
        unsafe { lookaside_peers_libcuckoo_find(self.map.as_ptr(), keys.as_ptr(), keys.len(), found, sum) };
        tally
    }
}
