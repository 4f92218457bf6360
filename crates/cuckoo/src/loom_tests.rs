//! The protocol of [`crate::version`] under the model checker: every interleaving and every reordering that the memory
//! model allows, on buckets of one or two slots, where the rare cases are the only ones.
//!
//! Run by `ci/safety`: `RUSTFLAGS="--cfg loom" cargo test -p lookaside-cuckoo --lib --release`.

mod growth;
mod marks;
mod once;
mod walks;

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;

use crate::config::Search;
use crate::geometry::Geometry;
use crate::growth::Splitter;
use crate::layout::{Inline, Layout, Striped};
use crate::slot::{Location, Tag};
use crate::table::Table;
use crate::{Config, Growth, Hashes, Insertion, Linear, Upsertion};

/// Whether the entry at a location is this key's: the location says so. There are two for a key, so that it can be
/// replaced.
fn holds(location: Location, key: usize) -> bool {
    location.get() as usize / 2 == key
}

/// The first or second location of a key.
fn location(key: usize, which: usize) -> Location {
    Location::new((2 * key + which) as u64).unwrap()
}

/// The `nth` hash whose candidates among `open` buckets are these, in this order; with the bit of its first hash that
/// the next doubling looks at.
fn hash_for(open: usize, bits: u32, candidates: (usize, usize), next_bit: u64, nth: usize) -> u64 {
    let geometry = Geometry::new(open);
    (0u64..1 << 16)
        .map(|seed| (seed % 64) | (seed / 64) << 54)
        .filter(|&hash| geometry.candidates(hash, Tag::of(hash, bits)) == candidates)
        .filter(|&hash| (hash as usize & open.next_power_of_two() != 0) == (next_bit != 0))
        .nth(nth)
        .expect("some tag mixes to these buckets")
}

struct World<L: Layout> {
    table: Table<L>,
    /// What the test chose for each key.
    hashes: Vec<u64>,
}

impl<L: Layout> World<L> {
    fn new(buckets: usize, growth: Growth, hashes: Vec<u64>) -> Self {
        Self::with(buckets, growth, hashes, |config| config)
    }

    /// With a stash.
    fn stashing(buckets: usize, growth: Growth, hashes: Vec<u64>) -> Self {
        Self::with(buckets, growth, hashes, |config| Config { stashes: true, ..config })
    }

    /// As a map's.
    fn of_a_map(buckets: usize, growth: Growth, hashes: Vec<u64>) -> Self {
        Self::with(buckets, growth, hashes, Config::for_a_map)
    }

    fn with(buckets: usize, growth: Growth, hashes: Vec<u64>, choose: impl FnOnce(Config) -> Config) -> Self {
        // The models choose the bits.
        let (search, hashing) = (Search::BreadthFirst, Hashes::Avalanching);
        let config = Config { search, growth, hashes: hashing, stashes: false, prefers_first: false };
        World { table: Table::with_buckets(buckets, &choose(config)).unwrap(), hashes }
    }

    fn insert(&self, key: usize) -> Result<Insertion, crate::TooFull> {
        self.insert_at(key, location(key, 0))
    }

    fn insert_at(&self, key: usize, at: Location) -> Result<Insertion, crate::TooFull> {
        self.table.insert_or_get(self.hashes[key], at, |at| holds(at, key), self.hasher())
    }

    fn hasher(&self) -> impl Fn(Location) -> u64 {
        |at| self.hashes[at.get() as usize / 2]
    }

    fn get(&self, key: usize) -> Option<Location> {
        self.table.find(self.hashes[key], |at| holds(at, key))
    }

    /// As a map looks.
    fn get_first(&self, key: usize) -> Option<Location> {
        self.table.find_first(self.hashes[key], |at| holds(at, key))
    }

    /// Merges the last bucket.
    fn merge(&self) -> bool {
        let splitter = Splitter::become_one(&self.table.splitting);
        self.table.merge_last(&splitter)
    }

