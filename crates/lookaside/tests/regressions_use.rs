//! What went wrong once where programs were written on the library, and what must happen instead.

use std::cell::Cell;
use std::cmp::Ordering as Order;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use lookaside::index::{Find, Scan, Store};
use lookaside::{Config, Found, Handle, Hashing, IntoHashing, Map, OwnedMap, Pin, RwLock, SharedBuffer};

/// Hashes integers to themselves.
#[derive(Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, _: &[u8]) {
        unreachable!("it is given integers only")
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByThemselves = BuildHasherDefault<Itself>;

/// Runs this on a thread of its own, so that one that waits for itself fails the test rather than hangs it.
fn in_time(run: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        run();
        tell.send(()).expect("somebody listens");
    });
    told.recv_timeout(Duration::from_secs(60)).expect("a thread waits for itself, or the test failed there");
}

/// The message of a call that is to panic.
fn panics(call: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("it should have panicked");
    let message = panic.downcast_ref::<&str>().map(ToString::to_string);
    message.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a message")
}

/// A hasher whose hashes are distinct, and nothing else: the table took its bits as they were, which had all keys in
/// one bucket with one tag, and of 10,000 lookups of 100 hot keys none was a hit. Nothing said so.
#[test]
fn integers_that_are_their_own_hashes_are_found_in_the_table() {
    fn check(config: &Config, step: u64) {
        const KEYS: u64 = 100;
        const ROUNDS: u64 = 100;
        // The first round or two of a key find it in the index only, and a few have no room in their bucket.
        let enough = KEYS * ROUNDS * 9 / 10;
        let what = format!("{config:?}, multiples of {step}");

        let buffer = SharedBuffer::for_indexes(config, 4).unwrap();
        buffer.monitor(false);
        let map = Map::sharing(RwLock::new(BTreeSet::new()), &buffer, ByThemselves::default()).unwrap();
        let mut owned =
            OwnedMap::with_index_and_hasher(BTreeSet::new(), config, ByThemselves::default()).unwrap();
        owned.monitor(false);
        for key in 0..KEYS {
            map.insert(key * step, key);
            owned.insert(key * step, key);
        }
        let reader = map.pin();
        for _ in 0..ROUNDS {
            for key in 0..KEYS {
                assert_eq!(reader.get(&(key * step)), Some(&key));
                assert_eq!(owned.get(&(key * step)), Some(&key));
            }
        }
        drop(reader);
        let counts = [buffer.counts().hits, owned.counts().hits];
        assert!(counts.iter().all(|&hits| hits >= enough), "{what}: {counts:?} hits of {}", KEYS * ROUNDS);
    }
    for step in [1, 64, 1 << 32, 1 << 50] {
        check(&Config::with_size(1 << 16), step);
    }
}

/// Whoever says that his hashes avalanche is taken at his word: nothing is mixed twice.
#[test]
fn a_hasher_that_is_said_to_avalanche_is_not_mixed() {
    let avalanching = Hashing::avalanching(ByThemselves::default());
    let mut map =
        OwnedMap::with_index_and_hasher(BTreeSet::new(), &Config::with_size(1 << 16), avalanching).unwrap();
    map.monitor(false);
    for key in 0..100u64 {
        map.insert(key, key);
    }
    for key in (0..100).cycle().take(10_000) {
        assert_eq!(map.get(&key), Some(&key));
    }
    // The highest bits of all of these are those of one tag, and the table has one bucket for them.
    assert!(map.counts().hits < 1000, "{:?}", map.counts());
}

