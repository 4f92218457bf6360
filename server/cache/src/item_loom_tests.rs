//! The words of an item's header that several threads change or go by, under the model checker: [`crate::access`] and
//! [`crate::stamp`].
//!
//! Run by `ci/safety`: `RUSTFLAGS="--cfg loom" cargo test -p lookaside-cache --lib --release`.

use loom::thread;

use crate::access::{Access, Accessed, Tick};
use crate::stamp::{Number, Stamp, Stamps};
use atomics::{Arc, AtomicBool, AtomicU16, AtomicUsize, Mutex, Ordering};

/// Up to three times a thread is interrupted where it need not be.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn of_several_one_wins_and_no_access_is_lost() {
    check(|| {
        let word = Arc::new(Access::new(Accessed::new(1000, true, false)));
        let asker = {
            let word = word.clone();
            thread::spawn(move || {
                word.note(Tick::of(1100));
                word.win()
            })
        };
        let holder = {
            let word = word.clone();
            thread::spawn(move || word.hold(Tick::of(1104)))
        };
        let won = word.win();
        assert_ne!(asker.join().unwrap(), won);
        holder.join().unwrap();
        assert_eq!(word.load(), Accessed::new(1100, true, true));
    });
}

/// Three items of one key, each in the place of the one before.
struct Key {
    stamps: Stamps,
    buckets: Mutex<()>,
    /// Which of the items is there.
    index: AtomicUsize,
    live: [AtomicBool; 3],
    kept: [AtomicU16; 3],
}

const HASH: u64 = 0;

impl Key {
    fn new() -> Arc<Key> {
        let stamps = Stamps::new();
        let first = stamps.next(HASH).stamp().bits();
        Arc::new(Key {
            stamps,
            buckets: Mutex::new(()),
            index: AtomicUsize::new(0),
            live: std::array::from_fn(|_| AtomicBool::new(true)),
            kept: [first, 0, 0].map(AtomicU16::new),
        })
    }

    /// As `Engine::replace_if` does; the number of the new item.
    fn replace(&self, old: usize) -> Number {
        let _locked = self.buckets.lock();
        // As `Arena::set_mark`.
        self.live[old].store(false, Ordering::Release);
        let number = self.stamps.next(HASH);
        self.kept[old + 1].store(number.stamp().bits(), Ordering::Relaxed);
        // As the index.
        self.index.store(old + 1, Ordering::Release);
        number
    }

    /// As `Hit::number` does, of the item that is found.
    fn find(&self) -> (usize, Number) {
        let found = self.index.load(Ordering::Acquire);
        let number = self.stamps.full(Stamp::from_bits(self.kept[found].load(Ordering::Relaxed)), HASH);
        (found, if self.live[found].load(Ordering::Acquire) { number } else { Number::NONE })
    }
}

/// The third item's number ends as the first one's.
#[test]
fn no_item_is_told_the_number_of_a_later_one() {
    check(|| {
        let key = Key::new();
        let writer = {
            let key = key.clone();
            thread::spawn(move || [key.replace(0), key.replace(1)])
        };
        let (found, told) = key.find();
        let (again, told_again) = key.find();
        let written = writer.join().unwrap();
        for (found, told) in [(found, told), (again, told_again)] {
            assert!(written.iter().skip(found).all(|&later| told < later), "{found} is told {told:?}");
        }
        assert!(again > found && (told_again > told || told_again == Number::NONE) || again == found);
    });
}