    fn count(&self, key: usize) -> usize {
        self.table.iter().filter(|&at| holds(at, key)).count()
    }
}

/// Up to `preemptions` times a thread is interrupted where it need not be: loom's own advice for larger models. It is
/// explored whole, which takes a minute at most, if nobody asks for less.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    check_for(longest_asked(), preemptions, model);
}

/// How long each model is to be explored at most, if somebody says so.
fn longest_asked() -> Option<Duration> {
    let asked = std::env::var("LOOKASIDE_LOOM_SECONDS").ok()?;
    Some(Duration::from_secs(asked.parse().expect("LOOKASIDE_LOOM_SECONDS is a number")))
}

/// How long each model is explored that is too large to be explored whole.
fn seconds_of_a_large_model() -> Duration {
    longest_asked().unwrap_or(Duration::from_secs(20))
}

/// As much of it as can be explored in this time.
fn check_for(longest: Option<Duration>, preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_duration = longest;
    if longest.is_some() {
        // The clock is looked at as often as a checkpoint would be written, if a file for it were named. By itself that
        // is once in 20,000 executions, which of a large model take longer than it may.
        builder.checkpoint_interval = 1000;
    }
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let explored = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = explored.clone();
    builder.check(move || {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    // A model that explores next to nothing proves nothing: see the crate `atomics` for how that can happen.
    let explored = explored.load(std::sync::atomic::Ordering::Relaxed);
    println!("{explored} executions");
    assert!(explored >= 50, "only {explored} executions explored");
}

/// A model for each of two keys that somebody looks for, each with up to three preemptions.
fn check_for_each(keys: [usize; 2], model: impl Fn(usize) + Clone + Sync + Send + 'static) {
    for key in keys {
        let model = model.clone();
        check(3, move || model(key));
    }
}

/// Another thread's work on the world.
fn beside<L: Layout + 'static, T: 'static>(
    world: &Arc<World<L>>,
    work: impl FnOnce(&World<L>) -> T + 'static,
) -> thread::JoinHandle<T> {
    let world = world.clone();
    thread::spawn(move || work(&world))
}

fn grows_to(limit: usize, target_load: f64) -> Growth {
    Growth::Linear(Linear::up_to(limit).with_target_load(target_load))
}

/// Key 0 sits in bucket 0 with key 1 in bucket 1; key 2, whose buckets are these two, displaces one of them. Whoever
/// looks for either finds it. Each of the two is asked for in a model of its own: one after the other in one model
/// explores the product of both, and shows nothing more.
fn displacement_against_lookup<L: Layout>() {
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (0, 2), 0, 0),
        hash_for(4, bits, (1, 3), 0, 0),
        hash_for(4, bits, (0, 1), 0, 0),
    ];
    check_for_each([0, 1], move |asked| {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let writer = beside(&world, |world| {
            assert!(matches!(world.insert(2), Ok(Insertion::Inserted(work)) if work.displaced == 1))
        });
        assert_eq!(world.get(asked), Some(location(asked, 0)), "missed while it may be moving");
        writer.join().unwrap();
        for key in 0..3 {
            assert_eq!((world.get(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

#[test]
fn displacement_against_lookup_inline() {
    displacement_against_lookup::<Inline<1>>();
}

#[test]
fn displacement_against_lookup_striped() {
    displacement_against_lookup::<Striped<1, 8>>();
}

/// An entry moves from the bucket that a reader looks into second to the one that it has looked into already.
fn displacement_behind_the_reader<L: Layout>() {
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (2, 0), 0, 0),
        hash_for(4, bits, (2, 2), 0, 0),
        hash_for(4, bits, (0, 0), 0, 0),
    ];
    check(3, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        // Key 1 keeps bucket 2 until key 0 has settled in bucket 0.
        world.insert(1).unwrap();
        world.insert(0).unwrap();
        assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
        let writer = beside(&world, |world| {
            assert!(matches!(world.insert(2), Ok(Insertion::Inserted(work)) if work.displaced == 1))
        });
        assert_eq!(world.get(0), Some(location(0, 0)), "missed while it moved behind the reader's back");
        writer.join().unwrap();
    });
}

#[test]
fn displacement_behind_the_reader_inline() {
    displacement_behind_the_reader::<Inline<1>>();
}

#[test]
fn displacement_behind_the_reader_striped() {
    displacement_behind_the_reader::<Striped<1, 8>>();
}

/// The same out of a bucket that is marked already: then nothing but the count says that an entry has left.
#[test]
fn displacement_out_of_a_marked_bucket_behind_the_reader() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (2, 0), 0, 0),
        hash_for(4, bits, (2, 2), 0, 0),
        hash_for(4, bits, (0, 0), 0, 0),
        hash_for(4, bits, (0, 1), 0, 0),
    ];
    check(2, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        // Key 1 keeps bucket 2 until key 0 has settled in bucket 0, which key 3 marks: it goes to its other one.
        for key in [1, 0, 3] {
            world.insert(key).unwrap();
        }
        assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
        let writer = beside(&world, |world| {
            assert!(matches!(world.insert(2), Ok(Insertion::Inserted(work)) if work.displaced == 1))
        });
        assert_eq!(world.get(0), Some(location(0, 0)), "missed while it moved behind the reader's back");
        writer.join().unwrap();
    });
}

