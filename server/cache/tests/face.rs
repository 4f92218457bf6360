//! The cache as a program uses it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lookaside_cache::{Cache, CreateError, MAX_KEY_LEN, StoreError, Swapped};

const MIB: usize = 1 << 20;

fn cache() -> Cache {
    Cache::with_limit(4 * MIB).unwrap()
}

#[test]
fn each_verb_does_what_its_name_says() {
    let cache = cache();
    assert_eq!(cache.get(b"a"), None);
    assert!(!cache.replace(b"a", b"0", None).unwrap());
    assert!(!cache.append(b"a", b"0").unwrap() && !cache.prepend(b"a", b"0").unwrap());
    assert!(cache.add(b"a", b"1", None).unwrap());
    assert!(!cache.add(b"a", b"2", None).unwrap());
    assert!(cache.append(b"a", b"2").unwrap() && cache.prepend(b"a", b"0").unwrap());
    assert_eq!(cache.get(b"a"), Some(b"012".to_vec()));
    assert!(cache.replace(b"a", b"3", None).unwrap());
    cache.set(b"b", b"4", None).unwrap();
    assert_eq!(cache.get_many(&[b"a", b"c", b"b"]), [Some(b"3".to_vec()), None, Some(b"4".to_vec())]);
    assert!(cache.contains_key(b"a") && !cache.contains_key(b"c"));
    let (value, version) = cache.get_with_version(b"a").unwrap();
    assert_eq!(value, b"3");
    assert_eq!(cache.compare_and_swap(b"a", version, b"5", None), Ok(Swapped::Stored));
    assert_eq!(cache.compare_and_swap(b"a", version, b"6", None), Ok(Swapped::Changed));
    assert_eq!(cache.compare_and_swap(b"c", version, b"6", None), Ok(Swapped::Missing));
    assert!(cache.update(b"a", |old| Some([old, b"!"].concat())).unwrap());
    assert!(!cache.update(b"a", |_| None).unwrap() && !cache.update(b"c", |_| Some(Vec::new())).unwrap());
    assert_eq!(cache.get(b"a"), Some(b"5!".to_vec()));
    assert_eq!(cache.len(), 2);
    assert!(cache.delete(b"a") && !cache.delete(b"a"));
    cache.clear();
    assert_eq!(cache.get(b"b"), None);
    cache.set(b"b", b"7", None).unwrap();
    let large: Vec<u8> = (0..200_000).map(|at| at as u8).collect();
    cache.set(b"large", &large, None).unwrap();
    assert!(cache.update(b"large", |old| Some(old.to_vec())).unwrap());
    let mut buffer = b"before".to_vec();
    assert!(cache.get_into(b"large", &mut buffer) && !cache.get_into(b"none", &mut buffer));
    assert!(buffer.starts_with(b"before") && buffer[6..] == large);
}

#[test]
fn what_cannot_be_a_key_is_refused_and_never_found() {
    let cache = cache();
    for key in [Vec::new(), vec![b'k'; MAX_KEY_LEN + 1]] {
        assert_eq!(cache.set(&key, b"x", None), Err(StoreError::BadKey));
        assert_eq!(cache.append(&key, b"x"), Err(StoreError::BadKey));
        assert_eq!(cache.touch(&key, None), Ok(false));
        assert_eq!(cache.update(&key, |old| Some(old.to_vec())), Ok(false));
        assert!(cache.get(&key).is_none() && !cache.delete(&key) && !cache.contains_key(&key));
    }
    let longest = [b'k'; MAX_KEY_LEN];
    cache.set(&longest, b"x", None).unwrap();
    assert_eq!(cache.get(&longest), Some(b"x".to_vec()));
    assert_eq!(Cache::with_limit(1000).err(), Some(CreateError::LimitTooSmall { limit: 1000 }));
}

