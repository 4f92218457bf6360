//! What the code of a map's user does while the map runs it: comparisons and hashes that lie, panic and use the map;
//! closures and destructors that do.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lookaside_cuckoo::{HashMap, Operation};

/// What comparisons and hashes say may be wrong at any time: answers are wrong then, and nothing else is.
#[test]
fn lies_harm_nobody() {
    use std::sync::atomic::AtomicU64;
    static RANDOM: AtomicU64 = AtomicU64::new(1);
    fn random() -> u64 {
        let next = RANDOM.load(Ordering::Relaxed).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        RANDOM.store(next, Ordering::Relaxed);
        next >> 33
    }
    #[derive(Debug)]
    struct Liar(#[expect(dead_code)] Box<u64>);
    impl Hash for Liar {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (random() % 16).hash(state);
        }
    }
    impl PartialEq for Liar {
        fn eq(&self, _: &Liar) -> bool {
            random().is_multiple_of(4)
        }
    }
    impl Eq for Liar {}
    let map = HashMap::new();
    for number in 0..5000 {
        let mut pinned = map.pin();
        match random() % 6 {
            0 | 1 => _ = pinned.insert(Liar(Box::new(number)), Box::new(number)),
            2 => _ = pinned.remove(&Liar(Box::new(number))),
            3 => _ = pinned.update(Liar(Box::new(number)), |old| Box::new(**old + 1)),
            4 => _ = pinned.try_insert(Liar(Box::new(number)), Box::new(number)),
            _ => _ = pinned.remove_if(&Liar(Box::new(number)), |_, value| **value % 2 == 0),
        }
        pinned.refresh();
    }
    assert_eq!(map.pin().iter().count(), map.len());
    assert!(map.pin().values().all(|value| **value < 10_000));
    map.pin().clear();
    assert_eq!(map.pin().iter().count(), 0);
}

/// A key whose comparison and hash panic when they are told to.
#[derive(Debug, Clone)]
struct Touchy(u64, Arc<AtomicBool>);

impl Touchy {
    fn touch(&self) {
        assert!(!self.1.swap(false, Ordering::Relaxed), "the caller's own failure");
    }
}

impl PartialEq for Touchy {
    fn eq(&self, other: &Touchy) -> bool {
        self.touch();
        self.0 == other.0
    }
}

impl Eq for Touchy {}

impl Hash for Touchy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.touch();
        self.0.hash(state);
    }
}

#[test]
fn a_comparison_or_a_hash_that_panics_loses_nothing_and_locks_nothing() {
    let armed = Arc::new(AtomicBool::new(false));
    let map = HashMap::new();
    let value = Arc::new(());
    let mut panics = 0;
    for key in 0..3000 {
        let key = Touchy(key, armed.clone());
        // The first hash is the caller's; what follows, of the keys that are met, is not.
        let pinned = map.pin();
        armed.store(false, Ordering::Relaxed);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pinned.compute(key.clone(), |old| {
                armed.store(true, Ordering::Relaxed);
                assert!(old.is_none());
                Operation::<_, ()>::Insert(value.clone())
            });
        }));
        armed.store(false, Ordering::Relaxed);
        panics += usize::from(outcome.is_err());
        pinned.insert(key, value.clone());
    }
    assert!(panics > 100, "{panics} panics prove little");
    assert_eq!((map.len(), map.pin().iter().count()), (3000, 3000));
    map.collect();
    assert_eq!(Arc::strong_count(&value), 3001, "values were lost, or kept");
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Always the same key; its destructor panics if it is told to.
struct Parting(bool);

impl PartialEq for Parting {
    fn eq(&self, _: &Parting) -> bool {
        true
    }
}

impl Eq for Parting {}