/// Key 0 goes from bucket 0 to bucket 1, for key 1 can only be in the former, and comes back, for key 2 can only be in
/// the latter.
fn there_and_back<L: Layout>(world: &World<L>) {
    world.insert(1).unwrap();
    assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
    world.insert(2).unwrap();
}

/// An entry moves to its other bucket and back, while a reader looks in both.
#[test]
fn there_and_back_against_lookup() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (0, 1), 0, 0),
        hash_for(4, bits, (0, 0), 0, 0),
        hash_for(4, bits, (1, 1), 0, 0),
    ];
    check(2, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, there_and_back);
        assert_eq!(world.get(0), Some(location(0, 0)));
        writer.join().unwrap();
        assert_eq!((world.get(0), world.count(0)), (Some(location(0, 0)), 1));
    });
}

fn removal_against_lookup<L: Layout>() {
    let bits = L::TAG_BITS;
    let hashes = vec![hash_for(2, bits, (0, 1), 0, 0), hash_for(2, bits, (0, 1), 0, 1)];
    check_for_each([0, 1], move |asked| {
        let world = Arc::new(World::<L>::new(2, Growth::Fixed, hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let writer =
            beside(&world, |world| assert!(world.table.remove_exact(world.hashes[0], location(0, 0))));
        if asked == 0 {
            let first_look = world.get(0);
            let second_look = world.get(0);
            assert!(first_look.is_some() || second_look.is_none(), "a removed key came back");
        } else {
            assert_eq!(world.get(1), Some(location(1, 0)), "the other key of the bucket");
        }
        writer.join().unwrap();
        assert_eq!(world.get(0), None);
    });
}

#[test]
fn removal_against_lookup_inline() {
    removal_against_lookup::<Inline<2>>();
}

#[test]
fn removal_against_lookup_striped() {
    removal_against_lookup::<Striped<2, 8>>();
}

/// Of two removers of one entry, one succeeds.
#[test]
fn removal_against_removal() {
    type L = Inline<1>;
    let hashes = vec![hash_for(2, L::TAG_BITS, (0, 1), 0, 0)];
    check(4, move || {
        let world = Arc::new(World::<L>::new(2, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let other = beside(&world, |world| world.table.remove_exact(world.hashes[0], location(0, 0)));
        let mine = world.table.remove_exact(world.hashes[0], location(0, 0));
        assert!(mine ^ other.join().unwrap());
        assert!(world.table.is_empty());
    });
}

/// Two inserts of one key: one enters, the other is told where.
#[test]
fn insert_against_insert_of_the_same_key() {
    type L = Inline<1>;
    let hashes = vec![hash_for(2, L::TAG_BITS, (0, 1), 0, 0)];
    check(4, move || {
        let world = Arc::new(World::<L>::new(2, Growth::Fixed, hashes.clone()));
        let insert = |world: &World<L>, which| world.insert_at(0, location(0, which)).unwrap();
        let other = beside(&world, move |world| insert(&world, 1));
        let outcomes = (insert(&world, 0), other.join().unwrap());
        match outcomes {
            (Insertion::Inserted(_), Insertion::Occupied(at)) => assert_eq!(at, location(0, 0)),
            (Insertion::Occupied(at), Insertion::Inserted(_)) => assert_eq!(at, location(0, 1)),
            other => panic!("{other:?}"),
        }
        assert_eq!(world.count(0), 1);
    });
}

/// Two displacements whose paths share a bucket.
#[test]
fn displacement_against_displacement() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (0, 2), 0, 0),
        hash_for(4, bits, (1, 3), 0, 0),
        hash_for(4, bits, (0, 1), 0, 0),
        hash_for(4, bits, (1, 0), 0, 0),
    ];
    check(2, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        for key in [0, 1] {
            world.insert(key).unwrap();
        }
        let writer = beside(&world, |world| world.insert(2).unwrap());
        world.insert(3).unwrap();
        writer.join().unwrap();
        for key in 0..4 {
            assert_eq!((world.get(key), world.count(key)), (Some(location(key, 0)), 1));
        }
    });
}