/// Time goes on by itself, and what has expired gives its memory back with nobody asking for it.
#[test]
fn values_live_as_long_as_they_were_given_and_little_longer() {
    let cache = cache();
    let time = Duration::from_millis(1200);
    let begun = Instant::now();
    cache.set(b"short", b"x", time).unwrap();
    cache.set(b"long", b"x", Duration::from_secs(1 << 40)).unwrap();
    cache.set(b"ever", b"x", None).unwrap();
    // Whoever loses the core between the two for that long finds nothing to touch.
    loop {
        let stored = Instant::now();
        cache.set(b"touched", b"x", time).unwrap();
        if cache.touch(b"touched", Duration::from_secs(3600)).unwrap() {
            break;
        }
        assert!(stored.elapsed() >= time, "it was gone after {:?}", stored.elapsed());
    }
    assert!(cache.touch(b"ever", None).unwrap() && !cache.touch(b"none", None).unwrap());
    while cache.contains_key(b"short") {
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not expire");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(begun.elapsed() >= time, "it was gone after {:?}", begun.elapsed());
    for key in [b"touched".as_slice(), b"long", b"ever"] {
        assert!(cache.contains_key(key));
    }
    while cache.len() > 3 {
        assert!(begun.elapsed() < Duration::from_secs(60), "its memory does not come back");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn all_threads_see_the_same_and_a_closure_may_use_the_cache() {
    let cache = cache();
    cache.set(b"n", b"0", None).unwrap();
    let calls = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4u8 {
            let (cache, calls) = (cache.clone(), &calls);
            scope.spawn(move || {
                for _ in 0..500 {
                    let increment = |old: &[u8]| {
                        calls.fetch_add(1, Ordering::Relaxed);
                        cache.set(&[thread], old, None).unwrap();
                        let n: u64 = std::str::from_utf8(old).unwrap().parse().unwrap();
                        Some((n + 1).to_string().into_bytes())
                    };
                    assert!(cache.update(b"n", increment).unwrap());
                }
            });
        }
    });
    assert_eq!(cache.get(b"n"), Some(b"2000".to_vec()));
    assert!(calls.load(Ordering::Relaxed) >= 2000);
    assert!((0..4u8).all(|thread| cache.contains_key(&[thread])));
}

#[test]
fn a_full_cache_evicts_unless_it_was_told_not_to() {
    let store = |cache: &Cache| (0..9000u32).try_for_each(|n| cache.set(&n.to_be_bytes(), &[1; 1000], None));
    let evicting = cache();
    assert_eq!(store(&evicting), Ok(()));
    assert!(evicting.contains_key(&8999u32.to_be_bytes()) && evicting.len() < 4500);
    let keeping = Cache::builder(4 * MIB).evict(false).lookaside(1 << 16).build().unwrap();
    assert_eq!(store(&keeping), Err(StoreError::OutOfMemory));
    assert!(keeping.contains_key(&0u32.to_be_bytes()));
    let small = Cache::builder(4 * MIB).largest_item(100).build().unwrap();
    assert_eq!(small.set(b"key", &[0; 100], None), Err(StoreError::TooLarge));
}

/// A value in a thread-local that uses the cache when its thread ends, after what the cache keeps for the thread.
#[test]
fn a_thread_that_is_ending_uses_the_cache() {
    struct Last(Cache);
    impl Drop for Last {
        fn drop(&mut self) {
            let Last(cache) = self;
            cache.set(b"last", b"words", None).unwrap();
            assert!(cache.update(b"last", |old| (cache.get(b"last")? == old).then(|| old.to_vec())).unwrap());
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let cache = cache();
    for _ in 0..3 {
        cache.delete(b"last");
        let last = Last(cache.clone());
        let ending = thread::spawn(move || {
            // Made first, it ends last.
            LAST.with(|kept| kept.replace(Some(last)));
            LAST.with(|kept| kept.borrow().as_ref().map(|last| last.0.set(b"first", b"words", None)))
        });
        assert_eq!(ending.join().unwrap(), Some(Ok(())));
        assert_eq!(cache.get(b"last"), Some(b"words".to_vec()));
    }
}

#[test]
fn a_closure_that_panics_leaves_a_cache_that_answers() {
    let cache = cache();
    cache.set(b"key", b"value", None).unwrap();
    assert!(std::panic::catch_unwind(|| cache.update(b"key", |_| panic!("on purpose"))).is_err());
    assert_eq!(cache.get(b"key"), Some(b"value".to_vec()));
    assert!(cache.update(b"key", |old| Some(old.to_vec())).unwrap());
}