impl Hash for Parting {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Drop for Parting {
    fn drop(&mut self) {
        assert!(!self.0, "the caller's own failure");
    }
}

#[test]
fn a_value_that_was_not_put_in_is_dropped_although_its_key_panics() {
    let value = Arc::new(());
    let map = HashMap::new();
    map.pin().insert(Parting(false), value.clone());
    let fails =
        |work: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(work)).is_err(), "the key has panicked");
    fails(&|| _ = map.pin().try_insert(Parting(true), value.clone()));
    fails(&|| _ = map.pin().compute(Parting(true), |_| Operation::Abort(value.clone())));
    drop(map);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn a_closure_that_panics_changes_nothing() {
    let map = HashMap::from([(1, "one".to_owned())]);
    let pinned = map.pin();
    let fails = |work: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(work)).is_err());
    fails(&|| {
        let _ = pinned.get_or_insert_with(2, || panic!("mine"));
    });
    fails(&|| {
        let _ = pinned.update(1, |_| panic!("mine"));
    });
    fails(&|| {
        let _ = pinned.update_or_insert(1, |_| panic!("mine"), String::new());
    });
    fails(&|| {
        let _ = pinned.update_or_insert_with(2, String::clone, || panic!("mine"));
    });
    fails(&|| {
        let _ = pinned.compute::<()>(1, |_| panic!("mine"));
    });
    fails(&|| {
        let _ = pinned.compute::<()>(2, |_| panic!("mine"));
    });
    fails(&|| {
        let _ = pinned.remove_if(&1, |_, _| panic!("mine"));
    });
    fails(&|| pinned.retain(|_, _| panic!("mine")));
    fails(&|| {
        let _: Option<()> = map.get_with(&1, |_| panic!("mine"));
    });
    assert_eq!((map.len(), map.get_cloned(&1)), (1, Some("one".to_owned())));
    // And nothing is locked.
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(map.pin().get_or_insert_with(2, || "two".to_owned()), "two"));
    });
    assert_eq!(pinned.insert(1, String::new()).map(String::as_str), Some("one"));
}

/// Closures use the map as they like.
#[test]
fn closures_may_use_the_map() {
    fn fibonacci(map: &HashMap<u64, u64>, n: u64) -> u64 {
        *map.pin().get_or_insert_with(n, || match n {
            0 | 1 => n,
            _ => fibonacci(map, n - 1) + fibonacci(map, n - 2),
        })
    }
    let map = HashMap::new();
    assert_eq!(fibonacci(&map, 90), 2_880_067_194_370_816_120);
    let pinned = map.pin();
    // The same key again: what is put in first counts.
    let again = pinned.get_or_insert_with(1000, || 1 + pinned.get_or_insert_with(1000, || 5));
    assert_eq!(again, &5);
    // An update that is overtaken by itself.
    let mut runs = 0;
    let updated = pinned.update(1000, |old| {
        runs += 1;
        if runs == 1 {
            pinned.insert(1000, 50);
        }
        old + 1
    });
    assert_eq!((updated, runs), (Some(&51), 2));
    let mut asked = 0;
    let removed = pinned.remove_if(&1000, |_, _| {
        asked += 1;
        if asked == 1 {
            pinned.remove(&1000);
        }
        true
    });
    assert_eq!((removed, asked), (Ok(None), 1));
    pinned.retain(|key, _| {
        pinned.insert(key + 10_000, 0);
        key % 2 == 0
    });
    assert!(pinned.contains_key(&90) && !pinned.contains_key(&91));
}

/// A comparison that uses the map it belongs to would wait for itself: it is told.
#[test]
fn a_comparison_that_uses_its_map_panics_and_does_not_hang() {
    use std::cell::RefCell;
    thread_local! {
        static MAP: RefCell<Option<Arc<HashMap<Meddler, u32>>>> = const { RefCell::new(None) };
    }
    #[derive(Debug, Clone, Copy)]
    struct Meddler(u32);
    impl Hash for Meddler {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl PartialEq for Meddler {
        fn eq(&self, other: &Meddler) -> bool {
            let map = MAP.take();
            if let Some(map) = map {
                map.pin().remove(&Meddler(self.0));
            }
            self.0 == other.0
        }
    }
    impl Eq for Meddler {}
    let map = Arc::new(HashMap::new());
    map.pin().insert(Meddler(1), 1);
    MAP.set(Some(map.clone()));
    let outcome = catch_unwind(AssertUnwindSafe(|| map.pin().insert(Meddler(1), 2).copied()));
    MAP.set(None);
    let message =
        *outcome.expect_err("it would have waited for itself").downcast::<String>().unwrap_or_default();
    assert!(message.is_empty() || message.contains("must not"), "{message}");
    // A lookup takes no lock, and so does one from within.
    assert_eq!(map.get_cloned(&Meddler(1)), Some(1));
}

/// Destructors that use the map, and that panic.
#[test]
fn destructors_may_use_the_map() {
    struct Successor(u64, std::sync::Weak<HashMap<u64, Successor>>);
    impl Drop for Successor {
        fn drop(&mut self) {
            if let Some(map) = self.1.upgrade()
                && self.0 < 10_000
            {
                map.pin().remove(&(self.0 + 1));
            }
            assert!(self.0 % 1000 != 999 || std::thread::panicking(), "a destructor's own failure");
        }
    }
    let map = Arc::new(HashMap::new());
    for key in 0..10_000 {
        map.pin().insert(key, Successor(key, Arc::downgrade(&map)));
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    map.pin().remove(&0);
    map.collect();
    std::panic::set_hook(hook);
    assert_eq!(map.len(), 0, "each destructor removes the next");
}