/// A replacement is not lost when its entry is displaced at the same time, and a reader always finds one of the two.
#[test]
fn replacement_against_displacement_and_lookup() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![hash_for(4, bits, (0, 2), 0, 0), hash_for(4, bits, (0, 0), 0, 0)];
    check(2, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let displacer = beside(&world, |world| world.insert(1).unwrap());
        let replacer = beside(&world, |world| {
            let (hash, new) = (world.hashes[0], location(0, 1));
            let outcome = world.table.insert_or_replace(hash, new, |at| holds(at, 0), world.hasher());
            assert_eq!(outcome.unwrap(), Upsertion::Replaced(location(0, 0)));
        });
        assert!(world.get(0).is_some());
        displacer.join().unwrap();
        replacer.join().unwrap();
        assert_eq!((world.get(0), world.count(0)), (Some(location(0, 1)), 1));
        assert!(!world.table.replace(world.hashes[0], location(0, 0), location(0, 0)));
    });
}

/// An entry is replaced where it was found, or has been displaced since and is not.
fn replacement_on_the_spot<L: Layout>() {
    let bits = L::TAG_BITS;
    let hashes = vec![hash_for(4, bits, (0, 2), 0, 0), hash_for(4, bits, (0, 0), 0, 0)];
    check_for(Some(seconds_of_a_large_model()), 2, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let displacer = beside(&world, |world| world.insert(1).unwrap());
        let replacer = beside(&world, |world| {
            let spot = world.table.spot(world.hashes[0], |at| holds(at, 0));
            let held = spot.and_then(|spot| world.table.hold(spot));
            held.map(|held| held.replace(location(0, 1))).is_some()
        });
        assert!(world.get(0).is_some());
        displacer.join().unwrap();
        let which = usize::from(replacer.join().unwrap());
        assert_eq!((world.get(0), world.count(0)), (Some(location(0, which)), 1));
    });
}

#[test]
fn replacement_on_the_spot_inline() {
    replacement_on_the_spot::<Inline<1>>();
}

#[test]
fn replacement_on_the_spot_striped() {
    replacement_on_the_spot::<Striped<1, 8>>();
}

