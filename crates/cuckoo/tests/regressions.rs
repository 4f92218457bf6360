//! What went wrong once in use, and what must happen instead.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lookaside_cuckoo::{Config, Growth, Hashes, Insertion, Linear, Location, Table, TooFull};

/// Entry i is key i, and has this hash.
struct Hashed(fn(u64) -> u64);

impl Hashed {
    fn insert(&self, table: &Table, key: u64) -> Result<Insertion, TooFull> {
        let hasher = |at: Location| self.0(at.get());
        table.insert_or_get(self.0(key), Location::new(key).unwrap(), |at| at.get() == key, hasher)
    }

    /// Keys that a table takes before it refuses the first.
    fn fill(&self, table: &Table, keys: u64) -> (u64, Result<(), TooFull>) {
        for key in 0..keys {
            if let Err(refused) = self.insert(table, key) {
                return (key, Err(refused));
            }
        }
        (keys, Ok(()))
    }
}

fn growing(hashes: Hashes) -> Table {
    let growth = Growth::Linear(Linear::up_to(1 << 20));
    Table::with_buckets(1, &Config::new().with_growth(growth).with_hashes(hashes)).unwrap()
}

fn avalanching(key: u64) -> u64 {
    let mixed = (key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 31
}

const KEYS: u64 = 30_000;

/// What a weak hasher makes of the number of a key.
type Shape = fn(u64) -> u64;

/// Hashes that differ, but not in the bits that the table looked at: it refused the fifteenth key of those that were
/// multiples of 2^32, of 64 or of 4,096, and the 7,149th of those that had 32 bits, although it could have grown and
/// its documentation promised so.
#[test]
fn a_growing_table_takes_keys_whose_hashes_differ_in_few_bits() {
    let shapes: [(&str, Shape); 9] = [
        ("keys that are their own hashes", |key| key),
        ("multiples of 64", |key| key * 64),
        ("multiples of 4,096", |key| key * 4096),
        ("multiples of 2^32", |key| key << 32),
        ("the highest bits only", |key| key << 47),
        ("32 bits of a good hash", |key| avalanching(key) >> 32),
        ("two small numbers packed", |key| ((key / 256) << 32) | (key % 256)),
        ("two small numbers packed apart", |key| (key / 256) << 48 | (key % 256) << 8),
        ("floating point numbers", |key| (key as f64).to_bits()),
    ];
    for (shape, hash) in shapes {
        let (hashed, table) = (Hashed(hash), growing(Hashes::Any));
        // Of 32 bits one is shared by three of so many keys now and then, never by fifteen.
        assert_eq!(hashed.fill(&table, KEYS), (KEYS, Ok(())), "{shape}");
        assert!(table.load_factor() > 0.85, "{shape}: {}", table.load_factor());
        let mut found = vec![None; KEYS as usize];
        let keys: Vec<u64> = (0..KEYS).collect();
        let hashes: Vec<u64> = keys.iter().map(|&key| hash(key)).collect();
        table.find_many(|at: Location| hash(at.get()), &hashes, |i, at| at.get() == keys[i], &mut found);
        for &key in &keys {
            assert_eq!(found[key as usize], Location::new(key), "{shape}");
            assert_eq!(table.find(hash(key), |at| at.get() == key), Location::new(key), "{shape}");
            assert!(table.remove_exact(hash(key), Location::new(key).unwrap()), "{shape}");
        }
        assert!(table.is_empty());
    }
}

/// No table has room for more keys of one hash than two buckets have slots. The error said that the table was too full,
/// and to make a larger one; and where it was not nearly empty, each attempt made it split some hundred buckets more,
/// in vain.
#[test]
fn more_equal_hashes_than_two_buckets_hold_are_called_that_and_do_not_grow_the_table() {
    const MOST: u64 = 2 * <Table>::BUCKET_SLOTS as u64;
    // Every hundredth key has the hash of all such.
    let hashed = Hashed(|key| if key % 100 == 0 { 7 } else { avalanching(key) });
    for hashes in [Hashes::Any, Hashes::Avalanching] {
        let table = growing(hashes);
        for key in (0..10_000).filter(|key| key % 100 != 0) {
            assert!(hashed.insert(&table, key).is_ok());
        }
        for key in 0..MOST {
            assert!(hashed.insert(&table, key * 100).is_ok(), "{hashes:?}: {key}");
        }
        let buckets = table.buckets();
        for key in MOST..100 {
            assert_eq!(hashed.insert(&table, key * 100), Err(TooFull::Hashes), "{hashes:?}: {key}");
        }
        assert_eq!(table.buckets(), buckets, "{hashes:?}");
    }
    let message = TooFull::Hashes.to_string();
    assert!(message.contains("hash") && !message.contains("larger table"), "{message}");
}

/// Whoever says that his hashes avalanche, and is wrong, learns what is wrong.
#[test]
fn a_table_that_trusts_weak_hashes_blames_them() {
    for hash in [|key| key << 32, |key| key * 4096] {
        let (taken, refused) = Hashed(hash).fill(&growing(Hashes::Avalanching), KEYS);
        assert_eq!(refused, Err(TooFull::Hashes), "{taken} keys");
    }
    // A table that is full is not the hashes' fault.
    let fixed = Table::with_buckets(64, &Config::new().with_growth(Growth::Fixed)).unwrap();
    let (taken, refused) = Hashed(avalanching).fill(&fixed, KEYS);
    assert_eq!(refused, Err(TooFull::Table), "{taken} keys");
}

/// A comparison that uses the table, entries by which it does: the thread waited for a bucket that it had locked
/// itself, for ever.
#[test]
fn a_comparison_or_hash_that_uses_the_table_panics_instead_of_waiting_for_itself() {
    struct Reentrant<'t>(&'t Table);

    impl Reentrant<'_> {
        fn use_the_table(&self) {
            let _ = Hashed(avalanching).insert(self.0, 999);
        }

        fn insert(&self, key: u64) {
            let eq = |at: Location| {
                self.use_the_table();
                at.get() == key
            };
            let hasher = |at: Location| {
                self.use_the_table();
                avalanching(at.get())
            };
            let _ = self.0.insert_or_get(avalanching(key), Location::new(key).unwrap(), eq, hasher);
        }
    }

    // On another thread, so that one that waits for itself fails the test and does not hang it.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let panics = |what: &str, call: &mut dyn FnMut(&Table)| {
            let table = growing(Hashes::Any);
            assert_eq!(Hashed(avalanching).fill(&table, 6), (6, Ok(())));
            let panic = catch_unwind(AssertUnwindSafe(|| call(&table))).expect_err(what);
            let message = panic.downcast_ref::<&str>().expect("a message");
            assert!(message.contains("must not be"), "{what}: {message}");
            // Nothing is locked any more, and nothing lost.
            assert_eq!(Hashed(avalanching).fill(&table, 1000).0, 1000, "{what}");
        };
        panics("insert", &mut |table| Reentrant(table).insert(3));
        panics("remove", &mut |table| {
            table.remove(avalanching(3), |_| {
                Reentrant(table).use_the_table();
                true
            });
        });
        panics("replace_if", &mut |table| {
            let at = Location::new(3).unwrap();
            table.replace_if(avalanching(3), at, at, || {
                Reentrant(table).use_the_table();
                true
            });
        });
        panics("a split", &mut |table| {
            (6..100).for_each(|key| Reentrant(table).insert(key));
        });
        tell.send(()).expect("somebody listens");
    });
    told.recv_timeout(Duration::from_secs(60)).expect("a thread waits for itself, or the test failed there");
}
