//! What the border to C costs: hits through `SLB_get`, through the owner-only form and in batches, beside those of the
//! generic Rust path, in turns; all tables are of one size. Prints nanoseconds a lookup: medians of the turns, and the
//! fastest.
//!
//!     cargo run --release -p lookaside-capi --example cost [RECORDS [LOOKUPS]]

#![allow(unsafe_code, reason = "calls what C would call")]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::time::Instant;

use foldhash::quality::FixedState;
use lookaside::{Config, Hashing, Map, OwnedMap, Random, RwLock, SharedBuffer};
use lookaside_capi::*;

/// 24 bytes, hashed by the word.
type Key = [u64; 3];

#[repr(C)]
struct Record {
    key: Key,
    value: [u8; 64],
}

/// Both sides hash by this.
const HASHER: FixedState = FixedState::with_seed(7);

unsafe extern "C-unwind" fn matches(entry: *mut c_void, key: *mut c_void) -> bool {
    // SAFETY: entries and keys are these.
    unsafe { (*entry.cast::<Record>()).key == *key.cast::<Key>() }
}

unsafe extern "C-unwind" fn hash(key: *mut c_void) -> u64 {
    // SAFETY: a record begins with its key.
    HASHER.hash_one(unsafe { *key.cast::<Key>() })
}

const BATCH: usize = 16;
const TURNS: usize = 9;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().expect("a number"));
    let (records, lookups) = (arguments.next().unwrap_or(100_000), arguments.next().unwrap_or(4_000_000));
    let config = Config::with_size(32 << 20);
    let key = |number: usize| -> Key { [7, 7, number as u64] };
    let random = Random::new(1);
    // Skewed: the cube of a uniform share.
    let draws: Vec<Key> = (0..lookups)
        .map(|_| {
            let share = random.next() as f64 / u64::MAX as f64;
            key(((share * share * share) * records as f64) as usize % records)
        })
        .collect();

    let buffer: SharedBuffer = SharedBuffer::for_indexes(&config, 1).expect("memory");
    let map =
        Map::sharing(RwLock::new(BTreeSet::new()), &buffer, Hashing::avalanching(HASHER)).expect("the first");
    let mut owned_map =
        OwnedMap::with_index_and_hasher(BTreeSet::new(), &config, Hashing::avalanching(HASHER))
            .expect("memory");
    let entries: Vec<Box<Record>> =
        (0..records).map(|number| Box::new(Record { key: key(number), value: [7; 64] })).collect();
    (0..records).for_each(|number| drop(map.insert(key(number), [7u8; 64])));
    (0..records).for_each(|number| drop(owned_map.insert(key(number), [7u8; 64])));
    map.buffer().monitor(false);
    owned_map.monitor(false);
    let reader = map.pin();
    let options = lookaside_options {
        size: config.size,
        r#match: Some(matches),
        keyhash: Some(hash),
        entryhash: Some(hash),
        monitor: false,
        ..lookaside_options::default()
    };
    // SAFETY: here and below, the callbacks are for these entries, which outlive both; one thread.
    let (b, o) = unsafe { (lookaside_create(&options), lookaside_owned_create(&options)) };
    for entry in &entries {
        let entry = std::ptr::from_ref(&**entry).cast_mut().cast();
        // SAFETY: as above.
        unsafe { (SLB_emit(b, entry), lookaside_owned_emit(o, entry)) };
    }
    let pointer = |key: &Key| std::ptr::from_ref(key).cast_mut().cast::<c_void>();
    // As another language calls them: nothing is inlined.
    let get = black_box(SLB_get as unsafe extern "C" fn(*mut SLB, *const c_void) -> *mut c_void);
    let owned_get = black_box(
        lookaside_owned_get as unsafe extern "C" fn(*mut lookaside_owned, *const c_void) -> *mut c_void,
    );
    // SAFETY: as above.
    let value =
        |entry: *mut c_void| unsafe { entry.cast::<Record>().as_ref() }.map_or(0, |found| found.value[0]);
    let ways: [(&str, &dyn Fn() -> u64); 6] = [
        ("Rust, shared", &|| {
            draws.iter().map(|key| reader.get(key).map_or(0, |value| u64::from(value[0]))).sum()
        }),
        // SAFETY: as above.
        ("C, SLB_get", &|| draws.iter().map(|key| u64::from(value(unsafe { get(b, pointer(key)) }))).sum()),
        ("Rust, owned", &|| {
            draws.iter().map(|key| owned_map.get(key).map_or(0, |value| u64::from(value[0]))).sum()
        }),
        ("C, owned", &|| {
            // SAFETY: as above.
            draws.iter().map(|key| u64::from(value(unsafe { owned_get(o, pointer(key)) }))).sum()
        }),
        ("Rust, shared, batches", &|| {
            let mut sum = 0;
            for keys in draws.chunks_exact(BATCH) {
                let keys: [&Key; BATCH] = std::array::from_fn(|i| &keys[i]);
                let mut values = [None; BATCH];
                reader.get_many(&keys, &mut values);
                sum += values.iter().flatten().map(|value| u64::from(value[0])).sum::<u64>();
            }
            sum
        }),
        ("C, batches", &|| {
            let mut sum = 0;
            for keys in draws.chunks_exact(BATCH) {
                let keys: [*mut c_void; BATCH] = std::array::from_fn(|i| pointer(&keys[i]));
                let mut entries = [std::ptr::null_mut(); BATCH];
                // SAFETY: as above.
                unsafe {
                    lookaside_get_many(b, keys.as_ptr(), BATCH, entries.as_mut_ptr(), std::ptr::null_mut())
                };
                sum += entries.iter().map(|&entry| u64::from(value(entry))).sum::<u64>();
            }
            sum
        }),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    for turn in 0..TURNS {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let began = Instant::now();
            let sum = way();
            if turn > 0 {
                times.push(began.elapsed().as_nanos() as f64 / lookups as f64);
            }
            assert!(sum > lookups as u64 * 7 * 9 / 10, "only {sum} of {}: not hits", lookups * 7);
        }
    }
    let medians = times.iter_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        [times[times.len() / 2], times[0]]
    });
    let medians: Vec<[f64; 2]> = medians.collect();
    for (way, pair) in medians.chunks(2).enumerate() {
        let [(rust, _), (c, _)] = [ways[2 * way], ways[2 * way + 1]];
        let [[rust_median, rust_best], [c_median, c_best]] = [pair[0], pair[1]];
        println!(
            "{rust:22} {rust_median:6.1} ({rust_best:.1})   {c:12} {c_median:6.1} ({c_best:.1})   \
             costs {:+.1} % ({:+.1} %)",
            (c_median / rust_median - 1.0) * 100.0,
            (c_best / rust_best - 1.0) * 100.0,
        );
    }
    // SAFETY: nothing uses them any more.
    unsafe { (SLB_destroy(b), lookaside_owned_destroy(o)) };
}
