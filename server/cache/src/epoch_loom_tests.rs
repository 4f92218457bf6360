//! The protocol of [`crate::epoch`] under the model checker.
//!
//! Run by `ci/safety`: `RUSTFLAGS="--cfg loom" cargo test -p lookaside-cache --lib --release`.

#![allow(unsafe_code)]

use loom::cell::UnsafeCell;
use loom::thread;

use crate::epoch::{Epochs, Participant};
use atomics::{Arc, AtomicUsize, Ordering};

/// Two items, one of which the index names; loom reports a read of an item that is being overwritten.
struct World {
    epochs: Arc<Epochs>,
    index: AtomicUsize,
    items: [UnsafeCell<u32>; 2],
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            epochs: Arc::new(Epochs::new()),
            index: AtomicUsize::new(0),
            items: [UnsafeCell::new(7), UnsafeCell::new(7)],
        })
    }

    fn look_up(&self, reader: &Participant) {
        reader.pin();
        let at = self.index.load(Ordering::Acquire);
        // SAFETY: the claim under test: nobody writes an item that a pinned reader has found.
        self.items[at].with(|item| assert_eq!(unsafe { *item }, 7));
    }

    /// Publishes the other item, and reuses the first one if that is allowed.
    fn replace(&self) -> bool {
        // Release: the new item is written.
        self.index.store(1, Ordering::Release);
        let stamp = self.epochs.stamp();
        self.epochs.advance();
        let safe = stamp < self.epochs.safe_before();
        if safe {
            // SAFETY: as above, from the other side.
            self.items[0].with_mut(|item| unsafe { *item = 8 });
        }
        safe
    }
}

/// Up to three times a thread is interrupted where it need not be.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn an_item_is_reused_only_when_nobody_can_be_reading_it() {
    check(|| {
        let world = World::new();
        let reader = thread::spawn({
            let world = world.clone();
            let reader = Participant::join(&world.epochs);
            move || {
                world.look_up(&reader);
                reader.offline();
                // Found again under a second pin, which is none of the first one's business.
                world.look_up(&reader);
            }
        });
        world.replace();
        reader.join().unwrap();
    });
}

#[test]
fn moving_the_pin_on_lets_go_of_what_was_found_before() {
    check(|| {
        let world = World::new();
        let reader = Participant::join(&world.epochs);
        let writer = thread::spawn({
            let world = world.clone();
            move || world.replace()
        });
        world.look_up(&reader);
        world.look_up(&reader);
        writer.join().unwrap();
        // The reader is still pinned at an epoch in which the first item may have been found, or it has moved on.
        drop(reader);
        world.epochs.advance();
        assert!(
            world.epochs.stamp() < {
                world.epochs.advance();
                world.epochs.safe_before()
            }
        );
    });
}

#[test]
fn a_pinned_reader_holds_back_and_an_offline_one_does_not() {
    check(|| {
        let epochs = Arc::new(Epochs::new());
        let reader = Participant::join(&epochs);
        reader.pin();
        let stamp = epochs.stamp();
        epochs.advance();
        assert!(stamp >= epochs.safe_before());
        reader.offline();
        assert!(stamp < epochs.safe_before());
    });
}