/// Of one who removes an entry on the spot and one who replaces it by its key, both succeed, or the second inserts.
#[test]
fn removal_on_the_spot_against_replacement() {
    type L = Inline<1>;
    let hashes = vec![hash_for(2, L::TAG_BITS, (0, 1), 0, 0)];
    check(4, move || {
        let world = Arc::new(World::<L>::new(2, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let replacer = beside(&world, |world| {
            let (hash, new) = (world.hashes[0], location(0, 1));
            world.table.insert_or_replace(hash, new, |at| holds(at, 0), world.hasher()).unwrap()
        });
        let spot = world.table.spot(world.hashes[0], |at| at == location(0, 0));
        let held = spot.and_then(|spot| world.table.hold(spot));
        let removed = held.map(|held| held.remove(world.hashes[0])).is_some();
        let upserted = replacer.join().unwrap();
        // Removed first, then inserted; or replaced first, and what was found had gone.
        assert_eq!(removed, matches!(upserted, Upsertion::Inserted(_)));
        assert_eq!((world.get(0), world.count(0)), (Some(location(0, 1)), 1));
        assert_eq!(world.table.len(), 1);
    });
}

/// Who sweeps removes an entry or misses it, and no other one, while it is displaced.
#[test]
fn sweep_against_displacement() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![hash_for(4, bits, (0, 2), 0, 0), hash_for(4, bits, (0, 0), 0, 0)];
    check(3, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let displacer = beside(&world, |world| world.insert(1).unwrap());
        let removed = world.table.sweep(0..4, |_| true, |at| holds(at, 0));
        displacer.join().unwrap();
        assert!(removed <= 1);
        assert_eq!((world.count(0), world.count(1)), (1 - removed, 1));
        assert_eq!(world.table.len(), 2 - removed);
    });
}

/// A batch settles each of its keys as a single lookup would.
#[test]
fn batch_against_displacement() {
    type L = Inline<1>;
    let bits = L::TAG_BITS;
    let hashes = vec![
        hash_for(4, bits, (0, 2), 0, 0),
        hash_for(4, bits, (0, 0), 0, 0),
        hash_for(4, bits, (3, 3), 0, 0),
    ];
    check(3, move || {
        let world = Arc::new(World::<L>::new(4, Growth::Fixed, hashes.clone()));
        world.insert(0).unwrap();
        let writer = beside(&world, |world| world.insert(1).unwrap());
        let mut found = [Some(location(0, 0)); 2];
        let hashes = [world.hashes[0], world.hashes[2]];
        world.table.find_many(world.hasher(), &hashes, |i, at| holds(at, 2 * i), &mut found);
        assert_eq!(found, [Some(location(0, 0)), None]);
        writer.join().unwrap();
    });
}

/// An entry moves behind the batch's back, from the bucket that it looks into second to the one that it has looked
/// into: each way of looking takes notice, and looks again.
#[test]
fn a_batch_finds_what_moves_behind_its_back() {
    type L = Inline<1>;
    let hashes = [((2, 0), 0), ((2, 2), 0), ((0, 0), 0), ((3, 3), 0)]
        .map(|(candidates, nth)| hash_for(4, L::TAG_BITS, candidates, 0, nth))
        .to_vec();
    for by_first_buckets in [false, true] {
        let hashes = hashes.clone();
        check(2, move || {
            let world = Arc::new(World::<L>::of_a_map(4, Growth::Fixed, hashes.clone()));
            // Key 1 keeps bucket 2 until key 0 has settled in bucket 0.
            world.insert(1).unwrap();
            world.insert(0).unwrap();
            assert!(world.table.remove_exact(world.hashes[1], location(1, 0)));
            let writer = beside(&world, |world| world.insert(2).unwrap());
            let (asked, mut found) = ([world.hashes[0], world.hashes[3]], [None; 2]);
            let eq = |i, at| holds(at, 3 * i);
            match by_first_buckets {
                true => world.table.find_group_first(&world.hasher(), &asked, eq, |i, at| found[i] = at),
                false => world.table.find_many(world.hasher(), &asked, eq, &mut found),
            }
            assert_eq!(found, [Some(location(0, 0)), None]);
            writer.join().unwrap();
        });
    }
}