/// `{:?}` of a map printed its hasher's seed, by which keys can be chosen that crowd one bucket.
#[test]
fn a_map_that_is_printed_shows_its_entries_as_others_do_and_no_seed() {
    #[derive(Debug, Clone, Default)]
    struct Seeded {
        _seed: &'static str,
    }

    impl BuildHasher for Seeded {
        type Hasher = std::hash::DefaultHasher;

        fn build_hasher(&self) -> Self::Hasher {
            std::hash::DefaultHasher::new()
        }
    }

    let (config, seeded) = (Config::with_size(1 << 16), Seeded { _seed: "a-seed" });
    let buffer: SharedBuffer = SharedBuffer::for_indexes(&config, 1).unwrap();
    let map = Map::sharing(RwLock::new(BTreeSet::new()), &buffer, seeded.clone()).unwrap();
    let mut owned = OwnedMap::with_index_and_hasher(BTreeSet::new(), &config, seeded.clone()).unwrap();
    map.insert("a-key".to_string(), "a-value");
    owned.insert("a-key".to_string(), "a-value");
    let reader = map.pin();
    assert_eq!((reader.get("a-key"), owned.get("a-key")), (Some(&"a-value"), Some(&"a-value")));
    let printed = format!("{map:?} {map:#?} {reader:?} {owned:?} {buffer:?} {:?}", seeded.into_hashing());
    assert!(!printed.contains("a-seed"), "{printed}");
    for shown in ["capacity", "hits"] {
        assert!(printed.contains(shown), "no {shown} in {printed}");
    }
    let entries = BTreeMap::from([("a-key", "a-value")]);
    let shown = [format!("{map:?}"), format!("{reader:?}"), format!("{owned:?}")];
    assert_eq!(shown, [(); 3].map(|()| format!("{entries:?}")));
    // Seeds of the default hasher are random: printed, they would differ.
    let [one, other] = [(); 2].map(|()| {
        let state = lookaside::RandomState::default();
        format!("{state:?} {:?}", state.build_hasher())
    });
    assert_eq!(one, other);
}

/// Taking entries out while walking over them, as one writes `retain` by hand: the walk has locked the index, the
/// removal waited for it, and both were one thread.
#[test]
fn a_removal_while_the_index_is_walked_panics_instead_of_waiting_for_itself() {
    in_time(|| {
        let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(1 << 16)).unwrap();
        for key in 0..100u64 {
            map.insert(key, vec![key]);
        }
        let reader = map.pin();
        let walk = |change: &dyn Fn(u64)| {
            reader.scan(Bound::Unbounded, Bound::Unbounded::<&u64>, |&key, _| {
                change(key);
                ControlFlow::Continue(())
            });
        };
        for message in [
            panics(|| walk(&|key| drop(reader.remove(&key)))),
            panics(|| walk(&|key| drop(map.remove(&key)))),
            panics(|| walk(&|key| drop(map.insert(key + 1000, vec![])))),
        ] {
            assert!(message.contains("collect the keys first"), "{message}");
        }
        // Nothing is locked any more, nothing is lost, and as the message says it works.
        assert_eq!(map.len(), 100);
        let mut odd = Vec::new();
        reader.scan(Bound::Unbounded, Bound::Unbounded::<&u64>, |&key, _| {
            odd.extend((key % 2 == 1).then_some(key));
            ControlFlow::Continue(())
        });
        odd.iter().for_each(|key| assert_eq!(reader.remove(key).as_deref(), Some(&vec![*key])));
        assert_eq!(map.len(), 50);
    });
}

/// A tree under a lock of which the test has a share.
#[derive(Clone, Default)]
struct Spied(Arc<RwLock<BTreeSet<Handle<u64, u64>>>>);

impl Find<u64, u64, u64> for Spied {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
        self.0.find(key, pin)
    }
}

impl lookaside::index::SharedStore<u64, u64> for Spied {
    fn replace(&self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
        lookaside::index::SharedStore::replace(&*self.0, handle)
    }

    fn len(&self) -> usize {
        Store::len(&*self.0.read())
    }
}

impl Scan<u64, u64, u64> for Spied {
    fn scan<'p>(
        &self,
        from: Bound<&u64>,
        to: Bound<&u64>,
        pin: &Pin<'p>,
        visit: &mut dyn FnMut(Found<'p, u64, u64>) -> ControlFlow<()>,
    ) {
        self.0.scan(from, to, pin, visit);
    }
}

/// Lookups while the index is walked were fine until another thread wanted to write: the lookup queued behind the
/// writer, who waited for the walk, which waited for the lookup.
#[test]
fn a_lookup_while_the_index_is_walked_does_not_wait_for_a_writer_who_waits_for_the_walk() {
    in_time(|| {
        let spied = Spied::default();
        let map = Map::with_index(spied.clone(), &Config::with_size(1 << 16)).unwrap();
        (0..10).for_each(|key| drop(map.insert(key, key)));
        let reader = map.pin();
        let mut found = 0;
        std::thread::scope(|scope| {
            reader.scan(Bound::Unbounded, Bound::Unbounded, |&key, _| {
                if key == 0 {
                    scope.spawn(|| map.insert(100, 100));
                    // Until the writer waits: from then on nobody else is let in.
                    while spied.0.try_read().is_some() {
                        std::thread::yield_now();
                    }
                }
                found += reader.get(&key).copied().unwrap_or_default();
                ControlFlow::Continue(())
            });
        });
        assert_eq!((found, map.len()), (45, 11));
    });
}

thread_local! {
    /// What a key's comparison does besides.
    static ASIDE: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// A key whose comparisons run [`ASIDE`].
#[derive(Debug, Clone, Copy)]
struct Meddling(u64);

impl Meddling {
    fn meddle() {
        // Once, and not while it does.
        if let Some(aside) = ASIDE.take() {
            aside();
        }
    }
}

impl Hash for Meddling {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl PartialEq for Meddling {
    fn eq(&self, other: &Self) -> bool {
        Meddling::meddle();
        self.0 == other.0
    }
}

impl Eq for Meddling {}

impl PartialOrd for Meddling {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Meddling {
    fn cmp(&self, other: &Self) -> Order {
        Meddling::meddle();
        self.0.cmp(&other.0)
    }
}

type Meddled = Map<Meddling, u64, RwLock<BTreeSet<Handle<Meddling, u64>>>>;

static MEDDLED: OnceLock<Meddled> = OnceLock::new();

fn meddled() -> &'static Meddled {
    MEDDLED
        .get_or_init(|| Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(1 << 16)).unwrap())
}

/// Keys are compared while a stripe is held, or the index is locked: comparisons that used the map made their thread
/// wait for itself.
#[test]
fn a_comparison_of_keys_that_uses_the_map_panics_instead_of_waiting_for_itself() {
    in_time(|| {
        let map = meddled();
        map.buffer().monitor(false);
        (0..10).for_each(|key| drop(map.insert(Meddling(key), key)));
        // Into the table.
        (0..10).for_each(|key| assert_eq!(map.pin().get(&Meddling(key)), Some(&key)));

        let during = |aside: fn(), call: &dyn Fn()| {
            let message = panics(|| {
                ASIDE.set(Some(aside));
                call();
            });
            assert!(message.starts_with("a map was"), "{message}");
            assert!(ASIDE.take().is_none(), "it was run");
            assert!((0..10).all(|key| map.pin().get(&Meddling(key)) == Some(&key)), "after: {message}");
        };
        // Under the stripe: of a key that the table has.
        during(|| drop(meddled().insert(Meddling(3), 3)), &|| drop(map.insert(Meddling(3), 3)));
        // Under the index's lock: of one that it has not.
        during(|| drop(meddled().insert(Meddling(11), 11)), &|| drop(map.insert(Meddling(10), 10)));
        during(|| assert_eq!(meddled().pin().get(&Meddling(12)), None), &|| {
            drop(map.insert(Meddling(10), 10))
        });
        // While it is searched.
        during(|| drop(meddled().insert(Meddling(13), 13)), &|| {
            assert_eq!(map.pin().get(&Meddling(14)), None)
        });
        // A search in a search is none of that.
        ASIDE.set(Some(|| assert_eq!(meddled().pin().get(&Meddling(15)), None)));
        assert_eq!(map.pin().get(&Meddling(16)), None);
        assert!(ASIDE.take().is_none(), "it was run");
    });
}
